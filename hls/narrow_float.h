// The narrow floating-point formats: exact widening to f32, and rounding from f32 to nearest even.
// Formats and rules are those of the numeric contract (descriptor/types.h): f16 and bf16 overflow
// to infinity, the eight-bit ones saturate to the largest finite value; a NaN becomes canonical.
#ifndef PENSTOCK_HLS_NARROW_FLOAT_H_
#define PENSTOCK_HLS_NARROW_FLOAT_H_

#include "float32.h"
#include "penstock/descriptor/types.h"

namespace penstock_hls {

// Codes are without the sign.
struct Format {
  u32 exponent_bits;
  u32 fraction_bits;
  u32 least;     // the exponent's field, in f32, of the smallest normal number
  u32 infinity;  // its code, 0 where there is none
  u32 largest;   // finite
  u32 overflow;  // what lies beyond becomes
  u32 nan;       // the canonical one
};
inline Format format_of(u32 type) {
#pragma HLS INLINE
  switch (type) {
    case PENSTOCK_F16:
      return {5, 10, 113, 0x7c00, 0x7bff, 0x7c00, 0x7e00};
    case PENSTOCK_BF16:
      return {8, 7, 1, 0x7f80, 0x7f7f, 0x7f80, 0x7fc0};
    case PENSTOCK_F8E4M3:
      return {4, 3, 121, 0, 0x7e, 0x7e, 0x7f};
    default:
      return {5, 2, 113, 0x7c, 0x7b, 0x7b, 0x7e};
  }
}

inline u32 widen(u32 type, u32 code) {
#pragma HLS INLINE off
#pragma HLS PIPELINE II = 1
  const Format format = format_of(type);
  const u32 magnitude_bits = format.exponent_bits + format.fraction_bits;
  const u32 sign = (code >> magnitude_bits & 1) << 31;
  const u32 magnitude = code & ((u32{1} << magnitude_bits) - 1);
  if (magnitude > format.largest)
    return format.infinity != 0 && magnitude == format.infinity ? sign | kInfinity : kNan;
  u32 field = magnitude >> format.fraction_bits;
  u32 fraction = magnitude & ((u32{1} << format.fraction_bits) - 1);
  // bf16 is the upper half of f32, subnormals included.
  if (format.exponent_bits == 8) return sign | magnitude << 16;
  if (magnitude == 0) return sign;
  u32 exponent = field + format.least - 1;
  if (field == 0) {
    // A subnormal is a normal number in f32: its leading one moves to the implicit place.
    const u32 zeros = leading_zeros(fraction, format.fraction_bits);
    exponent = format.least - zeros - 1;
    fraction = fraction << (zeros + 1) & ((u32{1} << format.fraction_bits) - 1);
  }
  return sign | exponent << 23 | fraction << (23 - format.fraction_bits);
}

inline u32 narrow(u32 type, u32 bits) {
#pragma HLS INLINE off
#pragma HLS PIPELINE II = 1
  const Format format = format_of(type);
  const u32 sign = (bits >> 31) << (format.exponent_bits + format.fraction_bits);
  const u32 magnitude = bits & kMagnitude;
  const u32 exponent = exponent_of(bits);
  // How many low bits of the significand the format has no room for: below its smallest normal
  // number one more per power of two. Past 25 nothing is left to round up.
  const u32 below = exponent < format.least ? format.least - exponent : 0;
  u32 drop = 23 - format.fraction_bits + below;
  if (drop > 25) drop = 25;
  const u32 extended = significand_of(bits) << 1;  // with a bit to round by
  const u32 kept = extended >> drop;
  const u32 rest = (kept << drop) != extended ? 1 : 0;
  const u32 up = kept & 1 & (rest | (kept >> 1));
  const u32 steps = below == 0 ? exponent - format.least : 0;
  const u32 code = (steps << format.fraction_bits) + (kept >> 1) + up;
  if (magnitude > kInfinity) return format.nan;
  if (magnitude == kInfinity || code > format.largest) return sign | format.overflow;
  return sign | code;
}

}  // namespace penstock_hls
#endif
