// How a row is chosen and what a commit does. Both host engines run every case.
#include <gtest/gtest.h>

#include <vector>

#include "penstock/descriptor/descriptor.h"
#include "penstock/engine/scalar_select.h"
#include "penstock/engine/select_conformance.h"
#include "penstock/engine/simd_select.h"

namespace penstock {
namespace {

using Select = void (*)(const TableView&, const penstock_program&, const penstock_task&, bool,
                        penstock_result*);

// A table of `rows` nodes whose score is free column 0.
class SelectRow : public testing::TestWithParam<Select> {
 protected:
  void SetUp() override {
    for (std::uint32_t row = 0; row < 6; row++) table_.set_bit(PENSTOCK_BIT_NODE, row);
    program_.magic = PENSTOCK_PROGRAM_MAGIC;
    program_.version = PENSTOCK_PROGRAM_VERSION;
    program_.best = 3;
    program_.n_ops = 1;
    program_.ops[0].op = PENSTOCK_SCORE_FEATURES;
    program_.ops[0].n = 1;
    program_.ops[0].weight = 1;
    task_.row = -1;
    task_.feature[0] = 1;
  }

  void set_scores(std::initializer_list<std::int64_t> scores) {
    std::copy(scores.begin(), scores.end(), table_.view().free);
  }
  std::int64_t* free_column(std::uint32_t column) {
    return table_.view().column(table_.view().free, column);
  }

  penstock_result select(bool commit = false) {
    std::uint64_t detail = 0;
    EXPECT_EQ(penstock_program_check(&program_, table_.header(), &detail), PENSTOCK_OK);
    EXPECT_EQ(penstock_task_check(&task_, &program_, table_.header()), PENSTOCK_OK);
    penstock_result result;
    GetParam()(table_.view(), program_, task_, commit, &result);
    return result;
  }
  std::vector<std::int32_t> best_rows() {
    const penstock_result result = select();
    std::vector<std::int32_t> rows;
    for (std::uint32_t i = 0; i < result.n_best; i++) rows.push_back(result.best[i].row);
    return rows;
  }

  HostTable table_{6, 64, 2, 4, 6, 3};
  penstock_program program_ = {};
  penstock_task task_ = {};
};
INSTANTIATE_TEST_SUITE_P(Engines, SelectRow, testing::Values(&scalar_select, &simd_select),
                         [](const auto& engine) { return engine.index == 0 ? "scalar" : "simd"; });

using Rows = std::vector<std::int32_t>;

TEST_P(SelectRow, TheBestRowsComeInOrder) {
  set_scores({5, -1, 9, 7, 0, 6});
  const penstock_result result = select();
  EXPECT_EQ(result.status, PENSTOCK_OK);
  EXPECT_EQ(result.row, 2);
  EXPECT_EQ(result.score, 9);
  EXPECT_EQ(result.feasible, 6u);
  EXPECT_EQ(result.n_best, 3u);
  EXPECT_EQ(result.best[1].row, 3);
  EXPECT_EQ(result.best[1].score, 7);
  EXPECT_EQ(result.best[2].row, 5);
  EXPECT_EQ(result.best[3].row, 0);
  EXPECT_EQ(result.best[3].score, 0);
  EXPECT_EQ(table_.header()->generation, 0u);
}

TEST_P(SelectRow, ListsNoMoreRowsThanAreFeasible) {
  program_.best = 8;
  set_scores({1, 2, 3, 4, 5, 6});
  EXPECT_EQ(best_rows(), (Rows{5, 4, 3, 2, 1, 0}));
  program_.best = 1;
  EXPECT_EQ(best_rows(), (Rows{5}));
}

TEST_P(SelectRow, LowestRowWinsTies) {
  set_scores({1, 2, 2, 1, 2, 2});
  EXPECT_EQ(best_rows(), (Rows{1, 2, 4}));
}

TEST_P(SelectRow, RotatingTiesStartAtTheTasksNumber) {
  program_.tie = PENSTOCK_TIE_ROTATING;
  set_scores({2, 2, 1, 2, 2, 1});
  task_.tie = 1;
  EXPECT_EQ(best_rows(), (Rows{1, 3, 4}));
  task_.tie = 2;
  EXPECT_EQ(best_rows(), (Rows{3, 4, 0}));
  task_.tie = 6 * 1000 + 4;
  EXPECT_EQ(best_rows(), (Rows{4, 0, 1}));
  task_.tie = UINT64_MAX;  // 3 modulo 6
  EXPECT_EQ(best_rows(), (Rows{3, 4, 0}));
}

// The order of the hashes of rows 0..5 under seed 1 and tie 2, from another implementation.
TEST_P(SelectRow, HashTies) {
  program_.tie = PENSTOCK_TIE_HASH;
  program_.seed = 1;
  task_.tie = 2;
  EXPECT_EQ(penstock_tie_hash(1, 2, 3), UINT64_C(0x97753e02856ef3dc));
  program_.best = 8;
  EXPECT_EQ(best_rows(), (Rows{5, 3, 4, 2, 1, 0}));
  program_.best = 2;
  EXPECT_EQ(best_rows(), (Rows{5, 3}));
  set_scores({0, 0, 1, 0, 0, 0});
  EXPECT_EQ(best_rows(), (Rows{2, 5}));
}

TEST_P(SelectRow, NobodyPasses) {
  table_.set_bit(PENSTOCK_BIT_NODE, 0, false);
  task_.row = 0;
  program_.n_ops = 2;
  program_.ops[1] = program_.ops[0];
  program_.ops[0] = {};
  program_.ops[0].op = PENSTOCK_FILTER_ROW;
  const penstock_result result = select(true);
  EXPECT_EQ(result.status, PENSTOCK_NOT_FOUND);
  EXPECT_EQ(result.row, -1);
  EXPECT_EQ(result.score, 0);
  EXPECT_EQ(result.feasible, 0u);
  EXPECT_EQ(result.n_best, 0u);
  EXPECT_EQ(table_.header()->generation, 0u);
}

TEST_P(SelectRow, ATableWithoutRows) {
  table_.header()->rows = 0;
  for (const std::uint8_t tie : {PENSTOCK_TIE_LOWEST_ROW, PENSTOCK_TIE_ROTATING}) {
    program_.tie = tie;
    EXPECT_EQ(select(true).status, PENSTOCK_NOT_FOUND);
    program_.ops[0].normalise = PENSTOCK_NORMALISE_MIN_MAX;
  }
}

TEST_P(SelectRow, CommitChangesTheWinnersRowAlone) {
  set_scores({0, 0, 3, 0, 0, 0});
  task_.request[0] = 10;
  task_.request[1] = 20;
  task_.scored_request[0] = 100;
  task_.set_bits[3] = 4;
  task_.set_bits[7] = 5;
  task_.count[0] = 2;
  task_.count[1] = 3;
  task_.count[2] = 3;
  task_.gpu_count = 2;
  task_.gpu_milli = 300;
  const TableView view = table_.view();
  for (std::uint32_t s = 0; s < 4; s++) view.column(view.gpu, s)[2] = 1000 - 200 * s;
  HostTable expected = table_;
  const TableView after = expected.view();
  after.column(after.requested, 0)[2] = 10;
  after.column(after.requested, 1)[2] = 20;
  after.column(after.scored, 0)[2] = 100;
  after.column(after.gpu, 3)[2] = 100;
  after.column(after.gpu, 2)[2] = 300;
  after.column(after.free, 1)[2] = 1;
  after.column(after.free, 2)[2] = 2;
  expected.set_bit(4, 2);
  expected.set_bit(5, 2);
  expected.header()->generation = 1;

  const penstock_result result = select(true);
  EXPECT_EQ(result.status, PENSTOCK_OK);
  EXPECT_EQ(result.row, 2);
  EXPECT_EQ(result.gpu_mask, 0b1100u);
  EXPECT_EQ(difference(expected, table_), "");
}

TEST_P(SelectRow, EachTaskSeesThePlacementsBeforeIt) {
  penstock_column_op fit = {};
  fit.op = PENSTOCK_FILTER_FIT;
  fit.n = 1;
  program_.ops[1] = program_.ops[0];
  program_.ops[0] = fit;
  program_.n_ops = 2;
  const TableView view = table_.view();
  view.allocatable[1] = 5;
  view.allocatable[4] = 3;
  task_.request[0] = 2;
  const std::int32_t rows[] = {1, 1, 4, -1};
  for (const std::int32_t row : rows) EXPECT_EQ(select(true).row, row);
  EXPECT_EQ(view.requested[1], 4);
  EXPECT_EQ(table_.header()->generation, 3u);
}

TEST_P(SelectRow, ACommitThatLeavesABoundIsRefusedWhole) {
  const auto refused = [&](const char* what) {
    const HostTable before = table_;
    const penstock_result result = select(true);
    EXPECT_EQ(result.status, PENSTOCK_OUT_OF_RANGE) << what;
    EXPECT_EQ(result.row, 0) << what;
    EXPECT_EQ(result.n_best, 3u) << what;
    EXPECT_EQ(difference(before, table_), "") << what;
  };
  const TableView view = table_.view();
  set_scores({1, 0, 0, 0, 0, 0});
  task_.request[1] = 2;
  std::int64_t* requested = view.column(view.requested, 1);
  requested[0] = PENSTOCK_MAX_QUANTITY - 1;
  refused("requested");
  requested[0] = -1;
  refused("a damaged cell");
  requested[0] = PENSTOCK_MAX_QUANTITY - 2;
  task_.scored_request[0] = 1;
  view.scored[0] = PENSTOCK_MAX_QUANTITY;
  refused("scored");
  view.scored[0] = 0;
  task_.count[0] = task_.count[3] = 2;
  free_column(1)[0] = PENSTOCK_MAX_FREE_VALUE - 1;
  refused("a column counted twice");
  free_column(1)[0] = PENSTOCK_MAX_FREE_VALUE - 2;
  task_.gpu_count = 2;
  task_.gpu_milli = 500;
  view.column(view.gpu, 2)[0] = 500;
  refused("too few GPUs");
  view.column(view.gpu, 3)[0] = 500;
  EXPECT_EQ(select(true).status, PENSTOCK_OK);
  EXPECT_EQ(requested[0], PENSTOCK_MAX_QUANTITY);
  EXPECT_EQ(free_column(1)[0], PENSTOCK_MAX_FREE_VALUE);
}

TEST_P(SelectRow, GpuPicks) {
  task_.gpu_count = 2;
  task_.gpu_milli = 400;
  const std::int64_t free_milli[] = {700, 399, 400, 400};
  const TableView view = table_.view();
  for (std::uint32_t s = 0; s < 4; s++) view.column(view.gpu, s)[0] = free_milli[s];
  EXPECT_EQ(select().gpu_mask, 0b1100u);
  program_.gpu_pick = PENSTOCK_GPU_LOWEST;
  EXPECT_EQ(select().gpu_mask, 0b0101u);
  // Hashes of the indices 0..3 under seed 1 and ~2 fall in the order 1, 3, 0, 2; 1 does not fit.
  program_.gpu_pick = PENSTOCK_GPU_HASH;
  program_.seed = 1;
  task_.tie = 2;
  EXPECT_EQ(select().gpu_mask, 0b1001u);
  task_.gpu_count = 0;
  task_.gpu_milli = 0;
  EXPECT_EQ(select().gpu_mask, 0u);
}

TEST_P(SelectRow, WholeGpusGoByIndex) {
  task_.gpu_count = 2;
  task_.gpu_milli = 1000;
  const TableView view = table_.view();
  for (std::uint32_t s = 1; s < 4; s++) view.column(view.gpu, s)[0] = 1000;
  EXPECT_EQ(select().gpu_mask, 0b0110u);
}

}  // namespace
}  // namespace penstock
