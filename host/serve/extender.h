// The extender protocol of kube-scheduler (k8s.io/kube-scheduler/extender/v1): filter, prioritize,
// bind and preempt, decided on a LiveCluster.
//
// A request whose form is wrong is answered 400 and changes nothing. What is wrong with its content
// (no such pod, no API server to bind at) stands in the answer's Error, as the protocol has it.
#ifndef PENSTOCK_SERVE_EXTENDER_H_
#define PENSTOCK_SERVE_EXTENDER_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "penstock/base/status.h"
#include "penstock/serve/api_client.h"
#include "penstock/serve/extender_protocol.h"
#include "penstock/serve/http_server.h"
#include "penstock/serve/live_cluster.h"
#include "penstock/serve/metrics.h"

namespace penstock {

struct ExtenderConfig {
  std::string url_prefix;  // before /filter and the others: "" or "/name"
  // filter answers with the one best node: 0 to 10 cannot carry a whole ranking.
  bool best_only = false;
  // How long a node that best_only named, or that was bound, counts as taken without word from the
  // API server. 0 with a best_only: it does not.
  std::uint64_t assume_ms = 30000;
};

// Thread-safe.
class Extender {
 public:
  // `api` may be null: bind says so then. All outlive the extender.
  Extender(LiveCluster& cluster, Api* api, Metrics& metrics, ExtenderConfig config);

  HttpResponse filter(const HttpRequest& request);
  HttpResponse prioritize(const HttpRequest& request);
  HttpResponse bind(const HttpRequest& request);
  HttpResponse preempt(const HttpRequest& request);
  // The four verbs under the prefix.
  std::vector<HttpRoute> routes();

 private:
  Result<nlohmann::json> filter_result(ExtenderArgs* args);
  Result<nlohmann::json> best_result(ExtenderArgs* args, const PodDecision& decision);
  Status bind_pod(const std::string& key, const std::string& uid, const std::string& node);

  LiveCluster& cluster_;
  Api* api_;
  Metrics& metrics_;
  const ExtenderConfig config_;
};

// /healthz, /readyz, /metrics and /state: what every live front end serves beside its own.
std::vector<HttpRoute> operation_routes(const LiveCluster& cluster, Metrics& metrics);
// Sets the gauges of the cluster's age and counts.
void set_cluster_gauges(const LiveCluster& cluster, Metrics& metrics);

// POSTs the binding; ok when the API server made it. already_exists for a pod that is bound or
// whose object changed (409), not_found for one that is gone, io_error for the rest.
Status post_binding(Api& api, const std::string& key, const std::string& uid,
                    const std::string& node);

}  // namespace penstock
#endif
