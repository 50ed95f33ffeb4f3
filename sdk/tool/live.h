// What `penstock extender` and `penstock scheduler` have in common: their options, and how they
// begin and end.
#ifndef PENSTOCK_SDK_TOOL_LIVE_H_
#define PENSTOCK_SDK_TOOL_LIVE_H_

#include <CLI/CLI.hpp>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "penstock/base/status.h"
#include "penstock/sched/cluster.h"
#include "penstock/sched/scheduler_config.h"
#include "penstock/serve/api_client.h"
#include "penstock/serve/http_server.h"
#include "penstock/serve/metrics.h"
#include "penstock/serve/watch_set.h"

namespace penstock::tool {

struct LiveOptions {
  std::string listen;
  TlsFiles tls;
  HttpLimits limits;
  std::string config;          // KubeSchedulerConfiguration
  std::string scheduler_name;  // whose profile
  std::string engine = "auto";
  ApiEndpoint api;
  bool in_cluster = false;
  std::uint64_t resync_seconds = 0;
  std::uint64_t watch_timeout_ms = 150000;
};

void add_serving_options(CLI::App& command, LiveOptions& options);
void add_api_options(CLI::App& command, LiveOptions& options);

// --config, or kube-scheduler's defaults; what has no effect is logged.
Result<SchedulerConfig> read_config(const LiveOptions& options);
// The profile of --scheduler-name (without: the first), and the engine.
Result<ClusterConfig> cluster_config(const LiveOptions& options, const SchedulerConfig& config);
// Null if no API server was given.
Result<std::unique_ptr<Api>> connect_api(const LiveOptions& options);
WatchOptions watch_options(const LiveOptions& options);
// Warns when others than this host can reach it, or when it is not encrypted for them.
Result<std::unique_ptr<HttpServer>> serve(const LiveOptions& options, std::vector<HttpRoute> routes,
                                          Metrics& metrics);

// Holds back SIGTERM and SIGINT from now on in this thread and those that it makes.
void hold_signals();
// Until one of them comes.
void wait_for_signal();
// Says on standard output where it serves, once everything is in place.
void announce(const std::string& command, const LiveOptions& options, const HttpServer& server);

}  // namespace penstock::tool
#endif
