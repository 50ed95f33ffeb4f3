// The count columns of a cluster's table: how many pods, of those that a predicate picks, each
// domain of a topology has; how many nodes; or numbers by row.
//
// Invariant: a column of pods or nodes holds at any time what a count over the cluster's pods and
// nodes gives. A change of the cluster is a list of updates that this class makes, or a commit of a
// task with the raises of its pod's class.
#ifndef PENSTOCK_SCHED_COUNT_COLUMNS_H_
#define PENSTOCK_SCHED_COUNT_COLUMNS_H_

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "penstock/sched/kubernetes.h"
#include "penstock/sched/node_table.h"
#include "penstock/sched/pod_class.h"

namespace penstock {

// A pod that names a node.
struct PlacedPod {
  KubernetesPod pod;
  PodClass* pods = nullptr;
};

using PodPredicate = std::function<bool(const PodClass&)>;

// One thread at a time.
class CountColumns {
 public:
  struct Column {
    std::uint16_t count = 0;
    std::uint16_t domain = 0;
    std::uint32_t domains = 0;  // [0, domains) are in use
  };

  // Counts on this table from here on, from nothing. `serial` is its own: no other table had it.
  void use(NodeTable* table, std::uint64_t serial);
  // The pods on a row, which outlive this; null: the row holds no node.
  void set_row(std::uint32_t row, const std::vector<PlacedPod*>* pods);

  // ---- columns ----
  // The column for `key` of the pods that the predicate picks, on nodes that are eligible (a bit
  // column; 0: all), by a label of nodes; or row by row, on the nodes that have the label. The same
  // key stands for the same predicate. by_namespaces: it changes with the labels of namespaces.
  Result<Column> pods(const std::string& key, const std::string& label, bool by_row,
                      std::uint16_t eligible, const PodPredicate& picks, bool by_namespaces);
  // How many eligible nodes each domain has.
  Result<Column> nodes(const std::string& label, std::uint16_t eligible);
  // Numbers by row. `stamp` says how old they may be: values are asked for when the column is new
  // or had another stamp.
  Result<Column> rows(const std::string& key, std::uint64_t stamp,
                      const std::function<std::vector<std::int32_t>()>& values);

  // ---- changes ----
  // What a pod of this class raises on the row that it goes to.
  std::vector<penstock_raise> raises(PodClass* pods);
  // Updates that add (sign 1) or take away (-1) what the row's node and its pods count for.
  void append_row(std::uint32_t row, int sign, std::vector<penstock_update>* out);
  // After labels of namespaces have changed.
  void drop_by_namespaces();

 private:
  struct Spec {
    enum class Kind : std::uint8_t { none, pods, nodes, rows };
    Kind kind = Kind::none;
    PodPredicate picks;
    bool by_namespaces = false;
    std::uint64_t serial = 0;
    std::uint64_t stamp = 0;
  };
  Result<Column> found(std::uint16_t column) const;
  void react(PodClass* pods);
  std::vector<std::int32_t> count_pods(std::uint16_t domain, std::uint16_t eligible,
                                       const PodPredicate& picks) const;
  // Whether the column is what its spec says, and not another's by now.
  bool is_current(std::uint32_t column) const;

  NodeTable* table_ = nullptr;
  std::uint64_t table_serial_ = 0;
  std::vector<Spec> specs_;  // by count column
  std::vector<const std::vector<PlacedPod*>*> rows_;
};

}  // namespace penstock
#endif
