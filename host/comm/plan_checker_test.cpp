#include "penstock/comm/plan_checker.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "penstock/comm/plan_keys_test.h"

namespace penstock {
namespace {

std::vector<std::uint32_t> range(std::uint32_t first, std::uint32_t last) {
  std::vector<std::uint32_t> list(last - first + 1);
  std::iota(list.begin(), list.end(), first);
  return list;
}

void expect_right(const PlanKey& key) {
  auto plan = make_plan(key);
  ASSERT_TRUE(plan.ok()) << key_text(key) << ": " << plan.status().to_string();
  const std::vector<std::string> findings = check_plan(**plan, 3, 3);
  ASSERT_TRUE(findings.empty()) << key_text(key) << ": " << findings.front();
}

// Which device a block is on changes offsets and nothing else, so that few numbers of devices do
// for most sizes, and one size does for all numbers of devices.
TEST(PlanChecker, EveryPlanIsRight) {
  std::size_t count = 0;
  count += for_each_key({.ranks = range(1, 16),
                         .devices = {1, 6},
                         .part_bytes = {0, 1, 7, 63, 64, 65, 100, 4096},
                         .element_bytes = {1}},
                        expect_right);
  count += for_each_key({.ranks = range(1, 16),
                         .devices = {1, 2, 3, 4, 5, 6},
                         .part_bytes = {4096 + 8},
                         .element_bytes = {8}},
                        expect_right);
  count += for_each_key({.ranks = range(1, 8),
                         .devices = {3},
                         .part_bytes = {8, 64, 100, 65536, 65536 + 24},
                         .element_bytes = {1, 2, 4, 8}},
                        expect_right);
  count += for_each_key({.ranks = {2, 3, 5, 16},
                         .devices = {6},
                         .part_bytes = {65536 + 24, 1 << 20},
                         .element_bytes = {8}},
                        expect_right);
  EXPECT_GT(count, 12000u);
}

}  // namespace
}  // namespace penstock
