#include "penstock/sched/replay.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "penstock/sched/plot.h"
#include "penstock/sched/random.h"
#include "penstock/sched/synthetic.h"
#include "penstock/sched/trace_table.h"

namespace penstock {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

ReplayConfig small(const std::string& policy) {
  ReplayConfig config;
  config.nodes = read_trace_nodes(PENSTOCK_TESTDATA "/nodes.csv").value();
  config.pods = read_trace_pods(PENSTOCK_TESTDATA "/pods.csv").value();
  config.policy = policy;
  config.engine = "scalar";
  return config;
}

// Two nodes of one GPU each, and pods of 600 thousandths: of every order the first two are placed.
TEST(Replay, CountsWhatArrivesAndWhatIsPlaced) {
  ReplayConfig config;
  config.nodes = {{"a", 8000, 100, 1, "T4"}, {"b", 8000, 100, 1, "T4"}};
  config.pods = {{"p", 1000, 10, 1, 600, ""}};
  config.engine = "scalar";
  config.inflate = 1.3;
  const auto result = replay(config);
  ASSERT_TRUE(result.ok()) << result.status().to_string();
  // 2600 thousandths have to arrive: the fifth pod reaches 3000.
  EXPECT_EQ(result.value().arrived, 5u);
  EXPECT_EQ(result.value().placed, 2u);
  EXPECT_EQ(result.value().dropped, 3u);
  EXPECT_DOUBLE_EQ(result.value().arrived_pct, 150);
  EXPECT_DOUBLE_EQ(result.value().gpu_alloc_pct, 60);
  EXPECT_EQ(result.value().gpus, 2u);
  EXPECT_EQ(result.value().engine, "scalar");
  std::vector<std::pair<double, double>> curve;
  for (const CurvePoint& point : result.value().curve) {
    curve.emplace_back(point.arrived_pct, point.gpu_alloc_pct);
  }
  EXPECT_THAT(curve, ElementsAre(std::pair(0., 0.), std::pair(30., 30.), std::pair(60., 60.),
                                 std::pair(90., 60.), std::pair(120., 60.), std::pair(150., 60.)));
}

TEST(Replay, AModelThatIsAskedForDecides) {
  ReplayConfig config;
  config.nodes = {{"a", 8000, 100, 1, "T4"}, {"b", 8000, 100, 1, "P100"}};
  config.pods = {{"p", 1000, 10, 1, 1000, "V100|P100"}};
  config.engine = "scalar";
  config.inflate = 1;
  const auto result = replay(config);
  ASSERT_TRUE(result.ok()) << result.status().to_string();
  EXPECT_EQ(result.value().placed, 1u);
  EXPECT_DOUBLE_EQ(result.value().gpu_alloc_pct, 50);
}

TEST(Replay, DoesNotDependOnTheBatchOrTheEngine) {
  for (const Policy& policy : built_in_policies()) {
    ReplayConfig config = small(policy.name);
    config.seed = 5;
    const auto first = replay(config);
    ASSERT_TRUE(first.ok()) << first.status().to_string();
    config.batch = 1;
    const auto second = replay(config);
    config.engine = "auto";
    config.batch = 7;
    const auto third = replay(config);
    ASSERT_TRUE(second.ok() && third.ok());
    for (const auto* other : {&second, &third}) {
      EXPECT_EQ(first.value().gpu_alloc_pct, other->value().gpu_alloc_pct) << policy.name;
      EXPECT_EQ(first.value().arrived, other->value().arrived);
      EXPECT_EQ(first.value().placed, other->value().placed);
    }
  }
}

TEST(Replay, ASeedIsAnOrder) {
  ReplayConfig config = small("best-fit");
  std::map<std::uint64_t, int> arrived;
  for (config.seed = 1; config.seed <= 20; ++config.seed) ++arrived[replay(config).value().arrived];
  EXPECT_GT(arrived.size(), 2u);
  config.seed = 3;
  EXPECT_EQ(replay(config).value().gpu_alloc_pct, replay(config).value().gpu_alloc_pct);
}

TEST(Replay, EveryPodArrivesOnceBeforeAnyArrivesAgain) {
  // Ten pods of 100 thousandths and different cpu, on a cluster of one GPU that takes all of them.
  ReplayConfig config;
  config.nodes = {{"a", 1023, 100, 1, ""}};
  for (int i = 0; i < 10; ++i) config.pods.push_back({"p", 1 << i, 1, 1, 100, ""});
  config.engine = "scalar";
  config.inflate = 1;
  for (config.seed = 1; config.seed <= 8; ++config.seed) {
    EXPECT_EQ(replay(config).value().placed, 10u) << config.seed;
  }
}

TEST(Replay, ReportsProgressAndCanBeCancelled) {
  ReplayConfig config = small("random");
  config.batch = 2;
  std::vector<double> arrived;
  const auto result = replay(config, [&](const ReplayProgress& progress) {
    arrived.push_back(progress.arrived_pct);
    return true;
  });
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(arrived.size(), (result.value().arrived + 1) / 2);
  EXPECT_TRUE(std::is_sorted(arrived.begin(), arrived.end()));
  EXPECT_EQ(arrived.back(), result.value().arrived_pct);
  const auto cancelled = replay(config, [](const ReplayProgress&) { return false; });
  ASSERT_FALSE(cancelled.ok());
  EXPECT_EQ(cancelled.status().code(), Code::cancelled);
}

TEST(Replay, RefusesWhatMakesNoSense) {
  const auto refused = [](auto change, Code code, const char* words) {
    ReplayConfig config = small("best-fit");
    change(&config);
    const auto result = replay(config);
    ASSERT_FALSE(result.ok()) << words;
    EXPECT_EQ(result.status().code(), code);
    EXPECT_THAT(result.status().message(), HasSubstr(words));
  };
  refused([](ReplayConfig* c) { c->nodes.clear(); }, Code::invalid_argument, "no nodes");
  refused([](ReplayConfig* c) { c->pods.clear(); }, Code::invalid_argument, "no pods");
  refused(
      [](ReplayConfig* c) {
        c->nodes = {{"a", 1, 1, 0, ""}};
      },
      Code::invalid_argument, "the nodes have no GPU");
  refused(
      [](ReplayConfig* c) {
        c->pods = {{"a", 1, 1, 0, 0, ""}};
      },
      Code::invalid_argument, "the pods ask for 0 GPU-thousandths on average");
  refused([](ReplayConfig* c) { c->inflate = 0; }, Code::invalid_argument, "inflate is 0");
  refused([](ReplayConfig* c) { c->inflate = std::nan(""); }, Code::invalid_argument, "inflate is");
  refused([](ReplayConfig* c) { c->batch = 0; }, Code::invalid_argument, "batch is 0");
  refused([](ReplayConfig* c) { c->policy = "worst"; }, Code::not_found, "no policy 'worst'");
  refused([](ReplayConfig* c) { c->engine = "abacus"; }, Code::not_found, "abacus");
}

ReplayResult result_of(const char* policy, std::uint64_t seed, double percent) {
  ReplayResult result;
  result.policy = policy;
  result.engine = "scalar";
  result.seed = seed;
  result.arrived_pct = 130;
  result.gpu_alloc_pct = percent;
  result.curve = {{0, 0}, {65.00049, 64.5}, {130, percent}};
  return result;
}

TEST(ReplayOutput, Csv) {
  EXPECT_EQ(replay_csv({result_of("a", 1, 90.5)}),
            "policy,seed,arrived_pct,gpu_alloc_pct\n"
            "a,1,0.000,0.000\na,1,65.000,64.500\na,1,130.000,90.500\n");
}

TEST(ReplayOutput, JsonOfOneAndOfSeveral) {
  const auto one = nlohmann::json::parse(replay_json({result_of("a", 7, 90.1234)}));
  EXPECT_EQ(one["gpu_alloc_pct"], 90.123);
  EXPECT_EQ(one["seed"], 7);
  EXPECT_EQ(one["curve"][1][1], 64.5);
  const auto more = nlohmann::json::parse(
      replay_json({result_of("a", 1, 90), result_of("a", 2, 92), result_of("b", 1, 80)}));
  EXPECT_EQ(more["results"].size(), 3u);
  EXPECT_EQ(more["means"][0]["policy"], "a");
  EXPECT_EQ(more["means"][0]["mean"], 91);
  EXPECT_EQ(more["means"][0]["min"], 90);
  EXPECT_EQ(more["means"][0]["max"], 92);
  EXPECT_EQ(more["means"][1]["seeds"], 1);
}

TEST(ReplayOutput, TextHasMeansWhenThereAreSeveralSeeds) {
  const std::string text = replay_text({result_of("a", 1, 90), result_of("a", 2, 92)});
  EXPECT_THAT(text, HasSubstr("91.000    90.000    92.000"));
  EXPECT_THAT(replay_text({result_of("a", 1, 90)}), testing::Not(HasSubstr("seeds")));
}

TEST(ReplayOutput, SvgHasALinePerResult) {
  const std::string svg =
      replay_svg({result_of("b<", 1, 80), result_of("a", 1, 90), result_of("a", 2, 92)});
  EXPECT_THAT(svg, testing::StartsWith("<svg xmlns"));
  EXPECT_THAT(svg, testing::EndsWith("</svg>\n"));
  std::size_t lines = 0;
  for (std::size_t at = 0; (at = svg.find("<polyline", at)) != std::string::npos; ++at) ++lines;
  EXPECT_EQ(lines, 3u);
  EXPECT_THAT(svg, HasSubstr(">a 91.00 % (mean of 2 seeds)</text>"));
  EXPECT_THAT(svg, HasSubstr(">b&lt; 80.00 %</text>"));
  EXPECT_LT(svg.find(">a 91.00"), svg.find(">b&lt; 80.00")) << "the best first";
  // The axes begin at 60, where all curves still are one. 676 wide for 70 % and 380 high for 40 %.
  EXPECT_THAT(svg, HasSubstr(">60</text>"));
  EXPECT_THAT(svg, testing::Not(HasSubstr(">50</text>")));
  EXPECT_THAT(svg, HasSubstr("points=\"112.29,381.25 740.00,139.00 \""));
}

TEST(Plot, TicksAreRound) {
  EXPECT_EQ(tick_step(100, 10), 10);
  EXPECT_EQ(tick_step(130, 14), 10);
  EXPECT_EQ(tick_step(130, 12), 20);
  EXPECT_EQ(tick_step(7, 4), 2);
  EXPECT_DOUBLE_EQ(tick_step(0.3, 4), 0.1);
  EXPECT_EQ(tick_step(0, 4), 1);
}

TEST(SplitMix64, IsTheSameEverywhere) {
  // splitmix64's published outputs for seed 1234567.
  SplitMix64 random(1234567);
  EXPECT_EQ(random.next(), 6457827717110365317u);
  EXPECT_EQ(random.next(), 3203168211198807973u);
  EXPECT_EQ(random.next(), 9817491932198370423u);
}

TEST(SplitMix64, ShufflesEveryOrderAlike) {
  std::map<std::vector<int>, int> orders;
  SplitMix64 random(1);
  for (int i = 0; i < 6000; ++i) {
    std::vector<int> list = {0, 1, 2};
    random.shuffle(&list);
    ++orders[list];
  }
  ASSERT_EQ(orders.size(), 6u);
  for (const auto& [order, count] : orders) EXPECT_NEAR(count, 1000, 150);
}

TEST(Synthetic, HasTheShapeOfTheTrace) {
  const auto trace = synthetic_trace({});
  ASSERT_TRUE(trace.ok());
  const auto& [nodes, pods] = trace.value();
  ASSERT_EQ(nodes.size(), 1213u);
  ASSERT_EQ(pods.size(), 8152u);
  double gpus = 0, demand = 0, without = 0;
  std::int64_t least_cpu_of_eight = INT64_MAX;
  for (const TraceNode& node : nodes) gpus += node.gpus;
  for (const TracePod& pod : pods) {
    demand += pod.num_gpu * pod.gpu_milli;
    without += pod.num_gpu == 0 ? 1 : 0;
    if (pod.num_gpu == 8) least_cpu_of_eight = std::min(least_cpu_of_eight, pod.cpu_milli);
  }
  // The trace: 6212 GPUs, a demand of 98 % of them, 13.3 % of the pods without GPU.
  EXPECT_NEAR(gpus, 6212, 250);
  EXPECT_NEAR(demand / 1000, 6087, 250);
  EXPECT_NEAR(without / 8152, 0.133, 0.015);
  // cpu comes per GPU; no pod with a whole one has less than 3152.
  EXPECT_GE(least_cpu_of_eight, 8 * 3152);
}

TEST(Synthetic, IsReadableAsATraceAndRepeatable) {
  const SyntheticConfig config = {40, 200, 9};
  const auto a = synthetic_trace(config), b = synthetic_trace(config);
  ASSERT_TRUE(a.ok() && b.ok());
  for (std::size_t i = 0; i < 200; ++i) {
    const TracePod& pod = a.value().pods[i];
    EXPECT_EQ(pod.cpu_milli, b.value().pods[i].cpu_milli);
    EXPECT_EQ(pod.gpu_milli, b.value().pods[i].gpu_milli);
    EXPECT_TRUE(pod.num_gpu == 0 ? pod.gpu_milli == 0 : pod.num_gpu == 1 || pod.gpu_milli == 1000);
  }
  ReplayConfig replayed;
  replayed.nodes = a.value().nodes;
  replayed.pods = a.value().pods;
  const auto result = replay(replayed);
  ASSERT_TRUE(result.ok()) << result.status().to_string();
  EXPECT_GT(result.value().gpu_alloc_pct, 60);
  EXPECT_EQ(synthetic_trace({0, 1, 1}).status().code(), Code::invalid_argument);
  EXPECT_EQ(synthetic_trace({1, 0, 1}).status().code(), Code::invalid_argument);
}

TEST(TraceTable, ATaskIsWhatThePodAsksFor) {
  const std::vector<TraceNode> nodes = {{"n", 8000, 1024, 8, "T4"}};
  const std::vector<TracePod> pods = {{"shared", 1000, 10, 1, 600, "T4"},
                                      {"whole", 1000, 10, 1, 1000, ""},
                                      {"four", 3000, 20, 4, 1000, "P100|T4|P100"},
                                      {"none", 500, 5, 0, 0, ""}};
  auto table = make_trace_table(nodes, pods, make_engine("scalar").value());
  ASSERT_TRUE(table.ok()) << table.status().to_string();
  EXPECT_THAT(table.value()->catalogue().free_columns(),
              ElementsAre("gpu-class/1", "gpu-class/4", "gpu-class/shared"));
  const penstock_task shared = make_trace_task(*table.value(), pods[0]).value().record;
  EXPECT_EQ(shared.request[2], 600);
  EXPECT_EQ(shared.klass, 2u);
  EXPECT_EQ(shared.count[0], 3);
  EXPECT_EQ(shared.n_terms, 2u);
  const penstock_task four = make_trace_task(*table.value(), pods[2]).value().record;
  EXPECT_EQ(four.request[0], 3000);
  EXPECT_EQ(four.request[2], 4000);
  EXPECT_EQ(four.gpu_count, 4u);
  EXPECT_EQ(four.gpu_milli, 1000u);
  EXPECT_EQ(four.klass, 1u);
  EXPECT_EQ(table.value()->catalogue().bit_column(four.terms[1].column).key, "model P100|T4");
  const penstock_task none = make_trace_task(*table.value(), pods[3]).value().record;
  EXPECT_EQ(none.count[0], 0);
  EXPECT_EQ(none.gpu_count, 0u);
}

}  // namespace
}  // namespace penstock
