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

const std::vector<std::uint64_t> kSizes = {0, 1, 7, 8, 63, 64, 65, 100, 4096, 4096 + 8, 65536 + 24};

// Which device a block is on changes offsets and nothing else, and an element size only says which
// sizes there can be, so that few of each do for most sizes.
TEST(PlanChecker, EveryPlanIsRight) {
  std::size_t count = 0;
  count += for_each_key(
      {.ranks = range(1, 16), .devices = {6}, .part_bytes = kSizes, .element_bytes = {1}},
      expect_right);
  count += for_each_key({.ranks = range(1, 16),
                         .devices = range(1, 6),
                         .part_bytes = {100, 4096 + 8},
                         .element_bytes = {4}},
                        expect_right);
  count += for_each_key({.ranks = range(1, 6),
                         .devices = {1, 4},
                         .part_bytes = kSizes,
                         .element_bytes = {2, 4, 8},
                         .all_roots = true},
                        expect_right);
  count += for_each_key(
      {.ranks = {1, 2, 3, 8, 64}, .devices = {4}, .part_bytes = {1 << 20}, .element_bytes = {8}},
      expect_right);
  EXPECT_GT(count, 10000u);
}

// Plans in which writers may put bytes where readers want them have steps of their own. The checker
// follows them as copies and as exposed buffers; that nobody touches a receive buffer between
// offering it and being told that it is full is the lane's (lane.h).
TEST(PlanChecker, EveryPlanThatPushesIsRight) {
  std::size_t pushable = 0;
  for_each_key({.ranks = {2, 3, 4, 5},
                .devices = {1, 3},
                .part_bytes = {4096, 65536 + 24, 262144, 1 << 20},
                .element_bytes = {8}},
               [&pushable](PlanKey key) {
                 key.tuning.push = 1;
                 expect_right(key);
                 for (const Block& block : (*make_plan(key))->blocks) pushable += block.pushable;
               });
  EXPECT_GT(pushable, 100u);
}

}  // namespace
}  // namespace penstock
