// What `./run bench engines` measures on one engine.
#ifndef PENSTOCK_TESTS_BENCH_ENGINES_MEASURE_H_
#define PENSTOCK_TESTS_BENCH_ENGINES_MEASURE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "penstock/engine/engine.h"
#include "penstock/memory/pool.h"

namespace penstock::bench {

struct Options {
  bool quick = false;
  std::vector<std::string> only;  // engines by the beginning of their names; empty: all
  int repeat = 7;                 // repetitions, of which the median counts
};

// One line. Bytes are all that are read or written once: sources and destination together.
struct Figure {
  std::string engine;
  bool simulated = false;
  std::string operation;      // "COPY", "REDUCE sum f32", "SELECT"
  std::uint32_t sources = 0;  // 0: SELECT
  std::uint64_t size = 0;     // bytes of an operand, or nodes
  double seconds = 0;         // median, of one descriptor or one decision
  double amount = 0;          // bytes of one descriptor; 1 for a decision
  double limit_seconds = 0;   // in which memory alone would be done
  double cycles = 0;  // of the engine's own clock, per descriptor or decision; 0: it counts none
  std::string unsupported;  // why it was not measured

  double rate() const { return seconds > 0 ? amount / seconds : 0; }
};

// The engine's figures, in the order in which they are printed. `pool` has room for nine operands
// of 16 MiB. An engine that fails in the middle ends with a Figure that says so.
std::vector<Figure> measure_engine(const std::string& name, bool simulated, Pool& pool,
                                   const Options& options);

}  // namespace penstock::bench
#endif
