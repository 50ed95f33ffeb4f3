#include "penstock/serve/live_cluster.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "penstock/base/log.h"
#include "penstock/base/platform.h"
#include "penstock/sched/kubernetes_objects.h"

namespace penstock {
namespace {

using nlohmann::json;

std::uint64_t now_ns() { return Platform::host().now_ns(); }

bool has_ended(const json& pod) {
  const auto status = pod.find("status");
  if (status == pod.end() || !status->is_object()) return false;
  const auto phase = status->find("phase");
  return phase != status->end() && (*phase == "Succeeded" || *phase == "Failed");
}

Result<DisruptionBudget> read_budget(const JsonField& object) {
  DisruptionBudget budget;
  const JsonField metadata = object.member("metadata"), spec = object.member("spec"),
                  status = object.member("status");
  for (const JsonField* part : {&metadata, &spec, &status}) PENSTOCK_TRY(part->expect_object());
  PENSTOCK_ASSIGN(budget.namespace_name, metadata.member("namespace").text());
  PENSTOCK_ASSIGN(budget.name, metadata.member("name").text());
  PENSTOCK_ASSIGN(budget.selector, read_label_selector(spec.member("selector")));
  PENSTOCK_ASSIGN(const std::int64_t allowed,
                  status.member("disruptionsAllowed").integer(INT32_MIN, INT32_MAX));
  budget.allowed = static_cast<std::int32_t>(allowed);
  PENSTOCK_TRY(status.member("disruptedPods")
                   .each_member([&budget](const std::string& name, const JsonField&) -> Status {
                     budget.leaving.push_back(name);
                     return {};
                   }));
  return budget;
}

bool is_newer(const std::string& version, const std::string& than) {
  const auto number = [](const std::string& text, std::uint64_t* out) {
    const char* end = text.data() + text.size();
    const auto [at, problem] = std::from_chars(text.data(), end, *out);
    return problem == std::errc() && at == end;
  };
  std::uint64_t a = 0, b = 0;
  return !number(version, &a) || !number(than, &b) || a > b;
}

}  // namespace

std::vector<WatchedKind> watched_kinds(bool preempts) {
  std::vector<WatchedKind> kinds = {
      {"Node", "/api/v1/nodes", ""},
      {"Pod", "/api/v1/pods", "status.phase!=Succeeded,status.phase!=Failed"},
      {"Namespace", "/api/v1/namespaces", ""},
      {"Service", "/api/v1/services", ""},
      {"ReplicationController", "/api/v1/replicationcontrollers", ""},
      {"ReplicaSet", "/apis/apps/v1/replicasets", ""},
      {"StatefulSet", "/apis/apps/v1/statefulsets", ""}};
  if (preempts)
    kinds.push_back({"PodDisruptionBudget", "/apis/policy/v1/poddisruptionbudgets", ""});
  return kinds;
}

LiveCluster::LiveCluster(std::unique_ptr<Cluster> cluster, const std::vector<std::string>& kinds,
                         ClusterListener* listener)
    : cluster_(std::move(cluster)), listener_(listener), missing_(kinds.begin(), kinds.end()) {}

Result<std::unique_ptr<LiveCluster>> LiveCluster::create(const ClusterConfig& config,
                                                         const std::vector<std::string>& kinds,
                                                         ClusterListener* listener) {
  PENSTOCK_ASSIGN(auto cluster, Cluster::create(config));
  return std::unique_ptr<LiveCluster>(new LiveCluster(std::move(cluster), kinds, listener));
}

void LiveCluster::changed(bool only_relations) {
  if (listener_ != nullptr) listener_->cluster_changed(only_relations);
}

Status LiveCluster::put_node(const KubernetesNode& node) {
  // Most of what a server says about a node is that it is still there.
  const KubernetesNode* known = cluster_->find_node(node.facts.name);
  if (known != nullptr && *known == node) return {};
  PENSTOCK_TRY(cluster_->put_node(node));
  changed();
  return {};
}

void LiveCluster::drop_uid(const std::string& key) {
  const auto uid = uid_of_key_.find(key);
  if (uid == uid_of_key_.end()) return;
  key_of_uid_.erase(uid->second);
  uid_of_key_.erase(uid);
}

void LiveCluster::settle(const std::string& key) {
  pending_.erase(key);
  if (listener_ != nullptr) listener_->pod_settled(key);
}

Status LiveCluster::put_pod(const KubernetesPod& pod) {
  const auto assumed = assumed_.find(pod.name);
  if (pod.node_name.empty()) {
    if (assumed != assumed_.end()) {
      // Its binding is under way, unless this is another pod of the same name.
      if (assumed->second.uid == pod.uid) {
        pending_[pod.name] = pod;
        return {};
      }
      forget_locked(pod.name);
    }
    drop_uid(pod.name);
    if (cluster_->find_pod(pod.name) != nullptr) PENSTOCK_TRY(cluster_->remove_pod(pod.name));
    pending_[pod.name] = pod;
    if (listener_ != nullptr) listener_->pod_pending(pod);
    return {};
  }
  const KubernetesPod* known = cluster_->find_pod(pod.name);
  if (assumed != assumed_.end()) assumed_.erase(assumed);
  if (known == nullptr || !(*known == pod)) {
    // A pod that comes may be one that others want to be near, and one that changes may leave room.
    const bool no_room =
        known == nullptr || (known->node_name == pod.node_name && known->request == pod.request);
    PENSTOCK_TRY(cluster_->put_pod(pod));
    changed(no_room);
  }
  drop_uid(pod.name);
  if (!pod.uid.empty()) {
    key_of_uid_[pod.uid] = pod.name;
    uid_of_key_[pod.name] = pod.uid;
  }
  settle(pod.name);
  return {};
}

Status LiveCluster::put_locked(const std::string& kind, const std::string& key,
                               const json& object) {
  const std::string name = kind + " " + key;
  const JsonField field(object, name);
  if (kind == "Node") {
    PENSTOCK_ASSIGN(const KubernetesNode node, read_kubernetes_node(field));
    node_versions_[key] = object_version(object);
    return put_node(node);
  }
  if (kind == "Pod") {
    if (has_ended(object)) {
      remove_locked(kind, key);
      return {};
    }
    PENSTOCK_ASSIGN(const KubernetesPod pod, read_kubernetes_pod(field));
    return put_pod(pod);
  }
  if (kind == "PodDisruptionBudget") {
    PENSTOCK_ASSIGN(budgets_[key], read_budget(field));
    return {};
  }
  if (kind == "Namespace") {
    PENSTOCK_ASSIGN(const KubernetesNamespace space, read_kubernetes_namespace(field));
    PENSTOCK_TRY(cluster_->put_namespace(space.name, space.labels));
  } else {
    PENSTOCK_ASSIGN(const KubernetesOwner owner, read_kubernetes_owner(field, kind));
    PENSTOCK_TRY(cluster_->put_owner(owner));
  }
  changed();
  return {};
}

void LiveCluster::put(const std::string& kind, const std::string& key, const json& object) {
  const std::lock_guard lock(mutex_);
  const Status status = put_locked(kind, key, object);
  if (status.ok()) {
    unreadable_.erase(kind + " " + key);
    return;
  }
  // What cannot be read is no longer what was known of it.
  if (unreadable_.insert(kind + " " + key).second) {
    log::warn("left out of decisions: {}", status.message());
  }
  remove_locked(kind, key);
}

void LiveCluster::remove_locked(const std::string& kind, const std::string& key) {
  Status status;
  if (kind == "Node") {
    node_versions_.erase(key);
    status = cluster_->remove_node(key);
  } else if (kind == "Pod") {
    assumed_.erase(key);
    drop_uid(key);
    status = cluster_->remove_pod(key);
    settle(key);
  } else if (kind == "PodDisruptionBudget") {
    budgets_.erase(key);
  } else if (kind == "Namespace") {
    status = cluster_->remove_namespace(key);
  } else {
    status = cluster_->remove_owner(kind, key);
  }
  if (!status.ok()) log::warn("{} {}: {}", kind, key, status.message());
  changed();
}

void LiveCluster::remove(const std::string& kind, const std::string& key) {
  const std::lock_guard lock(mutex_);
  unreadable_.erase(kind + " " + key);
  remove_locked(kind, key);
}

void LiveCluster::synced(const std::string& kind) {
  const std::lock_guard lock(mutex_);
  if (missing_.erase(kind) > 0 && missing_.empty()) {
    log::info("all is listed: {} nodes, {} pods on them", cluster_->node_names().size(),
              cluster_->pod_count());
  }
}

void LiveCluster::heard(const std::string& kind) {
  const std::lock_guard lock(mutex_);
  heard_ns_[kind] = now_ns();
}

Status LiveCluster::load(const KubernetesCluster& snapshot) {
  const std::lock_guard lock(mutex_);
  PENSTOCK_TRY(cluster_->put_all(snapshot));
  for (const KubernetesPod& pod : snapshot.pods) {
    if (pod.node_name.empty()) {
      pending_[pod.name] = pod;
    } else if (!pod.uid.empty()) {
      key_of_uid_[pod.uid] = pod.name;
      uid_of_key_[pod.name] = pod.uid;
    }
  }
  missing_.clear();
  return {};
}

Status LiveCluster::put_nodes(const std::vector<const json*>& objects) {
  const std::lock_guard lock(mutex_);
  // All are read before the first is put: a request that is refused changes nothing.
  std::vector<std::pair<KubernetesNode, std::string>> nodes;
  for (const json* object : objects) {
    const std::string key = object_key(*object), version = object_version(*object);
    const auto known = node_versions_.find(key);
    if (known != node_versions_.end() && !version.empty() && !is_newer(version, known->second)) {
      continue;
    }
    const std::string name = "Nodes: " + key;
    PENSTOCK_ASSIGN(KubernetesNode node, read_kubernetes_node(JsonField(*object, name)));
    nodes.emplace_back(std::move(node), version);
  }
  for (const auto& [node, version] : nodes) {
    PENSTOCK_TRY(put_node(node));
    node_versions_[node.facts.name] = version;
  }
  return {};
}

bool LiveCluster::ready() const {
  const std::lock_guard lock(mutex_);
  return missing_.empty();
}

double LiveCluster::age_seconds() const {
  const std::lock_guard lock(mutex_);
  const std::uint64_t now = now_ns();
  std::uint64_t most = 0;
  for (const auto& [kind, at] : heard_ns_) most = std::max(most, now - at);
  return static_cast<double>(most) * 1e-9;
}

LiveCluster::Counts LiveCluster::counts() const {
  const std::lock_guard lock(mutex_);
  return {cluster_->node_names().size(), cluster_->pod_count(), pending_.size(),
          unreadable_.size()};
}

json LiveCluster::state() const {
  const std::lock_guard lock(mutex_);
  json nodes = json::object();
  for (const std::string& name : cluster_->node_names()) {
    const KubernetesNode* node = cluster_->find_node(name);
    json& out = nodes[name];
    out["unschedulable"] = node->unschedulable;
    out["labels"] = node->facts.labels;
    out["allocatable"] = node->allocatable;
    out["taints"] = node->facts.taints.size();
    json& pods = out["pods"] = json::array();
    for (const KubernetesPod* pod : cluster_->pods_on(name)) pods.push_back(pod->name);
    std::sort(pods.begin(), pods.end());
  }
  json pending = json::array();
  for (const auto& [key, pod] : pending_) pending.push_back(key);
  std::sort(pending.begin(), pending.end());
  json assumed = json::array();
  for (const auto& [key, pod] : assumed_) assumed.push_back(key);
  std::sort(assumed.begin(), assumed.end());
  return {{"nodes", nodes}, {"pending", pending}, {"assumed", assumed}};
}

void LiveCluster::note_assumed(const KubernetesPod& pod, std::uint64_t ttl_ms) {
  const std::uint64_t expires = ttl_ms == 0 ? 0 : now_ns() + ttl_ms * 1000000;
  assumed_[pod.name] = {pod.uid, expires};
  if (expires != 0) next_expiry_ns_ = std::min(next_expiry_ns_, expires);
}

Status LiveCluster::assume_locked(const KubernetesPod& pod, const std::string& node,
                                  std::uint64_t ttl_ms) {
  PENSTOCK_TRY(cluster_->assume(pod, node));
  note_assumed(pod, ttl_ms);
  return {};
}

Status LiveCluster::assume(const KubernetesPod& pod, const std::string& node,
                           std::uint64_t ttl_ms) {
  const std::lock_guard lock(mutex_);
  const KubernetesPod* known = cluster_->find_pod(pod.name);
  if (known != nullptr && known->node_name == node && !assumed_.contains(pod.name)) return {};
  return assume_locked(pod, node, ttl_ms);
}

Result<PodDecision> LiveCluster::decide_and_assume(const KubernetesPod& pod, std::uint64_t ttl_ms,
                                                   std::span<const std::string> candidates) {
  const std::lock_guard lock(mutex_);
  expire();
  if (assumed_.contains(pod.name)) forget_locked(pod.name);
  PENSTOCK_ASSIGN(PodDecision decision, cluster_->decide(pod, true, 1, candidates));
  if (!decision.node.empty()) note_assumed(pod, ttl_ms);
  return decision;
}

Result<std::pair<Preemption, std::vector<LiveCluster::Victim>>> LiveCluster::find_preemption(
    const KubernetesPod& pod) {
  const std::lock_guard lock(mutex_);
  expire();
  std::vector<DisruptionBudget> budgets;
  for (const auto& [key, budget] : budgets_) budgets.push_back(budget);
  PENSTOCK_ASSIGN(Preemption found, preempt(*cluster_, pod, budgets));
  std::vector<Victim> victims;
  for (const std::string& key : found.victims) {
    const KubernetesPod* victim = cluster_->find_pod(key);
    victims.push_back({key, victim == nullptr ? "" : victim->uid});
  }
  return std::pair(std::move(found), std::move(victims));
}

bool LiveCluster::is_making_room(const std::string& node) const {
  const std::lock_guard lock(mutex_);
  if (cluster_->find_node(node) == nullptr) return false;
  const auto pods = cluster_->pods_on(node);
  return std::any_of(pods.begin(), pods.end(),
                     [](const KubernetesPod* pod) { return pod->terminating; });
}

void LiveCluster::forget_locked(const std::string& key) {
  if (assumed_.erase(key) == 0) return;
  const Status status = cluster_->forget(key);
  if (!status.ok()) log::warn("{}: {}", key, status.message());
  changed();
  // What was said about the pod meanwhile counts from now on.
  const auto pending = pending_.find(key);
  if (listener_ != nullptr && pending != pending_.end()) listener_->pod_pending(pending->second);
}

void LiveCluster::forget(const std::string& key) {
  const std::lock_guard lock(mutex_);
  forget_locked(key);
}

void LiveCluster::forget_all() {
  const std::lock_guard lock(mutex_);
  while (!assumed_.empty()) forget_locked(std::string(assumed_.begin()->first));
}

void LiveCluster::expire() {
  const std::uint64_t now = now_ns();
  if (now < next_expiry_ns_) return;
  next_expiry_ns_ = UINT64_MAX;
  std::vector<std::string> over;
  for (const auto& [key, assumed] : assumed_) {
    if (assumed.expires_ns == 0) continue;
    if (assumed.expires_ns <= now) {
      over.push_back(key);
    } else {
      next_expiry_ns_ = std::min(next_expiry_ns_, assumed.expires_ns);
    }
  }
  for (const std::string& key : over) forget_locked(key);
}

std::optional<KubernetesPod> LiveCluster::pending_pod(const std::string& key) const {
  const std::lock_guard lock(mutex_);
  const auto found = pending_.find(key);
  if (found == pending_.end()) return std::nullopt;
  return found->second;
}

std::string LiveCluster::key_of_uid(const std::string& uid) const {
  const std::lock_guard lock(mutex_);
  const auto found = key_of_uid_.find(uid);
  return found == key_of_uid_.end() ? "" : found->second;
}

}  // namespace penstock
