// Every collective, alone and mixed, blocking and not, on one comm or several.
#include "penstock/sim/incoherent/exercise.h"

namespace penstock::sim {
namespace {

using Body = std::function<Status(Run& run, Pool& pool, std::uint32_t rank)>;

Outcome run_ranks(Run& run, const Body& body) {
  run.make_world();
  for (std::uint32_t rank = 0; rank < run.ranks() && !run.failed(); ++rank) {
    run.spawn_rank(rank, [&run, rank, &body](Pool& pool) { return body(run, pool, rank); });
  }
  run.run();
  run.check_and_destroy();
  return run.finish();
}

Outcome one_collective(Collective collective, const Options& options) {
  Run run(collective_name(collective), options);
  const std::vector<CallSpec> specs =
      draw_calls(run.random(), 1 + run.random().below(3), run.ranks(), 0, &collective);
  Arrivals arrivals;
  return run_ranks(run, [&](Run&, Pool& pool, std::uint32_t rank) -> Status {
    PENSTOCK_ASSIGN(const auto comm, Comm::join(pool, draw_comm(run, rank, "world")));
    return make_calls(run, pool, *comm, specs, arrivals);
  });
}

template <Collective collective>
Outcome alone(const Options& options) {
  return one_collective(collective, options);
}

Outcome sequence(const Options& options) {
  Run run("sequence", options);
  const std::vector<CallSpec> specs =
      draw_calls(run.random(), 2 + run.random().below(8), run.ranks(), 0);
  Arrivals arrivals;
  return run_ranks(run, [&](Run&, Pool& pool, std::uint32_t rank) -> Status {
    PENSTOCK_ASSIGN(const auto comm, Comm::join(pool, draw_comm(run, rank, "world")));
    return make_calls(run, pool, *comm, specs, arrivals);
  });
}

Outcome overlap(const Options& options) {
  Run run("overlap", options);
  const std::vector<CallSpec> specs =
      draw_calls(run.random(), 2 + run.random().below(5), run.ranks(), 0);
  Arrivals arrivals;
  return run_ranks(run, [&](Run&, Pool& pool, std::uint32_t rank) -> Status {
    PENSTOCK_ASSIGN(const auto comm, Comm::join(pool, draw_comm(run, rank, "world")));
    return make_calls_overlapping(run, pool, *comm, specs, arrivals);
  });
}

// The comm is left and made again under its name, by each rank as soon as it has left; or with
// other ranks, so that other hosts write other lines, once all have left.
Outcome rejoin(const Options& options) {
  Run run("rejoin", options);
  const std::uint32_t lives = 2 + run.random().below(2);
  const std::uint32_t shift = run.random().below(2);
  std::uint32_t left = 0;
  std::vector<std::vector<CallSpec>> specs;
  std::vector<Arrivals> arrivals;
  for (std::uint32_t life = 0; life < lives; ++life) {
    specs.push_back(draw_calls(run.random(), 1 + run.random().below(2), run.ranks(), 0));
    arrivals.emplace_back();
  }
  return run_ranks(run, [&](Run&, Pool& pool, std::uint32_t rank) -> Status {
    for (std::uint32_t life = 0; life < lives; ++life) {
      const std::uint32_t place = (rank + life * shift) % run.ranks();
      {
        PENSTOCK_ASSIGN(const auto comm, Comm::join(pool, draw_comm(run, place, "world")));
        PENSTOCK_TRY(make_calls(run, pool, *comm, specs[life], arrivals[life]));
      }
      ++left;
      while (shift != 0 && !run.failed() && left < run.ranks() * (life + 1))
        pool.platform().yield();
    }
    return Status();
  });
}

// Two comms over the same ranks, in opposite order of rank, used in turn.
Outcome two_comms(const Options& options) {
  Run run("two_comms", options);
  std::vector<CallSpec> specs[2];
  Arrivals arrivals[2];
  for (int which = 0; which < 2; ++which) {
    specs[which] = draw_calls(run.random(), 1 + run.random().below(3), run.ranks(), 0);
  }
  return run_ranks(run, [&](Run&, Pool& pool, std::uint32_t rank) -> Status {
    PENSTOCK_ASSIGN(const auto one, Comm::join(pool, draw_comm(run, rank, "one")));
    PENSTOCK_ASSIGN(const auto other,
                    Comm::join(pool, draw_comm(run, run.ranks() - 1 - rank, "other")));
    PENSTOCK_TRY(make_calls(run, pool, *one, specs[0], arrivals[0]));
    return make_calls(run, pool, *other, specs[1], arrivals[1]);
  });
}

}  // namespace

std::vector<Scenario> collective_scenarios() {
  return {
      {"all_reduce", "every rank gets the fold of all", alone<Collective::all_reduce>},
      {"broadcast", "every rank gets the root's vector", alone<Collective::broadcast>},
      {"reduce", "the root gets the fold of all", alone<Collective::reduce>},
      {"all_gather", "every rank gets every part", alone<Collective::all_gather>},
      {"reduce_scatter", "every rank gets its part of the fold", alone<Collective::reduce_scatter>},
      {"all_to_all", "every rank gets its part from every rank", alone<Collective::all_to_all>},
      {"gather", "the root gets every part", alone<Collective::gather>},
      {"scatter", "every rank gets its part of the root's vector", alone<Collective::scatter>},
      {"send_recv", "one rank gets another's vector", alone<Collective::send_recv>},
      {"barrier", "nobody passes before all have come", alone<Collective::barrier>},
      {"sequence", "collectives of all kinds one after another", sequence},
      {"overlap", "several calls on their way at once", overlap},
      {"rejoin", "a comm is left and made again under its name", rejoin},
      {"two_comms", "two comms of the same ranks", two_comms},
  };
}

}  // namespace penstock::sim
