#include "penstock/sched/rescorer.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "penstock/descriptor/descriptor.h"
#include "penstock/engine/engine.h"
#include "penstock/engine/scalar_select.h"
#include "penstock/engine/select_conformance.h"
#include "penstock/sched/node_table.h"
#include "penstock/sched/random.h"
#include "penstock/sched/rescorer_tree.h"

namespace penstock {
namespace {

// ---- the best of many rows ----

// A list says what the tree should.
template <typename Rows>
void compare_with_list(std::uint32_t rows, std::uint64_t seed) {
  Rows tree(rows);
  std::vector<std::uint64_t> list(rows);
  SplitMix64 random(seed);
  for (int i = 0; i < 3000; i++) {
    const auto row = static_cast<std::uint32_t>(random.below(rows));
    const std::uint64_t value = random.below(6);  // 0: absent
    tree.set(row, value);
    list[row] = value;
    const std::uint64_t best = *std::max_element(list.begin(), list.end());
    ASSERT_EQ(tree.best(), best);
    ASSERT_EQ(tree.get(row), value);
    if (best == 0) continue;
    const auto from = static_cast<std::uint32_t>(random.below(rows));
    for (const std::uint32_t begin : {0u, from}) {
      const auto found = std::find(list.begin() + begin, list.end(), best);
      ASSERT_EQ(tree.first_best(begin), found == list.end()
                                            ? RescorerTree::kNoRow
                                            : static_cast<std::uint32_t>(found - list.begin()))
          << rows << " rows from " << begin;
    }
  }
}

TEST(RescorerTree, KnowsTheFirstOfTheBest) {
  for (const std::uint32_t rows : {1u, 2u, 8u, 9u, 63u, 64u, 65u, 512u, 513u, 5000u})
    compare_with_list<RescorerTree>(rows, rows);
}

TEST(RescorerTree, AListBecomesATree) {
  for (const std::uint32_t rows : {1u, 31u, 33u, 200u}) compare_with_list<RescorerRows>(rows, rows);
}

TEST(RescorerTree, ScoresKeepTheirOrder) {
  const std::int64_t limit = PENSTOCK_MAX_SCORE;
  for (const std::int64_t score : {-limit, std::int64_t{-1}, std::int64_t{0}, limit - 1}) {
    EXPECT_LT(RescorerTree::encode(score), RescorerTree::encode(score + 1));
    EXPECT_EQ(RescorerTree::decode(RescorerTree::encode(score)), score);
    EXPECT_NE(RescorerTree::encode(score), RescorerTree::kAbsent);
  }
}

// ---- decisions ----

// cpu alone, least allocated first.
penstock_program least_allocated() {
  penstock_program program = {};
  program.magic = PENSTOCK_PROGRAM_MAGIC;
  program.version = PENSTOCK_PROGRAM_VERSION;
  program.best = 2;
  program.n_ops = 2;
  program.ops[0].op = PENSTOCK_FILTER_FIT;
  program.ops[0].n = 1;
  program.ops[1].op = PENSTOCK_SCORE_LEAST_ALLOCATED;
  program.ops[1].n = 1;
  program.ops[1].list_weight[0] = 1;
  program.ops[1].weight = 1;
  return program;
}

penstock_task task_of(std::int64_t cpu) {
  penstock_task task = {};
  task.row = -1;
  task.request[0] = task.scored_request[0] = cpu;
  return task;
}

HostTable three_nodes() {
  HostTable table(3, 64, 1, 0, 3, 0, 1, 1);
  for (std::uint32_t row = 0; row < 3; row++) {
    table.set_bit(PENSTOCK_BIT_NODE, row);
    table.view().column(table.view().allocatable, 0)[row] = 100;
    table.view().domain_column(0)[row] = row < 2 ? 0 : 1;
  }
  return table;
}

struct Harness {
  explicit Harness(RescorerOptions options = {})
      : table(three_nodes()),
        kernels(scalar_kernels()),
        rescorer(table.view(), *kernels, options) {}

  penstock_result place(const penstock_program& program, const penstock_task& task) {
    penstock_result result;
    const Status status = rescorer.select(program, {&task, 1}, true, &result);
    EXPECT_TRUE(status.ok()) << status.to_string();
    return result;
  }

  HostTable table;
  std::unique_ptr<const Kernels> kernels;
  Rescorer rescorer;
};

RescorerOptions at_once() {
  RescorerOptions options;
  options.scan_first = false;
  return options;
}

// By hand: 30 of 100 leave 70 on each node in turn, then 40 on the first.
TEST(Rescorer, SeesWhatItPlaced) {
  Harness harness(at_once());
  const struct {
    std::int32_t row;
    std::int64_t score;
    std::uint32_t feasible;
    std::int32_t second;
  } expected[] = {{0, 70, 3, 1}, {1, 70, 3, 2}, {2, 70, 3, 0}, {0, 40, 3, 1}, {1, 40, 3, 2},
                  {2, 40, 3, 0}, {0, 10, 3, 1}, {1, 10, 2, 2}, {2, 10, 1, -1}};
  for (const auto& line : expected) {
    const penstock_result result = harness.place(least_allocated(), task_of(30));
    EXPECT_EQ(result.row, line.row);
    EXPECT_EQ(result.score, line.score);
    EXPECT_EQ(result.feasible, line.feasible);
    EXPECT_EQ(result.n_best > 1 ? result.best[1].row : -1, line.second);
  }
  EXPECT_EQ(harness.place(least_allocated(), task_of(30)).status, PENSTOCK_NOT_FOUND);
  EXPECT_EQ(harness.rescorer.counters().scans, 0u);
  EXPECT_EQ(harness.rescorer.counters().rebuilds, 1u);
  // Another class sees it, too.
  EXPECT_EQ(harness.place(least_allocated(), task_of(10)).row, 0);
}

TEST(Rescorer, SeesWhatItIsTold) {
  Harness harness(at_once());
  const TableView view = harness.table.view();
  EXPECT_EQ(harness.place(least_allocated(), task_of(1)).row, 0);
  // A node goes, another one comes, amounts change.
  harness.table.set_bit(PENSTOCK_BIT_NODE, 1, false);
  harness.rescorer.row_changed(1);
  EXPECT_EQ(harness.place(least_allocated(), task_of(1)).row, 2);
  harness.table.set_bit(PENSTOCK_BIT_NODE, 3);
  view.column(view.allocatable, 0)[3] = 1000;
  view.header->rows = 4;
  const penstock_update rows = {PENSTOCK_UPDATE_ROWS, PENSTOCK_UPDATE_SET, 0, 0, 0, 4};
  harness.rescorer.updated({&rows, 1});
  EXPECT_EQ(harness.place(least_allocated(), task_of(1)).row, 3);
  view.column(view.scored, 0)[3] = 900;
  harness.rescorer.table_changed();
  EXPECT_EQ(harness.place(least_allocated(), task_of(1)).row, 0);
}

// Two at most in a zone with more than in the other: rows 0 and 1 are zone 0, row 2 is zone 1.
TEST(Rescorer, CountsByDomainMoveWholeZones) {
  for (const std::uint32_t narrow : {0u, 64u}) {
    RescorerOptions options = at_once();
    options.limits.narrow_domains = narrow;
    Harness harness(options);
    harness.table.view().count_column(0)[0] = 0;
    penstock_program program = least_allocated();
    program.n_ops = 1;
    program.ops[0] = {};
    program.ops[0].op = PENSTOCK_FILTER_DOMAINS;
    program.ops[0].group = 5;
    penstock_task task = task_of(1);
    task.n_domain_terms = 1;
    task.domain_terms[0].group = 5;
    task.domain_terms[0].kind = PENSTOCK_DOMAIN_ABSENT;
    task.domain_terms[0].domains = 2;
    task.n_raises = 1;  // itself, wherever it is
    penstock_result result = harness.place(program, task);
    EXPECT_EQ(result.row, 0);
    EXPECT_EQ(result.feasible, 3u);
    result = harness.place(program, task);
    EXPECT_EQ(result.row, 2);
    EXPECT_EQ(result.feasible, 1u);
    EXPECT_EQ(harness.place(program, task).status, PENSTOCK_NOT_FOUND);
    harness.table.view().count_column(0)[0] = 0;
    harness.rescorer.count_changed(0, 0);
    EXPECT_EQ(harness.place(program, task).feasible, 2u);
  }
}

TEST(Rescorer, RefusesWhatIsNoProgramOrTaskAndPlacesNothing) {
  Harness harness;
  const HostTable before = harness.table;
  penstock_program program = least_allocated();
  program.magic = 1;
  penstock_task tasks[2] = {task_of(1), task_of(1)};
  penstock_result results[2];
  EXPECT_EQ(harness.rescorer.select(program, tasks, true, results).code(), Code::corrupt);
  tasks[1].request[0] = -1;
  const Status status = harness.rescorer.select(least_allocated(), tasks, true, results);
  EXPECT_EQ(status.code(), Code::invalid_argument);
  EXPECT_NE(status.to_string().find("task 1 of 2"), std::string::npos) << status.to_string();
  EXPECT_EQ(difference(before, harness.table), "");
}

TEST(Rescorer, KeepsNoMoreThanItMay) {
  RescorerOptions options = at_once();
  options.classes = 4;
  Harness harness(options);
  std::uint64_t most = 0;
  for (std::int64_t cpu = 1; cpu <= 40; cpu++) {
    penstock_result result;
    const penstock_task task = task_of(cpu % 20);
    ASSERT_TRUE(harness.rescorer.select(least_allocated(), {&task, 1}, false, &result).ok());
    EXPECT_EQ(result.row, 0);
    if (cpu == 5) most = harness.rescorer.bytes();
  }
  EXPECT_EQ(harness.rescorer.bytes(), most);
  EXPECT_EQ(harness.rescorer.counters().rebuilds, 40u);
}

// ---- a large table that changes while decisions are made ----

TEST(NodeTableChurn, NodesComeAndGoWhileTasksArePlaced) {
  NodeTableConfig config;
  config.capacity = 100000;
  config.resources = {{"cpu", "milli"}, {"memory", "bytes"}};
  for (int r = 2; r < 16; r++) config.resources.push_back({"r" + std::to_string(r), ""});
  config.bit_columns = 64;
  auto made = NodeTable::create(nullptr, make_engine("simd,scalar").value(), config);
  ASSERT_TRUE(made.ok()) << made.status().to_string();
  NodeTable& table = *made.value();
  SplitMix64 random(7);
  std::uint32_t number = 0;
  const auto new_node = [&] {
    NodeSpec node;
    node.facts.name = "node-" + std::to_string(number++);
    for (int r = 0; r < 16; r++)
      node.allocatable.push_back(1000 + static_cast<std::int64_t>(random.below(1000)));
    return node;
  };
  std::vector<NodeSpec> nodes;
  for (int i = 0; i < 99990; i++) nodes.push_back(new_node());
  ASSERT_TRUE(table.add_nodes(nodes).ok());
  const Program program =
      compile_policy({"test", "", {"unschedulable", "fit"}, {{"least-allocated", 1}}}, table, {})
          .value();
  penstock_task task = task_of(10);
  task.request[15] = 5;
  task.n_terms = 1;
  task.terms[0] = {PENSTOCK_BIT_UNSCHEDULABLE, 1, 1, 0};
  std::vector<penstock_task> batch(64, task);
  std::vector<penstock_result> results(batch.size());
  for (int round = 0; round < 60; round++) {
    ASSERT_TRUE(table.select(program.record, batch, true, results.data()).ok());
    for (const penstock_result& result : results) ASSERT_EQ(result.status, PENSTOCK_OK);
    const auto busiest = static_cast<std::uint32_t>(results.back().row);
    if (round % 4 == 0) {
      ASSERT_TRUE(table.remove_node(busiest).ok());
    } else if (round % 4 == 1) {
      const NodeSpec node = new_node();
      ASSERT_TRUE(table.add_nodes({&node, 1}).ok());
    } else if (round % 4 == 2) {
      ASSERT_TRUE(table.set_unschedulable(busiest, true).ok());
    } else {
      const penstock_update update = {
          PENSTOCK_UPDATE_ALLOCATABLE, PENSTOCK_UPDATE_SET, 0, busiest, 0, 5000};
      ASSERT_TRUE(table.update({&update, 1}).ok());
    }
    // The definition says the same of the table as it is now.
    penstock_result expected;
    scalar_select(table.view(), program.record, task, false, &expected);
    penstock_result actual;
    ASSERT_TRUE(table.select(program.record, {&task, 1}, false, &actual).ok());
    ASSERT_EQ(difference(expected, actual), "") << "round " << round;
  }
}

}  // namespace
}  // namespace penstock
