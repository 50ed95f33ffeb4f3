#include "penstock/serve/event_sink.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "penstock/base/log.h"
#include "penstock/base/platform.h"
#include "penstock/serve/leader.h"

namespace penstock {
namespace {

using nlohmann::json;

constexpr std::size_t kMostItems = 10000;
constexpr std::size_t kMostNote = 1024;  // of an Event
constexpr std::uint64_t kRepeatNs = std::uint64_t{300} * 1000000000;
constexpr std::uint64_t kLastNs = 1000000000;

std::string short_name(const KubernetesPod& pod) { return pod.name.substr(pod.name.find('/') + 1); }

std::string space_of(const KubernetesPod& pod) { return pod.name.substr(0, pod.name.find('/')); }

std::string dump(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace

EventSink::EventSink(Api& api, std::string controller, std::string instance)
    : api_(api),
      controller_(std::move(controller)),
      instance_(std::move(instance)),
      thread_([this] { work(); }) {}

EventSink::~EventSink() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    stop_by_ns_ = Platform::host().now_ns() + kLastNs;
  }
  arrived_.notify_all();
  thread_.join();
}

void EventSink::push(Item item) {
  {
    const std::lock_guard lock(mutex_);
    if (items_.size() >= kMostItems) {
      ++dropped_;
      return;
    }
    items_.push_back(std::move(item));
  }
  arrived_.notify_one();
}

std::uint64_t EventSink::dropped() const {
  const std::lock_guard lock(mutex_);
  return dropped_;
}

void EventSink::send(const KubernetesPod& pod, const char* type, const char* reason,
                     const char* action, const std::string& note) {
  const std::string space = space_of(pod), name = short_name(pod);
  // A name of its own for each: the pod's, and a number.
  json event = {
      {"apiVersion", "events.k8s.io/v1"},
      {"kind", "Event"},
      {"metadata",
       {{"name", fmt::format("{}.{:016x}", name.substr(0, 200), Platform::host().random())},
        {"namespace", space}}},
      {"eventTime", micro_time()},
      {"reportingController", controller_},
      {"reportingInstance", instance_.substr(0, 128)},
      {"action", action},
      {"reason", reason},
      {"type", type},
      {"note", note.size() <= kMostNote ? note : note.substr(0, kMostNote - 3) + "..."},
      {"regarding",
       {{"apiVersion", "v1"},
        {"kind", "Pod"},
        {"namespace", space},
        {"name", name},
        {"uid", pod.uid}}}};
  push({"POST", "/apis/events.k8s.io/v1/namespaces/" + encode_url(space) + "/events", dump(event),
        "application/json"});
}

bool EventSink::said_already(const std::string& key, const std::string& reason) {
  const std::lock_guard lock(mutex_);
  Said& said = said_[key];
  const std::uint64_t now = Platform::host().now_ns();
  if (said.reason == reason && now - said.at_ns < kRepeatNs) return true;
  said = {reason, now};
  return false;
}

void EventSink::settled(const std::string& key) {
  const std::lock_guard lock(mutex_);
  said_.erase(key);
}

void EventSink::scheduled(const KubernetesPod& pod, const std::string& node) {
  send(pod, "Normal", "Scheduled", "Binding",
       fmt::format("Successfully assigned {} to {}", pod.name, node));
}

void EventSink::failed(const KubernetesPod& pod, const std::string& reason) {
  if (said_already(pod.name, reason)) return;
  send(pod, "Warning", "FailedScheduling", "Scheduling", reason);
  const json patch = {{"status",
                       {{"conditions",
                         {{{"type", "PodScheduled"},
                           {"status", "False"},
                           {"reason", "Unschedulable"},
                           {"message", reason}}}}}}};
  push({"PATCH",
        "/api/v1/namespaces/" + encode_url(space_of(pod)) + "/pods/" + encode_url(short_name(pod)) +
            "/status",
        dump(patch), "application/strategic-merge-patch+json"});
}

void EventSink::failed_to_bind(const KubernetesPod& pod, const std::string& reason) {
  if (said_already(pod.name, reason)) return;
  send(pod, "Warning", "FailedScheduling", "Scheduling", reason);
}

void EventSink::preempted(const std::string& victim, const std::string& victim_uid,
                          const KubernetesPod& by, const std::string& node) {
  KubernetesPod about;
  about.name = victim;
  about.uid = victim_uid;
  send(about, "Normal", "Preempted", "Preempting",
       fmt::format("Preempted by pod {} on node {}", by.uid, node));
}

void EventSink::nominate(const KubernetesPod& pod, const std::string& node) {
  const json patch = {{"status", {{"nominatedNodeName", node}}}};
  push({"PATCH",
        "/api/v1/namespaces/" + encode_url(space_of(pod)) + "/pods/" + encode_url(short_name(pod)) +
            "/status",
        dump(patch), "application/strategic-merge-patch+json"});
}

void EventSink::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    arrived_.wait(lock, [this] { return stopping_ || !items_.empty(); });
    if (items_.empty() || (stopping_ && Platform::host().now_ns() >= stop_by_ns_)) return;
    const Item item = std::move(items_.front());
    items_.pop_front();
    lock.unlock();
    const auto reply = api_.call(item.method, item.path, item.body, item.content_type);
    if (!reply.ok()) {
      log::debug("{}", reply.status().message());
    } else if (reply.value().status >= 300 && reply.value().status != 404) {
      log::info("{} {}: the API server answers {}: {}", item.method, item.path,
                reply.value().status, api_message(reply.value()));
    }
    lock.lock();
  }
}

}  // namespace penstock
