#include "penstock/serve/pod_queue.h"

#include <algorithm>
#include <chrono>

namespace penstock {
namespace {

constexpr std::uint64_t kMs = 1000000;

// What has no part in whether a pod fits, and changes while it waits.
bool same_to_decide(const KubernetesPod& a, const KubernetesPod& b) {
  KubernetesPod left = a;
  left.nominated_node = b.nominated_node;
  return left == b;
}

bool looks_at_pods(const KubernetesPod& pod) {
  return !pod.spread.empty() || !pod.affinity.required.empty() ||
         !pod.anti_affinity.required.empty();
}

}  // namespace

PodQueue::Rank PodQueue::rank_of(const Entry& entry) const {
  return {-static_cast<std::int64_t>(entry.pod.priority), entry.pod.creation_time_s, entry.order,
          entry.pod.name};
}

std::uint64_t PodQueue::backoff_ns(const Entry& entry) const {
  std::uint64_t ms = config_.least_backoff_ms;
  for (std::uint32_t i = 1; i < entry.attempts && ms < config_.most_backoff_ms; ++i) ms *= 2;
  return std::min(ms, config_.most_backoff_ms) * kMs;
}

std::uint64_t PodQueue::changes_for(const Entry& entry) const {
  return changes_ + (looks_at_pods(entry.pod) ? relation_changes_ : 0);
}

void PodQueue::unlist(const Entry& entry) {
  switch (entry.where) {
    case Where::ready:
      ready_.erase(rank_of(entry));
      break;
    case Where::backing_off:
      backing_off_.erase({entry.due_ns, entry.pod.name});
      break;
    case Where::unschedulable:
      unschedulable_.erase({entry.due_ns, entry.pod.name});
      break;
    case Where::in_work:
      break;
  }
}

void PodQueue::place(Entry* entry, Where where) {
  entry->where = where;
  if (where == Where::ready) {
    ready_.insert(rank_of(*entry));
    arrived_.notify_one();
  } else if (where == Where::backing_off) {
    backing_off_.insert({entry->due_ns, entry->pod.name});
    arrived_.notify_one();
  } else if (where == Where::unschedulable) {
    unschedulable_.insert({entry->due_ns, entry->pod.name});
  }
}

void PodQueue::put(const KubernetesPod& pod) {
  const std::lock_guard lock(mutex_);
  const auto [at, is_new] = entries_.try_emplace(pod.name);
  Entry& entry = at->second;
  if (is_new || entry.pod.uid != pod.uid) {
    if (!is_new) unlist(entry);
    // One of the same name that is decided about at the moment ends in done() or retry().
    const bool in_work = !is_new && entry.where == Where::in_work;
    entry = {};
    entry.pod = pod;
    entry.order = ++arrivals_;
    entry.pod_changed = in_work;
    place(&entry, in_work ? Where::in_work : Where::ready);
    return;
  }
  const bool same = same_to_decide(entry.pod, pod);
  if (entry.where == Where::in_work) {
    entry.pod = pod;
    entry.pod_changed = entry.pod_changed || !same;
    return;
  }
  unlist(entry);
  entry.pod = pod;
  place(&entry, same || entry.where != Where::unschedulable ? entry.where : Where::ready);
}

void PodQueue::remove(const std::string& key) {
  const std::lock_guard lock(mutex_);
  const auto at = entries_.find(key);
  if (at == entries_.end()) return;
  unlist(at->second);
  entries_.erase(at);
}

void PodQueue::wake(bool only_relations) {
  const std::lock_guard lock(mutex_);
  ++(only_relations ? relation_changes_ : changes_);
  const std::uint64_t now = platform_.now_ns();
  const auto waiting = std::exchange(unschedulable_, {});
  for (const auto& [due, key] : waiting) {
    Entry& entry = entries_.at(key);
    if (only_relations && !looks_at_pods(entry.pod)) {
      place(&entry, Where::unschedulable);
      continue;
    }
    // due is its failure plus the long wait.
    const std::uint64_t failed = due - config_.unschedulable_ms * kMs;
    entry.due_ns = failed + backoff_ns(entry);
    place(&entry, entry.due_ns <= now ? Where::ready : Where::backing_off);
  }
}

void PodQueue::promote_due(std::uint64_t now) {
  for (auto* list : {&backing_off_, &unschedulable_}) {
    while (!list->empty() && list->begin()->first <= now) {
      Entry& entry = entries_.at(list->begin()->second);
      list->erase(list->begin());
      place(&entry, Where::ready);
    }
  }
}

std::optional<KubernetesPod> PodQueue::take(std::uint64_t wait_ms) {
  std::unique_lock lock(mutex_);
  const std::uint64_t end = platform_.now_ns() + wait_ms * kMs;
  for (;;) {
    const std::uint64_t now = platform_.now_ns();
    promote_due(now);
    if (!ready_.empty()) {
      Entry& entry = entries_.at(std::get<3>(*ready_.begin()));
      unlist(entry);
      entry.where = Where::in_work;
      entry.changes = changes_for(entry);
      entry.pod_changed = false;
      ++entry.attempts;
      return entry.pod;
    }
    if (now >= end) return std::nullopt;
    std::uint64_t until = end;
    for (const auto* list : {&backing_off_, &unschedulable_}) {
      if (!list->empty()) until = std::min(until, list->begin()->first);
    }
    arrived_.wait_for(lock, std::chrono::nanoseconds(until - now));
  }
}

void PodQueue::done(const std::string& key, const std::string& uid) {
  const std::lock_guard lock(mutex_);
  const auto at = entries_.find(key);
  if (at == entries_.end() || at->second.where != Where::in_work) return;
  if (at->second.pod.uid == uid) {
    entries_.erase(at);
  } else {
    place(&at->second, Where::ready);
  }
}

void PodQueue::retry(const std::string& key, bool unschedulable) {
  const std::lock_guard lock(mutex_);
  const auto at = entries_.find(key);
  if (at == entries_.end() || at->second.where != Where::in_work) return;
  Entry& entry = at->second;
  const std::uint64_t now = platform_.now_ns();
  if (entry.pod_changed) {
    place(&entry, Where::ready);
  } else if (unschedulable && entry.changes == changes_for(entry)) {
    entry.due_ns = now + config_.unschedulable_ms * kMs;
    place(&entry, Where::unschedulable);
  } else {
    entry.due_ns = now + backoff_ns(entry);
    place(&entry, Where::backing_off);
  }
}

void PodQueue::restart() {
  const std::lock_guard lock(mutex_);
  for (auto& [key, entry] : entries_) {
    if (entry.where == Where::in_work) continue;
    unlist(entry);
    entry.attempts = 0;
    place(&entry, Where::ready);
  }
}

PodQueue::Sizes PodQueue::sizes() const {
  const std::lock_guard lock(mutex_);
  const std::size_t in_work =
      entries_.size() - ready_.size() - backing_off_.size() - unschedulable_.size();
  return {ready_.size(), backing_off_.size(), unschedulable_.size(), in_work};
}

}  // namespace penstock
