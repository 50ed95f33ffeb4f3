// The tasks of pods that ask the same, so that a replica does not have its terms put together
// again.
#ifndef PENSTOCK_SCHED_TASK_CACHE_H_
#define PENSTOCK_SCHED_TASK_CACHE_H_

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "penstock/sched/kubernetes.h"
#include "penstock/sched/task.h"

namespace penstock {

// Whether two pods make the same task but for its name: they differ in name, uid, times and
// priority at most.
bool asks_the_same(const KubernetesPod& a, const KubernetesPod& b);

// One thread at a time.
class TaskCache {
 public:
  // Null if there is none of this version (of a Cluster). Until the next put().
  const Task* find(const KubernetesPod& pod, std::uint64_t version);
  void put(const KubernetesPod& pod, std::uint64_t version, const Task& task);

 private:
  struct Entry {
    KubernetesPod pod;
    Task task;
  };
  std::uint64_t version_ = 0;
  std::size_t entries_ = 0;
  std::unordered_map<std::uint64_t, std::vector<Entry>> by_hash_;
};

}  // namespace penstock
#endif
