#include "penstock/sim/systemc/table.h"

#include <algorithm>
#include <cmath>

namespace penstock::systemc {
namespace {

std::int64_t within(std::int64_t value, std::int64_t least, std::int64_t most) {
  return value < least ? least : value > most ? most : value;
}
// As the banks hold a cell: a damaged one is the nearest bound.
std::int64_t quantity(const std::vector<std::vector<std::int64_t>>& columns, std::uint32_t column,
                      std::uint32_t row) {
  return within(columns[column][row], 0, PENSTOCK_MAX_QUANTITY);
}

bool holds(const Table& table, const penstock_term& term, std::uint32_t row) {
  return table.bit(term.column, row) == (term.clear == 0);
}

bool passes(const Table& table, const penstock_column_op& op, const penstock_task& task,
            std::uint32_t row) {
  switch (op.op) {
    case PENSTOCK_FILTER_BITS:
      return std::all_of(task.terms, task.terms + task.n_terms, [&](const penstock_term& term) {
        return term.group != op.group || holds(table, term, row);
      });
    case PENSTOCK_FILTER_FIT:
      return std::all_of(op.column, op.column + op.n, [&](std::uint16_t r) {
        return task.request[r] == 0 || task.request[r] + quantity(table.requested, r, row) <=
                                           quantity(table.allocatable, r, row);
      });
    case PENSTOCK_FILTER_ROW:
      return task.row < 0 || task.row == static_cast<std::int64_t>(row);
    default:
      return true;  // of GPUs and domains, which a task here does not ask for
  }
}

// Whether entry i of a list counts for this row.
bool counts(const Table& table, const penstock_column_op& op, std::uint32_t i,
            const penstock_task& task, std::uint32_t row) {
  const bool skipped = (op.skip_unasked >> i & 1) != 0 && task.request[op.column[i]] == 0;
  return !skipped && quantity(table.allocatable, op.column[i], row) > 0;
}

std::int64_t allocation(const Table& table, const penstock_column_op& op, const penstock_task& task,
                        std::uint32_t row) {
  std::int64_t weighted = 0;
  std::int64_t weights = 0;
  for (std::uint32_t i = 0; i < op.n; ++i) {
    if (!counts(table, op, i, task, row)) continue;
    const std::uint32_t r = op.column[i];
    const std::int64_t all = quantity(table.allocatable, r, row);
    const std::int64_t used = quantity(table.scored, r, row) + task.scored_request[r];
    const std::int64_t part =
        op.op == PENSTOCK_SCORE_MOST_ALLOCATED ? std::min(used, all) : all - std::min(used, all);
    weighted += part * 100 / all * op.list_weight[i];
    weights += op.list_weight[i];
  }
  return weights > 0 ? weighted / weights : 0;
}

// Of at most two resources.
std::int64_t balance(const Table& table, const penstock_column_op& op, const penstock_task& task,
                     std::uint32_t row) {
  double fraction[2] = {0, 0};
  std::uint32_t n = 0;
  bool asks = false;
  for (std::uint32_t i = 0; i < op.n; ++i) {
    const std::uint32_t r = op.column[i];
    asks = asks || task.request[r] > 0;
    if (!counts(table, op, i, task, row)) continue;
    const auto all = static_cast<double>(quantity(table.allocatable, r, row));
    const auto used = static_cast<double>(quantity(table.requested, r, row) + task.request[r]);
    fraction[n++] = std::min(used / all, 1.0);
  }
  if (!asks) return 0;
  const double deviation = n == 2 ? std::fabs(fraction[0] - fraction[1]) / 2 : 0;
  return static_cast<std::int64_t>((1 - deviation) * 100);
}

std::int64_t raw_score(const Table& table, const penstock_column_op& op, const penstock_task& task,
                       std::uint32_t row) {
  std::int64_t sum = 0;
  switch (op.op) {
    case PENSTOCK_SCORE_LEAST_ALLOCATED:
    case PENSTOCK_SCORE_MOST_ALLOCATED:
      return allocation(table, op, task, row);
    case PENSTOCK_SCORE_BALANCED:
      return balance(table, op, task, row);
    case PENSTOCK_SCORE_BITS:
      for (std::uint32_t i = 0; i < task.n_terms; ++i)
        if (task.terms[i].group == op.group && holds(table, task.terms[i], row))
          sum += task.terms[i].weight;
      return sum;
    case PENSTOCK_SCORE_FEATURES:
      for (std::uint32_t j = 0; j < op.n; ++j)
        sum += task.feature[j] * within(table.free[op.column[j]][row], -PENSTOCK_MAX_FREE_VALUE,
                                        PENSTOCK_MAX_FREE_VALUE);
      return sum;
    default:
      return 0;
  }
}

// Negative scores mark rows that are ignored; the others are mirrored between their ends.
void normalise_spread(std::vector<std::int64_t>* scores) {
  std::int64_t min = INT64_MAX;
  std::int64_t max = 0;
  for (const std::int64_t score : *scores) {
    if (score < 0) continue;
    min = std::min(min, score);
    max = std::max(max, score);
  }
  for (std::int64_t& score : *scores) {
    if (score < 0)
      score = 0;
    else
      score = max == 0 ? 100 : 100 * (max + min - score) / max;
  }
}

// Brings the scores of the rows in `feasible` into their final range.
void normalise(const penstock_column_op& op, const std::vector<std::uint32_t>& feasible,
               std::vector<std::int64_t>* scores) {
  if (op.op == PENSTOCK_SCORE_SPREAD) return;  // 0 it stays
  if (op.normalise == PENSTOCK_NORMALISE_NONE || feasible.empty()) return;
  if (op.normalise == PENSTOCK_NORMALISE_SPREAD) return normalise_spread(scores);
  const auto [least, most] = std::minmax_element(scores->begin(), scores->end());
  const std::int64_t min = *least;
  const std::int64_t max = *most;
  const std::int64_t top = std::max<std::int64_t>(max, 0);
  for (std::int64_t& score : *scores) {
    switch (op.normalise) {
      case PENSTOCK_NORMALISE_DEFAULT:
        if (top > 0) score = 100 * score / top;
        score = within(score, -PENSTOCK_MAX_NORMALISED, PENSTOCK_MAX_NORMALISED);
        break;
      case PENSTOCK_NORMALISE_REVERSED:
        score = top > 0 ? 100 - 100 * score / top : 100;
        score = within(score, -PENSTOCK_MAX_NORMALISED, PENSTOCK_MAX_NORMALISED);
        break;
      case PENSTOCK_NORMALISE_MIN_MAX_F64:
        score = max == min ? 0
                           : static_cast<std::int64_t>(100 * (static_cast<double>(score - min) /
                                                              static_cast<double>(max - min)));
        break;
      default:
        score = max == min ? 0 : (score - min) * 100 / (max - min);
    }
  }
}

// Places a row in front of those that it beats.
struct Ranking {
  const Table& table;
  const Program& program;
  const penstock_task& task;

  std::uint64_t turn(std::uint32_t row) const {
    if (program.record.tie != PENSTOCK_TIE_ROTATING) return row;
    const std::uint64_t rows = table.header.rows;
    return (row + rows - task.tie % rows) % rows;
  }
  bool before(const penstock_best& a, const penstock_best& b) const {
    if (a.score != b.score) return a.score > b.score;
    if (program.record.tie == PENSTOCK_TIE_HASH) {
      const auto hash = [&](const penstock_best& x) {
        return penstock_tie_hash(program.record.seed, task.tie, static_cast<std::uint64_t>(x.row));
      };
      if (hash(a) != hash(b)) return hash(a) > hash(b);
    }
    return turn(static_cast<std::uint32_t>(a.row)) < turn(static_cast<std::uint32_t>(b.row));
  }
};

}  // namespace

Program decode_program(const penstock_program& record) {
  Program program;
  program.record = record;
  for (std::uint32_t i = 0; i < record.n_ops; ++i) {
    const penstock_column_op& op = record.ops[i];
    if (op.op < 32) {
      program.filters.push_back(op);
      continue;
    }
    program.scores.push_back(op);
    program.has_balanced = program.has_balanced || op.op == PENSTOCK_SCORE_BALANCED;
  }
  return program;
}

penstock_result decide(const Table& table, const Program& program, const penstock_task& task) {
  penstock_result result{};
  std::vector<std::uint32_t> feasible;
  for (std::uint32_t row = 0; row < table.header.rows; ++row) {
    const bool fits =
        std::all_of(program.filters.begin(), program.filters.end(),
                    [&](const penstock_column_op& op) { return passes(table, op, task, row); });
    if (fits && table.bit(PENSTOCK_BIT_NODE, row)) feasible.push_back(row);
  }
  result.feasible = static_cast<std::uint32_t>(feasible.size());
  result.status = PENSTOCK_NOT_FOUND;
  result.row = -1;
  if (feasible.empty()) return result;

  std::vector<std::int64_t> total(feasible.size());
  std::vector<std::int64_t> scores(feasible.size());
  for (const penstock_column_op& op : program.scores) {
    for (std::size_t i = 0; i < feasible.size(); ++i)
      scores[i] = raw_score(table, op, task, feasible[i]);
    normalise(op, feasible, &scores);
    for (std::size_t i = 0; i < feasible.size(); ++i) total[i] += op.weight * scores[i];
  }
  std::vector<penstock_best> ranked(feasible.size());
  for (std::size_t i = 0; i < feasible.size(); ++i)
    ranked[i] = {static_cast<std::int32_t>(feasible[i]), 0, total[i]};
  const std::size_t n = std::min<std::size_t>(program.record.best, ranked.size());
  const Ranking ranking{table, program, task};
  std::partial_sort(
      ranked.begin(), ranked.begin() + static_cast<std::ptrdiff_t>(n), ranked.end(),
      [&](const penstock_best& a, const penstock_best& b) { return ranking.before(a, b); });
  std::copy_n(ranked.begin(), n, result.best);
  result.n_best = static_cast<std::uint32_t>(n);
  result.status = PENSTOCK_OK;
  result.row = ranked[0].row;
  result.score = ranked[0].score;
  return result;
}

std::uint32_t commit(Table* table, const penstock_task& task, std::uint32_t row) {
  const auto room = [](std::int64_t cell, std::int64_t by, std::int64_t least, std::int64_t most) {
    return cell >= least && cell <= most && most - cell >= by;
  };
  const std::uint32_t resources = table->header.n_resources;
  bool fits = true;
  for (std::uint32_t r = 0; r < resources; ++r)
    fits = fits && room(table->requested[r][row], task.request[r], 0, PENSTOCK_MAX_QUANTITY) &&
           room(table->scored[r][row], task.scored_request[r], 0, PENSTOCK_MAX_QUANTITY);
  for (const std::uint16_t counted : task.count)
    if (counted != 0)
      fits = fits && room(table->free[counted - 1u][row],
                          std::count(std::begin(task.count), std::end(task.count), counted),
                          -PENSTOCK_MAX_FREE_VALUE, PENSTOCK_MAX_FREE_VALUE);
  if (!fits) return PENSTOCK_OUT_OF_RANGE;
  for (std::uint32_t r = 0; r < resources; ++r) {
    table->requested[r][row] += task.request[r];
    table->scored[r][row] += task.scored_request[r];
  }
  for (const std::uint16_t counted : task.count)
    if (counted != 0) ++table->free[counted - 1u][row];
  for (const std::uint16_t bit : task.set_bits)
    if (bit != 0) table->bits[bit][row / 64] |= std::uint64_t{1} << (row % 64);
  ++table->header.generation;
  return PENSTOCK_OK;
}

}  // namespace penstock::systemc
