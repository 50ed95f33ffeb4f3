// The main function of every measuring program: parses the driver's arguments, starts the ranks
// (for libraries without a launcher), and writes one JSON object a line for each row.
#ifndef PENSTOCK_TESTS_BENCH_COMM_RANK_MAIN_H_
#define PENSTOCK_TESTS_BENCH_COMM_RANK_MAIN_H_

#include <memory>
#include <string>
#include <vector>

#include "control.h"
#include "measure.h"
#include "peer.h"

namespace penstock::bench {

struct RankOptions {
  std::uint32_t ranks = 2;
  std::vector<Collective> collectives;
  std::vector<Type> types = {Type::f32};
  std::vector<std::uint64_t> sizes;
  std::string control;  // file of a zeroed ControlPage
  std::string out;      // rows are appended to it
  std::string peer;
  std::string config;
  bool realtime = false;  // under SCHED_FIFO, or at nice -20 with more ranks than CPUs
  MeasureOptions measure;

  std::uint64_t largest() const;  // bytes that each buffer needs at least
};

// Ends the process with a message when an argument is wrong.
RankOptions parse_rank_options(int argc, char** argv);

// Forks the ranks and returns the rank in each; the caller's process waits and exits: 0 when all
// ranks ended well. `at_end` runs there before. A rank that fails ends the others.
std::uint32_t fork_ranks(std::uint32_t ranks, void (*at_end)() = nullptr);

// Pins the rank (unless it has helpers), measures everything, writes the rows. Returns the exit
// status: 1 if a result was wrong.
int run_rank(Peer& peer, const RankOptions& options);

}  // namespace penstock::bench
#endif
