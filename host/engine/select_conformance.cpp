#include "penstock/engine/select_conformance.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "penstock/base/status.h"
#include "penstock/descriptor/descriptor.h"

namespace penstock {
namespace {

// Where a byte of the table lies, in words.
std::string place(const penstock_node_table& header, std::uint64_t offset) {
  if (offset < header.header_bytes) return fmt::format("header byte {}", offset);
  const struct {
    const char* name;
    std::uint64_t begin;
  } parts[] = {{"free", header.free},     {"bits", header.bits},           {"gpu", header.gpu},
               {"scored", header.scored}, {"requested", header.requested}, {"allocatable", 0}};
  if (offset >= header.logs) return fmt::format("logs[{}]", (offset - header.logs) / 8);
  if (offset >= header.domain) {
    const bool count = offset >= header.count;
    const std::uint64_t cell = (offset - (count ? header.count : header.domain)) / 4;
    return fmt::format("{}[{}][{}] or the next", count ? "count" : "domain", cell / header.capacity,
                       cell % header.capacity);
  }
  for (const auto& part : parts) {
    if (offset < part.begin) continue;
    const std::uint64_t begin = part.begin == 0 ? header.allocatable : part.begin;
    if (part.begin == header.bits) {
      const std::uint64_t stride = header.capacity / 8;
      return fmt::format("bits[{}] of the rows from {}", (offset - begin) / stride,
                         (offset - begin) % stride * 8);
    }
    const std::uint64_t cell = (offset - begin) / 8;
    return fmt::format("{}[{}][{}]", part.name, cell / header.capacity, cell % header.capacity);
  }
  return "?";
}

}  // namespace

std::uint64_t SeededRandom::next() {
  std::uint64_t z = (state_ += UINT64_C(0x9e3779b97f4a7c15));
  z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
  return z ^ (z >> 31);
}

std::int64_t SeededRandom::between(std::int64_t low, std::int64_t high) {
  const std::uint64_t span = static_cast<std::uint64_t>(high) - static_cast<std::uint64_t>(low) + 1;
  const std::uint64_t offset = span == 0 ? next() : below(span);
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(low) + offset);
}

HostTable::HostTable(std::uint32_t rows, std::uint32_t capacity, std::uint32_t n_resources,
                     std::uint32_t n_gpus, std::uint32_t n_bits, std::uint32_t n_free,
                     std::uint32_t n_domains, std::uint32_t n_counts) {
  penstock_node_table header;
  const std::uint64_t bytes = penstock_node_table_init(&header, capacity, n_resources, n_gpus,
                                                       n_bits, n_free, n_domains, n_counts);
  PENSTOCK_CHECK(bytes != 0 && rows <= capacity, "no such geometry");
  header.rows = rows;
  lines_.resize(bytes / sizeof(Line));
  std::memcpy(lines_.data(), &header, sizeof header);
  if (n_domains == 0) return;
  double* logs =
      reinterpret_cast<double*>(reinterpret_cast<std::byte*>(lines_.data()) + header.logs);
  for (std::uint32_t i = 0; i <= header.capacity; i++) logs[i] = std::log(i + 2.0);
}

void HostTable::set_bit(std::uint32_t column, std::uint32_t row, bool value) {
  std::uint64_t& word = view().bit_column(column)[row / 64];
  const std::uint64_t mask = std::uint64_t{1} << (row % 64);
  word = value ? word | mask : word & ~mask;
}

bool HostTable::bit(std::uint32_t column, std::uint32_t row) const {
  std::uint64_t word = 0;
  std::memcpy(&word,
              reinterpret_cast<const unsigned char*>(lines_.data()) + header()->bits +
                  std::uint64_t{column} * (header()->capacity / 8) + row / 64 * 8,
              sizeof word);
  return ((word >> (row % 64)) & 1) != 0;
}

std::string difference(const penstock_result& expected, const penstock_result& actual) {
  if (std::memcmp(&expected, &actual, sizeof expected) == 0) return {};
  const struct {
    const char* name;
    std::int64_t expected;
    std::int64_t actual;
  } fields[] = {{"status", expected.status, actual.status},
                {"feasible", expected.feasible, actual.feasible},
                {"n_best", expected.n_best, actual.n_best},
                {"row", expected.row, actual.row},
                {"score", expected.score, actual.score},
                {"gpu_mask", expected.gpu_mask, actual.gpu_mask},
                {"reserved", expected.reserved, actual.reserved}};
  for (const auto& field : fields)
    if (field.expected != field.actual)
      return fmt::format("{}: expected {}, got {}", field.name, field.expected, field.actual);
  for (std::uint32_t i = 0; i < PENSTOCK_MAX_BEST; i++)
    if (std::memcmp(&expected.best[i], &actual.best[i], sizeof expected.best[i]) != 0)
      return fmt::format("best[{}]: expected row {} with {}, got row {} with {}", i,
                         expected.best[i].row, expected.best[i].score, actual.best[i].row,
                         actual.best[i].score);
  return "unnamed bytes differ";
}

std::string difference(const HostTable& expected, const HostTable& actual) {
  if (expected.bytes() != actual.bytes())
    return fmt::format("{} bytes, expected {}", actual.bytes(), expected.bytes());
  const auto* e = reinterpret_cast<const unsigned char*>(expected.header());
  const auto* a = reinterpret_cast<const unsigned char*>(actual.header());
  for (std::uint64_t offset = 0; offset < expected.bytes(); offset += 8) {
    std::int64_t expected_word = 0;
    std::int64_t actual_word = 0;
    std::memcpy(&expected_word, e + offset, 8);
    std::memcpy(&actual_word, a + offset, 8);
    if (expected_word != actual_word)
      return fmt::format("{}: expected {}, got {}", place(*expected.header(), offset),
                         expected_word, actual_word);
  }
  return {};
}

}  // namespace penstock
