#include "penstock/comm/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "penstock/comm/algorithm/builder.h"
#include "penstock/comm/plan_keys_test.h"

namespace penstock {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::uint64_t kNoLimit = std::uint64_t{1} << 60;

Plan plan_of(const PlanKey& key) {
  auto made = make_plan(key);
  EXPECT_TRUE(made.ok()) << key_text(key) << ": " << made.status().to_string();
  return made.ok() ? **made : Plan{};
}

std::vector<std::uint32_t> devices_of(const Plan& plan, std::uint32_t writer) {
  std::vector<std::uint32_t> devices;
  for (const Block& block : plan.blocks) {
    if (block.writer == writer) devices.push_back(block.device);
  }
  return devices;
}

// "reuse 1, copy, signal 1, wait 1:1, reduce, signal 2"
std::string steps_of(const Plan& plan, std::uint32_t rank) {
  std::string text;
  for (const Step& step : plan.ranks[rank]) {
    if (!text.empty()) text += ", ";
    text += step_kind_name(step.kind);
    if (step.kind == StepKind::reuse) text += fmt::format(" {}", step.rank);
    if (step.kind == StepKind::signal) text += fmt::format(" {}", step.value);
    if (step.kind == StepKind::wait) text += fmt::format(" {}:{}", step.rank, step.value);
  }
  return text;
}

TEST(Plan, CollectivesHaveNames) {
  EXPECT_STREQ(collective_name(Collective::reduce_scatter), "reduce_scatter");
  EXPECT_STREQ(collective_name(static_cast<Collective>(10)), "?");
  for (int i = 0; i < kCollectives; ++i) {
    const auto collective = static_cast<Collective>(i);
    auto parsed = parse_collective(collective_name(collective));
    ASSERT_TRUE(parsed.ok());
    EXPECT_EQ(*parsed, collective);
  }
  auto unknown = parse_collective("allreduce");
  EXPECT_EQ(unknown.status().code(), Code::not_found);
  EXPECT_THAT(
      unknown.status().message(),
      AllOf(HasSubstr("\"allreduce\""), HasSubstr("all_reduce, broadcast"), HasSubstr("barrier")));
}

TEST(Plan, OneShotStepByStep) {
  const Plan plan = plan_of({Collective::all_reduce, {3, 1}, 0, 4, 400, false, "auto"});
  EXPECT_EQ(plan.algorithm, "one_shot");
  EXPECT_EQ(steps_of(plan, 1),
            "reuse 2, reuse 0, copy, signal 1, wait 2:1, wait 0:1, reduce, signal 2");
  const Step& reduce = plan.ranks[1][6];
  EXPECT_THAT(reduce.src, ElementsAre(Slice{Space::block, 0, 0, 400}, Slice{Space::send, 0, 0, 400},
                                      Slice{Space::block, 2, 0, 400}));
  EXPECT_THAT(reduce.dst, ElementsAre(Slice{Space::recv, 0, 0, 400}));
  EXPECT_THAT(plan.signals, ElementsAre(2, 2, 2));
  // 400 bytes occupy 7 lines.
  EXPECT_THAT(plan.half_bytes, ElementsAre(3 * 448));
  EXPECT_EQ(plan.blocks[2].offset, 896u);
}

TEST(Plan, TwoPhaseStepByStep) {
  // 5 lines over 2 ranks: 3 and 2.
  const Plan plan = plan_of({Collective::all_reduce, {2, 1}, 0, 4, 320, false, "two_phase"});
  EXPECT_EQ(steps_of(plan, 0),
            "reuse 1, copy, signal 1, wait 1:1, reduce, signal 2, wait 1:2, "
            "copy, signal 3");
  EXPECT_THAT(plan.ranks[0][1].src, ElementsAre(Slice{Space::send, 0, 192, 128}));
  EXPECT_EQ(plan.ranks[0][4].dst.size(), 2u);
  EXPECT_THAT(plan.ranks[0][4].dst[0], (Slice{Space::recv, 0, 0, 192}));
  EXPECT_THAT(plan.ranks[0][7].dst, ElementsAre(Slice{Space::recv, 0, 192, 128}));
}

TEST(Plan, RanksWithoutAShardDoNotFold) {
  const Plan plan = plan_of({Collective::all_reduce, {3, 1}, 0, 1, 10, false, "two_phase"});
  EXPECT_EQ(steps_of(plan, 0), "wait 1:1, wait 2:1, reduce, signal 1");
  EXPECT_EQ(steps_of(plan, 2), "reuse 0, reuse 1, copy, signal 1, wait 0:1, copy, signal 2");
}

TEST(Plan, AutoGoesBySize) {
  const auto chosen = [](Collective collective, std::uint32_t ranks, std::uint64_t bytes) {
    return plan_of({collective, {ranks, 1}, 0, 1, bytes, false, "auto"}).algorithm;
  };
  EXPECT_EQ(chosen(Collective::all_reduce, 2, 65536), "one_shot");
  EXPECT_EQ(chosen(Collective::all_reduce, 2, 65537), "two_phase");
  EXPECT_EQ(chosen(Collective::all_reduce, 16, 8192), "one_shot");
  EXPECT_EQ(chosen(Collective::all_reduce, 16, 8193), "two_phase");
  EXPECT_EQ(chosen(Collective::reduce, 2, 1 << 20), "sharded");
  EXPECT_EQ(chosen(Collective::reduce, 3, 262143), "direct");
  EXPECT_EQ(chosen(Collective::reduce, 3, 262144), "sharded");
  EXPECT_EQ(chosen(Collective::all_reduce, 1, 1 << 20), "local");
}

TEST(Plan, LargePartsMoveInFourChunks) {
  EXPECT_EQ(plan_of({Collective::broadcast, {2, 1}, 0, 1, 65535, false}).signals[0], 1u);
  const Plan plan = plan_of({Collective::broadcast, {2, 1}, 0, 1, 65536 + 65, false});
  EXPECT_EQ(plan.signals[0], 4u);
  // 1026 lines, the last with one byte.
  std::vector<std::uint64_t> bytes;
  for (const Block& block : plan.blocks) bytes.push_back(block.bytes);
  EXPECT_THAT(bytes, ElementsAre(257 * 64, 257 * 64, 256 * 64, 255 * 64 + 1));
}

TEST(Plan, RootedBlocksGoRoundOverDevices) {
  const Plan plan = plan_of({Collective::scatter, {6, 3}, 2, 1, 100, false});
  EXPECT_THAT(devices_of(plan, 2), ElementsAre(0, 1, 2, 0, 1));
  const Plan gather = plan_of({Collective::gather, {4, 2}, 0, 1, 100, false});
  EXPECT_THAT(devices_of(gather, 1), ElementsAre(0));
  EXPECT_THAT(devices_of(gather, 2), ElementsAre(1));
  EXPECT_THAT(devices_of(gather, 3), ElementsAre(0));
}

TEST(Plan, SymmetricBlocksStayOnDevicesOfTheirRank) {
  const Plan plan = plan_of({Collective::all_to_all, {2, 6}, 0, 1, 1 << 20, false});
  EXPECT_THAT(devices_of(plan, 0), ElementsAre(0, 1, 2, 0));
  EXPECT_THAT(devices_of(plan, 1), ElementsAre(3, 4, 5, 3));
  const Plan few = plan_of({Collective::all_gather, {5, 2}, 0, 1, 100, false});
  EXPECT_THAT(devices_of(few, 3), ElementsAre(1));
  EXPECT_THAT(devices_of(few, 4), ElementsAre(0));
}

// Reads of the k-th step of each rank are of different peers.
TEST(Plan, ReadersStartAtDifferentPeers) {
  const Plan plan = plan_of({Collective::all_gather, {4, 4}, 0, 1, 100, true});
  for (std::uint32_t r = 0; r < 4; ++r) {
    std::vector<std::uint32_t> peers;
    for (const Step& step : plan.ranks[r]) {
      if (step.kind == StepKind::copy && step.src[0].space == Space::block) {
        peers.push_back(plan.blocks[step.src[0].index].writer);
      }
    }
    EXPECT_THAT(peers, ElementsAre((r + 1) % 4, (r + 2) % 4, (r + 3) % 4));
  }
}

TEST(Plan, OneRankNeedsNoPool) {
  for_each_key({.ranks = {1}, .devices = {1}, .part_bytes = {8}, .element_bytes = {8}},
               [](const PlanKey& key) {
                 const Plan plan = plan_of(key);
                 EXPECT_TRUE(plan.blocks.empty()) << key_text(key);
                 EXPECT_EQ(plan.signals[0], 0u) << key_text(key);
                 const bool stays = key.in_place && !reduces(key.collective);
                 EXPECT_EQ(plan.ranks[0].size(), stays ? 0u : 1u) << key_text(key);
                 if (reduces(key.collective)) {
                   EXPECT_EQ(plan.ranks[0][0].kind, StepKind::reduce);
                 }
               });
}

TEST(Plan, NothingToMoveIsNothingToDo) {
  for_each_key({.ranks = {1, 2, 5}, .devices = {2}, .part_bytes = {0}, .element_bytes = {4}},
               [](const PlanKey& key) {
                 if (key.collective == Collective::barrier) return;
                 for (const auto& steps : plan_of(key).ranks) {
                   EXPECT_TRUE(steps.empty()) << key_text(key);
                 }
               });
  const Plan barrier = plan_of({Collective::barrier, {3, 1}});
  EXPECT_EQ(steps_of(barrier, 2), "signal 1, wait 0:1, wait 1:1");
}

TEST(Plan, WhatMakesNoSenseIsNamed) {
  const PlanKey good{Collective::broadcast, {4, 2}, 3, 8, 64, false, "auto"};
  ASSERT_TRUE(make_plan(good).ok());
  const auto expect_error = [&](const std::string& word, auto&& change) {
    PlanKey key = good;
    change(key);
    for (const Status& status : {make_plan(key).status(), pass_part_bytes(key, 1, 1).status()}) {
      EXPECT_EQ(status.code(), Code::invalid_argument) << word;
      EXPECT_THAT(status.message(), HasSubstr(word));
    }
  };
  expect_error("ranks is 0", [](PlanKey& key) { key.topology.ranks = 0; });
  expect_error("ranks is 65", [](PlanKey& key) { key.topology.ranks = 65; });
  expect_error("payload_devices is 0", [](PlanKey& key) { key.topology.payload_devices = 0; });
  expect_error("payload_devices is 17", [](PlanKey& key) { key.topology.payload_devices = 17; });
  expect_error("root is 4", [](PlanKey& key) { key.root = 4; });
  expect_error("element_bytes is 0", [](PlanKey& key) { key.element_bytes = 0; });
  expect_error("element_bytes is 12", [](PlanKey& key) { key.element_bytes = 12; });
  expect_error("part_bytes", [](PlanKey& key) { key.part_bytes = 63; });
  expect_error("part_bytes", [](PlanKey& key) { key.part_bytes = kMaxPartBytes + 8; });
  expect_error("auto, direct", [](PlanKey& key) { key.algorithm = "ring"; });
  expect_error("collective is 10", [](PlanKey& key) { key.collective = Collective(10); });
  expect_error("lane of send_recv has 2",
               [](PlanKey& key) { key.collective = Collective::send_recv; });
  EXPECT_EQ(make_plan({Collective::barrier, {2, 1}, 0, 1, 64}).status().code(),
            Code::invalid_argument);
}

TEST(Plan, AlgorithmsAreListedOnce) {
  std::set<std::string> names;
  for (const Algorithm& algorithm : list_algorithms()) {
    EXPECT_TRUE(
        names.insert(fmt::format("{} {}", collective_name(algorithm.collective), algorithm.name))
            .second);
    EXPECT_FALSE(algorithm.summary.empty());
  }
  EXPECT_EQ(names.size(), 16u);
}

// Counted by hand: what each algorithm is for.
TEST(Plan, PoolTraffic) {
  const auto expect = [](Collective collective, const std::string& algorithm, std::uint64_t written,
                         std::uint64_t read) {
    const PoolTraffic traffic =
        pool_traffic(plan_of({collective, {4, 2}, 1, 4, 4096, false, algorithm}));
    EXPECT_EQ(traffic.written, written) << collective_name(collective) << " " << algorithm;
    EXPECT_EQ(traffic.read, read) << collective_name(collective) << " " << algorithm;
  };
  expect(Collective::all_reduce, "one_shot", 4 * 4096, 4 * 3 * 4096);
  expect(Collective::all_reduce, "two_phase", 4 * 3 * 1024 + 4 * 1024, 2 * 4 * 3 * 1024);
  expect(Collective::broadcast, "direct", 4096, 3 * 4096);
  expect(Collective::reduce, "direct", 3 * 4096, 3 * 4096);
  expect(Collective::reduce, "sharded", 4 * 3 * 1024 + 3 * 1024, 4 * 3 * 1024 + 3 * 1024);
  expect(Collective::all_gather, "direct", 4 * 4096, 4 * 3 * 4096);
  expect(Collective::reduce_scatter, "direct", 4 * 3 * 4096, 4 * 3 * 4096);
  expect(Collective::all_to_all, "direct", 4 * 3 * 4096, 4 * 3 * 4096);
  expect(Collective::gather, "direct", 3 * 4096, 3 * 4096);
  expect(Collective::scatter, "direct", 3 * 4096, 3 * 4096);
}

TEST(Plan, SplitAtLines) {
  const auto pieces = split(300, 4);  // 5 lines, the last of 44 bytes
  std::vector<std::uint64_t> numbers;
  for (const Range& range : pieces) numbers.insert(numbers.end(), {range.offset, range.bytes});
  EXPECT_THAT(numbers, ElementsAre(0, 128, 128, 64, 192, 64, 256, 44));
  EXPECT_EQ(split(64, 3)[2].bytes, 0u);
}

// ---- sizes of passes ----

TEST(PlanSize, LimitIsTheLargestThatFits) {
  // A rank writes 3 parts, and two ranks share a device.
  const PlanKey all_to_all{Collective::all_to_all, {4, 2}, 0, 8, 0, false, "auto"};
  EXPECT_EQ(*pass_part_bytes(all_to_all, kNoLimit, 3 * 640), 640u);
  EXPECT_EQ(*pass_part_bytes(all_to_all, kNoLimit, 3 * 640 - 1), 576u);
  EXPECT_EQ(*pass_part_bytes(all_to_all, 2 * 3 * 640, kNoLimit), 640u);
  EXPECT_EQ(*pass_part_bytes(all_to_all, 2 * 3 * 640 - 1, kNoLimit), 576u);
  const PlanKey broadcast{Collective::broadcast, {4, 1}, 0, 8, 0, false, "auto"};
  EXPECT_EQ(*pass_part_bytes(broadcast, kNoLimit, 1 << 20), 1u << 20);
  PlanKey small = broadcast;
  small.part_bytes = 1000;
  EXPECT_EQ(*pass_part_bytes(small, kNoLimit, 1 << 20), 1024u) << "no more than asked for";
  EXPECT_EQ(*pass_part_bytes(small, kNoLimit, 1000), 960u);
  auto none = pass_part_bytes(broadcast, 63, 1 << 20);
  EXPECT_EQ(none.status().code(), Code::no_space);
  EXPECT_THAT(none.status().message(), HasSubstr("63 bytes of scratch"));
}

// Chunks spread a large part over devices, and a smaller part is one block: it has to fit, too.
TEST(PlanSize, EverySmallerPartFits) {
  const PlanKey key{Collective::broadcast, {2, 4}, 0, 1, 0, false, "auto"};
  EXPECT_EQ(*pass_part_bytes(key, 16384, kNoLimit), 16384u);
  EXPECT_EQ(*pass_part_bytes(key, 65536, kNoLimit), 4 * 65536u);
}

TEST(PlanSize, NothingLimitsWhatNeedsNoPool) {
  EXPECT_EQ(*pass_part_bytes({Collective::all_reduce, {1, 1}}, 0, 0), kMaxPartBytes);
  EXPECT_EQ(*pass_part_bytes({Collective::barrier, {3, 1}}, 0, 0), 0u);
}

// With scratch_half_bytes it is rank_bytes that limits a pass, never the half; and what is returned
// does fit, by the plan that is made for it, while one line more does not.
TEST(PlanSize, ScratchIsEnough) {
  for (const std::uint64_t rank_bytes : {4096ull, 100000ull, 1048576ull}) {
    for_each_key({.ranks = {1, 2, 3, 5, 8},
                  .devices = {1, 2, 3, 6},
                  .part_bytes = {0},
                  .element_bytes = {8}},
                 [&](PlanKey key) {
                   if (key.collective == Collective::barrier || key.in_place) return;
                   const std::uint64_t half = scratch_half_bytes(key.topology, rank_bytes);
                   ASSERT_EQ(half % 64, 0u);
                   auto most = pass_part_bytes(key, half, rank_bytes);
                   ASSERT_TRUE(most.ok()) << key_text(key);
                   ASSERT_EQ(*most, *pass_part_bytes(key, kNoLimit, rank_bytes)) << key_text(key);
                   if (key.topology.ranks == 1) return;
                   for (const bool more : {false, true}) {
                     key.part_bytes = *most + (more ? 64 : 0);
                     const Plan plan = plan_of(key);
                     std::vector<std::uint64_t> written(key.topology.ranks);
                     for (const Block& block : plan.blocks) written[block.writer] += block.bytes;
                     const std::uint64_t most_written =
                         *std::max_element(written.begin(), written.end());
                     ASSERT_EQ(most_written > rank_bytes, more) << key_text(key);
                     for (const std::uint64_t bytes : plan.half_bytes) {
                       if (!more) {
                         ASSERT_LE(bytes, half) << key_text(key);
                       }
                     }
                   }
                 });
  }
}

}  // namespace
}  // namespace penstock
