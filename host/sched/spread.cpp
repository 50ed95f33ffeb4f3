#include "penstock/sched/spread.h"

#include <algorithm>

#include "penstock/sched/node_affinity.h"
#include "penstock/sched/taints.h"
#include "penstock/sched/task.h"

namespace penstock {
namespace {

// The pod's controller as the kinds that have selectors name it; "" if it has none.
std::pair<std::string, std::string> controller_of(const KubernetesPod& pod) {
  for (const OwnerReference& owner : pod.owners) {
    if (!owner.controller) continue;
    const bool core = owner.api_version == "v1" && owner.kind == "ReplicationController";
    const bool apps = owner.api_version == "apps/v1" &&
                      (owner.kind == "ReplicaSet" || owner.kind == "StatefulSet");
    if (core || apps) return {owner.kind, pod.namespace_name + "/" + owner.name};
    break;
  }
  return {};
}

const std::vector<SpreadConstraint>& default_constraints(const SchedulerProfile& profile) {
  static const std::vector<SpreadConstraint> kSystem = [] {
    SpreadConstraint hostname, zone;
    hostname.topology_key = kHostnameLabel;
    hostname.max_skew = 3;
    zone.topology_key = kZoneLabel;
    zone.max_skew = 5;
    hostname.required = zone.required = false;
    return std::vector<SpreadConstraint>{hostname, zone};
  }();
  return profile.system_default_spread ? kSystem : profile.default_spread;
}

bool asks_nodes(const KubernetesPod& pod) { return pod.has_required || !pod.node_selector.empty(); }

bool has_labels(const SpreadSet& set, const NodeFacts& node) {
  return std::all_of(set.constraints.begin(), set.constraints.end(),
                     [&](const SpreadConstraint& constraint) {
                       return node.labels.contains(constraint.topology_key);
                     });
}

// The bit column of the nodes that count for the constraint: all, if its own label is all it asks.
Result<std::uint16_t> eligible_column(NodeTable* table, const SpreadSet& set,
                                      const SpreadConstraint& constraint,
                                      const KubernetesPod& pod) {
  const bool affinity = constraint.honor_node_affinity && asks_nodes(pod);
  const bool labels = set.needs_all_labels && set.constraints.size() > 1;
  if (!affinity && !labels && !constraint.honor_node_taints) {
    return static_cast<std::uint16_t>(PENSTOCK_BIT_NODE);
  }
  // What the predicate needs, and no more.
  KubernetesPod asked;
  SpreadSet asked_set;
  asked_set.needs_all_labels = labels;
  std::string key = "counts for spread";
  if (affinity) {
    asked.node_selector = pod.node_selector;
    asked.has_required = pod.has_required;
    asked.required = pod.required;
    key += " " + required_key(pod);
  }
  if (constraint.honor_node_taints) {
    asked.tolerations = pod.tolerations;
    key += " tolerates " + tolerations_key(pod.tolerations);
  }
  SpreadConstraint asked_constraint;
  asked_constraint.honor_node_affinity = affinity;
  asked_constraint.honor_node_taints = constraint.honor_node_taints;
  if (labels) {
    std::vector<std::string> keys;
    for (const SpreadConstraint& one : set.constraints) keys.push_back(one.topology_key);
    std::sort(keys.begin(), keys.end());
    keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
    key += " with";
    for (const std::string& label : keys) {
      key += " " + key_part(label);
      asked_set.constraints.emplace_back().topology_key = label;
    }
  }
  return table->intern(key, [asked, asked_set, asked_constraint](const NodeFacts& node) {
    return counts_for_spread(asked_set, asked_constraint, asked, node);
  });
}

std::string pods_key(const SpreadConstraint& constraint, const KubernetesPod& pod) {
  return "spread " + key_part(pod.namespace_name) + " " + key_of(constraint.selector);
}

Result<CountColumns::Column> pods_column(CountColumns* columns, const SpreadConstraint& constraint,
                                         const KubernetesPod& pod, bool by_row,
                                         std::uint16_t eligible) {
  return columns->pods(
      pods_key(constraint, pod), constraint.topology_key, by_row, eligible,
      [constraint, space = pod.namespace_name](const PodClass& pods) {
        return counts_for_spread(constraint, space, pods);
      },
      false);
}

}  // namespace

LabelSelector owner_selector(const KubernetesPod& pod, const Owners& owners) {
  LabelSelector selector;
  selector.present = true;
  const std::string prefix = pod.namespace_name + "/";
  for (auto owner = owners.lower_bound({"Service", prefix}); owner != owners.end(); ++owner) {
    if (owner->first.first != "Service" || !owner->first.second.starts_with(prefix)) break;
    const LabelSelector& service = owner->second.selector;
    if (!matches(service, pod.labels)) continue;
    for (const auto& [key, value] : service.labels) selector.labels[key] = value;
  }
  if (const auto controller = owners.find(controller_of(pod)); controller != owners.end()) {
    const LabelSelector& more = controller->second.selector;
    const bool by_labels = controller->second.kind == "ReplicationController";
    for (const auto& [key, value] : more.labels) {
      // A replication controller's labels take the place of a service's; a selector's add to them.
      if (by_labels) {
        selector.labels[key] = value;
      } else {
        selector.expressions.push_back({key, "In", {value}});
      }
    }
    selector.expressions.insert(selector.expressions.end(), more.expressions.begin(),
                                more.expressions.end());
  }
  if (matches_everything(selector)) selector.present = false;
  return selector;
}

SpreadSet spread_constraints(const SchedulerProfile& profile, const KubernetesPod& pod,
                             const Owners& owners, bool required) {
  SpreadSet set;
  const bool own = !pod.spread.empty();
  set.needs_all_labels = own || !profile.system_default_spread;
  for (const SpreadConstraint& constraint : own ? pod.spread : default_constraints(profile)) {
    if (constraint.required != required) continue;
    SpreadConstraint& added = set.constraints.emplace_back(constraint);
    added.selector = with_label_keys(added.selector, constraint.match_label_keys, {}, pod.labels);
    added.match_label_keys.clear();
  }
  if (own || set.constraints.empty()) return set;
  const LabelSelector selector = owner_selector(pod, owners);
  if (!selector.present) set.constraints.clear();
  for (SpreadConstraint& constraint : set.constraints) constraint.selector = selector;
  return set;
}

bool counts_for_spread(const SpreadSet& set, const SpreadConstraint& constraint,
                       const KubernetesPod& pod, const NodeFacts& node) {
  if (set.needs_all_labels && !has_labels(set, node)) return false;
  if (constraint.honor_node_affinity && !matches_required(pod, node)) return false;
  return !constraint.honor_node_taints || find_untolerated(node.taints, pod.tolerations) == nullptr;
}

bool counts_for_spread(const SpreadConstraint& constraint, const std::string& namespace_name,
                       const PodClass& pods) {
  return !pods.terminating && pods.namespace_name == namespace_name &&
         !matches_everything(constraint.selector) && matches(constraint.selector, pods.labels);
}

Status add_spread_filter(NodeTable* table, CountColumns* columns, const SpreadSet& set,
                         const KubernetesPod& pod, std::vector<penstock_domain_term>* terms) {
  for (const SpreadConstraint& constraint : set.constraints) {
    PENSTOCK_ASSIGN(const std::uint16_t eligible, eligible_column(table, set, constraint, pod));
    PENSTOCK_ASSIGN(const auto nodes, columns->nodes(constraint.topology_key, eligible));
    PENSTOCK_ASSIGN(const auto pods, pods_column(columns, constraint, pod, false, eligible));
    penstock_domain_term term{};
    term.domain = pods.domain;
    term.count = pods.count;
    term.nodes = nodes.count;
    term.group = static_cast<std::uint8_t>(TermGroup::spread);
    term.kind = PENSTOCK_DOMAIN_SPREAD;
    term.weight = constraint.max_skew;
    term.self = matches(constraint.selector, pod.labels) ? 1 : 0;
    term.domains = pods.domains;
    term.min_domains = static_cast<std::uint32_t>(constraint.min_domains);
    terms->push_back(term);
  }
  return {};
}

Status add_spread_score(NodeTable* table, CountColumns* columns, const SpreadSet& set,
                        const KubernetesPod& pod, std::vector<penstock_domain_term>* terms) {
  for (const SpreadConstraint& constraint : set.constraints) {
    const bool by_row = constraint.topology_key == kHostnameLabel;
    std::uint16_t eligible = PENSTOCK_BIT_NODE;
    if (!by_row) {
      PENSTOCK_ASSIGN(eligible, eligible_column(table, set, constraint, pod));
    }
    PENSTOCK_ASSIGN(const auto pods, pods_column(columns, constraint, pod, by_row, eligible));
    penstock_domain_term term{};
    term.domain = pods.domain;
    term.count = pods.count;
    term.group = static_cast<std::uint8_t>(TermGroup::preferred_spread);
    term.kind = static_cast<std::uint8_t>((set.needs_all_labels ? PENSTOCK_SPREAD_REQUIRED : 0u) |
                                          (by_row ? PENSTOCK_SPREAD_HOSTNAME : 0u));
    term.weight = constraint.max_skew;
    term.domains = pods.domains;
    terms->push_back(term);
  }
  return {};
}

}  // namespace penstock
