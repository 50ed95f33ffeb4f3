#include "penstock/sched/replay_shared.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

#include "penstock/base/platform.h"
#include "penstock/engine/choice.h"
#include "penstock/sched/fgd.h"
#include "penstock/sched/policy.h"
#include "penstock/sched/random.h"
#include "penstock/sched/shared_table_scheduler.h"
#include "penstock/sched/trace_table.h"

namespace penstock {
namespace {

constexpr std::uint32_t kRing = 64;
constexpr std::uint32_t kLog = 4096;
constexpr std::size_t kTasksAtATime = 64;

}  // namespace

std::uint64_t shared_replay_bytes(const ReplayConfig& config, const SharedReplayConfig& shared) {
  // A table of at most 80 cells and 256 bits a row, in the region of its own and twice in a reign;
  // room for a second reign, the log and the requests, and for what a pool keeps for itself.
  const std::uint64_t table = (config.nodes.size() + 64) * (80 * 8 + 32) + (64 << 10);
  const std::uint64_t requests =
      std::uint64_t{shared.schedulers} * kRing * (sizeof(SharedRequest) + 64);
  return 5 * table + 2 * kLog * kLogRecordBytes + 3 * requests + (16u << 20);
}

Result<SharedReplay> prepare_shared_replay(const ReplayConfig& config,
                                           const SharedReplayConfig& shared) {
  PENSTOCK_CHECK(config.pool != nullptr);
  if (shared.window < 1 || shared.window > kRing) {
    return error(Code::invalid_argument, "replay: a window of {} requests, expected 1 to {}",
                 shared.window, kRing);
  }
  SharedReplay replay;
  replay.name = config.table_name;
  PENSTOCK_ASSIGN(replay.arrivals, replay_arrivals(config));
  PENSTOCK_ASSIGN(const Policy policy, find_policy(config.policy));
  PENSTOCK_ASSIGN(auto engine, make_engine(config.engine, needs_of_decisions()));
  std::vector<TraceNode> nodes = config.nodes;
  if (config.shuffle_nodes) SplitMix64(~config.seed).shuffle(&nodes);
  PENSTOCK_ASSIGN(replay.table, make_trace_table(nodes, config.pods, std::move(engine),
                                                 {config.pool, config.table_name}));
  PENSTOCK_ASSIGN(const TypicalTasks typical, make_typical_tasks(*replay.table, config.pods));
  CompileOptions options;
  options.seed = config.seed;
  options.typical = &typical;
  PENSTOCK_ASSIGN(const Program program, compile_policy(policy, *replay.table, options));
  for (const TracePod& pod : config.pods) {
    PENSTOCK_ASSIGN(const Task task, make_trace_task(*replay.table, pod));
    replay.tasks.push_back(task.record);
  }
  for (const TraceNode& node : nodes) replay.capacity_milli += 1000.0 * node.gpus;
  for (const std::uint32_t pod : replay.arrivals) {
    replay.arrived_milli += static_cast<double>(config.pods[pod].num_gpu) *
                            static_cast<double>(config.pods[pod].gpu_milli);
  }
  SharedTableConfig board;
  board.name = replay.name;
  board.schedulers = shared.schedulers;
  board.binders = 1;
  board.ring = kRing;
  board.log = kLog;
  board.role_ms = 10000;
  PENSTOCK_TRY(SharedTable::create(*config.pool, config.table_name, program.record, board));
  return replay;
}

Result<SharedReplayShare> run_shared_replay(Pool& pool, const SharedReplay& replay,
                                            const SharedReplayConfig& shared, std::uint32_t index) {
  PENSTOCK_ASSIGN(auto engine, make_engine("simd,scalar"));
  PENSTOCK_ASSIGN(auto scheduler,
                  SharedScheduler::open(pool, replay.name, index, engine, shared.timeout_ms));
  SharedReplayShare share;
  const std::uint64_t began_ns = pool.platform().now_ns();
  std::size_t at = index;
  while (at < replay.arrivals.size()) {
    std::vector<SharedTask> tasks;
    for (; tasks.size() < kTasksAtATime && at < replay.arrivals.size(); at += shared.schedulers) {
      SharedTask& task = tasks.emplace_back();
      task.task = replay.tasks[replay.arrivals[at]];
      task.task.tie = at + 1;
      task.cookie = at;
    }
    PENSTOCK_ASSIGN(const auto placements,
                    scheduler->place(tasks, shared.window, shared.timeout_ms));
    for (const SharedPlacement& placement : placements) {
      ++share.arrived;
      share.placed += placement.status == PlacementStatus::placed;
      share.dropped += placement.status == PlacementStatus::no_node;
      if (placement.status == PlacementStatus::refused) {
        return error(Code::internal, "replay: a request of scheduler {} was refused", index);
      }
    }
  }
  share.conflicts = scheduler->statistics().conflicts;
  share.decisions = scheduler->statistics().decisions;
  share.seconds = static_cast<double>(pool.platform().now_ns() - began_ns) * 1e-9;
  return share;
}

Result<SharedReplayResult> finish_shared_replay(Pool& pool, const ReplayConfig& config,
                                                const SharedReplay& replay,
                                                const std::vector<SharedReplayShare>& shares) {
  PENSTOCK_TRY(SharedTable::end(pool, replay.name));
  SharedReplayResult result;
  result.policy = config.policy;
  result.seed = config.seed;
  result.schedulers = static_cast<std::uint32_t>(shares.size());
  for (const SharedReplayShare& share : shares) {
    result.total.arrived += share.arrived;
    result.total.placed += share.placed;
    result.total.dropped += share.dropped;
    result.total.conflicts += share.conflicts;
    result.total.decisions += share.decisions;
    result.total.seconds = std::max(result.total.seconds, share.seconds);
  }
  const TableView view = replay.table->view();
  double free_milli = 0;
  for (std::uint32_t s = 0; s < view.header->n_gpus; ++s) {
    for (std::uint32_t row = 0; row < view.header->rows; ++row) {
      free_milli += static_cast<double>(view.column(view.gpu, s)[row]);
    }
  }
  result.arrived_pct = 100 * replay.arrived_milli / replay.capacity_milli;
  result.gpu_alloc_pct = 100 * (1 - free_milli / replay.capacity_milli);
  if (result.total.seconds > 0) {
    result.decisions_per_second = static_cast<double>(result.total.arrived) / result.total.seconds;
  }
  const auto asked = static_cast<double>(result.total.placed + result.total.conflicts);
  if (asked > 0) result.conflict_pct = 100 * static_cast<double>(result.total.conflicts) / asked;
  return result;
}

std::string shared_replay_text(const std::vector<SharedReplayResult>& results) {
  std::string out = fmt::format("{:<15} {:>5} {:>10} {:>8} {:>8} {:>8} {:>9} {:>6} {:>12} {:>12}\n",
                                "policy", "seed", "schedulers", "arrived", "placed", "dropped",
                                "conflicts", "%", "GPU alloc %", "decisions/s");
  for (const SharedReplayResult& result : results) {
    fmt::format_to(std::back_inserter(out),
                   "{:<15} {:>5} {:>10} {:>8} {:>8} {:>8} {:>9} {:>6.1f} {:>12.3f} {:>12.0f}\n",
                   result.policy, result.seed, result.schedulers, result.total.arrived,
                   result.total.placed, result.total.dropped, result.total.conflicts,
                   result.conflict_pct, result.gpu_alloc_pct, result.decisions_per_second);
  }
  return out;
}

std::string shared_replay_json(const std::vector<SharedReplayResult>& results) {
  using Json = nlohmann::ordered_json;
  const auto rounded = [](double value) { return std::round(value * 1000) / 1000; };
  Json list = Json::array();
  for (const SharedReplayResult& result : results) {
    list.push_back({{"policy", result.policy},
                    {"seed", result.seed},
                    {"schedulers", result.schedulers},
                    {"arrived", result.total.arrived},
                    {"placed", result.total.placed},
                    {"dropped", result.total.dropped},
                    {"conflicts", result.total.conflicts},
                    {"conflict_pct", rounded(result.conflict_pct)},
                    {"arrived_pct", rounded(result.arrived_pct)},
                    {"gpu_alloc_pct", rounded(result.gpu_alloc_pct)},
                    {"seconds", result.total.seconds},
                    {"decisions_per_second", std::round(result.decisions_per_second)}});
  }
  return Json{{"results", std::move(list)}}.dump(2) + "\n";
}

}  // namespace penstock
