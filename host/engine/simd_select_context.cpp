#include "penstock/engine/simd_select_context.h"

#include <algorithm>
#include <bit>
#include <vector>

#include "penstock/engine/simd_select_blocks.h"

namespace penstock {
namespace {

std::int32_t least_count(const TableView& table, const penstock_domain_term& term) {
  std::int32_t least = 0;
  std::uint32_t with_nodes = 0;
  domain_kernels().least_count(table.count_column(term.count), table.count_column(term.nodes),
                               term.domains, &least, &with_nodes);
  return term.min_domains > 1 && with_nodes < term.min_domains ? 0 : least;
}

void prepare_filter(const penstock_column_op& op, DecisionContext* context) {
  const penstock_task& task = context->task;
  bool none_present = true;
  for (std::uint32_t t = 0; t < task.n_domain_terms; t++) {
    const penstock_domain_term& term = task.domain_terms[t];
    if (term.group != op.group) continue;
    if (term.kind == PENSTOCK_DOMAIN_SPREAD)
      context->terms[t].least = least_count(context->table, term);
    if (term.kind == PENSTOCK_DOMAIN_PRESENT && none_present)
      none_present =
          !domain_kernels().any_positive(context->table.count_column(term.count), term.domains);
  }
  for (std::uint32_t t = 0; t < task.n_domain_terms; t++)
    if (task.domain_terms[t].group == op.group)
      context->terms[t].may_be_first = none_present && task.domain_terms[t].self == 1;
}

// The sizes of one SPREAD operation's terms. Rows come by words of 64.
class Sizes {
 public:
  Sizes(const std::uint64_t* feasible, const penstock_column_op& op, const DecisionContext& context)
      : feasible_(feasible), op_(op), table_(context.table), task_(context.task) {}

  std::uint32_t rows() const {
    std::uint32_t n = 0;
    for (std::uint32_t row = 0; row < table_.header->rows; row += 64)
      n += static_cast<std::uint32_t>(std::popcount(counted(row)));
    return n;
  }

  // How many different domains the rows have, and one if some have none.
  std::uint32_t domains(std::uint32_t column) const {
    if (column == PENSTOCK_ROW_DOMAIN) return rows();
    const DomainKernels& kernels = domain_kernels();
    std::uint64_t low = 0;  // domains below 64
    std::uint32_t high = 0;
    bool without = false;
    thread_local std::vector<std::uint8_t> seen;  // of higher domains; all zero between calls
    bool used = false;
    for (std::uint32_t row = 0; row < table_.header->rows; row += 64) {
      std::uint64_t rows = counted(row);
      // Nearly all rows have one of the first domains, which have been seen soon.
      const auto known = static_cast<std::uint32_t>(std::countr_one(low));
      rows &= ~kernels.rows_with_domain(table_, column, row, known);
      if (rows == 0) continue;
      const std::uint64_t with =
          kernels.rows_with_domain(table_, column, row, table_.header->capacity);
      without = without || (rows & ~with) != 0;
      rows &= with;
      if (kernels.low_domains(table_, column, row, rows, &low)) continue;
      if (!used) seen.resize(std::max<std::size_t>(seen.size(), table_.header->capacity));
      used = true;
      for (; rows != 0; rows &= rows - 1) {
        const auto domain = static_cast<std::uint32_t>(
            table_.domain_column(column)[row + static_cast<std::uint32_t>(std::countr_zero(rows))]);
        if (domain < 64) {
          low |= std::uint64_t{1} << domain;
        } else {
          high += seen[domain] == 0;
          seen[domain] = 1;
        }
      }
    }
    if (used) std::fill_n(seen.begin(), table_.header->capacity, 0);
    return high + static_cast<std::uint32_t>(std::popcount(low)) + (without ? 1u : 0u);
  }

 private:
  // Which of 64 rows are feasible and not ignored.
  std::uint64_t counted(std::uint32_t row) const {
    std::uint64_t rows = feasible_[row / 64];
    for (std::uint32_t t = 0; t < task_.n_domain_terms && rows != 0; t++) {
      const penstock_domain_term& term = task_.domain_terms[t];
      if (term.group == op_.group && (term.kind & PENSTOCK_SPREAD_REQUIRED) != 0 &&
          term.domain != PENSTOCK_ROW_DOMAIN)
        rows &=
            domain_kernels().rows_with_domain(table_, term.domain, row, table_.header->capacity);
    }
    return rows;
  }

  const std::uint64_t* feasible_;
  const penstock_column_op& op_;
  const TableView& table_;
  const penstock_task& task_;
};

}  // namespace

void simd_prepare_filters(DecisionContext* context) {
  if (context->task.n_domain_terms == 0) return;
  for (std::uint32_t i = 0; i < context->program.n_ops; i++)
    if (context->program.ops[i].op == PENSTOCK_FILTER_DOMAINS)
      prepare_filter(context->program.ops[i], context);
}

void simd_weigh_domains(const std::uint64_t* feasible, DecisionContext* context) {
  const penstock_task& task = context->task;
  for (std::uint32_t i = 0; i < context->program.n_ops; i++) {
    const penstock_column_op& op = context->program.ops[i];
    if (op.op != PENSTOCK_SCORE_SPREAD) continue;
    const Sizes sizes(feasible, op, *context);
    for (std::uint32_t t = 0; t < task.n_domain_terms; t++) {
      const penstock_domain_term& term = task.domain_terms[t];
      if (term.group != op.group) continue;
      const bool by_row = (term.kind & PENSTOCK_SPREAD_HOSTNAME) != 0;
      context->terms[t].log =
          spread_log(context->table, by_row ? sizes.rows() : sizes.domains(term.domain));
    }
  }
}

}  // namespace penstock
