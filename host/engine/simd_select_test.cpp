// The vector kernels against the definition, on every instruction set that this processor has.
#include "penstock/engine/simd_select.h"

#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>

#include "penstock/descriptor/descriptor.h"
#include "penstock/engine/scalar_select.h"
#include "penstock/engine/select_conformance.h"
#include "penstock/engine/simd_select_blocks.h"

namespace penstock {
namespace {

class SimdSelect : public testing::Test {
 protected:
  ~SimdSelect() override { use_targets(0); }

  // 0: all there are.
  static void use_targets(std::int64_t targets) {
    hwy::SetSupportedTargetsForTest(targets);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  }

  // Places the case's tasks one after another on both; false after the first difference.
  static bool same(std::uint64_t seed, const SelectCase& made) {
    HostTable expected = made.table;
    HostTable actual = made.table;
    for (std::size_t i = 0; i < made.tasks.size(); i++) {
      penstock_result defined;
      penstock_result result;
      std::memset(&defined, 0x55, sizeof defined);
      std::memset(&result, 0xaa, sizeof result);
      scalar_select(expected.view(), made.program, made.tasks[i], made.commit, &defined);
      simd_select(actual.view(), made.program, made.tasks[i], made.commit, &result);
      const std::string result_difference = difference(defined, result);
      EXPECT_EQ(result_difference, "") << "seed " << seed << ", task " << i;
      if (!result_difference.empty()) return false;
      placed_ += result.status == PENSTOCK_OK;
      refused_ += result.status == PENSTOCK_OUT_OF_RANGE;
    }
    const std::string table_difference = difference(expected, actual);
    EXPECT_EQ(table_difference, "") << "seed " << seed;
    return table_difference.empty();
  }

  // The block kernel for `op`.
  static bool score(const TableView& view, const penstock_column_op& op, const penstock_task& task,
                    RowBlock block, std::int64_t* scores) {
    static const penstock_program kProgram = {};
    return block_kernels().score({view, kProgram, task}, op, block, scores);
  }

  static std::uint64_t placed_;
  static std::uint64_t refused_;
};
std::uint64_t SimdSelect::placed_ = 0;
std::uint64_t SimdSelect::refused_ = 0;

TEST_F(SimdSelect, RandomCasesGiveTheBitsOfTheDefinition) {
  const std::int64_t all = hwy::SupportedTargets();
  placed_ = refused_ = 0;
  std::uint64_t cases = 0;
  for (std::int64_t targets = all; targets != 0; targets &= targets - 1) {
    use_targets(targets & -targets);
    for (std::uint64_t seed = 0; seed < 1000; seed++, cases++) {
      const SelectCase made = make_select_case(seed);
      ASSERT_TRUE(same(seed, made)) << hwy::TargetName(targets & -targets);
    }
  }
  // A comparison of refusals would prove little.
  EXPECT_GT(placed_, cases);
  EXPECT_GT(refused_, 20u);
}

TEST_F(SimdSelect, LongSequencesOfCommits) {
  SelectRules rules;
  rules.damaged = false;
  rules.max_tasks = 200;
  for (std::uint64_t seed = 100000; seed < 100060; seed++) {
    SelectCase made = make_select_case(seed, rules);
    made.commit = true;
    ASSERT_TRUE(same(seed, made));
  }
}

TEST_F(SimdSelect, EachScoreAlone) {
  for (std::uint32_t op = PENSTOCK_SCORE_LEAST_ALLOCATED; op <= PENSTOCK_SCORE_FGD; op++) {
    SelectRules rules;
    rules.opcodes = std::uint64_t{1} << op;
    for (std::uint64_t seed = 0; seed < 300; seed++) {
      const SelectCase made = make_select_case((std::uint64_t{op} << 32) + seed, rules);
      ASSERT_TRUE(same(seed, made)) << penstock_column_opcode_name(op);
    }
  }
}

// Rows that could not be among the best are left without some of their scores.
TEST_F(SimdSelect, SeveralPercentages) {
  SelectRules rules;
  rules.max_rows = 2000;
  rules.opcodes = 0;
  for (const std::uint32_t op :
       {PENSTOCK_FILTER_FIT, PENSTOCK_SCORE_LEAST_ALLOCATED, PENSTOCK_SCORE_MOST_ALLOCATED,
        PENSTOCK_SCORE_BALANCED, PENSTOCK_SCORE_RATIO, PENSTOCK_SCORE_BITS})
    rules.opcodes |= std::uint64_t{1} << op;
  std::uint64_t several = 0;
  for (std::uint64_t seed = 200000; seed < 200400; seed++) {
    const SelectCase made = make_select_case(seed, rules);
    several += made.program.n_ops > 2;
    ASSERT_TRUE(same(seed, made));
  }
  EXPECT_GT(several, 30u);
}

TEST_F(SimdSelect, NormalisedScoresAreThoseOfTheDefinition) {
  const std::int64_t all = hwy::SupportedTargets();
  for (std::int64_t targets = all; targets != 0; targets &= targets - 1) {
    use_targets(targets & -targets);
    SeededRandom random(7);
    for (int round = 0; round < 2000; round++) {
      const std::int64_t mosts[] = {1, 3, 100, 1 << 20, (std::int64_t{1} << 50) / 400};
      const std::int64_t most = mosts[random.below(std::size(mosts))];
      const std::int64_t least = random.one_in(2) ? 0 : -most;
      std::int64_t scores[64];
      ScoreRange range;
      for (std::int64_t& score : scores) score = random.between(least, most);
      const auto kind = static_cast<std::uint32_t>(
          random.between(PENSTOCK_NORMALISE_DEFAULT, PENSTOCK_NORMALISE_SPREAD));
      const std::uint8_t feasible[64] = {};
      EXPECT_FALSE(scalar_score_range(kind, scores, feasible, 64).any);
      std::uint8_t every[64];
      std::fill_n(every, 64, 1);
      range = scalar_score_range(kind, scores, every, 64);
      ScoreRange vector_range;
      const std::uint64_t word = ~std::uint64_t{0};
      block_kernels().extend_range(scores, kind == PENSTOCK_NORMALISE_SPREAD ? 0 : INT64_MIN, &word,
                                   1, &vector_range);
      ASSERT_EQ(range.min, vector_range.min);
      ASSERT_EQ(range.max, vector_range.max);
      ASSERT_EQ(range.any, vector_range.any);
      ASSERT_EQ(range.has_ignored, vector_range.has_ignored);
      std::int64_t total[64] = {};
      const auto weight = static_cast<std::int32_t>(random.between(-5, 5));
      if (!block_kernels().add_normalised(kind, range, weight, scores, 1, total)) continue;
      for (std::size_t i = 0; i < 64; i++)
        ASSERT_EQ(total[i], weight * scalar_normalise_one(kind, range, scores[i]))
            << "kind " << kind << " score " << scores[i] << " in " << range.min << ".."
            << range.max;
    }
  }
}

// How many domains the rows have decides over the score, whichever way they are counted.
TEST_F(SimdSelect, SpreadCountsAsManyDomainsAsTheDefinition) {
  const std::int64_t all = hwy::SupportedTargets();
  for (std::int64_t targets = all; targets != 0; targets &= targets - 1) {
    use_targets(targets & -targets);
    for (const std::int32_t domains : {1, 31, 32, 33, 63, 64, 65, 96, 127, 128, 129, 700}) {
      HostTable table(700, 704, 1, 0, 3, 0, 2, 1);
      const TableView view = table.view();
      SeededRandom random(static_cast<std::uint64_t>(domains));
      for (std::uint32_t row = 0; row < 700; row++) {
        table.set_bit(PENSTOCK_BIT_NODE, row);
        table.set_bit(2, row, random.one_in(2));
        view.domain_column(0)[row] = static_cast<std::int32_t>(row) % domains;
        view.domain_column(1)[row] = random.one_in(9) ? -1 : domains - 1;
      }
      for (int i = 0; i < 704; i++) view.count_column(0)[i] = 1000;
      penstock_program program = {};
      program.magic = PENSTOCK_PROGRAM_MAGIC;
      program.version = PENSTOCK_PROGRAM_VERSION;
      program.best = 8;
      program.n_ops = 2;
      program.ops[0].op = PENSTOCK_FILTER_BITS;
      program.ops[1].op = PENSTOCK_SCORE_SPREAD;
      program.ops[1].weight = 1;
      penstock_task task = {};
      task.row = -1;
      task.n_domain_terms = 1;
      task.domain_terms[0] = {0, 0, 0, 0, 0, 1, 0, 0, 0, 0};
      const auto select = [&] {
        penstock_result expected;
        penstock_result actual;
        scalar_select(view, program, task, false, &expected);
        simd_select(view, program, task, false, &actual);
        EXPECT_EQ(difference(expected, actual), "") << domains;
        return actual.score;
      };
      EXPECT_EQ(select(), std::llround(1000 * std::log(domains + 2.0)));
      // Half of the rows, and two terms of which one is missing now and then.
      task.n_terms = 1;
      task.terms[0] = {2, 0, 0, 0};
      task.n_domain_terms = 2;
      task.domain_terms[1] = {1, 0, 0, 0, 0, 1, 0, 0, 0, 0};
      select();
      task.domain_terms[1].kind = PENSTOCK_SPREAD_REQUIRED;
      select();
      task.domain_terms[0].kind = PENSTOCK_SPREAD_HOSTNAME;
      select();
    }
  }
}

// The float64 below k + 0.5 rounds to k, k + 0.5 itself to k + 1.
TEST_F(SimdSelect, SpreadRoundsAsTheDefinitionAroundEveryHalf) {
  const std::int64_t all = hwy::SupportedTargets();
  for (std::int64_t targets = all; targets != 0; targets &= targets - 1) {
    use_targets(targets & -targets);
    HostTable table(64, 64, 1, 0, 2, 0, 1, 1);
    penstock_task task = {};
    task.n_domain_terms = 1;
    task.domain_terms[0].domain = PENSTOCK_ROW_DOMAIN;
    task.domain_terms[0].weight = 1;
    penstock_column_op op = {};
    op.op = PENSTOCK_SCORE_SPREAD;
    const penstock_program program = {};
    for (int row = 0; row < 64; row++) table.view().count_column(0)[row] = row + 1;
    for (const double half : {0.5, 0.25, 0.125, 1.5, 0.75}) {
      for (const double log : {std::nextafter(half, 0.0), half, std::nextafter(half, 1.0)}) {
        DecisionContext context(table.view(), program, task, DecisionContext::Unprepared{});
        context.terms[0].log = log;
        std::int64_t scores[64];
        ASSERT_TRUE(block_kernels().score(context, op, {0, 1}, scores));
        for (std::uint32_t row = 0; row < 64; row++)
          ASSERT_EQ(scores[row], scalar_spread_score(context, op, row)) << log << " row " << row;
        EXPECT_EQ(scores[0], log < 0.5 ? 0 : log < 1.5 ? 1 : 2);
      }
    }
  }
}

// Fractions of small machines, whose scores are whole numbers or next to one all the time, and of
// large ones. The expectation is the formula of two resources, in the order of the definition.
TEST_F(SimdSelect, BalanceIsExactWhereWholeNumbersAreNear) {
  HostTable table(kBlockRows, kBlockRows, 2, 0, 2, 0);
  const TableView view = table.view();
  penstock_column_op op = {};
  op.op = PENSTOCK_SCORE_BALANCED;
  op.n = 2;
  op.column[1] = 1;
  penstock_task task = {};
  task.request[0] = 1;
  for (const std::int64_t targets : hwy::SupportedAndGeneratedTargets()) {
    use_targets(targets);
    SeededRandom random(7);
    std::uint64_t whole = 0;
    for (int round = 0; round < 200; round++) {
      std::int64_t expected[kBlockRows];
      for (std::uint32_t row = 0; row < kBlockRows; row++) {
        double fraction[2];
        for (std::uint32_t r = 0; r < 2; r++) {
          const std::int64_t machine = round % 4 != 0 ? 200 : std::int64_t{1} << 45;
          const std::int64_t allocatable = random.between(1, machine);
          const std::int64_t requested = random.between(0, allocatable + allocatable / 8);
          view.column(view.allocatable, r)[row] = allocatable;
          view.column(view.requested, r)[row] = requested;
          fraction[r] = std::min(1.0, static_cast<double>(requested + task.request[r]) /
                                          static_cast<double>(allocatable));
        }
        const double score = (1 - std::fabs(fraction[0] - fraction[1]) / 2) * 100;
        whole += std::fabs(score - std::round(score)) < 1e-9 ? 1 : 0;
        expected[row] = static_cast<std::int64_t>(score);
      }
      std::int64_t scores[kBlockRows];
      ASSERT_TRUE(score(view, op, task, {0, kBlockWords}, scores));
      for (std::uint32_t row = 0; row < kBlockRows; row++) {
        ASSERT_EQ(scores[row], expected[row]) << "row " << row << " of round " << round;
      }
    }
    EXPECT_GT(whole, 1000u);
  }
}

// 100 * x / y around every multiple, where a quotient that was rounded up would show.
TEST_F(SimdSelect, QuotientsAreExactToTheEndOfTheirRange) {
  constexpr std::int64_t kEnd = (std::int64_t{1} << 46) - 1;
  HostTable table(kBlockRows, kBlockRows, 1, 0, 2, 0);
  const TableView view = table.view();
  penstock_column_op op = {};
  op.op = PENSTOCK_SCORE_LEAST_ALLOCATED;
  op.n = 1;
  op.list_weight[0] = 1;
  const penstock_task task = {};
  SeededRandom random(46);
  for (int round = 0; round < 200; round++) {
    std::int64_t expected[kBlockRows];
    for (std::uint32_t row = 0; row < kBlockRows; row++) {
      const std::int64_t allocatable =
          random.one_in(2) ? kEnd - random.between(0, 1000) : random.between(1, kEnd);
      const std::int64_t percent = random.between(0, 100);
      // The smallest `left` that gives the percent, and the one below.
      const std::int64_t left =
          std::max<std::int64_t>((percent * allocatable + 99) / 100 - random.between(0, 1), 0);
      view.allocatable[row] = allocatable;
      view.scored[row] = allocatable - left;
      expected[row] = left * 100 / allocatable;
    }
    std::int64_t scores[kBlockRows];
    ASSERT_TRUE(score(view, op, task, {0, kBlockWords}, scores));
    for (std::uint32_t row = 0; row < kBlockRows; row++)
      ASSERT_EQ(scores[row], expected[row]) << view.allocatable[row] << " " << view.scored[row];
  }
}

TEST_F(SimdSelect, ABlockWithLargerCellsIsLeftToTheDefinition) {
  HostTable table(64, 64, 1, 0, 2, 1);
  const TableView view = table.view();
  penstock_column_op op = {};
  op.op = PENSTOCK_SCORE_LEAST_ALLOCATED;
  op.n = 1;
  op.list_weight[0] = 1;
  const penstock_task task = {};
  std::int64_t scores[kBlockRows];
  for (const std::int64_t cell : {std::int64_t{1} << 46, std::int64_t{-1}, INT64_MIN}) {
    view.allocatable[63] = cell;
    EXPECT_FALSE(score(view, op, task, {0, 1}, scores)) << cell;
  }
  view.allocatable[63] = (std::int64_t{1} << 46) - 1;
  EXPECT_TRUE(score(view, op, task, {0, 1}, scores));

  op = {};
  op.op = PENSTOCK_SCORE_FEATURES;
  op.n = 1;
  for (const std::int64_t cell : {PENSTOCK_MAX_FREE_VALUE + 1, -PENSTOCK_MAX_FREE_VALUE - 1}) {
    view.free[5] = cell;
    EXPECT_FALSE(score(view, op, task, {0, 1}, scores)) << cell;
  }
  view.free[5] = -PENSTOCK_MAX_FREE_VALUE;
  EXPECT_TRUE(score(view, op, task, {0, 1}, scores));
}

TEST_F(SimdSelect, RowsOutOfTheTableAreNeverChosen) {
  HostTable table(70, 128, 1, 0, 2, 0);
  for (std::uint32_t row = 0; row < 128; row++) table.set_bit(PENSTOCK_BIT_NODE, row);
  penstock_program program = {};
  program.best = 8;
  penstock_task task = {};
  task.row = -1;
  penstock_result result;
  simd_select(table.view(), program, task, false, &result);
  EXPECT_EQ(result.feasible, 70u);
  program.tie = PENSTOCK_TIE_ROTATING;
  task.tie = 67;
  simd_select(table.view(), program, task, false, &result);
  const std::int32_t rows[] = {67, 68, 69, 0, 1, 2, 3, 4};
  for (int i = 0; i < 8; i++) EXPECT_EQ(result.best[i].row, rows[i]);
}

}  // namespace
}  // namespace penstock
