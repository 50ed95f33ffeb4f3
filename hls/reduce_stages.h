// The stages of REDUCE, each a process of the region of dataflow in reduce.cpp. Each runs for a
// number of iterations that it knows beforehand, one in each cycle.
#ifndef PENSTOCK_HLS_REDUCE_STAGES_H_
#define PENSTOCK_HLS_REDUCE_STAGES_H_

#include "reduce_job.h"

namespace penstock_hls {

// Bursts that are asked for before the first one's data is taken: what covers the memory's latency.
constexpr u32 kReadsAhead = 16;
constexpr u32 kWritesAhead = 16;

// A chunk of a source, as words of memory.
struct ReadBurst {
  u64 word;
  u32 words;
};
// The same as the aligner sees it.
struct Segment {
  u32 words;
  u32 shift;  // bytes before it in its first word
  u32 beats;  // words that it makes once it begins on one
};
struct Totals {
  u64 words;  // that are read
  u64 turns;  // iterations of the aligner
};
struct WriteBurst {
  u64 word;
  u32 words;
};
struct Edge {
  u64 address;     // of the word's first byte
  u32 first, end;  // bytes of it that are written
  Word word;
};

// As kFoldDistance, of the words of a chunk between their first and their second destination.
constexpr u32 kPlaceDistance = 4;

// Depths of the streams. Those of bursts hold what is asked for ahead, or the region stands still.
constexpr int kBurstDepth = 2 * kReadsAhead;
constexpr int kWordDepth = 32;
constexpr int kLanesDepth = 2;
constexpr int kEdgeDepth = 2 * kMaxDestinations;
using ReadBursts = hls::stream<ReadBurst, kBurstDepth>;
using Segments = hls::stream<Segment, kBurstDepth>;
using SegmentTotals = hls::stream<Totals, 2>;
using WordTotals = hls::stream<u64, 2>;
using BurstWords = hls::stream<u32, kBurstDepth>;
using Words = hls::stream<Word, kWordDepth>;
using LanesStream = hls::stream<Lanes, kLanesDepth>;
using WriteBursts = hls::stream<WriteBurst, kBurstDepth>;
using Edges = hls::stream<Edge, kEdgeDepth>;

// Where each chunk of each source lies.
inline void plan_reads(const ReduceJob job, const u64* sources, ReadBursts& requests,
                       BurstWords& reads, Segments& segments, WordTotals& words_total,
                       SegmentTotals& totals) {
  u64 source[kMaxSources];
  Totals total = {0, 0};
  for (u32 s = 0; s < job.n_src; ++s) {
#pragma HLS PIPELINE II = 1
#pragma HLS LOOP_TRIPCOUNT min = 1 max = 64
    const u64 address = sources[s];
    const u32 shift = static_cast<u32>(address % kWordBytes);
    const u32 more = shift != 0 ? 1 : 0;
    source[s] = address;
    total.words += (job.chunks - 1) * (kChunkWords + more) +
                   (shift + job.last_bytes + kWordBytes - 1) / kWordBytes;
    total.turns += (job.chunks - 1) * (kChunkWords + more) + job.last_words + more;
  }
  words_total.write(total.words);
  totals.write(total);
  const u64 n = job.chunks * job.n_src;
  u64 chunk = 0;
  u32 s = 0;
  for (u64 i = 0; i < n; ++i) {
#pragma HLS PIPELINE II = 1
#pragma HLS LOOP_TRIPCOUNT min = 1 max = 65536
    const bool last = chunk + 1 == job.chunks;
    const u64 address = source[s] + chunk * kChunkBytes;
    const u32 bytes = last ? job.last_bytes : kChunkBytes;
    const u32 shift = static_cast<u32>(address % kWordBytes);
    const u32 words = (shift + bytes + kWordBytes - 1) / kWordBytes;
    requests.write(ReadBurst{address / kWordBytes, words});
    reads.write(words);
    segments.write(Segment{words, shift, last ? job.last_words : kChunkWords});
    if (++s == job.n_src) {
      s = 0;
      ++chunk;
    }
  }
}

inline void read_words(const ReduceJob job, WordPort pool_in, ReadBursts& requests,
                       BurstWords& reads, WordTotals& words_total, Words& words) {
  const u64 bursts = job.chunks * job.n_src;
  const u64 total = words_total.read();
  u64 asked = 0;
  for (u32 i = 0; i < kReadsAhead; ++i) {
#pragma HLS LOOP_TRIPCOUNT min = 16 max = 16
    if (asked < bursts) {
      const ReadBurst burst = requests.read();
      pool_in.read_request(burst.word, burst.words);
      ++asked;
    }
  }
  u32 left = 0;
  for (u64 i = 0; i < total; ++i) {
#pragma HLS PIPELINE II = 1
#pragma HLS LOOP_TRIPCOUNT min = 1 max = 4194304
    if (left == 0) {
      left = reads.read();
      if (asked < bursts) {
        const ReadBurst burst = requests.read();
        pool_in.read_request(burst.word, burst.words);
        ++asked;
      }
    }
    words.write(pool_in.read());
    --left;
  }
}

// Each segment from the beginning of a word on. Where it was not, a word of it needs two of memory.
inline void align_words(Segments& segments, SegmentTotals& totals, Words& words, Words& beats) {
  const Totals total = totals.read();
  Segment segment = {0, 0, 0};
  u32 turn = 0;
  u32 turns = 0;
  Word before = 0;
  for (u64 i = 0; i < total.turns; ++i) {
#pragma HLS PIPELINE II = 1
#pragma HLS LOOP_TRIPCOUNT min = 1 max = 4194304
    if (turn == turns) {
      segment = segments.read();
      turn = 0;
      turns = segment.beats + (segment.shift != 0 ? 1 : 0);
    }
    Word word = 0;
    if (turn < segment.words) word = words.read();
    const u32 bits = segment.shift * 8;
    if (segment.shift == 0)
      beats.write(word);
    else if (turn > 0)
      beats.write(before >> bits | word << (512 - bits));
    before = word;
    ++turn;
  }
}

// The accumulators of a chunk stand here between its sources. Chunks that are shorter than the way
// through the loop are filled up with turns that do nothing.
inline void fold_words(const ReduceJob job, Words& beats, LanesStream& sums) {
  u32 accumulators[kChunkWords][kLanes];
#pragma HLS ARRAY_PARTITION variable = accumulators dim = 2 type = complete
#pragma HLS BIND_STORAGE variable = accumulators type = ram_2p impl = lutram
  const u32 least = job.n_src > 1 ? kFoldDistance : 1;
  const u32 last_turns = job.last_words > least ? job.last_words : least;
  const u64 total = (job.chunks - 1) * job.n_src * kChunkWords + u64{job.n_src} * last_turns;
  u64 chunk = 0;
  u32 s = 0;
  u32 at = 0;
  for (u64 i = 0; i < total; ++i) {
#pragma HLS PIPELINE II = 1
#pragma HLS LOOP_TRIPCOUNT min = 1 max = 4194304
#pragma HLS DEPENDENCE variable = accumulators type = inter direction = RAW distance = \
    16 dependent = true
#pragma HLS DEPENDENCE variable = accumulators type = inter direction = WAR dependent = false
    const bool last_chunk = chunk + 1 == job.chunks;
    const u32 turns = last_chunk ? last_turns : kChunkWords;
    if (at < (last_chunk ? job.last_words : kChunkWords)) {
      const Word beat = beats.read();
      Lanes operand;
      Lanes value;
      unpack(job.fold.type, job.fold.raw, beat, operand);
      for (u32 lane = 0; lane < kLanes; ++lane) {
#pragma HLS UNROLL
#pragma HLS LOOP_TRIPCOUNT min = 64 max = 64
        value.lane[lane] = s == 0 ? 0 : accumulators[at][lane];
      }
      fold_step(job.fold, s == 0, value, operand);
      for (u32 lane = 0; lane < kLanes; ++lane) {
#pragma HLS UNROLL
#pragma HLS LOOP_TRIPCOUNT min = 64 max = 64
        accumulators[at][lane] = value.lane[lane];
      }
      if (s + 1 == job.n_src) sums.write(value);
    }
    if (++at == turns) {
      at = 0;
      if (++s == job.n_src) {
        s = 0;
        ++chunk;
      }
    }
  }
}

inline u64 beats_of(const ReduceJob& job) {
#pragma HLS INLINE
  return (job.chunks - 1) * kChunkWords + job.last_words;
}

inline void finish_words(const ReduceJob job, LanesStream& sums, LanesStream& codes) {
  const u64 total = beats_of(job);
  for (u64 i = 0; i < total; ++i) {
#pragma HLS PIPELINE II = 1
#pragma HLS LOOP_TRIPCOUNT min = 1 max = 65536
    Lanes lanes = sums.read();
    finish_lanes(job.finish, lanes);
    codes.write(lanes);
  }
}

// Lanes back into words: one for each, several for each where elements grow, one of several where
// they shrink. Each chunk begins on a word; what is beyond the last word with a result is dropped.
inline void pack_words(const ReduceJob job, LanesStream& codes, Words& results) {
  const u64 total = beats_of(job) * job.grow;
  const bool raw = job.finish.raw || !is_float(job.finish.type);
  const u32 out_log2 = raw ? 2 : size_log2(job.finish.out_type);
  const u32 per_word = kLanes >> out_log2;  // codes of a word of the result
  const u32 lanes = raw ? kWordLanes : lanes_of(job.finish.type);
  const u32 shrunk_bits = 512 / job.shrink;
  const u32 codes_each = lanes < per_word ? lanes : per_word;  // that a turn places
  u64 chunk = 0;
  u32 beat = 0;
  u32 part = 0;     // of a beat that makes several words
  u32 filled = 0;   // beats in a word that takes several
  u32 written = 0;  // words of the chunk
  Lanes now;
  Word word = 0;
  for (u64 i = 0; i < total; ++i) {
#pragma HLS PIPELINE II = 1
#pragma HLS LOOP_TRIPCOUNT min = 1 max = 262144
    if (part == 0) now = codes.read();
    if (filled == 0) word = 0;
    Word more = 0;
    for (u32 piece = 0; piece < kWordPieces; ++piece) {
#pragma HLS UNROLL
#pragma HLS LOOP_TRIPCOUNT min = 8 max = 8
      u64 bits = 0;
      const u32 each = 8 >> out_log2;  // codes of 64 bits
      for (u32 k = 0; k < 8; ++k) {
#pragma HLS UNROLL
#pragma HLS LOOP_TRIPCOUNT min = 8 max = 8
        const u32 code = piece * each + k;
        if (k < each && code < codes_each)
          bits |= u64{now.lane[(part * per_word + code) % kLanes]} << (k << (3 + out_log2));
      }
      set_piece64(more, piece, bits);
    }
    word = word | more << (filled * shrunk_bits);
    const bool last_chunk = chunk + 1 == job.chunks;
    const u32 beats = last_chunk ? job.last_words : kChunkWords;
    if (++part == job.grow) {
      part = 0;
      ++beat;
    }
    const bool chunk_ends = part == 0 && beat == beats;
    ++filled;
    if (filled == job.shrink || chunk_ends) {
      filled = 0;
      if (written < (last_chunk ? job.last_result_words : job.result_words)) results.write(word);
      ++written;
    }
    if (chunk_ends) {
      beat = 0;
      written = 0;
      ++chunk;
    }
  }
}

// How many of the words from `index` on, of which there are `words`, are whole.
inline u32 whole_words_of(const Place& place, u64 index, u32 words) {
#pragma HLS INLINE
  const bool head = place.head && index == 0;
  const bool tail = place.tail != 0 && index + words == place.words;
  if (words == 1) return head || tail ? 0 : 1;
  return words - (head ? 1 : 0) - (tail ? 1 : 0);
}

// Words of the result onto the words of each destination. What a destination shares with its
// neighbours, at its ends, goes as bytes.
inline void place_words(const ReduceJob job, Words& results, WriteBursts& bursts, Words& whole,
                        Edges& edges) {
  Word kept[kResultWords];
#pragma HLS BIND_STORAGE variable = kept type = ram_2p impl = bram
  Word before[kMaxDestinations];
#pragma HLS ARRAY_PARTITION variable = before type = complete
  const u64 before_last = (job.chunks - 1) * job.result_words;
  const u64 least = job.n_dst > 1 ? kPlaceDistance : 1;
  const u64 last_0 = job.place_0.words - before_last;
  const u64 last_1 = job.n_dst > 1 ? job.place_1.words - before_last : 0;
  const u64 last_2 = job.n_dst > 2 ? job.place_2.words - before_last : 0;
  const u64 total = before_last * job.n_dst + (last_0 > least ? last_0 : least) +
                    (job.n_dst > 1 ? (last_1 > least ? last_1 : least) : 0) +
                    (job.n_dst > 2 ? (last_2 > least ? last_2 : least) : 0);
  u64 chunk = 0;
  u32 d = 0;
  u32 at = 0;
  for (u64 i = 0; i < total; ++i) {
#pragma HLS PIPELINE II = 1
#pragma HLS LOOP_TRIPCOUNT min = 1 max = 786432
#pragma HLS DEPENDENCE variable = kept type = inter direction = RAW distance = 4 dependent = true
#pragma HLS DEPENDENCE variable = kept type = inter direction = WAR dependent = false
    const Place place = d == 0 ? job.place_0 : d == 1 ? job.place_1 : job.place_2;
    const bool last_chunk = chunk + 1 == job.chunks;
    const u32 given = last_chunk ? job.last_result_words : job.result_words;
    const u64 chunk_begin = chunk * job.result_words;
    // A destination that does not begin on a word may end in one more.
    const u32 n = last_chunk ? static_cast<u32>(place.words - chunk_begin) : given;
    const u32 turns = n > least ? n : static_cast<u32>(least);
    if (at < n) {
      const u64 index = chunk_begin + at;
      Word word = 0;
      if (at < given) {
        if (d == 0) {
          word = results.read();
          kept[at] = word;
        } else {
          word = kept[at];
        }
      }
      const u32 bits = place.shift * 8;
      Word placed = word;
      if (place.shift != 0)
        placed = index == 0 ? word << bits : before[d] >> (512 - bits) | word << bits;
      before[d] = word;
      const bool is_head = place.head && index == 0;
      const bool is_tail = place.tail != 0 && index + 1 == place.words;
      if (at % kBurstWords == 0) {
        const u32 words = whole_words_of(place, index, n - at < kBurstWords ? n - at : kBurstWords);
        if (words != 0) bursts.write(WriteBurst{place.word + index + (is_head ? 1 : 0), words});
      }
      if (is_head || is_tail)
        edges.write(Edge{(place.word + index) * kWordBytes, is_head ? place.shift : 0,
                         is_tail ? place.tail : kWordBytes, placed});
      else
        whole.write(placed);
    }
    if (++at == turns) {
      at = 0;
      if (++d == job.n_dst) {
        d = 0;
        ++chunk;
      }
    }
  }
}

inline void write_words(const ReduceJob job, WordPort pool_out, WriteBursts& bursts, Words& whole) {
  u32 left = 0;
  u32 unanswered = 0;
  for (u64 i = 0; i < job.whole_words; ++i) {
#pragma HLS PIPELINE II = 1
#pragma HLS LOOP_TRIPCOUNT min = 0 max = 786432
    if (left == 0) {
      if (unanswered == kWritesAhead) {
        pool_out.write_response();
        --unanswered;
      }
      const WriteBurst burst = bursts.read();
      pool_out.write_request(burst.word, burst.words);
      ++unanswered;
      left = burst.words;
    }
    pool_out.write(whole.read());
    --left;
  }
  for (u32 i = 0; i < unanswered; ++i) {
#pragma HLS LOOP_TRIPCOUNT min = 0 max = 16
    pool_out.write_response();
  }
}

inline void write_edges(const ReduceJob job, u8* pool_edge, Edges& edges) {
  for (u32 i = 0; i < job.edge_words; ++i) {
#pragma HLS LOOP_TRIPCOUNT min = 0 max = 6
    const Edge edge = edges.read();
    for (u32 b = edge.first; b < edge.end; ++b) {
#pragma HLS PIPELINE II = 1
#pragma HLS LOOP_TRIPCOUNT min = 1 max = 63
      pool_edge[edge.address + b] = static_cast<u8>(piece64(edge.word, b / 8) >> (b % 8 * 8));
    }
  }
}

}  // namespace penstock_hls
#endif
