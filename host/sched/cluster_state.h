// What a Cluster is made of. Internal to the files cluster*.cpp.
#ifndef PENSTOCK_SCHED_CLUSTER_STATE_H_
#define PENSTOCK_SCHED_CLUSTER_STATE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "penstock/engine/scalar_select.h"
#include "penstock/sched/cluster.h"
#include "penstock/sched/count_columns.h"
#include "penstock/sched/image_locality.h"
#include "penstock/sched/node_affinity.h"
#include "penstock/sched/pod_class.h"
#include "penstock/sched/spread.h"
#include "penstock/sched/task_cache.h"

namespace penstock {

struct Cluster::State {
  ClusterConfig config;
  std::shared_ptr<Engine> engine;
  AddedAffinity added;
  // What the profile runs.
  bool filters_spread = false, filters_pod_affinity = false;
  bool scores_spread = false, scores_pod_affinity = false, scores_images = false;

  // ---- what there is; everything below follows from it ----
  std::unordered_map<std::string, KubernetesNode> nodes;
  std::unordered_map<std::string, PlacedPod> pods;  // by key; those that name a node
  std::unordered_map<std::string, std::vector<PlacedPod*>> pods_of;  // by node, known or not
  NamespaceLabels namespaces;
  Owners owners;

  // ---- the table ----
  std::vector<ResourceName> resources;
  std::uint32_t capacity = 0, bit_columns = 0, domain_columns = 0, count_columns = 0;
  std::unique_ptr<NodeTable> table;  // null after a failure that left none
  PodClasses classes;
  TaskCache tasks;
  CountColumns columns;
  ImageNodes images;
  std::uint64_t nodes_changed = 1;  // rises whenever a node comes, goes or changes
  std::uint64_t changed = 0;        // of version(): whatever is not counted elsewhere
  std::uint64_t scratch = 0;        // stamps of columns for one decision
  std::uint64_t tables_made = 0;
  Catalogue::Kind full_in_rebuild = Catalogue::Kind::none;  // of the last that failed
  // By tables_made, best, filters and candidates; of the present table only.
  std::map<std::tuple<std::uint64_t, std::uint32_t, bool, bool>, std::shared_ptr<const Program>>
      programs;

  Status usable() const;
  std::uint64_t version() const;

  // ---- table (cluster_table.cpp) ----
  // Makes the table anew with the geometry above, and puts everything there is on it. On an error
  // the old one stays, except where a named table had to go first.
  Status rebuild();
  Status make_table(std::unique_ptr<NodeTable>* out);
  Status fill_table(const std::vector<std::string>& order);
  std::vector<std::string> names_by_row() const;
  // Room for one more node; for the names of these amounts.
  Status reserve_row();
  Status reserve_resources(const Amounts& amounts, const std::string& who);
  // Twice as many columns of the kinds that ran out; the error itself when there is no more.
  Status more_columns(const Status& full);
  void keep_columns();
  NodeSpec spec_of(const KubernetesNode& node) const;
  std::int32_t row_of(const std::string& node) const;

  // ---- pods (cluster_pods.cpp) ----
  Status put_pod(const KubernetesPod& pod);
  Status remove_pod(const std::string& key);
  // Remembers the pod without changing a cell, and forgets it.
  PlacedPod* remember(const KubernetesPod& pod);
  void forget(PlacedPod* placed);
  // Adds (or takes away) what the pod holds of its node, if that is known: amounts and ports.
  Status hold(PlacedPod* placed, int sign, std::span<const penstock_raise> raises = {});
  // The same with what others count of it.
  Status occupy(PlacedPod* placed, int sign);
  Status check_pod(const KubernetesPod& pod) const;
  // After an engine committed the pod's record: what the record did not hold.
  Status note_committed(PlacedPod* placed, std::uint32_t row);

  // ---- tasks (cluster_task.cpp) ----
  // From the cache, if the pod asks what another asked.
  Result<Task> make_task(const KubernetesPod& pod);
  Result<Task> build_task(const KubernetesPod& pod);
  Status add_pod_terms(const KubernetesPod& pod, PodClass* pods, Task* task);
  Status add_images(const KubernetesPod& pod, std::vector<penstock_domain_term>* terms);
  void fill_requests(const KubernetesPod& pod, penstock_task* record) const;
  Status add_ports(const KubernetesPod& pod, Task* task);
  Result<Program> make_program(std::uint32_t best, bool filters, bool candidates) const;
  // The same, made once for a table.
  Result<std::shared_ptr<const Program>> program_of(std::uint32_t best, bool filters,
                                                    bool candidates);
  // A state column whose bit is set on these rows and on no other.
  Result<std::uint16_t> mark_rows(const std::string& key, const std::vector<std::int32_t>& rows);

  // ---- more terms than a record holds (cluster_fold.cpp) ----
  using Terms = std::vector<penstock_domain_term>;
  Status fold_terms(const KubernetesPod& pod, Terms* terms);
  Status fold_score(Terms* terms);
  Status fold_affinity(Terms* terms);
  Status fold_spread(Terms* terms);
  Status add_rows(const char* what, TermGroup group, std::int32_t weight,
                  std::vector<std::int32_t> values, Terms* terms);
  bool is_for_one_decision(const penstock_domain_term& term) const;
  // Whether it asks for pods that carry a term, and not for those that the pod's own picks.
  bool is_carrier(const penstock_domain_term& term) const;

  // ---- decisions (cluster_decide.cpp) ----
  struct Prepared {
    Task task;
    std::shared_ptr<const Program> program;
    std::uint32_t first_filter = 0, first_score = 0;  // ops of the profile's
  };
  // With the candidates as a filter of their own, unless there are none and all nodes are meant.
  // Rows that were known before may have other numbers after it.
  Result<Prepared> prepare(const KubernetesPod& pod, std::uint32_t best, bool filters,
                           std::span<const std::string> candidates, bool all_nodes);
  // By name; -1 for one that is not known. Without names the rows of all nodes.
  std::vector<std::int32_t> rows_of(std::span<const std::string> names) const;
  NodeVerdict verdict(const Prepared& prepared, const DecisionContext& context,
                      const TableView& cells, const KubernetesPod& pod, std::uint32_t row) const;
  bool is_skipped(const std::string& score, const Prepared& prepared, const penstock_column_op& op,
                  const KubernetesPod& pod) const;
  // That the engine finds the same nodes feasible and gives the best of them the same scores.
  Status compare(const Prepared& prepared, std::uint32_t feasible,
                 const std::vector<std::int64_t>* totals);
};

// ---- what kube-scheduler says of a node that a filter refuses (cluster_reasons.cpp) ----
struct Refusal {
  bool unresolvable = false;  // removing pods would not help
  std::vector<std::string> reasons;
};
struct RefusalInput {
  const NodeTable& table;
  const TableView& cells;
  const SchedulerProfile& profile;
  const DecisionContext& context;
  const penstock_column_op& op;
  const KubernetesPod& pod;
  std::uint32_t row;
};
Refusal refusal(const std::string& filter, const RefusalInput& input);

}  // namespace penstock
#endif
