// What the kernels are written in: the vendor's ap_uint, hls::stream and hls::burst_maxi under
// Vitis HLS, and stand-ins with the same meaning elsewhere.
//
// The kernels use ap_uint for the words of a 512-bit port only. All arithmetic is on native
// unsigned integers with explicit masks and shifts, whose meaning is one and the same in both
// worlds; the tool trims the widths that it can prove.
#ifndef PENSTOCK_HLS_PLATFORM_H_
#define PENSTOCK_HLS_PLATFORM_H_

#include <cstdint>

#if defined(__SYNTHESIS__) || __has_include(<ap_int.h>)
#include <ap_int.h>
#include <hls_burst_maxi.h>
#include <hls_stream.h>

// A region of dataflow is a sequence of calls.
#define PENSTOCK_HLS_REGION(name)
#define PENSTOCK_HLS_STAGE(name, call) call
#else
#include "plain/ap_int.h"
#include "plain/hls_burst_maxi.h"
#include "plain/hls_region.h"
#include "plain/hls_stream.h"

// So it is here, and with plain::set_concurrent(true) each call runs in a thread of its own.
#define PENSTOCK_HLS_REGION(name) penstock_hls_plain::Region name
#define PENSTOCK_HLS_STAGE(name, call) (name).stage([&] { call; })
#endif

namespace penstock_hls {

using u8 = std::uint8_t;
using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;
using i32 = std::int32_t;
using i64 = std::int64_t;

constexpr u32 kWordBytes = 64;  // of a 512-bit port
using Word = ap_uint<512>;
using WordPort = hls::burst_maxi<Word>;
using CellPort = hls::burst_maxi<u64>;

// Pieces of a word, counted from its lowest bit, which is the first byte in memory.
inline u64 piece64(const Word& word, u32 index) {
#pragma HLS INLINE
  return word.range(static_cast<int>(index * 64 + 63), static_cast<int>(index * 64)).to_uint64();
}
inline void set_piece64(Word& word, u32 index, u64 value) {
#pragma HLS INLINE
  word.range(static_cast<int>(index * 64 + 63), static_cast<int>(index * 64)) = value;
}

}  // namespace penstock_hls
#endif
