// From a Kubernetes snapshot to a node table and tasks.
#ifndef PENSTOCK_SCHED_KUBERNETES_TABLE_H_
#define PENSTOCK_SCHED_KUBERNETES_TABLE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "penstock/base/status.h"
#include "penstock/sched/explain.h"
#include "penstock/sched/kubernetes.h"
#include "penstock/sched/node_table.h"

namespace penstock {

struct KubernetesTableOptions {
  Pool* pool = nullptr;
  std::string table_name;
  std::string without_pod;  // a pod that is left out although it runs somewhere
};

// A table with every node, on which the pods that have a node are placed. Resources: cpu, memory,
// ephemeral-storage, pods, and those extended ones that some pod asks for (unsupported beyond 16).
Result<std::unique_ptr<NodeTable>> make_kubernetes_table(
    const KubernetesCluster& cluster, std::shared_ptr<Engine> engine,
    const KubernetesTableOptions& options = {});

// The task for a pod; interns the columns that it needs. unsupported if the pod asks for more than
// a task can carry (more than 4 host ports).
Result<Task> make_kubernetes_task(NodeTable& table, const KubernetesPod& pod);

// Words for why a filter refuses a node, for explain(). The arguments outlive the result.
FilterReason kubernetes_reason(const NodeTable& table, const KubernetesCluster& cluster,
                               const KubernetesPod& pod);

struct PendingDecision {
  std::string pod;
  NodeDecision decision;
  std::string reason;  // why it fits nowhere; "" if it does
  std::vector<std::string> warnings;
};

// Places the pending pods in the order of the document; each sees those before it.
Result<std::vector<PendingDecision>> place_pending(const KubernetesCluster& cluster,
                                                   const std::string& policy = "default",
                                                   const std::string& engine = "auto");

}  // namespace penstock
#endif
