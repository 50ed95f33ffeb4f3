// One injected fault, or two, with everything around them: made from a seed, run, and judged.
//
// The victim's process runs over a Platform of its own that counts how often it passes a door to
// the system (publishes lines, observes them, fences, waits), and kills or stops the process at the
// n-th time within a phase. So every step of a collective or of a meeting is a point where a rank
// can be lost, and production code knows nothing of it.
#ifndef PENSTOCK_TESTS_MULTIPROCESS_FAULT_SCENARIO_H_
#define PENSTOCK_TESTS_MULTIPROCESS_FAULT_SCENARIO_H_

#include <cstdint>
#include <string>

#include "penstock/comm/plan.h"

namespace penstock::test {

enum class Phase { join, call, split, shrink, leave };
// Where in the phase: at the n-th time that the victim does this. `time`: n microseconds into it.
enum class Point { publish, observe, fence, wait, any, time };
enum class Blow { kill, stop };  // stop: until well after the others' deadline

struct Fault {
  bool present = false;
  std::uint32_t victim = 0;
  Phase phase = Phase::call;
  Point point = Point::any;
  std::uint32_t nth = 1;
  Blow blow = Blow::kill;
};

struct Scenario {
  std::uint64_t seed = 0;
  std::uint32_t ranks = 2;
  Collective collective = Collective::all_reduce;
  bool blocking = true;
  bool incoherent = true;  // lines are written back and invalidated, so that points are many
  std::uint32_t count = 1;
  Fault first;
  Fault second;
  std::uint32_t timeout_ms = 0;

  static Scenario of(std::uint64_t seed);
  std::string to_string() const;
};

// What came of it.
struct Verdict {
  std::string wrong;    // "" if all is as it must be
  bool struck = false;  // the first fault came to its point before the phase was over
  bool struck_second = false;
  bool shrunk = false;  // survivors went on in a smaller comm
};

// Runs the scenario in processes of its own over this pool. Not from a process with threads.
Verdict run_scenario(const Scenario& scenario, const std::string& pool);

}  // namespace penstock::test
#endif
