// Events about pods (events.k8s.io/v1), in kube-scheduler's words, and the condition that says why
// a pod is not placed. Written in the background; nothing waits for them.
#ifndef PENSTOCK_SERVE_EVENT_SINK_H_
#define PENSTOCK_SERVE_EVENT_SINK_H_

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <thread>

#include "penstock/sched/kubernetes.h"
#include "penstock/serve/api_client.h"

namespace penstock {

// Thread-safe. Begins when it is made; on destruction what is queued is written, for a second at
// most.
class EventSink {
 public:
  // `controller`: the scheduler's name; `instance`: this process.
  EventSink(Api& api, std::string controller, std::string instance);
  ~EventSink();
  EventSink(const EventSink&) = delete;
  EventSink& operator=(const EventSink&) = delete;

  // Normal, Scheduled, "Successfully assigned ns/pod to node".
  void scheduled(const KubernetesPod& pod, const std::string& node);
  // Warning, FailedScheduling, with the reason; and the condition PodScheduled=False of the pod's
  // status. The same reason again within five minutes is not repeated.
  void failed(const KubernetesPod& pod, const std::string& reason);
  // A failure that is not the cluster's: FailedScheduling without a condition.
  void failed_to_bind(const KubernetesPod& pod, const std::string& reason);
  // Normal, Preempted, about a victim.
  void preempted(const std::string& victim, const std::string& victim_uid, const KubernetesPod& by,
                 const std::string& node);
  // The status of a pod for which room is being made: nominatedNodeName.
  void nominate(const KubernetesPod& pod, const std::string& node);
  // Forgets what was said about a pod.
  void settled(const std::string& key);
  std::uint64_t dropped() const;  // for want of room in the queue

 private:
  struct Item {
    std::string method, path, body, content_type;
  };
  struct Said {
    std::string reason;
    std::uint64_t at_ns = 0;
  };
  void send(const KubernetesPod& pod, const char* type, const char* reason, const char* action,
            const std::string& note);
  bool said_already(const std::string& key, const std::string& reason);
  void push(Item item);
  void work();

  Api& api_;
  const std::string controller_, instance_;
  mutable std::mutex mutex_;
  std::condition_variable arrived_;
  std::deque<Item> items_;
  std::map<std::string, Said> said_;
  std::uint64_t dropped_ = 0;
  bool stopping_ = false;
  std::uint64_t stop_by_ns_ = 0;
  std::thread thread_;
};

}  // namespace penstock
#endif
