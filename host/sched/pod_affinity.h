// Affinity and anti-affinity between pods (kube-scheduler's InterPodAffinity, v1.34).
//
// Filter: a node passes if it has the label of every required affinity term of the pod, and each of
// these domains holds a pod that all of these terms pick (or no domain does, and the pod picks
// itself: it is the first of its group); if no required anti-affinity term of the pod picks a pod
// in the node's domain; and if no pod there has one that picks this pod.
//
// Score: the sum of the weights of preferred terms, of the pod about those that are placed and of
// those about the pod, anti-affinity counting against; a required affinity term of a placed pod
// counts with hardPodAffinityWeight.
#ifndef PENSTOCK_SCHED_POD_AFFINITY_H_
#define PENSTOCK_SCHED_POD_AFFINITY_H_

#include <cstdint>
#include <vector>

#include "penstock/sched/count_columns.h"
#include "penstock/sched/pod_class.h"
#include "penstock/sched/scheduler_profile.h"

namespace penstock {

struct PodAffinityInput {
  const SchedulerProfile& profile;
  const KubernetesPod& pod;
  const PodClass& pods;                        // that the pod is of
  const std::vector<const CarriedTerm*>& met;  // carried terms that pick the pod
  const NamespaceLabels& namespaces;           // outlives the columns
};

// Whether the required affinity terms of the pod all pick it.
bool is_of_its_own_group(const PodAffinityInput& input);

// The terms of groups pod_affinity and preferred_pod_affinity, and the columns that they ask.
Status add_pod_affinity_filter(CountColumns* columns, const PodAffinityInput& input,
                               std::vector<penstock_domain_term>* terms);
Status add_pod_affinity_score(CountColumns* columns, const PodAffinityInput& input,
                              std::vector<penstock_domain_term>* terms);

}  // namespace penstock
#endif
