// From the schema of test vectors to objects of the Kubernetes API, which the readers of those
// take.
#include <algorithm>

#include "penstock/sched/kubernetes_objects.h"
#include "penstock/sched/scheduler_config_parts.h"
#include "penstock/sched/vectors_parts.h"

namespace penstock {
namespace {

using Json = nlohmann::json;

// A copy of a member, if it is there, under another name.
void carry(const JsonField& from, const char* name, Json* to, const char* as = nullptr) {
  const JsonField member = from.member(name);
  if (member.present()) (*to)[as ? as : name] = member.json();
}

// Whole numbers by resource, as quantities.
Result<Json> quantities(const JsonField& field) {
  Json out = Json::object();
  PENSTOCK_TRY(field.each_member([&out](const std::string& name, const JsonField& item) -> Status {
    PENSTOCK_ASSIGN(const std::int64_t amount, item.integer(0, INT64_MAX));
    out[name] = fmt::format("{}{}", amount, name == "cpu" ? "m" : "");
    return {};
  }));
  return out;
}

// {"required": [...], "preferred": [...]} of node affinity.
Json node_affinity(const JsonField& field) {
  Json out = Json::object();
  const JsonField required = field.member("required");
  if (required.present()) {
    out["requiredDuringSchedulingIgnoredDuringExecution"] = {
        {"nodeSelectorTerms", required.json()}};
  }
  carry(field, "preferred", &out, "preferredDuringSchedulingIgnoredDuringExecution");
  return out;
}

// The same of podAffinity and podAntiAffinity. A term without a namespace selector has none, and a
// namespace without a name is the default one, as the pods'.
Result<Json> pod_affinity(const JsonField& field) {
  Json out = Json::object();
  const auto named = [](Json term) {
    if (term.is_object() && term.contains("namespaces") && term["namespaces"].is_array()) {
      for (Json& name : term["namespaces"]) {
        if (name == "") name = "default";
      }
    }
    return term;
  };
  const JsonField required = field.member("required"), preferred = field.member("preferred");
  Json terms = Json::array();
  PENSTOCK_TRY(required.each([&](const JsonField& item) -> Status {
    terms.push_back(named(item.json()));
    return {};
  }));
  if (!terms.empty()) out["requiredDuringSchedulingIgnoredDuringExecution"] = terms;
  terms = Json::array();
  PENSTOCK_TRY(preferred.each([&](const JsonField& item) -> Status {
    const JsonField term = item.member("term");
    if (!term.present()) return term.wrong("a term");
    Json weighted = {{"podAffinityTerm", named(term.json())}};
    carry(item, "weight", &weighted);
    terms.push_back(std::move(weighted));
    return {};
  }));
  if (!terms.empty()) out["preferredDuringSchedulingIgnoredDuringExecution"] = terms;
  return out;
}

Status add_containers(const JsonField& list, Json* to, Json* statuses) {
  *to = Json::array();
  return list.each([=](const JsonField& item) -> Status {
    PENSTOCK_TRY(expect_members(
        item, {"name", "image", "ports", "requests", "restartPolicy", "allocated", "actual"}));
    const JsonField requests = item.member("requests"), allocated = item.member("allocated"),
                    actual = item.member("actual");
    Json container = {{"name", fmt::format("c{}", statuses->size())}};
    for (const char* name : {"image", "ports", "restartPolicy"}) carry(item, name, &container);
    PENSTOCK_ASSIGN(container["resources"]["requests"], quantities(requests));
    Json status = {{"name", container["name"]}};
    if (allocated.present()) {
      PENSTOCK_ASSIGN(status["allocatedResources"], quantities(allocated));
    }
    if (actual.present()) {
      PENSTOCK_ASSIGN(status["resources"]["requests"], quantities(actual));
    }
    statuses->push_back(std::move(status));
    to->push_back(std::move(container));
    return {};
  });
}

Status add_status(const JsonField& pod, Json statuses, Json* object) {
  const JsonField resize = pod.member("resize");
  PENSTOCK_ASSIGN(const std::string state, resize.text());
  (*object)["status"]["containerStatuses"] = std::move(statuses);
  if (!state.empty()) {
    (*object)["status"]["conditions"] = {{{"type", "PodResizePending"}, {"reason", state}}};
  }
  return {};
}

Status add_affinities(const JsonField& pod, Json* spec) {
  const JsonField nodes = pod.member("nodeAffinity"), pods = pod.member("affinity");
  PENSTOCK_TRY(expect_members(nodes, {"required", "preferred"}));
  PENSTOCK_TRY(expect_members(pods, {"podAffinity", "podAntiAffinity"}));
  if (nodes.present()) (*spec)["affinity"]["nodeAffinity"] = node_affinity(nodes);
  for (const char* kind : {"podAffinity", "podAntiAffinity"}) {
    const JsonField affinity = pods.member(kind);
    PENSTOCK_TRY(expect_members(affinity, {"required", "preferred"}));
    if (!affinity.present()) continue;
    PENSTOCK_ASSIGN((*spec)["affinity"][kind], pod_affinity(affinity));
  }
  return {};
}

// The pod in the words of the API.
Result<Json> pod_object(const JsonField& pod, const JsonField& config, const std::string& name) {
  PENSTOCK_TRY(expect_members(
      pod, {"containers", "initContainers", "labels", "namespace", "node", "nodeSelector",
            "nodeAffinity", "affinity", "tolerations", "topologySpreadConstraints", "overhead",
            "resources", "resize", "terminating"}));
  Json object = {{"metadata", {{"name", name}}}, {"spec", Json::object()}};
  Json &spec = object["spec"], &metadata = object["metadata"], statuses = Json::array();
  for (const char* member : {"labels", "namespace"}) carry(pod, member, &metadata);
  for (const char* member : {"nodeSelector", "tolerations", "topologySpreadConstraints"}) {
    carry(pod, member, &spec);
  }
  carry(pod, "node", &spec, "nodeName");
  const JsonField containers = pod.member("containers"), init = pod.member("initContainers"),
                  overhead = pod.member("overhead"), ending = pod.member("terminating"),
                  resources = pod.member("resources"), gate = config.member("matchLabelKeysGate");
  PENSTOCK_TRY(add_containers(containers, &spec["containers"], &statuses));
  PENSTOCK_TRY(add_containers(init, &spec["initContainers"], &statuses));
  PENSTOCK_ASSIGN(const bool no_overhead, config.member("excludeOverhead").boolean());
  if (overhead.present() && !no_overhead) {
    PENSTOCK_ASSIGN(spec["overhead"], quantities(overhead));
  }
  if (resources.present()) {
    PENSTOCK_ASSIGN(spec["resources"]["requests"], quantities(resources));
  }
  PENSTOCK_ASSIGN(const bool with_status, config.member("useStatusResources").boolean());
  if (with_status) PENSTOCK_TRY(add_status(pod, std::move(statuses), &object));
  PENSTOCK_ASSIGN(const bool terminating, ending.boolean());
  if (terminating) metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z";
  PENSTOCK_TRY(add_affinities(pod, &spec));
  PENSTOCK_ASSIGN(const bool keys, gate.boolean());
  if (gate.present() && !keys && spec.contains("topologySpreadConstraints")) {
    for (Json& constraint : spec["topologySpreadConstraints"]) constraint.erase("matchLabelKeys");
  }
  return object;
}

Result<KubernetesNode> read_node(const JsonField& item) {
  PENSTOCK_TRY(expect_members(
      item, {"name", "labels", "taints", "allocatable", "images", "filtered", "unschedulable"}));
  const JsonField allocatable = item.member("allocatable");
  Json object = {{"metadata", Json::object()}, {"spec", Json::object()}};
  for (const char* member : {"name", "labels"}) carry(item, member, &object["metadata"]);
  for (const char* member : {"taints", "unschedulable"}) carry(item, member, &object["spec"]);
  carry(item, "images", &object["status"]);
  PENSTOCK_ASSIGN(object["status"]["allocatable"], quantities(allocatable));
  return read_kubernetes_node(JsonField(object, item.where()));
}

}  // namespace

Result<KubernetesPod> read_vector_pod(const JsonField& pod, const JsonField& config,
                                      const std::string& name) {
  PENSTOCK_ASSIGN(const Json object, pod_object(pod, config, name));
  return read_kubernetes_pod(JsonField(object, pod.where()));
}

Result<VectorCluster> read_vector_cluster(const JsonField& test) {
  VectorCluster cluster;
  const JsonField nodes = test.member("nodes"), existing = test.member("existingPods"),
                  config = test.member("config"), pod = test.member("pod"),
                  namespaces = test.member("namespaces");
  PENSTOCK_TRY(nodes.each([&cluster](const JsonField& item) -> Status {
    const JsonField filtered = item.member("filtered");
    PENSTOCK_ASSIGN(const bool candidate, filtered.boolean());
    PENSTOCK_ASSIGN(KubernetesNode node, read_node(item));
    if (candidate || !filtered.present()) cluster.candidates.push_back(node.facts.name);
    cluster.nodes.push_back(std::move(node));
    return {};
  }));
  if (cluster.nodes.empty()) return nodes.wrong("at least one node");
  PENSTOCK_TRY(existing.each([&](const JsonField& item) -> Status {
    const std::string name = fmt::format("existing-{}", cluster.existing.size());
    PENSTOCK_ASSIGN(KubernetesPod one, read_vector_pod(item, config, name));
    cluster.existing.push_back(std::move(one));
    return {};
  }));
  PENSTOCK_ASSIGN(cluster.pod, read_vector_pod(pod, config, "pod"));
  PENSTOCK_TRY(
      namespaces.each_member([&cluster](const std::string& name, const JsonField& item) -> Status {
        KubernetesNamespace space;
        space.name = name.empty() ? "default" : name;
        PENSTOCK_ASSIGN(space.labels, item.texts());
        cluster.namespaces.push_back(std::move(space));
        return {};
      }));
  return cluster;
}

Result<SchedulerProfile> read_vector_profile(const VectorPlugin& plugin, bool filter,
                                             const JsonField& config) {
  SchedulerProfile profile;
  if (filter) {
    profile.filters = {plugin.base};
  } else {
    profile.scores = {{plugin.base, 1}};
  }
  profile.system_default_spread = false;
  Json args = Json::object();
  const JsonField resources = config.member("resources"), added = config.member("addedAffinity");
  for (const char* name : {"ignoredResources", "ignoredResourceGroups", "hardPodAffinityWeight",
                           "ignorePreferredTermsOfExistingPods"}) {
    carry(config, name, &args);
  }
  if (plugin.base == "NodeResourcesFit" && !filter) {
    Json& strategy = args["scoringStrategy"];
    strategy["type"] = plugin.part;
    carry(config, "resources", &strategy);
    if (plugin.part == "RequestedToCapacityRatio") {
      carry(config, "shape", &strategy["requestedToCapacityRatio"]);
    }
  } else {
    carry(config, "resources", &args);
  }
  if (added.present()) args["addedAffinity"] = node_affinity(added);
  const JsonField root(args, "args");
  if (!args.empty()) PENSTOCK_TRY(read_plugin_args(plugin.base, root, &profile));
  // A list that is there and empty is upstream's test of a profile without defaults.
  if (resources.present() && resources.json().empty()) {
    profile.fit_resources.clear();
    profile.balanced_resources.clear();
  }
  return profile;
}

}  // namespace penstock
