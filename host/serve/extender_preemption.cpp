#include "penstock/serve/extender_preemption.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "penstock/base/log.h"
#include "penstock/serve/extender_protocol.h"

namespace penstock {
namespace {

using nlohmann::json;

struct Victim {
  std::string uid;
  std::string key;  // "" if it is not known: then it takes no place either
};

struct Candidate {
  std::string node;
  std::vector<Victim> victims;
  std::int64_t violations = 0;  // of disruption budgets
};

Result<bool> fits(Cluster& cluster, const KubernetesPod& pod, const std::string& node) {
  PENSTOCK_ASSIGN(const auto verdicts, cluster.filter(pod, {&node, 1}));
  return !verdicts.empty() && verdicts[0].feasible;
}

// Takes pods away, and puts back what is still away in the end.
class Removal {
 public:
  explicit Removal(Cluster& cluster) : cluster_(cluster) {}
  ~Removal() {
    for (const auto& pod : away_) {
      const Status status = cluster_.put_pod(pod);
      if (!status.ok()) log::warn("{} could not be put back: {}", pod.name, status.message());
    }
  }
  Removal(const Removal&) = delete;
  Removal& operator=(const Removal&) = delete;

  Status remove(const std::string& key, const std::string& node) {
    const KubernetesPod* pod = cluster_.find_pod(key);
    if (pod == nullptr || pod->node_name != node) return {};
    KubernetesPod copy = *pod;
    PENSTOCK_TRY(cluster_.remove_pod(key));
    away_.push_back(std::move(copy));
    return {};
  }
  Status put_back(const std::string& key) {
    const auto pod = std::find_if(away_.begin(), away_.end(),
                                  [&key](const KubernetesPod& one) { return one.name == key; });
    if (pod == away_.end()) return {};
    PENSTOCK_TRY(cluster_.put_pod(*pod));
    away_.erase(pod);
    return {};
  }

 private:
  Cluster& cluster_;
  std::vector<KubernetesPod> away_;
};

// The victims that are needed; false when the pod does not fit even without all of them.
Result<bool> choose_victims(Cluster& cluster, const KubernetesPod& pod, Candidate* candidate) {
  if (cluster.find_node(candidate->node) == nullptr) return false;
  Removal removal(cluster);
  for (const Victim& victim : candidate->victims) {
    PENSTOCK_TRY(removal.remove(victim.key, candidate->node));
  }
  PENSTOCK_ASSIGN(const bool possible, fits(cluster, pod, candidate->node));
  if (!possible) return false;
  std::vector<Victim> needed;
  for (const Victim& victim : candidate->victims) {
    if (!victim.key.empty()) {
      PENSTOCK_TRY(removal.put_back(victim.key));
      PENSTOCK_ASSIGN(const bool spared, fits(cluster, pod, candidate->node));
      if (spared) continue;
      PENSTOCK_TRY(removal.remove(victim.key, candidate->node));
    }
    needed.push_back(victim);
  }
  candidate->victims = std::move(needed);
  candidate->violations =
      std::min(candidate->violations, static_cast<std::int64_t>(candidate->victims.size()));
  return true;
}

}  // namespace

Result<json> answer_preemption(LiveCluster& cluster, std::string_view body) {
  PENSTOCK_ASSIGN(const PreemptionArgs args, parse_preemption_args(body));
  std::vector<Candidate> candidates;
  for (const PreemptionArgs::Candidate& asked : args.candidates) {
    Candidate& candidate = candidates.emplace_back();
    candidate.node = asked.node;
    candidate.violations = asked.violations;
    for (const std::string& uid : asked.victims) {
      candidate.victims.push_back({uid, cluster.key_of_uid(uid)});
    }
  }
  json nodes = json::object();
  const Status status = cluster.with([&](Cluster& held) -> Status {
    for (Candidate& candidate : candidates) {
      PENSTOCK_ASSIGN(const bool right, choose_victims(held, args.pod, &candidate));
      if (!right) continue;
      json& out = nodes[candidate.node];
      out["NumPDBViolations"] = candidate.violations;
      out["Pods"] = json::array();
      for (const Victim& victim : candidate.victims) out["Pods"].push_back({{"UID", victim.uid}});
    }
    return {};
  });
  if (!status.ok()) return status;
  return json{{"NodeNameToMetaVictims", std::move(nodes)}};
}

}  // namespace penstock
