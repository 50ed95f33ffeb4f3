#include "penstock/sched/fgd.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "penstock/engine/engine.h"
#include "penstock/sched/replay.h"
#include "penstock/sched/trace_table.h"

namespace penstock {
namespace {

using testing::HasSubstr;

TracePod pod(std::int64_t cpu, std::uint32_t gpus, std::uint32_t milli, const char* spec = "") {
  return {"p", cpu, 10, gpus, milli, spec};
}

TEST(TypicalPods, AreTheMostFrequentThatCoverMostOfTheList) {
  // 12 of 20 are of the first type, 5 of the second: together 85 %; the third makes it 95 %.
  std::vector<TracePod> pods;
  for (int i = 0; i < 2; ++i) pods.push_back(pod(3000, 0, 0));
  for (int i = 0; i < 12; ++i) pods.push_back(pod(1000, 1, 500));
  for (int i = 0; i < 5; ++i) pods.push_back(pod(2000, 1, 1000, "T4"));
  pods.push_back(pod(4000, 2, 1000));
  pods[0].memory_mib = 99;  // makes no type of its own
  auto typical = typical_pods(pods);
  ASSERT_EQ(typical.size(), 3u);
  EXPECT_EQ(typical[0].cpu_milli, 1000);
  EXPECT_EQ(typical[0].count, 12);
  EXPECT_EQ(typical[1].gpu_spec, "T4");
  EXPECT_EQ(typical[1].count, 5);
  EXPECT_EQ(typical[2].num_gpu, 0u);
  EXPECT_EQ(typical[2].count, 2);
  EXPECT_EQ(typical_pods(pods, 0.96).size(), 4u);
  EXPECT_EQ(typical_pods(pods, 0.5).size(), 1u);
  EXPECT_TRUE(typical_pods({}).empty());
  // Equally frequent: the one that asks for more comes first.
  typical = typical_pods(std::vector<TracePod>{pod(1, 0, 0), pod(2, 0, 0)}, 0.5);
  ASSERT_EQ(typical.size(), 1u);
  EXPECT_EQ(typical[0].cpu_milli, 2);
}

TEST(TypicalPods, BecomeTasksWithTheColumnsOfTheirModels) {
  const std::vector<TraceNode> nodes = {{"a", 8000, 100, 1, "T4"}, {"b", 8000, 100, 1, "P100"}};
  std::vector<TracePod> pods(3, pod(1000, 1, 500, "P100|V100"));
  pods.push_back(pod(2000, 0, 0));
  auto table = make_trace_table(nodes, pods, make_engine("scalar").value());
  ASSERT_TRUE(table.ok()) << table.status().to_string();
  const auto typical = make_typical_tasks(*table.value(), pods);
  ASSERT_TRUE(typical.ok()) << typical.status().to_string();
  EXPECT_EQ(typical.value().total, 4);
  ASSERT_EQ(typical.value().tasks.size(), 2u);
  const penstock_typical& first = typical.value().tasks[0];
  EXPECT_EQ(first.request, 1000);
  EXPECT_EQ(first.gpu_count, 1u);
  EXPECT_EQ(first.gpu_milli, 500u);
  EXPECT_EQ(first.weight, 3);
  ASSERT_GE(first.model, PENSTOCK_BIT_FIRST_FREE);
  EXPECT_EQ(table.value()->view().bit_column(first.model)[0], 2u) << "node b alone";
  EXPECT_EQ(typical.value().tasks[1].model, 0);
}

// ln(51 / 49) = 0.0400053..., ln(99) = 4.5951198..., ln(3) = 1.0986122...
TEST(FgdThresholds, AreWhereTheSigmoidReachesEachHundredth) {
  const auto one = fgd_thresholds(1);
  EXPECT_EQ(one[50 - 1], 0);
  EXPECT_EQ(one[51 - 1], 41);
  EXPECT_EQ(one[49 - 1], -40);
  EXPECT_EQ(one[75 - 1], 1099);
  EXPECT_EQ(one[25 - 1], -1098);
  EXPECT_EQ(one[99 - 1], 4596);
  EXPECT_EQ(one[1 - 1], -4595);
  EXPECT_EQ(fgd_thresholds(8152)[75 - 1], 8955888) << "8152000 * ln 3 = 8955887.377...";
}

TEST(Fgd, PolicyNeedsAWorkload) {
  const auto policy = find_policy("fgd");
  ASSERT_TRUE(policy.ok());
  const std::vector<TraceNode> nodes = {{"a", 8000, 100, 2, ""}};
  const std::vector<TracePod> pods = {pod(1000, 1, 500)};
  auto table = make_trace_table(nodes, pods, make_engine("scalar").value());
  ASSERT_TRUE(table.ok());
  const auto without = compile_policy(policy.value(), *table.value());
  ASSERT_FALSE(without.ok());
  EXPECT_THAT(without.status().message(), HasSubstr("needs the typical tasks of the workload"));
  const auto typical = make_typical_tasks(*table.value(), pods).value();
  CompileOptions options;
  options.typical = &typical;
  const auto with = compile_policy(policy.value(), *table.value(), options);
  ASSERT_TRUE(with.ok()) << with.status().to_string();
  EXPECT_EQ(with.value().record.gpu_pick, PENSTOCK_GPU_FGD);
  EXPECT_EQ(with.value().record.n_typical, 1u);
  EXPECT_EQ(with.value().record.threshold[49], 0);
}

// The typical pods are 3 that take a whole GPU and 1 that takes half of one, all with 1 cpu: total
// weight 4. Node a has half a GPU free, node b a whole one. A half on a: F falls from 3 * 500 to 0,
// d = 1500, 1500 / 4000 = 0.375, sigmoid 0.5927: 59. On b: F rises from 0 to 3 * 500: 40. So a is
// filled up, although b comes first.
TEST(Fgd, PlacesWhereFragmentsAreUsedUp) {
  const std::vector<TraceNode> nodes = {{"b", 8000, 100, 1, ""}, {"a", 8000, 100, 1, ""}};
  std::vector<TracePod> pods(3, pod(1000, 1, 1000));
  pods.push_back(pod(1000, 1, 500));
  for (const char* engine : {"scalar", "simd"}) {
    auto table = make_trace_table(nodes, pods, make_engine(engine).value());
    ASSERT_TRUE(table.ok());
    const Task half = make_trace_task(*table.value(), pods[3]).value();
    ASSERT_TRUE(table.value()->occupy(1, half, 1).ok());
    const auto typical = make_typical_tasks(*table.value(), pods).value();
    CompileOptions options;
    options.typical = &typical;
    options.best = 2;
    const auto placed =
        table.value()->place(find_policy("fgd").value(), std::vector{half}, true, options);
    ASSERT_TRUE(placed.ok()) << placed.status().to_string();
    ASSERT_EQ(placed.value()[0].best.size(), 2u);
    EXPECT_EQ(placed.value()[0].node, "a");
    EXPECT_EQ(placed.value()[0].best[0].score, 59);
    EXPECT_EQ(placed.value()[0].best[1].score, 40);
  }
}

}  // namespace
}  // namespace penstock
