// The arithmetic of the SystemC card: its own code for the numeric contract (descriptor/types.h and
// descriptor.h), so that agreement with another engine says something.
#ifndef PENSTOCK_SIM_SYSTEMC_ARITHMETIC_H_
#define PENSTOCK_SIM_SYSTEMC_ARITHMETIC_H_

#include <cstdint>
#include <vector>

namespace penstock::systemc {

// What a REDUCE does with elements; of a checked record that the card takes.
struct FoldSetup {
  std::uint32_t type = 0;
  std::uint32_t redop = 0;
  std::uint32_t out_type = 0;
  std::uint32_t sources = 0;
  std::uint64_t scale = 0;
};

// Values between f32 and the narrower formats. `type` is F16, BF16, F8E4M3 or F8E5M2. Codes are
// right-aligned. Pure, thread-safe.
float widen(std::uint32_t type, std::uint32_t code);
std::uint32_t narrow(std::uint32_t type, float value);

// Folds sources that arrive one after another, a chunk at a time, as the card does: the
// accumulators of a chunk stand between them. Not thread-safe.
class Fold {
 public:
  static constexpr std::uint32_t kChunkBytes = 4096;

  // Bytes of an element, as stored.
  static std::uint32_t element_bytes(std::uint32_t type);

  explicit Fold(const FoldSetup& setup);

  // Takes `elements` elements of source `index` (0, 1, ... in order) of the present chunk.
  void add(std::uint32_t index, const std::uint8_t* data, std::uint32_t elements);
  // After the last source: writes the chunk's elements of out_type to `out` (room for four times
  // the chunk) and returns their bytes.
  std::uint32_t finish(std::uint8_t* out, std::uint32_t elements);

 private:
  FoldSetup setup_;
  bool copies_;  // one source, whose bits are the result
  std::vector<std::uint8_t> accumulators_;
};

}  // namespace penstock::systemc
#endif
