// The vector kernels of simd_select: each handles one block of rows of one column operation.
//
// Kernels compute with all rows of the block, whether or not they are feasible or hold a node, and
// leave it to the caller to look at feasible rows only. A kernel returns false, and has written
// nothing that counts, when the block holds cells with which its arithmetic would not be exact, or
// when it does not know the operation: the caller then takes the scalar functions for that block.
#ifndef PENSTOCK_ENGINE_SIMD_SELECT_BLOCKS_H_
#define PENSTOCK_ENGINE_SIMD_SELECT_BLOCKS_H_

#include <cstdint>

#include "penstock/engine/host_engine.h"
#include "penstock/engine/scalar_select.h"

namespace penstock {

inline constexpr std::uint32_t kBlockWords = 8;
inline constexpr std::uint32_t kBlockRows = kBlockWords * 64;

// Rows [begin, begin + 64 * words) of a table, within its capacity.
struct RowBlock {
  std::uint32_t begin;  // multiple of 64
  std::uint32_t words;  // 1..kBlockWords
};

// FIT, LEAST_ALLOCATED or MOST_ALLOCATED, and BALANCED, where the two scores list the same two
// resources, both of which count, and are not normalised.
struct PairScores {
  static constexpr std::uint32_t kMaxOthers = 2;

  std::uint16_t column[2];
  bool least;  // LEAST_ALLOCATED
  std::int32_t weight;
  std::int32_t balanced_weight;
  double list_weight[2];  // of LEAST_ALLOCATED or MOST_ALLOCATED
  std::int64_t request[2];
  std::int64_t scored_request[2];
  bool fits[2];  // whether FIT looks at the resource
  // What FIT looks at besides.
  std::uint32_t n_others;
  std::uint16_t other[kMaxOthers];
  std::int64_t other_request[kMaxOthers];
};

struct BlockKernels {
  // FIT, GPU and DOMAINS: clears the bits of rows that do not pass; words that are 0 are not looked
  // at.
  bool (*filter)(const DecisionContext& context, const penstock_column_op& op, RowBlock block,
                 std::uint64_t* feasible);
  // scores[0 .. 64 * words): raw scores.
  bool (*score)(const DecisionContext& context, const penstock_column_op& op, RowBlock block,
                std::int64_t* scores);
  // FIT as `filter` does, and total[0 .. 64 * words): the weighted sum of the two scores. Words
  // that are 0 are not looked at. above: the rows that pass whose sum is above the threshold.
  bool (*score_pair)(const TableView& table, const PairScores& pair, RowBlock block,
                     std::int64_t threshold, std::uint64_t* feasible, std::int64_t* total,
                     std::uint64_t* above);
  // Takes the feasible rows' scores of at least `least` into *range.
  void (*extend_range)(const std::int64_t* scores, std::int64_t least,
                       const std::uint64_t* feasible, std::uint32_t words, ScoreRange* range);
  // total[i] += weight * the normalised scores[i].
  bool (*add_normalised)(std::uint32_t normalise, const ScoreRange& range, std::int32_t weight,
                         const std::int64_t* scores, std::uint32_t words, std::int64_t* total);
  // total[i] = (add ? total[i] : 0) + weight * scores[i]; small: the scores of feasible rows are
  // within +-2^30.
  void (*accumulate)(const std::int64_t* scores, std::int32_t weight, bool small, bool add,
                     std::uint32_t words, std::int64_t* total);
  // Which of 64 rows have a score above the threshold.
  std::uint64_t (*above)(const std::int64_t* total, std::int64_t threshold);
  // Which of 64 rows from `row` on have a score above the threshold, or at it and a tie hash of at
  // least min_hash.
  std::uint64_t (*above_hashed)(const std::int64_t* total, std::int64_t threshold,
                                std::uint64_t seed, std::uint64_t tie, std::uint32_t row,
                                std::uint64_t min_hash);
};

// What is asked of whole columns of domains and counts.
struct DomainKernels {
  // Of 64 rows from `row` on, which have a domain below `end` in the column.
  std::uint64_t (*rows_with_domain)(const TableView& table, std::uint32_t column, std::uint32_t row,
                                    std::uint32_t end);
  // Adds the domains of those of 64 rows from `row` on that are set in `rows`, all of which have
  // one, to the bits of *seen. False, and nothing is added, if one is above 63.
  bool (*low_domains)(const TableView& table, std::uint32_t column, std::uint32_t row,
                      std::uint64_t rows, std::uint64_t* seen);
  // The least of the counts [0, n) whose entry in `nodes` is above 0, INT32_MAX if there is none,
  // and how many such entries there are. Reads up to the next multiple of 64.
  void (*least_count)(const std::int32_t* counts, const std::int32_t* nodes, std::uint32_t n,
                      std::int32_t* least, std::uint32_t* with_nodes);
  bool (*any_positive)(const std::int32_t* counts, std::uint32_t n);
};

// Of this processor's widest instructions.
const BlockKernels& block_kernels();
const DomainKernels& domain_kernels();

}  // namespace penstock
#endif
