// What FGD ("Beware of Fragmentation", USENIX ATC '23) has to know of a workload: its typical pods
// with their weights, and where the integer scores change. See PENSTOCK_SCORE_FGD.
#ifndef PENSTOCK_SCHED_FGD_H_
#define PENSTOCK_SCHED_FGD_H_

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "penstock/base/status.h"
#include "penstock/descriptor/node_table.h"
#include "penstock/sched/trace.h"

namespace penstock {

class NodeTable;

// Pods that differ in nothing that fragmentation looks at.
struct TypicalPod {
  std::int64_t cpu_milli = 0;
  std::uint32_t num_gpu = 0;
  std::uint32_t gpu_milli = 0;
  std::string gpu_spec;
  std::int64_t count = 0;  // pods of the list that are of this type
};

// The share of the list that the typical pods cover at least.
inline constexpr double kTypicalCover = 0.95;

// The most frequent types of the list, most frequent first and among equals the one that asks for
// more, until they cover `cover` (0..1) of it; at most PENSTOCK_MAX_TYPICAL.
std::vector<TypicalPod> typical_pods(std::span<const TracePod> pods, double cover = kTypicalCover);

// For CompileOptions. A type's weight is its count; when the list has more than
// PENSTOCK_MAX_TYPICAL_WEIGHT pods all are scaled down alike, and types that vanish are left out.
struct TypicalTasks {
  std::vector<penstock_typical> tasks;
  std::int64_t total = 0;  // of the weights, if the whole list were typical
};
// Interns the models that the pods name as bit columns of the table (no_space when it has none
// left).
Result<TypicalTasks> make_typical_tasks(NodeTable& table, std::span<const TracePod> pods);

// Thresholds of the integer score: entry s - 1 is the least decrease of the weighted fragmentation
// d for which trunc(100 * sigmoid(d / (1000 * total))) is s, which is when
// d >= 1000 * total * ln(s / (100 - s)). total is 1..PENSTOCK_MAX_TYPICAL_WEIGHT.
std::array<std::int64_t, PENSTOCK_FGD_THRESHOLDS> fgd_thresholds(std::int64_t total);

}  // namespace penstock
#endif
