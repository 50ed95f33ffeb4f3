// What SELECT reads: the header, the program and the tasks, as far as the kernel looks at them. The
// layouts are those of descriptor/node_table.h, as 64-bit words.
#ifndef PENSTOCK_HLS_SELECT_TABLE_H_
#define PENSTOCK_HLS_SELECT_TABLE_H_

#include <cstddef>

#include "penstock/descriptor/node_table.h"
#include "penstock/descriptor/types.h"
#include "penstock_hls.h"
#include "platform.h"

namespace penstock_hls {

// What the banks hold.
constexpr u32 kRows = PENSTOCK_HLS_MAX_ROWS;
constexpr u32 kLane = 8;  // rows that are looked at in a cycle: the cells of one word
constexpr u32 kGroups = kRows / kLane;
constexpr u32 kResources = PENSTOCK_HLS_MAX_RESOURCES;
constexpr u32 kFree = PENSTOCK_HLS_MAX_FREE;

constexpr u32 kMaxOps = PENSTOCK_MAX_OPS;
constexpr u32 kTerms = PENSTOCK_MAX_TERMS;
constexpr u32 kEntries = PENSTOCK_MAX_RESOURCES;  // of an operation's list
constexpr u32 kFeatures = PENSTOCK_MAX_FEATURES;
constexpr u32 kSetBits = 8;
constexpr u32 kCounts = 4;
constexpr u32 kBest = PENSTOCK_MAX_BEST;
constexpr u32 kTaskWords = sizeof(penstock_task) / 8;
constexpr u32 kOpWords = sizeof(penstock_column_op) / 8;
constexpr u32 kResultWords64 = sizeof(penstock_result) / 8;
constexpr u32 kHeaderWords = sizeof(penstock_node_table) / 8;

#define PENSTOCK_HLS_WORD_OF(type, member) (offsetof(type, member) / 8)

inline u32 bits_at(u64 word, u32 low, u32 width) {
#pragma HLS INLINE
  return static_cast<u32>(word >> low & ((u64{1} << width) - 1));
}

struct Header {
  u32 capacity, rows, n_resources, n_bits, n_free;
  u64 allocatable, requested, scored, bits, free, generation;
};

inline Header read_header(const u64* records, u64 word) {
#pragma HLS INLINE off
  u64 words[kHeaderWords];
  for (u32 i = 0; i < kHeaderWords; ++i) {
#pragma HLS PIPELINE II = 1
#pragma HLS LOOP_TRIPCOUNT min = 18 max = 18
    words[i] = records[word + i];
  }
  static_assert(offsetof(penstock_node_table, rows) % 8 == 4 &&
                    offsetof(penstock_node_table, n_resources) % 8 == 0 &&
                    offsetof(penstock_node_table, n_bits) % 8 == 0 &&
                    offsetof(penstock_node_table, n_free) % 8 == 4,
                "halves of words");
  Header header;
  header.capacity = bits_at(words[PENSTOCK_HLS_WORD_OF(penstock_node_table, capacity)], 0, 32);
  header.rows = bits_at(words[PENSTOCK_HLS_WORD_OF(penstock_node_table, rows)], 32, 32);
  header.n_resources =
      bits_at(words[PENSTOCK_HLS_WORD_OF(penstock_node_table, n_resources)], 0, 32);
  header.n_bits = bits_at(words[PENSTOCK_HLS_WORD_OF(penstock_node_table, n_bits)], 0, 32);
  header.n_free = bits_at(words[PENSTOCK_HLS_WORD_OF(penstock_node_table, n_free)], 32, 32);
  header.allocatable = words[PENSTOCK_HLS_WORD_OF(penstock_node_table, allocatable)];
  header.requested = words[PENSTOCK_HLS_WORD_OF(penstock_node_table, requested)];
  header.scored = words[PENSTOCK_HLS_WORD_OF(penstock_node_table, scored)];
  header.bits = words[PENSTOCK_HLS_WORD_OF(penstock_node_table, bits)];
  header.free = words[PENSTOCK_HLS_WORD_OF(penstock_node_table, free)];
  header.generation = words[PENSTOCK_HLS_WORD_OF(penstock_node_table, generation)];
  return header;
}

inline bool table_fits(const Header& header) {
#pragma HLS INLINE
  return header.rows <= kRows && header.n_resources <= kResources && header.n_free <= kFree;
}

// A column operation. Columns are within the banks, whatever memory says.
struct Operation {
  u32 op, normalise, n, group;
  i64 weight;
  u32 skip_unasked;
  u32 column[kEntries];
  u32 list_weight[kEntries];
};

struct Program {
  Operation scores[kMaxOps];
  u32 n_scores;
  u32 tie, best;
  // What the filters look at: resources of FIT, groups of BITS, whether there is ROW.
  u32 fit;
  bool asks_row;
  u64 filter_groups[4];  // bit per group
  u64 domain_groups[4];  // of operations on domains, which see no term of a task here
  // The first operation that is more than the kernel does; kMaxOps for the tie rule.
  bool refused;
  u32 refused_at;
};

inline bool in_groups(const u64 groups[4], u32 group) {
#pragma HLS INLINE
  return (groups[group >> 6 & 3] >> (group & 63) & 1) != 0;
}

inline bool operation_is_done(u32 op, u32 n) {
#pragma HLS INLINE
  switch (op) {
    case PENSTOCK_FILTER_BITS:
    case PENSTOCK_FILTER_FIT:
    case PENSTOCK_FILTER_GPU:
    case PENSTOCK_FILTER_ROW:
    case PENSTOCK_FILTER_DOMAINS:
    case PENSTOCK_SCORE_LEAST_ALLOCATED:
    case PENSTOCK_SCORE_MOST_ALLOCATED:
    case PENSTOCK_SCORE_BITS:
    case PENSTOCK_SCORE_FEATURES:
    case PENSTOCK_SCORE_DOMAINS:
    case PENSTOCK_SCORE_SPREAD:
      return true;
    case PENSTOCK_SCORE_BALANCED:
      return n <= 2;
    default:
      return false;
  }
}

inline void read_operation(const u64* records, u64 word, Operation& operation) {
#pragma HLS INLINE off
  u64 words[kOpWords];
  for (u32 i = 0; i < kOpWords; ++i) {
#pragma HLS PIPELINE II = 1
#pragma HLS LOOP_TRIPCOUNT min = 16 max = 16
    words[i] = records[word + i];
  }
  operation.op = bits_at(words[0], 0, 8);
  operation.normalise = bits_at(words[0], 8, 8);
  operation.n = bits_at(words[0], 16, 8);
  operation.group = bits_at(words[0], 24, 8);
  operation.weight = static_cast<i32>(bits_at(words[0], 32, 32));
  operation.skip_unasked = bits_at(words[1], 0, 32);
  if (operation.n > kEntries) operation.n = kEntries;
  for (u32 i = 0; i < kEntries; ++i) {
#pragma HLS UNROLL
#pragma HLS LOOP_TRIPCOUNT min = 16 max = 16
    operation.column[i] = bits_at(words[2 + i / 4], i % 4 * 16, 16) % kResources;
    operation.list_weight[i] = bits_at(words[6 + i / 4], i % 4 * 16, 16);
  }
}

inline void read_program(const u64* records, u64 word, Program& program) {
#pragma HLS INLINE off
  static_assert(offsetof(penstock_program, n_ops) == 6 && offsetof(penstock_program, tie) == 8 &&
                    offsetof(penstock_program, best) == 10,
                "where the words hold them");
  const u32 n_ops = bits_at(records[word], 48, 16);
  const u64 second = records[word + 1];
  program.tie = bits_at(second, 0, 8);
  program.best = bits_at(second, 16, 8);
  program.n_scores = 0;
  program.fit = 0;
  program.asks_row = false;
  program.refused = false;
  program.refused_at = 0;
  for (u32 i = 0; i < 4; ++i) {
#pragma HLS UNROLL
#pragma HLS LOOP_TRIPCOUNT min = 4 max = 4
    program.filter_groups[i] = 0;
    program.domain_groups[i] = 0;
  }
  for (u32 i = 0; i < n_ops && i < kMaxOps; ++i) {
#pragma HLS LOOP_TRIPCOUNT min = 0 max = 64
    Operation operation;
    read_operation(records, word + PENSTOCK_HLS_WORD_OF(penstock_program, ops) + i * kOpWords,
                   operation);
    if (!operation_is_done(operation.op, operation.n) && !program.refused) {
      program.refused = true;
      program.refused_at = i;
    }
    const u64 bit = u64{1} << (operation.group & 63);
    switch (operation.op) {
      case PENSTOCK_FILTER_BITS:
        program.filter_groups[operation.group >> 6 & 3] |= bit;
        break;
      case PENSTOCK_FILTER_FIT:
        for (u32 e = 0; e < kEntries; ++e) {
#pragma HLS UNROLL
#pragma HLS LOOP_TRIPCOUNT min = 16 max = 16
          if (e < operation.n) program.fit |= 1u << operation.column[e];
        }
        break;
      case PENSTOCK_FILTER_ROW:
        program.asks_row = true;
        break;
      case PENSTOCK_FILTER_DOMAINS:
      case PENSTOCK_SCORE_DOMAINS:
      case PENSTOCK_SCORE_SPREAD:
        program.domain_groups[operation.group >> 6 & 3] |= bit;
        break;
      default:
        break;
    }
    // SPREAD of a task without terms gives 0 everywhere, and 0 it stays.
    if (PENSTOCK_COLUMN_OP_IS_SCORE(operation.op) && operation.op != PENSTOCK_SCORE_SPREAD)
      program.scores[program.n_scores++] = operation;
  }
  if (program.best == 0 || program.best > kBest) program.best = kBest;
  if (!program.refused && program.tie > PENSTOCK_TIE_ROTATING) {
    program.refused = true;
    program.refused_at = kMaxOps;
  }
}

// It goes through a stream as one word, so its fields are not wider than they have to be.
struct Term {
  u16 column;
  u8 group;
  bool clear;
  i32 weight;
};
struct Task {
  u64 request[kResources];
  u64 scored_request[kResources];
  i64 row;
  u64 tie;
  u32 n_terms;
  Term terms[kTerms];
  i64 feature[kFeatures];
  u16 set_bits[kSetBits];
  u16 count[kCounts];
};

// The words of a task, one after another; indices are brought within the table, whatever memory
// says.
inline void take_task_word(const Header& header, u32 index, u64 word, Task& task) {
#pragma HLS INLINE
  constexpr u32 kScored = PENSTOCK_HLS_WORD_OF(penstock_task, scored_request);
  constexpr u32 kTerm = PENSTOCK_HLS_WORD_OF(penstock_task, terms);
  constexpr u32 kFeature = PENSTOCK_HLS_WORD_OF(penstock_task, feature);
  constexpr u32 kSet = PENSTOCK_HLS_WORD_OF(penstock_task, set_bits);
  if (index < kResources) task.request[index] = word;
  if (index >= kScored && index < kScored + kResources) task.scored_request[index - kScored] = word;
  if (index == PENSTOCK_HLS_WORD_OF(penstock_task, row)) task.row = static_cast<i64>(word);
  if (index == PENSTOCK_HLS_WORD_OF(penstock_task, tie)) task.tie = word;
  if (index == PENSTOCK_HLS_WORD_OF(penstock_task, n_terms)) {
    task.n_terms = bits_at(word, 0, 32);
    if (task.n_terms > kTerms) task.n_terms = kTerms;
  }
  if (index >= kTerm && index < kTerm + kTerms) {
    Term& term = task.terms[index - kTerm];
    const u16 column = static_cast<u16>(bits_at(word, 0, 16));
    term.column = column < header.n_bits ? column : 0;
    term.group = static_cast<u8>(bits_at(word, 16, 8));
    term.clear = bits_at(word, 24, 8) != 0;
    term.weight = static_cast<i32>(bits_at(word, 32, 32));
  }
  if (index >= kFeature && index < kFeature + kFeatures)
    task.feature[index - kFeature] = static_cast<i64>(word);
  for (u32 i = 0; i < 4; ++i) {
#pragma HLS UNROLL
#pragma HLS LOOP_TRIPCOUNT min = 4 max = 4
    const u16 half = static_cast<u16>(bits_at(word, i * 16, 16));
    if (index == kSet) task.set_bits[i] = half < header.n_bits ? half : 0;
    if (index == kSet + 1) task.set_bits[4 + i] = half < header.n_bits ? half : 0;
    if (index == PENSTOCK_HLS_WORD_OF(penstock_task, count))
      task.count[i] = half <= header.n_free ? half : 0;
  }
}

// Whether the kernel does a task, from its words: no GPUs, no domain terms that an operation looks
// at, no raises with COMMIT.
inline bool task_is_done(const u64* records, u64 word, const Program& program, bool commit) {
#pragma HLS INLINE off
  constexpr u32 kGpu = PENSTOCK_HLS_WORD_OF(penstock_task, gpu_count);
  constexpr u32 kLists = PENSTOCK_HLS_WORD_OF(penstock_task, n_domain_terms);
  constexpr u32 kDomain = PENSTOCK_HLS_WORD_OF(penstock_task, domain_terms);
  constexpr u32 kEnd = PENSTOCK_HLS_WORD_OF(penstock_task, raises);
  bool done = true;
  u32 n_domain_terms = 0;
  for (u32 i = kGpu; i < kEnd; ++i) {
#pragma HLS PIPELINE II = 1
#pragma HLS LOOP_TRIPCOUNT min = 80 max = 80
    const u64 value = records[word + i];
    if (i == kGpu && bits_at(value, 0, 32) != 0) done = false;
    if (i == kLists) {
      n_domain_terms = bits_at(value, 0, 32);
      if (commit && bits_at(value, 32, 32) != 0) done = false;
    }
    if (i >= kDomain && (i - kDomain) % 4 == 0 && (i - kDomain) / 4 < n_domain_terms &&
        in_groups(program.domain_groups, bits_at(value, 48, 8)))
      done = false;
  }
  return done;
}

}  // namespace penstock_hls
#endif
