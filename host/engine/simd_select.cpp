#include "penstock/engine/simd_select.h"

#include <algorithm>
#include <bit>
#include <vector>

#include "penstock/engine/scalar_select.h"
#include "penstock/engine/simd_fgd.h"
#include "penstock/engine/simd_select_blocks.h"
#include "penstock/engine/simd_select_context.h"
#include "penstock/engine/simd_select_plan.h"

namespace penstock {
namespace {

// Per thread, and kept from call to call: for each row of the table a bit, the sum of its scores,
// and the raw scores of kStored operations. Only programs that normalise more than BITS need it.
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
        rows_(table.header->rows),
        plan_(program, task) {
    for (const penstock_column_op* op : plan_.normalised) normalised_[n_normalised_++].op = op;
    for (std::uint32_t part = 0; part < plan_.n_parts(); part++) parts_[part].n_best = 0;
  }

  // Equal scores go to the row that comes first in the order in which rows are looked at, so that
  // only a higher score is of interest; the tie hash apart.
  void run() {
    const auto start = program_.tie == PENSTOCK_TIE_ROTATING && rows_ > 0
                           ? static_cast<std::uint32_t>(task_.tie % rows_)
                           : 0;
    simd_prepare_filters(&context_);
    if (n_normalised_ == 0) {
      stream(start, rows_);
      stream(0, start);
    } else {
      score_all();
      pick_all(start, rows_);
      pick_all(0, start);
    }
    join_parts();
  }

 private:
  struct Normalised {
    const penstock_column_op* op = nullptr;
    std::int64_t* raw = nullptr;  // by row; null: computed once more when it is wanted
    ScoreRange range;
  };

  // Raw scores whose bound is below 2^31; normalised ones are small, whatever the operation.
  static bool is_small(const penstock_column_op& op) {
    return op.normalise != PENSTOCK_NORMALISE_NONE ||
           (op.op != PENSTOCK_SCORE_FEATURES && op.op != PENSTOCK_SCORE_BEST_FIT &&
            op.op != PENSTOCK_SCORE_DOT_PRODUCT && op.op != PENSTOCK_SCORE_DOMAINS &&
            op.op != PENSTOCK_SCORE_SPREAD);
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
      if (!look_at(block, begin, end, feasible, total)) continue;
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
      if (!look_at(block, 0, rows_, feasible_at(row), scratch().total.data() + row)) continue;
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
      find_threshold(block, feasible);
      std::fill_n(above_, block.words, ~std::uint64_t{0});
      above_is_known_ = false;
      pick(block, feasible, total);
    }
  }

  // Which rows of the block pass the filters, and the weighted sum of their scores that are neither
  // normalised nor deferred; false when no row passes.
  bool look_at(RowBlock block, std::uint32_t begin, std::uint32_t end, std::uint64_t* feasible,
               std::int64_t* total) {
    std::copy_n(table_.bit_column(PENSTOCK_BIT_NODE) + block.begin / 64, block.words, feasible);
    clip(block, begin, end, feasible);
    for (const penstock_column_op* op : plan_.filters) {
      if (!any(feasible, block.words)) return false;
      filter(*op, block, feasible);
    }
    if (!any(feasible, block.words)) return false;
    find_threshold(block, feasible);
    bool scored = plan_.paired.n > 0;
    above_is_known_ = false;
    if (scored) {
      scored = kernels_.score_pair(table_, plan_.pair, block, threshold_, feasible, total, above_);
      if (!scored && plan_.paired_fit != nullptr) filter(*plan_.paired_fit, block, feasible);
      above_is_known_ = scored && plan_.plain.n == 0;
    }
    std::uint32_t n = 0;
    for (std::uint32_t w = 0; w < block.words; w++) n += bits_set(feasible[w]);
    result_->feasible += n;
    if (n == 0) return false;
    if (!scored) add_scores(plan_.paired, false, block, feasible, total);
    add_scores(plan_.plain, plan_.paired.n > 0, block, feasible, total);
    if (plan_.paired.n + plan_.plain.n == 0) std::fill_n(total, block.words * 64, 0);
    return true;
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
      for (std::uint32_t w = 0; w < block.words; w++)
        feasible[w] &= rows_with(term, block.begin / 64 + w);
    }
  }

  // Of the 64 rows of a word, those for which the term holds.
  std::uint64_t rows_with(const penstock_term& term, std::uint32_t word) const {
    const std::uint64_t bits = table_.bit_column(term.column)[word];
    return term.clear != 0 ? ~bits : bits;
  }

  // The weighted sum of the scores, on top of `total` if `add`.
  void add_scores(const OpList& ops, bool add, RowBlock block, const std::uint64_t* feasible,
                  std::int64_t* total) {
    std::int64_t scores[kBlockRows];
    for (const penstock_column_op* op : ops) {
      std::int64_t* target = !add && op->weight == 1 ? total : scores;
      score(*op, block, feasible, target);
      if (target == scores)
        kernels_.accumulate(scores, op->weight, is_small(*op), add, block.words, total);
      add = true;
    }
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

  // ---- the best rows of each part ----

  // Of the 64 rows of a word, those of a part.
  std::uint64_t rows_of_part(std::uint32_t part, std::uint32_t word) const {
    std::uint64_t rows = ~std::uint64_t{0};
    for (std::uint32_t t = 0; t < plan_.n_terms; t++) {
      const std::uint64_t with = rows_with(*plan_.term[t], word);
      rows &= ((part >> t) & 1) != 0 ? with : ~with;
    }
    return rows;
  }

  bool any_of_part(std::uint32_t part, RowBlock block, const std::uint64_t* feasible) const {
    for (std::uint32_t w = 0; w < block.words; w++)
      if ((feasible[w] & rows_of_part(part, block.begin / 64 + w)) != 0) return true;
    return false;
  }

  // threshold_: no row of the block whose score is not above it can be among the best of its part.
  void find_threshold(RowBlock block, const std::uint64_t* feasible) {
    threshold_ = INT64_MAX;
    for (std::uint32_t part = 0; part < plan_.n_parts(); part++)
      if (any_of_part(part, block, feasible))
        threshold_ = std::min(threshold_, threshold_of(parts_[part]));
  }
  std::int64_t threshold_of(const penstock_result& best) const {
    if (best.n_best < program_.best) return INT64_MIN;
    return best.best[best.n_best - 1].score - (program_.tie == PENSTOCK_TIE_HASH ? 1 : 0);
  }

  // Shows the rows that may be among the best to scalar_insert. Rows that cannot be, even with the
  // most that the deferred operations could add, are left at that.
  void pick(RowBlock block, const std::uint64_t* feasible, const std::int64_t* total) {
    note_parts(block, feasible);
    if (plan_.deferred.n == 0) return pick_among(block, feasible, total);
    above_is_known_ = false;
    for (std::uint32_t w = 0; w < block.words;) {
      std::uint32_t end = w;
      while (end < block.words && may_be_best(feasible, total, end)) end++;
      if (end == w) {
        w++;
        continue;
      }
      const RowBlock run = {block.begin + w * 64, end - w};
      std::int64_t sum[kBlockRows];
      std::copy_n(total + w * 64, run.words * 64, sum);
      add_scores(plan_.deferred, true, run, feasible + w, sum);
      pick_among(run, feasible + w, sum);
      w = end;
    }
  }

  bool may_be_best(const std::uint64_t* feasible, const std::int64_t* total,
                   std::uint32_t w) const {
    if (feasible[w] == 0 || threshold_ == INT64_MIN) return feasible[w] != 0;
    return (feasible[w] & kernels_.above(total + w * 64, threshold_ - plan_.deferred_most)) != 0;
  }

  void note_parts(RowBlock block, const std::uint64_t* feasible) {
    for (std::uint32_t part = 0; part < plan_.n_parts(); part++)
      if (has_rows_[part] == 0) has_rows_[part] = any_of_part(part, block, feasible) ? 1 : 0;
  }

  void pick_among(RowBlock block, const std::uint64_t* feasible, const std::int64_t* total) {
    for (std::uint32_t w = 0; w < block.words; w++) {
      if (feasible[w] == 0) continue;
      std::uint64_t rows = feasible[w];
      if (above_is_known_) {
        rows &= above_[w];
      } else if (threshold_ != INT64_MIN) {
        rows &= kernels_.above(total + w * 64, threshold_);
      }
      for (std::uint32_t part = 0; part < plan_.n_parts() && rows != 0; part++) {
        const std::uint64_t of_part = rows & rows_of_part(part, block.begin / 64 + w);
        if (of_part != 0)
          pick_of_part(of_part, total + w * 64, block.begin + w * 64, &parts_[part]);
      }
    }
  }

  void pick_of_part(std::uint64_t rows, const std::int64_t* total, std::uint32_t begin,
                    penstock_result* best) {
    for_each_bit(rows & candidates(*best, total, begin), [&](std::uint32_t i) {
      scalar_insert(program_, task_, rows_, begin + i, total[i], best);
    });
  }

  std::uint64_t candidates(const penstock_result& best, const std::int64_t* total,
                           std::uint32_t row) const {
    if (best.n_best < program_.best) return ~std::uint64_t{0};
    const penstock_best& last = best.best[best.n_best - 1];
    if (program_.tie != PENSTOCK_TIE_HASH) return kernels_.above(total, last.score);
    return kernels_.above_hashed(
        total, last.score, program_.seed, task_.tie, row,
        penstock_tie_hash(program_.seed, task_.tie, static_cast<std::uint64_t>(last.row)));
  }

  // Rows of one part get the same from what divides them, so that the best of all are among the
  // best of the parts.
  void join_parts() {
    std::int64_t values[SelectPlan::kMaxParts];
    plan_.weigh_parts(has_rows_, values);
    for (std::uint32_t part = 0; part < plan_.n_parts(); part++) {
      for (std::uint32_t i = 0; i < parts_[part].n_best; i++) {
        const penstock_best& best = parts_[part].best[i];
        scalar_insert(program_, task_, rows_, static_cast<std::uint32_t>(best.row),
                      best.score + values[part] + plan_.base, result_);
      }
    }
  }

  static void clip(RowBlock block, std::uint32_t begin, std::uint32_t end,
                   std::uint64_t* feasible) {
    if (begin <= block.begin && block.begin + block.words * 64 <= end) return;
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
  const SelectPlan plan_;
  Normalised normalised_[PENSTOCK_MAX_OPS];
  std::uint32_t n_normalised_ = 0;

  penstock_result parts_[SelectPlan::kMaxParts];
  std::uint8_t has_rows_[SelectPlan::kMaxParts] = {};
  // Of the block that is looked at.
  std::int64_t threshold_ = INT64_MIN;
  std::uint64_t above_[kBlockWords];
  bool above_is_known_ = false;
};

}  // namespace

void simd_select(const TableView& table, const penstock_program& program, const penstock_task& task,
                 bool commit, penstock_result* result) {
  *result = {};
  Selection(table, program, task, result).run();
  scalar_finish(table, program, task, commit, result);
}

}  // namespace penstock
