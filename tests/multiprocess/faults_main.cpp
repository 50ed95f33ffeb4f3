// Injects faults by hand: faults [--seed N] [--count N] [--list]
//
// Runs the scenarios of `count` seeds from `seed` on, prints each with what came of it, and ends
// with 1 if something was wrong. What a failing test prints can be repeated here.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "fault_scenario.h"
#include "ranks.h"

int main(int count, char** arguments) {
  using namespace penstock::test;
  std::uint64_t seed = 1;
  std::uint64_t scenarios = 1;
  bool list = false;
  for (int i = 1; i < count; ++i) {
    const bool more = i + 1 < count;
    if (std::strcmp(arguments[i], "--list") == 0) {
      list = true;
    } else if (std::strcmp(arguments[i], "--seed") == 0 && more) {
      seed = std::strtoull(arguments[++i], nullptr, 10);
    } else if (std::strcmp(arguments[i], "--count") == 0 && more) {
      scenarios = std::strtoull(arguments[++i], nullptr, 10);
    } else {
      std::fprintf(stderr, "usage: faults [--seed N] [--count N] [--list]\n");
      return 2;
    }
  }
  const ScopedPool pool(2, 24u << 20);
  int failures = 0;
  for (std::uint64_t end = seed + scenarios; seed < end; ++seed) {
    const Scenario scenario = Scenario::of(seed);
    std::printf("%s", scenario.to_string().c_str());
    std::fflush(stdout);
    if (list) {
      std::printf("\n");
      continue;
    }
    const Verdict verdict = run_scenario(scenario, pool.spec());
    std::printf(": %s%s%s\n", verdict.struck ? "struck" : "not reached",
                verdict.shrunk ? ", shrunk" : "",
                verdict.wrong.empty() ? "" : (", WRONG: " + verdict.wrong).c_str());
    if (!verdict.wrong.empty()) ++failures;
  }
  return failures > 0 ? 1 : 0;
}
