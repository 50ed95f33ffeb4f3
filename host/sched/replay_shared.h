// A replay by several processes at once, over a shared table (shared_table.h): every scheduler
// takes its share of what arrives, and one process binds.
#ifndef PENSTOCK_SCHED_REPLAY_SHARED_H_
#define PENSTOCK_SCHED_REPLAY_SHARED_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "penstock/base/status.h"
#include "penstock/memory/pool.h"
#include "penstock/sched/node_table.h"
#include "penstock/sched/replay.h"

namespace penstock {

struct SharedReplayConfig {
  std::uint32_t schedulers = 2;      // 1..64
  std::uint32_t window = 8;          // requests of a scheduler that are under way: 1..64
  std::uint32_t timeout_ms = 60000;  // for an answer of the binder
};

// What is made before the processes are: the table, and what arrives in which order.
struct SharedReplay {
  std::string name;  // of the shared table
  std::unique_ptr<NodeTable> table;
  std::vector<penstock_task> tasks;     // of the list's pods
  std::vector<std::uint32_t> arrivals;  // indices into tasks
  double arrived_milli = 0;             // GPU demand of the arrivals
  double capacity_milli = 0;
};

// The bytes that a pool for this replay needs.
std::uint64_t shared_replay_bytes(const ReplayConfig& config, const SharedReplayConfig& shared);

// Shares a table of the trace in config.pool (not null) under the name `config.table_name`.
Result<SharedReplay> prepare_shared_replay(const ReplayConfig& config,
                                           const SharedReplayConfig& shared);

// What one scheduler did. Plain data, so that it can be sent through a pipe.
struct SharedReplayShare {
  std::uint64_t arrived = 0;
  std::uint64_t placed = 0;
  std::uint64_t dropped = 0;  // fit nowhere
  std::uint64_t conflicts = 0;
  std::uint64_t decisions = 0;
  double seconds = 0;
};

// Places every schedulers-th arrival from `index` on, as scheduler `index` over a mapping of its
// own.
Result<SharedReplayShare> run_shared_replay(Pool& pool, const SharedReplay& replay,
                                            const SharedReplayConfig& shared, std::uint32_t index);

struct SharedReplayResult {
  std::string policy;
  std::uint64_t seed = 0;
  std::uint32_t schedulers = 0;
  SharedReplayShare total;  // seconds: of the slowest
  double arrived_pct = 0;
  double gpu_alloc_pct = 0;  // as the table has it in the end
  double decisions_per_second = 0;
  double conflict_pct = 0;  // of what was asked
};
// Ends the sharing, and adds up.
Result<SharedReplayResult> finish_shared_replay(Pool& pool, const ReplayConfig& config,
                                                const SharedReplay& replay,
                                                const std::vector<SharedReplayShare>& shares);

std::string shared_replay_text(const std::vector<SharedReplayResult>& results);
std::string shared_replay_json(const std::vector<SharedReplayResult>& results);

}  // namespace penstock
#endif
