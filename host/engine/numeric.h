// Narrow floating-point formats: exact widening to f32, and rounding from f32 to nearest even.
//
//   format   bits (sign, exponent, fraction)  largest finite  source
//   f16      1, 5, 10                         65504           IEEE 754-2019 binary16
//   bf16     1, 8, 7                          3.39e38         the upper half of binary32
//   f8e4m3   1, 4, 3   no infinities          448             OCP 8-bit Floating Point 1.0, E4M3
//   f8e5m2   1, 5, 2                          57344           OCP 8-bit Floating Point 1.0, E5M2
//
// Overflow: f16 and bf16 round to infinity (IEEE 754-2019, 7.4); the eight-bit formats saturate to
// the largest finite value, infinities included (the OCP document's saturation mode). Subnormals
// are kept. Every NaN becomes the format's canonical one, which is positive and quiet.
#ifndef PENSTOCK_ENGINE_NUMERIC_H_
#define PENSTOCK_ENGINE_NUMERIC_H_

#include <bit>
#include <cmath>
#include <cstdint>

namespace penstock::numeric {

inline constexpr std::uint32_t kNanF32 = 0x7fc00000;
inline constexpr std::uint64_t kNanF64 = 0x7ff8000000000000;

// A format narrower than f32. Codes are without the sign.
template <int kExponentBits, int kFractionBits, std::uint32_t kLargest, std::uint32_t kOverflow,
          std::uint32_t kNan>
struct Format {
  static constexpr int exponent_bits = kExponentBits;
  static constexpr int fraction_bits = kFractionBits;
  static constexpr int bias = (1 << (kExponentBits - 1)) - 1;
  static constexpr int min_exponent = 1 - bias;  // of normal numbers
  static constexpr std::uint32_t sign_bit = 1u << (kExponentBits + kFractionBits);
  static constexpr std::uint32_t largest = kLargest;    // finite
  static constexpr std::uint32_t overflow = kOverflow;  // what lies beyond becomes
  static constexpr std::uint32_t nan = kNan;            // the canonical one
  // f8e4m3 has one NaN and no infinity; elsewhere an exponent of all ones holds both.
  static constexpr bool has_infinity = kLargest + 1 != kNan || kNan + 1 != sign_bit;
};
using F16 = Format<5, 10, 0x7bff, 0x7c00, 0x7e00>;
using Bf16 = Format<8, 7, 0x7f7f, 0x7f80, 0x7fc0>;
using F8e4m3 = Format<4, 3, 0x7e, 0x7e, 0x7f>;
using F8e5m2 = Format<5, 2, 0x7b, 0x7b, 0x7e>;
static_assert(F16::has_infinity && Bf16::has_infinity && F8e5m2::has_infinity);
static_assert(!F8e4m3::has_infinity);

// Exact: every value of these formats is an f32.
template <typename F>
float widen(std::uint32_t code) {
  const std::uint32_t sign = (code & F::sign_bit) << (31 - F::exponent_bits - F::fraction_bits);
  const std::uint32_t magnitude = code & (F::sign_bit - 1);
  std::uint32_t field = magnitude >> F::fraction_bits;
  std::uint32_t fraction = magnitude & ((1u << F::fraction_bits) - 1);
  if (magnitude > F::largest) {
    const bool infinite = F::has_infinity && fraction == 0;
    return std::bit_cast<float>(infinite ? sign | 0x7f800000 : kNanF32);
  }
  if constexpr (F::exponent_bits == 8) return std::bit_cast<float>(code << 16);
  int exponent = static_cast<int>(field) - F::bias;
  if (field == 0) {
    if (fraction == 0) return std::bit_cast<float>(sign);
    // A subnormal is a normal number in f32: move its leading one to the implicit place.
    const int shift = std::countl_zero(fraction) - (31 - F::fraction_bits);
    exponent = F::min_exponent - shift;
    fraction = (fraction << shift) & ((1u << F::fraction_bits) - 1);
  }
  return std::bit_cast<float>(sign | static_cast<std::uint32_t>(exponent + 127) << 23 |
                              fraction << (23 - F::fraction_bits));
}

// Rounds to nearest, ties to even.
template <typename F>
std::uint32_t narrow(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = bits >> 31 ? F::sign_bit : 0;
  const std::uint32_t magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000) return F::nan;
  if (magnitude == 0x7f800000) return sign | F::overflow;
  // value = significand * 2^(exponent - 23)
  const std::uint32_t field = magnitude >> 23;
  const std::uint32_t significand = (magnitude & 0x7fffff) | (field != 0 ? 0x800000u : 0);
  const int exponent = (field != 0 ? static_cast<int>(field) : 1) - 127;
  // How many low bits of the significand the format has no room for. Below its smallest normal
  // number it loses one more per power of two; past 25 nothing is left to round up.
  const int below = exponent < F::min_exponent ? F::min_exponent - exponent : 0;
  const int drop = 23 - F::fraction_bits + below;
  if (drop > 25) return sign;
  std::uint32_t kept = significand >> drop;
  const std::uint32_t rest = significand & ((1u << drop) - 1);
  const std::uint32_t half = 1u << (drop - 1);
  if (rest > half || (rest == half && (kept & 1) != 0)) ++kept;
  // `kept` holds the implicit bit of a normal number, which counts as one in the exponent field; a
  // carry out of the fraction raises the field likewise.
  const std::uint32_t steps =
      below == 0 ? static_cast<std::uint32_t>(exponent - F::min_exponent) : 0;
  const std::uint32_t code = (steps << F::fraction_bits) + kept;
  return sign | (code > F::largest ? F::overflow : code);
}

// IEEE 754-2019 minimum and maximum: a NaN wins, and -0 is less than +0. A NaN keeps its bits here;
// whoever stores the result makes it canonical.
template <typename T>
T minimum(T a, T b) {
  if (a != a) return a;
  if (b != b) return b;
  if (a == b) return std::signbit(a) ? a : b;
  return a < b ? a : b;
}
template <typename T>
T maximum(T a, T b) {
  if (a != a) return a;
  if (b != b) return b;
  if (a == b) return std::signbit(a) ? b : a;
  return a > b ? a : b;
}

inline float canonical(float value) {
  return value != value ? std::bit_cast<float>(kNanF32) : value;
}
inline double canonical(double value) {
  return value != value ? std::bit_cast<double>(kNanF64) : value;
}

// Block-scaled int8, as descriptor.h defines it.
inline constexpr float kLargestF32 = 0x1.fffffep+127f;
inline constexpr float kSmallestScale = 0x1p-126f;
inline constexpr float kLargestScale = 0x1.020406p+121f;  // 127 times it is the last that is finite
inline constexpr std::int8_t kNanCode = -128;

// Of a record whose largest magnitude is `largest`, finite.
inline float block_scale(float largest) {
  const float scale = largest / 127.0f;
  return scale < kSmallestScale ? kSmallestScale : scale > kLargestScale ? kLargestScale : scale;
}
// What `value` counts for in the search for the largest.
inline float block_magnitude(float value) {
  if (value != value) return 0;
  const float magnitude = std::fabs(value);
  return magnitude > kLargestF32 ? kLargestF32 : magnitude;
}
inline std::int8_t block_code(float value, float reciprocal) {
  if (value != value) return kNanCode;
  const float magnitude = block_magnitude(value);
  return static_cast<std::int8_t>(
      std::nearbyint((std::signbit(value) ? -magnitude : magnitude) * reciprocal));
}
inline float block_value(std::int8_t code, float scale) {
  return code == kNanCode ? std::bit_cast<float>(kNanF32) : static_cast<float>(code) * scale;
}

}  // namespace penstock::numeric
#endif
