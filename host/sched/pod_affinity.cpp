#include "penstock/sched/pod_affinity.h"

#include <algorithm>

#include "penstock/sched/task.h"

namespace penstock {
namespace {

std::vector<PodTerm> resolve_all(const std::vector<PodAffinityTerm>& terms,
                                 const KubernetesPod& pod) {
  std::vector<PodTerm> out;
  for (const PodAffinityTerm& term : terms) out.push_back(resolve_term(term, pod));
  return out;
}

bool all_match(const std::vector<PodTerm>& terms, const PodClass& pods,
               const NamespaceLabels& namespaces) {
  return std::all_of(terms.begin(), terms.end(), [&](const PodTerm& term) {
    return matches(term, TermOf::incoming, pods.namespace_name, pods.labels, namespaces);
  });
}

// Pods that all of the terms pick, by the topology of one of them.
Result<CountColumns::Column> picked_column(CountColumns* columns, const std::vector<PodTerm>& terms,
                                           const std::string& topology_key,
                                           const NamespaceLabels& namespaces) {
  std::string key = "picked by";
  for (const PodTerm& term : terms) key += " " + key_part(term.key);
  const bool by_namespaces = std::any_of(terms.begin(), terms.end(), depends_on_namespaces);
  return columns->pods(
      key, topology_key, false, PENSTOCK_BIT_NODE,
      [terms, &namespaces](const PodClass& pods) { return all_match(terms, pods, namespaces); },
      by_namespaces);
}

// Pods that carry the term. Terms are known by their keys: the pointer may be another's by the time
// that the predicate is asked.
Result<CountColumns::Column> carrier_column(CountColumns* columns, const CarriedTerm& carried) {
  return columns->pods(
      "carry " + key_part(carried.key), carried.term.topology_key, false, PENSTOCK_BIT_NODE,
      [key = carried.key](const PodClass& pods) {
        return std::any_of(pods.carried.begin(), pods.carried.end(),
                           [&](const CarriedTerm* term) { return term->key == key; });
      },
      false);
}

// Adds the term, or its weight to one that asks the same.
void add(const CountColumns::Column& column, TermGroup group, std::uint8_t kind,
         std::int32_t weight, std::uint32_t self, std::vector<penstock_domain_term>* terms) {
  for (penstock_domain_term& term : *terms) {
    if (term.group != static_cast<std::uint8_t>(group) || term.kind != kind ||
        term.count != column.count) {
      continue;
    }
    term.weight += weight;
    return;
  }
  penstock_domain_term term{};
  term.domain = column.domain;
  term.count = column.count;
  term.group = static_cast<std::uint8_t>(group);
  term.kind = kind;
  term.weight = weight;
  term.self = self;
  term.domains = column.domains;
  terms->push_back(term);
}

}  // namespace

bool is_of_its_own_group(const PodAffinityInput& input) {
  return all_match(resolve_all(input.pod.affinity.required, input.pod), input.pods,
                   input.namespaces);
}

Status add_pod_affinity_filter(CountColumns* columns, const PodAffinityInput& input,
                               std::vector<penstock_domain_term>* terms) {
  constexpr TermGroup kGroup = TermGroup::pod_affinity;
  const std::vector<PodTerm> affinity = resolve_all(input.pod.affinity.required, input.pod);
  const std::uint32_t self = all_match(affinity, input.pods, input.namespaces) ? 1 : 0;
  for (const PodTerm& term : affinity) {
    PENSTOCK_ASSIGN(const auto column,
                    picked_column(columns, affinity, term.topology_key, input.namespaces));
    add(column, kGroup, PENSTOCK_DOMAIN_PRESENT, 0, self, terms);
  }
  for (const PodTerm& term : resolve_all(input.pod.anti_affinity.required, input.pod)) {
    PENSTOCK_ASSIGN(const auto column,
                    picked_column(columns, {term}, term.topology_key, input.namespaces));
    add(column, kGroup, PENSTOCK_DOMAIN_ABSENT, 0, 0, terms);
  }
  for (const CarriedTerm* carried : input.met) {
    if (carried->kind != CarriedTerm::Kind::anti_required) continue;
    PENSTOCK_ASSIGN(const auto column, carrier_column(columns, *carried));
    add(column, kGroup, PENSTOCK_DOMAIN_ABSENT, 0, 0, terms);
  }
  return {};
}

Status add_pod_affinity_score(CountColumns* columns, const PodAffinityInput& input,
                              std::vector<penstock_domain_term>* terms) {
  constexpr TermGroup kGroup = TermGroup::preferred_pod_affinity;
  const auto& prefers = input.pod.affinity.preferred;
  const auto& shuns = input.pod.anti_affinity.preferred;
  if (input.profile.ignore_preferred_terms_of_existing_pods && prefers.empty() && shuns.empty()) {
    return {};
  }
  const auto add_own = [&](const std::vector<WeightedPodAffinityTerm>& own, int sign) -> Status {
    for (const WeightedPodAffinityTerm& weighted : own) {
      const PodTerm term = resolve_term(weighted.term, input.pod);
      PENSTOCK_ASSIGN(const auto column,
                      picked_column(columns, {term}, term.topology_key, input.namespaces));
      add(column, kGroup, 0, sign * weighted.weight, 0, terms);
    }
    return {};
  };
  PENSTOCK_TRY(add_own(prefers, 1));
  PENSTOCK_TRY(add_own(shuns, -1));
  for (const CarriedTerm* carried : input.met) {
    std::int32_t weight = carried->weight;
    if (carried->kind == CarriedTerm::Kind::anti_required) continue;
    if (carried->kind == CarriedTerm::Kind::anti_preferred) weight = -weight;
    if (carried->kind == CarriedTerm::Kind::affinity_required) {
      weight *= input.profile.hard_pod_affinity_weight;
    }
    if (weight == 0) continue;
    PENSTOCK_ASSIGN(const auto column, carrier_column(columns, *carried));
    add(column, kGroup, 0, weight, 0, terms);
  }
  return {};
}

}  // namespace penstock
