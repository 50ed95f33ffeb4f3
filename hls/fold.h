// What REDUCE does with one word of operands: lanes of f32 for all floats, 512 bits of integers in
// the first 16 of them.
#ifndef PENSTOCK_HLS_FOLD_H_
#define PENSTOCK_HLS_FOLD_H_

#include "float32.h"
#include "integers.h"
#include "narrow_float.h"
#include "penstock/descriptor/types.h"

namespace penstock_hls {

constexpr u32 kLanes = 64;      // elements of a word of eight-bit floats
constexpr u32 kWordLanes = 16;  // of 32 bits in a word
constexpr u32 kWordPieces = 8;  // of 64 bits in a word

struct Lanes {
  u32 lane[kLanes];
};

inline bool is_float(u32 type) {
#pragma HLS INLINE
  return type == PENSTOCK_F32 || type == PENSTOCK_F16 || type == PENSTOCK_BF16 ||
         type == PENSTOCK_F8E4M3 || type == PENSTOCK_F8E5M2;
}
// log2 of an element's bytes.
inline u32 size_log2(u32 type) {
#pragma HLS INLINE
  switch (type) {
    case PENSTOCK_INT8:
    case PENSTOCK_UINT8:
    case PENSTOCK_F8E4M3:
    case PENSTOCK_F8E5M2:
      return 0;
    case PENSTOCK_F16:
    case PENSTOCK_BF16:
      return 1;
    case PENSTOCK_INT64:
    case PENSTOCK_UINT64:
      return 3;
    default:
      return 2;
  }
}
inline u32 integer_size(u32 type) {
#pragma HLS INLINE
  const u32 log2 = size_log2(type);
  return log2 == 0 ? kBits8 : log2 == 2 ? kBits32 : kBits64;
}
inline bool is_signed(u32 type) {
#pragma HLS INLINE
  return type == PENSTOCK_INT8 || type == PENSTOCK_INT32 || type == PENSTOCK_INT64;
}
// Lanes that a word of the type fills.
inline u32 lanes_of(u32 type) {
#pragma HLS INLINE
  return is_float(type) ? kLanes >> size_log2(type) : kWordLanes;
}

// A word's elements, widened.
inline void unpack(u32 type, bool raw, const Word& word, Lanes& lanes) {
#pragma HLS INLINE
  const u32 log2 = raw || !is_float(type) ? 2 : size_log2(type);
  const u32 n = kLanes >> log2;
  for (u32 i = 0; i < kLanes; ++i) {
#pragma HLS UNROLL
#pragma HLS LOOP_TRIPCOUNT min = 64 max = 64
    if (i < n) {
      const u32 bit = i << (3 + log2);
      const u64 piece = piece64(word, bit / 64) >> (bit % 64);
      if (log2 == 2)
        lanes.lane[i] = static_cast<u32>(piece);
      else
        lanes.lane[i] = widen(type, static_cast<u32>(piece) & (log2 == 1 ? 0xffff : 0xff));
    }
  }
}

// How lanes are folded; constant in a job.
struct FoldMode {
  u32 type;
  u32 redop;
  u64 scale;  // of an integer, spread over a piece; of a float, in the low half
  bool raw;   // the bits pass
};

inline FoldMode fold_mode(u32 type, u32 redop, u64 scale, bool raw) {
#pragma HLS INLINE
  FoldMode mode = {type, redop, scale, raw};
  if (!is_float(type) && size_log2(type) == 0) mode.scale = (scale & 0xff) * 0x0101010101010101u;
  if (!is_float(type) && size_log2(type) == 2) mode.scale = (scale & 0xffffffff) * 0x100000001u;
  return mode;
}

// One lane's step: sums, minima and maxima share nothing with the multiplier but the operand that
// PREMUL_SUM has scaled.
inline u32 fold_float(const FoldMode& mode, bool first, u32 so_far, u32 operand) {
#pragma HLS INLINE
  u32 next = operand;
  if (mode.redop == PENSTOCK_PREMUL_SUM || (mode.redop == PENSTOCK_PROD && !first))
    next =
        f32_multiply(operand, mode.redop == PENSTOCK_PROD ? so_far : static_cast<u32>(mode.scale));
  if (first || mode.redop == PENSTOCK_PROD) return next;
  if (mode.redop == PENSTOCK_MIN || mode.redop == PENSTOCK_MAX)
    return f32_pick(so_far, next, mode.redop == PENSTOCK_MAX);
  return f32_add(so_far, next);
}

inline u64 fold_integers(const FoldMode& mode, bool first, u64 so_far, u64 operand) {
#pragma HLS INLINE
  const u32 size = integer_size(mode.type);
  u64 next = operand;
  if (mode.redop == PENSTOCK_PREMUL_SUM || (mode.redop == PENSTOCK_PROD && !first))
    next = integers_multiply(operand, mode.redop == PENSTOCK_PROD ? so_far : mode.scale, size);
  if (first || mode.redop == PENSTOCK_PROD) return next;
  if (mode.redop == PENSTOCK_MIN || mode.redop == PENSTOCK_MAX)
    return integers_pick(so_far, next, size, is_signed(mode.type), mode.redop == PENSTOCK_MAX);
  return integers_add(so_far, next, size);
}

// so_far becomes the fold with the operand; with `first` it is not looked at.
inline void fold_step(const FoldMode& mode, bool first, Lanes& so_far, const Lanes& operand) {
#pragma HLS INLINE
  if (mode.raw) {
    for (u32 i = 0; i < kWordLanes; ++i) {
#pragma HLS UNROLL
#pragma HLS LOOP_TRIPCOUNT min = 16 max = 16
      so_far.lane[i] = operand.lane[i];
    }
    return;
  }
  if (is_float(mode.type)) {
    const u32 n = lanes_of(mode.type);
    for (u32 i = 0; i < kLanes; ++i) {
#pragma HLS UNROLL
#pragma HLS LOOP_TRIPCOUNT min = 64 max = 64
      if (i < n) so_far.lane[i] = fold_float(mode, first, so_far.lane[i], operand.lane[i]);
    }
    return;
  }
  for (u32 i = 0; i < kWordPieces; ++i) {
#pragma HLS UNROLL
#pragma HLS LOOP_TRIPCOUNT min = 8 max = 8
    const u64 a = u64{so_far.lane[2 * i + 1]} << 32 | so_far.lane[2 * i];
    const u64 b = u64{operand.lane[2 * i + 1]} << 32 | operand.lane[2 * i];
    const u64 value = fold_integers(mode, first, a, b);
    so_far.lane[2 * i] = static_cast<u32>(value);
    so_far.lane[2 * i + 1] = static_cast<u32>(value >> 32);
  }
}

// How a fold's lanes become elements of the result; constant in a job.
struct FinishMode {
  u32 type;
  u32 out_type;
  bool average;
  u32 n_src;
  u32 reciprocal;  // f32(1 / n_src)
  bool raw;
};

inline void finish_lanes(const FinishMode& mode, Lanes& lanes) {
#pragma HLS INLINE
  if (mode.raw) return;
  if (is_float(mode.type)) {
    const u32 n = lanes_of(mode.type);
    for (u32 i = 0; i < kLanes; ++i) {
#pragma HLS UNROLL
#pragma HLS LOOP_TRIPCOUNT min = 64 max = 64
      if (i < n) {
        u32 value = lanes.lane[i];
        if (mode.average) value = f32_multiply(value, mode.reciprocal);
        if (mode.out_type == PENSTOCK_F32)
          value = is_nan(value) ? kNan : value;
        else
          value = narrow(mode.out_type, value);
        lanes.lane[i] = value;
      }
    }
    return;
  }
  if (!mode.average) return;
  for (u32 i = 0; i < kWordPieces; ++i) {
#pragma HLS UNROLL
#pragma HLS LOOP_TRIPCOUNT min = 8 max = 8
    const u64 sum = u64{lanes.lane[2 * i + 1]} << 32 | lanes.lane[2 * i];
    const u64 value =
        integers_divide(sum, mode.n_src, integer_size(mode.type), is_signed(mode.type));
    lanes.lane[2 * i] = static_cast<u32>(value);
    lanes.lane[2 * i + 1] = static_cast<u32>(value >> 32);
  }
}

}  // namespace penstock_hls
#endif
