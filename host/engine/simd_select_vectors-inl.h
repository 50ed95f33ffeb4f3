// What the block kernels share, once for each instruction set. No include guard: Highway includes
// it again for every target.
#if defined(PENSTOCK_ENGINE_SIMD_SELECT_VECTORS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PENSTOCK_ENGINE_SIMD_SELECT_VECTORS_INL_H_
#undef PENSTOCK_ENGINE_SIMD_SELECT_VECTORS_INL_H_
#else
#define PENSTOCK_ENGINE_SIMD_SELECT_VECTORS_INL_H_
#endif

#include "hwy/highway.h"
#include "penstock/engine/simd_select_blocks.h"

HWY_BEFORE_NAMESPACE();
namespace penstock {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

const hn::ScalableTag<std::int64_t> kInt;
const hn::ScalableTag<std::uint64_t> kWord;
const hn::ScalableTag<double> kReal;
using Int = hn::Vec<decltype(kInt)>;
using Word = hn::Vec<decltype(kWord)>;
using Real = hn::Vec<decltype(kReal)>;
using IntMask = hn::Mask<decltype(kInt)>;
using RealMask = hn::Mask<decltype(kReal)>;

// Quotients. For integers a >= 0 and b > 0 with a + b < 2^53, floor(a / b) is the floor of the
// float64 quotient: let n = floor(a / b). The rounded quotient is at least n, because n is a
// float64. If it were n + 1, the true one would be within half a unit in the last place, at most
// (n + 1) * 2^-53, below n + 1; but it is at least 1 / b below, and (n + 1) * b <= a + b < 2^53.
// With kQuantityBits, 100 * a + b < 101 * 2^46 < 2^53.
constexpr int kQuantityBits = 46;

//
// Where many are divided by one b, its rounded reciprocal r does: floor((a + 0.5) * r) is
// floor(a / b) for a < 2^50. What stands inside is off by less than 2^-51 of (a + 0.5) / b, which
// is below 0.5 / b, and (a + 0.5) / b is 0.5 / b or more from every integer.
constexpr std::int64_t kExact = std::int64_t{1} << 50;

// Every bit of the cells that were read is gathered, to tell afterwards whether all of them were in
// [0, 2^kBits).
HWY_INLINE void gather(Int a, Int b, Word& seen) {
  seen = hn::Or3(seen, hn::BitCast(kWord, a), hn::BitCast(kWord, b));
}
template <int kBits = kQuantityBits>
HWY_INLINE bool all_below(Word seen) {
  return hn::AllTrue(kWord, hn::ShiftRight<kBits>(seen) == hn::Zero(kWord));
}

HWY_INLINE Int load(const std::int64_t* p) { return hn::LoadU(kInt, p); }
HWY_INLINE Real to_real(Int v) { return hn::ConvertTo(kReal, v); }
HWY_INLINE Real real(double v) { return hn::Set(kReal, v); }
HWY_INLINE Int integer(std::int64_t v) { return hn::Set(kInt, v); }
HWY_INLINE void store(Real v, std::int64_t* p) { hn::StoreU(hn::ConvertTo(kInt, v), kInt, p); }
// The same for integers within +-2^50, for less: added to 1.5 * 2^52 they stand in the low bits.
constexpr double kRounder = 6755399441055744.0;
HWY_INLINE void store_integer(Real v, std::int64_t* p) {
  const Real shift = real(kRounder);
  hn::StoreU(hn::BitCast(kInt, v + shift) - hn::BitCast(kInt, shift), kInt, p);
}
HWY_INLINE Real truncate(Real v) {
  const Real limit = real(static_cast<double>(PENSTOCK_MAX_FREE_VALUE));
  return hn::Min(hn::Max(v, hn::Neg(limit)), limit);
}

// floor(v) for 0 <= v < 2^50.
HWY_INLINE void store_floor(Real v, std::int64_t* p) {
#if HWY_TARGET == HWY_AVX3
  hn::StoreU(hn::ConvertTo(kInt, v), kInt, p);
#else
  store_integer(hn::Floor(v), p);
#endif
}

// What to add before a floor that is to round half away from zero, for 0 <= v < 2^50: the number
// below 0.5. With it the sum of k + 0.5 is rounded up to k + 1, and that of the number below k +
// 0.5 stays below.
constexpr double kBelowHalf = 0.49999999999999994;

// Bit i of the result: lane i of the mask.
HWY_INLINE std::uint64_t mask_bits(IntMask mask) {
  std::uint8_t bytes[8] = {};
  hn::StoreMaskBits(kInt, mask, bytes);
  return bytes[0];
}
// Lanes whose bit, from `from` on, is set.
HWY_INLINE IntMask bits_mask(std::uint64_t word, std::size_t from) {
  const std::uint64_t bits = word >> from;
  return hn::LoadMaskBits(kInt, reinterpret_cast<const std::uint8_t*>(&bits));
}

}  // namespace HWY_NAMESPACE
}  // namespace penstock
HWY_AFTER_NAMESPACE();
#endif
