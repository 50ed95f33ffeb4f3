#include "penstock/sched/kubernetes_table.h"

#include <algorithm>
#include <set>
#include <span>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "penstock/sched/explain.h"
#include "penstock/sched/node_affinity.h"
#include "penstock/sched/ports.h"
#include "penstock/sched/taints.h"

namespace penstock {
namespace {

constexpr std::uint32_t kBitColumns = 1024;

Result<std::vector<ResourceName>> resources_of(const KubernetesCluster& cluster) {
  std::vector<ResourceName> resources = {
      {"cpu", "milli"}, {"memory", "bytes"}, {"ephemeral-storage", "bytes"}, {"pods", ""}};
  std::set<std::string> more;
  for (const KubernetesPod& pod : cluster.pods) {
    for (const auto& [name, amount] : pod.request) {
      if (amount > 0) more.insert(name);
    }
  }
  for (const ResourceName& known : resources) more.erase(known.name);
  for (const std::string& name : more) {
    resources.push_back({name, name.starts_with("hugepages-") ? "bytes" : ""});
  }
  if (resources.size() > PENSTOCK_MAX_RESOURCES) {
    return error(Code::unsupported,
                 "the pods ask for {} kinds of resources, at most {} are counted", resources.size(),
                 PENSTOCK_MAX_RESOURCES);
  }
  return resources;
}

NodeSpec spec_of(const KubernetesNode& node, const std::vector<ResourceName>& resources) {
  NodeSpec spec;
  spec.facts = node.facts;
  spec.unschedulable = node.unschedulable;
  for (const ResourceName& resource : resources) {
    const auto amount = node.allocatable.find(resource.name);
    spec.allocatable.push_back(amount == node.allocatable.end() ? 0 : amount->second);
  }
  return spec;
}

void fill_requests(const Catalogue& catalogue, const KubernetesPod& pod, penstock_task* record) {
  const auto fill = [&](const Amounts& amounts, std::int64_t* out) {
    for (const auto& [name, amount] : amounts) {
      const std::int32_t column = catalogue.find_resource(name);
      // What has no column is asked for by nobody: see resources_of.
      if (column >= 0) out[column] = amount;
    }
    if (const std::int32_t pods = catalogue.find_resource("pods"); pods >= 0) out[pods] = 1;
  };
  fill(pod.request, record->request);
  fill(pod.scored_request, record->scored_request);
}

// A pod that runs already counts with its requests and ports; it is asked nothing.
Status occupy_node(NodeTable* table, std::uint32_t row, const KubernetesPod& pod) {
  Task task;
  task.name = pod.name;
  fill_requests(table->catalogue(), pod, &task.record);
  PENSTOCK_ASSIGN(const std::vector<std::uint16_t> columns, port_columns(table, pod.ports));
  constexpr std::size_t kAtATime = std::size(decltype(task.record.set_bits){});
  std::size_t at = 0;
  do {
    const std::size_t n = std::min(kAtATime, columns.size() - at);
    std::copy_n(columns.begin() + static_cast<std::ptrdiff_t>(at), n, task.record.set_bits);
    PENSTOCK_TRY(table->occupy(row, task, 0));
    at += n;
    task = {};
    task.name = pod.name;
  } while (at < columns.size());
  return {};
}

}  // namespace

Result<std::unique_ptr<NodeTable>> make_kubernetes_table(const KubernetesCluster& cluster,
                                                         std::shared_ptr<Engine> engine,
                                                         const KubernetesTableOptions& options) {
  NodeTableConfig config;
  config.name = options.table_name;
  config.capacity = static_cast<std::uint32_t>(std::max<std::size_t>(cluster.nodes.size(), 1));
  PENSTOCK_ASSIGN(config.resources, resources_of(cluster));
  config.bit_columns = kBitColumns;
  PENSTOCK_ASSIGN(auto table, NodeTable::create(options.pool, std::move(engine), config));
  std::vector<NodeSpec> rows;
  rows.reserve(cluster.nodes.size());
  for (const KubernetesNode& node : cluster.nodes) rows.push_back(spec_of(node, config.resources));
  PENSTOCK_TRY(table->add_nodes(rows));
  for (const KubernetesPod& pod : cluster.pods) {
    if (pod.node_name.empty() || pod.name == options.without_pod) continue;
    const std::int32_t row = table->catalogue().find_node(pod.node_name);
    if (row < 0) continue;  // the reader has warned
    PENSTOCK_TRY(occupy_node(table.get(), static_cast<std::uint32_t>(row), pod));
  }
  PENSTOCK_TRY(table->save());
  return table;
}

Result<Task> make_kubernetes_task(NodeTable& table, const KubernetesPod& pod) {
  Task task;
  task.name = pod.name;
  task.unsupported = pod.unsupported;
  const auto note = [&task](std::size_t n, const char* what) {
    if (n == 0) return;
    task.unsupported.push_back(
        fmt::format("unsupported: {} ({}) of the pod: not evaluated", what, n));
  };
  note(pod.spread.size(), "topologySpreadConstraints");
  note(pod.affinity.required.size() + pod.affinity.preferred.size(), "podAffinity");
  note(pod.anti_affinity.required.size() + pod.anti_affinity.preferred.size(), "podAntiAffinity");
  fill_requests(table.catalogue(), pod, &task.record);
  PENSTOCK_TRY(add_taint_terms(&table, pod.tolerations, &task));
  PENSTOCK_TRY(add_affinity_terms(&table, pod, &task));
  PENSTOCK_TRY(add_port_terms(&table, pod.ports, &task));
  return task;
}

FilterReason kubernetes_reason(const NodeTable& table, const KubernetesCluster& cluster,
                               const KubernetesPod& pod) {
  return [&table, &cluster, &pod](const std::string& filter, std::uint32_t row) -> std::string {
    const NodeFacts& node = table.catalogue().node(row);
    if (filter == "unschedulable") return "unschedulable: the node is cordoned";
    if (filter == "taints") {
      const Taint* taint = find_untolerated(node.taints, pod.tolerations);
      return taint == nullptr ? "" : "untolerated taint: " + taint_text(*taint);
    }
    if (filter == "node-affinity") return "node affinity or selector does not match";
    if (filter != "ports") return "";
    for (const KubernetesPod& other : cluster.pods) {
      if (other.node_name != node.name || other.name == pod.name) continue;
      for (const HostPort& theirs : other.ports) {
        for (const HostPort& ours : pod.ports) {
          if (!conflict(ours, theirs)) continue;
          return fmt::format("port taken: {} by {}", port_text(ours), other.name);
        }
      }
    }
    return "port taken";
  };
}

Result<std::vector<PendingDecision>> place_pending(const KubernetesCluster& cluster,
                                                   const std::string& policy,
                                                   const std::string& engine) {
  PENSTOCK_ASSIGN(const Policy rules, find_policy(policy));
  PENSTOCK_ASSIGN(auto executor, make_engine(engine));
  PENSTOCK_ASSIGN(auto table, make_kubernetes_table(cluster, std::move(executor)));
  std::vector<PendingDecision> decisions;
  // One at a time, so that the reason why a pod fits nowhere is that of its moment. Ports of pods
  // that were placed here are found by name, too.
  KubernetesCluster now = cluster;
  for (KubernetesPod& pod : now.pods) {
    if (!pod.node_name.empty()) continue;
    PendingDecision& out = decisions.emplace_back();
    out.pod = pod.name;
    out.warnings = pod.unsupported;
    table->new_batch();
    auto task = make_kubernetes_task(*table, pod);
    if (!task.ok()) {
      if (task.status().code() != Code::unsupported) return task.status();
      out.reason = task.status().message();
      continue;
    }
    out.warnings = task.value().unsupported;
    PENSTOCK_ASSIGN(auto placed, table->place(rules, {&task.value(), 1}, true));
    out.decision = std::move(placed[0]);
    if (out.decision.row >= 0) {
      pod.node_name = out.decision.node;
      continue;
    }
    PENSTOCK_ASSIGN(const Explanation why,
                    explain(*table, rules, task.value(), kubernetes_reason(*table, now, pod)));
    out.reason = why.summary;
  }
  return decisions;
}

}  // namespace penstock
