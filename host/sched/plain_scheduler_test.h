// kube-scheduler's documented formulas, evaluated pod by pod and node by node in the plainest code:
// what a Cluster's answers are compared with. Shares the structs of kubernetes.h with it, and no
// function.
#ifndef PENSTOCK_SCHED_PLAIN_SCHEDULER_TEST_H_
#define PENSTOCK_SCHED_PLAIN_SCHEDULER_TEST_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "penstock/sched/kubernetes.h"

namespace penstock::plain {

using Labels = std::map<std::string, std::string>;

struct World {
  std::vector<KubernetesNode> nodes;
  std::map<std::string, KubernetesPod> pods;  // by key; those that name a node of `nodes`, or not
  std::map<std::string, Labels> namespaces;
  std::vector<KubernetesOwner> owners;
  std::int64_t hard_pod_affinity_weight = 1;

  const KubernetesNode* find(const std::string& node) const;
};

// The plugin that refuses the node, "" if none does.
std::string refused_by(const World& world, const KubernetesPod& pod, const KubernetesNode& node);

// By plugin the normalised scores of these nodes, which passed the filters.
std::map<std::string, std::vector<std::int64_t>> scores(
    const World& world, const KubernetesPod& pod, const std::vector<const KubernetesNode*>& nodes);

}  // namespace penstock::plain
#endif
