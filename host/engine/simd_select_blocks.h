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

struct BlockKernels {
  // FIT and GPU: clears the bits of rows that do not pass; words that are 0 are not looked at.
  bool (*filter)(const TableView& table, const penstock_column_op& op, const penstock_task& task,
                 RowBlock block, std::uint64_t* feasible);
  // scores[0 .. 64 * words): raw scores.
  bool (*score)(const TableView& table, const penstock_column_op& op, const penstock_task& task,
                RowBlock block, std::int64_t* scores);
  // Takes the feasible rows' scores into *range.
  void (*extend_range)(const std::int64_t* scores, const std::uint64_t* feasible,
                       std::uint32_t words, ScoreRange* range);
  // Normalises in place.
  bool (*normalise)(std::uint32_t normalise, const ScoreRange& range, std::uint32_t words,
                    std::int64_t* scores);
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

// Of this processor's widest instructions.
const BlockKernels& block_kernels();

}  // namespace penstock
#endif
