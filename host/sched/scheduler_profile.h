// What one profile of a KubeSchedulerConfiguration says (kubescheduler.config.k8s.io/v1), as far as
// it has a part in a decision: plain data, made by scheduler_config.h or by hand, compiled by
// policy.h.
#ifndef PENSTOCK_SCHED_SCHEDULER_PROFILE_H_
#define PENSTOCK_SCHED_SCHEDULER_PROFILE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "penstock/sched/kubernetes.h"
#include "penstock/sched/policy.h"

namespace penstock {

struct ScoringResource {
  std::string name;
  std::int32_t weight = 1;  // 1..100
  bool operator==(const ScoringResource&) const = default;
};

// scoringStrategy.type of NodeResourcesFitArgs.
enum class FitStrategy { least_allocated, most_allocated, requested_to_capacity_ratio };

// A corner of the function from utilization to score of RequestedToCapacityRatio.
struct ShapePoint {
  std::int32_t utilization = 0;  // 0..100, in percent
  std::int32_t score = 0;        // 0..10
  bool operator==(const ShapePoint&) const = default;
};

struct SchedulerProfile {
  std::string scheduler_name = "default-scheduler";
  // Names of kube-scheduler's plugins ("NodeUnschedulable"), in the order in which they run.
  std::vector<std::string> filters;
  std::vector<PolicyScore> scores;

  // ---- NodeResourcesFitArgs ----
  FitStrategy fit_strategy = FitStrategy::least_allocated;
  std::vector<ScoringResource> fit_resources = {{"cpu", 1}, {"memory", 1}};
  std::vector<ShapePoint> fit_shape;  // rising utilization; of requested_to_capacity_ratio
  // Extended resources that the fit filter does not look at: by name, and by what stands before the
  // '/' of a name.
  std::vector<std::string> ignored_resources;
  std::vector<std::string> ignored_resource_groups;

  // ---- NodeResourcesBalancedAllocationArgs ----
  std::vector<ScoringResource> balanced_resources = {{"cpu", 1}, {"memory", 1}};  // weights are 1

  // ---- PodTopologySpreadArgs, for pods that have no constraints of their own ----
  // defaultingType System: max skew 3 by kubernetes.io/hostname and 5 by
  // topology.kubernetes.io/zone, preferred; else `default_spread`, whose selectors are absent (the
  // pod's owner gives them).
  bool system_default_spread = true;
  std::vector<SpreadConstraint> default_spread;

  // ---- InterPodAffinityArgs ----
  std::int32_t hard_pod_affinity_weight = 1;  // 0..100
  bool ignore_preferred_terms_of_existing_pods = false;

  // ---- NodeAffinityArgs.addedAffinity: holds for every pod beside its own ----
  bool has_added_required = false;  // one of `added_required`
  std::vector<SelectorTerm> added_required;
  std::vector<PreferredTerm> added_preferred;

  // ---- DefaultPreemptionArgs: how many nodes a preemption looks at ----
  std::int32_t preemption_nodes_percent = 10;  // 0..100, of the cluster's
  std::int32_t preemption_nodes_least = 100;   // at least so many

  // kube-scheduler v1.34 without a configuration.
  static SchedulerProfile defaults();
};

}  // namespace penstock
#endif
