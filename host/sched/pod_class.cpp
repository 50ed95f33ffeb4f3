#include "penstock/sched/pod_class.h"

#include <fmt/format.h>

#include <algorithm>

namespace penstock {
namespace {

std::string key_of(const PodTerm& term) {
  std::string key = fmt::format("{} of", key_of(term.selector));
  for (const std::string& name : term.namespaces) key += " " + key_part(name);
  if (term.namespace_selector.present) key += " or " + key_of(term.namespace_selector);
  return key + " by " + key_part(term.topology_key);
}

std::string key_of_labels(const Labels& labels) {
  std::string key;
  for (const auto& [name, value] : labels) key += key_part(name) + key_part(value);
  return key;
}

const char* name_of(CarriedTerm::Kind kind) {
  switch (kind) {
    case CarriedTerm::Kind::anti_required:
      return "anti";
    case CarriedTerm::Kind::affinity_required:
      return "affinity";
    case CarriedTerm::Kind::affinity_preferred:
      return "prefers";
    default:
      return "shuns";
  }
}

// The terms that a pod carries, those that mean the same added up.
using TermWeights =
    std::map<std::pair<CarriedTerm::Kind, std::string>, std::pair<std::int32_t, PodTerm>>;

void gather(const PodAffinity& affinity, CarriedTerm::Kind required, CarriedTerm::Kind preferred,
            const KubernetesPod& pod, TermWeights* out) {
  const auto add = [out](CarriedTerm::Kind kind, std::int32_t weight, PodTerm term) {
    auto& entry = (*out)[{kind, term.key}];
    entry.first += weight;
    entry.second = std::move(term);
  };
  for (const PodAffinityTerm& term : affinity.required) add(required, 1, resolve_term(term, pod));
  for (const WeightedPodAffinityTerm& weighted : affinity.preferred) {
    add(preferred, weighted.weight, resolve_term(weighted.term, pod));
  }
}

}  // namespace

PodTerm resolve_term(const PodAffinityTerm& term, const KubernetesPod& pod) {
  PodTerm out;
  out.namespaces.insert(term.namespaces.begin(), term.namespaces.end());
  if (term.namespaces.empty() && !term.namespace_selector.present) {
    out.namespaces.insert(pod.namespace_name);
  }
  out.namespace_selector = term.namespace_selector;
  out.selector =
      with_label_keys(term.selector, term.match_label_keys, term.mismatch_label_keys, pod.labels);
  out.topology_key = term.topology_key;
  out.key = key_of(out);
  return out;
}

bool matches(const PodTerm& term, TermOf whose, const std::string& namespace_name,
             const Labels& labels, const NamespaceLabels& namespaces) {
  if (!term.namespaces.contains(namespace_name)) {
    if (!term.namespace_selector.present) return false;
    if (!matches_everything(term.namespace_selector)) {
      const auto known = namespaces.find(namespace_name);
      if (known == namespaces.end() && whose == TermOf::incoming) return false;
      const Labels none;
      if (!matches(term.namespace_selector, known == namespaces.end() ? none : known->second)) {
        return false;
      }
    }
  }
  return matches(term.selector, labels);
}

bool depends_on_namespaces(const PodTerm& term) {
  return term.namespace_selector.present && !matches_everything(term.namespace_selector);
}

bool PodClass::carries(const CarriedTerm* term) const {
  return std::find(carried.begin(), carried.end(), term) != carried.end();
}

const CarriedTerm* PodClasses::carry(CarriedTerm::Kind kind, std::int32_t weight, PodTerm term) {
  std::string key = fmt::format("{} {} {}", name_of(kind), weight, term.key);
  const auto [found, is_new] = terms_.try_emplace(key);
  if (is_new) {
    found->second =
        std::make_unique<CarriedTerm>(CarriedTerm{kind, weight, std::move(term), std::move(key)});
    order_.push_back(found->second.get());
    ++version_;
  }
  return found->second.get();
}

PodClass* PodClasses::find(const KubernetesPod& pod) {
  TermWeights terms;
  gather(pod.affinity, CarriedTerm::Kind::affinity_required, CarriedTerm::Kind::affinity_preferred,
         pod, &terms);
  gather(pod.anti_affinity, CarriedTerm::Kind::anti_required, CarriedTerm::Kind::anti_preferred,
         pod, &terms);
  std::string key =
      key_part(pod.namespace_name) + (pod.terminating ? "-" : "+") + key_of_labels(pod.labels);
  for (const auto& [which, entry] : terms) {
    key += fmt::format(";{} {} {}", name_of(which.first), entry.first, key_part(which.second));
  }
  auto& slot = classes_[key];
  if (slot == nullptr) {
    slot = std::make_unique<PodClass>();
    slot->key = std::move(key);
    slot->namespace_name = pod.namespace_name;
    slot->labels = pod.labels;
    slot->terminating = pod.terminating;
    for (auto& [which, entry] : terms) {
      slot->carried.push_back(carry(which.first, entry.first, std::move(entry.second)));
    }
  }
  return slot.get();
}

const std::vector<const CarriedTerm*>& PodClasses::met(PodClass* pods,
                                                       const NamespaceLabels& namespaces) {
  for (; pods->terms_seen < order_.size(); ++pods->terms_seen) {
    const CarriedTerm* carried = order_[pods->terms_seen];
    if (matches(carried->term, TermOf::placed, pods->namespace_name, pods->labels, namespaces)) {
      pods->met.push_back(carried);
    }
  }
  return pods->met;
}

void PodClasses::forget_met() {
  for (auto& [key, pods] : classes_) {
    pods->met.clear();
    pods->terms_seen = 0;
  }
  ++version_;
}

void PodClasses::sweep() {
  if (classes_.size() < sweep_at_) return;
  std::erase_if(classes_, [](const auto& entry) { return entry.second->pods == 0; });
  std::set<const CarriedTerm*> carried;
  for (const auto& [key, pods] : classes_)
    carried.insert(pods->carried.begin(), pods->carried.end());
  std::erase_if(order_, [&](const CarriedTerm* term) { return !carried.contains(term); });
  std::erase_if(terms_, [&](const auto& entry) { return !carried.contains(entry.second.get()); });
  forget_met();
  sweep_at_ = std::max(kFewClasses, 2 * classes_.size());
}

}  // namespace penstock
