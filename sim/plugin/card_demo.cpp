// penstock-card-demo [BUS]: one all-reduce and a few placements on a simulated card, and the same
// by the definition. Ends with 1 if a bit differs.
#include <fmt/core.h>

#include <cstdio>
#include <cstring>
#include <thread>

#include "penstock/comm/world.h"
#include "penstock/sched/node_table.h"

namespace penstock {
namespace {

constexpr std::uint32_t kRanks = 3;
constexpr std::uint64_t kCount = 3001;  // no multiple of anything
constexpr std::uint64_t kPoolBytes = std::uint64_t{16} << 20;
constexpr std::uint32_t kNodes = 40;
constexpr int kTasks = 5;

std::uint64_t mix(std::uint64_t z) {
  z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
  return z ^ (z >> 27);
}

// One rank's part, with its buffers in the pool, where a card reaches them.
Result<std::vector<std::uint16_t>> reduce_as(std::uint32_t rank, const std::string& spec,
                                             const std::string& engine, std::string* executed) {
  PENSTOCK_ASSIGN(const std::unique_ptr<Pool> pool, Pool::map(Platform::host(), spec));
  CommConfig config;
  config.name = "card-demo";
  config.rank = rank;
  config.size = kRanks;
  config.engine = engine;
  config.timeout_ms = 120000;
  PENSTOCK_ASSIGN(const std::unique_ptr<Comm> comm, Comm::join(*pool, config));
  *executed = comm->engine().description;
  RegionRequest request;
  request.bytes = 2 * kCount * sizeof(std::uint16_t);
  PENSTOCK_ASSIGN(const Region region, pool->allocate(request));
  auto* send = reinterpret_cast<std::uint16_t*>(pool->resolve(region.address, request.bytes));
  for (std::uint64_t i = 0; i < kCount; ++i) {
    // bf16 from 2^-10 to 2^10, of both signs.
    const std::uint64_t bits = mix(i * kRanks + rank + 1);
    send[i] = static_cast<std::uint16_t>((bits & 0x807f) | (117 + bits / 256 % 20) << 7);
  }
  Call call;
  call.collective = Collective::all_reduce;
  call.send = send;
  call.recv = send + kCount;
  call.count = kCount;
  call.type = PENSTOCK_BF16;
  call.redop = PENSTOCK_AVG;
  PENSTOCK_TRY(comm->run(call));
  std::vector<std::uint16_t> result(send + kCount, send + 2 * kCount);
  PENSTOCK_TRY(pool->free(region));
  return result;
}

Result<std::vector<std::uint16_t>> all_reduce(Pool& pool, const std::string& engine,
                                              std::string* executed) {
  std::vector<Result<std::vector<std::uint16_t>>> results(
      kRanks, error(Code::internal, "a rank did not run"));
  std::vector<std::string> engines(kRanks);
  std::vector<std::thread> ranks;
  for (std::uint32_t rank = 0; rank < kRanks; ++rank)
    ranks.emplace_back(
        [&, rank] { results[rank] = reduce_as(rank, pool.spec(), engine, &engines[rank]); });
  for (std::thread& rank : ranks) rank.join();
  *executed = engines[0];
  for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
    if (!results[rank].ok())
      return results[rank].status().with_context(fmt::format("rank {}", rank));
    if (results[rank].value() != results[0].value())
      return error(Code::internal, "ranks 0 and {} have different results", rank);
  }
  return results[0];
}

// Tasks that fill the nodes up, each of which sees those before it.
Result<std::vector<NodeDecision>> place(Pool& pool, const std::string& engine) {
  PENSTOCK_ASSIGN(std::shared_ptr<Engine> made, make_engine(engine));
  NodeTableConfig config;
  config.capacity = kNodes;
  config.resources = {{"cpu", "milli"}, {"memory", "MiB"}};
  config.bit_columns = 16;
  PENSTOCK_ASSIGN(const std::unique_ptr<NodeTable> table, NodeTable::create(&pool, made, config));
  if (table->engine_name() != made->capabilities().name)
    return error(Code::unsupported, "the table is placed by {}", table->engine_name());
  std::vector<NodeSpec> nodes(kNodes);
  for (std::uint32_t n = 0; n < kNodes; ++n) {
    nodes[n].facts.name = fmt::format("node-{:02}", n);
    nodes[n].allocatable = {4000 + static_cast<std::int64_t>(mix(n + 1) % 9) * 1000,
                            8192 + static_cast<std::int64_t>(mix(n + 77) % 5) * 4096};
  }
  PENSTOCK_TRY(table->add_nodes(nodes));
  std::vector<Task> tasks(kTasks);
  for (int t = 0; t < kTasks; ++t) {
    tasks[t].name = fmt::format("task-{}", t);
    tasks[t].record.request[0] = tasks[t].record.scored_request[0] = 1500 + 700 * t;
    tasks[t].record.request[1] = tasks[t].record.scored_request[1] = 6000 - 900 * t;
  }
  Policy policy;
  policy.name = "spread-out";
  policy.filters = {"unschedulable", "fit"};
  policy.scores = {{"least-allocated", 1}, {"balanced-allocation", 1}};
  return table->place(policy, tasks, true);
}

Status run(const std::string& card) {
  PENSTOCK_ASSIGN(const TemporaryPool pool,
                  TemporaryPool::make(Platform::host(), "", 1, kPoolBytes));
  std::string by_card, by_definition;
  PENSTOCK_ASSIGN(const std::vector<std::uint16_t> got, all_reduce(pool.pool(), card, &by_card));
  PENSTOCK_ASSIGN(const std::vector<std::uint16_t> expected,
                  all_reduce(pool.pool(), "scalar", &by_definition));
  fmt::print("   all-reduce, average of {} bf16 of {} ranks, each with {}\n", kCount, kRanks,
             by_card);
  if (got != expected) return error(Code::internal, "all-reduce: its bits are not those of scalar");
  fmt::print("   its {} bytes are those of scalar\n", kCount * 2);

  PENSTOCK_ASSIGN(const std::vector<NodeDecision> placed, place(pool.pool(), card));
  PENSTOCK_ASSIGN(const std::vector<NodeDecision> defined, place(pool.pool(), "scalar"));
  for (int t = 0; t < kTasks; ++t) {
    const NodeDecision& a = placed[t];
    const NodeDecision& b = defined[t];
    fmt::print("   task-{} goes to {} with score {}, {} nodes were possible\n", t, a.node, a.score,
               a.feasible);
    if (a.row != b.row || a.score != b.score || a.feasible != b.feasible)
      return error(Code::internal, "task-{}: scalar places it on {} with {}", t, b.node, b.score);
  }
  fmt::print("   scalar places each task alike\n");
  return {};
}

}  // namespace
}  // namespace penstock

int main(int argc, char** argv) {
  const std::string bus = argc > 1 ? argv[1] : "";
  const penstock::Status status = penstock::run(bus.empty() ? "card" : "card:" + bus);
  if (status.ok()) return 0;
  fmt::print(stderr, "penstock-card-demo: {}\n", status.to_string());
  return status.code() == penstock::Code::not_found ? 2 : 1;
}
