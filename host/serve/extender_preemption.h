// The preempt verb: which of the nodes that kube-scheduler would preempt on are right, and which of
// their victims are needed.
#ifndef PENSTOCK_SERVE_EXTENDER_PREEMPTION_H_
#define PENSTOCK_SERVE_EXTENDER_PREEMPTION_H_

#include <nlohmann/json.hpp>
#include <string_view>

#include "penstock/base/status.h"
#include "penstock/serve/live_cluster.h"

namespace penstock {

// ExtenderPreemptionArgs to ExtenderPreemptionResult. A node stays if the pod passes every filter
// there once the victims are gone; a victim without which it passes, too, is spared (looked at in
// the order of the request, in which kube-scheduler lists the highest priority first). The cluster
// is as before afterwards. invalid_argument names the field.
Result<nlohmann::json> answer_preemption(LiveCluster& cluster, std::string_view body);

}  // namespace penstock
#endif
