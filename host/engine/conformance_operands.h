// Operands of the conformance suite: what they hold, and where they lie between guards. Internal to
// host/engine.
#ifndef PENSTOCK_ENGINE_CONFORMANCE_OPERANDS_H_
#define PENSTOCK_ENGINE_CONFORMANCE_OPERANDS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "penstock/engine/conformance_rig.h"

namespace penstock::conformance {

constexpr std::uint64_t kGuard = 64;
// Of one operand with its guards: the longest length of f64, and up to 63 bytes of misalignment.
constexpr std::uint64_t kSlot = 4097 * 8 + 63 + 2 * kGuard + 1;
constexpr std::uint64_t kListOffset = (kSlot * (PENSTOCK_MAX_SOURCES + 3) + 63) / 64 * 64;

// Of n_src weights, after the list.
constexpr std::uint64_t kWeightsOffset = kListOffset + PENSTOCK_MAX_SOURCES * 8;

const std::vector<std::uint64_t>& lengths(bool quick);
const std::vector<std::uint32_t>& source_counts(bool quick);

// A hash of 64 bits.
std::uint64_t mix(std::uint64_t z);

struct Bits {
  int width;
  int fraction;  // 0 for integers
};
Bits bits_of(std::uint32_t type);

// Zeros, the smallest and largest subnormal and normal numbers, infinities, NaNs with and without
// payload, values one step beside 1; extremes for integers. Both signs by the lowest bit of `pick`.
std::uint64_t special(Bits b, std::uint64_t pick);

// An element. What kind of values it has is the same over all sources, because one NaN hides
// whatever else is in a fold.
std::uint64_t element(Bits b, std::uint64_t seed, std::uint32_t source, std::uint64_t i);

// What PREMUL_SUM multiplies with; 0 for other reductions.
std::uint64_t scale_for(std::uint32_t type, std::uint32_t redop, std::uint64_t pick);

// The arena's slots as they are to be after the descriptor ran.
class Image {
 public:
  explicit Image(Rig& rig) : rig_(rig) {}

  // Slot s holds an operand of `bytes` bytes that starts `skew` bytes after its guard.
  std::byte* lay(std::uint32_t slot, std::uint64_t skew, std::uint64_t bytes);
  penstock_address address(std::size_t index) const {
    return rig_.address(slots_[index].offset + slots_[index].start);
  }
  std::byte* expected(std::size_t index) {
    return slots_[index].expected.data() + slots_[index].start;
  }

  void store();
  // Empty, or where memory differs first.
  std::string compare(std::uint32_t element_bytes);

 private:
  struct Slot {
    std::uint64_t offset, start, bytes;
    std::vector<std::byte> expected;
  };
  Rig& rig_;
  std::vector<Slot> slots_;
};

// Writes the sources' addresses into the descriptor, through a list where they are too many.
void set_sources(Rig& rig, const std::vector<penstock_address>& src, penstock_descriptor* d);

// Whether the engine refuses a well-formed descriptor; appends the row that says so.
bool refused(Rig& rig, const penstock_descriptor& probe, const std::string& operation,
             const std::string& type_name, std::vector<ConformanceRow>* rows);

}  // namespace penstock::conformance
#endif
