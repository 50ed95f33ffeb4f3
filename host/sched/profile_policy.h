// How a scheduler's profile compiles to a program: kube-scheduler's plugins by the names of
// policy.h.
#ifndef PENSTOCK_SCHED_PROFILE_POLICY_H_
#define PENSTOCK_SCHED_PROFILE_POLICY_H_

#include <cstdint>
#include <span>
#include <string_view>

#include "penstock/base/status.h"
#include "penstock/sched/node_table.h"
#include "penstock/sched/policy.h"
#include "penstock/sched/scheduler_profile.h"

namespace penstock {

// kube-scheduler's piecewise linear function: through the points, level before the first and after
// the last; divisions truncate toward zero. The points have rising utilization. 0 without any.
std::int64_t broken_linear(std::span<const ShapePoint> shape, std::int64_t utilization);

// A resource that kube-scheduler leaves out of a node's score when the pod does not ask for it:
// extended ones ("example.com/thing"), huge pages, attachable volumes.
bool is_scalar_resource(std::string_view name);
// An extended resource: what ignored_resources and ignored_resource_groups are about.
bool is_extended_resource(std::string_view name);

// The profile's filters and scores by the names of policy.h, in the profile's order. A name of
// policy.h itself ("gpu-packing") stands for itself. not_found lists the names there are.
Result<Policy> profile_policy(const SchedulerProfile& profile);

// profile_policy, with the arguments of the plugins. Resources that the table does not have weigh
// nothing, as those of which a node has none. program.names are those of policy.h, filters first.
// invalid_argument names what is out of its range: it may have been made by hand.
Result<Program> compile_profile(const SchedulerProfile& profile, const NodeTable& table,
                                const CompileOptions& options = {},
                                penstock_tie tie = PENSTOCK_TIE_LOWEST_ROW);

}  // namespace penstock
#endif
