// Reads a KubeSchedulerConfiguration (kubescheduler.config.k8s.io/v1, as of kube-scheduler v1.34)
// from YAML or JSON, with upstream's defaults and rules.
//
// Stricter than upstream where that would hide a mistake: a weight of 0, a plugin that is not one
// of kube-scheduler's own (there is nobody to run it), and a name under `disabled` that no plugin
// has are errors. Fields that have no effect here (percentageOfNodesToScore: all nodes are always
// considered) are checked and told in `notes`.
#ifndef PENSTOCK_SCHED_SCHEDULER_CONFIG_H_
#define PENSTOCK_SCHED_SCHEDULER_CONFIG_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "penstock/base/status.h"
#include "penstock/sched/scheduler_profile.h"

namespace penstock {

// leaderElection, with the durations in milliseconds.
struct LeaderElection {
  bool elect = true;
  std::int64_t lease_duration_ms = 15000;
  std::int64_t renew_deadline_ms = 10000;
  std::int64_t retry_period_ms = 2000;
  std::string resource_name = "kube-scheduler";
  std::string resource_namespace = "kube-system";
};

struct SchedulerConfig {
  std::vector<SchedulerProfile> profiles;  // at least one; each has a name of its own
  LeaderElection leader_election;
  std::int64_t initial_backoff_seconds = 1;  // of pods that could not be placed; above 0
  std::int64_t max_backoff_seconds = 10;     // at least initial_backoff_seconds
  std::vector<std::string> notes;            // a sentence each: what has no effect

  // Null if no profile has the name.
  const SchedulerProfile* find_profile(std::string_view scheduler_name) const;
  // What kube-scheduler does without a configuration.
  static SchedulerConfig defaults();
};

inline constexpr std::uint64_t kMaxSchedulerConfigBytes = std::uint64_t{1} << 20;

// not_found, io_error, out_of_range (a file beyond the bound); else a sentence with the path of the
// field: "conf.yaml: profiles[0].plugins.score.enabled[1].weight: found -1, expected a whole number
// from 1 to 1000000". invalid_argument for what breaks a rule, unsupported for what is right and
// is not done here (extenders).
Result<SchedulerConfig> read_scheduler_config(const std::string& path);
Result<SchedulerConfig> parse_scheduler_config(std::string_view bytes, const std::string& name);

}  // namespace penstock
#endif
