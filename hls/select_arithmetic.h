// The arithmetic of SELECT: divisions whose quotients are short, and float64 where the definition
// names it, in integers and bit for bit.
#ifndef PENSTOCK_HLS_SELECT_ARITHMETIC_H_
#define PENSTOCK_HLS_SELECT_ARITHMETIC_H_

#include "penstock/descriptor/node_table.h"
#include "platform.h"

namespace penstock_hls {

// dividend / divisor toward zero, where the quotient has no more than 7 bits and the dividend no
// more than 60; divisor up to 2^53 and not 0.
inline u32 divide_7(u64 dividend, u64 divisor) {
#pragma HLS INLINE
  u32 quotient = 0;
  for (u32 i = 0; i < 7; ++i) {
#pragma HLS UNROLL
#pragma HLS LOOP_TRIPCOUNT min = 7 max = 7
    const u64 part = divisor << (6 - i);
    quotient <<= 1;
    if (dividend >= part) {
      dividend -= part;
      quotient |= 1;
    }
  }
  return quotient;
}

// The same with a quotient of up to 21 bits; 2^21 stands for all that is larger. The divisor may
// have 53 bits, the dividend 60.
inline u32 divide_21(u64 dividend, u64 divisor) {
#pragma HLS INLINE
  u64 rest = dividend >> 21;
  if (rest >= divisor) return u32{1} << 21;
  u32 quotient = 0;
  for (u32 i = 0; i < 21; ++i) {
#pragma HLS UNROLL
#pragma HLS LOOP_TRIPCOUNT min = 21 max = 21
    rest = rest << 1 | (dividend >> (20 - i) & 1);
    quotient <<= 1;
    if (rest >= divisor) {
      rest -= divisor;
      quotient |= 1;
    }
  }
  return quotient;
}

// Zeros before the leading one of 64 bits; 63 for 0.
inline u32 leading_zeros_64(u64 value) {
#pragma HLS INLINE
  u32 zeros = 0;
  for (u32 step = 32; step > 0; step >>= 1) {
#pragma HLS UNROLL
#pragma HLS LOOP_TRIPCOUNT min = 6 max = 6
    if (value >> (64 - step) == 0) {
      value <<= step;
      zeros += step;
    }
  }
  return zeros;
}

// What a shift to the right leaves, its lowest bit 1 if anything was lost.
inline u64 shift_right_sticky(u64 value, u32 by) {
#pragma HLS INLINE
  if (by > 63) return value != 0 ? 1 : 0;
  const u64 kept = value >> by;
  return kept | ((kept << by) != value ? 1 : 0);
}

// A float64 from 0 to 1: mantissa * 2^-(52 + exponent), mantissa 0 or of 53 bits.
struct Fraction {
  u64 mantissa;
  u32 exponent;
};

// min(1, part / whole) rounded to nearest even; whole from 1 to 2^53, part up to 2^54, which are
// exact in float64 where the quotient is below 1. A tie is impossible: a quotient of 54 significant
// bits times `whole` is no integer below 2^53.
inline Fraction fraction_of(u64 part, u64 whole) {
#pragma HLS INLINE off
#pragma HLS PIPELINE II = 1
  if (part >= whole) return {u64{1} << 52, 0};
  if (part == 0) return {0, 0};
  // Both with their leading one at bit 53.
  const u32 part_zeros = leading_zeros_64(part) - 10;
  const u32 whole_zeros = leading_zeros_64(whole) - 10;
  const u64 divisor = whole << whole_zeros;
  u64 rest = part << part_zeros;
  u32 exponent = part_zeros - whole_zeros;
  if (rest < divisor) {
    rest <<= 1;
    ++exponent;
  }
  rest -= divisor;
  // 52 bits behind the leading one, and one to round by.
  u64 quotient = 1;
  for (u32 i = 0; i < 53; ++i) {
#pragma HLS UNROLL
#pragma HLS LOOP_TRIPCOUNT min = 53 max = 53
    rest <<= 1;
    quotient <<= 1;
    if (rest >= divisor) {
      rest -= divisor;
      quotient |= 1;
    }
  }
  const u64 rounded = (quotient >> 1) + (quotient & 1);
  if ((rounded >> 53) != 0) return {rounded >> 1, exponent - 1};
  return {rounded, exponent};
}

// trunc((1 - |a - b| / 2) * 100), each operation rounded to nearest even.
inline u32 balanced_of(const Fraction& a, const Fraction& b) {
#pragma HLS INLINE off
#pragma HLS PIPELINE II = 1
  const bool b_larger =
      a.mantissa == 0 ||
      (b.mantissa != 0 &&
       (b.exponent < a.exponent || (b.exponent == a.exponent && b.mantissa > a.mantissa)));
  const Fraction large = b_larger ? b : a;
  const Fraction small = b_larger ? a : b;
  // Two bits to round by below the mantissa, and one that is 1 where anything lay below them. A
  // fraction of 0 has no exponent to speak of.
  const u32 distance = small.mantissa == 0 ? 0 : small.exponent - large.exponent;
  u64 difference = (large.mantissa << 3) - shift_right_sticky(small.mantissa << 3, distance);
  u32 exponent = large.exponent;
  if (difference != 0) {
    const u32 zeros = leading_zeros_64(difference) - 8;
    difference <<= zeros;
    exponent += zeros;
  }
  u64 rounded = (difference >> 3) +
                ((difference >> 2 & 1) & ((difference >> 3 & 1) | ((difference & 3) != 0 ? 1 : 0)));
  if ((rounded >> 53) != 0) {
    rounded >>= 1;
    --exponent;
  }
  // Half of it in units of 2^-53, with three bits more, from 1.
  const u64 rest = (u64{1} << 56) - shift_right_sticky(rounded << 3, exponent);
  const u64 left = (rest >> 3) + ((rest >> 2 & 1) & ((rest >> 3 & 1) | ((rest & 3) != 0 ? 1 : 0)));
  // Half a unit in the last place of the product is 2^6 from 64 on, and 2^5 below. Rounding can
  // only matter where it reaches a whole number, whose mantissa is even.
  const u64 hundredfold = left * 100;
  const u32 upper = static_cast<u32>((hundredfold + 64) >> 53);
  return upper > 64 ? upper : static_cast<u32>((hundredfold + 32) >> 53);
}

// trunc(100 * f), the product rounded to nearest even.
inline u32 percent_of(const Fraction& f) {
#pragma HLS INLINE off
#pragma HLS PIPELINE II = 1
  const u64 product = f.mantissa * 100;  // of 59 or 60 bits, or 0
  const u32 drop = (product >> 59) != 0 ? 7 : 6;
  const u64 kept = product >> drop;
  const u64 half = u64{1} << (drop - 1);
  const u64 rest = product & ((u64{1} << drop) - 1);
  const u64 rounded = kept + (rest > half || (rest == half && (kept & 1) != 0) ? 1 : 0);
  const u32 down = 52 + f.exponent;
  return down > 60 ? 0 : static_cast<u32>((rounded << drop) >> down);
}

// The range of an operation's scores over the feasible rows.
struct Range {
  i64 least, most;
  bool any;
};
inline void widen_range(Range& range, u32 normalise, i64 score) {
#pragma HLS INLINE
  // What PodTopologySpread ignores stays out.
  if (normalise == PENSTOCK_NORMALISE_SPREAD && score < 0) return;
  if (!range.any || score < range.least) range.least = score;
  if (!range.any || score > range.most) range.most = score;
  range.any = true;
}

// enum penstock_normalise of node_table.h, exact. A score's magnitude is at most 2^51.
inline i64 normalised(u32 normalise, const Range& range, i64 score) {
#pragma HLS INLINE off
#pragma HLS PIPELINE II = 1
  const i64 top = range.any && range.most > 0 ? range.most : 0;
  const i64 least = range.any ? range.least : 0;
  const i64 span = range.any ? range.most - range.least : 0;
  i64 distance = score;
  i64 divisor = top;
  if (normalise == PENSTOCK_NORMALISE_MIN_MAX || normalise == PENSTOCK_NORMALISE_MIN_MAX_F64) {
    distance = score - least;
    divisor = span;
  }
  if (normalise == PENSTOCK_NORMALISE_SPREAD) distance = top + least - score;

  const bool negative = distance < 0;
  const u64 magnitude = static_cast<u64>(negative ? -distance : distance);
  const u64 safe = divisor > 0 ? static_cast<u64>(divisor) : 1;
  const i64 quotient = divide_21(magnitude * 100, safe);
  const i64 share = negative ? -quotient : quotient;
  i64 value = score;
  switch (normalise) {
    case PENSTOCK_NORMALISE_DEFAULT:
      value = divisor == 0 ? score : share;
      break;
    case PENSTOCK_NORMALISE_REVERSED:
      value = divisor == 0 ? 100 : 100 - share;
      break;
    case PENSTOCK_NORMALISE_MIN_MAX:
      return divisor == 0 ? 0 : share;
    case PENSTOCK_NORMALISE_MIN_MAX_F64:
      return divisor == 0 ? 0 : percent_of(fraction_of(magnitude, safe));
    case PENSTOCK_NORMALISE_SPREAD:
      return score < 0 ? 0 : divisor == 0 ? 100 : share;
    default:
      return score;
  }
  const i64 most = PENSTOCK_MAX_NORMALISED;
  return value > most ? most : value < -most ? -most : value;
}

}  // namespace penstock_hls
#endif
