// What every operation gives, against numbers worked out by hand, by upstream's own test tables, or
// by the formulas in Python's float64. Both host engines run every case.
#include <gtest/gtest.h>

#include <initializer_list>
#include <vector>

#include "penstock/descriptor/descriptor.h"
#include "penstock/engine/scalar_select.h"
#include "penstock/engine/select_conformance.h"
#include "penstock/engine/simd_select.h"

namespace penstock {
namespace {

using Values = std::vector<std::int64_t>;

// One node as its values per resource, GPU and free column.
struct Node {
  Values allocatable;
  Values requested = {};
  Values scored = {};
  Values gpu = {};
  Values free = {};
};

HostTable make_table(const std::vector<Node>& nodes) {
  const auto count = [&](auto member) {
    std::size_t most = 0;
    for (const Node& node : nodes) most = std::max(most, (node.*member).size());
    return static_cast<std::uint32_t>(most);
  };
  const auto rows = static_cast<std::uint32_t>(nodes.size());
  HostTable table(rows, rows, std::max(count(&Node::allocatable), 1u), count(&Node::gpu), 6,
                  count(&Node::free));
  const TableView view = table.view();
  for (std::uint32_t row = 0; row < rows; row++) {
    table.set_bit(PENSTOCK_BIT_NODE, row);
    const auto write = [&](std::int64_t* base, const Values& values) {
      for (std::uint32_t i = 0; i < values.size(); i++) view.column(base, i)[row] = values[i];
    };
    write(view.allocatable, nodes[row].allocatable);
    write(view.requested, nodes[row].requested);
    write(view.scored, nodes[row].scored);
    write(view.gpu, nodes[row].gpu);
    write(view.free, nodes[row].free);
  }
  return table;
}

penstock_task make_task(const Values& request, const Values& scored_request) {
  penstock_task task = {};
  task.row = -1;
  std::copy(request.begin(), request.end(), task.request);
  std::copy(scored_request.begin(), scored_request.end(), task.scored_request);
  return task;
}
penstock_task gpu_task(std::uint32_t count, std::uint32_t milli) {
  penstock_task task = make_task({}, {});
  task.gpu_count = count;
  task.gpu_milli = milli;
  return task;
}

penstock_column_op make_op(std::uint8_t code, std::initializer_list<std::uint16_t> columns = {}) {
  penstock_column_op op = {};
  op.op = code;
  op.weight = PENSTOCK_COLUMN_OP_IS_SCORE(code) ? 1 : 0;
  for (const std::uint16_t column : columns) op.column[op.n++] = column;
  return op;
}
penstock_column_op allocation_op(std::uint8_t code, std::initializer_list<std::uint16_t> columns,
                                 std::initializer_list<std::uint16_t> weights) {
  penstock_column_op op = make_op(code, columns);
  std::copy(weights.begin(), weights.end(), op.list_weight);
  return op;
}

constexpr std::int64_t kInfeasible = INT64_MIN;

// The score of each row when the program is `ops`, kInfeasible where a filter stops it.
using Select = void (*)(const TableView&, const penstock_program&, const penstock_task&, bool,
                        penstock_result*);
Values scores(Select select, HostTable& table, const penstock_task& task,
              std::initializer_list<penstock_column_op> ops) {
  penstock_program program = {};
  program.magic = PENSTOCK_PROGRAM_MAGIC;
  program.version = PENSTOCK_PROGRAM_VERSION;
  program.best = PENSTOCK_MAX_BEST;
  for (const penstock_column_op& op : ops) program.ops[program.n_ops++] = op;
  std::uint64_t detail = 0;
  EXPECT_EQ(penstock_program_check(&program, table.header(), &detail), PENSTOCK_OK) << detail;
  EXPECT_EQ(penstock_task_check(&task, &program, table.header()), PENSTOCK_OK);
  Values all(table.header()->rows, kInfeasible);
  penstock_result result;
  select(table.view(), program, task, false, &result);
  EXPECT_LE(all.size(), std::size_t{PENSTOCK_MAX_BEST});
  EXPECT_EQ(result.n_best, result.feasible);
  for (std::uint32_t i = 0; i < result.n_best; i++)
    all[static_cast<std::size_t>(result.best[i].row)] = result.best[i].score;
  return all;
}

class SelectScores : public testing::TestWithParam<Select> {
 protected:
  static Values of(const std::vector<Node>& nodes, const penstock_task& task,
                   std::initializer_list<penstock_column_op> ops) {
    HostTable table = make_table(nodes);
    return scores(GetParam(), table, task, ops);
  }
};
INSTANTIATE_TEST_SUITE_P(Engines, SelectScores, testing::Values(&scalar_select, &simd_select),
                         [](const auto& engine) { return engine.index == 0 ? "scalar" : "simd"; });

// kubernetes/kubernetes, noderesources/least_allocated_test.go and most_allocated_test.go
// (Apache-2.0). Resources: cpu, memory, and an extended one that leaves the sums unasked.
TEST_P(SelectScores, KubernetesLeastAndMostAllocated) {
  constexpr std::int64_t kM = 1000000;
  struct Case {
    const char* what;
    std::initializer_list<std::uint16_t> weights;  // cpu, memory, extended
    Values pod;
    std::vector<Node> nodes;
    Values expected;
  };
  const auto run = [](std::uint8_t code, const std::vector<Case>& cases) {
    for (const Case& c : cases) {
      penstock_column_op op = c.weights.size() == 3   ? allocation_op(code, {0, 1, 2}, c.weights)
                              : c.weights.size() == 2 ? allocation_op(code, {0, 1}, c.weights)
                                                      : make_op(code);
      if (op.n == 3) op.skip_unasked = 4;
      std::vector<Node> nodes = c.nodes;
      for (Node& node : nodes) node.scored = node.requested;
      EXPECT_EQ(of(nodes, make_task(c.pod, c.pod), {op}), c.expected) << c.what;
    }
  };
  const std::vector<Node> empty = {{{4 * kM, 10000}}, {{6 * kM, 10000}}};
  const std::vector<Node> used = {{{10 * kM, 20000}, {3 * kM, 0}},
                                  {{10 * kM, 20000}, {3 * kM, 5000}}};
  run(PENSTOCK_SCORE_LEAST_ALLOCATED,
      {{"nothing requested", {1, 1}, {0, 0}, {{{4 * kM, 10000}}, {{4 * kM, 10000}}}, {100, 100}},
       {"different node sizes", {1, 1}, {3 * kM, 5000}, empty, {37, 50}},
       {"no resources", {}, {3 * kM, 5000}, empty, {0, 0}},
       {"no request, pods placed",
        {1, 1},
        {0, 0},
        {{{10 * kM, 20000}, {6 * kM, 0}}, {{10 * kM, 20000}, {6 * kM, 5000}}},
        {70, 57}},
       {"used nodes", {1, 1}, {3 * kM, 5000}, used, {57, 45}},
       {"unequal memory",
        {1, 1},
        {3 * kM, 5000},
        {{{10 * kM, 20000}, {3 * kM, 0}}, {{10 * kM, 50000}, {3 * kM, 5000}}},
        {57, 60}},
       {"zero capacity", {1, 1}, {0, 0}, {{{0, 0}, {3 * kM, 0}}, {{0, 0}, {3 * kM, 5000}}}, {0, 0}},
       {"memory weight 2", {1, 2}, {3 * kM, 5000}, empty, {41, 50}},
       {"extended resource not requested",
        {1, 1, 1},
        {3 * kM, 5000, 0},
        {{{6 * kM, 10000, 0}}, {{6 * kM, 10000, 4}}},
        {50, 50}},
       {"extended resource requested",
        {1, 1, 1},
        {3 * kM, 5000, 2},
        {{{6 * kM, 10000, 4}}, {{6 * kM, 10000, 10}}},
        {50, 60}}});
  run(PENSTOCK_SCORE_MOST_ALLOCATED,
      {{"nothing requested", {1, 1}, {0, 0}, {{{4 * kM, 10000}}, {{4 * kM, 10000}}}, {0, 0}},
       {"resources requested", {1, 1}, {3 * kM, 5000}, empty, {62, 50}},
       {"used nodes", {1, 1}, {3 * kM, 5000}, used, {42, 55}},
       {"above capacity", {1, 1}, {5 * kM, 9000}, {{{5 * kM, 10000}}, {{10 * kM, 9000}}}, {95, 75}},
       {"memory weight 2", {1, 2}, {3 * kM, 5000}, empty, {58, 50}},
       {"extended resource requested",
        {1, 1, 1},
        {3 * kM, 5000, 2},
        {{{6 * kM, 10000, 4}}, {{6 * kM, 10000, 10}}},
        {50, 40}},
       {"extended resource not requested",
        {1, 1, 2},
        {3 * kM, 4000, 0},
        {{{6 * kM, 10000, 0}}, {{6 * kM, 10000, 4}}},
        {45, 45}}});
}

TEST_P(SelectScores, LeastAllocatedOfMoreThanThereIsIsNothing) {
  const penstock_column_op least = allocation_op(PENSTOCK_SCORE_LEAST_ALLOCATED, {0}, {1});
  EXPECT_EQ(of({{{10}, {}, {8}}, {{10}, {}, {9}}}, make_task({}, {2}), {least}), (Values{0, 0}));
}

// kubernetes/kubernetes, noderesources/balanced_allocation_test.go (Apache-2.0).
TEST_P(SelectScores, KubernetesBalancedAllocation) {
  const penstock_column_op two = make_op(PENSTOCK_SCORE_BALANCED, {0, 1});
  penstock_column_op three = make_op(PENSTOCK_SCORE_BALANCED, {0, 1, 2});
  three.skip_unasked = 4;
  EXPECT_EQ(of({{{4000, 10000}}, {{6000, 10000}}}, make_task({3000, 5000}, {}), {two}),
            (Values{87, 100}));
  EXPECT_EQ(of({{{10000, 20000}, {3000, 0}}, {{10000, 20000}, {3000, 5000}}},
               make_task({3000, 5000}, {}), {two}),
            (Values{82, 95}));
  EXPECT_EQ(of({{{6000, 10000}, {3000, 0}}, {{6000, 10000}, {3000, 5000}}},
               make_task({3000, 0}, {}), {two}),
            (Values{50, 75}));
  EXPECT_EQ(of({{{3500, 40000, 8}, {3000, 5000, 3}}, {{3500, 40000, 8}, {3000, 5000, 0}}},
               make_task({0, 0, 1}, {}), {three}),
            (Values{70, 65}));
  EXPECT_EQ(of({{{3500, 40000, 8}}, {{3500, 40000, 0}}}, make_task({3000, 5000, 0}, {}), {three}),
            (Values{63, 63}));
  // A pod that asks for nothing skips the score.
  EXPECT_EQ(of({{{4000, 10000}, {4000, 0}}, {{4000, 10000}}}, make_task({0, 0}, {}), {two}),
            (Values{0, 0}));
}

// kubernetes/kubernetes, noderesources/fit_test.go (Apache-2.0). Resources: cpu, memory, pods,
// ephemeral storage, an extended one, huge pages; every pod asks for one of pods.
TEST_P(SelectScores, KubernetesFit) {
  const struct {
    const char* what;
    Values used;
    Values pod;
    bool fits;
  } cases[] = {
      {"no request", {10, 20}, {0, 0, 1}, true},
      {"both short", {10, 20}, {1, 1, 1}, false},
      {"cpu short by init container", {8, 19}, {3, 1, 1}, false},
      {"memory short", {9, 19}, {1, 3, 1}, false},
      {"equal edge", {9, 19}, {1, 1, 1}, true},
      {"fits", {5, 5}, {1, 1, 1}, true},
      {"extended fits", {0, 0}, {0, 0, 1, 0, 1}, true},
      {"extended above capacity", {0, 0}, {1, 1, 1, 0, 10}, false},
      {"extended above free", {0, 0, 1, 0, 5}, {1, 1, 1, 0, 1}, false},
      {"extended equal edge", {0, 0, 1, 0, 2}, {1, 1, 1, 0, 3}, true},
      {"huge pages, sum of containers", {0, 0, 1, 0, 0, 2}, {1, 1, 1, 0, 0, 6}, false},
      {"overhead fits", {5, 5}, {4, 14, 1}, true},
      {"ephemeral storage short", {2, 2}, {0, 0, 1, 25}, false},
      {"too many pods", {5, 5, 32}, {0, 0, 1}, false},
  };
  const penstock_column_op fit = make_op(PENSTOCK_FILTER_FIT, {0, 1, 2, 3, 4, 5});
  for (const auto& c : cases)
    EXPECT_EQ(of({{{10, 20, 32, 20, 5, 5}, c.used}}, make_task(c.pod, {}), {fit}),
              (Values{c.fits ? 0 : kInfeasible}))
        << c.what;
}

TEST_P(SelectScores, ANodeThatIsOverCommittedStillTakesTasksThatAskForNothingOfIt) {
  const penstock_column_op fit = make_op(PENSTOCK_FILTER_FIT, {0, 1});
  EXPECT_EQ(of({{{10, 10}, {12, 0}}}, make_task({0, 1}, {}), {fit}), (Values{0}));
  EXPECT_EQ(of({{{10, 10}, {12, 0}}}, make_task({1, 1}, {}), {fit}), (Values{kInfeasible}));
}

// Python, with its float64: 14 nodes and tasks drawn at random.
TEST_P(SelectScores, ResourceScoresMatchAnotherImplementation) {
  const struct {
    Values allocatable, requested, task;
    std::int64_t least, most, balanced, best_fit, dot_product;
  } cases[] = {
      {{31999, 503828480, 8000},
       {22085, 341302726, 6957},
       {0, 209715200, 3000},
       5,
       94,
       85,
       108,
       97},
      {{96000, 274877906944, 4000},
       {53312, 42923207427, 422},
       {100, 209715200, 2500},
       58,
       41,
       75,
       66,
       92},
      {{3500, 1099511627776, 4000},
       {854, 696642905808, 2561},
       {44000, 209715200, 2500},
       18,
       81,
       82,
       104,
       96},
      {{0, 1099511627776, 4000}, {0, 451321459815, 2347}, {100, 1, 0}, 51, 47, 91, 60, 100},
      {{0, 274877906944, 1000}, {0, 157902025574, 312}, {44000, 1, 3000}, 25, 74, 78, 126, 98},
      {{0, 274877906944, 8000}, {0, 127585369555, 7037}, {100, 8589934592, 0}, 34, 64, 80, 87, 100},
      {{0, 274877906944, 7}, {0, 151615549927, 2}, {44000, 8589934592, 3000}, 24, 74, 79, 130, 99},
      {{64000, 503828480, 8000}, {36417, 447108851, 3546}, {100, 1, 2500}, 20, 78, 87, 77, 91},
      {{31999, 274877906944, 1000},
       {25551, 234420867606, 353},
       {100, 1, 3000},
       10,
       89,
       91,
       110,
       98},
      {{0, 503828480, 4000}, {0, 92516581, 705}, {0, 1, 2500}, 56, 42, 69, 95, 93},
      {{0, 34359738375, 4000}, {0, 34155882497, 2172}, {0, 8589934592, 0}, 18, 81, 77, 88, 100},
      {{0, 1099511627776, 7}, {0, 27202291114, 1}, {0, 1, 2500}, 58, 41, 51, 66, 99},
      {{128000, 274877906944, 8000}, {86985, 103195799760, 1799}, {0, 1, 0}, 62, 37, 81, 37, 100},
      {{31999, 503828480, 8000}, {28668, 67664599, 3432}, {44000, 1, 2500}, 51, 47, 63, 102, 90},
  };
  penstock_column_op best_fit = make_op(PENSTOCK_SCORE_BEST_FIT, {0, 1, 2});
  best_fit.scale[0] = 128000;
  best_fit.scale[1] = std::int64_t{1} << 40;
  best_fit.scale[2] = 8000;
  penstock_column_op dot_product = make_op(PENSTOCK_SCORE_DOT_PRODUCT, {0, 2});
  dot_product.scale[0] = 128000;
  dot_product.scale[1] = 8000;
  const auto weighted = [](std::uint8_t code) { return allocation_op(code, {0, 1, 2}, {1, 3, 2}); };
  for (const auto& c : cases) {
    const std::vector<Node> node = {{c.allocatable, c.requested, c.requested}};
    const penstock_task task = make_task(c.task, c.task);
    EXPECT_EQ(of(node, task, {weighted(PENSTOCK_SCORE_LEAST_ALLOCATED)}), Values{c.least});
    EXPECT_EQ(of(node, task, {weighted(PENSTOCK_SCORE_MOST_ALLOCATED)}), Values{c.most});
    EXPECT_EQ(of(node, task, {make_op(PENSTOCK_SCORE_BALANCED, {0, 1, 2})}), Values{c.balanced});
    EXPECT_EQ(of(node, task, {best_fit}), Values{c.best_fit});
    EXPECT_EQ(of(node, task, {dot_product}), Values{c.dot_product});
  }
}

TEST_P(SelectScores, FloatScoresAreLimitedBeforeTheyBecomeIntegers) {
  penstock_column_op op = make_op(PENSTOCK_SCORE_BEST_FIT, {0});
  op.scale[0] = 1;
  EXPECT_EQ(
      of({{{PENSTOCK_MAX_QUANTITY}}, {{0}, {PENSTOCK_MAX_QUANTITY}}}, make_task({}, {}), {op}),
      (Values{-PENSTOCK_MAX_FREE_VALUE, PENSTOCK_MAX_FREE_VALUE}));
}

TEST_P(SelectScores, GpuFilterCountsGpusWithRoom) {
  const std::vector<Node> nodes = {{{0}, {}, {}, {1000, 500, 0}}, {{0}, {}, {}, {499, 1000, 1000}}};
  const penstock_column_op op = make_op(PENSTOCK_FILTER_GPU);
  EXPECT_EQ(of(nodes, gpu_task(0, 0), {op}), (Values{0, 0}));
  EXPECT_EQ(of(nodes, gpu_task(1, 1000), {op}), (Values{0, 0}));
  EXPECT_EQ(of(nodes, gpu_task(2, 500), {op}), (Values{0, 0}));
  EXPECT_EQ(of(nodes, gpu_task(2, 501), {op}), (Values{kInfeasible, 0}));
  EXPECT_EQ(of(nodes, gpu_task(3, 499), {op}), (Values{kInfeasible, 0}));
  EXPECT_EQ(of(nodes, gpu_task(4, 1), {op}), (Values{kInfeasible, kInfeasible}));
}

TEST_P(SelectScores, GpuPacking) {
  const penstock_column_op op = make_op(PENSTOCK_SCORE_GPU_PACKING, {0});
  const auto packing = [&](std::int64_t gpus, const Values& free_milli, std::uint32_t count,
                           std::uint32_t milli) {
    return of({{{gpus * 1000}, {}, {}, free_milli}}, gpu_task(count, milli), {op})[0];
  };
  const Values idle_16(16, 1000);
  EXPECT_EQ(packing(4, {1000, 1000, 1000, 1000}, 1, 100), 29);  // 33 - 4
  EXPECT_EQ(packing(16, idle_16, 8, 1000), 17);                 // 33 - 16
  EXPECT_EQ(packing(4, {1000, 1000, 0, 0}, 1, 100), 49);        // two are used up, not absent
  const Values partial = {1000, 500, 0, 300};
  EXPECT_EQ(packing(4, partial, 0, 0), 0);
  EXPECT_EQ(packing(4, partial, 1, 300), 97);           // 100 - 30 / 10
  EXPECT_EQ(packing(4, partial, 1, 301), 95);           // 100 - 50 / 10
  EXPECT_EQ(packing(4, partial, 1, 501), 49);           // 50 - 1
  EXPECT_EQ(packing(4, partial, 2, 300), 92);           // 100 - (30 + 50) / 10
  EXPECT_EQ(packing(4, partial, 2, 400), 49);           // 500 and a whole one
  EXPECT_EQ(packing(4, partial, 2, 1000), 0);           // there is one only
  EXPECT_EQ(packing(4, {209, 391, 0, 0}, 2, 200), 95);  // 100 - (20 + 39) / 10
  EXPECT_EQ(packing(8, {950, 950, 950, 950, 950, 950, 950, 950}, 8, 900), 50);  // at least
  EXPECT_EQ(packing(4, {1000, 1000, 1000, 0}, 3, 1000), 47);
}

TEST_P(SelectScores, GpuClustering) {
  penstock_column_op op = make_op(PENSTOCK_SCORE_GPU_CLUSTERING, {0, 1, 2});
  op.scale[0] = 8000;
  penstock_task task = gpu_task(1, 500);
  task.klass = 1;
  const Values idle(8, 1000);
  const Values used = {1000, 1000, 1000, 1000, 1000, 0, 0, 0};  // 25 * 3000 / 8000 = 9
  const std::vector<Node> nodes = {{{0}, {}, {}, idle, {0, 0, 0}}, {{0}, {}, {}, used, {0, 0, 0}},
                                   {{0}, {}, {}, used, {0, 2, 0}}, {{0}, {}, {}, used, {1, 2, 0}},
                                   {{0}, {}, {}, used, {0, 0, 3}}, {{0}, {}, {}, idle, {-1, 5, 0}}};
  EXPECT_EQ(of(nodes, task, {op}), (Values{25, 34, 84, 59, 9, 75}));
  task.klass = 7;  // counted in no column
  EXPECT_EQ(of(nodes, task, {op}), (Values{25, 34, 9, 9, 9, 0}));
  EXPECT_EQ(of(nodes, gpu_task(0, 0), {op}), (Values{0, 0, 0, 0, 0, 0}));
}

TEST_P(SelectScores, FeaturesAreADotProduct) {
  penstock_task task = make_task({}, {});
  task.feature[0] = 3;
  task.feature[1] = -256;
  const penstock_column_op op = make_op(PENSTOCK_SCORE_FEATURES, {2, 0});
  EXPECT_EQ(of({{{0}, {}, {}, {}, {5, 99, 7}},
                {{0}, {}, {}, {}, {PENSTOCK_MAX_FREE_VALUE, 0, -1}},
                {{0}, {}, {}, {}, {PENSTOCK_MAX_FREE_VALUE + 9, 0, -1}}},  // damaged
               task, {op}),
            (Values{3 * 7 - 256 * 5, -3 - 256 * PENSTOCK_MAX_FREE_VALUE,
                    -3 - 256 * PENSTOCK_MAX_FREE_VALUE}));
}

TEST_P(SelectScores, TermsAskBitColumns) {
  HostTable table = make_table({{{0}}, {{0}}, {{0}}, {{0}}});
  table.set_bit(2, 1);
  table.set_bit(2, 3);
  table.set_bit(3, 2);
  table.set_bit(3, 3);
  penstock_task task = make_task({}, {});
  task.n_terms = 3;
  task.terms[0] = {2, 1, 0, 10};
  task.terms[1] = {3, 1, 1, -3};
  task.terms[2] = {3, 9, 0, 100};
  penstock_column_op op = make_op(PENSTOCK_SCORE_BITS);
  op.group = 1;
  EXPECT_EQ(scores(GetParam(), table, task, {op}), (Values{-3, 7, 0, 10}));
  op = make_op(PENSTOCK_FILTER_BITS);
  op.group = 1;
  EXPECT_EQ(scores(GetParam(), table, task, {op}),
            (Values{kInfeasible, 0, kInfeasible, kInfeasible}));
  op.group = 2;  // the task asks nothing in it
  EXPECT_EQ(scores(GetParam(), table, task, {op}), (Values{0, 0, 0, 0}));
}

TEST_P(SelectScores, RowFilter) {
  penstock_task task = make_task({}, {});
  const penstock_column_op op = make_op(PENSTOCK_FILTER_ROW);
  EXPECT_EQ(of({{{0}}, {{0}}, {{0}}}, task, {op}), (Values{0, 0, 0}));
  task.row = 2;
  EXPECT_EQ(of({{{0}}, {{0}}, {{0}}}, task, {op}), (Values{kInfeasible, kInfeasible, 0}));
  task.row = 3;
  EXPECT_EQ(of({{{0}}, {{0}}, {{0}}}, task, {op}), (Values{kInfeasible, kInfeasible, kInfeasible}));
}

// Scores come from a free column; the third row is not feasible and has the largest.
TEST_P(SelectScores, NormalisationLooksAtFeasibleRows) {
  const struct {
    penstock_normalise kind;
    Values raw;
    Values expected;
  } cases[] = {
      {PENSTOCK_NORMALISE_NONE, {3, 7, 10}, {3, 7, 10}},
      {PENSTOCK_NORMALISE_DEFAULT, {3, 7, 10}, {30, 70, 100}},
      {PENSTOCK_NORMALISE_DEFAULT, {1, 2, 3}, {33, 66, 100}},
      {PENSTOCK_NORMALISE_DEFAULT, {0, 0, 0}, {0, 0, 0}},
      {PENSTOCK_NORMALISE_DEFAULT, {-7, 3, 0}, {-233, 100, 0}},
      {PENSTOCK_NORMALISE_DEFAULT, {-7, -3, -3}, {-7, -3, -3}},
      {PENSTOCK_NORMALISE_DEFAULT, {-10486, 1, -10485}, {-1048576, 100, -1048500}},
      {PENSTOCK_NORMALISE_REVERSED, {-10486, 1, -10484}, {1048576, 0, 1048500}},
      {PENSTOCK_NORMALISE_SPREAD, {-10486, 1, -1}, {0, 100, 0}},
      {PENSTOCK_NORMALISE_DEFAULT, {-9999999, -3, 0}, {-1048576, -3, 0}},
      {PENSTOCK_NORMALISE_REVERSED, {3, 7, 10}, {70, 30, 0}},
      {PENSTOCK_NORMALISE_REVERSED, {1, 2, 3}, {67, 34, 0}},
      {PENSTOCK_NORMALISE_REVERSED, {0, 0, 0}, {100, 100, 100}},
      {PENSTOCK_NORMALISE_REVERSED, {-7, -3, -3}, {100, 100, 100}},
      {PENSTOCK_NORMALISE_MIN_MAX, {3, 7, 10}, {0, 57, 100}},
      {PENSTOCK_NORMALISE_MIN_MAX, {0, 29, 50}, {0, 58, 100}},
      {PENSTOCK_NORMALISE_MIN_MAX, {-5, -5, -5}, {0, 0, 0}},
      {PENSTOCK_NORMALISE_MIN_MAX_F64, {3, 7, 10}, {0, 57, 100}},
      {PENSTOCK_NORMALISE_MIN_MAX_F64, {0, 29, 50}, {0, 57, 100}},  // 57.99999999999999
      {PENSTOCK_NORMALISE_MIN_MAX_F64, {4, 4, 4}, {0, 0, 0}},
      {PENSTOCK_NORMALISE_SPREAD, {3, 7, 10}, {100, 60, 30}},
      {PENSTOCK_NORMALISE_SPREAD, {0, 0, 0}, {100, 100, 100}},
      {PENSTOCK_NORMALISE_SPREAD, {-4, 2, 1}, {0, 50, 100}},
  };
  penstock_task task = make_task({1}, {});
  task.feature[0] = 1;
  for (const auto& c : cases) {
    penstock_column_op op = make_op(PENSTOCK_SCORE_FEATURES, {0});
    op.normalise = c.kind;
    op.weight = -2;
    const std::vector<Node> nodes = {{{1}, {}, {}, {}, {c.raw[0]}},
                                     {{1}, {}, {}, {}, {c.raw[1]}},
                                     {{0}, {}, {}, {}, {1000}},
                                     {{1}, {}, {}, {}, {c.raw[2]}}};
    EXPECT_EQ(of(nodes, task, {make_op(PENSTOCK_FILTER_FIT, {0}), op}),
              (Values{-2 * c.expected[0], -2 * c.expected[1], kInfeasible, -2 * c.expected[2]}))
        << c.kind << ": " << c.raw[0] << " " << c.raw[1] << " " << c.raw[2];
  }
}

TEST_P(SelectScores, TheWeightedSumTakesEveryScore) {
  penstock_task task = make_task({}, {});
  task.feature[0] = 1;
  penstock_column_op plain = make_op(PENSTOCK_SCORE_FEATURES, {0});
  plain.weight = 500;
  penstock_column_op normalised = make_op(PENSTOCK_SCORE_FEATURES, {1});
  normalised.normalise = PENSTOCK_NORMALISE_DEFAULT;
  normalised.weight = 7;
  EXPECT_EQ(of({{{0}, {}, {}, {}, {-5, 10}}, {{0}, {}, {}, {}, {3, 20}}}, task,
               {plain, normalised, plain}),
            (Values{-5000 + 7 * 50, 3000 + 7 * 100}));
}

}  // namespace
}  // namespace penstock
