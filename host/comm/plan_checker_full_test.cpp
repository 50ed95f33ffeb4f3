// The whole product of small plans: about 280,000.
#include <gtest/gtest.h>

#include <numeric>

#include "penstock/comm/plan_checker.h"
#include "penstock/comm/plan_keys_test.h"

namespace penstock {
namespace {

TEST(PlanCheckerFull, EveryPlanIsRight) {
  std::vector<std::uint32_t> ranks(16);
  std::iota(ranks.begin(), ranks.end(), 1);
  const std::size_t count =
      for_each_key({.ranks = ranks,
                    .devices = {1, 2, 3, 4, 5, 6},
                    .part_bytes = {0, 1, 7, 8, 63, 64, 65, 100, 4096, 4096 + 8, 65536 + 24},
                    .element_bytes = {1, 2, 4, 8},
                    .all_roots = true},
                   [](const PlanKey& key) {
                     auto plan = make_plan(key);
                     ASSERT_TRUE(plan.ok()) << key_text(key) << ": " << plan.status().to_string();
                     const std::vector<std::string> findings = check_plan(**plan, 3, 3);
                     ASSERT_TRUE(findings.empty()) << key_text(key) << ": " << findings.front();
                   });
  EXPECT_GT(count, 250000u);
}

}  // namespace
}  // namespace penstock
