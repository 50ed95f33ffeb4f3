// Which of several schedulers decides: one holds a Lease (coordination.k8s.io/v1), as client-go's
// leader election does, whose fields and rules these are.
//
// Whoever holds it renews it every retry period. Others take it over when it has not changed for
// its duration by their own clocks, so that clocks need not agree. A holder that cannot renew it
// within the renew deadline, which is shorter than the duration, gives up by itself before anybody
// else can hold it.
#ifndef PENSTOCK_SERVE_LEADER_H_
#define PENSTOCK_SERVE_LEADER_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>

#include "penstock/base/platform.h"
#include "penstock/base/status.h"
#include "penstock/serve/api_client.h"

namespace penstock {

struct LeaderConfig {
  std::string lease_namespace = "kube-system";
  std::string lease_name = "penstock-scheduler";
  std::string identity;            // of this process; no other has it
  std::uint64_t lease_ms = 15000;  // whole seconds; longer than the renew deadline
  std::uint64_t renew_ms = 10000;  // longer than the retry period
  std::uint64_t retry_ms = 2000;
};

// invalid_argument unless the durations stand in that order.
Status check_leader_config(const LeaderConfig& config);

// run() by one thread; the rest thread-safe.
class Leader {
 public:
  // `on_change(leads)` is called by the thread of run().
  Leader(Api& api, Platform& platform, LeaderConfig config,
         std::function<void(bool leads)> on_change = {});

  // Until a stop; then the lease is given back, so that another need not wait for its end.
  void run(const StopFlag& stop);
  // One attempt to acquire or renew; for run() and tests.
  bool try_acquire_or_renew();
  // Gives the lease back if it is held.
  void release();

  // True only while nobody else can hold the lease, however long this process was suspended.
  bool leads() const { return platform_.now_ns() < leads_until_ns_.load(); }
  std::string holder() const;  // as last seen; "" if nobody
  // Changes of the holder, as the lease counts them.
  std::int64_t transitions() const;

 private:
  Result<ApiReply> get();
  bool create(std::uint64_t started_ns);
  bool update(std::uint64_t started_ns);
  void observe(const nlohmann::json& lease);
  bool observed_is_valid() const;
  void became_leader(std::uint64_t started_ns);
  nlohmann::json spec(const std::string& holder, std::uint64_t duration_ms,
                      const std::string& acquired, std::int64_t transitions) const;
  std::string path() const;

  Api& api_;
  Platform& platform_;
  const LeaderConfig config_;
  const std::function<void(bool)> on_change_;
  std::atomic<std::uint64_t> leads_until_ns_{0};
  mutable std::mutex mutex_;
  nlohmann::json observed_;  // the lease as it was last seen
  std::string observed_spec_;
  std::uint64_t observed_ns_ = 0;  // when it last changed, by this process's clock
};

// "2026-01-31T12:00:00.000000Z", now.
std::string micro_time();
// A name that no other process has: host name, then a random number.
std::string process_identity(Platform& platform);

}  // namespace penstock
#endif
