// What making plans and sizing their passes share.
#ifndef PENSTOCK_COMM_PLAN_INTERNAL_H_
#define PENSTOCK_COMM_PLAN_INTERNAL_H_

#include <cstdint>
#include <string>
#include <vector>

#include "penstock/comm/algorithm/builder.h"
#include "penstock/comm/plan.h"

namespace penstock::plan_internal {

Status check_key(const PlanKey& key);

// Runs the algorithm that the checked key of the builder asks for; returns its name.
std::string build(PlanBuilder& builder);

// Whether the blocks of this checked key are inlined.
bool suits_inline(const PlanKey& key);

// Sizes of a part, multiples of a cache line, from which on a plan looks different (another
// algorithm, another number of chunks). Inlined blocks don't count: they take no scratch. Between
// two of them blocks only grow with the part.
std::vector<std::uint64_t> thresholds(const PlanKey& key);

}  // namespace penstock::plan_internal
#endif
