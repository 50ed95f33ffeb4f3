// SELECT's kernels on the host against the scalar engine: random clusters, programs and tasks, with
// rows divided in many ways.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "penstock/drivers/kernels/table_kernels_test.h"
#include "penstock/engine/scalar_select.h"
#include "penstock/engine/select_conformance.h"

namespace penstock::kernels {
namespace {

TestShape shape_of(std::uint64_t seed) {
  SeededRandom random(seed ^ 0x5eed);
  constexpr u32 kLanes[] = {1, 2, 8, 64, 256};
  constexpr u32 kGroups[] = {1, 2, 3, 7, 30};
  TestShape shape;
  shape.limits.lanes = kLanes[random.below(5)];
  shape.limits.groups = kGroups[random.below(5)];
  shape.limits.one_group_rows = random.one_in(3) ? 1u << 20 : 0;
  shape.backwards = random.one_in(2);
  return shape;
}

std::string describe(const TestShape& shape) {
  return std::to_string(shape.limits.groups) + " groups of " + std::to_string(shape.limits.lanes) +
         " lanes" + (shape.limits.one_group_rows != 0 ? ", one of them" : "") +
         (shape.backwards ? ", backwards" : "");
}

// How many results were compared.
std::uint64_t expect_same(std::uint64_t seed, const SelectRules& rules, const TestShape& shape) {
  SelectCase made = make_select_case(seed, rules);
  HostTable actual = made.table;
  const std::size_t n = made.tasks.size();
  std::vector<penstock_result> results(n + 1);
  std::memset(static_cast<void*>(results.data()), 0x77, results.size() * sizeof(penstock_result));
  const penstock_result guard = results[n];
  penstock_node_table header = *actual.header();
  select_on_host(
      {table_view(&header, reinterpret_cast<std::byte*>(actual.header())),
       reinterpret_cast<std::byte*>(actual.header()), &made.program, made.tasks.data(), n,
       made.commit, reinterpret_cast<std::byte*>(results.data()), nullptr, nullptr, nullptr},
      shape);
  SCOPED_TRACE("seed " + std::to_string(seed) + ", " + describe(shape));
  for (std::size_t i = 0; i < n; i++) {
    penstock_result expected;
    scalar_select(made.table.view(), made.program, made.tasks[i], made.commit, &expected);
    EXPECT_EQ(difference(expected, results[i]), "") << "task " << i;
  }
  EXPECT_EQ(difference(guard, results[n]), "") << "past the results";
  // The kernels leave the header to the engine.
  made.table.header()->generation = actual.header()->generation;
  EXPECT_EQ(difference(made.table, actual), "");
  return n;
}

// PENSTOCK_TEST_SEED and PENSTOCK_TEST_CASES make other runs, and longer ones.
std::uint64_t number_from(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

TEST(SelectKernels, RandomCasesAreTheScalarEngines) {
  const std::uint64_t first = number_from("PENSTOCK_TEST_SEED", 1);
  const std::uint64_t cases = number_from("PENSTOCK_TEST_CASES", 1500);
  std::uint64_t tasks = 0;
  for (std::uint64_t seed = first; seed < first + cases && !HasFailure(); seed++)
    tasks += expect_same(seed, {}, shape_of(seed));
  EXPECT_GE(tasks, 2 * cases);
}

TEST(SelectKernels, EveryOperationIsTheScalarEngines) {
  for (std::uint32_t op = 1; op <= PENSTOCK_SCORE_FGD; op++) {
    if (penstock_column_opcode_name(op)[0] == '?') continue;
    SCOPED_TRACE(penstock_column_opcode_name(op));
    SelectRules rules;
    rules.focus = op;
    for (std::uint64_t seed = 1; seed <= 50 && !HasFailure(); seed++)
      expect_same(op * 1000 + seed, rules, shape_of(op * 1000 + seed));
  }
}

TEST(SelectKernels, LargeClustersAreTheScalarEngines) {
  SelectRules rules;
  rules.max_rows = 6000;
  rules.max_tasks = 4;
  for (std::uint64_t seed = 1; seed <= 40 && !HasFailure(); seed++) {
    TestShape shape = shape_of(seed);
    shape.limits.groups = 40;
    expect_same(90000 + seed, rules, shape);
  }
}

// Every division of the rows gives the same, which the order of groups and lanes must not change.
TEST(SelectKernels, OneCaseInEveryShape) {
  for (const u32 lanes : {1u, 4u, 32u, 256u})
    for (const u32 groups : {1u, 2u, 5u, 11u, 64u})
      for (const bool backwards : {false, true})
        for (std::uint64_t seed = 700; seed < 705; seed++)
          expect_same(seed, {}, {{lanes, groups, 0}, backwards});
}

// A task that raises one cell twice needs room for both: 2^20 is the most of a count, 2^40 of a
// free column.
TEST(SelectKernels, ACommitNeedsRoomForAllOfItsMentions) {
  constexpr std::int64_t kMostCount = 1 << 20;
  constexpr std::int64_t kMostFree = std::int64_t{1} << 40;
  const struct {
    std::int32_t count;
    std::int64_t free;
    bool fits;
  } cases[] = {{kMostCount - 2, kMostFree - 2, true},
               {kMostCount - 1, kMostFree - 2, false},
               {kMostCount - 2, kMostFree - 1, false},
               {kMostCount, 0, false},
               {0, kMostFree, false}};
  penstock_program program = {};
  program.best = 1;
  penstock_task task = {};
  task.row = -1;
  task.n_raises = 2;
  task.raises[0] = {1, PENSTOCK_ROW_DOMAIN, 0, 0};
  task.raises[1] = task.raises[0];
  task.count[0] = task.count[3] = 1;
  for (const auto& c : cases) {
    HostTable table(64, 64, 1, 0, 2, 1, 1, 2);
    table.set_bit(PENSTOCK_BIT_NODE, 5);
    table.view().count_column(1)[5] = c.count;
    table.view().column(table.view().free, 0)[5] = c.free;
    penstock_result result;
    penstock_node_table header = *table.header();
    select_on_host({table_view(&header, reinterpret_cast<std::byte*>(table.header())),
                    reinterpret_cast<std::byte*>(table.header()), &program, &task, 1, true,
                    reinterpret_cast<std::byte*>(&result), nullptr, nullptr, nullptr},
                   {});
    EXPECT_EQ(result.row, 5);
    EXPECT_EQ(result.status, std::uint32_t{c.fits ? PENSTOCK_OK : PENSTOCK_OUT_OF_RANGE});
    EXPECT_EQ(table.view().count_column(1)[5], c.count + (c.fits ? 2 : 0));
    EXPECT_EQ(table.view().column(table.view().free, 0)[5], c.free + (c.fits ? 2 : 0));
  }
}

struct Steps {
  penstock_program program = {};
  penstock_task task = {};
  Steps() { task.row = -1; }
  penstock_column_op& add(std::uint8_t op, std::uint8_t normalise = 0, std::int32_t weight = 0) {
    penstock_column_op& added = program.ops[program.n_ops++];
    added.op = op;
    added.normalise = normalise;
    added.weight = weight;
    return added;
  }
};

TEST(SelectStep, FiltersThatCannotRefuseAreNotActive) {
  Steps steps;
  steps.add(PENSTOCK_FILTER_BITS).group = 3;
  steps.add(PENSTOCK_FILTER_FIT).n = 1;
  steps.add(PENSTOCK_FILTER_GPU);
  steps.add(PENSTOCK_FILTER_ROW);
  steps.add(PENSTOCK_FILTER_DOMAINS).group = 4;
  EXPECT_EQ(make_select_step(steps.program, steps.task).filters, 0u);
  steps.task.n_terms = 1;
  steps.task.terms[0].group = 3;
  steps.task.request[0] = 1;
  steps.task.gpu_count = 1;
  steps.task.row = 0;
  steps.task.n_domain_terms = 1;
  steps.task.domain_terms[0].group = 4;
  const select_step step = make_select_step(steps.program, steps.task);
  EXPECT_EQ(step.filters, 31u);
  // What a term of kind ABSENT asks is answered by the row alone.
  EXPECT_EQ(step.flags, 0u);
  steps.task.domain_terms[0].kind = PENSTOCK_DOMAIN_SPREAD;
  EXPECT_EQ(make_select_step(steps.program, steps.task).flags, SELECT_STEP_PREPARE);
}

TEST(SelectStep, ScoresThatAreTheSameEverywhereAreOneNumber) {
  Steps steps;
  steps.add(PENSTOCK_SCORE_BITS, PENSTOCK_NORMALISE_REVERSED, 3);    // 100 everywhere
  steps.add(PENSTOCK_SCORE_BITS, PENSTOCK_NORMALISE_DEFAULT, 2);     // 0
  steps.add(PENSTOCK_SCORE_DOMAINS, PENSTOCK_NORMALISE_SPREAD, -1);  // 100
  steps.add(PENSTOCK_SCORE_SPREAD, PENSTOCK_NORMALISE_REVERSED, 7);  // idle: 0
  steps.add(PENSTOCK_SCORE_LEAST_ALLOCATED, 0, 0);                   // weighs nothing
  steps.add(PENSTOCK_SCORE_LEAST_ALLOCATED, 0, 1);
  steps.add(PENSTOCK_SCORE_MOST_ALLOCATED, PENSTOCK_NORMALISE_MIN_MAX, 1);
  const select_step step = make_select_step(steps.program, steps.task);
  EXPECT_EQ(step.base, 200);
  EXPECT_EQ(step.plain, 1u << 5);
  EXPECT_EQ(step.ranged, 1u << 6);
  EXPECT_EQ(step.flags, 0u);
}

TEST(SelectPlan, LaunchesNoMoreThanATaskNeeds) {
  SelectCase made = make_select_case(3);
  penstock_node_table header = *made.table.header();
  header.rows = header.capacity;
  Steps plain;
  plain.add(PENSTOCK_SCORE_LEAST_ALLOCATED, 0, 1);
  Steps ranged = plain;
  ranged.add(PENSTOCK_SCORE_MOST_ALLOCATED, PENSTOCK_NORMALISE_MIN_MAX, 1);
  std::vector<penstock_task> tasks(2);
  for (penstock_task& task : tasks) task.row = -1;
  const auto launches = [&](const Steps& steps, const TableLimits& limits) {
    const Result<SelectPlan> plan =
        SelectPlan::make({table_view(&header, nullptr), nullptr, &steps.program, tasks.data(), 2,
                          true, nullptr, nullptr, nullptr, nullptr},
                         limits);
    std::string names;
    for (const TableLaunch& launch : plan.value().launches())
      names += std::string(launch.kernel).substr(std::strlen("penstock_select_")) + " " +
               std::to_string(launch.groups) + " ";
    return names;
  };
  ASSERT_GT(header.rows, 128u);
  EXPECT_EQ(launches(plain, {64, 2, 0}), "scan 2 finish 1 scan 2 finish 1 ");
  EXPECT_EQ(launches(ranged, {64, 2, 0}), "scan 2 rank 2 finish 1 scan 2 rank 2 finish 1 ");
  EXPECT_EQ(launches(ranged, {64, 2, header.rows}), "batch 1 ");
  EXPECT_EQ(launches(ranged, {64, 1, 0}), "batch 1 ");
}

TEST(SelectCapabilities, WithoutFloat64WhatNeedsIt) {
  const SelectCapabilities with = select_capabilities(true);
  const SelectCapabilities without = select_capabilities(false);
  const auto bit = [](std::uint32_t op) { return std::uint64_t{1} << op; };
  EXPECT_EQ(with.operations & ~without.operations,
            bit(PENSTOCK_SCORE_BALANCED) | bit(PENSTOCK_SCORE_BEST_FIT) |
                bit(PENSTOCK_SCORE_DOT_PRODUCT) | bit(PENSTOCK_SCORE_SPREAD));
  EXPECT_EQ(with.normalisations & ~without.normalisations, 1u << PENSTOCK_NORMALISE_MIN_MAX_F64);
  EXPECT_EQ(with.ties, 7u);
}

}  // namespace
}  // namespace penstock::kernels
