// Replays a trace under every trace policy and over ten seeds, and prints the means and the speed.
//
//   replay [NODES.csv PODS.csv [ENGINE [SEEDS]]]    without files: a synthetic trace
#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "penstock/sched/replay.h"
#include "penstock/sched/synthetic.h"

namespace {

penstock::Status run(int argc, char** argv) {
  using namespace penstock;
  ReplayConfig config;
  if (argc > 2) {
    PENSTOCK_ASSIGN(config.nodes, read_trace_nodes(argv[1]));
    PENSTOCK_ASSIGN(config.pods, read_trace_pods(argv[2]));
  } else {
    PENSTOCK_ASSIGN(SyntheticTrace trace, synthetic_trace({}));
    config.nodes = std::move(trace.nodes);
    config.pods = std::move(trace.pods);
  }
  if (argc > 3) config.engine = argv[3];
  const long seeds = argc > 4 ? std::strtol(argv[4], nullptr, 10) : 10;
  const ReplayRuns runs{
      {"random", "dot-product", "gpu-clustering", "gpu-packing", "best-fit", "fgd"},
      static_cast<std::uint32_t>(std::clamp(seeds, 1L, 10000L))};
  PENSTOCK_ASSIGN(const std::vector<ReplayResult> results, replay_runs(config, runs));
  fmt::print("{}", replay_text(results));
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  const penstock::Status status = run(argc, argv);
  if (status.ok()) return 0;
  fmt::print(stderr, "{}\n", status.to_string());
  return 2;
}
