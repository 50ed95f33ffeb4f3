#include "live.h"

#include <csignal>
#include <cstdio>
#include <utility>

#include "options.h"
#include "penstock/base/log.h"
#include "penstock/engine/choice.h"
#include "penstock/engine/host_engine.h"

namespace penstock::tool {

void add_serving_options(CLI::App& command, LiveOptions& options) {
  command.add_option("--listen", options.listen, "Where to serve; port 0 takes a free one")
      ->type_name("HOST:PORT")
      ->capture_default_str();
  command.add_option("--tls-cert", options.tls.certificate, "Certificate (PEM): serve with TLS")
      ->type_name("FILE");
  command.add_option("--tls-key", options.tls.key, "Its key (PEM)")->type_name("FILE");
  command
      .add_option("--client-ca", options.tls.client_ca,
                  "Serve only clients whose certificate this authority (PEM) signed")
      ->type_name("FILE");
  add_size(command, "--max-body", options.limits.body_bytes, 1024, std::uint64_t{4} << 30,
           "Largest body of a request; a larger one is answered 413", "256M");
  add_size(command, "--max-header", options.limits.header_bytes, 256, 1 << 20,
           "Largest request line and headers together; 431", "16K");
  add_number(command, "--max-connections", options.limits.connections, 1, 4096,
             "Connections at once; a further one is answered 429");
  add_number(command, "--request-timeout-ms", options.limits.request_ms, 10, 3600000,
             "Time in which a request must have arrived whole; 408");
  add_number(command, "--idle-timeout-ms", options.limits.idle_ms, 10, 3600000,
             "How long a connection may be without a request");
}

void add_api_options(CLI::App& command, LiveOptions& options) {
  command
      .add_option("--api-server", options.api.url,
                  "API server, for example http://127.0.0.1:8001 of `kubectl proxy`")
      ->type_name("URL");
  command.add_flag("--in-cluster", options.in_cluster,
                   "The API server and the service account of the pod that this runs in");
  command.add_option("--api-ca", options.api.ca_file, "Authority (PEM) of an https:// API server")
      ->type_name("FILE");
  command.add_option("--api-token", options.api.token_file, "File with a bearer token")
      ->type_name("FILE");
  command
      .add_option("--api-cert", options.api.client_certificate,
                  "Certificate (PEM) to show to the API server")
      ->type_name("FILE");
  command.add_option("--api-key", options.api.client_key, "Its key (PEM)")->type_name("FILE");
  add_number(command, "--watch-timeout-ms", options.watch_timeout_ms, 100, 3600000,
             "A watch that is silent for that long is begun again");
  add_number(command, "--resync-seconds", options.resync_seconds, 0, 86400,
             "List everything at least this often, for proxies that lose events; 0: never");
  command
      .add_option("--config", options.config,
                  "KubeSchedulerConfiguration (YAML or JSON); without: kube-scheduler's defaults")
      ->type_name("FILE");
  command.add_option("--engine", options.engine, "Engine, by name")
      ->type_name("NAME")
      ->default_str("auto");
}

Result<SchedulerConfig> read_config(const LiveOptions& options) {
  if (options.config.empty()) return SchedulerConfig::defaults();
  PENSTOCK_ASSIGN(SchedulerConfig config, read_scheduler_config(options.config));
  for (const std::string& note : config.notes) log::warn("{}: {}", options.config, note);
  return config;
}

Result<ClusterConfig> cluster_config(const LiveOptions& options, const SchedulerConfig& config) {
  ClusterConfig cluster;
  cluster.profile = config.profiles.front();
  if (!options.config.empty() && !options.scheduler_name.empty()) {
    const SchedulerProfile* profile = config.find_profile(options.scheduler_name);
    if (profile == nullptr) {
      return error(Code::not_found, "{}: no profile has schedulerName {}; the first has {}",
                   options.config, options.scheduler_name, cluster.profile.scheduler_name);
    }
    cluster.profile = *profile;
  }
  PENSTOCK_ASSIGN(cluster.engine, make_engine(options.engine, needs_of_decisions()));
  return cluster;
}

Result<std::unique_ptr<Api>> connect_api(const LiveOptions& options) {
  if (options.in_cluster) {
    if (!options.api.url.empty()) {
      return error(Code::invalid_argument, "--in-cluster and --api-server exclude each other");
    }
    PENSTOCK_ASSIGN(const ApiEndpoint endpoint, in_cluster_endpoint());
    return make_api_client(endpoint);
  }
  if (options.api.url.empty()) return std::unique_ptr<Api>();
  return make_api_client(options.api);
}

WatchOptions watch_options(const LiveOptions& options) {
  WatchOptions watch;
  watch.idle_ms = options.watch_timeout_ms;
  watch.resync_ms = options.resync_seconds * 1000;
  return watch;
}

Result<std::unique_ptr<HttpServer>> serve(const LiveOptions& options, std::vector<HttpRoute> routes,
                                          Metrics& metrics) {
  PENSTOCK_ASSIGN(HttpServerConfig config, parse_listen(options.listen));
  config.tls = options.tls;
  config.limits = options.limits;
  auto server = HttpServer::start(config, std::move(routes), [&metrics](const HttpAccess& access) {
    const std::size_t slash = access.path.rfind('/');
    // Paths that are not served share one name: anybody can make up more.
    const bool known = slash != std::string::npos && access.status != 404;
    metrics.request(known ? access.path.substr(slash + 1) : "other", access.status, access.ns);
  });
  if (!server.ok()) return server.status();
  if (!is_loopback(config.host) && config.tls.client_ca.empty()) {
    log::warn(
        "{}: whoever reaches this address may ask for decisions{}; --tls-cert, --tls-key and "
        "--client-ca admit known clients only",
        options.listen, config.tls.certificate.empty() ? " without encryption" : "");
  }
  return server;
}

void hold_signals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
}

void wait_for_signal() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  int signal = 0;
  while (::sigwait(&set, &signal) != 0) {
  }
  log::info("ends on signal {}", signal);
}

void announce(const std::string& command, const LiveOptions& options, const HttpServer& server) {
  const std::string host = options.listen.substr(0, options.listen.rfind(':'));
  std::printf("penstock %s: serving at %s://%s:%u\n", command.c_str(),
              options.tls.certificate.empty() ? "http" : "https",
              host.empty() ? "0.0.0.0" : host.c_str(), static_cast<unsigned>(server.port()));
  std::fflush(stdout);
}

}  // namespace penstock::tool
