// The operations on domains: what they need of the whole table, and what they give one row.
#include <algorithm>
#include <cmath>
#include <vector>

#include "penstock/engine/scalar_select.h"

namespace penstock {
namespace {

std::int32_t count_at(const TableView& table, std::uint32_t column, std::int32_t domain) {
  return std::clamp(table.count_column(column)[domain], 0, PENSTOCK_MAX_DOMAIN_COUNT);
}

// What SPREAD compares with: the least count among the domains that have eligible nodes.
std::int32_t least_count(const TableView& table, const penstock_domain_term& term) {
  std::int32_t least = INT32_MAX;
  std::uint32_t n = 0;
  for (std::uint32_t d = 0; d < term.domains; d++) {
    const auto domain = static_cast<std::int32_t>(d);
    if (count_at(table, term.nodes, domain) == 0) continue;
    n++;
    least = std::min(least, count_at(table, term.count, domain));
  }
  return term.min_domains > 1 && n < term.min_domains ? 0 : least;
}

bool all_zero(const TableView& table, const penstock_domain_term& term) {
  const std::int32_t* counts = table.count_column(term.count);
  return std::none_of(counts, counts + term.domains, [](std::int32_t n) { return n > 0; });
}

// How many different domains the feasible rows have that are not ignored.
std::uint32_t distinct_domains(const DecisionContext& context, const penstock_column_op& op,
                               const penstock_domain_term& term, const std::uint8_t* feasible) {
  const TableView& table = context.table;
  std::vector<bool> seen(table.header->capacity);
  bool any_without = false;
  std::uint32_t n = 0;
  for (std::uint32_t row = 0; row < table.header->rows; row++) {
    if (!feasible[row] || scalar_spread_ignores(context, op, row)) continue;
    const std::int32_t domain = table.domain_of(term.domain, row);
    if (domain < 0) {
      any_without = true;
    } else if (!seen[static_cast<std::size_t>(domain)]) {
      seen[static_cast<std::size_t>(domain)] = true;
      n++;
    }
  }
  return n + any_without;
}

std::uint32_t counted_rows(const DecisionContext& context, const penstock_column_op& op,
                           const std::uint8_t* feasible) {
  std::uint32_t n = 0;
  for (std::uint32_t row = 0; row < context.table.header->rows; row++)
    n += feasible[row] && !scalar_spread_ignores(context, op, row);
  return n;
}

}  // namespace

double spread_log(const TableView& table, std::uint32_t size) {
  const double log = table.logs[size];
  return log >= 0 && log <= PENSTOCK_MAX_LOG ? log : 0;
}

DecisionContext::DecisionContext(const TableView& of_table, const penstock_program& of_program,
                                 const penstock_task& of_task)
    : table(of_table), program(of_program), task(of_task) {
  for (std::uint32_t i = 0; i < program.n_ops; i++) {
    const penstock_column_op& op = program.ops[i];
    if (op.op != PENSTOCK_FILTER_DOMAINS) continue;
    bool none_present = true;
    for (std::uint32_t t = 0; t < task.n_domain_terms; t++) {
      const penstock_domain_term& term = task.domain_terms[t];
      if (term.group != op.group) continue;
      if (term.kind == PENSTOCK_DOMAIN_SPREAD) terms[t].least = least_count(table, term);
      if (term.kind == PENSTOCK_DOMAIN_PRESENT)
        none_present = none_present && all_zero(table, term);
    }
    for (std::uint32_t t = 0; t < task.n_domain_terms; t++)
      if (task.domain_terms[t].group == op.group)
        terms[t].may_be_first = none_present && task.domain_terms[t].self == 1;
  }
}

void DecisionContext::weigh_domains(const std::uint8_t* feasible) {
  for (std::uint32_t i = 0; i < program.n_ops; i++) {
    const penstock_column_op& op = program.ops[i];
    if (op.op != PENSTOCK_SCORE_SPREAD) continue;
    for (std::uint32_t t = 0; t < task.n_domain_terms; t++) {
      const penstock_domain_term& term = task.domain_terms[t];
      if (term.group != op.group) continue;
      terms[t].log = spread_log(table, (term.kind & PENSTOCK_SPREAD_HOSTNAME) != 0
                                           ? counted_rows(*this, op, feasible)
                                           : distinct_domains(*this, op, term, feasible));
    }
  }
}

bool scalar_domains_pass(const DecisionContext& context, const penstock_column_op& op,
                         std::uint32_t row) {
  for (std::uint32_t t = 0; t < context.task.n_domain_terms; t++) {
    const penstock_domain_term& term = context.task.domain_terms[t];
    if (term.group != op.group) continue;
    const std::int32_t domain = context.table.domain_of(term.domain, row);
    if (domain < 0) {
      if (term.kind != PENSTOCK_DOMAIN_ABSENT) return false;
      continue;
    }
    const std::int64_t n = count_at(context.table, term.count, domain);
    if (term.kind == PENSTOCK_DOMAIN_ABSENT && n != 0) return false;
    if (term.kind == PENSTOCK_DOMAIN_PRESENT && n == 0 && !context.terms[t].may_be_first)
      return false;
    if (term.kind == PENSTOCK_DOMAIN_SPREAD && n + term.self - context.terms[t].least > term.weight)
      return false;
  }
  return true;
}

std::int64_t scalar_domains_score(const DecisionContext& context, const penstock_column_op& op,
                                  std::uint32_t row) {
  std::int64_t sum = 0;
  for (std::uint32_t t = 0; t < context.task.n_domain_terms; t++) {
    const penstock_domain_term& term = context.task.domain_terms[t];
    if (term.group != op.group) continue;
    const std::int32_t domain = context.table.domain_of(term.domain, row);
    if (domain >= 0) sum += std::int64_t{term.weight} * count_at(context.table, term.count, domain);
  }
  return sum;
}

bool scalar_spread_ignores(const DecisionContext& context, const penstock_column_op& op,
                           std::uint32_t row) {
  for (std::uint32_t t = 0; t < context.task.n_domain_terms; t++) {
    const penstock_domain_term& term = context.task.domain_terms[t];
    if (term.group == op.group && (term.kind & PENSTOCK_SPREAD_REQUIRED) != 0 &&
        context.table.domain_of(term.domain, row) < 0)
      return true;
  }
  return false;
}

std::int64_t scalar_spread_score(const DecisionContext& context, const penstock_column_op& op,
                                 std::uint32_t row) {
  if (scalar_spread_ignores(context, op, row)) return -1;
  double s = 0;
  for (std::uint32_t t = 0; t < context.task.n_domain_terms; t++) {
    const penstock_domain_term& term = context.task.domain_terms[t];
    if (term.group != op.group) continue;
    const std::int32_t domain = context.table.domain_of(term.domain, row);
    if (domain < 0) continue;
    const double n = count_at(context.table, term.count, domain);
    s = s + (n * context.terms[t].log + static_cast<double>(std::int64_t{term.weight} - 1));
  }
  return static_cast<std::int64_t>(std::round(s));
}

bool scalar_is_idle(const penstock_column_op& op, const penstock_task& task) {
  return op.op == PENSTOCK_SCORE_SPREAD &&
         std::none_of(task.domain_terms, task.domain_terms + task.n_domain_terms,
                      [&](const penstock_domain_term& term) { return term.group == op.group; });
}

}  // namespace penstock
