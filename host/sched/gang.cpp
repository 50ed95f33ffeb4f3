#include "penstock/sched/gang.h"

#include <algorithm>
#include <map>
#include <utility>

namespace penstock {
namespace {

// What is placed or left out together: indices into the batch.
struct Unit {
  std::int32_t priority = 0;
  std::vector<std::size_t> members;
  std::uint32_t needs = 0;
};

Result<std::vector<Unit>> units_of(const Cluster& cluster, std::span<const BatchPod> pods) {
  std::vector<Unit> units;
  std::map<std::string, std::size_t> gangs;
  std::map<std::string, std::size_t> names;
  for (std::size_t i = 0; i < pods.size(); i++) {
    const BatchPod& entry = pods[i];
    if (cluster.find_pod(entry.pod.name) != nullptr || !names.emplace(entry.pod.name, i).second) {
      return error(Code::already_exists, "pod {} has a node already, or is twice in the batch",
                   entry.pod.name);
    }
    if (entry.gang.empty()) {
      units.push_back({entry.pod.priority, {i}, 1});
      continue;
    }
    const auto [known, is_new] = gangs.emplace(entry.gang, units.size());
    if (is_new) units.push_back({entry.pod.priority, {}, entry.needs});
    Unit& unit = units[known->second];
    if (unit.needs != entry.needs) {
      return error(Code::invalid_argument,
                   "gang {}: pod {} says that {} members are needed, and {} "
                   "says {}",
                   entry.gang, entry.pod.name, entry.needs, pods[unit.members.front()].pod.name,
                   unit.needs);
    }
    unit.members.push_back(i);
    unit.priority = std::max(unit.priority, entry.pod.priority);
  }
  for (const auto& [name, at] : gangs) {
    Unit& unit = units[at];
    if (unit.needs > unit.members.size()) {
      return error(Code::invalid_argument, "gang {} needs {} members, and {} are in the batch",
                   name, unit.needs, unit.members.size());
    }
    if (unit.needs == 0) unit.needs = static_cast<std::uint32_t>(unit.members.size());
    std::stable_sort(unit.members.begin(), unit.members.end(), [&](std::size_t a, std::size_t b) {
      return pods[a].pod.priority > pods[b].pod.priority;
    });
  }
  std::stable_sort(units.begin(), units.end(), [](const Unit& a, const Unit& b) {
    return a.priority != b.priority ? a.priority > b.priority : a.members[0] < b.members[0];
  });
  return units;
}

// Places one unit, and takes it back when it does not come together.
class UnitPlacer {
 public:
  UnitPlacer(Cluster& cluster, std::span<const BatchPod> pods, const BatchOptions& options,
             std::vector<BatchOutcome>* outcomes)
      : cluster_(cluster), pods_(pods), options_(options), outcomes_(*outcomes) {}

  Status place(const Unit& unit) {
    std::size_t missing = 0;
    std::string first_reason;
    for (const std::size_t i : unit.members) {
      const Status status = place_one(i);
      if (!status.ok()) {
        PENSTOCK_TRY(take_back(unit));
        return status;
      }
      if (!outcomes_[i].node.empty()) continue;
      if (missing == 0) first_reason = pods_[i].pod.name + ": " + outcomes_[i].reason;
      missing++;
      // No more of it can be had than is needed.
      if (unit.members.size() - missing < unit.needs) break;
    }
    if (unit.members.size() - missing >= unit.needs) return {};
    PENSTOCK_TRY(take_back(unit));
    for (const std::size_t i : unit.members) {
      const std::string& gang = pods_[i].gang;
      outcomes_[i].reason =
          gang.empty() ? outcomes_[i].reason
                       : fmt::format("gang {} does not come together: {}", gang, first_reason);
    }
    return {};
  }

 private:
  Status place_one(std::size_t i) {
    BatchOutcome& outcome = outcomes_[i];
    PENSTOCK_ASSIGN(PodDecision decision, cluster_.decide(pods_[i].pod, true));
    if (decision.node.empty() && options_.preempt) {
      PENSTOCK_ASSIGN(const Preemption made, preempt(cluster_, pods_[i].pod, options_.budgets));
      if (!made.node.empty()) {
        for (const std::string& victim : made.victims) {
          const KubernetesPod* const pod = cluster_.find_pod(victim);
          if (pod == nullptr) return error(Code::internal, "victim {} is gone", victim);
          removed_.push_back(*pod);
          PENSTOCK_TRY(cluster_.remove_pod(victim));
        }
        outcome.victims = made.victims;
        PENSTOCK_ASSIGN(decision, cluster_.decide(pods_[i].pod, true, 1, {&made.node, 1}));
      }
    }
    outcome.node = decision.node;
    outcome.reason = decision.reason;
    return {};
  }

  Status take_back(const Unit& unit) {
    for (auto i = unit.members.rbegin(); i != unit.members.rend(); ++i) {
      BatchOutcome& outcome = outcomes_[*i];
      if (!outcome.node.empty()) PENSTOCK_TRY(cluster_.remove_pod(pods_[*i].pod.name));
      outcome.node.clear();
      outcome.victims.clear();
    }
    for (auto pod = removed_.rbegin(); pod != removed_.rend(); ++pod) {
      // A member of another gang of this batch is where it was, too.
      PENSTOCK_TRY(cluster_.put_pod(*pod));
    }
    return {};
  }

  Cluster& cluster_;
  std::span<const BatchPod> pods_;
  const BatchOptions& options_;
  std::vector<BatchOutcome>& outcomes_;
  std::vector<KubernetesPod> removed_;  // victims of this unit
};

}  // namespace

Result<GangResult> place_gang(NodeTable& table, const penstock_program& program,
                              std::span<const Task> tasks) {
  GangResult out;
  std::vector<penstock_task> records;
  for (const Task& task : tasks) records.push_back(task.record);
  out.results.resize(records.size());
  PENSTOCK_TRY(table.select(program, records, true, out.results.data()));
  const auto failed =
      std::find_if(out.results.begin(), out.results.end(),
                   [](const penstock_result& result) { return result.status != PENSTOCK_OK; });
  out.placed = failed == out.results.end();
  if (out.placed) return out;
  out.failed = static_cast<std::uint32_t>(failed - out.results.begin());
  for (std::size_t i = tasks.size(); i-- > 0;) {
    const penstock_result& result = out.results[i];
    if (result.status != PENSTOCK_OK) continue;
    PENSTOCK_TRY(table.release(static_cast<std::uint32_t>(result.row), tasks[i], result.gpu_mask));
  }
  return out;
}

Result<std::vector<BatchOutcome>> place_batch(Cluster& cluster, std::span<const BatchPod> pods,
                                              const BatchOptions& options) {
  PENSTOCK_ASSIGN(const std::vector<Unit> units, units_of(cluster, pods));
  std::vector<BatchOutcome> outcomes(pods.size());
  for (const Unit& unit : units)
    PENSTOCK_TRY(UnitPlacer(cluster, pods, options, &outcomes).place(unit));
  // Who made room for a later one has no place any more.
  for (std::size_t i = 0; i < pods.size(); i++) {
    if (outcomes[i].node.empty() || cluster.find_pod(pods[i].pod.name) != nullptr) continue;
    outcomes[i].node.clear();
    outcomes[i].reason = "it made room for a pod of higher priority";
  }
  return outcomes;
}

}  // namespace penstock
