#include "penstock/sched/kubernetes_cluster.h"

#include <algorithm>
#include <utility>

#include "penstock/engine/choice.h"
#include "penstock/sched/node_affinity.h"
#include "penstock/sched/ports.h"
#include "penstock/sched/scheduler_config.h"
#include "penstock/sched/taints.h"

namespace penstock {

Result<ClusterConfig> cluster_config(const std::string& policy) {
  ClusterConfig config;
  if (policy.find_first_of("./") != std::string::npos) {
    PENSTOCK_ASSIGN(const SchedulerConfig file, read_scheduler_config(policy));
    config.profile = file.profiles.front();
    return config;
  }
  PENSTOCK_ASSIGN(const Policy rules, find_policy(policy));
  config.profile.scheduler_name = policy;
  if (policy == "default") return config;
  config.profile.filters = rules.filters;
  config.profile.scores = rules.scores;
  config.tie = rules.tie;
  return config;
}

Result<std::unique_ptr<Cluster>> make_kubernetes_cluster(const KubernetesCluster& snapshot,
                                                         ClusterConfig config,
                                                         const std::string& without_pod) {
  config.capacity = static_cast<std::uint32_t>(std::max<std::size_t>(snapshot.nodes.size(), 1));
  PENSTOCK_ASSIGN(auto cluster, Cluster::create(config));
  for (const KubernetesNamespace& space : snapshot.namespaces) {
    PENSTOCK_TRY(cluster->put_namespace(space.name, space.labels));
  }
  for (const KubernetesOwner& owner : snapshot.owners) PENSTOCK_TRY(cluster->put_owner(owner));
  for (const KubernetesNode& node : snapshot.nodes) PENSTOCK_TRY(cluster->put_node(node));
  for (const KubernetesPod& pod : snapshot.pods) {
    if (pod.name != without_pod) PENSTOCK_TRY(cluster->put_pod(pod));
  }
  return cluster;
}

FilterReason kubernetes_reason(const Cluster& cluster, const KubernetesPod& pod) {
  return [&cluster, &pod](const std::string& filter, std::uint32_t row) -> std::string {
    const NodeFacts& node = cluster.catalogue().node(row);
    if (filter == "unschedulable") return "unschedulable: the node is cordoned";
    if (filter == "taints") {
      const Taint* taint = find_untolerated(node.taints, pod.tolerations);
      return taint == nullptr ? "" : "untolerated taint: " + taint_text(*taint);
    }
    if (filter == "node-affinity") return "node affinity or selector does not match";
    if (filter != "ports") return "";
    for (const KubernetesPod* other : cluster.pods_on(node.name)) {
      for (const HostPort& theirs : other->ports) {
        for (const HostPort& ours : pod.ports) {
          if (!conflict(ours, theirs)) continue;
          return fmt::format("port taken: {} by {}", port_text(ours), other->name);
        }
      }
    }
    return "port taken";
  };
}

Result<std::vector<PendingDecision>> place_pending(const KubernetesCluster& snapshot,
                                                   const std::string& policy,
                                                   const std::string& engine) {
  PENSTOCK_ASSIGN(ClusterConfig config, cluster_config(policy));
  PENSTOCK_ASSIGN(config.engine, make_engine(engine, needs_of_decisions()));
  PENSTOCK_ASSIGN(auto cluster, make_kubernetes_cluster(snapshot, std::move(config)));
  std::vector<PendingDecision> decisions;
  for (const KubernetesPod& pod : snapshot.pods) {
    if (!pod.node_name.empty()) continue;
    PendingDecision& out = decisions.emplace_back();
    out.pod = pod.name;
    out.warnings = pod.unsupported;
    auto decision = cluster->decide(pod, true);
    if (decision.ok()) {
      out.decision = std::move(decision).value();
    } else if (decision.status().code() == Code::unsupported ||
               decision.status().code() == Code::out_of_range) {
      out.decision.reason = decision.status().message();
    } else {
      return decision.status();
    }
  }
  return decisions;
}

}  // namespace penstock
