// A cluster and a list of pods that have the shape of the published trace, made from a seed, for
// whoever has no trace at hand.
#ifndef PENSTOCK_SCHED_SYNTHETIC_H_
#define PENSTOCK_SCHED_SYNTHETIC_H_

#include <cstdint>
#include <vector>

#include "penstock/base/status.h"
#include "penstock/sched/trace.h"

namespace penstock {

struct SyntheticConfig {
  std::uint32_t nodes = 1213;  // 1..1048576
  std::uint32_t pods = 8152;   // 1..16777216
  std::uint64_t seed = 1;
};

struct SyntheticTrace {
  std::vector<TraceNode> nodes;
  std::vector<TracePod> pods;
};

// The same seed gives the same trace on every machine. invalid_argument for a size out of range.
Result<SyntheticTrace> synthetic_trace(const SyntheticConfig& config);

}  // namespace penstock
#endif
