#include "penstock/serve/live_scheduler.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "penstock/base/log.h"
#include "penstock/base/platform.h"
#include "penstock/serve/extender.h"

namespace penstock {
namespace {

// How long one look at the queue waits, and so how soon a stop or a change of leader is noticed.
constexpr std::uint64_t kLookMs = 50;
// How long a place is held for a pod whose victims are on their way out; twice the usual grace. The
// next decision about the pod begins by taking this back.
constexpr std::uint64_t kReservedMs = 60000;
constexpr std::size_t kMostNominated = 10000;

}  // namespace

void PodIntake::pod_pending(const KubernetesPod& pod) {
  // One with gates, or one that is on its way out, is nobody's yet or any more.
  if (pod.scheduler_name != scheduler_name_ || !pod.gates.empty() || pod.terminating) {
    queue_.remove(pod.name);
    return;
  }
  queue_.put(pod);
}

void PodIntake::pod_settled(const std::string& key) {
  queue_.remove(key);
  if (told_) told_(key);
}

LiveScheduler::LiveScheduler(LiveCluster& cluster, PodIntake& intake, Api& api, Metrics& metrics,
                             LiveSchedulerConfig config, std::function<bool()> leads)
    : cluster_(cluster),
      intake_(intake),
      api_(api),
      metrics_(metrics),
      config_(std::move(config)),
      leads_(std::move(leads)),
      events_(api, config_.scheduler_name, config_.instance) {
  intake_.on_settled([this](const std::string& key) { events_.settled(key); });
  for (std::uint32_t i = 0; i < config_.binders; ++i) {
    binders_.emplace_back([this] { work(); });
  }
}

LiveScheduler::~LiveScheduler() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  arrived_.notify_all();
  for (std::thread& thread : binders_) thread.join();
}

void LiveScheduler::decide(const KubernetesPod& pod) {
  const std::uint64_t start = Platform::host().now_ns();
  auto decision = cluster_.decide_and_assume(pod, 0);
  const std::uint64_t ns = Platform::host().now_ns() - start;
  if (!decision.ok()) {
    if (decision.status().code() == Code::already_exists) {
      // The watch was faster: it has a node.
      intake_.queue().done(pod.name, pod.uid);
      return;
    }
    metrics_.decision("error", ns);
    log::warn("{}: {}", pod.name, decision.status().message());
    events_.failed_to_bind(pod, decision.status().message());
    intake_.queue().retry(pod.name, true);
    return;
  }
  if (decision->node.empty()) {
    metrics_.decision("unschedulable", ns);
    events_.failed(pod, decision->reason);
    if (config_.preempts && leads_()) make_room(pod);
    intake_.queue().retry(pod.name, true);
    return;
  }
  metrics_.decision("placed", ns);
  nominated_.erase(pod.uid);
  enqueue({pod, decision->node});
}

void LiveScheduler::reserve(const KubernetesPod& pod, const std::string& node) {
  const Status status = cluster_.assume(pod, node, kReservedMs);
  if (!status.ok()) log::warn("{} on {}: {}", pod.name, node, status.message());
}

void LiveScheduler::make_room(KubernetesPod pod) {
  if (const auto known = nominated_.find(pod.uid); known != nominated_.end()) {
    pod.nominated_node = known->second;
  }
  auto found = cluster_.find_preemption(pod);
  if (!found.ok()) {
    log::warn("{}: {}", pod.name, found.status().message());
    return;
  }
  const auto& [preemption, victims] = found.value();
  if (preemption.node.empty()) {
    log::debug("{}: {}", pod.name, preemption.reason);
    if (cluster_.is_making_room(pod.nominated_node)) reserve(pod, pod.nominated_node);
    return;
  }
  reserve(pod, preemption.node);
  if (nominated_.size() >= kMostNominated) nominated_.clear();
  nominated_[pod.uid] = preemption.node;
  events_.nominate(pod, preemption.node);
  for (const LiveCluster::Victim& victim : victims) {
    const std::size_t slash = victim.key.find('/');
    nlohmann::json options = {{"apiVersion", "v1"}, {"kind", "DeleteOptions"}};
    // Not another pod that has taken the name.
    if (!victim.uid.empty()) options["preconditions"] = {{"uid", victim.uid}};
    const auto reply = api_.call("DELETE",
                                 "/api/v1/namespaces/" + encode_url(victim.key.substr(0, slash)) +
                                     "/pods/" + encode_url(victim.key.substr(slash + 1)),
                                 options.dump());
    const int status = reply.ok() ? reply.value().status : 0;
    if (status / 100 == 2) {
      metrics_.preempted();
      events_.preempted(victim.key, victim.uid, pod, preemption.node);
    } else if (status != 404) {
      log::warn("preempting {} for {}: {}", victim.key, pod.name,
                reply.ok() ? api_message(reply.value()) : reply.status().message());
      return;
    }
  }
}

void LiveScheduler::enqueue(Binding binding) {
  {
    const std::lock_guard lock(mutex_);
    bindings_.push_back(std::move(binding));
    ++under_way_;
  }
  arrived_.notify_one();
}

void LiveScheduler::bind(const Binding& binding) {
  const std::string& key = binding.pod.name;
  if (!leads_()) {
    cluster_.forget(key);
    intake_.queue().retry(key, false);
    return;
  }
  const Status status = post_binding(api_, key, binding.pod.uid, binding.node);
  if (status.ok()) {
    metrics_.binding("bound");
    events_.scheduled(binding.pod, binding.node);
    intake_.queue().done(key, binding.pod.uid);
    return;
  }
  log::info("{}", status.message());
  cluster_.forget(key);
  if (status.code() == Code::not_found) {
    metrics_.binding("gone");
    intake_.queue().done(key, binding.pod.uid);
    return;
  }
  metrics_.binding(status.code() == Code::already_exists ? "conflict" : "failed");
  events_.failed_to_bind(binding.pod, status.message());
  intake_.queue().retry(key, false);
}

void LiveScheduler::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    arrived_.wait(lock, [this] { return stopping_ || !bindings_.empty(); });
    if (bindings_.empty()) return;
    const Binding binding = std::move(bindings_.front());
    bindings_.pop_front();
    lock.unlock();
    bind(binding);
    lock.lock();
    if (--under_way_ == 0) idle_.notify_all();
  }
}

void LiveScheduler::wait_for_bindings() {
  std::unique_lock lock(mutex_);
  idle_.wait(lock, [this] { return under_way_ == 0; });
}

void LiveScheduler::run(const StopFlag& stop) {
  bool led = false;
  while (!stop.requested()) {
    const bool now = leads_() && cluster_.ready();
    if (led && !now) wait_for_bindings();
    if (now && !led) intake_.queue().restart();
    led = now;
    if (!now) {
      stop.sleep_ms(kLookMs);
      continue;
    }
    const auto pod = intake_.queue().take(kLookMs);
    if (!pod) continue;
    if (!leads_()) {
      intake_.queue().retry(pod->name, false);
      continue;
    }
    decide(*pod);
  }
  wait_for_bindings();
}

void LiveScheduler::set_gauges() {
  const PodQueue::Sizes sizes = intake_.queue().sizes();
  const auto gauge = [this](const char* name, const char* help, std::size_t n) {
    metrics_.gauge(name, help, static_cast<double>(n));
  };
  gauge("penstock_queue_ready_pods", "Pods that wait for a decision", sizes.ready);
  gauge("penstock_queue_backing_off_pods", "Pods that wait for their back-off", sizes.backing_off);
  gauge("penstock_queue_unschedulable_pods", "Pods that fit nowhere", sizes.unschedulable);
  gauge("penstock_queue_in_work_pods", "Pods being decided or bound", sizes.in_work);
  metrics_.gauge("penstock_leader", "1 if this process holds the lease", leads_() ? 1 : 0);
  metrics_.gauge("penstock_events_dropped", "Events for which there was no room",
                 static_cast<double>(events_.dropped()));
}

}  // namespace penstock
