// Integers of 8, 32 and 64 bits as they stand in 64-bit pieces of a word. One piece's logic serves
// all sizes: carries, products and remainders stop where an element ends.
#ifndef PENSTOCK_HLS_INTEGERS_H_
#define PENSTOCK_HLS_INTEGERS_H_

#include "platform.h"

namespace penstock_hls {

enum IntegerSize { kBits8 = 0, kBits32 = 1, kBits64 = 2 };

// The top bit of each element.
inline u64 tops_of(u32 size) {
#pragma HLS INLINE
  return size == kBits8    ? 0x8080808080808080u
         : size == kBits32 ? 0x8000000080000000u
                           : 0x8000000000000000u;
}
// All bits of the elements whose top bit is set in `tops`.
inline u64 spread(u64 tops, u32 size) {
#pragma HLS INLINE
  const u32 bits = size == kBits8 ? 7 : size == kBits32 ? 31 : 63;
  return (tops - (tops >> bits)) | tops;
}

inline u64 integers_add(u64 a, u64 b, u32 size) {
#pragma HLS INLINE
  // Without the top bits no carry leaves an element; they are added last, without one.
  const u64 tops = tops_of(size);
  return ((a & ~tops) + (b & ~tops)) ^ ((a ^ b) & tops);
}

inline u64 integers_multiply(u64 a, u64 b, u32 size) {
#pragma HLS INLINE
  if (size == kBits8) {
    u64 result = 0;
    for (u32 i = 0; i < 8; ++i) {
#pragma HLS UNROLL
#pragma HLS LOOP_TRIPCOUNT min = 8 max = 8
      result |= ((a >> (8 * i) & 0xff) * (b >> (8 * i) & 0xff) & 0xff) << (8 * i);
    }
    return result;
  }
  // Three products of 32 bits; two numbers of 32 bits need two of them.
  const u64 a_low = a & 0xffffffff;
  const u64 b_low = b & 0xffffffff;
  const u64 low = a_low * b_low;
  const u64 second = (a >> 32) * (size == kBits32 ? b >> 32 : b_low);
  const u64 third = size == kBits32 ? 0 : a_low * (b >> 32);
  const u64 high = size == kBits32 ? second & 0xffffffff : (low >> 32) + second + third;
  return high << 32 | (low & 0xffffffff);
}

// Of each pair the least, or the greatest.
inline u64 integers_pick(u64 a, u64 b, u32 size, bool is_signed, bool greatest) {
#pragma HLS INLINE
  // Signed numbers are in the order of unsigned ones once their top bits are inverted.
  const u64 tops = tops_of(size);
  const u64 flip = is_signed ? tops : 0;
  const u64 x = a ^ flip;
  const u64 y = b ^ flip;
  // x >= y in the bits below the top ones: the difference with a borrowed top bit keeps it.
  const u64 low = ((x & ~tops) | tops) - (y & ~tops);
  const u64 at_least = ((x & ~y) | (~(x ^ y) & low)) & tops;
  const u64 take_a = spread(greatest ? at_least : ~at_least & tops, size);
  return (a & take_a) | (b & ~take_a);
}

// Negates the elements whose top bit is set in `tops`.
inline u64 integers_negate(u64 value, u64 tops, u32 size) {
#pragma HLS INLINE
  const u32 bits = size == kBits8 ? 7 : size == kBits32 ? 31 : 63;
  const u64 mask = spread(tops, size);
  return integers_add(value ^ mask, tops >> bits, size);
}

// Each divided by n, from 1 to 64, toward zero: as on paper, four bits at a time. The remainder is
// below 64, so that a digit costs little, and one chain of 16 digits serves all sizes: where an
// element begins the remainder is 0.
inline u64 integers_divide(u64 value, u32 n, u32 size, bool is_signed) {
#pragma HLS INLINE
  const u64 negative = is_signed ? value & tops_of(size) : 0;
  u64 rest = integers_negate(value, negative, size);
  u64 quotient = 0;
  u32 remainder = 0;
  for (u32 digit = 0; digit < 16; ++digit) {
#pragma HLS UNROLL
#pragma HLS LOOP_TRIPCOUNT min = 16 max = 16
    if ((size == kBits8 && digit % 2 == 0) || (size == kBits32 && digit % 8 == 0)) remainder = 0;
    u32 partial = remainder << 4 | static_cast<u32>(rest >> 60);
    rest <<= 4;
    u32 bits = 0;
    for (u32 i = 0; i < 4; ++i) {
#pragma HLS UNROLL
#pragma HLS LOOP_TRIPCOUNT min = 4 max = 4
      const u32 part = n << (3 - i);
      bits <<= 1;
      if (partial >= part) {
        partial -= part;
        bits |= 1;
      }
    }
    remainder = partial;
    quotient = quotient << 4 | bits;
  }
  return integers_negate(quotient, negative, size);
}

}  // namespace penstock_hls
#endif
