#include "penstock/serve/extender.h"

#include <algorithm>
#include <utility>

#include "penstock/base/log.h"
#include "penstock/base/platform.h"
#include "penstock/serve/extender_preemption.h"

namespace penstock {
namespace {

using nlohmann::json;

std::string dump(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

HttpResponse answer(const json& value) { return {200, "application/json", dump(value)}; }

HttpResponse refused(const Status& status) {
  const bool theirs =
      status.code() == Code::invalid_argument || status.code() == Code::out_of_range;
  return http_error(theirs ? 400 : 500, status.message());
}

std::string joined(const std::vector<std::string>& reasons) {
  std::string text;
  for (const std::string& reason : reasons) text += (text.empty() ? "" : ", ") + reason;
  return text;
}

// Nodes or NodeNames of the answer, as they came.
void put_nodes(ExtenderArgs* args, const std::vector<bool>& kept, json* out) {
  json names = json::array(), nodes = json::array();
  for (std::size_t i = 0; i < args->names.size(); ++i) {
    if (!kept[i]) continue;
    if (args->by_name) {
      names.push_back(args->names[i]);
    } else {
      nodes.push_back(std::move(args->nodes[i]));
    }
  }
  (*out)["NodeNames"] = args->by_name ? std::move(names) : json();
  (*out)["Nodes"] = args->by_name ? json()
                                  : json{{"apiVersion", "v1"},
                                         {"kind", "NodeList"},
                                         {"metadata", json::object()},
                                         {"items", std::move(nodes)}};
  out->emplace("FailedNodes", json::object());
  out->emplace("FailedAndUnresolvableNodes", json::object());
  (*out)["Error"] = "";
}

Status put_request_nodes(LiveCluster& cluster, const ExtenderArgs& args) {
  if (args.by_name) return {};
  std::vector<const json*> objects;
  objects.reserve(args.nodes.size());
  for (const json& node : args.nodes) objects.push_back(&node);
  return cluster.put_nodes(objects);
}

}  // namespace

Extender::Extender(LiveCluster& cluster, Api* api, Metrics& metrics, ExtenderConfig config)
    : cluster_(cluster), api_(api), metrics_(metrics), config_(std::move(config)) {}

Result<json> Extender::best_result(ExtenderArgs* args, const PodDecision& decision) {
  json out;
  std::vector<bool> kept(args->names.size(), false);
  const auto best = std::find(args->names.begin(), args->names.end(), decision.node);
  if (best == args->names.end()) {
    return error(Code::internal, "node {} was chosen and is no candidate", decision.node);
  }
  kept[static_cast<std::size_t>(best - args->names.begin())] = true;
  put_nodes(args, kept, &out);
  return out;
}

Result<json> Extender::filter_result(ExtenderArgs* args) {
  json out;
  if (args->names.empty()) {
    put_nodes(args, {}, &out);
    return out;
  }
  PENSTOCK_TRY(put_request_nodes(cluster_, *args));
  // What an earlier try of this pod was thought to take is free for it.
  cluster_.forget(args->pod.name);
  if (config_.best_only) {
    auto decision = config_.assume_ms > 0
                        ? cluster_.decide_and_assume(args->pod, config_.assume_ms, args->names)
                        : cluster_.with([&](Cluster& cluster) {
                            return cluster.decide(args->pod, false, 1, args->names);
                          });
    if (!decision.ok()) return decision.status();
    if (!decision->node.empty()) return best_result(args, *decision);
  }
  auto verdicts =
      cluster_.with([&](Cluster& cluster) { return cluster.filter(args->pod, args->names); });
  if (!verdicts.ok()) return verdicts.status();
  if (verdicts->size() != args->names.size()) {
    return error(Code::internal, "{} verdicts for {} nodes", verdicts->size(), args->names.size());
  }
  std::vector<bool> kept;
  json failed = json::object(), unresolvable = json::object();
  for (const NodeVerdict& verdict : *verdicts) {
    kept.push_back(verdict.feasible);
    if (verdict.feasible) continue;
    const bool hopeless = verdict.code == "UnschedulableAndUnresolvable";
    (hopeless ? unresolvable : failed)[verdict.node] = joined(verdict.reasons);
  }
  out["FailedNodes"] = std::move(failed);
  out["FailedAndUnresolvableNodes"] = std::move(unresolvable);
  put_nodes(args, kept, &out);
  return out;
}

HttpResponse Extender::filter(const HttpRequest& request) {
  auto args = parse_extender_args(request.body);
  if (!args.ok()) return refused(args.status());
  const std::uint64_t start = Platform::host().now_ns();
  auto out = filter_result(&args.value());
  const std::uint64_t ns = Platform::host().now_ns() - start;
  if (!out.ok()) {
    metrics_.decision("error", ns);
    return refused(out.status());
  }
  const json& names = (*out.value().find(args->by_name ? "NodeNames" : "Nodes"));
  const bool none = args->by_name ? names.empty() : names["items"].empty();
  metrics_.decision(none ? "unschedulable" : "placed", ns);
  return answer(*out);
}

HttpResponse Extender::prioritize(const HttpRequest& request) {
  auto args = parse_extender_args(request.body);
  if (!args.ok()) return refused(args.status());
  const Status put = put_request_nodes(cluster_, *args);
  if (!put.ok()) return refused(put);
  using Totals = std::vector<std::pair<std::string, std::int64_t>>;
  const auto totals = cluster_.with([&](Cluster& cluster) -> Result<Totals> {
    // A node that is not known (it came a moment ago) is the least.
    std::vector<std::string> known;
    for (const std::string& name : args->names) {
      if (cluster.find_node(name) != nullptr) known.push_back(name);
    }
    Totals out;
    if (known.empty()) return out;
    PENSTOCK_ASSIGN(const auto plugins, cluster.score(args->pod, known));
    for (std::size_t i = 0; i < known.size(); ++i) {
      std::int64_t total = 0;
      for (const PluginScores& plugin : plugins) {
        if (!plugin.skipped) total += plugin.normalised[i] * plugin.weight;
      }
      out.emplace_back(known[i], total);
    }
    return out;
  });
  if (!totals.ok()) return refused(totals.status());
  std::vector<std::int64_t> numbers;
  for (const auto& [name, total] : totals.value()) numbers.push_back(total);
  const std::vector<std::int64_t> scores = extender_scores(numbers);
  json out = json::array();
  std::size_t at = 0;
  for (const std::string& name : args->names) {
    const bool known = at < scores.size() && totals.value()[at].first == name;
    out.push_back({{"Host", name}, {"Score", known ? scores[at] : 0}});
    if (known) ++at;
  }
  return answer(out);
}

Status post_binding(Api& api, const std::string& key, const std::string& uid,
                    const std::string& node) {
  const std::size_t slash = key.find('/');
  const std::string space = key.substr(0, slash), name = key.substr(slash + 1);
  json metadata = {{"namespace", space}, {"name", name}};
  // With the uid a pod of the same name that came later is not meant.
  if (!uid.empty()) metadata["uid"] = uid;
  const json body = {{"apiVersion", "v1"},
                     {"kind", "Binding"},
                     {"metadata", metadata},
                     {"target", {{"apiVersion", "v1"}, {"kind", "Node"}, {"name", node}}}};
  PENSTOCK_ASSIGN(const ApiReply reply, api.call("POST",
                                                 "/api/v1/namespaces/" + encode_url(space) +
                                                     "/pods/" + encode_url(name) + "/binding",
                                                 dump(body), "application/json"));
  if (reply.status >= 200 && reply.status < 300) return {};
  const std::string why = api_message(reply);
  const Code code = reply.status == 409   ? Code::already_exists
                    : reply.status == 404 ? Code::not_found
                                          : Code::io_error;
  return error(code, "binding {} to {}: the API server answers {}: {}", key, node, reply.status,
               why);
}

Status Extender::bind_pod(const std::string& key, const std::string& uid, const std::string& node) {
  if (api_ == nullptr) {
    return error(Code::unsupported,
                 "a snapshot cannot bind; bind needs an API server, or leave bindVerb empty");
  }
  const Status status = post_binding(*api_, key, uid, node);
  if (status.ok()) {
    if (const auto pod = cluster_.pending_pod(key); pod && (uid.empty() || pod->uid == uid)) {
      const Status assumed = cluster_.assume(*pod, node, config_.assume_ms);
      if (!assumed.ok()) log::info("{} on {}: {}", key, node, assumed.message());
    }
    metrics_.binding("bound");
    return {};
  }
  cluster_.forget(key);
  metrics_.binding(status.code() == Code::already_exists ? "conflict"
                   : status.code() == Code::not_found    ? "gone"
                                                         : "failed");
  return status;
}

HttpResponse Extender::bind(const HttpRequest& request) {
  const auto args = parse_binding_args(request.body);
  if (!args.ok()) return refused(args.status());
  const BindingArgs& binding = args.value();
  const Status status = bind_pod(binding.key, binding.uid, binding.node);
  return answer({{"Error", status.ok() ? "" : status.message()}});
}

HttpResponse Extender::preempt(const HttpRequest& request) {
  auto result = answer_preemption(cluster_, request.body);
  if (!result.ok()) return refused(result.status());
  return answer(*result);
}

std::vector<HttpRoute> Extender::routes() {
  const auto verb = [this](const char* name, HttpResponse (Extender::*run)(const HttpRequest&)) {
    return HttpRoute{"POST", config_.url_prefix + "/" + name,
                     [this, run](const HttpRequest& request) {
                       // An answer from half of a cluster would be wrong; kube-scheduler passes
                       // over an extender that is ignorable.
                       if (!cluster_.ready())
                         return http_error(503, "the cluster is not listed yet");
                       return (this->*run)(request);
                     }};
  };
  return {verb("filter", &Extender::filter), verb("prioritize", &Extender::prioritize),
          verb("bind", &Extender::bind), verb("preempt", &Extender::preempt)};
}

void set_cluster_gauges(const LiveCluster& cluster, Metrics& metrics) {
  const LiveCluster::Counts counts = cluster.counts();
  const auto count = [](std::size_t n) { return static_cast<double>(n); };
  metrics.gauge("penstock_cache_age_seconds",
                "Since the API server last spoke about the kind that is silent for longest",
                cluster.age_seconds());
  metrics.gauge("penstock_cache_nodes", "Nodes that are known", count(counts.nodes));
  metrics.gauge("penstock_cache_pods", "Pods with a node", count(counts.pods));
  metrics.gauge("penstock_cache_pending_pods", "Pods without a node", count(counts.pending));
  metrics.gauge("penstock_cache_unreadable_objects", "Objects left out because they are malformed",
                count(counts.unreadable));
}

std::vector<HttpRoute> operation_routes(const LiveCluster& cluster, Metrics& metrics) {
  std::vector<HttpRoute> routes;
  routes.push_back({"GET", "/healthz", [](const HttpRequest&) {
                      return HttpResponse{200, "text/plain", "ok\n"};
                    }});
  routes.push_back({"GET", "/readyz", [&cluster](const HttpRequest&) {
                      if (cluster.ready()) return HttpResponse{200, "text/plain", "ok\n"};
                      return HttpResponse{503, "text/plain", "the cluster is not listed yet\n"};
                    }});
  routes.push_back({"GET", "/metrics", [&metrics](const HttpRequest&) {
                      return HttpResponse{200, "text/plain; version=0.0.4", metrics.text()};
                    }});
  routes.push_back({"GET", "/state", [&cluster](const HttpRequest&) {
                      return HttpResponse{200, "application/json", dump(cluster.state())};
                    }});
  return routes;
}

}  // namespace penstock
