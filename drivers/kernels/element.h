/* Elements and the steps of a fold, to the bit as the numeric contract has them (descriptor.h and
 * host/engine/numeric.h): narrow floats widen exactly and round once to nearest even, minimum and
 * maximum are IEEE 754-2019's, integers wrap, NaNs that are stored are canonical.
 *
 * Needs arithmetic that keeps subnormals and rounds to nearest even; div_f32 of OpenCL, whose
 * division may be off by some units in the last place, is done in integers. */
#ifndef PENSTOCK_DRIVERS_KERNELS_ELEMENT_H_
#define PENSTOCK_DRIVERS_KERNELS_ELEMENT_H_

#include "penstock/drivers/kernels/dialect.h"

PENSTOCK_KERNELS_BEGIN

#define NAN_F32 0x7fc00000u
#define INFINITY_F32 0x7f800000u

PENSTOCK_FUNCTION f32 canonical_f32(f32 value) {
  return value != value ? f32_of_bits(NAN_F32) : value;
}

/* ---- widening: exact. A NaN becomes some NaN ----------------------------------------------------
 */

PENSTOCK_FUNCTION f32 widen_bf16(u32 code) { return f32_of_bits(code << 16); }

/* Of a format with the exponent's bias and so many bits of fraction, whose exponent of all ones
 * holds infinity and NaNs. `unit` is its smallest subnormal number. */
PENSTOCK_FUNCTION f32 widen_ieee(u32 magnitude, u32 sign, u32 fraction_bits, u32 bias, f32 unit) {
  const u32 moved = magnitude << (23 - fraction_bits);
  u32 bits = moved + ((127 - bias) << 23);
  if (magnitude >> fraction_bits == 2 * bias + 1)
    bits = moved | INFINITY_F32;
  else if (magnitude >> fraction_bits == 0)
    bits = bits_of_f32(mul_f32((f32)magnitude, unit));
  return f32_of_bits(sign | bits);
}
PENSTOCK_FUNCTION f32 widen_f16(u32 code) {
  return widen_ieee(code & 0x7fff, (code & 0x8000) << 16, 10, 15, 0x1p-24f);
}
PENSTOCK_FUNCTION f32 widen_f8e5m2(u32 code) {
  return widen_ieee(code & 0x7f, (code & 0x80) << 24, 2, 15, 0x1p-16f);
}
PENSTOCK_FUNCTION f32 widen_f8e4m3(u32 code) {
  const u32 magnitude = code & 0x7f;
  u32 bits = (magnitude << 20) + (120u << 23);
  if (magnitude == 0x7f)
    bits = NAN_F32;
  else if (magnitude < 8)
    bits = bits_of_f32(mul_f32((f32)magnitude, 0x1p-9f));
  return f32_of_bits((code & 0x80) << 24 | bits);
}

/* ---- rounding to nearest, ties to even ----------------------------------------------------------
 */

PENSTOCK_FUNCTION u32 narrow_bf16(f32 value) {
  const u32 bits = bits_of_f32(value);
  if ((bits & 0x7fffffff) > INFINITY_F32) return 0x7fc0;
  return (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
}

/* The magnitude's code, not above `most`, of what is no NaN. Adding `unit_place`, whose last place
 * is worth the smallest subnormal number of the format, rounds what is subnormal there. */
PENSTOCK_FUNCTION u32 narrow_magnitude(u32 magnitude, u32 fraction_bits, u32 bias, f32 unit_place,
                                       u32 most) {
  const u32 drop = 23 - fraction_bits;
  u32 code;
  if (magnitude < (128 - bias) << 23) {
    code = bits_of_f32(add_f32(f32_of_bits(magnitude), unit_place)) - bits_of_f32(unit_place);
  } else {
    const u32 tie = (1u << (drop - 1)) - 1 + ((magnitude >> drop) & 1);
    code = (magnitude + tie - ((127 - bias) << 23)) >> drop;
  }
  return code < most ? code : most;
}
PENSTOCK_FUNCTION u32 narrow_f16(f32 value) {
  const u32 bits = bits_of_f32(value);
  const u32 magnitude = bits & 0x7fffffff;
  if (magnitude > INFINITY_F32) return 0x7e00;
  return (bits >> 16 & 0x8000) | narrow_magnitude(magnitude, 10, 15, 0.5f, 0x7c00);
}
PENSTOCK_FUNCTION u32 narrow_f8e4m3(f32 value) {
  const u32 bits = bits_of_f32(value);
  const u32 magnitude = bits & 0x7fffffff;
  if (magnitude > INFINITY_F32) return 0x7f;
  return (bits >> 24 & 0x80) | narrow_magnitude(magnitude, 3, 7, 16384.0f, 0x7e);
}
PENSTOCK_FUNCTION u32 narrow_f8e5m2(f32 value) {
  const u32 bits = bits_of_f32(value);
  const u32 magnitude = bits & 0x7fffffff;
  if (magnitude > INFINITY_F32) return 0x7e;
  return (bits >> 24 & 0x80) | narrow_magnitude(magnitude, 2, 15, 128.0f, 0x7b);
}

/* ---- steps of a fold ----------------------------------------------------------------------------
 */

PENSTOCK_FUNCTION f32 min_f32(f32 a, f32 b) {
  if (a != a) return a;
  if (b != b) return b;
  if (a == b) return bits_of_f32(a) >> 31 ? a : b;
  return a < b ? a : b;
}
PENSTOCK_FUNCTION f32 max_f32(f32 a, f32 b) {
  if (a != a) return a;
  if (b != b) return b;
  if (a == b) return bits_of_f32(a) >> 31 ? b : a;
  return a > b ? a : b;
}

#if PENSTOCK_HAS_F64
PENSTOCK_FUNCTION f64 canonical_f64(f64 value) {
  return value != value ? f64_of_bits((u64)0x7ff80000 << 32) : value;
}
PENSTOCK_FUNCTION f64 min_f64(f64 a, f64 b) {
  if (a != a) return a;
  if (b != b) return b;
  if (a == b) return bits_of_f64(a) >> 63 ? a : b;
  return a < b ? a : b;
}
PENSTOCK_FUNCTION f64 max_f64(f64 a, f64 b) {
  if (a != a) return a;
  if (b != b) return b;
  if (a == b) return bits_of_f64(a) >> 63 ? b : a;
  return a > b ? a : b;
}
#endif

/* Eight-bit integers fold in 32 bits, and the low bits of the result are right; their average
 * divides what the eight bits hold. */
PENSTOCK_FUNCTION i32 add_i32(i32 a, i32 b) { return (i32)((u32)a + (u32)b); }
PENSTOCK_FUNCTION i32 mul_i32(i32 a, i32 b) { return (i32)((u32)a * (u32)b); }
PENSTOCK_FUNCTION i32 min_i32(i32 a, i32 b) { return b < a ? b : a; }
PENSTOCK_FUNCTION i32 max_i32(i32 a, i32 b) { return a < b ? b : a; }
PENSTOCK_FUNCTION u32 add_u32(u32 a, u32 b) { return a + b; }
PENSTOCK_FUNCTION u32 mul_u32(u32 a, u32 b) { return a * b; }
PENSTOCK_FUNCTION u32 min_u32(u32 a, u32 b) { return b < a ? b : a; }
PENSTOCK_FUNCTION u32 max_u32(u32 a, u32 b) { return a < b ? b : a; }
PENSTOCK_FUNCTION i64 add_i64(i64 a, i64 b) { return (i64)((u64)a + (u64)b); }
PENSTOCK_FUNCTION i64 mul_i64(i64 a, i64 b) { return (i64)((u64)a * (u64)b); }
PENSTOCK_FUNCTION i64 min_i64(i64 a, i64 b) { return b < a ? b : a; }
PENSTOCK_FUNCTION i64 max_i64(i64 a, i64 b) { return a < b ? b : a; }
PENSTOCK_FUNCTION u64 add_u64(u64 a, u64 b) { return a + b; }
PENSTOCK_FUNCTION u64 mul_u64(u64 a, u64 b) { return a * b; }
PENSTOCK_FUNCTION u64 min_u64(u64 a, u64 b) { return b < a ? b : a; }
PENSTOCK_FUNCTION u64 max_u64(u64 a, u64 b) { return a < b ? b : a; }

/* ---- block-scaled int8 (descriptor.h) -----------------------------------------------------------
 */

/* a / b to nearest even, of positive finite numbers with b normal. A quotient below 2^-126 may come
 * as any number below 2^-126, and one that overflows is infinite. */
PENSTOCK_FUNCTION f32 div_f32_in_integers(f32 a, f32 b) {
  const u32 a_bits = bits_of_f32(a);
  const u32 b_bits = bits_of_f32(b);
  if (a_bits == 0) return 0.0f;
  i32 exponent = (i32)(a_bits >> 23);
  u32 significand = a_bits & 0x7fffff;
  if (exponent == 0) {
    const u32 shift = leading_zeros_u32(significand) - 8;
    significand <<= shift;
    exponent = 1 - (i32)shift;
  } else {
    significand |= 0x800000;
  }
  const u32 divisor = (b_bits & 0x7fffff) | 0x800000;
  exponent -= (i32)(b_bits >> 23) - 127;
  /* A quotient in [1, 2) * 2^25: 24 bits of it count, two say how to round. */
  u64 dividend = (u64)significand << 25;
  if (significand < divisor) {
    dividend <<= 1;
    --exponent;
  }
  u32 quotient = (u32)(dividend / divisor);
  if ((u64)quotient * divisor != dividend) quotient |= 1;
  u32 kept = quotient >> 2;
  const u32 rest = quotient & 3;
  if (rest > 2 || (rest == 2 && (kept & 1) != 0)) ++kept;
  if (exponent <= 0) return 0.0f;
  const u32 bits = ((u32)(exponent - 1) << 23) + kept;
  return f32_of_bits(exponent >= 255 || bits > INFINITY_F32 ? INFINITY_F32 : bits);
}
#ifdef PENSTOCK_DIALECT_OPENCL
PENSTOCK_FUNCTION f32 div_f32(f32 a, f32 b) { return div_f32_in_integers(a, b); }
#endif

PENSTOCK_FUNCTION f32 block_magnitude(f32 value) {
  const u32 magnitude = bits_of_f32(value) & 0x7fffffff;
  if (magnitude > INFINITY_F32) return 0.0f;
  return f32_of_bits(magnitude < INFINITY_F32 ? magnitude : INFINITY_F32 - 1);
}
PENSTOCK_FUNCTION f32 block_scale(f32 largest) {
  const f32 scale = div_f32(largest, 127.0f);
  return scale < 0x1p-126f ? 0x1p-126f : scale > 0x1.020406p+121f ? 0x1.020406p+121f : scale;
}
/* In the low eight bits. */
PENSTOCK_FUNCTION u32 block_code(f32 value, f32 reciprocal) {
  if (value != value) return 0x80;
  const u32 sign = bits_of_f32(value) & 0x80000000u;
  const f32 limited = f32_of_bits(sign | bits_of_f32(block_magnitude(value)));
  return (u32)round_f32(mul_f32(limited, reciprocal)) & 0xff;
}
PENSTOCK_FUNCTION f32 block_value(u32 code, f32 scale) {
  if (code == 0x80) return f32_of_bits(NAN_F32);
  return mul_f32((f32)(i32)(i8)code, scale);
}

PENSTOCK_KERNELS_END
#endif
