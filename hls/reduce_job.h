// A REDUCE in the numbers that its stages count with.
//
// A job is cut into chunks of up to 4096 bytes of each source. For each chunk the sources are read
// one after another, all of the chunk from source 0, then from source 1, and so on; the fold keeps
// the chunk's sums, and gives the results with the last source.
#ifndef PENSTOCK_HLS_REDUCE_JOB_H_
#define PENSTOCK_HLS_REDUCE_JOB_H_

#include "fold.h"

namespace penstock_hls {

constexpr u32 kMaxSources = 64;
constexpr u32 kMaxDestinations = 3;
constexpr u32 kChunkBytes = 4096;  // of a source
constexpr u32 kChunkWords = kChunkBytes / kWordBytes;
constexpr u32 kResultWords = 4 * kChunkWords;  // of a chunk at most: eight bits become 32
constexpr u32 kBurstWords = 64;
// Iterations between two steps of one accumulator: at least the latency of the way from its being
// read to its being written, so that the loop starts one in each cycle.
constexpr u32 kFoldDistance = 16;

// Where one destination begins and ends on the words of memory.
struct Place {
  u64 word;   // the first that it reaches into
  u32 shift;  // bytes of that one before it
  u64 words;  // that it reaches into
  u32 tail;   // bytes of the last one, 0: all
  bool head;  // the first word is not whole
  u32 edges;  // words that are not whole: 0 to 2
};

struct ReduceJob {
  FoldMode fold;
  FinishMode finish;
  u32 n_src;
  u32 n_dst;
  u32 grow;    // words of the result for one of a source, or
  u32 shrink;  // words of a source for one of the result
  u64 chunks;
  u32 last_words;  // of a source in the last chunk
  u32 last_bytes;
  u32 result_words;  // of the result in a chunk that is not the last
  u32 last_result_words;
  Place place_0, place_1, place_2;
  u64 whole_words;  // that are written, to all destinations
  u32 edge_words;
};

inline Place place_of(u64 address, u64 bytes, bool used) {
#pragma HLS INLINE
  Place place = {0, 0, 0, 0, false, 0};
  if (!used) return place;
  place.word = address / kWordBytes;
  place.shift = static_cast<u32>(address % kWordBytes);
  place.words = (place.shift + bytes + kWordBytes - 1) / kWordBytes;
  place.tail = static_cast<u32>((place.shift + bytes) % kWordBytes);
  place.head = place.shift != 0;
  place.edges = place.words == 1 ? (place.head || place.tail != 0 ? 1 : 0)
                                 : (place.head ? 1 : 0) + (place.tail != 0 ? 1 : 0);
  return place;
}

// Of arguments that are taken, with a count above 0.
inline ReduceJob reduce_job(u64 destination_0, u64 destination_1, u64 destination_2, u64 count,
                            u64 scale, u32 type, u32 redop, u32 out_type, u32 n_src, u32 n_dst) {
#pragma HLS INLINE off
  const bool raw = n_src == 1 && redop != PENSTOCK_PREMUL_SUM && type == out_type;
  const u32 in_log2 = size_log2(type);
  const u32 out_log2 = size_log2(out_type);
  const u64 bytes = count << in_log2;
  const u64 result_bytes = count << out_log2;
  ReduceJob job;
  job.fold = fold_mode(type, redop, scale, raw);
  job.finish = {type, out_type, redop == PENSTOCK_AVG, n_src, f32_reciprocal(n_src), raw};
  job.n_src = n_src;
  job.n_dst = n_dst;
  job.grow = out_log2 > in_log2 ? u32{1} << (out_log2 - in_log2) : 1;
  job.shrink = in_log2 > out_log2 ? u32{1} << (in_log2 - out_log2) : 1;
  job.chunks = (bytes + kChunkBytes - 1) / kChunkBytes;
  job.last_bytes = static_cast<u32>(bytes - (job.chunks - 1) * kChunkBytes);
  job.last_words = (job.last_bytes + kWordBytes - 1) / kWordBytes;
  job.result_words = kChunkWords * job.grow / job.shrink;
  job.last_result_words = static_cast<u32>((result_bytes + kWordBytes - 1) / kWordBytes -
                                           (job.chunks - 1) * job.result_words);
  job.place_0 = place_of(destination_0, result_bytes, true);
  job.place_1 = place_of(destination_1, result_bytes, n_dst > 1);
  job.place_2 = place_of(destination_2, result_bytes, n_dst > 2);
  job.edge_words = job.place_0.edges + job.place_1.edges + job.place_2.edges;
  job.whole_words = job.place_0.words + job.place_1.words + job.place_2.words - job.edge_words;
  return job;
}

}  // namespace penstock_hls
#endif
