// The parts of vectors.h.
#ifndef PENSTOCK_SCHED_VECTORS_PARTS_H_
#define PENSTOCK_SCHED_VECTORS_PARTS_H_

#include <fmt/format.h>

#include <memory>
#include <string>
#include <vector>

#include "penstock/base/status.h"
#include "penstock/engine/engine.h"
#include "penstock/sched/json_field.h"
#include "penstock/sched/kubernetes.h"
#include "penstock/sched/scheduler_profile.h"
#include "penstock/sched/vectors.h"

namespace penstock {

// "NodeResourcesFit/MostAllocated": base and part; "PodTopologySpread (score)": base and part.
struct VectorPlugin {
  std::string name;
  std::string base;
  std::string part;
};
VectorPlugin split_plugin(const std::string& name);

// What a case came to; `detail` as in VectorResult.
struct Verdict {
  VectorOutcome outcome = VectorOutcome::passed;
  std::string detail;
};
Verdict passed();
Verdict failed(std::string detail);
Verdict skipped(std::string why);
// Passed if they are equal, else "WHAT: expected ..., found ...".
template <typename T>
Verdict compare(const std::string& what, const std::vector<T>& expected,
                const std::vector<T>& found) {
  if (expected == found) return passed();
  return failed(fmt::format("{}: expected [{}], found [{}]", what, fmt::join(expected, ", "),
                            fmt::join(found, ", ")));
}

// ---- from the schema's words to the scheduler's ----

struct VectorCluster {
  std::vector<KubernetesNode> nodes;
  std::vector<std::string> candidates;  // names of the nodes that are not "filtered": false
  std::vector<KubernetesPod> existing;
  KubernetesPod pod;
  std::vector<KubernetesNamespace> namespaces;
};
Result<VectorCluster> read_vector_cluster(const JsonField& test);
// `useStatusResources` and `excludeOverhead` of the configuration have a part in it.
Result<KubernetesPod> read_vector_pod(const JsonField& pod, const JsonField& config,
                                      const std::string& name);
// The one filter or score that the case is about, with its arguments. invalid_argument from the
// rules for arguments has their path behind "args".
Result<SchedulerProfile> read_vector_profile(const VectorPlugin& plugin, bool filter,
                                             const JsonField& config);

// ---- the cases ----

Result<std::vector<std::int64_t>> read_integers(const JsonField& list);

// Of plugins: builds the cluster and asks it. A Status is a malformed case.
Result<Verdict> run_plugin_case(const VectorPlugin& plugin, const JsonField& test,
                                std::shared_ptr<Engine> engine, const VectorsOptions& options);
// Of functions.
Result<Verdict> run_function_case(const VectorPlugin& plugin, const JsonField& test,
                                  std::shared_ptr<Engine> engine, const VectorsOptions& options);
bool is_vector_function(const VectorPlugin& plugin);
bool is_vector_plugin(const VectorPlugin& plugin);

// kube-scheduler's numFeasibleNodesToFind: after how many feasible nodes it stops to look when it
// is told to sample. Nothing in Penstock does.
std::int64_t sampled_nodes(std::int64_t nodes, std::int64_t percentage);

}  // namespace penstock
#endif
