// Which pods have to go so that a pod fits, as kube-scheduler's DefaultPreemption (v1.34) decides
// it.
//
// Candidates are the nodes that a filter refused for a reason that other pods are (code
// Unschedulable, not UnschedulableAndUnresolvable). On each of them all pods of lower priority are
// taken away; if the pod fits then, they come back one by one as long as it still does: first those
// whose going would violate a disruption budget, then the others, and both from the highest
// priority down (at equal priority, whoever started first). Who cannot come back is a victim.
//
// Of the nodes that have victims the first is taken in this order: fewest violations, the lowest
// priority of the most important victim, the smallest sum of priorities (each plus 2^31), fewest
// victims, the latest start of the earliest of the victims of highest priority, lowest row. Every
// candidate is looked at, where kube-scheduler looks at a tenth of them. Pods that are nominated
// for a node and not yet there play no part.
#ifndef PENSTOCK_SCHED_PREEMPTION_H_
#define PENSTOCK_SCHED_PREEMPTION_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "penstock/base/status.h"
#include "penstock/sched/cluster.h"
#include "penstock/sched/kubernetes.h"

namespace penstock {

// A PodDisruptionBudget, as far as it counts here.
struct DisruptionBudget {
  std::string namespace_name;
  std::string name;
  LabelSelector selector;            // absent or without requirements: matches nothing
  std::int32_t allowed = 0;          // status.disruptionsAllowed
  std::vector<std::string> leaving;  // status.disruptedPods: names without the namespace
};

struct Preemption {
  std::string node;                  // "": no node is made to fit
  std::vector<std::string> victims;  // keys, the most important first
  std::uint32_t violations = 0;      // victims that violate a budget
  std::uint32_t candidates = 0;      // nodes that were tried
  std::string reason;                // why there is no node
};

// Finds the node and its victims; the cluster is afterwards as it was. A pod with preemptionPolicy
// Never gets no node, nor one whose nominated node has a terminating pod of lower priority, nor one
// that fits somewhere already. Errors are the cluster's.
Result<Preemption> preempt(Cluster& cluster, const KubernetesPod& pod,
                           std::span<const DisruptionBudget> budgets = {});

// A node's victims and how they compare; for callers that have candidates of their own.
struct VictimList {
  std::vector<const KubernetesPod*> victims;  // the most important first
  std::uint32_t violations = 0;
};
// Whether `a` comes before `b` in kube-scheduler's order.
bool more_important(const KubernetesPod& a, const KubernetesPod& b);
// Whether a node with the victims `a` is taken rather than one with `b`; false when they are equal.
bool better_victims(const VictimList& a, const VictimList& b);

}  // namespace penstock
#endif
