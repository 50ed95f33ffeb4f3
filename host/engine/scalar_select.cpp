#include "penstock/engine/scalar_select.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "penstock/descriptor/descriptor.h"
#include "penstock/engine/scalar_fgd.h"

namespace penstock {
namespace {

// A cell as every computation reads it: what a damaged pool holds is brought back into its bounds.
std::int64_t quantity(const TableView& table, std::int64_t* base, std::uint32_t column,
                      std::uint32_t row) {
  return std::clamp<std::int64_t>(table.column(base, column)[row], 0, PENSTOCK_MAX_QUANTITY);
}
std::int64_t gpu_free(const TableView& table, std::uint32_t gpu, std::uint32_t row) {
  return std::clamp<std::int64_t>(table.column(table.gpu, gpu)[row], 0, 1000);
}
std::int64_t free_value(const TableView& table, std::uint32_t column, std::uint32_t row) {
  return std::clamp<std::int64_t>(table.column(table.free, column)[row], -PENSTOCK_MAX_FREE_VALUE,
                                  PENSTOCK_MAX_FREE_VALUE);
}
bool bit(const TableView& table, std::uint32_t column, std::uint32_t row) {
  return (table.bit_column(column)[row / 64] >> (row % 64)) & 1;
}

// What a task leaves of a resource is allocatable - requested, which a damaged pool makes negative.
std::int64_t left(const TableView& table, std::uint32_t resource, std::uint32_t row) {
  return quantity(table, table.allocatable, resource, row) -
         quantity(table, table.requested, resource, row);
}

std::int64_t truncate(double value) {
  constexpr double kLimit = static_cast<double>(PENSTOCK_MAX_FREE_VALUE);
  return static_cast<std::int64_t>(std::clamp(value, -kLimit, kLimit));
}

bool term_holds(const TableView& table, const penstock_term& term, std::uint32_t row) {
  return bit(table, term.column, row) != (term.clear != 0);
}

bool bits_hold(const TableView& table, const penstock_column_op& op, const penstock_task& task,
               std::uint32_t row) {
  for (std::uint32_t i = 0; i < task.n_terms; i++)
    if (task.terms[i].group == op.group && !term_holds(table, task.terms[i], row)) return false;
  return true;
}

bool fits(const TableView& table, const penstock_column_op& op, const penstock_task& task,
          std::uint32_t row) {
  for (std::uint32_t i = 0; i < op.n; i++) {
    const std::int64_t request = task.request[op.column[i]];
    if (request != 0 && request > left(table, op.column[i], row)) return false;
  }
  return true;
}

bool gpus_fit(const TableView& table, const penstock_task& task, std::uint32_t row) {
  std::uint32_t fitting = 0;
  for (std::uint32_t s = 0; s < table.header->n_gpus; s++)
    fitting += gpu_free(table, s, row) >= task.gpu_milli;
  return task.gpu_count == 0 || fitting >= task.gpu_count;
}

bool leaves_the_sum(const penstock_column_op& op, std::uint32_t i, const penstock_task& task) {
  return ((op.skip_unasked >> i) & 1) != 0 && task.request[op.column[i]] == 0;
}

// LEAST_ALLOCATED and MOST_ALLOCATED.
std::int64_t allocation_score(const TableView& table, const penstock_column_op& op,
                              const penstock_task& task, std::uint32_t row) {
  std::int64_t sum = 0;
  std::int64_t weights = 0;
  for (std::uint32_t i = 0; i < op.n; i++) {
    const std::uint32_t r = op.column[i];
    const std::int64_t allocatable = quantity(table, table.allocatable, r, row);
    if (allocatable == 0 || leaves_the_sum(op, i, task)) continue;
    const std::int64_t used = quantity(table, table.scored, r, row) + task.scored_request[r];
    const std::int64_t counted = op.op == PENSTOCK_SCORE_LEAST_ALLOCATED
                                     ? std::max<std::int64_t>(allocatable - used, 0)
                                     : std::min(used, allocatable);
    sum += counted * 100 / allocatable * op.list_weight[i];
    weights += op.list_weight[i];
  }
  return weights == 0 ? 0 : sum / weights;
}

std::int64_t ratio_score(const TableView& table, const penstock_program& program,
                         const penstock_column_op& op, const penstock_task& task,
                         std::uint32_t row) {
  std::int64_t sum = 0;
  std::int64_t weights = 0;
  for (std::uint32_t i = 0; i < op.n; i++) {
    const std::uint32_t r = op.column[i];
    const std::int64_t allocatable = quantity(table, table.allocatable, r, row);
    if (allocatable == 0 || leaves_the_sum(op, i, task)) continue;
    const std::int64_t used = quantity(table, table.scored, r, row) + task.scored_request[r];
    const std::int64_t share = program.shape[used > allocatable ? 100 : used * 100 / allocatable];
    if (share == 0) continue;
    sum += share * op.list_weight[i];
    weights += op.list_weight[i];
  }
  if (weights == 0) return 0;
  return static_cast<std::int64_t>(
      std::round(static_cast<double>(sum) / static_cast<double>(weights)));
}

std::int64_t balanced_score(const TableView& table, const penstock_column_op& op,
                            const penstock_task& task, std::uint32_t row) {
  std::array<double, PENSTOCK_MAX_RESOURCES> fractions;
  std::uint32_t n = 0;
  double total = 0;
  bool asks = false;
  for (std::uint32_t i = 0; i < op.n; i++) {
    const std::uint32_t r = op.column[i];
    asks = asks || task.request[r] > 0;
    const std::int64_t allocatable = quantity(table, table.allocatable, r, row);
    if (allocatable == 0 || leaves_the_sum(op, i, task)) continue;
    const std::int64_t used = quantity(table, table.requested, r, row) + task.request[r];
    fractions[n] = std::min(1.0, static_cast<double>(used) / static_cast<double>(allocatable));
    total += fractions[n++];
  }
  if (!asks) return 0;
  double deviation = 0;
  if (n == 2) {
    deviation = std::fabs(fractions[0] - fractions[1]) / 2;
  } else if (n > 2) {
    const double mean = total / n;
    double squares = 0;
    for (std::uint32_t i = 0; i < n; i++) squares += (fractions[i] - mean) * (fractions[i] - mean);
    deviation = std::sqrt(squares / n);
  }
  return truncate((1 - deviation) * 100);
}

std::int64_t bits_score(const TableView& table, const penstock_column_op& op,
                        const penstock_task& task, std::uint32_t row) {
  std::int64_t sum = 0;
  for (std::uint32_t i = 0; i < task.n_terms; i++)
    if (task.terms[i].group == op.group && term_holds(table, task.terms[i], row))
      sum += task.terms[i].weight;
  return sum;
}

std::int64_t features_score(const TableView& table, const penstock_column_op& op,
                            const penstock_task& task, std::uint32_t row) {
  std::int64_t sum = 0;
  for (std::uint32_t j = 0; j < op.n; j++)
    sum += task.feature[j] * free_value(table, op.column[j], row);
  return sum;
}

std::int64_t best_fit_score(const TableView& table, const penstock_column_op& op,
                            const penstock_task& task, std::uint32_t row) {
  double s = 0;
  for (std::uint32_t i = 0; i < op.n; i++) {
    const std::int64_t spare = left(table, op.column[i], row) - task.request[op.column[i]];
    s = s + 0.5 * static_cast<double>(spare) / static_cast<double>(op.scale[i]);
  }
  return truncate(100 * (1 - s));
}

std::int64_t dot_product_score(const TableView& table, const penstock_column_op& op,
                               const penstock_task& task, std::uint32_t row) {
  double s = 0;
  for (std::uint32_t i = 0; i < op.n; i++) {
    const double scale = static_cast<double>(op.scale[i]);
    s = s + static_cast<double>(left(table, op.column[i], row)) / scale *
                (static_cast<double>(task.request[op.column[i]]) / scale);
  }
  return truncate(100 * (1 - s / op.n));
}

// The GPUs of a row that have room for one of the task's, ordered by `before`, then by index.
struct Gpu {
  std::uint32_t index;
  std::int64_t free_milli;
};
struct FittingGpus {
  std::array<Gpu, PENSTOCK_MAX_GPUS> gpu;
  std::uint32_t n = 0;
};
template <typename Before>
FittingGpus fitting_gpus(const TableView& table, const penstock_task& task, std::uint32_t row,
                         Before before) {
  FittingGpus fitting;
  for (std::uint32_t s = 0; s < table.header->n_gpus; s++) {
    const Gpu gpu = {s, gpu_free(table, s, row)};
    if (gpu.free_milli < task.gpu_milli) continue;
    std::uint32_t at = fitting.n++;
    for (; at > 0 && before(gpu, fitting.gpu[at - 1]); at--) fitting.gpu[at] = fitting.gpu[at - 1];
    fitting.gpu[at] = gpu;
  }
  return fitting;
}
bool fuller(const Gpu& a, const Gpu& b) { return a.free_milli < b.free_milli; }

std::int64_t gpu_packing_score(const TableView& table, const penstock_column_op& op,
                               const penstock_task& task, std::uint32_t row) {
  if (task.gpu_count == 0) return 0;
  std::int64_t total = 0;
  for (std::uint32_t s = 0; s < table.header->n_gpus; s++) total += gpu_free(table, s, row);
  if (total > 0 && total == quantity(table, table.allocatable, op.column[0], row)) {
    const std::int64_t gpus = total / 1000;
    return std::max(33 - gpus, gpus);
  }
  const FittingGpus fitting = fitting_gpus(table, task, row, fuller);
  if (fitting.n < task.gpu_count) return 0;
  std::int64_t entirely_free = 0;
  std::int64_t percents = 0;
  for (std::uint32_t i = 0; i < task.gpu_count; i++) {
    entirely_free += fitting.gpu[i].free_milli == 1000;
    percents += fitting.gpu[i].free_milli / 10;
  }
  return entirely_free > 0 ? std::max<std::int64_t>(50 - entirely_free, 33)
                           : std::max<std::int64_t>(100 - percents / 10, 50);
}

std::int64_t gpu_clustering_score(const TableView& table, const penstock_column_op& op,
                                  const penstock_task& task, std::uint32_t row) {
  if (task.gpu_count == 0) return 0;
  std::int64_t total = 0;
  for (std::uint32_t s = 0; s < table.header->n_gpus; s++) total += gpu_free(table, s, row);
  bool own = false;
  bool others = false;
  for (std::uint32_t j = 0; j < op.n; j++)
    (j == task.klass ? own : others) |= free_value(table, op.column[j], row) > 0;
  const std::int64_t used = 25 * (op.scale[0] - total) / op.scale[0];
  if (own) return used + (others ? 50 : 75);
  return used + (others ? 0 : 25);
}

}  // namespace

bool scalar_filter(const DecisionContext& context, const penstock_column_op& op,
                   std::uint32_t row) {
  const TableView& table = context.table;
  const penstock_task& task = context.task;
  switch (op.op) {
    case PENSTOCK_FILTER_BITS:
      return bits_hold(table, op, task, row);
    case PENSTOCK_FILTER_FIT:
      return fits(table, op, task, row);
    case PENSTOCK_FILTER_GPU:
      return gpus_fit(table, task, row);
    case PENSTOCK_FILTER_ROW:
      return task.row == -1 || task.row == row;
    case PENSTOCK_FILTER_DOMAINS:
      return scalar_domains_pass(context, op, row);
  }
  return false;
}

std::int64_t scalar_score(const DecisionContext& context, const penstock_column_op& op,
                          std::uint32_t row) {
  const TableView& table = context.table;
  const penstock_task& task = context.task;
  switch (op.op) {
    case PENSTOCK_SCORE_LEAST_ALLOCATED:
    case PENSTOCK_SCORE_MOST_ALLOCATED:
      return allocation_score(table, op, task, row);
    case PENSTOCK_SCORE_BALANCED:
      return balanced_score(table, op, task, row);
    case PENSTOCK_SCORE_BITS:
      return bits_score(table, op, task, row);
    case PENSTOCK_SCORE_FEATURES:
      return features_score(table, op, task, row);
    case PENSTOCK_SCORE_BEST_FIT:
      return best_fit_score(table, op, task, row);
    case PENSTOCK_SCORE_DOT_PRODUCT:
      return dot_product_score(table, op, task, row);
    case PENSTOCK_SCORE_GPU_PACKING:
      return gpu_packing_score(table, op, task, row);
    case PENSTOCK_SCORE_GPU_CLUSTERING:
      return gpu_clustering_score(table, op, task, row);
    case PENSTOCK_SCORE_DOMAINS:
      return scalar_domains_score(context, op, row);
    case PENSTOCK_SCORE_SPREAD:
      return scalar_spread_score(context, op, row);
    case PENSTOCK_SCORE_RATIO:
      return ratio_score(table, context.program, op, task, row);
    case PENSTOCK_SCORE_FGD:
      return scalar_fgd_score(table, context.program, op, task, row, nullptr);
  }
  return 0;
}

ScoreRange scalar_score_range(std::uint32_t normalise, const std::int64_t* scores,
                              const std::uint8_t* feasible, std::uint32_t rows) {
  ScoreRange range;
  for (std::uint32_t row = 0; row < rows; row++) {
    if (!feasible[row]) continue;
    if (normalise == PENSTOCK_NORMALISE_SPREAD && scores[row] < 0) {
      range.has_ignored = true;
      continue;
    }
    range.min = range.any ? std::min(range.min, scores[row]) : scores[row];
    range.max = range.any ? std::max(range.max, scores[row]) : scores[row];
    range.any = true;
  }
  return range;
}

std::int64_t scalar_normalise_one(std::uint32_t normalise, const ScoreRange& range,
                                  std::int64_t score) {
  const std::int64_t max = std::max<std::int64_t>(range.max, 0);
  const std::int64_t spread = range.max - range.min;
  const auto limited = [](std::int64_t value) {
    return std::clamp<std::int64_t>(value, -PENSTOCK_MAX_NORMALISED, PENSTOCK_MAX_NORMALISED);
  };
  switch (normalise) {
    case PENSTOCK_NORMALISE_DEFAULT:
      return limited(max == 0 ? score : 100 * score / max);
    case PENSTOCK_NORMALISE_REVERSED:
      return limited(max == 0 ? 100 : 100 - 100 * score / max);
    case PENSTOCK_NORMALISE_MIN_MAX:
      return spread == 0 ? 0 : (score - range.min) * 100 / spread;
    case PENSTOCK_NORMALISE_MIN_MAX_F64:
      return spread == 0 ? 0
                         : truncate(100 * (static_cast<double>(score - range.min) /
                                           static_cast<double>(spread)));
    case PENSTOCK_NORMALISE_SPREAD:
      if (score < 0) return 0;
      return max == 0 ? 100 : 100 * (max + range.min - score) / max;
  }
  return score;
}

void scalar_normalise(const penstock_column_op& op, const penstock_task& task, std::int64_t* scores,
                      const std::uint8_t* feasible, std::uint32_t rows) {
  if (scalar_is_idle(op, task)) {
    for (std::uint32_t row = 0; row < rows; row++)
      if (feasible[row]) scores[row] = 0;
    return;
  }
  const ScoreRange range = scalar_score_range(op.normalise, scores, feasible, rows);
  for (std::uint32_t row = 0; row < rows; row++)
    if (feasible[row]) scores[row] = scalar_normalise_one(op.normalise, range, scores[row]);
}

std::uint32_t scalar_pick_gpus(const TableView& table, const penstock_program& program,
                               const penstock_task& task, std::uint32_t row) {
  if (task.gpu_count == 0) return 0;
  if (program.gpu_pick == PENSTOCK_GPU_FGD) {
    const auto is_fgd = [](const penstock_column_op& op) { return op.op == PENSTOCK_SCORE_FGD; };
    std::uint32_t mask = 0;
    scalar_fgd_score(table, program,
                     *std::find_if(program.ops, program.ops + program.n_ops, is_fgd), task, row,
                     &mask);
    return mask;
  }
  const auto hash = [&](const Gpu& gpu) {
    return penstock_tie_hash(program.seed, ~task.tie, gpu.index);
  };
  const FittingGpus fitting = fitting_gpus(table, task, row, [&](const Gpu& a, const Gpu& b) {
    if (program.gpu_pick == PENSTOCK_GPU_LEAST_FREE) return fuller(a, b);
    return program.gpu_pick == PENSTOCK_GPU_HASH && hash(a) > hash(b);
  });
  std::uint32_t mask = 0;
  for (std::uint32_t i = 0; i < std::min(fitting.n, task.gpu_count); i++)
    mask |= 1u << fitting.gpu[i].index;
  return mask;
}

bool scalar_better(const penstock_program& program, const penstock_task& task, std::uint32_t rows,
                   std::int64_t a_score, std::uint32_t a_row, std::int64_t b_score,
                   std::uint32_t b_row) {
  if (a_score != b_score) return a_score > b_score;
  if (program.tie == PENSTOCK_TIE_ROTATING) {
    const auto start = static_cast<std::uint32_t>(task.tie % rows);
    const auto distance = [&](std::uint32_t row) {
      return row >= start ? row - start : row + (rows - start);
    };
    return distance(a_row) < distance(b_row);
  }
  if (program.tie == PENSTOCK_TIE_HASH) {
    const std::uint64_t a = penstock_tie_hash(program.seed, task.tie, a_row);
    const std::uint64_t b = penstock_tie_hash(program.seed, task.tie, b_row);
    if (a != b) return a > b;
  }
  return a_row < b_row;
}

void scalar_insert(const penstock_program& program, const penstock_task& task, std::uint32_t rows,
                   std::uint32_t row, std::int64_t score, penstock_result* result) {
  std::uint32_t at = result->n_best;
  while (at > 0 && scalar_better(program, task, rows, score, row, result->best[at - 1].score,
                                 static_cast<std::uint32_t>(result->best[at - 1].row)))
    at--;
  if (at == program.best) return;
  if (result->n_best < program.best) result->n_best++;
  for (std::uint32_t i = result->n_best - 1; i > at; i--) result->best[i] = result->best[i - 1];
  result->best[at] = {static_cast<std::int32_t>(row), 0, score};
}

void scalar_finish(const TableView& table, const penstock_program& program,
                   const penstock_task& task, bool commit, penstock_result* result) {
  result->row = -1;
  result->status = PENSTOCK_NOT_FOUND;
  if (result->n_best == 0) return;
  const auto row = static_cast<std::uint32_t>(result->best[0].row);
  result->status = PENSTOCK_OK;
  result->row = result->best[0].row;
  result->score = result->best[0].score;
  result->gpu_mask = scalar_pick_gpus(table, program, task, row);
  if (!commit) return;
  result->status = scalar_commit(table, task, row, result->gpu_mask);
}

void scalar_select(const TableView& table, const penstock_program& program,
                   const penstock_task& task, bool commit, penstock_result* result) {
  *result = {};
  const std::uint32_t rows = table.header->rows;
  DecisionContext context(table, program, task);
  std::vector<std::uint8_t> feasible(rows);
  for (std::uint32_t row = 0; row < rows; row++) {
    bool passes = bit(table, PENSTOCK_BIT_NODE, row);
    for (std::uint32_t i = 0; i < program.n_ops && passes; i++)
      if (!PENSTOCK_COLUMN_OP_IS_SCORE(program.ops[i].op))
        passes = scalar_filter(context, program.ops[i], row);
    feasible[row] = passes;
    result->feasible += passes;
  }
  context.weigh_domains(feasible.data());

  std::vector<std::int64_t> total(rows);
  std::vector<std::int64_t> scores(rows);
  for (std::uint32_t i = 0; i < program.n_ops; i++) {
    const penstock_column_op& op = program.ops[i];
    if (!PENSTOCK_COLUMN_OP_IS_SCORE(op.op)) continue;
    for (std::uint32_t row = 0; row < rows; row++)
      if (feasible[row]) scores[row] = scalar_score(context, op, row);
    scalar_normalise(op, task, scores.data(), feasible.data(), rows);
    for (std::uint32_t row = 0; row < rows; row++)
      if (feasible[row]) total[row] += op.weight * scores[row];
  }

  for (std::uint32_t row = 0; row < rows; row++)
    if (feasible[row]) scalar_insert(program, task, rows, row, total[row], result);
  scalar_finish(table, program, task, commit, result);
}

}  // namespace penstock
