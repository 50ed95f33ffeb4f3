// Words for what an operation on domains compared; part of explain.
#ifndef PENSTOCK_SCHED_EXPLAIN_DOMAINS_H_
#define PENSTOCK_SCHED_EXPLAIN_DOMAINS_H_

#include <cstdint>
#include <string>

#include "penstock/engine/scalar_select.h"
#include "penstock/sched/node_table.h"

namespace penstock {

// Every term of the filter with its numbers on this row: "zone: 2 + 1 - 1 <= 1".
std::string domains_numbers(const NodeTable& table, const DecisionContext& context,
                            const penstock_column_op& op, std::uint32_t row);
// Why the filter refuses the row: of the first term that fails.
std::string domains_reason(const NodeTable& table, const DecisionContext& context,
                           const penstock_column_op& op, std::uint32_t row);

}  // namespace penstock
#endif
