#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "penstock/engine/simd_reduce_integer.cpp"
#include <hwy/foreach_target.h>  // must come before highway.h

#include "penstock/engine/scalar_reduce.h"
#include "penstock/engine/simd_fold-inl.h"
#include "penstock/engine/simd_reduce.h"

HWY_BEFORE_NAMESPACE();
namespace penstock {
namespace HWY_NAMESPACE {

#if HWY_TARGET == HWY_SCALAR
void ReduceInteger(const ReduceArguments& a) { scalar_reduce(a); }
#else

// Sums and products are computed as unsigned, which wraps; T decides how elements compare and
// divide.
template <typename T>
struct IntegerLanes {
  using Stored = T;
  using Unsigned = hwy::MakeUnsigned<T>;
  using D = hn::ScalableTag<Unsigned>;
  using DT = hn::ScalableTag<T>;
  using Vec = hn::Vec<D>;
  static constexpr std::size_t kLanes = hn::MaxLanes(D());

  static HWY_INLINE Vec Load(const std::uint8_t* p) {
    return hn::LoadU(D(), reinterpret_cast<const Unsigned*>(p));
  }
  static HWY_INLINE void Store(Vec v, std::uint8_t* p) {
    hn::StoreU(v, D(), reinterpret_cast<Unsigned*>(p));
  }
  static HWY_INLINE Vec Add(Vec a, Vec b) { return hn::Add(a, b); }
  static HWY_INLINE Vec Mul(Vec a, Vec b) {
    if constexpr (sizeof(T) > 1)
      return hn::operator*(a, b);
    else
      return MulBytes(a, b);
  }
  static HWY_INLINE Vec Minimum(Vec a, Vec b) {
    return hn::BitCast(D(), hn::Min(hn::BitCast(DT(), a), hn::BitCast(DT(), b)));
  }
  static HWY_INLINE Vec Maximum(Vec a, Vec b) {
    return hn::BitCast(D(), hn::Max(hn::BitCast(DT(), a), hn::BitCast(DT(), b)));
  }
  static Vec Scale(std::uint64_t bits) { return hn::Set(D(), static_cast<Unsigned>(bits)); }

  struct Divisor {
    explicit Divisor(std::uint32_t number)
        : n(static_cast<T>(number)), reciprocal(static_cast<std::uint16_t>(65536 / number + 1)) {}
    const T n;
    const std::uint16_t reciprocal;
  };
  static HWY_INLINE Vec Average(Vec sum, const Divisor& divisor) {
    if constexpr (sizeof(T) == 1) {
      return AverageBytes(sum, divisor);
    } else {
      // Processors have no vector division of integers.
      alignas(64) T lanes[kLanes];
      hn::Store(hn::BitCast(DT(), sum), DT(), lanes);
      for (T& lane : lanes) lane = static_cast<T>(lane / divisor.n);
      return hn::BitCast(D(), hn::Load(DT(), lanes));
    }
  }

 private:
  // The low byte of a 16-bit product depends on low bytes alone; odd bytes move down and back.
  static HWY_INLINE Vec MulBytes(Vec a, Vec b) {
    const hn::RepartitionToWide<D> d16;
    const auto a16 = hn::BitCast(d16, a);
    const auto b16 = hn::BitCast(d16, b);
    const auto even = hn::And(hn::Mul(a16, b16), hn::Set(d16, std::uint16_t{0xff}));
    const auto odd = hn::ShiftLeft<8>(hn::Mul(hn::ShiftRight<8>(a16), hn::ShiftRight<8>(b16)));
    return hn::BitCast(D(), hn::Or(even, odd));
  }
  // x / n for x up to 255 and n from 2 to 64 is the upper half of x * (65536 / n + 1): the
  // reciprocal is too large by at most 1, the product by at most x / 65536 < 1 / n.
  static HWY_INLINE Vec AverageBytes(Vec sum, const Divisor& divisor) {
    const hn::RepartitionToWide<D> d16;
    Vec magnitude = sum;
    if constexpr (std::is_signed_v<T>)
      magnitude = hn::BitCast(D(), hn::Abs(hn::BitCast(DT(), sum)));  // -128 gives 128
    const auto both = hn::BitCast(d16, magnitude);
    const auto reciprocal = hn::Set(d16, divisor.reciprocal);
    const auto even = hn::MulHigh(hn::And(both, hn::Set(d16, std::uint16_t{0xff})), reciprocal);
    const auto odd = hn::MulHigh(hn::ShiftRight<8>(both), reciprocal);
    const Vec quotient = hn::BitCast(D(), hn::Or(even, hn::ShiftLeft<8>(odd)));
    if constexpr (!std::is_signed_v<T>) return quotient;
    const DT dt;
    const auto negative = hn::Lt(hn::BitCast(dt, sum), hn::Zero(dt));
    const auto towards = hn::BitCast(dt, quotient);
    return hn::BitCast(D(), hn::IfThenElse(negative, hn::Sub(hn::Zero(dt), towards), towards));
  }
};

void ReduceInteger(const ReduceArguments& a) {
  switch (a.type) {
    case PENSTOCK_INT8:
      return FoldAny<IntegerLanes<std::int8_t>, false>(a);
    case PENSTOCK_UINT8:
      return FoldAny<IntegerLanes<std::uint8_t>, false>(a);
    case PENSTOCK_INT32:
      return FoldAny<IntegerLanes<std::int32_t>, false>(a);
    case PENSTOCK_UINT32:
      return FoldAny<IntegerLanes<std::uint32_t>, false>(a);
    case PENSTOCK_INT64:
      return FoldAny<IntegerLanes<std::int64_t>, false>(a);
    case PENSTOCK_UINT64:
      return FoldAny<IntegerLanes<std::uint64_t>, false>(a);
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
HWY_EXPORT(ReduceInteger);
void simd_reduce_integer(const ReduceArguments& a) { HWY_DYNAMIC_DISPATCH(ReduceInteger)(a); }
}  // namespace penstock
#endif
