#include "penstock/sched/kubernetes_objects.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <functional>
#include <utility>

#include "penstock/descriptor/node_table.h"

namespace penstock {
namespace {

Result<Taint> read_taint(const JsonField& item) {
  PENSTOCK_TRY(item.expect_object());
  Taint taint;
  PENSTOCK_ASSIGN(taint.key, item.member("key").text());
  PENSTOCK_ASSIGN(taint.value, item.member("value").text());
  PENSTOCK_ASSIGN(taint.effect, item.member("effect").text());
  if (taint.effect != "NoSchedule" && taint.effect != "PreferNoSchedule" &&
      taint.effect != "NoExecute") {
    return item.member("effect").wrong("NoSchedule, PreferNoSchedule or NoExecute");
  }
  return taint;
}

Result<std::vector<std::string>> read_texts(const JsonField& field) {
  return read_list<std::string>(field, std::mem_fn(&JsonField::text));
}

Result<NodeImage> read_image(const JsonField& item) {
  PENSTOCK_TRY(item.expect_object());
  NodeImage image;
  PENSTOCK_ASSIGN(image.names, read_texts(item.member("names")));
  PENSTOCK_ASSIGN(image.bytes, item.member("sizeBytes").integer(0, PENSTOCK_MAX_QUANTITY));
  return image;
}

Result<Requirement> read_selector_requirement(const JsonField& item) {
  PENSTOCK_TRY(item.expect_object());
  Requirement requirement;
  PENSTOCK_ASSIGN(requirement.key, item.member("key").text());
  PENSTOCK_ASSIGN(requirement.operation, item.member("operator").text());
  PENSTOCK_ASSIGN(requirement.values, read_texts(item.member("values")));
  const std::string& operation = requirement.operation;
  const bool takes_values = operation == "In" || operation == "NotIn";
  if (!takes_values && operation != "Exists" && operation != "DoesNotExist") {
    return item.member("operator").wrong("In, NotIn, Exists or DoesNotExist");
  }
  if (takes_values == requirement.values.empty()) {
    return item.member("values").wrong(takes_values ? "at least one value with " + operation
                                                    : "no values with " + operation);
  }
  return requirement;
}

// "DoNotSchedule" in one field, "Honor" in another: true, false, or what is right when absent.
Result<bool> read_choice(const JsonField& field, std::string_view yes, std::string_view no,
                         bool absent) {
  PENSTOCK_ASSIGN(const std::string text, field.text());
  if (text.empty()) return absent;
  if (text != yes && text != no) return field.wrong(fmt::format("{} or {}", yes, no));
  return text == yes;
}

Result<std::string> read_topology_key(const JsonField& item) {
  PENSTOCK_ASSIGN(std::string key, item.member("topologyKey").text());
  if (key.empty()) return item.member("topologyKey").wrong("the key of a label of nodes");
  return key;
}

Result<SpreadConstraint> read_spread(const JsonField& item) {
  PENSTOCK_TRY(item.expect_object());
  SpreadConstraint constraint;
  const JsonField skew = item.member("maxSkew"), domains = item.member("minDomains"),
                  action = item.member("whenUnsatisfiable");
  if (!skew.present()) return skew.wrong("a whole number from 1 to 2147483647");
  PENSTOCK_ASSIGN(const std::int64_t max_skew, skew.integer(1, INT32_MAX));
  constraint.max_skew = static_cast<std::int32_t>(max_skew);
  PENSTOCK_ASSIGN(constraint.topology_key, read_topology_key(item));
  if (!action.present()) return action.wrong("DoNotSchedule or ScheduleAnyway");
  PENSTOCK_ASSIGN(constraint.required,
                  read_choice(action, "DoNotSchedule", "ScheduleAnyway", true));
  PENSTOCK_ASSIGN(constraint.selector, read_label_selector(item.member("labelSelector")));
  if (domains.present()) {
    PENSTOCK_ASSIGN(const std::int64_t least, domains.integer(1, INT32_MAX));
    constraint.min_domains = static_cast<std::int32_t>(least);
  }
  PENSTOCK_ASSIGN(constraint.honor_node_affinity,
                  read_choice(item.member("nodeAffinityPolicy"), "Honor", "Ignore", true));
  PENSTOCK_ASSIGN(constraint.honor_node_taints,
                  read_choice(item.member("nodeTaintsPolicy"), "Honor", "Ignore", false));
  PENSTOCK_ASSIGN(constraint.match_label_keys, read_texts(item.member("matchLabelKeys")));
  return constraint;
}

Result<PodAffinityTerm> read_affinity_term(const JsonField& item) {
  PENSTOCK_TRY(item.expect_object());
  PodAffinityTerm term;
  PENSTOCK_ASSIGN(term.selector, read_label_selector(item.member("labelSelector")));
  PENSTOCK_ASSIGN(term.namespaces, read_texts(item.member("namespaces")));
  PENSTOCK_ASSIGN(term.namespace_selector, read_label_selector(item.member("namespaceSelector")));
  PENSTOCK_ASSIGN(term.topology_key, read_topology_key(item));
  PENSTOCK_ASSIGN(term.match_label_keys, read_texts(item.member("matchLabelKeys")));
  PENSTOCK_ASSIGN(term.mismatch_label_keys, read_texts(item.member("mismatchLabelKeys")));
  return term;
}

Result<WeightedPodAffinityTerm> read_weighted_term(const JsonField& item) {
  PENSTOCK_TRY(item.expect_object());
  WeightedPodAffinityTerm weighted;
  const JsonField weight = item.member("weight"), term = item.member("podAffinityTerm");
  if (!weight.present()) return weight.wrong("a whole number from 1 to 100");
  PENSTOCK_ASSIGN(const std::int64_t number, weight.integer(1, 100));
  weighted.weight = static_cast<std::int32_t>(number);
  PENSTOCK_ASSIGN(weighted.term, read_affinity_term(term));
  return weighted;
}

Result<PodAffinity> read_affinity(const JsonField& field) {
  PENSTOCK_TRY(field.expect_object());
  PodAffinity affinity;
  const JsonField required = field.member("requiredDuringSchedulingIgnoredDuringExecution"),
                  preferred = field.member("preferredDuringSchedulingIgnoredDuringExecution");
  PENSTOCK_ASSIGN(affinity.required, read_list<PodAffinityTerm>(required, read_affinity_term));
  PENSTOCK_ASSIGN(affinity.preferred,
                  read_list<WeightedPodAffinityTerm>(preferred, read_weighted_term));
  return affinity;
}

Result<OwnerReference> read_owner_reference(const JsonField& item) {
  PENSTOCK_TRY(item.expect_object());
  OwnerReference owner;
  PENSTOCK_ASSIGN(owner.api_version, item.member("apiVersion").text());
  PENSTOCK_ASSIGN(owner.kind, item.member("kind").text());
  PENSTOCK_ASSIGN(owner.name, item.member("name").text());
  PENSTOCK_ASSIGN(owner.controller, item.member("controller").boolean());
  return owner;
}

Result<std::string> read_gate(const JsonField& item) {
  PENSTOCK_TRY(item.expect_object());
  return item.member("name").text();
}

Status read_images(const JsonField& spec, KubernetesPod* pod) {
  for (const char* list : {"initContainers", "containers"}) {
    const JsonField containers = spec.member(list);
    PENSTOCK_TRY(containers.each([pod](const JsonField& item) -> Status {
      PENSTOCK_ASSIGN(std::string image, item.member("image").text());
      ++pod->containers;
      if (!image.empty()) pod->images.push_back(std::move(image));
      return {};
    }));
  }
  return {};
}

Status read_metadata(const JsonField& metadata, KubernetesPod* pod) {
  PENSTOCK_ASSIGN(pod->uid, metadata.member("uid").text());
  PENSTOCK_ASSIGN(pod->namespace_name, read_namespace_name(metadata));
  PENSTOCK_ASSIGN(pod->labels, metadata.member("labels").texts());
  PENSTOCK_ASSIGN(pod->owners, read_list<OwnerReference>(metadata.member("ownerReferences"),
                                                         read_owner_reference));
  PENSTOCK_ASSIGN(pod->creation_time_s, read_time(metadata.member("creationTimestamp")));
  const JsonField deletion = metadata.member("deletionTimestamp");
  PENSTOCK_ASSIGN(const std::string deleted, deletion.text());
  pod->terminating = !deleted.empty();
  return {};
}

// Days from 1970-01-01 to a day of the Gregorian calendar.
std::int64_t days_since_1970(std::int64_t year, std::int64_t month, std::int64_t day) {
  if (month <= 2) --year;
  const std::int64_t era = (year >= 0 ? year : year - 399) / 400;
  const std::int64_t in_era = year - era * 400;
  const std::int64_t in_year = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1;
  return era * 146097 + in_era * 365 + in_era / 4 - in_era / 100 + in_year - 719468;
}

}  // namespace

Result<std::int64_t> read_time(const JsonField& field) {
  PENSTOCK_ASSIGN(const std::string text, field.text());
  if (text.empty()) return std::int64_t{0};
  int year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0, end = 0;
  const int read = std::sscanf(text.c_str(), "%4d-%2d-%2dT%2d:%2d:%2d%n", &year, &month, &day,
                               &hour, &minute, &second, &end);
  std::string_view rest = text;
  if (read == 6) {
    rest.remove_prefix(static_cast<std::size_t>(end));
    if (rest.starts_with('.')) {
      rest.remove_prefix(std::min(rest.find_first_not_of("0123456789", 1), rest.size()));
    }
  }
  const bool is_time = read == 6 && year >= 1 && month >= 1 && month <= 12 && day >= 1 &&
                       day <= 31 && hour >= 0 && hour <= 23 && minute >= 0 && minute <= 59 &&
                       second >= 0 && second <= 60;
  int zone_hour = 0, zone_minute = 0;
  char sign = '+';
  bool has_zone = rest == "Z" || rest == "z";
  if (!has_zone && rest.size() == 6) {
    has_zone =
        std::sscanf(std::string(rest).c_str(), "%c%2d:%2d", &sign, &zone_hour, &zone_minute) == 3 &&
        (sign == '+' || sign == '-') && zone_hour >= 0 && zone_hour <= 23 && zone_minute >= 0 &&
        zone_minute <= 59;
  }
  if (!is_time || !has_zone) return field.wrong("a time such as 2026-01-31T12:00:00Z");
  const std::int64_t zone_s = (zone_hour * 60 + zone_minute) * 60 * (sign == '-' ? -1 : 1);
  return days_since_1970(year, month, day) * 86400 + hour * 3600 + minute * 60 + second - zone_s;
}

Result<std::string> read_namespace_name(const JsonField& metadata) {
  PENSTOCK_ASSIGN(std::string name, metadata.member("namespace").text());
  if (name.empty()) name = "default";
  return name;
}

Result<LabelSelector> read_label_selector(const JsonField& field) {
  LabelSelector selector;
  PENSTOCK_TRY(field.expect_object());
  selector.present = field.present();
  PENSTOCK_ASSIGN(selector.labels, field.member("matchLabels").texts());
  PENSTOCK_ASSIGN(selector.expressions, read_list<Requirement>(field.member("matchExpressions"),
                                                               read_selector_requirement));
  return selector;
}

Result<KubernetesNode> read_kubernetes_node(const JsonField& object) {
  KubernetesNode node;
  const JsonField metadata = object.member("metadata"), spec = object.member("spec"),
                  status = object.member("status");
  PENSTOCK_TRY(metadata.expect_object());
  PENSTOCK_TRY(spec.expect_object());
  PENSTOCK_TRY(status.expect_object());
  const JsonField name = metadata.member("name");
  PENSTOCK_ASSIGN(node.facts.name, name.text());
  if (node.facts.name.empty()) return name.wrong("a name");
  PENSTOCK_ASSIGN(node.facts.labels, metadata.member("labels").texts());
  PENSTOCK_ASSIGN(node.facts.taints, read_list<Taint>(spec.member("taints"), read_taint));
  PENSTOCK_ASSIGN(node.unschedulable, spec.member("unschedulable").boolean());
  PENSTOCK_ASSIGN(node.allocatable, read_amounts(status.member("allocatable")));
  PENSTOCK_ASSIGN(node.images, read_list<NodeImage>(status.member("images"), read_image));
  return node;
}

Result<KubernetesNamespace> read_kubernetes_namespace(const JsonField& object) {
  KubernetesNamespace space;
  const JsonField metadata = object.member("metadata");
  PENSTOCK_TRY(metadata.expect_object());
  const JsonField name = metadata.member("name");
  PENSTOCK_ASSIGN(space.name, name.text());
  if (space.name.empty()) return name.wrong("a name");
  PENSTOCK_ASSIGN(space.labels, metadata.member("labels").texts());
  return space;
}

bool is_owner_kind(const std::string& kind) {
  constexpr std::array<std::string_view, 4> kKinds = {"Service", "ReplicationController",
                                                      "ReplicaSet", "StatefulSet"};
  return std::find(kKinds.begin(), kKinds.end(), kind) != kKinds.end();
}

Result<KubernetesOwner> read_kubernetes_owner(const JsonField& object, const std::string& kind) {
  KubernetesOwner owner;
  owner.kind = kind;
  const JsonField metadata = object.member("metadata"), spec = object.member("spec");
  PENSTOCK_TRY(metadata.expect_object());
  PENSTOCK_TRY(spec.expect_object());
  PENSTOCK_ASSIGN(owner.namespace_name, read_namespace_name(metadata));
  const JsonField name = metadata.member("name"), selector = spec.member("selector");
  PENSTOCK_ASSIGN(owner.name, name.text());
  if (owner.name.empty()) return name.wrong("a name");
  if (kind == "ReplicaSet" || kind == "StatefulSet") {
    PENSTOCK_ASSIGN(owner.selector, read_label_selector(selector));
  } else if (selector.present()) {
    owner.selector.present = true;
    PENSTOCK_ASSIGN(owner.selector.labels, selector.texts());
  }
  return owner;
}

Status read_pod_relations(const JsonField& object, KubernetesPod* pod) {
  const JsonField metadata = object.member("metadata"), spec = object.member("spec"),
                  status = object.member("status"), affinity = spec.member("affinity");
  PENSTOCK_TRY(read_metadata(metadata, pod));
  PENSTOCK_ASSIGN(pod->nominated_node, status.member("nominatedNodeName").text());
  PENSTOCK_ASSIGN(pod->start_time_s, read_time(status.member("startTime")));
  PENSTOCK_ASSIGN(pod->scheduler_name, spec.member("schedulerName").text());
  PENSTOCK_ASSIGN(const std::int64_t priority,
                  spec.member("priority").integer(INT32_MIN, INT32_MAX));
  pod->priority = static_cast<std::int32_t>(priority);
  PENSTOCK_ASSIGN(pod->preempts, read_choice(spec.member("preemptionPolicy"),
                                             "PreemptLowerPriority", "Never", true));
  PENSTOCK_ASSIGN(pod->gates, read_list<std::string>(spec.member("schedulingGates"), read_gate));
  PENSTOCK_ASSIGN(pod->spread, read_list<SpreadConstraint>(spec.member("topologySpreadConstraints"),
                                                           read_spread));
  PENSTOCK_ASSIGN(pod->affinity, read_affinity(affinity.member("podAffinity")));
  PENSTOCK_ASSIGN(pod->anti_affinity, read_affinity(affinity.member("podAntiAffinity")));
  return read_images(spec, pod);
}

}  // namespace penstock
