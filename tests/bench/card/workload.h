// What the card report measures: work on one queue of one card, in cycles.
#ifndef PENSTOCK_TESTS_BENCH_CARD_WORKLOAD_H_
#define PENSTOCK_TESTS_BENCH_CARD_WORKLOAD_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "machine.h"
#include "penstock/descriptor/descriptor.h"
#include "penstock/descriptor/node_table.h"

namespace penstock::bench {

// One line of the report. `limit` is what the memory port (a beat of 64 bytes per cycle and
// direction) or the scan (rows over lanes, over interval) needs at least.
struct Figure {
  std::string group;  // "throughput", "latency", "select"
  std::string name;   // "REDUCE sum f32, 4 sources of 64 KiB"
  std::string type;   // of throughput
  std::uint32_t sources = 0;
  std::uint64_t bytes = 0;  // of a source
  std::uint64_t rows = 0;
  double cycles = 0;  // per descriptor, or per decision
  double limit = 0;   // cycles; 0: none
};

// A machine with a queue, and an arena that its window covers whole.
class Bench {
 public:
  Bench(const std::string& machine, const Latency& latency, std::uint64_t arena_bytes);
  ~Bench();

  std::byte* arena() { return arena_; }
  std::uint64_t arena_bytes() const { return arena_bytes_; }
  Machine& machine() { return *machine_; }

  // Submits all records with one doorbell and returns the cycles, counted from the doorbell, at
  // which their completions were there, in order. Aborts with a sentence if one does not come or
  // fails.
  std::vector<std::uint64_t> run(const std::vector<penstock_descriptor>& records,
                                 std::uint64_t granularity);

 private:
  void wide(std::uint32_t offset, std::uint64_t value);

  std::vector<std::byte> memory_;
  std::byte* arena_;
  std::byte* rings_;
  std::uint64_t arena_bytes_;
  std::uint32_t tail_ = 0;
  std::unique_ptr<Machine> machine_;
};

struct Options {
  bool quick = false;
  std::vector<std::string> only;  // parts of names; empty: all
  Latency latency;
};

// All figures of one machine, each printed to stderr as it comes (`progress`).
std::vector<Figure> measure(const std::string& machine, const Options& options, bool progress);

// Bytes of sources per second of this computer's time at which a machine reduces two sources of
// 16 MiB of f32: how long who works with the simulation waits. The median of a few.
double source_bytes_per_second(const std::string& machine, const Latency& latency);

}  // namespace penstock::bench
#endif
