// A Cluster that follows an API server (or holds a snapshot) while requests decide on it.
//
// Invariant: a pod that was assumed occupies its node until the server says where it is, until it
// is forgotten, or until its time is over; an older word about it, without a node, changes nothing.
#ifndef PENSTOCK_SERVE_LIVE_CLUSTER_H_
#define PENSTOCK_SERVE_LIVE_CLUSTER_H_

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "penstock/base/status.h"
#include "penstock/sched/cluster.h"
#include "penstock/sched/preemption.h"
#include "penstock/serve/watch.h"

namespace penstock {

// Told with the cluster locked: must not call it back.
class ClusterListener {
 public:
  virtual ~ClusterListener() = default;
  // A pod that has no node, as it is now; again when it changes.
  virtual void pod_pending(const KubernetesPod& pod) = 0;
  // It was deleted, has ended, or has a node.
  virtual void pod_settled(const std::string& key) = 0;
  // Something that may let a pod fit that did not; only_relations: one that looks at other pods.
  virtual void cluster_changed(bool only_relations) = 0;
};

// Thread-safe.
class LiveCluster final : public WatchSink {
 public:
  // Ready when each of `kinds` has been listed once. The listener outlives the cluster.
  static Result<std::unique_ptr<LiveCluster>> create(const ClusterConfig& config,
                                                     const std::vector<std::string>& kinds,
                                                     ClusterListener* listener = nullptr);

  void put(const std::string& kind, const std::string& key, const nlohmann::json& object) override;
  void remove(const std::string& kind, const std::string& key) override;
  void synced(const std::string& kind) override;
  void heard(const std::string& kind) override;

  // A snapshot, all at once.
  Status load(const KubernetesCluster& snapshot);
  // Nodes as a request carries them: those that are not known, or that are newer.
  Status put_nodes(const std::vector<const nlohmann::json*>& objects);

  bool ready() const;
  // Seconds since the server last spoke about the kind that it has been silent about for longest;
  // 0 without a server.
  double age_seconds() const;
  // Nodes, pods with a node, pending pods, objects that could not be read.
  struct Counts {
    std::size_t nodes = 0, pods = 0, pending = 0, unreadable = 0;
  };
  Counts counts() const;
  // Nodes with what decides about them, and the pods on each, as JSON.
  nlohmann::json state() const;

  // Runs `use(Cluster&)` while nothing else does. It must leave pods as they were; see assume.
  template <typename Use>
  auto with(const Use& use) {
    const std::lock_guard lock(mutex_);
    expire();
    return use(*cluster_);
  }
  // The pod occupies the node from now on; for ttl_ms, or without end if that is 0.
  Status assume(const KubernetesPod& pod, const std::string& node, std::uint64_t ttl_ms);
  // The node on which the pod would fit once the victims are gone; with their uids.
  struct Victim {
    std::string key;
    std::string uid;
  };
  Result<std::pair<Preemption, std::vector<Victim>>> find_preemption(const KubernetesPod& pod);
  // Whether a pod on the node is on its way out.
  bool is_making_room(const std::string& node) const;
  // Decides, and assumes what was decided. already_exists for a pod that has a node.
  Result<PodDecision> decide_and_assume(const KubernetesPod& pod, std::uint64_t ttl_ms,
                                        std::span<const std::string> candidates = {});
  // The end of an assumption that did not come true. ok if there is none.
  void forget(const std::string& key);
  void forget_all();
  std::optional<KubernetesPod> pending_pod(const std::string& key) const;
  // "namespace/name" of a pod with a node; "" if there is none.
  std::string key_of_uid(const std::string& uid) const;

 private:
  struct Assumed {
    std::string uid;
    std::uint64_t expires_ns = 0;  // 0: never
  };

  LiveCluster(std::unique_ptr<Cluster> cluster, const std::vector<std::string>& kinds,
              ClusterListener* listener);
  Status put_locked(const std::string& kind, const std::string& key, const nlohmann::json& object);
  Status put_node(const KubernetesNode& node);
  Status put_pod(const KubernetesPod& pod);
  void remove_locked(const std::string& kind, const std::string& key);
  void settle(const std::string& key);
  void drop_uid(const std::string& key);
  void note_assumed(const KubernetesPod& pod, std::uint64_t ttl_ms);
  Status assume_locked(const KubernetesPod& pod, const std::string& node, std::uint64_t ttl_ms);
  void forget_locked(const std::string& key);
  // Ends assumptions whose time is over.
  void expire();
  void changed(bool only_relations = false);

  mutable std::mutex mutex_;
  std::unique_ptr<Cluster> cluster_;
  ClusterListener* listener_;
  std::set<std::string> missing_;  // kinds that have not been listed yet
  std::map<std::string, std::uint64_t> heard_ns_;
  std::unordered_map<std::string, KubernetesPod> pending_;
  std::map<std::string, DisruptionBudget> budgets_;
  std::unordered_map<std::string, std::string> key_of_uid_, uid_of_key_;
  std::unordered_map<std::string, Assumed> assumed_;
  std::uint64_t next_expiry_ns_ = UINT64_MAX;                   // no assumption ends before
  std::unordered_map<std::string, std::string> node_versions_;  // of nodes that requests carried
  std::set<std::string> unreadable_;                            // kind and key
};

// The kinds that decisions depend on, with where they are listed; and, for who preempts, budgets.
struct WatchedKind {
  const char* kind;
  const char* path;
  const char* field_selector;
};
std::vector<WatchedKind> watched_kinds(bool preempts);

}  // namespace penstock
#endif
