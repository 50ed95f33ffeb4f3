#include "penstock/sched/profile_policy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace penstock {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::unique_ptr<NodeTable> kubernetes_table() {
  NodeTableConfig config;
  config.capacity = 4;
  config.resources = {{"cpu", "milli"},     {"memory", "bytes"},    {"ephemeral-storage", "bytes"},
                      {"pods", ""},         {"nvidia.com/gpu", ""}, {"example.com/foo", ""},
                      {"hugepages-2Mi", ""}};
  auto table = NodeTable::create(nullptr, make_engine("scalar").value(), config);
  EXPECT_TRUE(table.ok()) << table.status().to_string();
  return std::move(table).value();
}

const penstock_column_op* find_op(const Program& program, int opcode) {
  for (std::uint32_t i = 0; i < program.record.n_ops; ++i) {
    if (program.record.ops[i].op == opcode) return &program.record.ops[i];
  }
  return nullptr;
}

std::vector<int> columns(const penstock_column_op& op) { return {op.column, op.column + op.n}; }

TEST(ProfilePolicy, TheDefaultsBecomeAProgram) {
  const auto table = kubernetes_table();
  const auto program = compile_profile(SchedulerProfile::defaults(), *table);
  ASSERT_TRUE(program.ok()) << program.status().to_string();
  EXPECT_THAT(
      program.value().names,
      ElementsAre("unschedulable", "node-name", "taints", "node-affinity", "ports", "fit", "spread",
                  "pod-affinity", "taint-toleration", "node-affinity", "least-allocated", "spread",
                  "pod-affinity", "balanced-allocation", "image-locality"));
  const penstock_program& record = program.value().record;
  EXPECT_EQ(record.tie, PENSTOCK_TIE_LOWEST_ROW);
  const int weights[] = {3, 2, 1, 2, 2, 1, 1};
  for (int i = 0; i < 7; ++i) EXPECT_EQ(record.ops[8 + i].weight, weights[i]) << i;
  EXPECT_THAT(columns(record.ops[5]), ElementsAre(0, 1, 2, 3, 4, 5, 6));
  EXPECT_EQ(record.ops[6].op, PENSTOCK_FILTER_DOMAINS);
  EXPECT_EQ(record.ops[6].group, 8);
  EXPECT_EQ(record.ops[7].group, 9);
  EXPECT_EQ(record.ops[11].op, PENSTOCK_SCORE_SPREAD);
  EXPECT_EQ(record.ops[11].normalise, PENSTOCK_NORMALISE_SPREAD);
  EXPECT_EQ(record.ops[12].op, PENSTOCK_SCORE_DOMAINS);
  EXPECT_EQ(record.ops[12].normalise, PENSTOCK_NORMALISE_MIN_MAX_F64);
  EXPECT_EQ(record.ops[14].normalise, PENSTOCK_NORMALISE_NONE);
  EXPECT_THAT(columns(record.ops[10]), ElementsAre(0, 1));
  EXPECT_EQ(record.ops[10].skip_unasked, 0u);
}

TEST(ProfilePolicy, ResourcesHaveWeightsAndExtendedOnesMayBeUnasked) {
  const auto table = kubernetes_table();
  SchedulerProfile profile = SchedulerProfile::defaults();
  profile.fit_strategy = FitStrategy::most_allocated;
  // "pods" is never scored, and the table has no example.com/bar.
  profile.fit_resources = {{"nvidia.com/gpu", 5},  {"pods", 9},          {"cpu", 2},
                           {"example.com/bar", 7}, {"hugepages-2Mi", 1}, {"ephemeral-storage", 3}};
  profile.balanced_resources = {{"memory", 1}, {"nvidia.com/gpu", 1}};
  const auto program = compile_profile(profile, *table, {.best = 3}, PENSTOCK_TIE_HASH);
  ASSERT_TRUE(program.ok()) << program.status().to_string();
  EXPECT_EQ(program.value().record.best, 3);
  EXPECT_EQ(program.value().record.tie, PENSTOCK_TIE_HASH);
  const penstock_column_op* fit = find_op(program.value(), PENSTOCK_SCORE_MOST_ALLOCATED);
  ASSERT_NE(fit, nullptr);
  EXPECT_THAT(columns(*fit), ElementsAre(4, 0, 6, 2));
  EXPECT_EQ(fit->list_weight[0], 5);
  EXPECT_EQ(fit->list_weight[1], 2);
  EXPECT_EQ(fit->list_weight[2], 1);
  EXPECT_EQ(fit->list_weight[3], 3);
  EXPECT_EQ(fit->skip_unasked, 0b0101u);
  const penstock_column_op* balanced = find_op(program.value(), PENSTOCK_SCORE_BALANCED);
  ASSERT_NE(balanced, nullptr);
  EXPECT_THAT(columns(*balanced), ElementsAre(1, 4));
  EXPECT_EQ(balanced->list_weight[0], 0);
  EXPECT_EQ(balanced->skip_unasked, 0b10u);
}

TEST(ProfilePolicy, IgnoredResourcesDoNotFilter) {
  const auto table = kubernetes_table();
  SchedulerProfile profile;
  profile.filters = {"NodeResourcesFit"};
  profile.ignored_resources = {"nvidia.com/gpu", "cpu", "hugepages-2Mi"};  // only extended ones can
  profile.ignored_resource_groups = {"example.com"};
  const auto program = compile_profile(profile, *table);
  ASSERT_TRUE(program.ok()) << program.status().to_string();
  EXPECT_THAT(columns(program.value().record.ops[0]), ElementsAre(0, 1, 2, 3, 6));
}

TEST(ProfilePolicy, TheShapeIsATableOfPercents) {
  const auto table = kubernetes_table();
  SchedulerProfile profile;
  profile.scores = {{"NodeResourcesFit", 4}};
  profile.fit_strategy = FitStrategy::requested_to_capacity_ratio;
  profile.fit_shape = {{10, 10}, {40, 0}, {70, 7}};
  const auto program = compile_profile(profile, *table);
  ASSERT_TRUE(program.ok()) << program.status().to_string();
  const penstock_program& record = program.value().record;
  EXPECT_EQ(record.ops[0].op, PENSTOCK_SCORE_RATIO);
  EXPECT_EQ(record.ops[0].weight, 4);
  const struct {
    int percent, score;
  } points[] = {{0, 100}, {10, 100}, {11, 97}, {25, 50}, {39, 4},  {40, 0},
                {41, 2},  {55, 35},  {69, 67}, {70, 70}, {100, 70}};
  for (const auto& point : points) {
    EXPECT_EQ(record.shape[point.percent], point.score) << point.percent;
  }
  for (int i = 101; i < 128; ++i) EXPECT_EQ(record.shape[i], 0);
}

TEST(ProfilePolicy, BrokenLinearTruncatesTowardZero) {
  const ShapePoint falling[] = {{0, 10}, {3, 0}};
  EXPECT_EQ(broken_linear(falling, 1), 7);  // 10 - 10/3, and -10/3 truncates to -3
  EXPECT_EQ(broken_linear(falling, 2), 4);
  EXPECT_EQ(broken_linear(falling, -5), 10);
  EXPECT_EQ(broken_linear(falling, 1000), 0);
  const ShapePoint rising[] = {{0, 0}, {3, 10}};
  EXPECT_EQ(broken_linear(rising, 1), 3);
  EXPECT_EQ(broken_linear(rising, 2), 6);
  EXPECT_EQ(broken_linear({}, 50), 0);
}

TEST(ProfilePolicy, NamesOfThePolicyStandForThemselves) {
  const auto table = kubernetes_table();
  SchedulerProfile profile;
  profile.filters = {"fit", "NodeName"};
  profile.scores = {{"requested-to-capacity-ratio", 2}, {"ImageLocality", 1}};
  profile.fit_shape = {{0, 0}, {100, 10}};
  const auto program = compile_profile(profile, *table);
  ASSERT_TRUE(program.ok()) << program.status().to_string();
  EXPECT_THAT(program.value().names,
              ElementsAre("fit", "node-name", "requested-to-capacity-ratio", "image-locality"));
}

TEST(ProfilePolicy, RefusesWhatCannotRun) {
  const auto table = kubernetes_table();
  const auto refusal = [&](auto change) {
    SchedulerProfile profile = SchedulerProfile::defaults();
    change(profile);
    return compile_profile(profile, *table).status();
  };
  Status status = refusal([](auto& p) { p.filters.push_back("VolumeZone"); });
  EXPECT_EQ(status.code(), Code::not_found);
  EXPECT_THAT(status.message(), HasSubstr("there is no filter 'VolumeZone'; there are NodeUnsch"));
  status = refusal([](auto& p) { p.fit_resources.clear(); });
  EXPECT_THAT(status.message(), HasSubstr("NodeResourcesFit: resources not found"));
  status = refusal([](auto& p) { p.fit_resources[1].weight = 101; });
  EXPECT_THAT(status.message(), HasSubstr("resources[1].weight: found 101, expected 1 to 100"));
  status = refusal([](auto& p) { p.balanced_resources[0].weight = 2; });
  EXPECT_THAT(status.message(), HasSubstr("resources[0].weight: found 2, expected 1 to 1"));
  status = refusal([](auto& p) { p.fit_resources.resize(17, {"cpu", 1}); });
  EXPECT_EQ(status.code(), Code::unsupported);
  status = refusal([](auto& p) { p.fit_strategy = FitStrategy::requested_to_capacity_ratio; });
  EXPECT_THAT(status.message(), HasSubstr("the shape is not one or more points"));
  status = refusal([](auto& p) {
    p.fit_strategy = FitStrategy::requested_to_capacity_ratio;
    p.fit_shape = {{10, 1}, {10, 2}};
  });
  EXPECT_EQ(status.code(), Code::invalid_argument);
  status = refusal([](auto& p) { p.scores[0].weight = 0; });
  EXPECT_THAT(status.message(), HasSubstr("has weight 0, expected 1 to 1000000"));
  status = refusal([](auto& p) { p.scores[6].weight = 1000000; });  // 2^46 * 10^6 > 2^62
  EXPECT_THAT(status.message(), HasSubstr("'image-locality' makes no valid program"));
}

}  // namespace
}  // namespace penstock
