// A Kubernetes cluster as a node table, and kube-scheduler's decisions (v1.34) on it. Whoever
// follows a cluster tells it what there is, in any order; a decision is a task and a program run by
// an engine.
//
// Invariants: every put and remove states what is now so, and may be repeated. What is wrong is
// refused before anything is changed. A pod with a node occupies it from the moment on that both
// are known. Count columns equal what a count over the cluster's pods gives.
//
// Every node is considered in every decision: percentageOfNodesToScore means nothing here.
#ifndef PENSTOCK_SCHED_CLUSTER_H_
#define PENSTOCK_SCHED_CLUSTER_H_

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "penstock/base/status.h"
#include "penstock/descriptor/node_table.h"
#include "penstock/engine/engine.h"
#include "penstock/memory/pool.h"
#include "penstock/sched/catalogue.h"
#include "penstock/sched/kubernetes.h"
#include "penstock/sched/node_table.h"
#include "penstock/sched/policy.h"
#include "penstock/sched/scheduler_profile.h"
#include "penstock/sched/task.h"

namespace penstock {

struct ClusterConfig {
  Pool* pool = nullptr;            // null: the table stands in this process's memory
  std::string table_name;          // of the region in a pool; "": anonymous
  std::shared_ptr<Engine> engine;  // null: "auto"
  SchedulerProfile profile = SchedulerProfile::defaults();
  // To begin with; they grow: rows, and columns that a task can ask.
  std::uint32_t capacity = 1024;
  std::uint32_t bit_columns = 512, domain_columns = 8, count_columns = 64;
  std::uint64_t seed = 0;  // of PENSTOCK_TIE_HASH
  penstock_tie tie = PENSTOCK_TIE_LOWEST_ROW;
};

struct NodeVerdict {
  std::string node;
  bool feasible = false;
  std::string plugin;                // the first that refused the node; "" when feasible
  std::string code;                  // "Success", "Unschedulable", "UnschedulableAndUnresolvable"
  std::vector<std::string> reasons;  // in kube-scheduler's words
};

struct PodDecision {
  std::string node;  // "": none fits
  std::int64_t score = 0;
  std::uint32_t feasible = 0;                              // nodes that passed the filters
  std::vector<std::pair<std::string, std::int64_t>> best;  // the best nodes with their scores
  // "0/3 nodes are available: 1 Insufficient cpu, 2 node(s) were unschedulable." when none fits.
  std::string reason;
};

// What one score of the profile gives the candidates, in their order.
struct PluginScores {
  std::string plugin;
  std::int32_t weight = 1;
  bool skipped = false;  // it has nothing to say about this pod; all are 0 then
  std::vector<std::int64_t> raw;
  std::vector<std::int64_t> normalised;
};

// One thread at a time.
class Cluster {
 public:
  // unsupported or invalid_argument for a profile that cannot be run, no_space, and what
  // NodeTable::create says.
  static Result<std::unique_ptr<Cluster>> create(const ClusterConfig& config);
  ~Cluster();
  Cluster(const Cluster&) = delete;
  Cluster& operator=(const Cluster&) = delete;

  // ---- what there is ----
  // Adds the node, or changes its labels, taints, amounts, images, or whether it is cordoned.
  Status put_node(const KubernetesNode& node);
  // ok if there is no such node. Its pods are remembered and occupy it again when it comes back.
  Status remove_node(const std::string& name);
  // One with a node occupies it, wherever it was before; one without occupies nothing.
  Status put_pod(const KubernetesPod& pod);
  Status remove_pod(const std::string& key);  // "namespace/name"
  Status put_namespace(const std::string& name, const std::map<std::string, std::string>& labels);
  Status remove_namespace(const std::string& name);
  // Kinds: Service, ReplicationController, ReplicaSet, StatefulSet.
  Status put_owner(const KubernetesOwner& owner);
  Status remove_owner(const std::string& kind, const std::string& key);  // "namespace/name"
  // All of a document at once: what it does not list is removed.
  Status put_all(const KubernetesCluster& cluster);

  // ---- decisions ----
  // `candidates` empty: all nodes; a name that is not known is ignored. Without commit nothing
  // changes; with it the pod occupies the node, as after assume(). already_exists when a pod of
  // that name occupies one already.
  Result<PodDecision> decide(const KubernetesPod& pod, bool commit, std::uint32_t best = 1,
                             std::span<const std::string> candidates = {});
  // In the order of candidates, or of nodes' rows when there are none. A candidate that is not
  // known is UnschedulableAndUnresolvable.
  Result<std::vector<NodeVerdict>> filter(const KubernetesPod& pod,
                                          std::span<const std::string> candidates = {});
  // Scores the candidates as the nodes that passed the filters, which are not asked. not_found for
  // one that is not known. Plugins in the profile's order.
  Result<std::vector<PluginScores>> score(const KubernetesPod& pod,
                                          std::span<const std::string> candidates);
  // put_pod on that node without asking the filters, for a binding that is on its way; forget
  // takes it back. not_found if there is no such node.
  Status assume(const KubernetesPod& pod, const std::string& node);
  Status forget(const std::string& key);

  // ---- reading ----
  NodeTable& table();
  const NodeTable& table() const;
  const Catalogue& catalogue() const;
  const SchedulerProfile& profile() const;
  const std::string& engine_name() const;
  // Null if it is not known.
  const KubernetesNode* find_node(const std::string& name) const;
  const KubernetesPod* find_pod(const std::string& key) const;
  std::vector<std::string> node_names() const;  // in the order of rows
  std::vector<const KubernetesPod*> pods_on(const std::string& node) const;
  std::size_t pod_count() const;  // of those that name a node

  // ---- for who runs tasks on the table itself ----
  // The pod as a task. It may be used until version() changes; a commit of it must be told by
  // assume_committed(), or taken back by the caller.
  Result<Task> make_task(const KubernetesPod& pod);
  Result<Program> make_program(std::uint32_t best = 1);
  // Rises when tasks and programs that were made before mean something else: columns went to
  // another use, terms were added that pods react to, the table was made anew.
  std::uint64_t version() const;
  // A task of make_task(pod) was committed to the row by an engine: the pod is there from now on.
  Status assume_committed(const KubernetesPod& pod, std::uint32_t row);

 private:
  struct State;
  explicit Cluster(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace penstock
#endif
