#include "penstock/sched/task_cache.h"

#include <functional>
#include <string>
#include <utility>

namespace penstock {
namespace {

constexpr std::size_t kMostEntries = 1024;

// Of what tells most pods apart; the rest is compared.
std::uint64_t hash_of(const KubernetesPod& pod) {
  std::uint64_t hash = pod.spread.size() + 3 * pod.tolerations.size() + 5 * pod.ports.size();
  const auto mix = [&hash](std::uint64_t value) {
    hash = (hash ^ value) * 0x9e3779b97f4a7c15u;
    hash ^= hash >> 29;
  };
  mix(std::hash<std::string>{}(pod.namespace_name));
  for (const auto& [key, value] : pod.labels) mix(std::hash<std::string>{}(value));
  for (const auto& [name, amount] : pod.request) mix(static_cast<std::uint64_t>(amount));
  return hash;
}

}  // namespace

bool asks_the_same(const KubernetesPod& a, const KubernetesPod& b) {
  return a.request == b.request && a.namespace_name == b.namespace_name && a.labels == b.labels &&
         a.owners == b.owners && a.node_name == b.node_name && a.terminating == b.terminating &&
         a.scored_request == b.scored_request && a.node_selector == b.node_selector &&
         a.has_required == b.has_required && a.required == b.required &&
         a.preferred == b.preferred && a.tolerations == b.tolerations && a.ports == b.ports &&
         a.spread == b.spread && a.affinity == b.affinity && a.anti_affinity == b.anti_affinity &&
         a.images == b.images && a.containers == b.containers && a.unsupported == b.unsupported;
}

const Task* TaskCache::find(const KubernetesPod& pod, std::uint64_t version) {
  if (version != version_) return nullptr;
  const auto found = by_hash_.find(hash_of(pod));
  if (found == by_hash_.end()) return nullptr;
  for (const Entry& entry : found->second) {
    if (asks_the_same(entry.pod, pod)) return &entry.task;
  }
  return nullptr;
}

void TaskCache::put(const KubernetesPod& pod, std::uint64_t version, const Task& task) {
  if (version != version_ || entries_ >= kMostEntries) {
    by_hash_.clear();
    entries_ = 0;
    version_ = version;
  }
  by_hash_[hash_of(pod)].push_back({pod, task});
  ++entries_;
}

}  // namespace penstock
