// From a Kubernetes snapshot to a cluster, and decisions on it.
#ifndef PENSTOCK_SCHED_KUBERNETES_CLUSTER_H_
#define PENSTOCK_SCHED_KUBERNETES_CLUSTER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "penstock/base/status.h"
#include "penstock/sched/cluster.h"
#include "penstock/sched/explain.h"
#include "penstock/sched/kubernetes.h"

namespace penstock {

// "default" is kube-scheduler's profile; every other policy of policy.h is one with its filters and
// scores. What has a '.' or '/' is the path of a KubeSchedulerConfiguration, of which the first
// profile counts. not_found lists the names there are.
Result<ClusterConfig> cluster_config(const std::string& policy);

// Everything of the snapshot, but the pod of that name.
Result<std::unique_ptr<Cluster>> make_kubernetes_cluster(const KubernetesCluster& snapshot,
                                                         ClusterConfig config,
                                                         const std::string& without_pod = "");

// Words for why a filter refuses a node, for explain(). The arguments outlive the result.
FilterReason kubernetes_reason(const Cluster& cluster, const KubernetesPod& pod);

struct PendingDecision {
  std::string pod;
  PodDecision decision;  // with the reason why it fits nowhere, if it does not
  std::vector<std::string> warnings;
};

// Places the pending pods in the order of the document; each sees those before it.
Result<std::vector<PendingDecision>> place_pending(const KubernetesCluster& snapshot,
                                                   const std::string& policy = "default",
                                                   const std::string& engine = "auto");

}  // namespace penstock
#endif
