// Crashes and standstills: whoever survives gets the right result or an error, and what the dead
// left is taken back.
#include "penstock/sim/incoherent/exercise.h"

namespace penstock::sim {
namespace {

// Errors with which a call may end when another rank has died.
bool is_end_of_comm(const Status& status) {
  return status.code() == Code::peer_dead || status.code() == Code::revoked ||
         status.code() == Code::deadline_exceeded;
}

// A process dies while it allocates and frees. What it held is taken back, and nothing else.
Outcome reclaim(const Options& options) {
  Run run("reclaim", options);
  run.set_machines(Machines::one);  // deaths of other machines are known to nobody
  run.limit_ranks(2, 4);
  const std::uint32_t victim = 1 + run.random().below(run.ranks());  // process 0 makes the pool
  run.config().halt = {HaltKind::kill, victim, 1 + run.random().below(6000), 0};
  run.make_world();
  for (std::uint32_t rank = 0; rank < run.ranks() && !run.failed(); ++rank) {
    run.spawn_rank(rank, [&run, rank](Pool& pool) -> Status {
      Random own(run.value(1, rank, 0));
      std::vector<Region> mine;
      for (int turn = 0; turn < 8; ++turn) {
        if (mine.empty() || own.chance(2)) {
          RegionRequest request;
          request.bytes = 1 + own.below(9000);
          PENSTOCK_ASSIGN(const Region region, pool.allocate(request));
          mine.push_back(region);
        } else {
          PENSTOCK_TRY(pool.free(mine.back()));
          mine.pop_back();
        }
      }
      for (const Region& region : mine) PENSTOCK_TRY(pool.free(region));
      return Status();
    });
  }
  run.run();
  if (!run.failed()) run.reclaim();
  run.check_and_destroy();
  return run.finish();
}

// A rank's process dies somewhere between mapping the pool and leaving the comm. The others get
// results or a reason, and afterwards all ranks meet again under the same name.
Outcome rank_dies(const Options& options) {
  Run run("rank_dies", options);
  run.set_machines(Machines::one);  // deaths of other machines are known to nobody
  run.limit_ranks(2, 4);
  const std::uint32_t victim = 1 + run.random().below(run.ranks());
  run.config().halt = {HaltKind::kill, victim, 1 + run.random().below(40'000), 0};
  const std::vector<CallSpec> specs = draw_calls(run.random(), 4, run.ranks(), 0);
  Arrivals arrivals;
  World& world = run.make_world();
  const auto spawn = [&](std::uint32_t rank, bool again) {
    run.spawn_rank(rank, [&, rank, again](Pool& pool) -> Status {
      CommConfig config = draw_comm(run, rank, "world");
      if (!again) config.timeout_ms = 200;
      Status status;
      {
        auto comm = Comm::join(pool, config);
        status = comm.ok() ? make_calls(run, pool, *comm.value(), specs, arrivals) : comm.status();
      }
      if (!again && world.has_halted() && is_end_of_comm(status)) return Status();
      return status;
    });
  };
  for (std::uint32_t rank = 0; rank < run.ranks() && !run.failed(); ++rank) spawn(rank, false);
  run.run();
  if (world.has_halted() && !run.failed()) {
    arrivals.of_call.clear();
    for (std::uint32_t rank = 0; rank < run.ranks(); ++rank) spawn(rank, true);
    run.run();
    run.reclaim();
  }
  run.check_and_destroy();
  return run.finish();
}

// A rank stands still for a while, shorter than the deadline: nobody notices more than the delay.
Outcome rank_pauses(const Options& options) {
  Run run("rank_pauses", options);
  run.limit_ranks(2, 4);
  const std::uint32_t victim = 1 + run.random().below(run.ranks());
  run.config().halt = {HaltKind::stop, victim, 1 + run.random().below(40'000),
                       1'000'000 * (1 + run.random().below(500))};
  const std::vector<CallSpec> specs = draw_calls(run.random(), 3, run.ranks(), 0);
  Arrivals arrivals;
  run.make_world();
  for (std::uint32_t rank = 0; rank < run.ranks() && !run.failed(); ++rank) {
    run.spawn_rank(rank, [&, rank](Pool& pool) -> Status {
      PENSTOCK_ASSIGN(const auto comm, Comm::join(pool, draw_comm(run, rank, "world")));
      return make_calls(run, pool, *comm, specs, arrivals);
    });
  }
  run.run();
  run.check_and_destroy();
  return run.finish();
}

// A rank gives up and says why; the others wait for it, and have to be told.
Outcome rank_aborts(const Options& options) {
  Run run("rank_aborts", options);
  run.limit_ranks(2, 5);
  const std::uint32_t who = run.random().below(run.ranks());
  const std::string reason = fmt::format("reason {}", run.value(7, 0, 0));
  const std::vector<CallSpec> specs = draw_calls(run.random(), 2, run.ranks(), 0);
  Arrivals arrivals;
  run.make_world();
  for (std::uint32_t rank = 0; rank < run.ranks() && !run.failed(); ++rank) {
    run.spawn_rank(rank, [&, rank](Pool& pool) -> Status {
      PENSTOCK_ASSIGN(const auto comm, Comm::join(pool, draw_comm(run, rank, "world")));
      const Status before = make_calls(run, pool, *comm, specs, arrivals);
      // Whoever is ahead may give up while others are still in the last call.
      if (!before.ok() && before.code() != Code::revoked) return before;
      if (rank == who) {
        PENSTOCK_TRY(before);
        comm->abort(reason);
        return Status();
      }
      const Status told = before.ok() ? comm->run(Call()) : before;
      if (told.code() == Code::revoked && told.message().find(reason) != std::string::npos) {
        return Status();
      }
      return error(Code::internal, "rank {} gave up with '{}', but a call ended with {}", who,
                   reason, told.to_string());
    });
  }
  run.run();
  run.reclaim();
  run.check_and_destroy();
  return run.finish();
}

}  // namespace

std::vector<Scenario> life_scenarios() {
  return {
      {"reclaim", "a process dies while it allocates; its regions are taken back", reclaim},
      {"rank_dies", "a rank dies; the others notice, and all meet again", rank_dies},
      {"rank_aborts", "a rank gives up; the others are told why", rank_aborts},
      {"rank_pauses", "a rank stands still for less than the deadline", rank_pauses},
  };
}

}  // namespace penstock::sim
