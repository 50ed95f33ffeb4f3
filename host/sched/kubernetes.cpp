#include "penstock/sched/kubernetes.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "penstock/descriptor/node_table.h"
#include "penstock/sched/csv.h"
#include "penstock/sched/json_field.h"
#include "penstock/sched/kubernetes_objects.h"
#include "penstock/sched/quantity.h"

namespace penstock {

Result<Amounts> read_amounts(const JsonField& field) {
  Amounts amounts;
  PENSTOCK_TRY(field.each_member([&](const std::string& name, const JsonField& item) -> Status {
    // A number stands for itself: `cpu: 2`.
    std::string text;
    if (item.present() && item.json().is_number()) {
      text = item.json().dump();
    } else {
      PENSTOCK_ASSIGN(text, item.text());
    }
    const auto amount = name == "cpu" ? parse_milli_quantity(text) : parse_quantity(text);
    if (!amount.ok()) return amount.status().with_context(item.where());
    amounts[name] = amount.value();
    return {};
  }));
  return amounts;
}

namespace {

// Reads the objects of one document.
class Reader {
 public:
  Status read(const JsonField& object);
  Result<KubernetesCluster> finish(const std::string& name);

 private:
  Status read_one(const std::string& kind, const JsonField& object);
  Status read_node(const JsonField& object);
  Status read_pod(const JsonField& object);

  KubernetesCluster cluster_;
  std::set<std::string> node_names_, pod_names_;
  std::map<std::string, std::size_t> ignored_;  // objects of other kinds
};

Status Reader::read_node(const JsonField& object) {
  PENSTOCK_ASSIGN(KubernetesNode node, read_kubernetes_node(object));
  if (!node_names_.insert(node.facts.name).second) {
    const JsonField metadata = object.member("metadata");
    return metadata.member("name").wrong("a name of its own, and another node has it");
  }
  if (node.allocatable.empty()) {
    cluster_.warnings.push_back(fmt::format(
        "node {} has no status.allocatable, so that nothing fits there", node.facts.name));
  }
  if (cluster_.nodes.size() == PENSTOCK_MAX_ROWS) {
    return error(Code::out_of_range, "{}: more than {} nodes", object.where(), PENSTOCK_MAX_ROWS);
  }
  cluster_.nodes.push_back(std::move(node));
  return {};
}

Status Reader::read_pod(const JsonField& object) {
  const JsonField status = object.member("status"), metadata = object.member("metadata");
  PENSTOCK_ASSIGN(const std::string phase, status.member("phase").text());
  if (phase == "Succeeded" || phase == "Failed") {
    PENSTOCK_ASSIGN(const std::string space, read_namespace_name(metadata));
    PENSTOCK_ASSIGN(const std::string name, metadata.member("name").text());
    cluster_.ended.push_back(fmt::format("{}/{}", space, name));
    return {};
  }
  PENSTOCK_ASSIGN(KubernetesPod pod, read_kubernetes_pod(object));
  if (!pod_names_.insert(pod.name).second) {
    return metadata.member("name").wrong("a name of its own, and another pod has it");
  }
  cluster_.pods.push_back(std::move(pod));
  return {};
}

// An object of a kind that is no list.
Status Reader::read_one(const std::string& kind, const JsonField& object) {
  if (kind == "Node") return read_node(object);
  if (kind == "Pod") return read_pod(object);
  if (kind == "Namespace") {
    PENSTOCK_ASSIGN(KubernetesNamespace space, read_kubernetes_namespace(object));
    cluster_.namespaces.push_back(std::move(space));
    return {};
  }
  if (is_owner_kind(kind)) {
    PENSTOCK_ASSIGN(KubernetesOwner owner, read_kubernetes_owner(object, kind));
    cluster_.owners.push_back(std::move(owner));
    return {};
  }
  ++ignored_[kind];
  return {};
}

Status Reader::read(const JsonField& object) {
  if (!object.present() || !object.json().is_object()) return object.wrong("an object");
  PENSTOCK_ASSIGN(const std::string kind, object.member("kind").text());
  if (kind.empty()) return object.member("kind").wrong("Node, Pod, List, NodeList or PodList");
  const bool mixed = kind == "List";
  const std::string of_items =
      kind.ends_with("List") ? kind.substr(0, kind.size() - std::string_view("List").size()) : "";
  const bool one_kind =
      of_items == "Node" || of_items == "Pod" || of_items == "Namespace" || is_owner_kind(of_items);
  if (!mixed && !one_kind) return read_one(kind, object);
  const JsonField items = object.member("items");
  return items.each([&](const JsonField& item) -> Status {
    // Items of a NodeList and the like need not name their kind.
    if (one_kind && item.present() && item.json().is_object() && !item.member("kind").present()) {
      return read_one(of_items, item);
    }
    return read(item);
  });
}

Result<KubernetesCluster> Reader::finish(const std::string& name) {
  auto& warnings = cluster_.warnings;
  if (cluster_.nodes.empty() && cluster_.pods.empty() && cluster_.ended.empty() &&
      cluster_.namespaces.empty() && cluster_.owners.empty()) {
    return error(Code::invalid_argument,
                 "{}: found no Node and no Pod, expected what 'kubectl get "
                 "nodes,pods -A -o json' prints",
                 name);
  }
  if (cluster_.nodes.empty()) warnings.push_back("the document holds no node");
  for (const KubernetesPod& pod : cluster_.pods) {
    if (!pod.node_name.empty() && !node_names_.contains(pod.node_name)) {
      warnings.push_back(fmt::format("pod {} runs on node {}, which is not in the document",
                                     pod.name, pod.node_name));
    }
  }
  for (const auto& [kind, count] : ignored_) {
    warnings.push_back(fmt::format("{} objects of kind {} are ignored", count, kind));
  }
  return std::move(cluster_);
}

}  // namespace

Result<KubernetesCluster> parse_kubernetes(std::string_view bytes, const std::string& name) {
  if (bytes.size() > kMaxKubernetesBytes) {
    return error(Code::out_of_range, "{}: the document has {} bytes; at most {} are read", name,
                 bytes.size(), kMaxKubernetesBytes);
  }
  if (bytes.empty()) {
    return error(Code::invalid_argument, "{}: the file is empty, expected JSON", name);
  }
  PENSTOCK_ASSIGN(const nlohmann::json document, parse_json(bytes, name, kMaxKubernetesDepth));
  Reader reader;
  PENSTOCK_TRY(reader.read(JsonField(document, name)));
  return reader.finish(name);
}

Result<KubernetesCluster> read_kubernetes(const std::string& path) {
  PENSTOCK_ASSIGN(const std::string bytes, read_file(path, kMaxKubernetesBytes));
  return parse_kubernetes(bytes, path);
}

}  // namespace penstock
