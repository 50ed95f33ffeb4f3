#include "penstock/sched/preemption.h"

#include <algorithm>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "penstock/engine/scalar_select.h"
#include "penstock/sched/label_selector.h"

namespace penstock {
namespace {

constexpr const char* kUnschedulable = "Unschedulable";
constexpr std::int64_t kPriorityOffset = std::int64_t{1} << 31;

// A pod that has not started counts as one that starts now, after all others.
std::int64_t start_of(const KubernetesPod& pod) {
  return pod.start_time_s == 0 ? INT64_MAX : pod.start_time_s;
}

// Of the victims of highest priority the one that started first.
std::int64_t earliest_start(const VictimList& list) {
  std::int64_t earliest = INT64_MAX;
  for (const KubernetesPod* victim : list.victims) {
    if (victim->priority == list.victims.front()->priority)
      earliest = std::min(earliest, start_of(*victim));
  }
  return earliest;
}

std::int64_t sum_of_priorities(const VictimList& list) {
  std::int64_t sum = 0;
  for (const KubernetesPod* victim : list.victims) sum += victim->priority + kPriorityOffset;
  return sum;
}

// Those of the pods, which are in order, whose going would take a budget below 0: each pod uses up
// one of every budget that it matches.
std::vector<bool> violating(const std::vector<const KubernetesPod*>& pods,
                            std::span<const DisruptionBudget> budgets) {
  std::vector<std::int32_t> left;
  for (const DisruptionBudget& budget : budgets) left.push_back(budget.allowed);
  std::vector<bool> out(pods.size());
  for (std::size_t i = 0; i < pods.size(); i++) {
    const KubernetesPod& pod = *pods[i];
    if (pod.labels.empty()) continue;
    const std::string short_name = pod.name.substr(pod.name.find('/') + 1);
    for (std::size_t b = 0; b < budgets.size(); b++) {
      const DisruptionBudget& budget = budgets[b];
      if (budget.namespace_name != pod.namespace_name || !budget.selector.present ||
          matches_everything(budget.selector) || !matches(budget.selector, pod.labels))
        continue;
      if (std::find(budget.leaving.begin(), budget.leaving.end(), short_name) !=
          budget.leaving.end())
        continue;
      if (--left[b] < 0) out[i] = true;
    }
  }
  return out;
}

// Whether the pod fits a node from which some pods are gone. Each of the two ways to ask has a
// state that begin() sets up for a node, and which remove() and put_back() change.
class Trial {
 public:
  virtual ~Trial() = default;
  virtual Status begin(std::uint32_t row) = 0;
  virtual Status remove(const KubernetesPod& victim) = 0;
  virtual Status put_back(const KubernetesPod& victim) = 0;
  virtual Result<bool> fits() = 0;
};

// For pods that other pods hinder by amounts alone: sums, without a change of the table.
class AmountTrial : public Trial {
 public:
  // Of the resources that the program's filter looks at.
  AmountTrial(Cluster& cluster, const penstock_program& program, const penstock_task& task)
      : cluster_(cluster) {
    for (std::uint32_t i = 0; i < program.n_ops; i++) {
      const penstock_column_op& op = program.ops[i];
      if (op.op != PENSTOCK_FILTER_FIT) continue;
      for (std::uint32_t j = 0; j < op.n; j++) request_[op.column[j]] = task.request[op.column[j]];
    }
  }

  Status begin(std::uint32_t row) override {
    const TableView cells = cluster_.table().view();
    const std::uint32_t n = cells.header->n_resources;
    left_.resize(n);
    for (std::uint32_t r = 0; r < n; r++)
      left_[r] = cells.column(cells.allocatable, r)[row] - cells.column(cells.requested, r)[row];
    return {};
  }
  Status remove(const KubernetesPod& victim) override {
    change(victim, 1);
    return {};
  }
  Status put_back(const KubernetesPod& victim) override {
    change(victim, -1);
    return {};
  }
  Result<bool> fits() override {
    for (std::size_t r = 0; r < left_.size(); r++)
      if (request_[r] != 0 && request_[r] > left_[r]) return false;
    return true;
  }

 private:
  void change(const KubernetesPod& victim, std::int64_t sign) {
    const Catalogue& catalogue = cluster_.catalogue();
    for (const auto& [name, amount] : victim.request) {
      const std::int32_t column = catalogue.find_resource(name);
      if (column >= 0) left_[static_cast<std::size_t>(column)] += sign * amount;
    }
    left_[static_cast<std::size_t>(catalogue.find_resource("pods"))] += sign;
  }

  Cluster& cluster_;
  std::int64_t request_[PENSTOCK_MAX_RESOURCES] = {};
  std::vector<std::int64_t> left_;
};

// For all others: the pods leave the cluster, and the program's filters are asked about the row.
class ClusterTrial : public Trial {
 public:
  ClusterTrial(Cluster& cluster, const KubernetesPod& pod) : cluster_(cluster), pod_(pod) {}

  Status begin(std::uint32_t row) override {
    node_ = cluster_.catalogue().node(row).name;
    return {};
  }
  Status remove(const KubernetesPod& victim) override { return cluster_.remove_pod(victim.name); }
  Status put_back(const KubernetesPod& victim) override { return cluster_.put_pod(victim); }
  Result<bool> fits() override {
    PENSTOCK_ASSIGN(const Task task, cluster_.make_task(pod_));
    PENSTOCK_ASSIGN(const Program program, cluster_.make_program());
    // The table may have been made anew.
    const std::int32_t row = cluster_.catalogue().find_node(node_);
    if (row < 0) return error(Code::internal, "node {} is gone", node_);
    const TableView cells = cluster_.table().view();
    const DecisionContext context(cells, program.record, task.record);
    for (std::uint32_t i = 0; i < program.record.n_ops; i++) {
      const penstock_column_op& op = program.record.ops[i];
      if (PENSTOCK_COLUMN_OP_IS_SCORE(op.op)) break;
      if (!scalar_filter(context, op, static_cast<std::uint32_t>(row))) return false;
    }
    return true;
  }

 private:
  Cluster& cluster_;
  const KubernetesPod& pod_;
  std::string node_;
};

// What is known of a node before it is tried. The pods are copies: those of the cluster come and
// go.
struct Candidate {
  std::uint32_t row;
  std::string node;
  std::vector<KubernetesPod> pods;  // of lower priority, the most important first
};

// The victims on one node, as indices into its pods; `none` when taking all away does not help. The
// trial is at the end as it was at the beginning.
struct Victims {
  bool none = true;
  std::vector<std::size_t> pods;
  std::uint32_t violations = 0;
};

Status restore(Trial* trial, const Candidate& candidate, std::vector<bool>* gone) {
  Status first;
  for (std::size_t i = 0; i < gone->size(); i++) {
    if (!(*gone)[i]) continue;
    const Status status = trial->put_back(candidate.pods[i]);
    if (first.ok()) first = status;
    (*gone)[i] = false;
  }
  return first;
}

Status try_node(Trial* trial, const Candidate& candidate, std::span<const DisruptionBudget> budgets,
                std::vector<bool>* gone, Victims* out) {
  PENSTOCK_TRY(trial->begin(candidate.row));
  std::vector<const KubernetesPod*> pods;
  for (std::size_t i = 0; i < candidate.pods.size(); i++) {
    PENSTOCK_TRY(trial->remove(candidate.pods[i]));
    (*gone)[i] = true;
    pods.push_back(&candidate.pods[i]);
  }
  PENSTOCK_ASSIGN(const bool fits, trial->fits());
  if (!fits) return {};
  out->none = false;
  const std::vector<bool> violates = violating(pods, budgets);
  for (const bool violators : {true, false}) {
    for (std::size_t i = 0; i < pods.size(); i++) {
      if (violates[i] != violators) continue;
      PENSTOCK_TRY(trial->put_back(*pods[i]));
      (*gone)[i] = false;
      PENSTOCK_ASSIGN(const bool still_fits, trial->fits());
      if (still_fits) continue;
      PENSTOCK_TRY(trial->remove(*pods[i]));
      (*gone)[i] = true;
      out->pods.push_back(i);
      out->violations += violators;
    }
  }
  std::sort(out->pods.begin(), out->pods.end());
  return {};
}

Result<Victims> find_victims(Trial* trial, const Candidate& candidate,
                             std::span<const DisruptionBudget> budgets) {
  Victims out;
  std::vector<bool> gone(candidate.pods.size());
  const Status tried = try_node(trial, candidate, budgets, &gone, &out);
  const Status restored = restore(trial, candidate, &gone);
  PENSTOCK_TRY(tried);
  PENSTOCK_TRY(restored);
  return out;
}

VictimList list_of(const Candidate& candidate, const Victims& victims) {
  VictimList list;
  for (const std::size_t i : victims.pods) list.victims.push_back(&candidate.pods[i]);
  list.violations = victims.violations;
  return list;
}

// Whether other pods hinder this one only by what they hold of a node.
bool hindered_by_amounts(const Task& task) {
  if (task.once) return false;
  const auto about_pods = [](std::uint8_t group) {
    return group == static_cast<std::uint8_t>(TermGroup::spread) ||
           group == static_cast<std::uint8_t>(TermGroup::pod_affinity) ||
           group == static_cast<std::uint8_t>(TermGroup::ports);
  };
  const penstock_task& record = task.record;
  return std::none_of(record.terms, record.terms + record.n_terms,
                      [&](const penstock_term& term) { return about_pods(term.group); }) &&
         std::none_of(record.domain_terms, record.domain_terms + record.n_domain_terms,
                      [&](const penstock_domain_term& term) { return about_pods(term.group); });
}

// Why the pod may not preempt at all; "" if it may.
std::string why_not(const Cluster& cluster, const KubernetesPod& pod,
                    const std::vector<NodeVerdict>& verdicts) {
  if (!pod.preempts) return "the pod's preemptionPolicy is Never";
  for (const NodeVerdict& verdict : verdicts)
    if (verdict.feasible) return fmt::format("the pod fits {} as it is", verdict.node);
  if (pod.nominated_node.empty()) return {};
  for (const NodeVerdict& verdict : verdicts)
    if (verdict.node == pod.nominated_node && verdict.code != kUnschedulable) return {};
  for (const KubernetesPod* other : cluster.pods_on(pod.nominated_node)) {
    if (other->terminating && other->priority < pod.priority)
      return fmt::format("{} is leaving the nominated node {}", other->name, pod.nominated_node);
  }
  return {};
}

Candidate candidate_of(const Cluster& cluster, const std::string& node, std::int32_t priority) {
  Candidate candidate;
  candidate.node = node;
  std::vector<const KubernetesPod*> pods = cluster.pods_on(node);
  std::erase_if(pods,
                [priority](const KubernetesPod* other) { return other->priority >= priority; });
  std::sort(pods.begin(), pods.end(), [](const KubernetesPod* a, const KubernetesPod* b) {
    if (more_important(*a, *b)) return true;
    return !more_important(*b, *a) && a->name < b->name;
  });
  for (const KubernetesPod* other : pods) candidate.pods.push_back(*other);
  return candidate;
}

}  // namespace

bool more_important(const KubernetesPod& a, const KubernetesPod& b) {
  if (a.priority != b.priority) return a.priority > b.priority;
  return start_of(a) < start_of(b);
}

bool better_victims(const VictimList& a, const VictimList& b) {
  const auto rank = [](const VictimList& list) {
    const std::int64_t highest = list.victims.empty() ? INT64_MIN : list.victims.front()->priority;
    // The last in reverse: what started later is the smaller loss.
    return std::tuple(list.violations, highest, sum_of_priorities(list), list.victims.size(),
                      ~earliest_start(list));
  };
  return rank(a) < rank(b);
}

Result<Preemption> preempt(Cluster& cluster, const KubernetesPod& pod,
                           std::span<const DisruptionBudget> budgets) {
  Preemption out;
  PENSTOCK_ASSIGN(const std::vector<NodeVerdict> verdicts, cluster.filter(pod));
  out.reason = why_not(cluster, pod, verdicts);
  if (!out.reason.empty()) return out;

  PENSTOCK_ASSIGN(const Task task, cluster.make_task(pod));
  PENSTOCK_ASSIGN(const Program program, cluster.make_program());
  AmountTrial amounts(cluster, program.record, task.record);
  ClusterTrial changes(cluster, pod);
  const bool by_amounts = hindered_by_amounts(task);
  Candidate best;
  Victims best_victims;
  std::uint32_t without_victims = 0;
  for (const NodeVerdict& verdict : verdicts) {
    if (verdict.code != kUnschedulable) continue;
    Candidate candidate = candidate_of(cluster, verdict.node, pod.priority);
    if (candidate.pods.empty()) {
      without_victims++;
      continue;
    }
    out.candidates++;
    candidate.row = static_cast<std::uint32_t>(cluster.catalogue().find_node(verdict.node));
    // The sums rule most nodes out before a pod is moved.
    PENSTOCK_ASSIGN(Victims victims, find_victims(&amounts, candidate, budgets));
    if (victims.none) continue;
    if (!by_amounts) {
      PENSTOCK_ASSIGN(victims, find_victims(&changes, candidate, budgets));
    }
    if (victims.none || victims.pods.empty()) continue;
    if (best_victims.none ||
        better_victims(list_of(candidate, victims), list_of(best, best_victims))) {
      best = std::move(candidate);
      best_victims = std::move(victims);
    }
  }
  if (best_victims.none) {
    out.reason = fmt::format(
        "0/{} nodes are made to fit: on {} taking away all pods of lower priority does not help, "
        "on "
        "{} there are none, for the rest it is not pods that are in the way",
        verdicts.size(), out.candidates, without_victims);
    return out;
  }
  out.node = best.node;
  for (const std::size_t i : best_victims.pods) out.victims.push_back(best.pods[i].name);
  out.violations = best_victims.violations;
  return out;
}

}  // namespace penstock
