#include "penstock/base/checksum.h"

#include <array>

namespace penstock {
namespace {

constexpr std::array<std::uint32_t, 256> make_table() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t value = byte;
    for (int bit = 0; bit < 8; ++bit) {
      value = (value >> 1) ^ ((value & 1) != 0 ? 0x82f63b78u : 0u);
    }
    table[byte] = value;
  }
  return table;
}

constexpr std::array<std::uint32_t, 256> kTable = make_table();

}  // namespace

std::uint32_t crc32c(const void* data, std::size_t bytes, std::uint32_t seed) {
  const auto* at = static_cast<const std::uint8_t*>(data);
  std::uint32_t value = ~seed;
  for (std::size_t i = 0; i < bytes; ++i) value = (value >> 8) ^ kTable[(value ^ at[i]) & 0xff];
  return ~value;
}

}  // namespace penstock
