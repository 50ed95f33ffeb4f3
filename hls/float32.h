// f32 arithmetic on bit patterns, in integers: the vendor's floating-point cores flush subnormals,
// and the numeric contract keeps them. Every result is rounded to nearest even, and every NaN that
// comes out is the canonical one (descriptor/types.h). The structure is that of the units of
// rtl/fold: order, integers, normalise, round.
#ifndef PENSTOCK_HLS_FLOAT32_H_
#define PENSTOCK_HLS_FLOAT32_H_

#include "platform.h"

namespace penstock_hls {

constexpr u32 kNan = 0x7fc00000;
constexpr u32 kInfinity = 0x7f800000;
constexpr u32 kMagnitude = 0x7fffffff;
constexpr u32 kSign = 0x80000000;
constexpr u32 kImplicit = 0x00800000;
constexpr u32 kFraction = 0x007fffff;

// The exponent's field, that of the smallest normal number for a subnormal one; and the
// significand with its implicit bit.
inline u32 exponent_of(u32 bits) {
#pragma HLS INLINE
  const u32 field = bits >> 23 & 0xff;
  return field == 0 ? 1 : field;
}
inline u32 significand_of(u32 bits) {
#pragma HLS INLINE
  return (bits & kFraction) | ((bits >> 23 & 0xff) != 0 ? kImplicit : 0);
}
inline bool is_nan(u32 bits) {
#pragma HLS INLINE
  return (bits & kMagnitude) > kInfinity;
}

// Zeros before the leading one of `width` bits, of which at least one is set; width up to 32.
inline u32 leading_zeros(u32 value, u32 width) {
#pragma HLS INLINE
  u32 rest = value << (32 - width);
  u32 zeros = 0;
  for (u32 step = 16; step > 0; step >>= 1) {
#pragma HLS UNROLL
#pragma HLS LOOP_TRIPCOUNT min = 5 max = 5
    if (rest >> (32 - step) == 0) {
      rest <<= step;
      zeros += step;
    }
  }
  return zeros;
}

// (significand + half / 2 + rest / 4) * 2^(base - 149), rounded. A significand of 24 bits counts as
// one in the exponent's field, which is why `base` is that field less one; one below is subnormal
// and has base 0.
inline u32 round_f32(u32 sign, u32 base, u32 significand, u32 half, u32 rest) {
#pragma HLS INLINE
  const u64 code = (u64{base} << 23) + significand + (half & (rest | (significand & 1)));
  return sign | (code >= kInfinity ? kInfinity : static_cast<u32>(code));
}

inline u32 f32_add(u32 a, u32 b) {
#pragma HLS INLINE off
#pragma HLS PIPELINE II = 1
  // The operand of greater magnitude, and how far the other one lies to its right.
  const bool a_first = (a & kMagnitude) >= (b & kMagnitude);
  const u32 high = a_first ? a : b;
  const u32 low = a_first ? b : a;
  const bool differ = ((a ^ b) & kSign) != 0;
  const bool infinite = (high & kMagnitude) >= kInfinity;
  const bool nan = is_nan(a) || is_nan(b) ||
                   (differ && (a & kMagnitude) == kInfinity && (b & kMagnitude) == kInfinity);
  const bool subtract = differ && !infinite;
  const u32 exponent = exponent_of(high);
  u32 distance = exponent - exponent_of(low);
  if (distance > 31) distance = 31;

  // Three bits below the significand; the lowest stands for all that was shifted out, too.
  const u32 extended = infinite ? 0 : significand_of(low) << 3;
  const u32 kept = extended >> distance;
  const u32 lesser = kept | ((kept << distance) != extended ? 1 : 0);
  const u32 greater = significand_of(high) << 3;
  u32 sum = subtract ? greater - lesser : greater + lesser;
  // What cancels out is a positive zero.
  const u32 sign = subtract && sum == 0 ? 0 : high & kSign;

  u32 base = exponent - 1;
  if ((sum >> 27) != 0) {
    sum = sum >> 1 | (sum & 1);
    base += 1;
  } else if (sum != 0) {
    u32 left = leading_zeros(sum, 27);
    if (left > base) left = base;
    sum <<= left;
    base = (sum >> 26) != 0 ? base - left : 0;
  }
  if ((sum >> 26) == 0) base = 0;
  const u32 result = round_f32(sign, base, sum >> 3, sum >> 2 & 1, (sum & 3) != 0 ? 1 : 0);
  return nan ? kNan : result;
}

inline u32 f32_multiply(u32 a, u32 b) {
#pragma HLS INLINE off
#pragma HLS PIPELINE II = 1
  const u32 sign = (a ^ b) & kSign;
  const bool infinite = (a & kMagnitude) >= kInfinity || (b & kMagnitude) >= kInfinity;
  const bool zero = (a & kMagnitude) == 0 || (b & kMagnitude) == 0;
  const bool nan = is_nan(a) || is_nan(b) || (infinite && zero);
  const u64 whole = u64{significand_of(a)} * significand_of(b);
#pragma HLS BIND_OP variable = whole op = mul impl = dsp
  u64 product = whole;
  // product * 2^(exponent - 127 - 46), with a bias of 256 so that it stays above 0.
  const u32 biased = exponent_of(a) + exponent_of(b) + 256 - 127;

  // The significand of 24 bits, and one bit to round by, from the product's upper 25 of 48. One of
  // two factors whose product is not below the smallest subnormal by far is normal, so that the
  // leading one is among them wherever the exponent lets it matter.
  u32 base = 0;
  u32 kept = 0;
  u32 rest = 0;
  if (biased >= 256) {
    const u32 exponent = biased - 256;
    const u32 upper = static_cast<u32>(product >> 21);
    u32 left = upper == 0 ? 27 : leading_zeros(upper, 27);
    if (left > exponent) left = exponent;
    product <<= left;
    kept = static_cast<u32>(product >> 23) & 0x1ffffff;
    rest = (product & kFraction) != 0 ? 1 : 0;
    base = (product >> 47 & 1) != 0 ? exponent - left : 0;
  } else {
    const u32 far = 256 - biased;
    const u32 right = far > 25 ? 25 : far;
    const u32 upper = static_cast<u32>(product >> 23);
    kept = upper >> right;
    rest = (kept << right) != upper || (product & kFraction) != 0 ? 1 : 0;
  }
  const u32 result = round_f32(sign, base, kept >> 1, kept & 1, rest);
  if (nan) return kNan;
  if (infinite) return sign | kInfinity;
  return zero ? sign : result;
}

// IEEE 754-2019 minimum and maximum: a NaN wins, and -0 is less than +0.
inline u32 f32_pick(u32 a, u32 b, bool greatest) {
#pragma HLS INLINE
  const bool a_first = (a & kMagnitude) >= (b & kMagnitude);
  const bool differ = ((a ^ b) & kSign) != 0;
  const bool a_negative = (a & kSign) != 0;
  const bool a_least = differ ? a_negative : a_negative == a_first;
  if (is_nan(a) || is_nan(b)) return kNan;
  return a_least != greatest ? a : b;
}

// f32(1/n) for n from 1 to 64.
inline u32 f32_reciprocal(u32 n) {
#pragma HLS INLINE off
  u32 log2 = 0;
  for (u32 i = 1; i <= 6; ++i) {
#pragma HLS UNROLL
#pragma HLS LOOP_TRIPCOUNT min = 6 max = 6
    if ((n >> i) != 0) log2 = i;
  }
  if ((n & (n - 1)) == 0) return (127 - log2) << 23;
  // 2^(log2 + 1) / n lies between 1 and 2.
  const u32 dividend = u32{1} << (24 + log2);
  const u32 quotient = dividend / n;
  const u32 rest = dividend - quotient * n;
  const u32 up = 2 * rest > n || (2 * rest == n && (quotient & 1) != 0) ? 1 : 0;
  return ((126 - log2) << 23) + ((quotient + up) & kFraction);
}

}  // namespace penstock_hls
#endif
