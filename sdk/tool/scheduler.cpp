// penstock scheduler: decides for the pods that name it, and binds them.
#include <CLI/CLI.hpp>
#include <memory>
#include <optional>
#include <thread>
#include <type_traits>

#include "command.h"
#include "live.h"
#include "options.h"
#include "penstock/base/log.h"
#include "penstock/base/platform.h"
#include "penstock/serve/extender.h"
#include "penstock/serve/leader.h"
#include "penstock/serve/live_scheduler.h"

namespace penstock::tool {
namespace {

struct SchedulerOptions {
  LiveOptions live;
  LeaderConfig leader;
  bool no_leader_election = false;
  PodQueueConfig queue;
  bool preempts = false;
  std::uint32_t binders = 16;
};

// What the configuration says and the command line does not.
void take_from_config(const SchedulerConfig& config, SchedulerOptions* options) {
  const LeaderConfig leader_defaults;
  const PodQueueConfig queue_defaults;
  const auto take = [](auto* value, const auto& unchanged, auto said) {
    using Value = std::remove_reference_t<decltype(*value)>;
    if (*value == unchanged) *value = static_cast<Value>(said);
  };
  const LeaderElection& said = config.leader_election;
  LeaderConfig& leader = options->leader;
  take(&leader.lease_ms, leader_defaults.lease_ms, said.lease_duration_ms);
  take(&leader.renew_ms, leader_defaults.renew_ms, said.renew_deadline_ms);
  take(&leader.retry_ms, leader_defaults.retry_ms, said.retry_period_ms);
  take(&leader.lease_namespace, leader_defaults.lease_namespace, said.resource_namespace);
  // The default there is kube-scheduler's own lease, with which this is to live side by side.
  if (said.resource_name != "kube-scheduler") {
    take(&leader.lease_name, leader_defaults.lease_name, said.resource_name);
  }
  options->no_leader_election = options->no_leader_election || !said.elect;
  take(&options->queue.least_backoff_ms, queue_defaults.least_backoff_ms,
       config.initial_backoff_seconds * 1000);
  take(&options->queue.most_backoff_ms, queue_defaults.most_backoff_ms,
       config.max_backoff_seconds * 1000);
}

Status run_scheduler_until_signal(SchedulerOptions options) {
  PENSTOCK_ASSIGN(const std::unique_ptr<Api> api, connect_api(options.live));
  if (api == nullptr) {
    return {Code::invalid_argument, "where is the cluster? give --api-server URL or --in-cluster"};
  }
  Platform& platform = Platform::host();
  PENSTOCK_ASSIGN(const SchedulerConfig rules, read_config(options.live));
  if (!options.live.config.empty()) take_from_config(rules, &options);
  if (options.leader.identity.empty()) options.leader.identity = process_identity(platform);
  PENSTOCK_TRY(check_leader_config(options.leader));
  PENSTOCK_ASSIGN(const ClusterConfig config, cluster_config(options.live, rules));
  std::vector<std::string> kinds;
  for (const WatchedKind& kind : watched_kinds(options.preempts)) kinds.emplace_back(kind.kind);
  const std::string& name = options.live.scheduler_name;
  PodIntake intake(platform, name, options.queue);
  PENSTOCK_ASSIGN(const auto cluster, LiveCluster::create(config, kinds, &intake));
  Metrics metrics;
  Leader leader(*api, platform, options.leader);
  const bool elects = !options.no_leader_election;
  LiveScheduler scheduler(
      *cluster, intake, *api, metrics,
      {name, options.leader.identity, options.binders, options.queue, options.preempts},
      [&leader, elects] { return !elects || leader.leads(); });
  metrics.on_scrape([&] {
    set_cluster_gauges(*cluster, metrics);
    scheduler.set_gauges();
  });
  PENSTOCK_ASSIGN(const auto server,
                  serve(options.live, operation_routes(*cluster, metrics), metrics));
  WatchOptions watch = watch_options(options.live);
  watch.preempts = options.preempts;
  WatchSet watches(*api, *cluster, watch,
                   [&metrics](const std::string& kind, const std::string& reason) {
                     metrics.watch_restart(kind, reason);
                   });
  StopFlag stop_deciding, stop_leading;
  std::thread elector([&] {
    if (elects) leader.run(stop_leading);
  });
  std::thread decider([&] { scheduler.run(stop_deciding); });
  announce("scheduler", options.live, *server);
  wait_for_signal();
  // The lease goes back only when nothing is bound any more.
  stop_deciding.request();
  decider.join();
  stop_leading.request();
  elector.join();
  watches.stop();
  server->stop();
  return {};
}

int run_scheduler(const SchedulerOptions& options) {
  hold_signals();
  const Status status = run_scheduler_until_signal(options);
  return status.ok() ? kExitOk : fail("scheduler", status);
}

void add_election_options(CLI::App& command, SchedulerOptions& options) {
  command.add_flag("--no-leader-election", options.no_leader_election,
                   "Decide without holding the lease; only one process may");
  command.add_option("--lease-namespace", options.leader.lease_namespace, "Where the Lease is")
      ->type_name("NAME")
      ->capture_default_str();
  command.add_option("--lease-name", options.leader.lease_name, "Its name")
      ->type_name("NAME")
      ->capture_default_str();
  command
      .add_option("--identity", options.leader.identity,
                  "Who holds it; without: host name and a random number")
      ->type_name("NAME");
  add_number(command, "--lease-duration-ms", options.leader.lease_ms, 1000, 3600000,
             "After that long without a sign of its holder others take it; whole seconds");
  add_number(command, "--renew-deadline-ms", options.leader.renew_ms, 100, 3600000,
             "After that long without renewing it its holder gives up");
  add_number(command, "--retry-period-ms", options.leader.retry_ms, 10, 3600000,
             "Between attempts to acquire or renew it");
}

}  // namespace

void add_scheduler(CLI::App& app, Context& context) {
  CLI::App* command =
      app.add_subcommand("scheduler", "Schedule the pods of a cluster that name this scheduler");
  command->footer(
      "Example: kubectl proxy & penstock scheduler --api-server http://127.0.0.1:8001\n"
      "         and in a pod's spec: schedulerName: penstock");
  auto options = std::make_shared<SchedulerOptions>();
  options->live.listen = "127.0.0.1:10259";
  options->live.scheduler_name = "penstock";
  command
      ->add_option("--scheduler-name", options->live.scheduler_name,
                   "The schedulerName of the pods that it serves")
      ->type_name("NAME")
      ->capture_default_str();
  add_api_options(*command, options->live);
  add_election_options(*command, *options);
  add_number(*command, "--backoff-ms", options->queue.least_backoff_ms, 1, 3600000,
             "After a first failure of a pod; doubles with each");
  add_number(*command, "--max-backoff-ms", options->queue.most_backoff_ms, 1, 3600000,
             "The longest back-off");
  command->add_flag("--preempt", options->preempts,
                    "Delete pods of lower priority where one fits nowhere else");
  add_number(*command, "--binders", options->binders, 1, 256, "Bindings under way at once");
  add_serving_options(*command, options->live);
  command->callback(
      [&context, options] { context.action = [options] { return run_scheduler(*options); }; });
}

}  // namespace penstock::tool
