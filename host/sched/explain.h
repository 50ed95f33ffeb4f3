// Why a task goes where it goes: every filter's verdict and every score of every node, computed by
// the same functions as the decision.
#ifndef PENSTOCK_SCHED_EXPLAIN_H_
#define PENSTOCK_SCHED_EXPLAIN_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "penstock/base/status.h"
#include "penstock/sched/cluster.h"
#include "penstock/sched/kubernetes.h"
#include "penstock/sched/node_table.h"
#include "penstock/sched/policy.h"
#include "penstock/sched/task.h"

namespace penstock {

struct FilterVerdict {
  std::string filter;
  bool passed = false;
  std::string reason;   // why not; "" if it passed
  std::string numbers;  // what spread and pod affinity compared; "" for other filters
};

struct ScoreLine {
  std::string score;
  std::int64_t raw = 0;
  std::int64_t normalised = 0;
  std::int32_t weight = 0;
  std::int64_t weighted = 0;  // normalised * weight
};

struct NodeExplanation {
  std::uint32_t row = 0;
  std::string name;
  bool feasible = false;
  std::vector<FilterVerdict> filters;  // all of them; a decision stops at the first that fails
  std::vector<ScoreLine> scores;       // only of a feasible node
  std::int64_t total = 0;              // only of a feasible node
  bool best = false;                   // nobody has a higher total
};

struct Explanation {
  std::string task;
  std::string policy;
  std::string engine;
  std::vector<NodeExplanation> nodes;  // in the order of rows
  std::uint32_t feasible = 0;
  std::int32_t winner = -1;  // row, or -1
  std::string winner_name;
  std::int64_t winner_score = 0;
  std::uint32_t gpu_mask = 0;
  std::string summary;  // "ns/pod goes to node-2 with 512" or "0/6 nodes are available: ..."
  std::vector<std::string> warnings;  // among them the terms that are unsupported
};

// More words for why a filter refuses a node; "" for none.
using FilterReason = std::function<std::string(const std::string& filter, std::uint32_t row)>;

// Changes nothing in the table, except that columns may be interned.
Result<Explanation> explain(NodeTable& table, const Policy& policy, const Task& task,
                            const FilterReason& reason = {});

// The same for a pod and the cluster's profile. The cluster does not hold the pod.
Result<Explanation> explain(Cluster& cluster, const KubernetesPod& pod);

// `pod` is "namespace/name", or a name that occurs once. Pods that run elsewhere stay where they
// are; the pod itself is looked at as if it were not placed yet. not_found lists pods like it.
Result<Explanation> explain_pod(const KubernetesCluster& cluster, const std::string& pod,
                                const std::string& policy = "default",
                                const std::string& engine = "auto");

std::string explanation_text(const Explanation& explanation);
std::string explanation_json(const Explanation& explanation);

}  // namespace penstock
#endif
