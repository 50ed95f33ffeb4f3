// Runs files of test vectors for kube-scheduler's arithmetic through the public interface (Cluster,
// the engines, the profile, the reader of pods) and compares.
//
// A file is JSON: {"plugin": NAME, "cases": [...]}, beside "upstream", "count", "notes". NAME is a
// plugin of kube-scheduler, with what is tested of it: "NodeAffinity", "NodeResourcesFit (filter)",
// "NodeResourcesFit/MostAllocated", "PodTopologySpread (score)"; or one of its functions:
// "PodRequests helper", "helper.DefaultNormalizeScore", "helper.BuildBrokenLinearFunction",
// "selectHost", "numFeasibleNodesToFind". A case has an "id", perhaps "desc" and "feature" (filter,
// score, name), its input ("config", "pod", "nodes", "existingPods", "namespaces", or "input") and
// "expect". Quantities are whole numbers, cpu in thousandths. penstock-vectors(1) has the schema.
#ifndef PENSTOCK_SCHED_VECTORS_H_
#define PENSTOCK_SCHED_VECTORS_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "penstock/base/status.h"

namespace penstock {

struct VectorsOptions {
  std::vector<std::string> engines;  // names for make_engine; at least one
  // Also the cases of what kube-scheduler v1.34 has off or Penstock's decisions have no use for:
  // tolerations that compare (Gt, Lt), and how many nodes a sampling scheduler would look at.
  bool compat = false;
};

enum class VectorOutcome { passed, failed, skipped };

struct VectorResult {
  std::string file;
  std::string id;
  std::string engine;
  VectorOutcome outcome = VectorOutcome::passed;
  std::string detail;  // failed: what was expected and what came; skipped: why
};

// One result for every case and engine, in the order of the file. not_found, io_error;
// invalid_argument names the file and the path of what is malformed.
Result<std::vector<VectorResult>> run_vectors(const std::string& path,
                                              const VectorsOptions& options);
Result<std::vector<VectorResult>> run_vectors(std::string_view bytes, const std::string& name,
                                              const VectorsOptions& options);

// A case counts once: as failed if it failed on some engine, as skipped if it was skipped on all.
struct VectorCounts {
  std::uint64_t cases = 0;
  std::uint64_t passed = 0;
  std::uint64_t failed = 0;
  std::uint64_t skipped = 0;
};
VectorCounts count_vectors(const std::vector<VectorResult>& results);

// A line for every failure and for every reason to skip, then the total:
// "243 cases, 243 passed, 0 failed, 0 skipped (scalar, simd)".
std::string vectors_text(const std::vector<VectorResult>& results, const VectorsOptions& options);
std::string vectors_json(const std::vector<VectorResult>& results, const VectorsOptions& options);

inline constexpr std::uint64_t kMaxVectorBytes = std::uint64_t{64} << 20;

}  // namespace penstock
#endif
