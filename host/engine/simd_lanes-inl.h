// Lanes types of the floats (see simd_fold-inl.h), included once per target.
#if defined(PENSTOCK_ENGINE_SIMD_LANES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PENSTOCK_ENGINE_SIMD_LANES_INL_H_
#undef PENSTOCK_ENGINE_SIMD_LANES_INL_H_
#else
#define PENSTOCK_ENGINE_SIMD_LANES_INL_H_
#endif

#include "penstock/engine/numeric.h"
#include "penstock/engine/simd_fold-inl.h"

// The narrow formats want the processor's own f16 conversion (F16C), which rounds to nearest even
// whatever MXCSR says. Targets without it leave the work to the definition.
#undef PENSTOCK_SIMD_HAS_F16
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2 && !defined(HWY_DISABLE_F16C)
#define PENSTOCK_SIMD_HAS_F16 1
#else
#define PENSTOCK_SIMD_HAS_F16 0
#endif

HWY_BEFORE_NAMESPACE();
namespace penstock {
namespace HWY_NAMESPACE {

#if HWY_TARGET != HWY_SCALAR
template <typename T>
struct FloatLanes : FloatMath<T> {
  using Stored = T;
  using typename FloatMath<T>::D;
  using typename FloatMath<T>::Vec;
  static HWY_INLINE Vec Load(const std::uint8_t* p) {
    return hn::LoadU(D(), reinterpret_cast<const T*>(p));
  }
  static HWY_INLINE void Store(Vec v, std::uint8_t* p) {
    const Vec nan = hn::Set(D(), numeric::canonical(std::numeric_limits<T>::quiet_NaN()));
    hn::StoreU(hn::IfThenElse(hn::IsNaN(v), nan, v), D(), reinterpret_cast<T*>(p));
  }
};

#endif

#if PENSTOCK_SIMD_HAS_F16
using NarrowMath = FloatMath<float>;
using DF = hn::ScalableTag<float>;
using DU = hn::ScalableTag<std::uint32_t>;
using DI = hn::ScalableTag<std::int32_t>;
using VF = hn::Vec<DF>;
using VU = hn::Vec<DU>;
using VI = hn::Vec<DI>;

inline float power_of_two(int exponent) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(exponent + 127) << 23);
}

// numeric::narrow on a vector. In the normal range, half of the last kept bit (less one if that bit
// is even) is added before the shift. Below it, adding a power of two whose last bit is the
// format's smallest step makes the adder round.
template <class F>
HWY_INLINE VU Narrow(VF value) {
  const DU du;
  const DI di;
  const DF df;
  constexpr int kDown = 23 - F::fraction_bits;
  const VU bits = hn::BitCast(du, value);
  const VU magnitude = hn::And(bits, hn::Set(du, 0x7fffffffu));
  const VU sign = hn::And(hn::ShiftRight<31 - F::exponent_bits - F::fraction_bits>(bits),
                          hn::Set(du, F::sign_bit));
  const VU odd = hn::And(hn::ShiftRight<kDown>(magnitude), hn::Set(du, 1u));
  const VU rounded = hn::Add(hn::Add(magnitude, odd), hn::Set(du, (1u << (kDown - 1)) - 1));
  VI code = hn::BitCast(di, hn::ShiftRight<kDown>(rounded));
  if constexpr (F::exponent_bits != 8) {
    code = hn::Sub(code, hn::Set(di, (127 - F::bias) << F::fraction_bits));
    const float magic = power_of_two(F::min_exponent - F::fraction_bits + 23);
    const VF sum = hn::Add(hn::BitCast(df, magnitude), hn::Set(df, magic));
    const VI small = hn::Sub(hn::BitCast(di, sum), hn::Set(di, std::bit_cast<std::int32_t>(magic)));
    const VI smallest_normal = hn::Set(di, (F::min_exponent + 127) << 23);
    code = hn::IfThenElse(hn::Lt(hn::BitCast(di, magnitude), smallest_normal), small, code);
  }
  // Also what rounded up beyond the largest; NaNs land anywhere here and are replaced below.
  code = hn::IfThenElse(hn::Gt(code, hn::Set(di, static_cast<int>(F::largest))),
                        hn::Set(di, static_cast<int>(F::overflow)), code);
  const VU result = hn::Or(hn::BitCast(du, code), sign);
  return hn::IfThenElse(hn::RebindMask(du, hn::IsNaN(value)), hn::Set(du, F::nan), result);
}

// What the formats share that are narrowed by the above.
template <class F, typename Bits>
struct NarrowLanes : NarrowMath {
  using Stored = Bits;
  using DB = hn::Rebind<Bits, DF>;
  static HWY_INLINE void Store(VF v, std::uint8_t* p) {
    const VI code = hn::BitCast(DI(), Narrow<F>(v));
    hn::StoreU(hn::DemoteTo(DB(), code), DB(), reinterpret_cast<Bits*>(p));
  }
};

struct Bf16Lanes : NarrowLanes<numeric::Bf16, std::uint16_t> {
  static HWY_INLINE VF Load(const std::uint8_t* p) {
    const auto code = hn::LoadU(DB(), reinterpret_cast<const std::uint16_t*>(p));
    return hn::BitCast(DF(), hn::ShiftLeft<16>(hn::PromoteTo(DU(), code)));
  }
};

struct F16Lanes : NarrowMath {
  using Stored = std::uint16_t;
  using D16 = hn::Rebind<hwy::float16_t, DF>;
  using DB = hn::Rebind<std::uint16_t, DF>;
  static HWY_INLINE VF Load(const std::uint8_t* p) {
    const auto code = hn::LoadU(DB(), reinterpret_cast<const std::uint16_t*>(p));
    return hn::PromoteTo(DF(), hn::BitCast(D16(), code));
  }
  static HWY_INLINE void Store(VF v, std::uint8_t* p) {
    // F16C keeps the upper bits of a NaN's payload, so it has to be canonical before.
    const VF nan = hn::Set(DF(), std::bit_cast<float>(numeric::kNanF32));
    const VF clean = hn::IfThenElse(hn::IsNaN(v), nan, v);
    hn::StoreU(hn::BitCast(DB(), hn::DemoteTo(D16(), clean)), DB(),
               reinterpret_cast<std::uint16_t*>(p));
  }
};

// An f8e5m2 code is the upper byte of an f16 code.
struct F8e5m2Lanes : NarrowLanes<numeric::F8e5m2, std::uint8_t> {
  static HWY_INLINE VF Load(const std::uint8_t* p) {
    const F16Lanes::DB d16;
    const auto code = hn::PromoteTo(d16, hn::LoadU(DB(), p));
    return hn::PromoteTo(DF(), hn::BitCast(F16Lanes::D16(), hn::ShiftLeft<8>(code)));
  }
};
// The bits of f8e4m3 moved to f16's places are the value times 2^(7 - 15), subnormals included; the
// NaN becomes 480 and has to be found.
struct F8e4m3Lanes : NarrowLanes<numeric::F8e4m3, std::uint8_t> {
  static HWY_INLINE VF Load(const std::uint8_t* p) {
    const F16Lanes::DB d16;
    const auto code = hn::PromoteTo(d16, hn::LoadU(DB(), p));
    const auto sign = hn::ShiftLeft<8>(hn::And(code, hn::Set(d16, std::uint16_t{0x80})));
    const auto magnitude = hn::ShiftLeft<7>(hn::And(code, hn::Set(d16, std::uint16_t{0x7f})));
    const auto f16 = hn::BitCast(F16Lanes::D16(), hn::Or(sign, magnitude));
    const VF value = hn::Mul(hn::PromoteTo(DF(), f16), hn::Set(DF(), 256.0f));
    const VF nan = hn::Set(DF(), std::bit_cast<float>(numeric::kNanF32));
    return hn::IfThenElse(hn::Eq(hn::Abs(value), hn::Set(DF(), 480.0f)), nan, value);
  }
};

#endif

}  // namespace HWY_NAMESPACE
}  // namespace penstock
HWY_AFTER_NAMESPACE();
#endif
