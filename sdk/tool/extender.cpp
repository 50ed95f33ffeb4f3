// penstock extender: filter, prioritize, bind and preempt for kube-scheduler.
#include <CLI/CLI.hpp>
#include <memory>
#include <optional>

#include "command.h"
#include "live.h"
#include "options.h"
#include "penstock/base/log.h"
#include "penstock/sched/kubernetes.h"
#include "penstock/serve/extender.h"

namespace penstock::tool {
namespace {

struct ExtenderOptions {
  LiveOptions live;
  ExtenderConfig extender;
  std::string snapshot;
};

Status serve_extender(const ExtenderOptions& options) {
  PENSTOCK_ASSIGN(const std::unique_ptr<Api> api, connect_api(options.live));
  if (api == nullptr && options.snapshot.empty()) {
    return {Code::invalid_argument,
            "where is the cluster? give --snapshot FILE, --api-server URL or --in-cluster"};
  }
  if (api != nullptr && !options.snapshot.empty()) {
    return {Code::invalid_argument, "a snapshot and an API server exclude each other"};
  }
  PENSTOCK_ASSIGN(const SchedulerConfig rules, read_config(options.live));
  PENSTOCK_ASSIGN(const ClusterConfig config, cluster_config(options.live, rules));
  std::vector<std::string> kinds;
  for (const WatchedKind& kind : watched_kinds(false)) kinds.emplace_back(kind.kind);
  PENSTOCK_ASSIGN(const auto cluster, LiveCluster::create(config, kinds));
  if (api == nullptr) {
    PENSTOCK_ASSIGN(const KubernetesCluster snapshot, read_kubernetes(options.snapshot));
    for (const std::string& warning : snapshot.warnings) log::warn("{}", warning);
    PENSTOCK_TRY(cluster->load(snapshot));
  }
  Metrics metrics;
  metrics.on_scrape([&] { set_cluster_gauges(*cluster, metrics); });
  Extender extender(*cluster, api.get(), metrics, options.extender);
  std::vector<HttpRoute> routes = extender.routes();
  for (HttpRoute& route : operation_routes(*cluster, metrics)) routes.push_back(std::move(route));
  std::optional<WatchSet> watches;
  if (api != nullptr) {
    watches.emplace(*api, *cluster, watch_options(options.live),
                    [&metrics](const std::string& kind, const std::string& reason) {
                      metrics.watch_restart(kind, reason);
                    });
  }
  PENSTOCK_ASSIGN(const auto server, serve(options.live, std::move(routes), metrics));
  announce("extender", options.live, *server);
  wait_for_signal();
  server->stop();
  return {};
}

int run_extender(const ExtenderOptions& options) {
  hold_signals();
  const Status status = serve_extender(options);
  return status.ok() ? kExitOk : fail("extender", status);
}

}  // namespace

void add_extender(CLI::App& app, Context& context) {
  CLI::App* command = app.add_subcommand(
      "extender", "Serve filter, prioritize, bind and preempt to kube-scheduler");
  command->footer(
      "Example: kubectl get nodes,pods -A -o json > cluster.json\n"
      "         penstock extender --snapshot cluster.json\n"
      "         kubectl proxy & penstock extender --api-server http://127.0.0.1:8001 --best-only");
  auto options = std::make_shared<ExtenderOptions>();
  options->live.listen = "127.0.0.1:8888";
  command
      ->add_option("--snapshot", options->snapshot,
                   "What kubectl get nodes,pods -A -o json prints, instead of an API server")
      ->type_name("FILE");
  add_api_options(*command, options->live);
  command
      ->add_option("--scheduler-name", options->live.scheduler_name,
                   "Whose profile of the configuration; without: the first")
      ->type_name("NAME");
  command->add_flag("--best-only", options->extender.best_only,
                    "filter answers with the best node alone");
  add_number(*command, "--assume-ms", options->extender.assume_ms, 0, 3600000,
             "How long a node that was named best counts as taken before the pod is seen there");
  command->add_option("--url-prefix", options->extender.url_prefix, "Path before /filter etc.")
      ->type_name("PATH");
  add_serving_options(*command, options->live);
  command->callback([&context, options] {
    const std::string& prefix = options->extender.url_prefix;
    if (!prefix.empty() &&
        (prefix.front() != '/' || prefix.back() == '/' ||
         prefix.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRS"
                                  "TUVWXYZ0123456789/_-") != std::string::npos)) {
      throw CLI::ValidationError("--url-prefix",
                                 "expected a path such as /penstock, of letters, digits, _ and -");
    }
    context.action = [options] { return run_extender(*options); };
  });
}

}  // namespace penstock::tool
