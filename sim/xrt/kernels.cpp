#include "penstock/sim/xrt/kernels.h"

#include <cstring>

#include "penstock/descriptor/descriptor.h"
#include "penstock/descriptor/node_table.h"
#include "penstock/hls/penstock_hls.h"

namespace penstock::sim {
namespace {

// What the kernels read around their operands: whole words.
constexpr std::uint64_t kWord = 64;

// Registers at the offsets that penstock_hls.h has, and memory that they name.
class Image {
 public:
  Image(const std::vector<std::uint32_t>& words, BankMemory& memory)
      : words_(words), memory_(memory) {}

  std::uint32_t word(std::uint32_t offset) const {
    return offset / 4 < words_.size() ? words_[offset / 4] : 0;
  }
  std::uint64_t wide(std::uint32_t offset) const {
    return word(offset) | std::uint64_t{word(offset + 4)} << 32;
  }
  // Where the base address in a register is.
  std::byte* base(std::uint32_t offset) const {
    const std::uint64_t address = wide(offset);
    return address % kWord == 0 ? memory_.at(address, 1) : nullptr;
  }
  // Whether [at, at + bytes) from a base lies in one buffer.
  bool holds(std::uint32_t offset, std::uint64_t at, std::uint64_t bytes) const {
    const std::uint64_t address = wide(offset);
    const Buffer* buffer = memory_.holder(address);
    if (buffer == nullptr) return false;
    const std::uint64_t room = buffer->bytes - (address - buffer->address);
    return at <= room && bytes <= room - at;
  }

 private:
  const std::vector<std::uint32_t>& words_;
  BankMemory& memory_;
};

bool run_reduce(const Image& image) {
  constexpr std::uint32_t kIn = 0x10, kOut = 0x1c, kEdge = 0x28, kSources = 0x34;
  constexpr std::uint32_t kDestinations[3] = {0x40, 0x4c, 0x58};
  const std::uint64_t count = image.wide(0x64);
  const std::uint32_t type = image.word(0x7c), redop = image.word(0x84), out = image.word(0x8c);
  const std::uint32_t n_src = image.word(0x94), n_dst = image.word(0x9c);
  std::byte* const in = image.base(kIn);
  std::byte* const to = image.base(kOut);
  std::byte* const edge = image.base(kEdge);
  std::byte* const list = image.base(kSources);
  if (in == nullptr || to == nullptr || edge == nullptr || list == nullptr) return false;
  if (penstock_hls_reduce_takes(type, redop, out, n_src, n_dst)) {
    if (count > PENSTOCK_MAX_COUNT || !image.holds(kSources, 0, 8 * std::uint64_t{n_src}))
      return false;
    for (std::uint32_t s = 0; s < n_src; ++s) {
      std::uint64_t at;
      std::memcpy(&at, list + 8 * s, 8);
      if (!image.holds(kIn, at, count * penstock_type_size(type))) return false;
    }
    for (std::uint32_t d = 0; d < n_dst; ++d) {
      const std::uint64_t at = image.wide(kDestinations[d]);
      const std::uint64_t bytes = count * penstock_type_size(out);
      if (!image.holds(kOut, at, bytes) || !image.holds(kEdge, at, bytes)) return false;
    }
  }
  penstock_hls_reduce(penstock_hls::WordPort(in), penstock_hls::WordPort(to),
                      reinterpret_cast<std::uint8_t*>(edge),
                      reinterpret_cast<const std::uint64_t*>(list), image.wide(kDestinations[0]),
                      image.wide(kDestinations[1]), image.wide(kDestinations[2]), count,
                      image.wide(0x70), type, redop, out, n_src, n_dst);
  return true;
}

bool run_select(const Image& image) {
  constexpr std::uint32_t kTable = 0x10, kRecords = 0x1c, kCells = 0x28, kResults = 0x34;
  const std::uint64_t header = image.wide(0x40), table = image.wide(0x4c);
  const std::uint64_t program = image.wide(0x58), tasks = image.wide(0x64);
  const std::uint64_t results = image.wide(0x70), status = image.wide(0x7c);
  const std::uint32_t n = image.word(0x88);
  std::byte* const columns = image.base(kTable);
  std::byte* const records = image.base(kRecords);
  std::byte* const cells = image.base(kCells);
  std::byte* const answers = image.base(kResults);
  if (columns == nullptr || records == nullptr || cells == nullptr || answers == nullptr)
    return false;
  if (!image.holds(kRecords, header, sizeof(penstock_node_table))) return false;
  penstock_node_table copy;
  std::memcpy(&copy, records + header, sizeof(copy));
  if (!image.holds(kTable, table, copy.bytes) || !image.holds(kCells, table, copy.bytes) ||
      !image.holds(kRecords, program, sizeof(penstock_program)) ||
      !image.holds(kRecords, tasks, n * sizeof(penstock_task)) ||
      !image.holds(kResults, results, n * sizeof(penstock_result)) ||
      !image.holds(kResults, status, 16))
    return false;
  penstock_hls_select(penstock_hls::WordPort(columns),
                      reinterpret_cast<const std::uint64_t*>(records),
                      penstock_hls::CellPort(cells), reinterpret_cast<std::uint64_t*>(answers),
                      header, table, program, tasks, results, status, n, image.word(0x90));
  return true;
}

}  // namespace

bool run_hls_kernel(const std::string& kernel, const std::vector<std::uint32_t>& registers,
                    BankMemory& memory) {
  const Image image(registers, memory);
  if (kernel == "penstock_hls_reduce") return run_reduce(image);
  if (kernel == "penstock_hls_select") return run_select(image);
  return false;
}

}  // namespace penstock::sim
