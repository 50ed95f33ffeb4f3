// Topology spread constraints (kube-scheduler's PodTopologySpread, v1.34).
//
// Filter, over the constraints that must hold: a node passes if it has every topology's label and
// placed + self - least <= maxSkew, where placed counts the pods in the node's domain that the
// selector picks, of the pod's namespace and not terminating, on nodes that are eligible (they have
// the labels of all constraints, and what nodeAffinityPolicy and nodeTaintsPolicy ask), and least
// is the smallest such count of a domain with eligible nodes.
//
// Score, over the constraints that should hold: SCORE_SPREAD of node_table.h. By hostname the pods
// of each node count by themselves, whatever the policies say.
#ifndef PENSTOCK_SCHED_SPREAD_H_
#define PENSTOCK_SCHED_SPREAD_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "penstock/sched/count_columns.h"
#include "penstock/sched/kubernetes.h"
#include "penstock/sched/node_facts.h"
#include "penstock/sched/node_table.h"
#include "penstock/sched/scheduler_profile.h"

namespace penstock {

inline constexpr const char* kHostnameLabel = "kubernetes.io/hostname";
inline constexpr const char* kZoneLabel = "topology.kubernetes.io/zone";

// By kind and "namespace/name".
using Owners = std::map<std::pair<std::string, std::string>, KubernetesOwner>;

// Which pods belong together with this one: the selectors of the services that pick it, and that of
// its controller. Absent if there is none, or they ask for nothing.
LabelSelector owner_selector(const KubernetesPod& pod, const Owners& owners);

// The constraints that count for the pod: its own of this kind, or if it has none at all the
// profile's with the pod's owner_selector(). Selectors have their matchLabelKeys in them.
struct SpreadSet {
  std::vector<SpreadConstraint> constraints;
  // Nodes that lack the label of one are left out; not with the system's defaults.
  bool needs_all_labels = true;
};
SpreadSet spread_constraints(const SchedulerProfile& profile, const KubernetesPod& pod,
                             const Owners& owners, bool required);

// Whether the nodes and pods on this node count for the constraint.
bool counts_for_spread(const SpreadSet& set, const SpreadConstraint& constraint,
                       const KubernetesPod& pod, const NodeFacts& node);
// Whether a pod of this class counts.
bool counts_for_spread(const SpreadConstraint& constraint, const std::string& namespace_name,
                       const PodClass& pods);

// The terms of groups spread and preferred_spread, and the columns that they ask.
Status add_spread_filter(NodeTable* table, CountColumns* columns, const SpreadSet& set,
                         const KubernetesPod& pod, std::vector<penstock_domain_term>* terms);
Status add_spread_score(NodeTable* table, CountColumns* columns, const SpreadSet& set,
                        const KubernetesPod& pod, std::vector<penstock_domain_term>* terms);

}  // namespace penstock
#endif
