// A policy: named filters and weighted scores, and how they compile to a program of column
// operations.
#ifndef PENSTOCK_SCHED_POLICY_H_
#define PENSTOCK_SCHED_POLICY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "penstock/base/status.h"
#include "penstock/descriptor/node_table.h"

namespace penstock {

class NodeTable;
struct TypicalTasks;  // fgd.h

struct PolicyScore {
  std::string name;
  std::int32_t weight = 1;  // 1..PENSTOCK_MAX_WEIGHT
};

struct Policy {
  std::string name;
  std::string description;           // one line
  std::vector<std::string> filters;  // in the order in which they run
  std::vector<PolicyScore> scores;   // none: every feasible node is as good
  penstock_tie tie = PENSTOCK_TIE_LOWEST_ROW;
  penstock_gpu_pick gpu_pick = PENSTOCK_GPU_LEAST_FREE;
};

// best-fit, random, dot-product, gpu-packing, gpu-clustering, fgd: of GPU cluster traces;
// default: what kube-scheduler does with its default configuration, as far as the pod's terms are
// supported.
const std::vector<Policy>& built_in_policies();
// not_found lists the names there are.
Result<Policy> find_policy(const std::string& name);
// What may stand in a policy: names of filters and scores, in the order of the documentation.
std::vector<std::string> filter_names();
std::vector<std::string> score_names();

struct CompileOptions {
  std::uint32_t best = 1;  // how many of the best rows come back: 1..PENSTOCK_MAX_BEST
  std::uint64_t seed = 0;  // of hashes
  // What `fgd` weighs the fragmentation by; null: invalid_argument for a policy that has it.
  const TypicalTasks* typical = nullptr;
};

struct Program {
  penstock_program record{};
  std::vector<std::string> names;  // of record.ops: the filter or score that each came from
};

// invalid_argument names a filter or score that does not exist, a weight out of its range, a column
// that the table lacks; no_space if there are more than PENSTOCK_MAX_OPS.
Result<Program> compile_policy(const Policy& policy, const NodeTable& table,
                               const CompileOptions& options = {});

}  // namespace penstock
#endif
