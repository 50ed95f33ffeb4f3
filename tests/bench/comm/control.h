// What the ranks of a measurement share besides the library under test, which plays no part in it:
// a barrier, a common moment to start, an exchange of numbers, and a probe of where the CPUs are.
#ifndef PENSTOCK_TESTS_BENCH_COMM_CONTROL_H_
#define PENSTOCK_TESTS_BENCH_COMM_CONTROL_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "problem.h"

namespace penstock::bench {

// Ticks of a clock that all CPUs share, and how many make a nanosecond.
std::uint64_t ticks();
double ticks_per_ns();
void pause_cpu();
// CPUs that this process may run on, in order; asked for once.
const std::vector<int>& allowed_cpus();
void pin_to(int cpu);
void unpin();

struct ControlPage {
  struct alignas(64) Line {
    std::atomic<std::uint64_t> value;
    std::atomic<std::uint64_t> start;
  };
  std::array<Line, kMaxRanks> arrived;
  Line go;
  std::array<Line, 2> probe;
  std::array<std::array<double, 8>, kMaxRanks> values;
};

// One per rank. Every method but rank and size is called by all ranks, in the same order. A rank
// that waits longer than a minute ends its process with a message.
class Control {
 public:
  // Maps the file, which has been made with room for a page of it and is all zero at first.
  // has_helpers: see Peer.
  Control(const std::string& path, std::uint32_t rank, std::uint32_t size, bool has_helpers);

  bool oversubscribed() const { return size_ > allowed_cpus().size(); }
  void barrier();
  // A barrier after which all ranks go on at the same tick, which is returned; where not every rank
  // has a CPU of its own, at once, and the tick is this rank's.
  std::uint64_t start_together();
  // Everybody's numbers, rank by rank. At most 8 each.
  std::vector<double> exchange(const std::vector<double>& mine);
  double max(double mine);
  // One-way time of a cache line between the first two CPUs in ns, the same on every rank; 0 where
  // there is one CPU or rank only. Ranks 0 and 1 are bound to those CPUs for it.
  double probe(bool pinned);

 private:
  std::uint64_t meet(bool together);
  template <typename Ready>
  void wait(const Ready& ready, const char* what);

  ControlPage* page_;
  std::uint32_t rank_;
  std::uint32_t size_;
  bool has_helpers_;
  std::uint64_t turn_ = 0;
  std::uint64_t probes_ = 0;
};

// The two CPUs of a virtual machine may share a cache or not, and change over between the two: 50
// to 130 ns one way while they do, about 250 while they don't. Above this time they don't.
inline constexpr double kFarNs = 170;

}  // namespace penstock::bench
#endif
