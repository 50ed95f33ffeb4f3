#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "penstock/comm/plan.h"
#include "penstock/comm/plan_keys_test.h"
#include "penstock/comm/plan_timeline.h"

namespace penstock {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

Plan plan_of(const PlanKey& key) {
  auto made = make_plan(key);
  EXPECT_TRUE(made.ok()) << made.status().to_string();
  return made.ok() ? **made : Plan{};
}

TEST(PlanText, SaysAllOfASmallPlan) {
  const Plan plan = plan_of({Collective::gather, {2, 2}, 1, 4, 100, false, "auto"});
  EXPECT_EQ(plan_to_text(plan),
            "gather, 2 ranks, 2 payload devices, root 1\n"
            "  part        100 bytes, elements of 4 bytes\n"
            "  algorithm   direct (auto)\n"
            "  definition  recv[q] of rank 1 = send of rank q\n"
            "  pool        100 bytes written, 100 bytes read\n"
            "  half        device 0: 128 bytes, device 1: 0 bytes\n"
            "\n"
            "block  writer  device      offset       bytes\n"
            "    0       0       0           0         100\n"
            "\n"
            "rank 0\n"
            " step  kind         bytes  what\n"
            "    0  reuse               rank 1 has finished the pass before the previous one\n"
            "    1  copy           100  send[0] -> block 0 (rank 0 dev 0)\n"
            "    2  signal              1\n"
            "\n"
            "rank 1\n"
            " step  kind         bytes  what\n"
            "    0  copy           100  send[0] -> recv[1]\n"
            "    1  wait                signal 1 of rank 0\n"
            "    2  copy           100  block 0 (rank 0 dev 0) -> recv[0]\n"
            "    3  signal              1\n");
}

TEST(PlanText, SaysWhichBytes) {
  EXPECT_THAT(plan_to_text(plan_of({Collective::broadcast, {2, 1}, 0, 4, 65536, true})),
              HasSubstr("    3  copy         16384  send[0] +16384 -> block 1 (rank 0)\n"));
}

TEST(PlanText, SaysThatThereIsNothingToDo) {
  EXPECT_THAT(plan_to_text(plan_of({Collective::reduce, {1, 1}, 0, 4, 0, true})),
              HasSubstr("rank 0\n  nothing to do\n"));
}

TEST(PlanJson, HasEveryField) {
  const Plan plan = plan_of({Collective::all_reduce, {3, 2}, 0, 4, 400, true, "one_shot"});
  const json parsed = json::parse(plan_to_json(plan));
  EXPECT_EQ(parsed["key"], json::parse(R"({"collective": "all_reduce", "ranks": 3,
      "payload_devices": 2, "group": 0, "root": 0, "element_bytes": 4, "part_bytes": 400,
      "in_place": true, "algorithm": "one_shot"})"));
  EXPECT_EQ(parsed["algorithm"], "one_shot");
  EXPECT_EQ(parsed["pool_bytes_written"], 1200);
  EXPECT_EQ(parsed["pool_bytes_read"], 2400);
  EXPECT_EQ(parsed["half_bytes"], json::parse("[896, 448]"));
  EXPECT_EQ(parsed["signals"], json::parse("[2, 2, 2]"));
  EXPECT_EQ(parsed["blocks"][2],
            json::parse(R"({"writer": 2, "device": 0, "offset": 448, "bytes": 400,
      "inlined": false,
      "mirror": {"space": "send", "index": 0, "offset": 0, "bytes": 400}})"));
  const json& steps = parsed["ranks"][0];
  ASSERT_EQ(steps.size(), 8u);
  EXPECT_EQ(steps[0], json::parse(R"({"kind": "reuse", "rank": 1})"));
  EXPECT_EQ(steps[2], json::parse(R"({"kind": "copy",
      "src": [{"space": "send", "index": 0, "offset": 0, "bytes": 400}],
      "dst": [{"space": "block", "index": 0, "offset": 0, "bytes": 400}]})"));
  EXPECT_EQ(steps[3], json::parse(R"({"kind": "signal", "value": 1})"));
  EXPECT_EQ(steps[4], json::parse(R"({"kind": "wait", "rank": 1, "value": 1})"));
  EXPECT_EQ(steps[6]["src"].size(), 3u);
}

TEST(PlanTimeline, WaitsEndAfterTheirSignals) {
  // The sender: 100 bytes read and 100 written at 100 bytes per us, then the signal.
  const Plan plan = plan_of({Collective::send_recv, {2, 1}, 0, 1, 100, false});
  const auto spans = plan_timeline(plan, {.bytes_per_us = 100, .step_us = 1, .signal_us = 10});
  ASSERT_EQ(spans[0].size(), 3u);  // reuse, copy, signal
  EXPECT_DOUBLE_EQ(spans[0][0].end_us, 1);
  EXPECT_DOUBLE_EQ(spans[0][1].end_us, 1 + 3);
  EXPECT_DOUBLE_EQ(spans[0][2].end_us, 1 + 3 + 1);
  ASSERT_EQ(spans[1].size(), 3u);  // wait, copy, signal
  EXPECT_DOUBLE_EQ(spans[1][0].begin_us, 0);
  EXPECT_DOUBLE_EQ(spans[1][0].end_us, 5 + 10);
  EXPECT_DOUBLE_EQ(spans[1][2].end_us, 15 + 3 + 1);
}

TEST(PlanTimeline, StopsWhereAPlanStops) {
  Plan plan = plan_of({Collective::barrier, {2, 1}});
  plan.ranks[0][0].kind = StepKind::reuse;  // the signal that rank 1 waits for
  const auto spans = plan_timeline(plan);
  EXPECT_EQ(spans[0].size(), 2u);
  EXPECT_EQ(spans[1].size(), 1u);
}

// Every step is one complete event of its rank's row, in order and without overlap, and every wait
// has an arrow that does not go back in time.
TEST(PlanChromeTrace, IsATimeline) {
  for_each_key(
      {.ranks = {1, 2, 4}, .devices = {2}, .part_bytes = {0, 96, 70000}, .element_bytes = {4}},
      [](const PlanKey& key) {
        const Plan plan = plan_of(key);
        const json parsed = json::parse(plan_to_chrome_trace(plan));
        std::vector<std::size_t> events(plan.ranks.size());
        std::vector<double> end(plan.ranks.size());
        std::size_t waits = 0;
        std::map<int, double> starts;
        std::map<int, double> finishes;
        for (const json& event : parsed["traceEvents"]) {
          EXPECT_EQ(event["pid"], 0);
          const std::string kind = event["ph"];
          if (kind == "s") starts[event["id"]] = event["ts"];
          if (kind == "f") finishes[event["id"]] = event["ts"];
          if (kind != "X") continue;
          const std::size_t rank = event["tid"];
          EXPECT_EQ(event["args"]["step"], events[rank]++);
          EXPECT_NEAR(event["ts"].get<double>(), end[rank], 1e-9) << key_text(key);
          EXPECT_GT(event["dur"].get<double>(), 0);
          end[rank] = event["ts"].get<double>() + event["dur"].get<double>();
          waits += event["cat"] == "wait" ? 1 : 0;
        }
        for (std::size_t r = 0; r < plan.ranks.size(); ++r) {
          EXPECT_EQ(events[r], plan.ranks[r].size()) << key_text(key);
        }
        EXPECT_EQ(starts.size(), waits);
        EXPECT_EQ(finishes.size(), waits);
        for (const auto& [id, start] : starts) EXPECT_LT(start, finishes[id]) << key_text(key);
      });
}

}  // namespace
}  // namespace penstock
