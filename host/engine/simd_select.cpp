#include "penstock/engine/simd_select.h"

#include <algorithm>
#include <bit>
#include <utility>
#include <vector>

#include "penstock/engine/scalar_select.h"
#include "penstock/engine/simd_fgd.h"
#include "penstock/engine/simd_select_blocks.h"
#include "penstock/engine/simd_select_context.h"

namespace penstock {
namespace {

// Per thread, and kept from call to call: for each row of the table a bit, the sum of its scores,
// and the raw scores of kStored operations. Only programs that normalise need it.
constexpr std::uint32_t kStored = 4;
struct Scratch {
  std::vector<std::uint64_t> feasible;
  std::vector<std::int64_t> total;
  std::vector<std::int64_t> raw[kStored];
};

// The compiler's own is a call where the processor need not have an instruction for it.
std::uint32_t bits_set(std::uint64_t word) {
  word -= (word >> 1) & UINT64_C(0x5555555555555555);
  word = (word & UINT64_C(0x3333333333333333)) + ((word >> 2) & UINT64_C(0x3333333333333333));
  word = (word + (word >> 4)) & UINT64_C(0x0f0f0f0f0f0f0f0f);
  return static_cast<std::uint32_t>((word * UINT64_C(0x0101010101010101)) >> 56);
}

template <typename Function>
void for_each_bit(std::uint64_t word, Function function) {
  for (; word != 0; word &= word - 1) function(static_cast<std::uint32_t>(std::countr_zero(word)));
}

class Selection {
 public:
  Selection(const TableView& table, const penstock_program& program, const penstock_task& task,
            penstock_result* result)
      : table_(table),
        program_(program),
        task_(task),
        result_(result),
        context_(table, program, task, DecisionContext::Unprepared{}),
        kernels_(block_kernels()),
        rows_(table.header->rows) {}

  // Equal scores go to the row that comes first in the order in which rows are looked at, so that
  // only a higher score is of interest; the tie hash apart.
  void run() {
    const auto start = program_.tie == PENSTOCK_TIE_ROTATING && rows_ > 0
                           ? static_cast<std::uint32_t>(task_.tie % rows_)
                           : 0;
    sort_operations();
    simd_prepare_filters(&context_);
    if (n_normalised_ == 0) {
      stream(start, rows_);
      stream(0, start);
    } else {
      score_all();
      pick_all(start, rows_);
      pick_all(0, start);
    }
    for (std::uint32_t i = 0; i < result_->n_best; i++) result_->best[i].score += base_;
  }

 private:
  // An operation whose scores can only be weighed once those of all rows are known: it is
  // normalised, or it is SPREAD, which wants to know of all rows which are feasible.
  struct Normalised {
    const penstock_column_op* op;
    std::int64_t* raw;  // by row; null: computed once more when it is wanted
    ScoreRange range;
  };

  static bool is_score(const penstock_column_op& op) { return PENSTOCK_COLUMN_OP_IS_SCORE(op.op); }

  // Raw scores whose bound is below 2^31; normalised ones are small, whatever the operation.
  static bool is_small(const penstock_column_op& op) {
    return op.normalise != PENSTOCK_NORMALISE_NONE ||
           (op.op != PENSTOCK_SCORE_FEATURES && op.op != PENSTOCK_SCORE_BEST_FIT &&
            op.op != PENSTOCK_SCORE_DOT_PRODUCT && op.op != PENSTOCK_SCORE_DOMAINS &&
            op.op != PENSTOCK_SCORE_SPREAD);
  }

  // Whether the raw score of every row is 0 because the task names nothing of what is scored.
  bool is_zero(const penstock_column_op& op) const {
    switch (op.op) {
      case PENSTOCK_SCORE_BITS:
        return std::none_of(task_.terms, task_.terms + task_.n_terms,
                            [&](const penstock_term& term) { return term.group == op.group; });
      case PENSTOCK_SCORE_DOMAINS:
      case PENSTOCK_SCORE_SPREAD:
        return std::none_of(
            task_.domain_terms, task_.domain_terms + task_.n_domain_terms,
            [&](const penstock_domain_term& term) { return term.group == op.group; });
      case PENSTOCK_SCORE_GPU_PACKING:
      case PENSTOCK_SCORE_GPU_CLUSTERING:
        return task_.gpu_count == 0;
      default:
        return false;
    }
  }

  void sort_operations() {
    bool any_percent = false;
    for (std::uint32_t i = 0; i < program_.n_ops; i++) {
      const penstock_column_op& op = program_.ops[i];
      if (!is_score(op) || op.weight == 0) continue;
      if (is_zero(op)) {
        if (!scalar_is_idle(op, task_))
          base_ += op.weight * scalar_normalise_one(op.normalise, {}, 0);
      } else if (op.normalise != PENSTOCK_NORMALISE_NONE || op.op == PENSTOCK_SCORE_SPREAD) {
        normalised_[n_normalised_++] = {&op, nullptr, {}};
      } else if (is_percent(op) && std::exchange(any_percent, true)) {
        deferred_[n_deferred_++] = &op;
        deferred_most_ += std::max<std::int64_t>(op.weight * std::int64_t{100}, 0);
      } else {
        plain_[n_plain_++] = &op;
      }
    }
  }

  // Scores from 0 to 100. All but the first are deferred: rows that they could not make one of the
  // best do without them.
  static bool is_percent(const penstock_column_op& op) {
    return op.op == PENSTOCK_SCORE_LEAST_ALLOCATED || op.op == PENSTOCK_SCORE_MOST_ALLOCATED ||
           op.op == PENSTOCK_SCORE_BALANCED || op.op == PENSTOCK_SCORE_RATIO ||
           op.op == PENSTOCK_SCORE_GPU_PACKING || op.op == PENSTOCK_SCORE_FGD;
  }

  // The block at `begin` of the rows below `end`.
  RowBlock block_at(std::uint32_t begin, std::uint32_t end) const {
    return {begin, std::min(kBlockWords, (end - begin + 63) / 64)};
  }

  // Without normalisation one pass does everything, over the rows [begin, end).
  void stream(std::uint32_t begin, std::uint32_t end) {
    std::uint64_t feasible[kBlockWords];
    std::int64_t total[kBlockRows] = {};
    for (std::uint32_t row = begin & ~63u; row < end; row += kBlockRows) {
      const RowBlock block = block_at(row, end);
      if (!filter(block, begin, end, feasible)) continue;
      sum_scores(block, feasible, total);
      pick(block, feasible, total);
    }
  }

  // First what needs no other row, block by block; then SPREAD, block by block, with what is known
  // of all feasible rows by then.
  void score_all() {
    const std::uint32_t capacity = table_.header->capacity;
    if (scratch().total.size() < capacity) {
      scratch().feasible.resize(capacity / 64);
      scratch().total.resize(capacity);
    }
    for (std::uint32_t k = 0; k < std::min(n_normalised_, kStored); k++) {
      if (scratch().raw[k].size() < capacity) scratch().raw[k].resize(capacity);
      normalised_[k].raw = scratch().raw[k].data();
    }
    for (std::uint32_t row = 0; row < rows_; row += kBlockRows) {
      const RowBlock block = block_at(row, rows_);
      if (!filter(block, 0, rows_, feasible_at(row))) continue;
      sum_scores(block, feasible_at(row), scratch().total.data() + row);
      score_raw(block, false);
    }
    if (!any_spread()) return;
    simd_weigh_domains(scratch().feasible.data(), &context_);
    for (std::uint32_t row = 0; row < rows_; row += kBlockRows) {
      const RowBlock block = block_at(row, rows_);
      if (any(feasible_at(row), block.words)) score_raw(block, true);
    }
  }

  // SPREAD alone can be known not to be.
  bool may_be_negative(const penstock_column_op& op) const {
    if (op.op != PENSTOCK_SCORE_SPREAD) return true;
    return std::any_of(task_.domain_terms, task_.domain_terms + task_.n_domain_terms,
                       [&](const penstock_domain_term& term) {
                         return term.group == op.group &&
                                (term.kind & PENSTOCK_SPREAD_REQUIRED) != 0;
                       });
  }

  bool any_spread() const {
    return std::any_of(normalised_, normalised_ + n_normalised_,
                       [](const auto& n) { return n.op->op == PENSTOCK_SCORE_SPREAD; });
  }

  // The raw scores and the range of those operations that are SPREAD, or of those that are not.
  void score_raw(RowBlock block, bool spread) {
    std::int64_t scores[kBlockRows];
    for (std::uint32_t k = 0; k < n_normalised_; k++) {
      Normalised& normalised = normalised_[k];
      const penstock_column_op& op = *normalised.op;
      if ((op.op == PENSTOCK_SCORE_SPREAD) != spread) continue;
      std::int64_t* raw = normalised.raw == nullptr ? scores : normalised.raw + block.begin;
      score(op, block, feasible_at(block.begin), raw);
      if (op.normalise == PENSTOCK_NORMALISE_NONE) continue;
      const bool ignores = op.normalise == PENSTOCK_NORMALISE_SPREAD && may_be_negative(op);
      kernels_.extend_range(raw, ignores ? 0 : INT64_MIN, feasible_at(block.begin), block.words,
                            &normalised.range);
    }
  }

  void add_normalised(const Normalised& normalised, RowBlock block, const std::uint64_t* feasible,
                      std::int64_t* total) {
    const penstock_column_op& op = *normalised.op;
    std::int64_t scores[kBlockRows];
    const std::int64_t* raw = normalised.raw == nullptr ? scores : normalised.raw + block.begin;
    if (raw == scores) score(op, block, feasible, scores);
    if (op.normalise == PENSTOCK_NORMALISE_NONE) {
      kernels_.accumulate(raw, op.weight, is_small(op), true, block.words, total);
    } else if (!kernels_.add_normalised(op.normalise, normalised.range, op.weight, raw, block.words,
                                        total)) {
      for_each_row(feasible, block.words, [&](std::uint32_t i) {
        total[i] += op.weight * scalar_normalise_one(op.normalise, normalised.range, raw[i]);
      });
    }
  }

  // Picks among the rows [begin, end) of what score_all left. Blocks lie the same whatever `begin`
  // is; one that holds rows of two calls is completed in the first, which is for its upper rows.
  void pick_all(std::uint32_t begin, std::uint32_t end) {
    for (std::uint32_t row = begin / kBlockRows * kBlockRows; row < end; row += kBlockRows) {
      const RowBlock block = block_at(row, rows_);
      if (!any(feasible_at(row), block.words)) continue;
      std::int64_t* total = scratch().total.data() + row;
      if (end == rows_ || row + kBlockRows <= end) {
        for (std::uint32_t k = 0; k < n_normalised_; k++)
          add_normalised(normalised_[k], block, feasible_at(row), total);
      }
      std::uint64_t feasible[kBlockWords];
      std::copy_n(feasible_at(row), block.words, feasible);
      clip(block, begin, end, feasible);
      pick(block, feasible, total);
    }
  }

  // Which rows of the block pass the filters; false when none does.
  bool filter(RowBlock block, std::uint32_t begin, std::uint32_t end, std::uint64_t* feasible) {
    std::copy_n(table_.bit_column(PENSTOCK_BIT_NODE) + block.begin / 64, block.words, feasible);
    clip(block, begin, end, feasible);
    for (std::uint32_t i = 0; i < program_.n_ops && !is_score(program_.ops[i]); i++) {
      if (!any(feasible, block.words)) return false;
      filter(program_.ops[i], block, feasible);
    }
    std::uint32_t n = 0;
    for (std::uint32_t w = 0; w < block.words; w++) n += bits_set(feasible[w]);
    result_->feasible += n;
    return n != 0;
  }

  void filter(const penstock_column_op& op, RowBlock block, std::uint64_t* feasible) {
    if (op.op == PENSTOCK_FILTER_BITS) {
      filter_bits(op, block, feasible);
    } else if (op.op == PENSTOCK_FILTER_ROW) {
      if (task_.row >= 0) {
        const auto row = static_cast<std::uint32_t>(task_.row);
        clip(block, row, row + 1, feasible);
      }
    } else if (!kernels_.filter(context_, op, block, feasible)) {
      for_each_row(feasible, block.words, [&](std::uint32_t i) {
        if (!scalar_filter(context_, op, block.begin + i))
          feasible[i / 64] &= ~(std::uint64_t{1} << (i % 64));
      });
    }
  }

  void filter_bits(const penstock_column_op& op, RowBlock block, std::uint64_t* feasible) {
    for (std::uint32_t t = 0; t < task_.n_terms; t++) {
      const penstock_term& term = task_.terms[t];
      if (term.group != op.group) continue;
      const std::uint64_t* column = table_.bit_column(term.column) + block.begin / 64;
      const std::uint64_t flip = term.clear != 0 ? ~std::uint64_t{0} : 0;
      for (std::uint32_t w = 0; w < block.words; w++) feasible[w] &= column[w] ^ flip;
    }
  }

  // The weighted sum of the scores that are not normalised.
  void sum_scores(RowBlock block, const std::uint64_t* feasible, std::int64_t* total) {
    std::int64_t scores[kBlockRows];
    for (std::uint32_t i = 0; i < n_plain_; i++) {
      const penstock_column_op& op = *plain_[i];
      std::int64_t* target = i == 0 && op.weight == 1 ? total : scores;
      score(op, block, feasible, target);
      if (target == scores)
        kernels_.accumulate(scores, op.weight, is_small(op), i > 0, block.words, total);
    }
    if (n_plain_ == 0) std::fill_n(total, block.words * 64, 0);
  }

  void score(const penstock_column_op& op, RowBlock block, const std::uint64_t* feasible,
             std::int64_t* scores) {
    if (op.op == PENSTOCK_SCORE_FGD) {
      const FgdTables& tables = FgdTables::of(program_);
      for_each_row(feasible, block.words, [&](std::uint32_t i) {
        scores[i] = tables.score(table_, program_, op, task_, block.begin + i, nullptr);
      });
      return;
    }
    if (kernels_.score(context_, op, block, scores)) return;
    for_each_row(feasible, block.words,
                 [&](std::uint32_t i) { scores[i] = scalar_score(context_, op, block.begin + i); });
  }

  // Shows the rows that may be among the best to scalar_insert. Rows that cannot be, even with the
  // most that the deferred operations could add, are left at that.
  void pick(RowBlock block, const std::uint64_t* feasible, const std::int64_t* total) {
    if (n_deferred_ == 0) return pick_among(block, feasible, total);
    for (std::uint32_t w = 0; w < block.words;) {
      std::uint32_t end = w;
      while (end < block.words && may_be_best(feasible, total, end)) end++;
      if (end == w) {
        w++;
        continue;
      }
      const RowBlock run = {block.begin + w * 64, end - w};
      std::int64_t sum[kBlockRows];
      std::int64_t scores[kBlockRows];
      std::copy_n(total + w * 64, run.words * 64, sum);
      for (std::uint32_t i = 0; i < n_deferred_; i++) {
        score(*deferred_[i], run, feasible + w, scores);
        kernels_.accumulate(scores, deferred_[i]->weight, true, true, run.words, sum);
      }
      pick_among(run, feasible + w, sum);
      w = end;
    }
  }

  bool may_be_best(const std::uint64_t* feasible, const std::int64_t* total,
                   std::uint32_t w) const {
    if (feasible[w] == 0) return false;
    if (result_->n_best < program_.best) return true;
    const std::int64_t last = result_->best[result_->n_best - 1].score;
    const std::int64_t tied = program_.tie == PENSTOCK_TIE_HASH ? 1 : 0;
    return (feasible[w] & kernels_.above(total + w * 64, last - tied - deferred_most_)) != 0;
  }

  void pick_among(RowBlock block, const std::uint64_t* feasible, const std::int64_t* total) {
    for (std::uint32_t w = 0; w < block.words; w++) {
      if (feasible[w] == 0) continue;
      for_each_bit(feasible[w] & candidates(total + w * 64, block.begin + w * 64),
                   [&](std::uint32_t i) {
                     scalar_insert(program_, task_, rows_, block.begin + w * 64 + i,
                                   total[w * 64 + i], result_);
                   });
    }
  }

  std::uint64_t candidates(const std::int64_t* total, std::uint32_t row) const {
    if (result_->n_best < program_.best) return ~std::uint64_t{0};
    const penstock_best& last = result_->best[result_->n_best - 1];
    if (program_.tie != PENSTOCK_TIE_HASH) return kernels_.above(total, last.score);
    return kernels_.above_hashed(
        total, last.score, program_.seed, task_.tie, row,
        penstock_tie_hash(program_.seed, task_.tie, static_cast<std::uint64_t>(last.row)));
  }

  static void clip(RowBlock block, std::uint32_t begin, std::uint32_t end,
                   std::uint64_t* feasible) {
    for (std::uint32_t w = 0; w < block.words; w++) {
      const std::uint32_t row = block.begin + w * 64;
      feasible[w] &= bits_below(end, row) & ~bits_below(begin, row);
    }
  }
  // The bits of the rows [row, row + 64) that are below `end`.
  static std::uint64_t bits_below(std::uint32_t end, std::uint32_t row) {
    if (end <= row) return 0;
    return end - row >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << (end - row)) - 1;
  }

  static bool any(const std::uint64_t* words, std::uint32_t n) {
    return std::any_of(words, words + n, [](std::uint64_t word) { return word != 0; });
  }

  template <typename Function>
  static void for_each_row(const std::uint64_t* feasible, std::uint32_t words, Function function) {
    for (std::uint32_t w = 0; w < words; w++)
      for_each_bit(feasible[w], [&](std::uint32_t i) { function(w * 64 + i); });
  }

  std::uint64_t* feasible_at(std::uint32_t row) { return scratch().feasible.data() + row / 64; }

  static Scratch& scratch() {
    thread_local Scratch scratch;
    return scratch;
  }

  const TableView& table_;
  const penstock_program& program_;
  const penstock_task& task_;
  penstock_result* result_;
  DecisionContext context_;
  const BlockKernels& kernels_;
  const std::uint32_t rows_;
  std::int64_t base_ = 0;  // what every row gets
  const penstock_column_op* plain_[PENSTOCK_MAX_OPS];
  std::uint32_t n_plain_ = 0;
  const penstock_column_op* deferred_[PENSTOCK_MAX_OPS];
  std::uint32_t n_deferred_ = 0;
  std::int64_t deferred_most_ = 0;  // what they add at most
  Normalised normalised_[PENSTOCK_MAX_OPS];
  std::uint32_t n_normalised_ = 0;
};

}  // namespace

void simd_select(const TableView& table, const penstock_program& program, const penstock_task& task,
                 bool commit, penstock_result* result) {
  *result = {};
  Selection(table, program, task, result).run();
  scalar_finish(table, program, task, commit, result);
}

}  // namespace penstock
