// The arguments of plugins: upstream's types, defaults and rules, v1.34.
#include <algorithm>
#include <set>

#include "penstock/descriptor/node_table.h"
#include "penstock/sched/node_affinity.h"
#include "penstock/sched/scheduler_config_parts.h"

namespace penstock {
namespace {

constexpr const char* kLabelKey = "a label key such as example.com/name";

Status read_label_key(const JsonField& field, std::string* out) {
  PENSTOCK_ASSIGN(*out, field.text());
  return is_label_key(*out) ? Status() : field.wrong(kLabelKey);
}

Result<ScoringResource> read_resource(const JsonField& item, std::int32_t max_weight) {
  PENSTOCK_TRY(expect_members(item, {"name", "weight"}));
  const JsonField name = item.member("name"), weight = item.member("weight");
  ScoringResource resource;
  PENSTOCK_ASSIGN(resource.name, name.text());
  if (resource.name.empty()) return name.wrong("the name of a resource");
  if (weight.present()) {
    PENSTOCK_ASSIGN(resource.weight, required_integer(weight, 1, max_weight));
  }
  return resource;
}

// Leaves what stands there when the list is empty.
Status read_resources(const JsonField& list, std::int32_t max_weight,
                      std::vector<ScoringResource>* out) {
  PENSTOCK_ASSIGN(std::vector<ScoringResource> resources,
                  read_list<ScoringResource>(list, [max_weight](const JsonField& item) {
                    return read_resource(item, max_weight);
                  }));
  std::set<std::string> seen;
  for (std::size_t i = 0; i < resources.size(); ++i) {
    if (seen.insert(resources[i].name).second) continue;
    return error(Code::invalid_argument, "{}[{}].name: found {}, expected each resource once",
                 list.where(), i, resources[i].name);
  }
  if (resources.size() > PENSTOCK_MAX_RESOURCES) {
    return error(Code::unsupported, "{}: found {} resources, expected at most {}", list.where(),
                 resources.size(), PENSTOCK_MAX_RESOURCES);
  }
  if (!resources.empty()) *out = std::move(resources);
  return {};
}

Result<ShapePoint> read_shape_point(const JsonField& item) {
  PENSTOCK_TRY(expect_members(item, {"utilization", "score"}));
  const JsonField utilization = item.member("utilization"), score = item.member("score");
  ShapePoint point;  // both are 0 when they are not given
  PENSTOCK_ASSIGN(const std::int64_t x, utilization.integer(0, 100));
  PENSTOCK_ASSIGN(const std::int64_t y, score.integer(0, 10));
  point.utilization = static_cast<std::int32_t>(x);
  point.score = static_cast<std::int32_t>(y);
  return point;
}

Status read_shape(const JsonField& list, std::vector<ShapePoint>* shape) {
  PENSTOCK_ASSIGN(*shape, read_list<ShapePoint>(list, read_shape_point));
  if (shape->empty()) return list.wrong("at least one point");
  for (std::size_t i = 1; i < shape->size(); ++i) {
    if ((*shape)[i].utilization > (*shape)[i - 1].utilization) continue;
    return error(Code::invalid_argument, "{}[{}].utilization: found {}, expected more than {}",
                 list.where(), i, (*shape)[i].utilization, (*shape)[i - 1].utilization);
  }
  return {};
}

Status read_scoring_strategy(const JsonField& field, SchedulerProfile* profile) {
  if (!field.present()) return {};
  PENSTOCK_TRY(expect_members(field, {"type", "resources", "requestedToCapacityRatio"}));
  const JsonField type = field.member("type"), resources = field.member("resources"),
                  ratio = field.member("requestedToCapacityRatio");
  PENSTOCK_ASSIGN(const std::string name, type.text());
  if (name == "LeastAllocated") {
    profile->fit_strategy = FitStrategy::least_allocated;
  } else if (name == "MostAllocated") {
    profile->fit_strategy = FitStrategy::most_allocated;
  } else if (name == "RequestedToCapacityRatio") {
    profile->fit_strategy = FitStrategy::requested_to_capacity_ratio;
  } else {
    return type.wrong("LeastAllocated, MostAllocated or RequestedToCapacityRatio");
  }
  PENSTOCK_TRY(read_resources(resources, 100, &profile->fit_resources));
  if (!ratio.present() && profile->fit_strategy != FitStrategy::requested_to_capacity_ratio) {
    return {};
  }
  if (!ratio.present()) return ratio.wrong("a shape, since the type is RequestedToCapacityRatio");
  PENSTOCK_TRY(expect_members(ratio, {"shape"}));
  const JsonField shape = ratio.member("shape");
  return read_shape(shape, &profile->fit_shape);
}

Status read_fit(const JsonField& args, SchedulerProfile* profile) {
  PENSTOCK_TRY(expect_members(args, {"apiVersion", "kind", "ignoredResources",
                                     "ignoredResourceGroups", "scoringStrategy"}));
  const JsonField resources = args.member("ignoredResources"),
                  groups = args.member("ignoredResourceGroups"),
                  strategy = args.member("scoringStrategy");
  PENSTOCK_TRY(resources.each([profile](const JsonField& item) -> Status {
    return read_label_key(item, &profile->ignored_resources.emplace_back());
  }));
  const auto read_group = [profile](const JsonField& item) -> Status {
    std::string& group = profile->ignored_resource_groups.emplace_back();
    PENSTOCK_TRY(read_label_key(item, &group));
    return group.find('/') == std::string::npos ? Status() : item.wrong("a group without '/'");
  };
  PENSTOCK_TRY(groups.each(read_group));
  return read_scoring_strategy(strategy, profile);
}

Status read_balanced(const JsonField& args, SchedulerProfile* profile) {
  PENSTOCK_TRY(expect_members(args, {"apiVersion", "kind", "resources"}));
  const JsonField resources = args.member("resources");
  return read_resources(resources, 1, &profile->balanced_resources);
}

Status read_inter_pod(const JsonField& args, SchedulerProfile* profile) {
  PENSTOCK_TRY(expect_members(
      args, {"apiVersion", "kind", "hardPodAffinityWeight", "ignorePreferredTermsOfExistingPods"}));
  const JsonField weight = args.member("hardPodAffinityWeight"),
                  ignore = args.member("ignorePreferredTermsOfExistingPods");
  if (weight.present()) {
    PENSTOCK_ASSIGN(profile->hard_pod_affinity_weight, required_integer(weight, 0, 100));
  }
  PENSTOCK_ASSIGN(profile->ignore_preferred_terms_of_existing_pods, ignore.boolean());
  return {};
}

// ---- NodeAffinityArgs ----

Status check_values(const JsonField& item, const Requirement& requirement) {
  const JsonField values = item.member("values"), operation = item.member("operator");
  const std::string& op = requirement.operation;
  const std::size_t n = requirement.values.size();
  if (op == "In" || op == "NotIn") return n > 0 ? Status() : values.wrong("at least one value");
  if (op == "Exists" || op == "DoesNotExist") {
    return n == 0 ? Status() : values.wrong(fmt::format("no value with {}", op));
  }
  if (op != "Gt" && op != "Lt") {
    return operation.wrong("In, NotIn, Exists, DoesNotExist, Gt or Lt");
  }
  if (n != 1) return values.wrong(fmt::format("one value with {}", op));
  const std::string& text = requirement.values.front();
  const std::size_t sign = text.starts_with('-') || text.starts_with('+') ? 1 : 0;
  if (text.size() == sign || text.size() > sign + 18 ||
      text.find_first_not_of("0123456789", sign) != std::string::npos) {
    return values.wrong(fmt::format("a whole number with {}", op));
  }
  return {};
}

Result<Requirement> read_requirement(const JsonField& item, bool fields) {
  PENSTOCK_TRY(expect_members(item, {"key", "operator", "values"}));
  const JsonField key = item.member("key"), operation = item.member("operator"),
                  values = item.member("values");
  Requirement requirement;
  PENSTOCK_ASSIGN(requirement.key, key.text());
  PENSTOCK_ASSIGN(requirement.operation, operation.text());
  PENSTOCK_ASSIGN(requirement.values, read_list<std::string>(values, [](const JsonField& value) {
                    return value.text();
                  }));
  if (!fields) {
    if (!is_label_key(requirement.key)) return key.wrong(kLabelKey);
    PENSTOCK_TRY(check_values(item, requirement));
    for (const std::string& value : requirement.values) {
      if (requirement.operation != "Gt" && requirement.operation != "Lt" &&
          !is_label_value(value)) {
        return values.wrong("values that a label can have");
      }
    }
    return requirement;
  }
  if (requirement.key != "metadata.name") return key.wrong("metadata.name");
  if (requirement.operation != "In" && requirement.operation != "NotIn") {
    return operation.wrong("In or NotIn");
  }
  if (requirement.values.size() != 1) return values.wrong("one name");
  return requirement;
}

Result<SelectorTerm> read_selector_term(const JsonField& item) {
  PENSTOCK_TRY(expect_members(item, {"matchExpressions", "matchFields"}));
  const JsonField labels = item.member("matchExpressions"), fields = item.member("matchFields");
  SelectorTerm term;
  PENSTOCK_ASSIGN(term.labels, read_list<Requirement>(labels, [](const JsonField& one) {
                    return read_requirement(one, false);
                  }));
  PENSTOCK_ASSIGN(term.fields, read_list<Requirement>(fields, [](const JsonField& one) {
                    return read_requirement(one, true);
                  }));
  return term;
}

Result<PreferredTerm> read_preferred_term(const JsonField& item) {
  PENSTOCK_TRY(expect_members(item, {"weight", "preference"}));
  const JsonField weight = item.member("weight"), preference = item.member("preference");
  PreferredTerm term;
  PENSTOCK_ASSIGN(term.weight, required_integer(weight, 1, 100));
  PENSTOCK_ASSIGN(term.term, read_selector_term(preference));
  return term;
}

Status read_node_affinity(const JsonField& args, SchedulerProfile* profile) {
  PENSTOCK_TRY(expect_members(args, {"apiVersion", "kind", "addedAffinity"}));
  const JsonField added = args.member("addedAffinity");
  PENSTOCK_TRY(expect_members(added, {"requiredDuringSchedulingIgnoredDuringExecution",
                                      "preferredDuringSchedulingIgnoredDuringExecution"}));
  const JsonField required = added.member("requiredDuringSchedulingIgnoredDuringExecution"),
                  preferred = added.member("preferredDuringSchedulingIgnoredDuringExecution");
  PENSTOCK_TRY(expect_members(required, {"nodeSelectorTerms"}));
  const JsonField terms = required.member("nodeSelectorTerms");
  profile->has_added_required = required.present();
  PENSTOCK_ASSIGN(profile->added_required, read_list<SelectorTerm>(terms, read_selector_term));
  PENSTOCK_ASSIGN(profile->added_preferred,
                  read_list<PreferredTerm>(preferred, read_preferred_term));
  return {};
}

// ---- PodTopologySpreadArgs ----

Result<bool> read_node_policy(const JsonField& field, bool absent) {
  if (!field.present()) return absent;
  PENSTOCK_ASSIGN(const std::string text, field.text());
  if (text != "Honor" && text != "Ignore") return field.wrong("Honor or Ignore");
  return text == "Honor";
}

Result<SpreadConstraint> read_constraint(const JsonField& item) {
  PENSTOCK_TRY(expect_members(
      item, {"maxSkew", "topologyKey", "whenUnsatisfiable", "labelSelector", "matchLabelKeys",
             "minDomains", "nodeAffinityPolicy", "nodeTaintsPolicy"}));
  const JsonField skew = item.member("maxSkew"), key = item.member("topologyKey"),
                  action = item.member("whenUnsatisfiable"), keys = item.member("matchLabelKeys"),
                  selector = item.member("labelSelector"), domains = item.member("minDomains"),
                  affinity = item.member("nodeAffinityPolicy"),
                  taints = item.member("nodeTaintsPolicy");
  SpreadConstraint constraint;
  PENSTOCK_ASSIGN(constraint.max_skew, required_integer(skew, 1, INT32_MAX));
  PENSTOCK_TRY(read_label_key(key, &constraint.topology_key));
  PENSTOCK_ASSIGN(const std::string when, action.text());
  if (when != "DoNotSchedule" && when != "ScheduleAnyway") {
    return action.wrong("DoNotSchedule or ScheduleAnyway");
  }
  constraint.required = when == "DoNotSchedule";
  if (selector.present())
    return selector.wrong("none: a default constraint takes its pod's owner's");
  PENSTOCK_TRY(keys.each([&constraint](const JsonField& one) -> Status {
    return read_label_key(one, &constraint.match_label_keys.emplace_back());
  }));
  if (domains.present()) {
    PENSTOCK_ASSIGN(constraint.min_domains, required_integer(domains, 1, INT32_MAX));
  }
  PENSTOCK_ASSIGN(constraint.honor_node_affinity, read_node_policy(affinity, true));
  PENSTOCK_ASSIGN(constraint.honor_node_taints, read_node_policy(taints, false));
  return constraint;
}

Status read_spread(const JsonField& args, SchedulerProfile* profile) {
  PENSTOCK_TRY(
      expect_members(args, {"apiVersion", "kind", "defaultConstraints", "defaultingType"}));
  const JsonField list = args.member("defaultConstraints"), type = args.member("defaultingType");
  PENSTOCK_ASSIGN(profile->default_spread, read_list<SpreadConstraint>(list, read_constraint));
  PENSTOCK_ASSIGN(const std::string name, type.text());
  if (!name.empty() && name != "System" && name != "List") return type.wrong("System or List");
  profile->system_default_spread = name != "List";
  if (profile->system_default_spread && !profile->default_spread.empty()) {
    return type.wrong("List, since there are defaultConstraints");
  }
  std::set<std::pair<std::string, bool>> seen;
  for (std::size_t i = 0; i < profile->default_spread.size(); ++i) {
    const SpreadConstraint& one = profile->default_spread[i];
    if (seen.emplace(one.topology_key, one.required).second) continue;
    return error(Code::invalid_argument,
                 "{}[{}]: found {{{}, {}}} again, expected each topologyKey once with each "
                 "whenUnsatisfiable",
                 list.where(), i, one.topology_key,
                 one.required ? "DoNotSchedule" : "ScheduleAnyway");
  }
  return {};
}

// ---- what is checked only ----

Status read_preemption(const JsonField& args, SchedulerProfile* profile) {
  PENSTOCK_TRY(expect_members(
      args, {"apiVersion", "kind", "minCandidateNodesPercentage", "minCandidateNodesAbsolute"}));
  const JsonField percent = args.member("minCandidateNodesPercentage"),
                  least = args.member("minCandidateNodesAbsolute");
  if (percent.present()) {
    PENSTOCK_ASSIGN(profile->preemption_nodes_percent, required_integer(percent, 0, 100));
  }
  if (least.present()) {
    PENSTOCK_ASSIGN(profile->preemption_nodes_least, required_integer(least, 0, INT32_MAX));
  }
  if (profile->preemption_nodes_percent == 0 && profile->preemption_nodes_least == 0) {
    return percent.wrong("more than 0, or minCandidateNodesAbsolute above 0");
  }
  return {};
}

Status read_volume_binding(const JsonField& args, SchedulerProfile*) {
  PENSTOCK_TRY(expect_members(args, {"apiVersion", "kind", "bindTimeoutSeconds", "shape"}));
  const JsonField timeout = args.member("bindTimeoutSeconds"), shape = args.member("shape");
  PENSTOCK_TRY(timeout.integer(0, INT64_MAX).status());
  if (shape.present()) return shape.wrong("none: the feature gate StorageCapacityScoring is off");
  return {};
}

Status read_dynamic_resources(const JsonField& args, SchedulerProfile*) {
  PENSTOCK_TRY(expect_members(args, {"apiVersion", "kind", "filterTimeout"}));
  const JsonField timeout = args.member("filterTimeout");
  return timeout.text().status();
}

}  // namespace

Status read_plugin_args(std::string_view plugin, const JsonField& args, SchedulerProfile* profile) {
  struct Reader {
    std::string_view plugin;
    Status (*read)(const JsonField&, SchedulerProfile*);
  };
  static constexpr Reader kReaders[] = {
      {"NodeResourcesFit", read_fit},         {"NodeResourcesBalancedAllocation", read_balanced},
      {"InterPodAffinity", read_inter_pod},   {"NodeAffinity", read_node_affinity},
      {"PodTopologySpread", read_spread},     {"DefaultPreemption", read_preemption},
      {"VolumeBinding", read_volume_binding}, {"DynamicResources", read_dynamic_resources},
  };
  PENSTOCK_TRY(args.expect_object());
  const auto reader = std::find_if(std::begin(kReaders), std::end(kReaders),
                                   [plugin](const Reader& one) { return one.plugin == plugin; });
  if (reader == std::end(kReaders)) {
    if (!args.present() || args.json().empty()) return {};
    return args.wrong(fmt::format("none: {} takes no arguments", plugin));
  }
  const JsonField version = args.member("apiVersion"), kind = args.member("kind");
  PENSTOCK_ASSIGN(const std::string found_version, version.text());
  PENSTOCK_ASSIGN(const std::string found_kind, kind.text());
  if (!found_version.empty() && found_version != "kubescheduler.config.k8s.io/v1") {
    return version.wrong("kubescheduler.config.k8s.io/v1");
  }
  if (!found_kind.empty() && found_kind != std::string(plugin) + "Args") {
    return kind.wrong(std::string(plugin) + "Args");
  }
  return reader->read(args, profile);
}

}  // namespace penstock
