// Faults by the hundred: whatever rank is lost, at whatever point, the others are told in time and
// by name, or have a right result, go on without it, and leave the pool clean.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>

#include "fault_scenario.h"
#include "ranks.h"

namespace penstock::test {
namespace {

// Scenarios mostly wait, so that several may run side by side.
constexpr std::uint32_t kWorkers = 4;
constexpr std::uint32_t kFaultsPerWorker = (PENSTOCK_FAULTS + kWorkers - 1) / kWorkers;

// Runs the seeds worker + 1, worker + 1 + kWorkers, ... until enough faults came about.
std::string work(std::uint32_t worker) {
  const ScopedPool pool(2, 24u << 20);
  std::uint32_t struck = 0;
  std::uint32_t second = 0;
  std::uint32_t shrunk = 0;
  std::uint64_t seed = worker + 1;
  std::uint32_t scenarios = 0;
  for (; struck < kFaultsPerWorker && scenarios < 4 * kFaultsPerWorker; seed += kWorkers) {
    const Scenario scenario = Scenario::of(seed);
    const Verdict verdict = run_scenario(scenario, pool.spec());
    ++scenarios;
    struck += verdict.struck ? 1 : 0;
    second += verdict.struck_second ? 1 : 0;
    shrunk += verdict.shrunk ? 1 : 0;
    if (verdict.wrong.empty()) continue;
    return fmt::format("WRONG {}\n  {}\n  repeat with: faults --seed {}", verdict.wrong,
                       scenario.to_string(), seed);
  }
  return fmt::format("{} {} {} {}", struck, second, shrunk, scenarios);
}

TEST(Faults, AreToldInTimeAndSurvived) {
  Ranks workers(kWorkers, work);
  std::uint32_t struck = 0;
  std::uint32_t second = 0;
  std::uint32_t shrunk = 0;
  std::uint32_t scenarios = 0;
  for (const RankEnd& end : workers.join(PENSTOCK_FAULTS_SECONDS)) {
    std::uint32_t counts[4] = {};
    const bool counted = std::sscanf(end.message.c_str(), "%u %u %u %u", &counts[0], &counts[1],
                                     &counts[2], &counts[3]) == 4;
    EXPECT_TRUE(counted) << end.message;
    struck += counts[0];
    second += counts[1];
    shrunk += counts[2];
    scenarios += counts[3];
  }
  std::printf(
      "%u faults in %u scenarios, %u of them with a second one; %u times the survivors "
      "went on\n",
      struck, scenarios, second, shrunk);
  EXPECT_GE(struck, PENSTOCK_FAULTS);
  EXPECT_GE(second, PENSTOCK_FAULTS / 50);
  EXPECT_GE(shrunk, PENSTOCK_FAULTS / 3);
}

}  // namespace
}  // namespace penstock::test
