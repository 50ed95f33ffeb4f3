#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "penstock/engine/simd_reduce_narrow.cpp"
#include <hwy/foreach_target.h>  // must come before highway.h

#include "penstock/engine/scalar_reduce.h"
#include "penstock/engine/simd_lanes-inl.h"
#include "penstock/engine/simd_reduce.h"

HWY_BEFORE_NAMESPACE();
namespace penstock {
namespace HWY_NAMESPACE {

#if !PENSTOCK_SIMD_HAS_F16
void ReduceNarrow(const ReduceArguments& a) { scalar_reduce(a); }
#else

// Elements side by side in a wider word become two vectors, of the even and of the odd ones: that
// takes a shift and a mask where widening in order takes a permutation, and the fold does not mind
// the order, because lanes never mix. The way back is the same.
struct Pair {
  VF even, odd;
};
struct PairMath {
  using Vec = Pair;
  using One = NarrowMath;
  static constexpr std::size_t kLanes = 2 * One::kLanes;
  using Divisor = One::Divisor;

  static HWY_INLINE Pair Add(Pair a, Pair b) {
    return {One::Add(a.even, b.even), One::Add(a.odd, b.odd)};
  }
  static HWY_INLINE Pair Mul(Pair a, Pair b) {
    return {One::Mul(a.even, b.even), One::Mul(a.odd, b.odd)};
  }
  static HWY_INLINE Pair Minimum(Pair a, Pair b) {
    return {One::Minimum(a.even, b.even), One::Minimum(a.odd, b.odd)};
  }
  static HWY_INLINE Pair Maximum(Pair a, Pair b) {
    return {One::Maximum(a.even, b.even), One::Maximum(a.odd, b.odd)};
  }
  static Pair Scale(std::uint64_t bits) { return {One::Scale(bits), One::Scale(bits)}; }
  static HWY_INLINE Pair Average(Pair sum, const Divisor& divisor) {
    return {One::Average(sum.even, divisor), One::Average(sum.odd, divisor)};
  }
};

struct Bf16Pairs : PairMath {
  using Stored = std::uint16_t;
  static HWY_INLINE Pair Load(const std::uint8_t* p) {
    const VU words = hn::LoadU(DU(), reinterpret_cast<const std::uint32_t*>(p));
    return {hn::BitCast(DF(), hn::ShiftLeft<16>(words)),
            hn::BitCast(DF(), hn::And(words, hn::Set(DU(), 0xffff0000u)))};
  }
  static HWY_INLINE void Store(Pair v, std::uint8_t* p) {
    const VU even = hn::ShiftRight<16>(Round(v.even));
    const VU odd = hn::And(Round(v.odd), hn::Set(DU(), 0xffff0000u));
    hn::StoreU(hn::Or(even, odd), DU(), reinterpret_cast<std::uint32_t*>(p));
  }

 private:
  // In the upper half of each lane: half of the last kept bit, less one if that bit is even, is
  // added. A carry runs into the exponent, and from the largest number to infinity.
  static HWY_INLINE VU Round(VF value) {
    const VU bits = hn::BitCast(DU(), value);
    const VU odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(DU(), 1u));
    const VU rounded = hn::Add(hn::Add(bits, odd), hn::Set(DU(), 0x7fffu));
    return hn::IfThenElse(hn::RebindMask(DU(), hn::IsNaN(value)), hn::Set(DU(), numeric::kNanF32),
                          rounded);
  }
};

// Eight-bit floats go through f16, whose conversion the processor has. What is common to both:
template <class F>
struct F8Pairs : PairMath {
  using Stored = std::uint8_t;
  using D16 = F16Lanes::D16;
  using DH = F16Lanes::DB;
  using VH = hn::Vec<DH>;
  static HWY_INLINE VH Words(const std::uint8_t* p) {
    return hn::LoadU(DH(), reinterpret_cast<const std::uint16_t*>(p));
  }
  static HWY_INLINE VF Widened(VH f16) { return hn::PromoteTo(DF(), hn::BitCast(D16(), f16)); }
  static HWY_INLINE VH Narrowed(VF value) { return hn::BitCast(DH(), hn::DemoteTo(D16(), value)); }
  // Rounds to the format's values, the largest finite one at most; a NaN becomes `nan`. Adding a
  // power of two whose last bit is the format's step at this magnitude makes the adder round; below
  // the smallest normal number the step stays.
  static HWY_INLINE VF Round(VF value, float nan) {
    const float largest = numeric::widen<F>(F::largest);
    const VU bits = hn::BitCast(DU(), value);
    const VI magnitude = hn::Min(hn::BitCast(DI(), hn::And(bits, hn::Set(DU(), 0x7fffffffu))),
                                 hn::Set(DI(), std::bit_cast<std::int32_t>(largest)));
    const VI exponent = hn::Max(hn::And(magnitude, hn::Set(DI(), 0x7f800000)),
                                hn::Set(DI(), (F::min_exponent + 127) << 23));
    const VF step =
        hn::BitCast(DF(), hn::Add(exponent, hn::Set(DI(), (23 - F::fraction_bits) << 23)));
    const VF rounded = hn::Sub(hn::Add(hn::BitCast(DF(), magnitude), step), step);
    const VF sign = hn::BitCast(DF(), hn::And(bits, hn::Set(DU(), 0x80000000u)));
    return hn::IfThenElse(hn::IsNaN(value), hn::Set(DF(), nan), hn::Or(rounded, sign));
  }
};

// An f8e5m2 code is the upper byte of an f16 code.
struct F8e5m2Pairs : F8Pairs<numeric::F8e5m2> {
  static HWY_INLINE Pair Load(const std::uint8_t* p) {
    const VH words = Words(p);
    return {Widened(hn::ShiftLeft<8>(words)),
            Widened(hn::And(words, hn::Set(DH(), std::uint16_t{0xff00})))};
  }
  static HWY_INLINE void Store(Pair v, std::uint8_t* p) {
    const float nan = std::bit_cast<float>(numeric::kNanF32);
    const VH even = hn::ShiftRight<8>(Narrowed(Round(v.even, nan)));
    const VH odd = hn::And(Narrowed(Round(v.odd, nan)), hn::Set(DH(), std::uint16_t{0xff00}));
    hn::StoreU(hn::Or(even, odd), DH(), reinterpret_cast<std::uint16_t*>(p));
  }
};

// The bits of f8e4m3 moved to f16's places are the value times 2^(7 - 15). kScaled folds them as
// they are, which gives the same bits wherever a power of two runs through the fold.
template <bool kScaled>
struct F8e4m3Pairs : F8Pairs<numeric::F8e4m3> {
  using VI16 = hn::Vec<hn::RebindToSigned<DH>>;
  static HWY_INLINE Pair Load(const std::uint8_t* p) {
    const VH words = Words(p);
    return {One(hn::ShiftLeft<8>(words)), One(words)};
  }
  static HWY_INLINE void Store(Pair v, std::uint8_t* p) {
    const VH even = Code(v.even);
    const VH odd = Code(v.odd);
    const VH low = hn::Or(hn::And(hn::ShiftRight<8>(even), hn::Set(DH(), std::uint16_t{0x80})),
                          hn::And(hn::ShiftRight<7>(even), hn::Set(DH(), std::uint16_t{0x7f})));
    const VH high = hn::Or(hn::And(odd, hn::Set(DH(), std::uint16_t{0x8000})),
                           hn::And(hn::Add(odd, odd), hn::Set(DH(), std::uint16_t{0x7f00})));
    hn::StoreU(hn::Or(low, high), DH(), reinterpret_cast<std::uint16_t*>(p));
  }

 private:
  // Of the code in the upper byte of each lane.
  static HWY_INLINE VF One(VH code) {
    const hn::RebindToSigned<DH> d;
    const VH f16 = hn::And(hn::BitCast(DH(), hn::ShiftRight<1>(hn::BitCast(d, code))),
                           hn::Set(DH(), std::uint16_t{0xbf80}));
    const VH magnitude = hn::And(f16, hn::Set(DH(), std::uint16_t{0x7fff}));
    const auto is_nan = hn::Eq(magnitude, hn::Set(DH(), std::uint16_t{0x3f80}));
    const VF value = Widened(hn::IfThenElse(is_nan, hn::Set(DH(), std::uint16_t{0x7e00}), f16));
    return kScaled ? value : hn::Mul(value, hn::Set(DF(), 256.0f));
  }
  // f16 bits of the value times 2^-8, with the code's bits in the places where One looks for them;
  // the NaN is 480.
  static HWY_INLINE VH Code(VF value) {
    if (kScaled) value = hn::Mul(value, hn::Set(DF(), 256.0f));
    return Narrowed(hn::Mul(Round(value, 480.0f), hn::Set(DF(), 1.0f / 256)));
  }
};

void ReduceF8e4m3(const ReduceArguments& a) {
  // A product of n has the factor n times, and any factor may stand in `scale`.
  if (a.redop == PENSTOCK_PROD || a.redop == PENSTOCK_PREMUL_SUM)
    return FoldAny<F8e4m3Pairs<false>, false>(a);
  FoldAny<F8e4m3Pairs<true>, false>(a);
}

void ReduceNarrow(const ReduceArguments& a) {
  switch (a.type) {
    case PENSTOCK_F16:
      return FoldAny<F16Lanes, true>(a);
    case PENSTOCK_BF16:
      return FoldAny<Bf16Pairs, true>(a);
    case PENSTOCK_F8E4M3:
      return ReduceF8e4m3(a);
    case PENSTOCK_F8E5M2:
      return FoldAny<F8e5m2Pairs, false>(a);
    default:
      PENSTOCK_CHECK(false, "type {} was not checked", a.type);
  }
}
#endif

}  // namespace HWY_NAMESPACE
}  // namespace penstock
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace penstock {
HWY_EXPORT(ReduceNarrow);
void simd_reduce_narrow(const ReduceArguments& a) { HWY_DYNAMIC_DISPATCH(ReduceNarrow)(a); }
}  // namespace penstock
#endif
