// Pods that wait for a decision: ready ones by priority and then by age, those that failed until
// their back-off is over, and those that fit nowhere until the cluster changes.
#ifndef PENSTOCK_SERVE_POD_QUEUE_H_
#define PENSTOCK_SERVE_POD_QUEUE_H_

#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "penstock/base/platform.h"
#include "penstock/sched/kubernetes.h"

namespace penstock {

struct PodQueueConfig {
  std::uint64_t least_backoff_ms = 1000;  // after a first failure; doubles
  std::uint64_t most_backoff_ms = 10000;
  std::uint64_t unschedulable_ms = 300000;  // tried again after that without any change
};

// Thread-safe.
class PodQueue {
 public:
  explicit PodQueue(Platform& platform, PodQueueConfig config = {})
      : platform_(platform), config_(config) {}

  // The pod as it is now. One that waits because it fit nowhere is tried again if what decides
  // about it changed.
  void put(const KubernetesPod& pod);
  void remove(const std::string& key);
  // The cluster changed: pods that fit nowhere are ready again when their back-off is over. With
  // only_relations just those that look at other pods: spread, affinity or anti-affinity.
  void wake(bool only_relations);

  // The next pod, at the latest after wait_ms; it is in work until done() or retry().
  std::optional<KubernetesPod> take(std::uint64_t wait_ms);
  // The pod of that uid needs no decision any more; another that came under its name does.
  void done(const std::string& key, const std::string& uid);
  // It failed: `unschedulable` when it fit nowhere, else for another reason. What happened since
  // take() counts: a change of the cluster meanwhile makes it wait for its back-off only.
  void retry(const std::string& key, bool unschedulable);
  // All of what is held is ready, without back-off.
  void restart();

  struct Sizes {
    std::size_t ready = 0, backing_off = 0, unschedulable = 0, in_work = 0;
  };
  Sizes sizes() const;

 private:
  enum class Where { ready, backing_off, unschedulable, in_work };
  struct Entry {
    KubernetesPod pod;
    Where where = Where::ready;
    std::uint32_t attempts = 0;
    std::uint64_t due_ns = 0;   // of backing_off and unschedulable
    std::uint64_t order = 0;    // of arrival
    std::uint64_t changes = 0;  // that concern it, when it was taken
    bool pod_changed = false;   // since it was taken
  };
  // Greatest priority, then the oldest, then the first that came.
  using Rank = std::tuple<std::int64_t, std::int64_t, std::uint64_t, std::string>;
  Rank rank_of(const Entry& entry) const;
  void place(Entry* entry, Where where);
  void unlist(const Entry& entry);
  void promote_due(std::uint64_t now);
  std::uint64_t changes_for(const Entry& entry) const;
  std::uint64_t backoff_ns(const Entry& entry) const;

  Platform& platform_;
  const PodQueueConfig config_;
  mutable std::mutex mutex_;
  std::condition_variable arrived_;
  std::unordered_map<std::string, Entry> entries_;
  std::set<Rank> ready_;
  std::set<std::pair<std::uint64_t, std::string>> backing_off_, unschedulable_;  // by due time
  std::uint64_t arrivals_ = 0;
  std::uint64_t changes_ = 0, relation_changes_ = 0;
};

}  // namespace penstock
#endif
