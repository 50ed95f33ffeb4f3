// One decision: passes over the groups of rows, each a loop that takes a group, or one entry of an
// operation's list for a group, in each cycle.
//
//   filter      which rows pass
//   score       for each score: if it is normalised, a pass for its range; then its share of the
//   sums rank        the best rows
#ifndef PENSTOCK_HLS_SELECT_SCAN_H_
#define PENSTOCK_HLS_SELECT_SCAN_H_

#include "select_arithmetic.h"
#include "select_banks.h"

namespace penstock_hls {

// Which terms a group's mask selects, as a bit for each of the task's terms.
inline u32 terms_in(const Task& task, const u64 groups[4]) {
#pragma HLS INLINE
  u32 mask = 0;
  for (u32 t = 0; t < kTerms; ++t) {
#pragma HLS UNROLL
#pragma HLS LOOP_TRIPCOUNT min = 16 max = 16
    if (t < task.n_terms && in_groups(groups, task.terms[t].group)) mask |= 1u << t;
  }
  return mask;
}

// Fills feasible[] and returns how many rows pass.
inline u32 filter_pass(Banks& banks, const Program& program, const Task& task) {
#pragma HLS INLINE off
  const u32 rows = banks.header.rows;
  const u32 groups = groups_of(banks.header);
  const u32 terms = terms_in(task, program.filter_groups);
  u32 fit = 0;
  for (u32 r = 0; r < kResources; ++r) {
#pragma HLS UNROLL
#pragma HLS LOOP_TRIPCOUNT min = 8 max = 8
    if ((program.fit >> r & 1) != 0 && task.request[r] != 0) fit |= 1u << r;
  }
  u32 passed = 0;
  for (u32 g = 0; g < groups; ++g) {
#pragma HLS PIPELINE II = 1
#pragma HLS LOOP_TRIPCOUNT min = 1 max = 16384
    u32 holds = bits_of(banks, 0, g);
    for (u32 t = 0; t < kTerms; ++t) {
#pragma HLS UNROLL
#pragma HLS LOOP_TRIPCOUNT min = 16 max = 16
      if ((terms >> t & 1) != 0)
        holds &= bits_of(banks, 1 + t, g) ^ (task.terms[t].clear ? 0xff : 0);
    }
    u32 n = 0;
    for (u32 lane = 0; lane < kLane; ++lane) {
#pragma HLS UNROLL
#pragma HLS LOOP_TRIPCOUNT min = 8 max = 8
      const u32 row = g * kLane + lane;
      bool passes = row < rows && (holds >> lane & 1) != 0;
      for (u32 r = 0; r < kResources; ++r) {
#pragma HLS UNROLL
#pragma HLS LOOP_TRIPCOUNT min = 8 max = 8
        const u64 needed = task.request[r] + quantity_of(banks.requested[g][lane][r]);
        if ((fit >> r & 1) != 0 && needed > quantity_of(banks.allocatable[g][lane][r]))
          passes = false;
      }
      if (program.asks_row && task.row != -1 && task.row != static_cast<i64>(row)) passes = false;
      if (!passes) holds &= ~(1u << lane);
      n += passes ? 1 : 0;
    }
    banks.feasible[g] = static_cast<u8>(holds);
    passed += n;
  }
  return passed;
}

// What a lane keeps of a row between the entries of an operation's list.
struct Partial {
  i64 sum;
  u32 weights;
  u32 counted;
  Fraction first, second;
};

// One entry of LEAST_ALLOCATED or MOST_ALLOCATED, from 0 to 100.
inline u32 allocation_share(bool most, u64 allocatable, u64 used) {
#pragma HLS INLINE
  const u64 least = used < allocatable ? used : allocatable;
  return divide_7((most ? least : allocatable - least) * 100, allocatable);
}

// Whether the operation's list is taken entry by entry; others take a group in one cycle.
inline bool of_list(const Operation& operation) {
#pragma HLS INLINE
  return operation.op == PENSTOCK_SCORE_LEAST_ALLOCATED ||
         operation.op == PENSTOCK_SCORE_MOST_ALLOCATED || operation.op == PENSTOCK_SCORE_BALANCED;
}

inline void score_entry(const Banks& banks, const Operation& operation, const Task& task, u32 group,
                        u32 lane, u32 entry, Partial& partial) {
#pragma HLS INLINE
  if (!of_list(operation) || entry >= operation.n) return;
  const u32 column = operation.column[entry];
  const u64 allocatable = quantity_of(banks.allocatable[group][lane][column]);
  const bool skipped = (operation.skip_unasked >> entry & 1) != 0 && task.request[column] == 0;
  if (allocatable == 0 || skipped) return;
  if (operation.op == PENSTOCK_SCORE_BALANCED) {
    const u64 used = quantity_of(banks.requested[group][lane][column]) + task.request[column];
    partial.second = partial.first;
    partial.first = fraction_of(used, allocatable);
    ++partial.counted;
    return;
  }
  const u64 used = quantity_of(banks.scored[group][lane][column]) + task.scored_request[column];
  partial.sum +=
      allocation_share(operation.op == PENSTOCK_SCORE_MOST_ALLOCATED, allocatable, used) *
      operation.list_weight[entry];
  partial.weights += operation.list_weight[entry];
}

// The score of a row, before it is normalised. `terms` are the task's terms in the operation's
// group, `asks` whether the task asks for a resource of the list.
inline i64 finish_score(const Banks& banks, const Operation& operation, const Task& task, u32 terms,
                        bool asks, u32 group, u32 lane, const Partial& partial) {
#pragma HLS INLINE
  i64 sum = 0;
  switch (operation.op) {
    case PENSTOCK_SCORE_LEAST_ALLOCATED:
    case PENSTOCK_SCORE_MOST_ALLOCATED:
      return partial.weights == 0 ? 0 : divide_7(static_cast<u64>(partial.sum), partial.weights);
    case PENSTOCK_SCORE_BALANCED:
      if (!asks) return 0;
      return partial.counted == 2 ? balanced_of(partial.first, partial.second) : 100;
    case PENSTOCK_SCORE_FEATURES:
      for (u32 e = 0; e < kFeatures; ++e) {
#pragma HLS UNROLL
#pragma HLS LOOP_TRIPCOUNT min = 8 max = 8
        if (e < operation.n)
          sum += task.feature[e] * free_of(banks.free[group][lane][operation.column[e]]);
      }
      return sum;
    case PENSTOCK_SCORE_BITS:
      for (u32 t = 0; t < kTerms; ++t) {
#pragma HLS UNROLL
#pragma HLS LOOP_TRIPCOUNT min = 16 max = 16
        if ((terms >> t & 1) != 0 &&
            ((bits_of(banks, 1 + t, group) >> lane & 1) != 0) != task.terms[t].clear)
          sum += task.terms[t].weight;
      }
      return sum;
    default:
      return 0;  // DOMAINS, for a task without a term in its group
  }
}

// Looks at every feasible row: for its operation's range, or to add its share to the sums.
inline void score_pass(Banks& banks, const Operation& operation, const Task& task, bool for_range,
                       bool first, Range& range) {
#pragma HLS INLINE off
  const u32 groups = groups_of(banks.header);
  const u32 entries = of_list(operation) && operation.n > 1 ? operation.n : 1;
  u64 groups_mask[4] = {0, 0, 0, 0};
  groups_mask[operation.group >> 6 & 3] = u64{1} << (operation.group & 63);
  const u32 terms = terms_in(task, groups_mask);
  bool asks = false;
  for (u32 e = 0; e < kEntries; ++e) {
#pragma HLS UNROLL
#pragma HLS LOOP_TRIPCOUNT min = 16 max = 16
    if (e < operation.n && task.request[operation.column[e]] != 0) asks = true;
  }
  Range ranges[kLane];
#pragma HLS ARRAY_PARTITION variable = ranges type = complete
  Partial partial[kLane];
#pragma HLS ARRAY_PARTITION variable = partial type = complete
  for (u32 lane = 0; lane < kLane; ++lane) {
#pragma HLS UNROLL
#pragma HLS LOOP_TRIPCOUNT min = 8 max = 8
    ranges[lane] = {0, 0, false};
  }
  u32 g = 0;
  u32 e = 0;
  for (u32 i = 0; i < groups * entries; ++i) {
#pragma HLS PIPELINE II = 1
#pragma HLS LOOP_TRIPCOUNT min = 1 max = 262144
#pragma HLS DEPENDENCE variable = banks.totals type = inter dependent = false
    const u32 feasible = banks.feasible[g];
    for (u32 lane = 0; lane < kLane; ++lane) {
#pragma HLS UNROLL
#pragma HLS LOOP_TRIPCOUNT min = 8 max = 8
      if ((feasible >> lane & 1) == 0) continue;
      if (e == 0) partial[lane] = {0, 0, 0, {0, 0}, {0, 0}};
      score_entry(banks, operation, task, g, lane, e, partial[lane]);
      if (e + 1 != entries) continue;
      const i64 score = finish_score(banks, operation, task, terms, asks, g, lane, partial[lane]);
      if (for_range) {
        widen_range(ranges[lane], operation.normalise, score);
      } else {
        const i64 so_far = first ? 0 : banks.totals[g][lane];
        banks.totals[g][lane] =
            so_far + operation.weight * normalised(operation.normalise, range, score);
      }
    }
    if (++e == entries) {
      e = 0;
      ++g;
    }
  }
  if (!for_range) return;
  range = {0, 0, false};
  for (u32 lane = 0; lane < kLane; ++lane) {
#pragma HLS LOOP_TRIPCOUNT min = 8 max = 8
    if (!ranges[lane].any) continue;
    widen_range(range, PENSTOCK_NORMALISE_NONE, ranges[lane].least);
    widen_range(range, PENSTOCK_NORMALISE_NONE, ranges[lane].most);
  }
}

// A row in the order of the result: higher score, then lower key, which is the row or, with the
// rule ROTATING, how far it lies behind the first.
struct Candidate {
  i64 score;
  u32 key;
  u32 row;
  bool valid;
};
inline bool comes_before(const Candidate& a, const Candidate& b) {
#pragma HLS INLINE
  if (!b.valid) return true;
  return a.score > b.score || (a.score == b.score && a.key < b.key);
}

struct Ranking {
  Candidate best[kBest];
  u32 n;
};

// The best rows: a sorted list for each lane, and then the best of their heads.
inline void rank_pass(const Banks& banks, const Program& program, const Task& task,
                      Ranking& ranking) {
#pragma HLS INLINE off
  const u32 rows = banks.header.rows;
  const u32 groups = groups_of(banks.header);
  const u32 start =
      program.tie == PENSTOCK_TIE_ROTATING && rows != 0 ? static_cast<u32>(task.tie % rows) : 0;
  Candidate lists[kLane][kBest];
#pragma HLS ARRAY_PARTITION variable = lists dim = 0 type = complete
  for (u32 lane = 0; lane < kLane; ++lane) {
#pragma HLS UNROLL
#pragma HLS LOOP_TRIPCOUNT min = 8 max = 8
    for (u32 i = 0; i < kBest; ++i) {
#pragma HLS UNROLL
#pragma HLS LOOP_TRIPCOUNT min = 8 max = 8
      lists[lane][i] = {0, 0, 0, false};
    }
  }
  for (u32 g = 0; g < groups; ++g) {
#pragma HLS PIPELINE II = 1
#pragma HLS LOOP_TRIPCOUNT min = 1 max = 16384
    const u32 feasible = banks.feasible[g];
    for (u32 lane = 0; lane < kLane; ++lane) {
#pragma HLS UNROLL
#pragma HLS LOOP_TRIPCOUNT min = 8 max = 8
      if ((feasible >> lane & 1) == 0) continue;
      const u32 row = g * kLane + lane;
      const u32 key = row >= start ? row - start : row + (rows - start);
      const i64 score = program.n_scores == 0 ? 0 : banks.totals[g][lane];
      const Candidate next = {score, key, row, true};
      // From the end on, each place takes the one before it, or the new one, or stays.
      for (u32 i = kBest; i > 0; --i) {
#pragma HLS UNROLL
#pragma HLS LOOP_TRIPCOUNT min = 8 max = 8
        if (!comes_before(next, lists[lane][i - 1])) continue;
        if (i > 1 && comes_before(next, lists[lane][i > 1 ? i - 2 : 0]))
          lists[lane][i - 1] = lists[lane][i > 1 ? i - 2 : 0];
        else
          lists[lane][i - 1] = next;
      }
    }
  }
  u32 heads[kLane];
#pragma HLS ARRAY_PARTITION variable = heads type = complete
  for (u32 lane = 0; lane < kLane; ++lane) {
#pragma HLS UNROLL
#pragma HLS LOOP_TRIPCOUNT min = 8 max = 8
    heads[lane] = 0;
  }
  ranking.n = 0;
  for (u32 k = 0; k < program.best; ++k) {
#pragma HLS LOOP_TRIPCOUNT min = 1 max = 8
    Candidate best = {0, 0, 0, false};
    u32 from = 0;
    for (u32 lane = 0; lane < kLane; ++lane) {
#pragma HLS PIPELINE II = 1
#pragma HLS LOOP_TRIPCOUNT min = 8 max = 8
      if (heads[lane] == kBest) continue;
      const Candidate head = lists[lane][heads[lane]];
      if (!head.valid || !comes_before(head, best)) continue;
      best = head;
      from = lane;
    }
    if (!best.valid) break;
    ranking.best[ranking.n++] = best;
    ++heads[from];
  }
}

inline void decide(Banks& banks, const Program& program, const Task& task, u32& feasible,
                   Ranking& ranking) {
#pragma HLS INLINE off
  ranking.n = 0;
  feasible = filter_pass(banks, program, task);
  if (feasible == 0) return;
  for (u32 i = 0; i < program.n_scores; ++i) {
#pragma HLS LOOP_TRIPCOUNT min = 0 max = 64
    const Operation operation = program.scores[i];
    Range range = {0, 0, false};
    if (operation.normalise != PENSTOCK_NORMALISE_NONE)
      score_pass(banks, operation, task, true, false, range);
    score_pass(banks, operation, task, false, i == 0, range);
  }
  rank_pass(banks, program, task, ranking);
}

}  // namespace penstock_hls
#endif
