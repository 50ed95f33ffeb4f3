#include "penstock/engine/simd_select_plan.h"

#include <algorithm>
#include <utility>

namespace penstock {
namespace {

bool is_score(const penstock_column_op& op) { return PENSTOCK_COLUMN_OP_IS_SCORE(op.op); }

// Scores from 0 to 100.
bool is_percent(const penstock_column_op& op) {
  return op.op == PENSTOCK_SCORE_LEAST_ALLOCATED || op.op == PENSTOCK_SCORE_MOST_ALLOCATED ||
         op.op == PENSTOCK_SCORE_BALANCED || op.op == PENSTOCK_SCORE_RATIO ||
         op.op == PENSTOCK_SCORE_GPU_PACKING || op.op == PENSTOCK_SCORE_FGD;
}

// Whether two resources count in the score whatever the row, as far as the task goes.
bool counts_two(const penstock_column_op& op, const penstock_task& task) {
  if (op.n != 2 || op.weight == 0 || op.normalise != PENSTOCK_NORMALISE_NONE) return false;
  for (std::uint32_t i = 0; i < 2; i++)
    if (((op.skip_unasked >> i) & 1) != 0 && task.request[op.column[i]] == 0) return false;
  return true;
}

}  // namespace

SelectPlan::SelectPlan(const penstock_program& program, const penstock_task& task)
    : program_(program), task_(task) {
  find_pair();
  // All but the first percentage are deferred.
  bool any_percent = paired.n > 0;
  for (std::uint32_t i = 0; i < program.n_ops; i++) {
    const penstock_column_op& op = program.ops[i];
    if (!is_score(op)) {
      if (&op != paired_fit && may_refuse(op)) filters.add(op);
    } else if (op.weight == 0 || std::find(paired.begin(), paired.end(), &op) != paired.end()) {
      continue;
    } else if (is_zero(op)) {
      if (!scalar_is_idle(op, task)) base += op.weight * scalar_normalise_one(op.normalise, {}, 0);
    } else if (divides(op)) {
      of_parts.add(op);
    } else if (op.normalise != PENSTOCK_NORMALISE_NONE || op.op == PENSTOCK_SCORE_SPREAD) {
      normalised.add(op);
    } else if (is_percent(op) && std::exchange(any_percent, true)) {
      deferred.add(op);
      deferred_most += std::max<std::int64_t>(op.weight * std::int64_t{100}, 0);
    } else {
      plain.add(op);
    }
  }
}

// Whether the raw score of every row is 0 because the task names nothing of what is scored.
bool SelectPlan::is_zero(const penstock_column_op& op) const {
  switch (op.op) {
    case PENSTOCK_SCORE_BITS:
      return !names_term_of(op);
    case PENSTOCK_SCORE_DOMAINS:
    case PENSTOCK_SCORE_SPREAD:
      return !names_domain_term_of(op);
    case PENSTOCK_SCORE_GPU_PACKING:
    case PENSTOCK_SCORE_GPU_CLUSTERING:
      return task_.gpu_count == 0;
    default:
      return false;
  }
}

// Whether a filter can refuse a row to this task.
bool SelectPlan::may_refuse(const penstock_column_op& op) const {
  switch (op.op) {
    case PENSTOCK_FILTER_BITS:
      return names_term_of(op);
    case PENSTOCK_FILTER_DOMAINS:
      return names_domain_term_of(op);
    case PENSTOCK_FILTER_GPU:
      return task_.gpu_count != 0;
    case PENSTOCK_FILTER_ROW:
      return task_.row != -1;
    default:
      return true;
  }
}

bool SelectPlan::names_term_of(const penstock_column_op& op) const {
  return std::any_of(task_.terms, task_.terms + task_.n_terms,
                     [&](const penstock_term& t) { return t.group == op.group; });
}
bool SelectPlan::names_domain_term_of(const penstock_column_op& op) const {
  return std::any_of(task_.domain_terms, task_.domain_terms + task_.n_domain_terms,
                     [&](const penstock_domain_term& t) { return t.group == op.group; });
}

void SelectPlan::find_pair() {
  const penstock_column_op* end = program_.ops + program_.n_ops;
  const auto* allocation = std::find_if(program_.ops, end, [&](const auto& op) {
    return (op.op == PENSTOCK_SCORE_LEAST_ALLOCATED || op.op == PENSTOCK_SCORE_MOST_ALLOCATED) &&
           counts_two(op, task_);
  });
  if (allocation == end) return;
  const std::uint16_t* column = allocation->column;
  const auto* balanced = std::find_if(program_.ops, end, [&](const auto& op) {
    return op.op == PENSTOCK_SCORE_BALANCED && counts_two(op, task_) &&
           std::is_permutation(column, column + 2, op.column);
  });
  if (balanced == end || (task_.request[column[0]] == 0 && task_.request[column[1]] == 0)) return;
  paired.add(*allocation);
  paired.add(*balanced);
  pair = {};
  pair.least = allocation->op == PENSTOCK_SCORE_LEAST_ALLOCATED;
  pair.weight = allocation->weight;
  pair.balanced_weight = balanced->weight;
  for (std::uint32_t k = 0; k < 2; k++) {
    pair.column[k] = column[k];
    pair.list_weight[k] = allocation->list_weight[k];
    pair.request[k] = task_.request[column[k]];
    pair.scored_request[k] = task_.scored_request[column[k]];
  }
  const auto* fit =
      std::find_if(program_.ops, end, [](const auto& op) { return op.op == PENSTOCK_FILTER_FIT; });
  if (fit != end) find_fit(*fit);
}

// Makes FIT part of the pair, if it does not look at too much.
void SelectPlan::find_fit(const penstock_column_op& fit) {
  PairScores with = pair;
  for (std::uint32_t i = 0; i < fit.n; i++) {
    const std::uint16_t r = fit.column[i];
    if (task_.request[r] == 0) continue;
    for (std::uint32_t k = 0; k < 2; k++) with.fits[k] = with.fits[k] || r == with.column[k];
    if (r == with.column[0] || r == with.column[1]) continue;
    if (with.n_others == PairScores::kMaxOthers) return;
    with.other[with.n_others] = r;
    with.other_request[with.n_others++] = task_.request[r];
  }
  pair = with;
  paired_fit = &fit;
}

// Whether the operation goes into of_parts; its terms have been added then.
bool SelectPlan::divides(const penstock_column_op& op) {
  if (op.op != PENSTOCK_SCORE_BITS) return false;
  std::uint32_t n = n_terms;
  for (std::uint32_t t = 0; t < task_.n_terms; t++) {
    if (task_.terms[t].group != op.group) continue;
    if (std::find(term, term + n, &task_.terms[t]) != term + n) continue;
    if (n == kMaxTerms) return false;
    term[n++] = &task_.terms[t];
  }
  n_terms = n;
  return true;
}

void SelectPlan::weigh_parts(const std::uint8_t* any, std::int64_t* values) const {
  std::fill_n(values, n_parts(), 0);
  for (const penstock_column_op* op : of_parts) {
    std::int64_t raw[kMaxParts] = {};
    for (std::uint32_t part = 0; part < n_parts(); part++)
      for (std::uint32_t t = 0; t < n_terms; t++)
        if (((part >> t) & 1) != 0 && term[t]->group == op->group) raw[part] += term[t]->weight;
    const ScoreRange range = scalar_score_range(op->normalise, raw, any, n_parts());
    for (std::uint32_t part = 0; part < n_parts(); part++)
      if (any[part] != 0)
        values[part] += op->weight * scalar_normalise_one(op->normalise, range, raw[part]);
  }
}

}  // namespace penstock
