// How `./run bench sched` takes times.
#ifndef PENSTOCK_TESTS_BENCH_SCHED_MEASURE_H_
#define PENSTOCK_TESTS_BENCH_SCHED_MEASURE_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace penstock::bench {

// What the calling thread has had of a processor, which is what counts where others use it, too.
std::uint64_t thread_ns();
// False where the system refuses.
bool pin_to_cpu(int cpu);

// The p-th percentile (0..100) of the times, which are sorted; 0 for none.
double percentile(const std::vector<std::uint32_t>& sorted, double p);

// Nanoseconds in which one core reads so many bytes, at its fastest.
double read_ns(std::uint64_t bytes, double seconds);

struct Line {
  std::uint32_t nodes = 0;
  std::string scenario;
  std::string how;              // "scalar scan", "simd scan", "incremental"
  std::uint64_t decisions = 0;  // of one repetition
  double per_second = 0;        // median over the repetitions
  double p50_us = 0;            // of a single decision
  double p99_us = 0;
  double max_us = 0;
  double limit_per_second = 0;  // of a scan that only reads what it has to; 0: none is named
  std::string note;
};

std::string as_text(const std::vector<Line>& lines);
std::string as_json(const std::vector<Line>& lines);
std::string as_markdown(const std::vector<Line>& lines);

}  // namespace penstock::bench
#endif
