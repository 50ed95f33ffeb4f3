// Replays a trace: pods arrive in an order shuffled by a seed and are placed one after another;
// nothing leaves, and what fits nowhere is dropped. Once the list is used up, pods are drawn from
// it again, until the GPU demand that arrived reaches `inflate` times the cluster's GPUs. This is
// the experiment of FGD ("Beware of Fragmentation", USENIX ATC '23).
#ifndef PENSTOCK_SCHED_REPLAY_H_
#define PENSTOCK_SCHED_REPLAY_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "penstock/base/status.h"
#include "penstock/memory/pool.h"
#include "penstock/sched/trace.h"

namespace penstock {

struct ReplayConfig {
  std::vector<TraceNode> nodes;
  std::vector<TracePod> pods;
  std::string policy = "best-fit";  // see built_in_policies()
  std::uint64_t seed = 1;
  double inflate = 1.3;         // 0.01..10
  bool shuffle_nodes = true;    // rows in an order of the seed's own, else as in `nodes`
  std::string engine = "auto";  // see make_engine()
  std::uint32_t batch = 128;    // pods per SELECT: 1..4096; has no influence on the result
  Pool* pool = nullptr;         // where the node table stands; null: this process's memory
  std::string table_name;       // of the table's region in the pool; "" is anonymous
};

struct CurvePoint {
  double arrived_pct;    // GPU demand that arrived, of the cluster's GPUs
  double gpu_alloc_pct;  // GPU-thousandths allocated, of the cluster's
};

struct ReplayResult {
  std::string policy;
  std::string engine;
  std::uint64_t seed = 0;
  double inflate = 0;
  std::uint64_t nodes = 0;
  std::uint64_t gpus = 0;
  std::uint64_t arrived = 0;  // pods
  std::uint64_t placed = 0;
  std::uint64_t dropped = 0;
  double arrived_pct = 0;
  double gpu_alloc_pct = 0;           // at the end
  double gpu_alloc_at_full_pct = -1;  // once 100 % had arrived; below 0 if less arrives
  double seconds = 0;                 // of placing, without reading the trace
  double decisions_per_second = 0;
  std::vector<CurvePoint> curve;  // about one point per percent that arrived
  std::vector<std::string> warnings;
};

struct ReplayProgress {
  double arrived_pct;
  double gpu_alloc_pct;
  std::uint64_t placed;
  std::uint64_t dropped;
};
// Called after every batch; false ends the replay with `cancelled`.
using ReplayCallback = std::function<bool(const ReplayProgress&)>;

// invalid_argument (nodes or pods empty, no GPUs, a field out of its range), not_found (policy or
// engine), no_space (pool), unsupported.
Result<ReplayResult> replay(const ReplayConfig& config, const ReplayCallback& progress = {});

// The order in which pods arrive, as indices into config.pods: the list in an order shuffled by the
// seed, then draws from it, until enough has arrived. Errors as replay's.
Result<std::vector<std::uint32_t>> replay_arrivals(const ReplayConfig& config);

// Every policy with the seeds config.seed, config.seed + 1, ... on `jobs` threads (1..256); results
// policy by policy, seed by seed, the same for any number of threads. config.pool is null. The
// callback is called by one thread at a time, for the run that it names; false ends all.
struct ReplayRuns {
  std::vector<std::string> policies;
  std::uint32_t seeds = 1;
  std::uint32_t jobs = 1;
};
using ReplayRunsCallback = std::function<bool(const std::string& policy, std::uint64_t seed,
                                              const ReplayProgress& progress)>;
Result<std::vector<ReplayResult>> replay_runs(const ReplayConfig& config, const ReplayRuns& runs,
                                              const ReplayRunsCallback& progress = {});

// By policy, in the order of the results.
struct ReplayMean {
  std::string policy;
  std::size_t seeds = 0;
  double mean = 0, min = 0, max = 0;                    // of gpu_alloc_pct
  double full_mean = -1, full_min = -1, full_max = -1;  // of gpu_alloc_at_full_pct
};
std::vector<ReplayMean> replay_means(const std::vector<ReplayResult>& results);

// Renderings of one or several replays. Percentages have three decimals.
std::string replay_text(const std::vector<ReplayResult>& results);
// One line per curve point: policy,seed,arrived_pct,gpu_alloc_pct.
std::string replay_csv(const std::vector<ReplayResult>& results);
// {"results": [{"policy", "gpu_alloc_pct", "curve": [[arrived_pct, gpu_alloc_pct], ...], ...}],
//  "means": [{"policy", "seeds", "mean", "min", "max", "at_full": {...}}]}; one result alone stands
//  for itself,
// without "results".
std::string replay_json(const std::vector<ReplayResult>& results);
// A plot of all curves, one colour per policy.
std::string replay_svg(const std::vector<ReplayResult>& results);

}  // namespace penstock
#endif
