#include "penstock/serve/extender_preemption.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "penstock/base/log.h"
#include "penstock/sched/json_field.h"
#include "penstock/sched/kubernetes_objects.h"

namespace penstock {
namespace {

using nlohmann::json;

constexpr std::int64_t kMostViolations = 1 << 20;

struct Victim {
  std::string uid;
  std::string key;  // "" if it is not known: then it takes no place either
};

struct Candidate {
  std::string node;
  std::vector<Victim> victims;
  std::int64_t violations = 0;  // of disruption budgets
};

Result<std::string> uid_of(const JsonField& pod) {
  // A MetaPod has UID at its top; a Pod has it in its metadata.
  const JsonField metadata = pod.member("metadata");
  const JsonField uid = metadata.present() ? metadata.member("uid") : pod.member("UID");
  PENSTOCK_ASSIGN(std::string text, uid.text());
  if (text.empty()) return uid.wrong("a uid");
  return text;
}

Result<std::vector<Candidate>> read_candidates(const JsonField& map) {
  std::vector<Candidate> candidates;
  const Status status =
      map.each_member([&candidates](const std::string& node, const JsonField& item) -> Status {
        PENSTOCK_TRY(item.expect_object());
        Candidate& candidate = candidates.emplace_back();
        candidate.node = node;
        PENSTOCK_ASSIGN(candidate.violations,
                        item.member("NumPDBViolations").integer(0, kMostViolations));
        const JsonField pods = item.member("Pods");
        return pods.each([&candidate](const JsonField& pod) -> Status {
          PENSTOCK_ASSIGN(std::string uid, uid_of(pod));
          candidate.victims.push_back({std::move(uid), ""});
          return {};
        });
      });
  if (!status.ok()) return status;
  return candidates;
}

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
  PENSTOCK_ASSIGN(const json document,
                  parse_json(body, "ExtenderPreemptionArgs", kMaxKubernetesDepth));
  const JsonField root(document, "ExtenderPreemptionArgs");
  if (!document.is_object()) return root.wrong("an object with Pod and victims");
  const JsonField pod_field = root.member("Pod");
  if (!pod_field.present()) return pod_field.wrong("a Pod");
  PENSTOCK_ASSIGN(KubernetesPod pod, read_kubernetes_pod(pod_field));
  pod.node_name.clear();
  const JsonField meta = root.member("NodeNameToMetaVictims"),
                  whole = root.member("NodeNameToVictims");
  if (!meta.present() && !whole.present()) {
    return error(Code::invalid_argument,
                 "ExtenderPreemptionArgs: found neither NodeNameToVictims nor "
                 "NodeNameToMetaVictims, expected one of them");
  }
  PENSTOCK_ASSIGN(std::vector<Candidate> candidates,
                  read_candidates(meta.present() ? meta : whole));
  for (Candidate& candidate : candidates) {
    for (Victim& victim : candidate.victims) victim.key = cluster.key_of_uid(victim.uid);
  }
  json nodes = json::object();
  const Status status = cluster.with([&](Cluster& held) -> Status {
    for (Candidate& candidate : candidates) {
      PENSTOCK_ASSIGN(const bool right, choose_victims(held, pod, &candidate));
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
