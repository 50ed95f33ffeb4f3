// Taints and tolerations (kube-scheduler's TaintToleration and NodeUnschedulable, v1.34).
#ifndef PENSTOCK_SCHED_TAINTS_H_
#define PENSTOCK_SCHED_TAINTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "penstock/sched/kubernetes.h"
#include "penstock/sched/node_facts.h"
#include "penstock/sched/node_table.h"

namespace penstock {

bool tolerates(const Toleration& toleration, const Taint& taint);
// The first taint with effect NoSchedule or NoExecute that nothing tolerates; null if there is
// none.
const Taint* find_untolerated(const std::vector<Taint>& taints,
                              const std::vector<Toleration>& tolerations);
// How many taints with effect PreferNoSchedule nothing tolerates: the score before it is reversed.
std::uint32_t count_untolerated_preferred(const std::vector<Taint>& taints,
                                          const std::vector<Toleration>& tolerations);
// Whether a cordoned node would do.
bool tolerates_unschedulable(const std::vector<Toleration>& tolerations);

// The same only for tolerations that mean the same.
std::string tolerations_key(const std::vector<Toleration>& tolerations);

// The terms of groups unschedulable, taints and preferred_taints; interns their columns.
Status add_taint_terms(NodeTable* table, const std::vector<Toleration>& tolerations, Task* task);

// "key=value:NoSchedule".
std::string taint_text(const Taint& taint);

}  // namespace penstock
#endif
