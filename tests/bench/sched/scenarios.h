// What `./run bench sched` measures.
#ifndef PENSTOCK_TESTS_BENCH_SCHED_SCENARIOS_H_
#define PENSTOCK_TESTS_BENCH_SCHED_SCENARIOS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "measure.h"

namespace penstock::bench {

struct Options {
  std::vector<std::uint32_t> nodes = {1000, 5000, 10000, 50000, 100000};
  std::string only;
  std::uint64_t tasks = 100000;
  std::uint32_t repeat = 5;
  double scan_seconds = 0.5;  // spent on each line that scans, and on each limit
};

std::vector<Line> run_scenarios(const Options& options);

}  // namespace penstock::bench
#endif
