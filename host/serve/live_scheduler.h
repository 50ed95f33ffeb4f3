// Serves the pods that name this scheduler: decides, binds, says so, and tries again.
//
// No pod is bound by a process that does not hold the lease: leadership is looked at before each
// decision and again before each binding, and lasts at most the renew deadline. What is still under
// way then is settled by the API server, which binds a pod once.
#ifndef PENSTOCK_SERVE_LIVE_SCHEDULER_H_
#define PENSTOCK_SERVE_LIVE_SCHEDULER_H_

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "penstock/serve/api_client.h"
#include "penstock/serve/event_sink.h"
#include "penstock/serve/live_cluster.h"
#include "penstock/serve/metrics.h"
#include "penstock/serve/pod_queue.h"

namespace penstock {

struct LiveSchedulerConfig {
  std::string scheduler_name = "penstock";
  std::string instance;        // of this process, in events
  std::uint32_t binders = 16;  // bindings under way at once
  PodQueueConfig queue;
  bool preempts = false;  // deletes pods of lower priority where one fits nowhere
};

// Which pods are this scheduler's, and the queue of them.
class PodIntake final : public ClusterListener {
 public:
  PodIntake(Platform& platform, std::string scheduler_name, const PodQueueConfig& config)
      : queue_(platform, config), scheduler_name_(std::move(scheduler_name)) {}
  void pod_pending(const KubernetesPod& pod) override;
  void pod_settled(const std::string& key) override;
  void cluster_changed(bool only_relations) override { queue_.wake(only_relations); }
  // Called for each pod that has been settled; set before the watches begin.
  void on_settled(std::function<void(const std::string& key)> told) { told_ = std::move(told); }
  PodQueue& queue() { return queue_; }

 private:
  PodQueue queue_;
  const std::string scheduler_name_;
  std::function<void(const std::string&)> told_;
};

class LiveScheduler {
 public:
  // `leads` says whether this process may decide and bind at this moment. All outlive the
  // scheduler.
  LiveScheduler(LiveCluster& cluster, PodIntake& intake, Api& api, Metrics& metrics,
                LiveSchedulerConfig config, std::function<bool()> leads);
  ~LiveScheduler();
  LiveScheduler(const LiveScheduler&) = delete;
  LiveScheduler& operator=(const LiveScheduler&) = delete;

  // Decides until a stop; bindings that are under way are waited for.
  void run(const StopFlag& stop);
  void set_gauges();

 private:
  struct Binding {
    KubernetesPod pod;
    std::string node;
  };
  void decide(const KubernetesPod& pod);
  // Makes room for a pod that fits nowhere, if pods of lower priority can go.
  void reserve(const KubernetesPod& pod, const std::string& node);
  void make_room(KubernetesPod pod);
  void enqueue(Binding binding);
  void bind(const Binding& binding);
  void work();
  void wait_for_bindings();

  LiveCluster& cluster_;
  PodIntake& intake_;
  Api& api_;
  Metrics& metrics_;
  const LiveSchedulerConfig config_;
  const std::function<bool()> leads_;
  EventSink events_;
  std::mutex mutex_;
  std::condition_variable arrived_, idle_;
  std::deque<Binding> bindings_;
  // Nodes where room was made, by the pod's uid: known before the API server has been told and the
  // watch has brought it back. Of the deciding thread; bounded.
  std::map<std::string, std::string> nominated_;
  std::uint32_t under_way_ = 0;
  bool stopping_ = false;
  std::vector<std::thread> binders_;
};

}  // namespace penstock
#endif
