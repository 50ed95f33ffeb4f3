// Comms that come out of comms: shrunk after a death, split, grown.
#include "penstock/sim/incoherent/exercise.h"

namespace penstock::sim {
namespace {

// Calls on a comm of whatever size, the same on all of its ranks. `which` keeps the inputs of
// several such comms apart.
Status make_new_calls(Run& run, Pool& pool, Comm& comm, std::uint64_t which, Arrivals& arrivals) {
  Random random(run.value(4000 + which, comm.size(), 0));
  return make_calls(run, pool, comm, draw_calls(random, 2, comm.size(), 100 * which), arrivals);
}

// A rank's process dies; those whose calls fail go on without it.
Outcome shrink(const Options& options) {
  Run run("shrink", options);
  run.set_machines(Machines::one);  // a death on another machine is known by silence only
  run.limit_ranks(2, 5);
  const std::uint32_t victim = 1 + run.random().below(run.ranks());
  run.config().halt = {HaltKind::kill, victim, 1 + run.random().below(40'000), 0};
  const std::vector<CallSpec> specs = draw_calls(run.random(), 4, run.ranks(), 0);
  Arrivals arrivals;
  // By the size of the comm that is left: a later death does not come, but a rank that noticed
  // nothing is not in it.
  std::map<std::uint32_t, Arrivals> after;
  World& world = run.make_world();
  for (std::uint32_t rank = 0; rank < run.ranks() && !run.failed(); ++rank) {
    run.spawn_rank(rank, [&, rank](Pool& pool) -> Status {
      CommConfig config = draw_comm(run, rank, "world");
      config.timeout_ms = 300;
      auto joined = Comm::join(pool, config);
      if (!joined.ok()) return world.has_halted() ? Status() : joined.status();
      Comm& comm = *joined.value();
      const Status status = make_calls(run, pool, comm, specs, arrivals);
      const bool ended = status.code() == Code::peer_dead || status.code() == Code::revoked ||
                         status.code() == Code::deadline_exceeded;
      if (!world.has_halted() || !ended) return status;
      PENSTOCK_ASSIGN(const auto left, comm.shrink());
      if (left->epoch() <= comm.epoch()) {
        return error(Code::internal, "epoch {} after {}", left->epoch(), comm.epoch());
      }
      return make_new_calls(run, pool, *left, 1, after[left->size()])
          .with_context(fmt::format("after shrinking to {} ranks", left->size()));
    });
  }
  run.run();
  if (world.has_halted() && !run.failed()) run.reclaim();
  run.check_and_destroy();
  return run.finish();
}

Outcome split(const Options& options) {
  Run run("split", options);
  const std::uint32_t colors = 1 + run.random().below(2);
  Arrivals arrivals[4];
  run.make_world(2);  // room for both comms in every arena
  for (std::uint32_t rank = 0; rank < run.ranks() && !run.failed(); ++rank) {
    run.spawn_rank(rank, [&, rank](Pool& pool) -> Status {
      PENSTOCK_ASSIGN(const auto comm, Comm::join(pool, draw_comm(run, rank, "world")));
      PENSTOCK_TRY(make_new_calls(run, pool, *comm, 1, arrivals[0]));
      const std::uint32_t color = rank % (colors + 1);
      // The last color stays out, in some runs; keys turn the order round.
      const bool out = color == 2;
      PENSTOCK_ASSIGN(const auto part, comm->split(out ? -1 : static_cast<std::int32_t>(color),
                                                   -static_cast<std::int32_t>(rank)));
      if (out != (part == nullptr))
        return error(Code::internal, "split gives a comm or not, wrongly");
      if (part) PENSTOCK_TRY(make_new_calls(run, pool, *part, 2 + color, arrivals[1 + color]));
      return make_new_calls(run, pool, *comm, 5, arrivals[0]);
    });
  }
  run.run();
  run.check_and_destroy();
  return run.finish();
}

// All ranks but the last are in the comm; the last is taken in.
Outcome grow(const Options& options) {
  Run run("grow", options);
  run.limit_ranks(2, 5);
  const std::uint32_t before = run.ranks() - 1;
  Arrivals first;
  Arrivals second;
  run.make_world(2);  // room for both comms in every arena
  for (std::uint32_t rank = 0; rank < run.ranks() && !run.failed(); ++rank) {
    run.spawn_rank(rank, [&, rank](Pool& pool) -> Status {
      CommConfig config = draw_comm(run, rank, "world");
      if (rank == before) {
        config.newcomer = true;
        PENSTOCK_ASSIGN(const auto grown, Comm::join(pool, config));
        return make_new_calls(run, pool, *grown, 2, second);
      }
      config.size = before;
      PENSTOCK_ASSIGN(const auto comm, Comm::join(pool, config));
      PENSTOCK_TRY(make_new_calls(run, pool, *comm, 1, first));
      PENSTOCK_ASSIGN(const auto grown, comm->grow(run.ranks()));
      return make_new_calls(run, pool, *grown, 2, second);
    });
  }
  run.run();
  run.check_and_destroy();
  return run.finish();
}

}  // namespace

std::vector<Scenario> regroup_scenarios() {
  return {
      {"shrink", "a rank dies; those who notice go on without it", shrink},
      {"split", "a comm is split by color and used on", split},
      {"grow", "a comm takes in another rank", grow},
  };
}

}  // namespace penstock::sim
