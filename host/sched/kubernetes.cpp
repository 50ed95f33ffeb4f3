#include "penstock/sched/kubernetes.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "penstock/descriptor/node_table.h"
#include "penstock/sched/csv.h"
#include "penstock/sched/json_field.h"
#include "penstock/sched/kubernetes_pod.h"
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

Result<Taint> read_taint(const JsonField& item) {
  PENSTOCK_TRY(item.expect_object());
  Taint taint;
  PENSTOCK_ASSIGN(taint.key, item.member("key").text());
  PENSTOCK_ASSIGN(taint.value, item.member("value").text());
  PENSTOCK_ASSIGN(taint.effect, item.member("effect").text());
  if (taint.effect != "NoSchedule" && taint.effect != "PreferNoSchedule" &&
      taint.effect != "NoExecute") {
    return item.member("effect").wrong("NoSchedule, PreferNoSchedule or NoExecute");
  }
  return taint;
}

// Reads the objects of one document.
class Reader {
 public:
  Status read(const JsonField& object);
  Result<KubernetesCluster> finish(const std::string& name);

 private:
  Status read_node(const JsonField& object);
  Status read_pod(const JsonField& object);

  KubernetesCluster cluster_;
  std::set<std::string> node_names_, pod_names_;
  std::map<std::string, std::size_t> ignored_;  // objects of other kinds
  std::size_t with_images_ = 0;
};

Status Reader::read_node(const JsonField& object) {
  KubernetesNode node;
  const JsonField metadata = object.member("metadata"), spec = object.member("spec"),
                  status = object.member("status");
  PENSTOCK_TRY(metadata.expect_object());
  PENSTOCK_TRY(spec.expect_object());
  PENSTOCK_TRY(status.expect_object());
  const JsonField name = metadata.member("name");
  PENSTOCK_ASSIGN(node.facts.name, name.text());
  if (node.facts.name.empty()) return name.wrong("a name");
  if (!node_names_.insert(node.facts.name).second) {
    return name.wrong("a name of its own, and another node has it");
  }
  PENSTOCK_ASSIGN(node.facts.labels, metadata.member("labels").texts());
  PENSTOCK_ASSIGN(node.facts.taints, read_list<Taint>(spec.member("taints"), read_taint));
  PENSTOCK_ASSIGN(node.unschedulable, spec.member("unschedulable").boolean());
  PENSTOCK_ASSIGN(node.allocatable, read_amounts(status.member("allocatable")));
  if (node.allocatable.empty()) {
    cluster_.warnings.push_back(fmt::format(
        "node {} has no status.allocatable, so that nothing fits there", node.facts.name));
  }
  const JsonField images = status.member("images");
  if (images.present() && images.json().is_array() && !images.json().empty()) ++with_images_;
  if (cluster_.nodes.size() == PENSTOCK_MAX_ROWS) {
    return error(Code::out_of_range, "{}: more than {} nodes", object.where(), PENSTOCK_MAX_ROWS);
  }
  cluster_.nodes.push_back(std::move(node));
  return {};
}

Status Reader::read_pod(const JsonField& object) {
  const JsonField status = object.member("status"), metadata = object.member("metadata");
  PENSTOCK_ASSIGN(const std::string phase, status.member("phase").text());
  if (phase == "Succeeded" || phase == "Failed") return {};
  PENSTOCK_ASSIGN(KubernetesPod pod, read_kubernetes_pod(object));
  if (!pod_names_.insert(pod.name).second) {
    return metadata.member("name").wrong("a name of its own, and another pod has it");
  }
  cluster_.pods.push_back(std::move(pod));
  return {};
}

Status Reader::read(const JsonField& object) {
  if (!object.present() || !object.json().is_object()) return object.wrong("an object");
  PENSTOCK_ASSIGN(const std::string kind, object.member("kind").text());
  if (kind == "Node") return read_node(object);
  if (kind == "Pod") return read_pod(object);
  if (kind == "List" || kind == "NodeList" || kind == "PodList") {
    const JsonField items = object.member("items");
    return items.each([&](const JsonField& item) -> Status {
      // Items of a NodeList or PodList need not name their kind.
      if (item.present() && item.json().is_object() && !item.member("kind").present()) {
        if (kind == "NodeList") return read_node(item);
        if (kind == "PodList") return read_pod(item);
      }
      return read(item);
    });
  }
  if (kind.empty()) return object.member("kind").wrong("Node, Pod, List, NodeList or PodList");
  ++ignored_[kind];
  return {};
}

Result<KubernetesCluster> Reader::finish(const std::string& name) {
  auto& warnings = cluster_.warnings;
  if (cluster_.nodes.empty() && cluster_.pods.empty()) {
    return error(Code::invalid_argument,
                 "{}: found no Node and no Pod, expected what 'kubectl get "
                 "nodes,pods -A -o json' prints",
                 name);
  }
  if (cluster_.nodes.empty()) warnings.push_back("the document holds no node");
  std::size_t with_affinity = 0;
  for (const KubernetesPod& pod : cluster_.pods) {
    if (!pod.node_name.empty() && !node_names_.contains(pod.node_name)) {
      warnings.push_back(fmt::format("pod {} runs on node {}, which is not in the document",
                                     pod.name, pod.node_name));
    }
    if (!pod.node_name.empty() && pod.has_pod_affinity) ++with_affinity;
  }
  if (with_affinity > 0) {
    warnings.push_back(
        fmt::format("unsupported: what the pod affinity of {} placed pods means for other pods is "
                    "not evaluated",
                    with_affinity));
  }
  if (with_images_ > 0) {
    warnings.push_back(fmt::format(
        "unsupported: ImageLocality is not scored, and {} nodes list images", with_images_));
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
