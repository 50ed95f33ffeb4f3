// The scheduling half of the C interface.
#include "penstock/cluster.h"

#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "last_error.h"
#include "penstock/base/env.h"
#include "penstock/engine/choice.h"
#include "penstock/sched/cluster.h"
#include "penstock/sched/explain.h"
#include "penstock/sched/kubernetes.h"
#include "penstock/sched/kubernetes_cluster.h"
#include "penstock/sched/scheduler_config.h"

using penstock::Cluster;
using penstock::Code;
using penstock::KubernetesPod;
using penstock::Result;
using penstock::Status;
using penstock::sdk::guarded;

struct penstock_cluster {
  std::unique_ptr<Cluster> cluster;
  std::map<std::string, KubernetesPod> pending;  // by namespace/name
  std::string why;
  std::string explanation;
};

namespace {

constexpr char kText[] = "the text given";  // what messages call it

Status is_null(const char* function, const char* what) {
  return penstock::error(Code::invalid_argument, "{}: {} is null", function, what);
}

std::string_view text_of(const char* text, std::size_t bytes) {
  return bytes == 0 ? std::string_view(text) : std::string_view(text, bytes);
}

Result<penstock::SchedulerProfile> profile_of(const penstock_cluster_config& config) {
  penstock::SchedulerConfig read = penstock::SchedulerConfig::defaults();
  if (config.configuration != nullptr) {
    PENSTOCK_ASSIGN(read, penstock::read_scheduler_config(config.configuration));
  }
  if (config.scheduler_name == nullptr) return read.profiles.front();
  const penstock::SchedulerProfile* profile = read.find_profile(config.scheduler_name);
  if (profile != nullptr) return *profile;
  std::string names;
  for (const auto& known : read.profiles) {
    names += (names.empty() ? "" : ", ") + known.scheduler_name;
  }
  return penstock::error(Code::not_found, "no profile has the schedulerName '{}'; there are {}",
                         config.scheduler_name, names);
}

Result<std::shared_ptr<penstock::Engine>> engine_of(const char* name) {
  return penstock::make_engine(
      name == nullptr ? penstock::env::text(penstock::env::Id::engine) : std::string(name),
      penstock::needs_of_decisions());
}

Status create(const penstock_cluster_config& given, penstock_cluster** out) {
  penstock::ClusterConfig config;
  PENSTOCK_ASSIGN(config.profile, profile_of(given));
  PENSTOCK_ASSIGN(config.engine, engine_of(given.engine));
  if (given.capacity != 0) config.capacity = given.capacity;
  auto handle = std::make_unique<penstock_cluster>();
  PENSTOCK_ASSIGN(handle->cluster, Cluster::create(config));
  *out = handle.release();
  return {};
}

// What is pending is remembered here, since the cluster holds what occupies nodes.
Status put_pod(penstock_cluster& handle, const KubernetesPod& pod) {
  PENSTOCK_TRY(handle.cluster->put_pod(pod));
  if (pod.node_name.empty()) {
    handle.pending[pod.name] = pod;
  } else {
    handle.pending.erase(pod.name);
  }
  return {};
}

Status take_out(penstock_cluster& handle, const std::string& kind, const std::string& name) {
  if (kind == "Node") return handle.cluster->remove_node(name);
  if (kind == "Namespace") return handle.cluster->remove_namespace(name);
  if (kind == "Pod") {
    handle.pending.erase(name);
    return handle.cluster->remove_pod(name);
  }
  for (const char* owner : {"Service", "ReplicationController", "ReplicaSet", "StatefulSet"}) {
    if (kind == owner) return handle.cluster->remove_owner(kind, name);
  }
  return penstock::error(Code::invalid_argument,
                         "kind '{}', expected Node, Pod, Namespace, Service, "
                         "ReplicationController, ReplicaSet or StatefulSet",
                         kind);
}

Status put(penstock_cluster& handle, std::string_view json) {
  PENSTOCK_ASSIGN(const penstock::KubernetesCluster read, penstock::parse_kubernetes(json, kText));
  for (const auto& node : read.nodes) PENSTOCK_TRY(handle.cluster->put_node(node));
  for (const auto& space : read.namespaces) {
    PENSTOCK_TRY(handle.cluster->put_namespace(space.name, space.labels));
  }
  for (const auto& owner : read.owners) PENSTOCK_TRY(handle.cluster->put_owner(owner));
  for (const std::string& pod : read.ended) PENSTOCK_TRY(take_out(handle, "Pod", pod));
  for (const auto& pod : read.pods) PENSTOCK_TRY(put_pod(handle, pod));
  return {};
}

Result<KubernetesPod> parse_pod(const char* json, std::size_t bytes) {
  PENSTOCK_ASSIGN(penstock::KubernetesCluster read,
                  penstock::parse_kubernetes(text_of(json, bytes), kText));
  if (read.pods.size() != 1 || !read.nodes.empty()) {
    return penstock::error(Code::invalid_argument,
                           "{}: found {} pods and {} nodes, expected one Pod that has not ended",
                           kText, read.pods.size(), read.nodes.size());
  }
  read.pods.front().node_name.clear();
  return std::move(read.pods.front());
}

Status check(const penstock_decision* decision) {
  if (decision->size == sizeof(penstock_decision)) return {};
  return penstock::error(Code::invalid_argument,
                         "penstock_decision.size is {}, this library knows {}; set it with "
                         "PENSTOCK_DECISION_INIT",
                         decision->size, sizeof(penstock_decision));
}

Status decide(penstock_cluster& handle, const KubernetesPod& pod, bool commit,
              penstock_decision* out) {
  PENSTOCK_TRY(check(out));
  if (!pod.unsupported.empty()) {
    return penstock::error(Code::unsupported, "pod '{}': {}", pod.name, pod.unsupported.front());
  }
  PENSTOCK_ASSIGN(const penstock::PodDecision decision, handle.cluster->decide(pod, commit));
  if (decision.node.size() >= sizeof(out->node)) {
    if (commit) PENSTOCK_TRY(handle.cluster->forget(pod.name));
    return penstock::error(Code::out_of_range, "the name of node '{}' has {} bytes; at most {}",
                           decision.node, decision.node.size(), sizeof(out->node) - 1);
  }
  std::memset(out->node, 0, sizeof(out->node));
  std::memcpy(out->node, decision.node.data(), decision.node.size());
  out->score = decision.score;
  out->feasible = decision.feasible;
  handle.why = decision.reason;
  if (commit && !decision.node.empty()) handle.pending.erase(pod.name);
  return {};
}

Status read(const char* path, const char* policy, const char* engine, penstock_cluster** out) {
  PENSTOCK_ASSIGN(penstock::ClusterConfig config,
                  penstock::cluster_config(policy == nullptr ? "default" : policy));
  PENSTOCK_ASSIGN(const penstock::KubernetesCluster file, penstock::read_kubernetes(path));
  PENSTOCK_ASSIGN(config.engine, engine_of(engine));
  auto handle = std::make_unique<penstock_cluster>();
  PENSTOCK_ASSIGN(handle->cluster, penstock::make_kubernetes_cluster(file, std::move(config)));
  for (const auto& pod : file.pods) {
    if (pod.node_name.empty()) handle->pending[pod.name] = pod;
  }
  *out = handle.release();
  return {};
}

}  // namespace

extern "C" {

penstock_status penstock_cluster_create(const penstock_cluster_config* config,
                                        penstock_cluster** cluster) {
  return guarded([&]() -> Status {
    if (cluster == nullptr) return is_null("penstock_cluster_create", "cluster");
    *cluster = nullptr;
    const penstock_cluster_config usual = PENSTOCK_CLUSTER_CONFIG_INIT;
    if (config == nullptr) config = &usual;
    if (config->size != sizeof(*config)) {
      return penstock::error(Code::invalid_argument,
                             "penstock_cluster_config.size is {}, this library knows {}; set it "
                             "with PENSTOCK_CLUSTER_CONFIG_INIT",
                             config->size, sizeof(*config));
    }
    return create(*config, cluster);
  });
}

penstock_status penstock_cluster_read(const char* path, const char* policy, const char* engine,
                                      penstock_cluster** cluster) {
  return guarded([&]() -> Status {
    if (path == nullptr || cluster == nullptr) {
      return is_null("penstock_cluster_read", "path or cluster");
    }
    *cluster = nullptr;
    return read(path, policy, engine, cluster);
  });
}

void penstock_cluster_destroy(penstock_cluster* cluster) { delete cluster; }

penstock_status penstock_cluster_put(penstock_cluster* cluster, const char* json,
                                     std::size_t bytes) {
  return guarded([&]() -> Status {
    if (cluster == nullptr || json == nullptr) {
      return is_null("penstock_cluster_put", "cluster or json");
    }
    return put(*cluster, text_of(json, bytes));
  });
}

penstock_status penstock_cluster_remove(penstock_cluster* cluster, const char* kind,
                                        const char* name) {
  return guarded([&]() -> Status {
    if (cluster == nullptr || kind == nullptr || name == nullptr) {
      return is_null("penstock_cluster_remove", "cluster, kind or name");
    }
    return take_out(*cluster, kind, name);
  });
}

penstock_status penstock_cluster_place(penstock_cluster* cluster, const char* pod, int commit,
                                       penstock_decision* decision) {
  return guarded([&]() -> Status {
    if (cluster == nullptr || pod == nullptr || decision == nullptr) {
      return is_null("penstock_cluster_place", "cluster, pod or decision");
    }
    const auto found = cluster->pending.find(pod);
    if (found == cluster->pending.end()) {
      return penstock::error(Code::not_found, "no pending pod '{}'; pods are named namespace/name",
                             pod);
    }
    const KubernetesPod wanted = found->second;
    return decide(*cluster, wanted, commit != 0, decision);
  });
}

penstock_status penstock_cluster_decide(penstock_cluster* cluster, const char* pod,
                                        std::size_t bytes, int commit,
                                        penstock_decision* decision) {
  return guarded([&]() -> Status {
    if (cluster == nullptr || pod == nullptr || decision == nullptr) {
      return is_null("penstock_cluster_decide", "cluster, pod or decision");
    }
    PENSTOCK_ASSIGN(const KubernetesPod wanted, parse_pod(pod, bytes));
    return decide(*cluster, wanted, commit != 0, decision);
  });
}

const char* penstock_cluster_why(const penstock_cluster* cluster) {
  return cluster == nullptr ? "" : cluster->why.c_str();
}

penstock_status penstock_cluster_explain(penstock_cluster* cluster, const char* pod,
                                         std::size_t bytes, const char** json) {
  return guarded([&]() -> Status {
    if (cluster == nullptr || pod == nullptr || json == nullptr) {
      return is_null("penstock_cluster_explain", "cluster, pod or json");
    }
    PENSTOCK_ASSIGN(const KubernetesPod wanted, parse_pod(pod, bytes));
    PENSTOCK_ASSIGN(const penstock::Explanation why, penstock::explain(*cluster->cluster, wanted));
    cluster->explanation = penstock::explanation_json(why);
    *json = cluster->explanation.c_str();
    return {};
  });
}
}
