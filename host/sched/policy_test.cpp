#include "penstock/sched/policy.h"
#include "penstock/sched/fgd.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "penstock/sched/node_table.h"

namespace penstock {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::unique_ptr<NodeTable> gpu_table() {
  NodeTableConfig config;
  config.capacity = 4;
  config.resources = {{"cpu", "milli"}, {"memory", "MiB"}, {"gpu", "milli"}};
  config.n_gpus = 8;
  config.free_columns = {"power", "gpu-class/1", "gpu-class/shared"};
  auto table = NodeTable::create(nullptr, make_engine("scalar").value(), config);
  EXPECT_TRUE(table.ok()) << table.status().to_string();
  std::vector<NodeSpec> nodes(2);
  nodes[0].facts.name = "a";
  nodes[0].allocatable = {96000, 10, 8000};
  nodes[0].gpus = 8;
  nodes[1].facts.name = "b";
  nodes[1].allocatable = {128000, 10, 2000};
  nodes[1].gpus = 2;
  EXPECT_TRUE(table.value()->add_nodes(nodes).ok());
  return std::move(table).value();
}

TEST(Policy, TheBuiltInOnesCompile) {
  const auto table = gpu_table();
  TypicalTasks typical;
  penstock_typical& whole_gpu = typical.tasks.emplace_back();
  whole_gpu.gpu_count = 1;
  whole_gpu.gpu_milli = 1000;
  whole_gpu.weight = 1;
  typical.total = 1;
  CompileOptions options;
  options.typical = &typical;
  for (const Policy& policy : built_in_policies()) {
    const auto program = compile_policy(policy, *table, options);
    ASSERT_TRUE(program.ok()) << policy.name << ": " << program.status().to_string();
    EXPECT_EQ(program.value().record.n_ops, policy.filters.size() + policy.scores.size());
    EXPECT_EQ(program.value().names.size(), program.value().record.n_ops);
    EXPECT_EQ(find_policy(policy.name).value().name, policy.name);
  }
  EXPECT_GE(built_in_policies().size(), 6u);
}

TEST(Policy, BestFitDividesByTheLargestMachine) {
  const auto table = gpu_table();
  const Program program = compile_policy(find_policy("best-fit").value(), *table).value();
  EXPECT_THAT(program.names, ElementsAre("unschedulable", "model", "fit", "gpu", "best-fit"));
  const penstock_column_op& fit = program.record.ops[2];
  EXPECT_EQ(fit.op, PENSTOCK_FILTER_FIT);
  EXPECT_EQ(fit.n, 3);
  const penstock_column_op& score = program.record.ops[4];
  EXPECT_EQ(score.op, PENSTOCK_SCORE_BEST_FIT);
  EXPECT_EQ(score.normalise, PENSTOCK_NORMALISE_MIN_MAX);
  EXPECT_EQ(score.weight, 1);
  EXPECT_EQ(score.n, 2);
  EXPECT_EQ(score.column[0], 0);
  EXPECT_EQ(score.column[1], 2);
  EXPECT_EQ(score.scale[0], 128000);
  EXPECT_EQ(score.scale[1], 8000);
  EXPECT_EQ(program.record.tie, PENSTOCK_TIE_LOWEST_ROW);
}

TEST(Policy, RandomIsAHashOfTheSeed) {
  const auto table = gpu_table();
  CompileOptions options;
  options.seed = 77;
  options.best = 3;
  const Program program = compile_policy(find_policy("random").value(), *table, options).value();
  EXPECT_EQ(program.record.tie, PENSTOCK_TIE_HASH);
  EXPECT_EQ(program.record.gpu_pick, PENSTOCK_GPU_HASH);
  EXPECT_EQ(program.record.seed, 77u);
  EXPECT_EQ(program.record.best, 3);
  for (std::uint32_t i = 0; i < program.record.n_ops; ++i) {
    EXPECT_LT(program.record.ops[i].op, 32) << "a score";
  }
}

TEST(Policy, ClusteringCountsTheClassesOnly) {
  const auto table = gpu_table();
  const Program program = compile_policy(find_policy("gpu-clustering").value(), *table).value();
  const penstock_column_op& score = program.record.ops[4];
  EXPECT_EQ(score.scale[0], 8000);
  EXPECT_EQ(score.n, 2);
  EXPECT_EQ(score.column[0], 1);
  EXPECT_EQ(score.column[1], 2);
}

TEST(Policy, DefaultHasKubeSchedulersWeights) {
  const Policy policy = find_policy("default").value();
  std::map<std::string, int> weights;
  for (const PolicyScore& score : policy.scores) weights[score.name] = score.weight;
  EXPECT_THAT(
      weights,
      ElementsAre(testing::Pair("balanced-allocation", 1), testing::Pair("least-allocated", 1),
                  testing::Pair("node-affinity", 2), testing::Pair("taint-toleration", 3)));
  EXPECT_THAT(policy.filters, ElementsAre("unschedulable", "node-name", "taints", "node-affinity",
                                          "ports", "fit", "model", "gpu"));
}

TEST(Policy, WhatIsWrongIsNamed) {
  const auto table = gpu_table();
  const auto refused = [&](const Policy& policy, Code code, const char* words,
                           const CompileOptions& options = {}) {
    const auto program = compile_policy(policy, *table, options);
    ASSERT_FALSE(program.ok()) << words;
    EXPECT_EQ(program.status().code(), code);
    EXPECT_THAT(program.status().message(), HasSubstr(words));
  };
  EXPECT_THAT(find_policy("best").status().message(),
              HasSubstr("there is no policy 'best'; there are default, best-fit, random"));
  Policy policy;
  policy.name = "mine";
  policy.filters = {"fits"};
  refused(policy, Code::not_found, "there is no filter 'fits'; there are unschedulable, ");
  policy.filters = {};
  policy.scores = {{"most", 1}};
  refused(policy, Code::not_found, "there is no score 'most'; there are least-allocated, ");
  policy.scores = {{"most-allocated", 0}};
  refused(policy, Code::invalid_argument, "'most-allocated' has weight 0, expected 1 to 1000000");
  policy.scores = {{"most-allocated", 1}};
  refused(policy, Code::invalid_argument, "9 best nodes, expected 1 to 8", {9, 0});
  policy.scores.assign(65, {"most-allocated", 1});
  refused(policy, Code::no_space, "65 filters and scores");

  NodeTableConfig config;
  config.resources = {{"cpu", "milli"}};
  const auto without = NodeTable::create(nullptr, make_engine("scalar").value(), config);
  ASSERT_TRUE(without.ok());
  const auto program = compile_policy(find_policy("best-fit").value(), *without.value());
  ASSERT_FALSE(program.ok());
  EXPECT_THAT(program.status().message(), HasSubstr("'best-fit' needs the resource 'gpu'"));
}

TEST(Task, TakesSixteenTerms) {
  Task task;
  task.name = "t";
  for (int i = 0; i < 16; ++i) {
    ASSERT_TRUE(
        add_term(&task, TermGroup::ports, static_cast<std::uint16_t>(i), i % 2 == 0, i).ok());
  }
  EXPECT_EQ(task.record.n_terms, 16u);
  EXPECT_EQ(task.record.terms[3].column, 3);
  EXPECT_EQ(task.record.terms[3].clear, 0);
  EXPECT_EQ(task.record.terms[3].weight, 3);
  EXPECT_EQ(task.record.terms[3].group, 4);
  EXPECT_EQ(add_term(&task, TermGroup::ports, 1, true).code(), Code::no_space);
  EXPECT_EQ(task.record.row, -1);
}

}  // namespace
}  // namespace penstock
