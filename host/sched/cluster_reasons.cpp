// Why a filter refuses a node, in kube-scheduler's words (v1.34), and whether removing pods from it
// could change that.
#include <algorithm>

#include "penstock/sched/cluster_state.h"
#include "penstock/sched/taints.h"

namespace penstock {
namespace {

// Of the resources as kube-scheduler lists them: pods, cpu, memory, ephemeral-storage, the others.
int place_of(const std::string& resource) {
  constexpr const char* kOrder[] = {"pods", "cpu", "memory", "ephemeral-storage"};
  const auto found = std::find(std::begin(kOrder), std::end(kOrder), resource);
  return static_cast<int>(found - std::begin(kOrder));
}

Refusal refused_by_fit(const RefusalInput& in) {
  Refusal out;
  std::vector<std::pair<int, std::string>> reasons;
  for (std::uint32_t i = 0; i < in.op.n; ++i) {
    const std::uint32_t r = in.op.column[i];
    const std::int64_t asked = in.context.task.request[r];
    const std::int64_t offered = in.cells.column(in.cells.allocatable, r)[in.row];
    const std::int64_t used = in.cells.column(in.cells.requested, r)[in.row];
    if (asked == 0 || asked <= offered - used) continue;
    const std::string& name = in.table.catalogue().resources()[r].name;
    const bool pods = name == "pods";
    if (!pods && asked > offered) out.unresolvable = true;
    reasons.emplace_back(place_of(name), pods ? "Too many pods" : "Insufficient " + name);
  }
  std::stable_sort(reasons.begin(), reasons.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  for (auto& [place, reason] : reasons) out.reasons.push_back(std::move(reason));
  return out;
}

// What the profile adds is asked first.
Refusal refused_by_affinity(const RefusalInput& in) {
  KubernetesPod added;
  added.has_required = in.profile.has_added_required;
  added.required = in.profile.added_required;
  if (!matches_required(added, in.table.catalogue().node(in.row))) {
    return {true, {"node(s) didn't match scheduler-enforced node affinity"}};
  }
  return {true, {"node(s) didn't match Pod's node affinity/selector"}};
}

Refusal refused_by_taints(const RefusalInput& in) {
  const NodeFacts& node = in.table.catalogue().node(in.row);
  const Taint* taint = find_untolerated(node.taints, in.pod.tolerations);
  if (taint == nullptr) return {true, {"node(s) had untolerated taint"}};
  return {true,
          {fmt::format("node(s) had untolerated taint {{{}: {}}}", taint->key, taint->value)}};
}

bool is_of(const penstock_domain_term& term, const penstock_column_op& op) {
  return term.group == op.group;
}

// The first constraint that fails decides.
Refusal refused_by_spread(const RefusalInput& in) {
  const std::string words = "node(s) didn't match pod topology spread constraints";
  const penstock_task& task = in.context.task;
  for (std::uint32_t i = 0; i < task.n_domain_terms; ++i) {
    const penstock_domain_term& term = task.domain_terms[i];
    if (!is_of(term, in.op)) continue;
    const std::int32_t domain = in.cells.domain_of(term.domain, in.row);
    const std::string& key = in.table.catalogue().count_column(term.count).key;
    bool no_label = domain < 0;
    if (term.kind == PENSTOCK_DOMAIN_ABSENT) {  // folded
      if (in.cells.count_column(term.count)[domain] == 0) continue;
      no_label = key.ends_with("no label");
    } else if (!no_label && in.cells.count_column(term.count)[domain] + std::int64_t{term.self} -
                                    in.context.terms[i].least <=
                                term.weight) {
      continue;
    }
    return no_label ? Refusal{true, {words + " (missing required label)"}}
                    : Refusal{false, {words}};
  }
  return {false, {words}};
}

Refusal refused_by_pod_affinity(const RefusalInput& in) {
  const penstock_task& task = in.context.task;
  bool affinity = false, anti = false;
  for (std::uint32_t i = 0; i < task.n_domain_terms; ++i) {
    const penstock_domain_term& term = task.domain_terms[i];
    if (!is_of(term, in.op)) continue;
    const std::int32_t domain = in.cells.domain_of(term.domain, in.row);
    const std::int32_t count = domain < 0 ? 0 : in.cells.count_column(term.count)[domain];
    const std::string& key = in.table.catalogue().count_column(term.count).key;
    if (term.kind == PENSTOCK_DOMAIN_PRESENT) {
      affinity = affinity || domain < 0 || (count == 0 && !in.context.terms[i].may_be_first);
    } else if (count > 0) {
      affinity = affinity || key.ends_with("refused by affinity");
      anti =
          anti || key.starts_with("pods picked by ") || key.ends_with("refused by anti-affinity");
    }
  }
  if (affinity) return {true, {"node(s) didn't match pod affinity rules"}};
  if (anti) return {false, {"node(s) didn't match pod anti-affinity rules"}};
  return {false, {"node(s) didn't satisfy existing pods anti-affinity rules"}};
}

}  // namespace

Refusal refusal(const std::string& filter, const RefusalInput& in) {
  // The names are those of policy.h, to which a profile's are compiled.
  if (filter == "unschedulable") return {true, {"node(s) were unschedulable"}};
  if (filter == "node-name") return {true, {"node(s) didn't match the requested node name"}};
  if (filter == "taints") return refused_by_taints(in);
  if (filter == "node-affinity") return refused_by_affinity(in);
  if (filter == "ports") {
    return {false, {"node(s) didn't have free ports for the requested pod ports"}};
  }
  if (filter == "fit") return refused_by_fit(in);
  if (filter == "spread") return refused_by_spread(in);
  if (filter == "pod-affinity") return refused_by_pod_affinity(in);
  return {false, {fmt::format("node(s) were refused by {}", filter)}};
}

}  // namespace penstock
