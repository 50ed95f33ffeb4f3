// What kube-scheduler sends to an extender, read (k8s.io/kube-scheduler/extender/v1).
#ifndef PENSTOCK_SERVE_EXTENDER_PROTOCOL_H_
#define PENSTOCK_SERVE_EXTENDER_PROTOCOL_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "penstock/base/status.h"
#include "penstock/sched/kubernetes.h"

namespace penstock {

// ExtenderArgs.
struct ExtenderArgs {
  KubernetesPod pod;
  bool by_name = false;               // NodeNames was given: nodeCacheCapable
  std::vector<std::string> names;     // of the candidates, in the order of the request
  std::vector<nlohmann::json> nodes;  // the candidates themselves, unless by_name
};

// ExtenderBindingArgs.
struct BindingArgs {
  std::string key;  // "namespace/name" of the pod
  std::string uid;  // "" if none was given
  std::string node;
};

// ExtenderPreemptionArgs, of either form.
struct PreemptionArgs {
  struct Candidate {
    std::string node;
    std::vector<std::string> victims;  // uids, in the order of the request
    std::int64_t violations = 0;       // of disruption budgets
  };
  KubernetesPod pod;
  std::vector<Candidate> candidates;
};

// invalid_argument names the field.
Result<BindingArgs> parse_binding_args(std::string_view body);
Result<PreemptionArgs> parse_preemption_args(std::string_view body);
Result<ExtenderArgs> parse_extender_args(std::string_view body);

// Scores 0..10 that keep the order: the least gets 0, the greatest 10; all 10 when they are equal.
std::vector<std::int64_t> extender_scores(const std::vector<std::int64_t>& totals);

}  // namespace penstock
#endif
