// Cases of plugins: a cluster, and what it says about a pod.
#include <algorithm>
#include <map>

#include "penstock/sched/cluster.h"
#include "penstock/sched/image_locality.h"
#include "penstock/sched/scheduler_config_parts.h"
#include "penstock/sched/vectors_parts.h"

namespace penstock {
namespace {

constexpr const char* kUnresolvable = "UnschedulableAndUnresolvable";

Result<std::unique_ptr<Cluster>> make_cluster(const VectorCluster& content,
                                              const SchedulerProfile& profile,
                                              std::shared_ptr<Engine> engine) {
  ClusterConfig config;
  config.engine = std::move(engine);
  config.profile = profile;
  config.capacity = 64;
  PENSTOCK_ASSIGN(std::unique_ptr<Cluster> cluster, Cluster::create(config));
  for (const KubernetesNamespace& space : content.namespaces) {
    PENSTOCK_TRY(cluster->put_namespace(space.name, space.labels));
  }
  for (const KubernetesNode& node : content.nodes) PENSTOCK_TRY(cluster->put_node(node));
  for (const KubernetesPod& pod : content.existing) PENSTOCK_TRY(cluster->put_pod(pod));
  return cluster;
}

Result<std::vector<std::string>> read_texts(const JsonField& list) {
  return read_list<std::string>(list, [](const JsonField& item) { return item.text(); });
}

// ---- scores ----

// By candidates, whether they are listed or named.
Result<std::vector<std::int64_t>> expected_scores(const JsonField& field,
                                                  const VectorCluster& content) {
  if (field.present() && field.json().is_array()) return read_integers(field);
  std::map<std::string, std::int64_t> by_name;
  PENSTOCK_TRY(
      field.each_member([&by_name](const std::string& name, const JsonField& item) -> Status {
        PENSTOCK_ASSIGN(by_name[name], item.integer(INT64_MIN, INT64_MAX));
        return {};
      }));
  std::vector<std::int64_t> scores;
  for (const std::string& name : content.candidates) {
    if (by_name.count(name) == 0) return field.wrong(fmt::format("a score of '{}'", name));
    scores.push_back(by_name[name]);
  }
  if (by_name.size() != scores.size()) return field.wrong("scores of candidates only");
  return scores;
}

// Upstream's Error status: making the program, or running it, says the same.
Verdict expect_error(const Status& status, const std::string& message) {
  if (status.ok()) return failed(fmt::format("expected an error '{}', found none", message));
  if (status.message().find(message) != std::string::npos) return passed();
  return failed(fmt::format("expected an error '{}', found '{}'", message, status.message()));
}

Result<Verdict> run_score_case(const JsonField& expect, const VectorCluster& content,
                               const SchedulerProfile& profile, std::shared_ptr<Engine> engine) {
  const JsonField status_field = expect.member("status"), scores = expect.member("scores");
  PENSTOCK_ASSIGN(const std::string status, status_field.text());
  PENSTOCK_ASSIGN(const std::string message, expect.member("message").text());
  if (!status.empty() && status != "Skip" && status != "Error") {
    return status_field.wrong("Skip or Error");
  }
  auto cluster = make_cluster(content, profile, std::move(engine));
  if (!cluster.ok()) {
    if (status == "Error") return expect_error(cluster.status(), message);
    return failed(cluster.status().to_string());
  }
  const auto found = cluster.value()->score(content.pod, content.candidates);
  if (status == "Error") return expect_error(found.status(), message);
  if (!found.ok()) return failed(found.status().to_string());
  if (found.value().size() != 1) {
    return failed(fmt::format("expected the scores of one plugin, found {}", found.value().size()));
  }
  const PluginScores& plugin = found.value().front();
  const bool skips = status == "Skip";
  if (plugin.skipped != skips) {
    return failed(fmt::format("expected {}, found {} with scores [{}]", skips ? "Skip" : "no Skip",
                              plugin.skipped ? "Skip" : "no Skip",
                              fmt::join(plugin.normalised, ", ")));
  }
  if (skips) return passed();
  if (!scores.present()) return scores.wrong("scores or a status");
  PENSTOCK_ASSIGN(const std::vector<std::int64_t> expected, expected_scores(scores, content));
  return compare("scores", expected, plugin.normalised);
}

// ---- filters ----

// NodeResourcesFit: no preemption helps a request beyond all that the node has.
std::string fit_code(const std::string& code, const std::vector<std::string>& resources,
                     const KubernetesPod& pod, const KubernetesNode& node) {
  for (const std::string& resource : resources) {
    const auto request = pod.request.find(resource);
    const auto capacity = node.allocatable.find(resource);
    const std::int64_t has = capacity == node.allocatable.end() ? 0 : capacity->second;
    if (request != pod.request.end() && request->second > has) return kUnresolvable;
  }
  return code;
}

struct Insufficient {
  std::string resource;
  std::int64_t requested = 0, used = 0, capacity = 0;
  std::string text() const {
    return fmt::format("{} {} {}/{}", resource, requested, used, capacity);
  }
};

Result<Insufficient> read_insufficient(const JsonField& item) {
  PENSTOCK_TRY(expect_members(item, {"resource", "requested", "used", "capacity"}));
  Insufficient one;
  PENSTOCK_ASSIGN(one.resource, item.member("resource").text());
  PENSTOCK_ASSIGN(one.requested, item.member("requested").integer(0, INT64_MAX));
  PENSTOCK_ASSIGN(one.used, item.member("used").integer(0, INT64_MAX));
  PENSTOCK_ASSIGN(one.capacity, item.member("capacity").integer(0, INT64_MAX));
  return one;
}

// The same numbers, out of the pod and the table.
Insufficient numbers_of(const Cluster& cluster, const KubernetesPod& pod, std::uint32_t row,
                        const std::string& resource) {
  Insufficient one{resource, 0, 0, 0};
  if (const auto request = pod.request.find(resource); request != pod.request.end()) {
    one.requested = request->second;
  }
  const std::int32_t column = cluster.catalogue().find_resource(resource);
  if (column < 0) return one;
  const TableView view = cluster.table().view();
  const auto index = static_cast<std::uint32_t>(column);
  one.used = view.column(view.requested, index)[row];
  one.capacity = view.column(view.allocatable, index)[row];
  return one;
}

std::string resource_of_reason(const std::string& reason) {
  constexpr std::string_view kBegins = "Insufficient ";
  return reason.starts_with(kBegins) ? reason.substr(kBegins.size()) : "";
}

struct FilterExpectation {
  std::vector<std::string> codes;    // by node
  std::vector<std::string> reasons;  // of the only node; none: not compared
  std::vector<Insufficient> insufficient;
  std::vector<std::string> prefilter_nodes;
  bool names_nodes = false;
  bool skip = false;
};

Result<FilterExpectation> read_filter_expectation(const JsonField& expect,
                                                  const VectorCluster& content) {
  FilterExpectation out;
  const JsonField codes = expect.member("filter"), all = expect.member("preFilter"),
                  names = expect.member("preFilterNodes");
  PENSTOCK_ASSIGN(out.codes, read_texts(codes));
  PENSTOCK_ASSIGN(out.reasons, read_texts(expect.member("reasons")));
  PENSTOCK_ASSIGN(out.insufficient,
                  read_list<Insufficient>(expect.member("insufficient"), read_insufficient));
  PENSTOCK_ASSIGN(out.prefilter_nodes, read_texts(names));
  PENSTOCK_ASSIGN(out.skip, expect.member("skip").boolean());
  PENSTOCK_ASSIGN(const std::string code, all.text());
  out.names_nodes = names.present();
  if (!code.empty()) out.codes.assign(content.nodes.size(), code);
  if (out.codes.size() != content.nodes.size()) return codes.wrong("a code for every node");
  for (const Insufficient& one : out.insufficient) {
    out.reasons.push_back("Insufficient " + one.resource);
  }
  return out;
}

// What NodeAffinity's PreFilter skips or narrows shows in the task and in the codes.
Verdict check_prefilter(const FilterExpectation& expected, const VectorCluster& content,
                        const std::vector<NodeVerdict>& found, Cluster& cluster) {
  for (const NodeVerdict& verdict : found) {
    const bool named = std::find(expected.prefilter_nodes.begin(), expected.prefilter_nodes.end(),
                                 verdict.node) != expected.prefilter_nodes.end();
    if (expected.names_nodes && !named && verdict.code != kUnresolvable) {
      return failed(fmt::format("{}: expected {}, as PreFilter does not name it, found {}",
                                verdict.node, kUnresolvable, verdict.code));
    }
  }
  if (!expected.skip) return passed();
  const auto task = cluster.make_task(content.pod);
  if (!task.ok()) return failed(task.status().to_string());
  for (std::uint32_t i = 0; i < task.value().record.n_terms; ++i) {
    if (task.value().record.terms[i].group != static_cast<int>(TermGroup::node_affinity)) continue;
    return failed("expected PreFilter to skip, found a term of node affinity in the task");
  }
  return passed();
}

Result<Verdict> run_filter_case(const VectorPlugin& plugin, const JsonField& expect,
                                const VectorCluster& content, const SchedulerProfile& profile,
                                std::shared_ptr<Engine> engine) {
  PENSTOCK_ASSIGN(FilterExpectation expected, read_filter_expectation(expect, content));
  auto cluster = make_cluster(content, profile, std::move(engine));
  if (!cluster.ok()) return failed(cluster.status().to_string());
  std::vector<std::string> names;
  for (const KubernetesNode& node : content.nodes) names.push_back(node.facts.name);
  const auto found = cluster.value()->filter(content.pod, names);
  if (!found.ok()) return failed(found.status().to_string());
  if (plugin.base == "NodeResourcesFit") {
    std::vector<std::string> resources;
    for (const std::string& reason : expected.reasons) {
      resources.push_back(resource_of_reason(reason));
    }
    for (std::size_t i = 0; i < content.nodes.size(); ++i) {
      expected.codes[i] = fit_code(expected.codes[i], resources, content.pod, content.nodes[i]);
    }
  }
  std::vector<std::string> codes;
  for (const NodeVerdict& verdict : found.value()) codes.push_back(verdict.code);
  Verdict verdict = compare("filter", expected.codes, codes);
  if (verdict.outcome != VectorOutcome::passed) return verdict;
  if (!expected.reasons.empty()) {
    verdict = compare("reasons", expected.reasons, found.value().front().reasons);
    if (verdict.outcome != VectorOutcome::passed) return verdict;
  }
  const std::int32_t row = cluster.value()->catalogue().find_node(content.nodes.front().facts.name);
  for (const Insufficient& one : expected.insufficient) {
    const Insufficient seen =
        numbers_of(*cluster.value(), content.pod, static_cast<std::uint32_t>(row), one.resource);
    verdict = compare<std::string>("insufficient", {one.text()}, {seen.text()});
    if (verdict.outcome != VectorOutcome::passed) return verdict;
  }
  return check_prefilter(expected, content, found.value(), *cluster.value());
}

// The name of an image as a node lists it.
Result<Verdict> run_name_case(const JsonField& test) {
  const JsonField input = test.member("input"), expect = test.member("expect");
  PENSTOCK_TRY(expect_members(input, {"image"}));
  PENSTOCK_TRY(expect_members(expect, {"name"}));
  PENSTOCK_ASSIGN(const std::string image, input.member("image").text());
  PENSTOCK_ASSIGN(const std::string expected, expect.member("name").text());
  return compare<std::string>("name", {expected}, {normalised_image_name(image)});
}

// The fields that upstream's rules for arguments refuse. Ours stop at the first.
Result<Verdict> check_refused(const JsonField& paths, const Status& found) {
  PENSTOCK_ASSIGN(const std::vector<std::string> expected, read_texts(paths));
  if (expected.empty()) return paths.wrong("at least one path");
  if (found.ok()) return failed(fmt::format("expected {} to be refused", expected.front()));
  const std::string begins = fmt::format("args: {}:", expected.front());
  if (found.message().starts_with(begins)) return passed();
  return failed(
      fmt::format("expected '{}' to be refused, found '{}'", expected.front(), found.message()));
}

}  // namespace

bool is_vector_plugin(const VectorPlugin& plugin) {
  const PluginKind* kind = find_scheduler_plugin(plugin.base);
  if (kind == nullptr || !kind->evaluated) return false;
  for (const char* part : {"", "filter", "score"}) {
    if (plugin.part == part) return true;
  }
  return plugin.base == "NodeResourcesFit" &&
         (plugin.part == "LeastAllocated" || plugin.part == "MostAllocated" ||
          plugin.part == "RequestedToCapacityRatio");
}

Result<Verdict> run_plugin_case(const VectorPlugin& plugin, const JsonField& test,
                                std::shared_ptr<Engine> engine, const VectorsOptions& options) {
  const JsonField config = test.member("config"), expect = test.member("expect"),
                  feature_field = test.member("feature"), gate = config.member("gate"),
                  refused = expect.member("configError");
  PENSTOCK_ASSIGN(std::string feature, feature_field.text());
  if (feature == "name" && plugin.base == "ImageLocality") return run_name_case(test);
  PENSTOCK_TRY(expect_members(
      config,
      {"resources", "shape", "ignoredResources", "ignoredResourceGroups", "addedAffinity", "gate",
       "hardPodAffinityWeight", "matchLabelKeysGate", "ignorePreferredTermsOfExistingPods"}));
  PENSTOCK_TRY(
      expect_members(expect, {"scores", "status", "message", "filter", "skip", "preFilter",
                              "preFilterNodes", "insufficient", "reasons", "configError"}));
  PENSTOCK_ASSIGN(const std::string gate_name, gate.text());
  if (feature.empty()) feature = expect.member("filter").present() ? "filter" : "score";
  if (feature != "filter" && feature != "score") return feature_field.wrong("filter or score");
  if (!gate_name.empty() && gate_name != "TaintTolerationComparisonOperators") {
    return gate.wrong("TaintTolerationComparisonOperators");
  }
  if (!gate_name.empty() && !options.compat) {
    return skipped(
        fmt::format("needs the feature gate {}, which v1.34 does not have; --compat "
                    "runs it",
                    gate_name));
  }
  const auto profile = read_vector_profile(plugin, feature == "filter", config);
  if (refused.present()) return check_refused(refused, profile.status());
  if (!profile.ok()) return failed(profile.status().to_string());
  PENSTOCK_ASSIGN(VectorCluster content, read_vector_cluster(test));
  for (Toleration& toleration : content.pod.tolerations) toleration.compares = !gate_name.empty();
  if (feature == "filter") {
    return run_filter_case(plugin, expect, content, profile.value(), std::move(engine));
  }
  return run_score_case(expect, content, profile.value(), std::move(engine));
}

}  // namespace penstock
