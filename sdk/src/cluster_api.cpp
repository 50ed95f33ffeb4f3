// The scheduling half of the C interface.
#include <algorithm>
#include <cstring>
#include <memory>
#include <string>

#include "last_error.h"
#include "penstock/base/env.h"
#include "penstock/sched/kubernetes.h"
#include "penstock/sched/kubernetes_cluster.h"

using penstock::Code;
using penstock::Status;
using penstock::sdk::guarded;

struct penstock_cluster {
  penstock::KubernetesCluster cluster;
  std::unique_ptr<penstock::Cluster> made;
};

namespace {

Status read(const char* path, const char* policy, const char* engine, penstock_cluster** out) {
  if (path == nullptr || out == nullptr) {
    return Status(Code::invalid_argument, "penstock_cluster_read: path or cluster is null");
  }
  *out = nullptr;
  auto handle = std::make_unique<penstock_cluster>();
  PENSTOCK_ASSIGN(penstock::ClusterConfig config,
                  penstock::cluster_config(policy == nullptr ? "default" : policy));
  PENSTOCK_ASSIGN(handle->cluster, penstock::read_kubernetes(path));
  PENSTOCK_ASSIGN(
      config.engine,
      penstock::make_engine(engine == nullptr ? penstock::env::text(penstock::env::Id::engine)
                                              : std::string(engine)));
  PENSTOCK_ASSIGN(handle->made,
                  penstock::make_kubernetes_cluster(handle->cluster, std::move(config)));
  *out = handle.release();
  return {};
}

Status place(penstock_cluster& handle, const std::string& name, bool commit,
             penstock_decision* out) {
  const auto& pods = handle.cluster.pods;
  const auto pod = std::find_if(pods.begin(), pods.end(), [&](const auto& candidate) {
    return candidate.name == name && candidate.node_name.empty();
  });
  if (pod == pods.end() || handle.made->find_pod(name) != nullptr) {
    return penstock::error(Code::not_found, "no pending pod '{}'; pods are named namespace/name",
                           name);
  }
  if (!pod->unsupported.empty()) {
    return penstock::error(Code::unsupported, "pod '{}': {}", name, pod->unsupported.front());
  }
  PENSTOCK_ASSIGN(const penstock::PodDecision decision, handle.made->decide(*pod, commit));
  if (decision.node.size() >= sizeof(out->node)) {
    return penstock::error(Code::out_of_range, "the name of node '{}' has {} bytes; at most {}",
                           decision.node, decision.node.size(), sizeof(out->node) - 1);
  }
  std::memset(out->node, 0, sizeof(out->node));
  std::memcpy(out->node, decision.node.data(), decision.node.size());
  out->score = decision.score;
  out->feasible = decision.feasible;
  return {};
}

}  // namespace

extern "C" {

penstock_status penstock_cluster_read(const char* path, const char* policy, const char* engine,
                                      penstock_cluster** cluster) {
  return guarded([&] { return read(path, policy, engine, cluster); });
}

void penstock_cluster_destroy(penstock_cluster* cluster) { delete cluster; }

penstock_status penstock_cluster_place(penstock_cluster* cluster, const char* pod, int commit,
                                       penstock_decision* decision) {
  return guarded([&]() -> Status {
    if (cluster == nullptr || pod == nullptr || decision == nullptr) {
      return Status(Code::invalid_argument,
                    "penstock_cluster_place: cluster, pod or decision is null");
    }
    if (decision->size != sizeof(penstock_decision)) {
      return penstock::error(Code::invalid_argument,
                             "penstock_decision.size is {}, this library knows {}; set it with "
                             "PENSTOCK_DECISION_INIT",
                             decision->size, sizeof(penstock_decision));
    }
    return place(*cluster, pod, commit != 0, decision);
  });
}
}
