// One broken plan for each sentence of the checker: it says what is wrong, and where.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "penstock/comm/algorithm/builder.h"
#include "penstock/comm/plan_checker.h"
#include "penstock/comm/plan_keys_test.h"

namespace penstock {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Plan plan_of(const PlanKey& key) {
  auto made = make_plan(key);
  EXPECT_TRUE(made.ok()) << made.status().to_string();
  return made.ok() ? **made : Plan{};
}

// Root 0; rank 0: reuse, copy to block, signal, copy to recv; rank 1: wait, copy, signal.
Plan broadcast() { return plan_of({Collective::broadcast, {2, 1}, 0, 4, 100, false, "direct"}); }
// Rank r: reuse, copy to block r, signal, wait, reduce, signal.
Plan all_reduce() { return plan_of({Collective::all_reduce, {2, 1}, 0, 8, 96, false, "one_shot"}); }

void expect_finding(const Plan& plan, const std::string& sentence) {
  EXPECT_THAT(check_plan(plan), Contains(HasSubstr(sentence)));
}

TEST(PlanFindings, NoneInTheseAsTheyAre) {
  EXPECT_THAT(check_plan(broadcast()), IsEmpty());
  EXPECT_THAT(check_plan(all_reduce()), IsEmpty());
  EXPECT_THAT(check_plan(all_reduce(), 1), IsEmpty());
  EXPECT_THAT(check_plan(all_reduce(), 10), IsEmpty());
}

TEST(PlanFindings, Limit) {
  Plan plan = all_reduce();
  for (auto& steps : plan.ranks) steps.clear();
  EXPECT_EQ(check_plan(plan, 3, 20).size(), 2u) << "the signals of either rank";
  EXPECT_EQ(check_plan(plan, 3, 1).size(), 1u);
  EXPECT_EQ(check_plan(plan, 3, 0).size(), 0u);
}

TEST(PlanFindings, ReadWithoutWait) {
  Plan plan = broadcast();
  plan.ranks[1].erase(plan.ranks[1].begin());
  expect_finding(
      plan, "rank 1 step 0 (copy) reads byte 0 of block 0 without a wait for the signal of rank 0");
}

TEST(PlanFindings, WriteWithoutReuse) {
  Plan plan = broadcast();
  plan.ranks[0].erase(plan.ranks[0].begin());
  expect_finding(plan, "rank 0 step 0 (copy) writes block 0 before it knows that rank 1 has");
  expect_finding(plan, "rank 1 step 1 (copy) may find byte 0 of block 0 overwritten by a later");
  // Rank 2 holds the root back until rank 1 has read, but nothing says that it does.
  plan = plan_of({Collective::broadcast, {3, 1}, 0, 4, 100, false, "direct"});
  plan.ranks[0].erase(plan.ranks[0].begin());
  expect_finding(plan, "rank 0 step 1 (copy) may write byte 0 of block 0 while it is still in use");
  plan = broadcast();
  plan.ranks[1].pop_back();
  plan.signals[1] = 0;
  expect_finding(plan, "rank 1 step 1 (copy) touches a block, and no signal follows");
}

TEST(PlanFindings, DeadlockAndImpossibleWait) {
  Plan plan = plan_of({Collective::barrier, {2, 1}});
  for (auto& steps : plan.ranks) std::reverse(steps.begin(), steps.end());
  EXPECT_THAT(check_plan(plan),
              ElementsAre("rank 0 step 0 (wait) waits for signal 1 of rank 1 for ever",
                          "rank 1 step 0 (wait) waits for signal 1 of rank 0 for ever"));
  plan = plan_of({Collective::barrier, {2, 1}});
  plan.ranks[0][1].value = 2;
  expect_finding(plan, "rank 0 step 1 (wait) waits for signal 2 of rank 1, which has 1");
  plan.ranks[0][1].rank = 0;
  expect_finding(plan, "rank 0 step 1 (wait) waits for rank 0");
}

TEST(PlanFindings, BarrierThatIsNone) {
  Plan plan = plan_of({Collective::barrier, {3, 1}});
  plan.ranks[2].pop_back();
  EXPECT_THAT(check_plan(plan),
              ElementsAre("rank 2 may leave the barrier before rank 1 enters it"));
}

TEST(PlanFindings, OutputThatIsMissingTwiceOrForeign) {
  Plan plan = broadcast();
  plan.ranks[0].pop_back();
  expect_finding(plan, "rank 0 never writes bytes 0..99 of recv part 0");
  plan = broadcast();
  plan.ranks[0].push_back(plan.ranks[0].back());
  expect_finding(plan, "rank 0 step 4 (copy) writes byte 0 of recv part 0 a second time");
  plan = plan_of({Collective::reduce, {2, 1}, 0, 4, 100, false, "direct"});
  Step step;
  step.kind = StepKind::copy;
  step.src = {{Space::send, 0, 0, 100}};
  step.dst = {{Space::recv, 0, 0, 100}};
  plan.ranks[1].push_back(step);
  expect_finding(plan, "rank 1 step 3 (copy) names part 0 of recv, which has 0 parts at this rank");
}

TEST(PlanFindings, WrongContents) {
  Plan plan = plan_of({Collective::all_gather, {2, 1}, 0, 4, 128, false, "direct"});
  // The halves of what rank 0 copies for itself change places.
  Step& step = plan.ranks[0][3];
  ASSERT_EQ(step.dst[0], (Slice{Space::recv, 0, 0, 128}));
  step.src[0] = {Space::send, 0, 0, 64};
  step.dst[0] = {Space::recv, 0, 64, 64};
  Step other = step;
  other.src[0].offset = 64;
  other.dst[0].offset = 0;
  plan.ranks[0].push_back(other);
  expect_finding(plan,
                 "rank 0 gets byte 64 of part 0 of rank 0 (call 0) at byte 0 of recv part 0, "
                 "and byte 0 of part 0 of rank 0 (call 0) is right");
}

TEST(PlanFindings, ReadAfterOverwriting) {
  Plan plan = plan_of({Collective::all_to_all, {2, 1}, 0, 4, 100, true, "direct"});
  auto& steps = plan.ranks[0];
  // reuse, copy out, signal, wait, copy in, signal: the copies change places.
  ASSERT_EQ(steps.size(), 6u);
  std::rotate(steps.begin(), steps.begin() + 3, steps.begin() + 5);
  expect_finding(plan, "rank 0 step 3 (copy) reads byte 0 of send after it was overwritten");
}

TEST(PlanFindings, OrderOfTheFold) {
  Plan plan = all_reduce();
  std::swap(plan.ranks[1][4].src[0], plan.ranks[1][4].src[1]);
  expect_finding(plan, "rank 1 step 4 (reduce) folds rank 0 after rank 1");
  // A fold of a fold has other bits than the fold of all.
  plan = all_reduce();
  plan.ranks[0][1].kind = StepKind::reduce;
  expect_finding(plan, "rank 1 step 4 (reduce) folds the fold of rank 0 part 0 byte 0 (call 0)");
}

TEST(PlanFindings, Blocks) {
  Plan plan = broadcast();
  plan.half_bytes[0] = 256;
  plan.blocks[0].offset = 8;
  expect_finding(plan, "block 0 is at offset 8, no multiple of 64");
  plan = broadcast();
  plan.half_bytes[0] = 64;
  expect_finding(plan, "block 0 of 100 bytes at offset 0 does not fit into the 64 of device 0");
  plan = all_reduce();
  plan.blocks[1].offset = 64;
  expect_finding(plan, "blocks 0 and 1 overlap at offset 64 of device 0");
  plan = all_reduce();
  plan.ranks[1][1].dst[0].index = 0;
  expect_finding(plan, "rank 1 step 1 (copy) writes block 0, which belongs to rank 0");
  plan = broadcast();
  plan.half_bytes[0] = 256;
  plan.blocks.push_back({0, 0, 128, 100});
  expect_finding(plan, "nobody writes bytes 0..99 of block 1");
  plan = broadcast();
  plan.ranks[1].erase(plan.ranks[1].begin() + 1);
  expect_finding(plan, "nobody reads bytes 0..99 of block 0");
}

TEST(PlanFindings, Slices) {
  Plan plan = all_reduce();
  plan.ranks[0][4].dst.push_back({Space::recv, 0, 0, 96});
  expect_finding(plan, "rank 0 step 4 (reduce) has destinations that overlap");
  plan = all_reduce();
  plan.ranks[0][4].src[0].bytes = 88;
  expect_finding(plan, "moves 88 bytes from its first source and names 96 bytes elsewhere");
  plan = all_reduce();
  Step half = plan.ranks[0][1];
  half.src[0].bytes = half.dst[0].bytes = 44;
  plan.ranks[0][1] = half;
  half.src[0].offset = half.dst[0].offset = 44;
  half.src[0].bytes = half.dst[0].bytes = 52;
  plan.ranks[0].insert(plan.ranks[0].begin() + 2, half);
  expect_finding(plan, "rank 0 step 2 (copy) cuts an element of 8 bytes: 52 bytes at offset 44");
  plan = broadcast();
  plan.ranks[1][1].src[0].bytes = plan.ranks[1][1].dst[0].bytes = 0;
  expect_finding(plan, "rank 1 step 1 (copy) names 0 bytes at offset 0 of 100 bytes");
  plan = broadcast();
  plan.ranks[0][1].src[0].offset = ~std::uint64_t{0} - 3;
  expect_finding(plan, "rank 0 step 1 (copy) names 100 bytes at offset 18446744073709551612 of");
  plan = broadcast();
  std::swap(plan.ranks[0][3].src, plan.ranks[0][3].dst);
  expect_finding(plan, "rank 0 step 3 (copy) writes the send buffer");
}

TEST(PlanFindings, Shape) {
  EXPECT_THAT(check_plan(Plan{}), Contains(HasSubstr("the plan has steps of 0 ranks")));
  Plan plan = broadcast();
  plan.key.topology.ranks = 1000;
  expect_finding(plan, "the topology has 1000 ranks");
  plan = broadcast();
  plan.key.element_bytes = 0;
  expect_finding(plan, "a part of 100 bytes does not consist of elements of 0 bytes");
  plan = broadcast();
  plan.ranks[0][1].dst.clear();
  expect_finding(plan, "has 1 sources (1..1 are possible) and 0 destinations (1..3)");
  plan = broadcast();
  plan.ranks[0][2].src.push_back({});
  expect_finding(plan, "rank 0 step 2 (signal) names bytes, and moves none");
  plan = broadcast();
  plan.ranks[0][2].kind = static_cast<StepKind>(9);
  expect_finding(plan, "rank 0 step 2 (?) is of kind 9, which there is not");
  plan = broadcast();
  plan.ranks[0][1].src[0].space = static_cast<Space>(3);
  expect_finding(plan, "rank 0 step 1 (copy) names space 3, which there is not");
  plan = broadcast();
  plan.ranks[0][2].value = 7;
  expect_finding(plan, "rank 0 step 2 (signal) is signal 1 of the rank and has value 7");
}

TEST(PlanBuilder, OneWaitForWhatOneSignalPublished) {
  PlanBuilder builder({Collective::broadcast, {2, 1}, 0, 1, 128, true}, PlanBuilder::Mode::steps);
  const Range first{0, 64};
  const Range second{64, 64};
  std::vector<std::uint32_t> block;
  for (const Range& range : {first, second}) {
    block.push_back(builder.add_block(0, 64));
    builder.copy(0, PlanBuilder::send(0, range), builder.block(block.back()));
  }
  builder.publish(0);
  builder.publish(0);  // nothing new: no signal
  builder.copy(1, builder.block(block[0]), PlanBuilder::recv(0, first));
  builder.copy(1, builder.block(block[1]), PlanBuilder::recv(0, second));
  const auto plan = builder.finish();
  EXPECT_THAT(plan->signals, ElementsAre(1, 1));
  EXPECT_EQ(plan->ranks[0].size(), 4u);  // reuse, copy, copy, signal
  EXPECT_EQ(plan->ranks[1].size(), 4u);  // wait, copy, copy, signal
  EXPECT_THAT(check_plan(*plan), IsEmpty());
}

TEST(PlanBuilderDeathTest, ReadingWhatIsNotPublished) {
  PlanBuilder builder({Collective::broadcast, {2, 1}, 0, 1, 64, true}, PlanBuilder::Mode::steps);
  const std::uint32_t block = builder.add_block(0, 64);
  EXPECT_DEATH(builder.copy(1, builder.block(block), PlanBuilder::recv(0, {0, 64})),
               "block 0 is not published");
}

}  // namespace
}  // namespace penstock
