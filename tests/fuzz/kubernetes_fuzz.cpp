// Bytes as a Kubernetes document. What reads without an error is placed and explained.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "penstock/sched/explain.h"
#include "penstock/sched/kubernetes.h"
#include "penstock/sched/kubernetes_cluster.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace penstock;
  const auto cluster =
      parse_kubernetes({reinterpret_cast<const char*>(data), size}, "cluster.json");
  if (!cluster.ok()) {
    if (cluster.status().message().find('\n') != std::string::npos) std::abort();
    return 0;
  }
  if (cluster.value().nodes.size() > 64 || cluster.value().pods.size() > 64) return 0;
  const auto decisions = place_pending(cluster.value(), "default", "scalar");
  if (!decisions.ok() && decisions.status().code() == Code::internal) std::abort();
  if (cluster.value().pods.empty()) return 0;
  const auto explanation =
      explain_pod(cluster.value(), cluster.value().pods[0].name, "default", "scalar");
  if (explanation.ok()) {
    explanation_text(explanation.value());
    explanation_json(explanation.value());
  } else if (explanation.status().code() == Code::internal) {
    std::abort();  // the explanation and the decision differ
  }
  return 0;
}
