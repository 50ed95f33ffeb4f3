// The usual scores in one pass, and rows divided by the terms of BITS, against the definition on
// every instruction set that this processor has.
#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>

#include "penstock/descriptor/descriptor.h"
#include "penstock/engine/scalar_select.h"
#include "penstock/engine/select_conformance.h"
#include "penstock/engine/simd_select.h"
#include "penstock/engine/simd_select_blocks.h"
#include "penstock/engine/simd_select_plan.h"

namespace penstock {
namespace {

constexpr std::int64_t kEnd = std::int64_t{1} << 46;  // of the cells that vectors are exact for
constexpr std::uint32_t kResources = 5;
constexpr std::uint32_t kBits = 8;

template <typename Function>
void on_every_target(Function function) {
  for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    function(hwy::TargetName(target));
    if (testing::Test::HasFatalFailure()) break;
  }
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

// ---- tables ----

// Machines whose shares are whole percents again and again, ordinary ones, and those at the end of
// what vectors are exact for.
std::int64_t machine(SeededRandom& random, std::uint64_t kind) {
  const std::int64_t few[] = {0, 1, 2, 3, 100, 200};
  switch (kind) {
    case 0:
      return few[random.below(std::size(few))];
    case 1:
      return 1000 * random.between(1, 128);
    case 2:
      return random.between(1, 4) << 37;
    default:
      return random.one_in(2) ? kEnd - 1 - random.between(0, 100) : random.between(1, kEnd - 1);
  }
}

// What leaves a whole percent of the machine, or just not.
std::int64_t used_of(SeededRandom& random, std::int64_t machine) {
  const std::int64_t percent = random.between(0, 110);
  return std::max<std::int64_t>(machine / 100 * percent + random.between(-1, 1), 0);
}

HostTable make_table(SeededRandom& random, std::uint32_t rows) {
  HostTable table(rows, rows + 64, kResources, 0, kBits, 0, 1, 2);
  const TableView view = table.view();
  const std::uint64_t holes = random.one_in(2) ? 5 : 1000000;
  for (std::uint32_t r = 0; r < kResources; r++) {
    const std::uint64_t kind = random.below(4);
    const bool same = random.one_in(4);
    for (std::uint32_t row = 0; row < rows; row++) {
      const std::int64_t size = same ? machine(random, 0) * 100 : machine(random, kind);
      view.column(view.allocatable, r)[row] = size;
      view.column(view.requested, r)[row] = used_of(random, size);
      view.column(view.scored, r)[row] = used_of(random, size);
    }
  }
  for (std::uint32_t row = 0; row < rows; row++) {
    view.domain_column(0)[row] = static_cast<std::int32_t>(row % 3);
    table.set_bit(PENSTOCK_BIT_NODE, row, !random.one_in(holes));
    if (table.bit(PENSTOCK_BIT_NODE, row)) continue;
    for (std::uint32_t r = 0; r < kResources; r++)
      for (std::int64_t* base : {view.allocatable, view.requested, view.scored})
        view.column(base, r)[row] = 0;
  }
  for (std::uint32_t b = 1; b < kBits; b++) {
    const std::uint64_t rare[] = {1, 2, 50, 1000000};
    const std::uint64_t one_in = rare[random.below(4)];
    for (std::uint32_t row = 0; row < rows; row++) table.set_bit(b, row, random.one_in(one_in));
  }
  for (std::int32_t domain = 0; domain < 3; domain++)
    view.count_column(0)[domain] = static_cast<std::int32_t>(random.below(3));
  if (random.one_in(4)) {
    const std::int64_t cells[] = {kEnd, PENSTOCK_MAX_QUANTITY, -1, INT64_MIN, INT64_MAX};
    std::int64_t* const bases[] = {view.allocatable, view.requested, view.scored};
    for (int i = 0; i < 3; i++) {
      const auto r = static_cast<std::uint32_t>(random.below(kResources));
      view.column(bases[random.below(3)], r)[random.below(rows)] = cells[random.below(5)];
    }
  }
  return table;
}

// ---- programs and tasks ----

penstock_column_op* add(penstock_program* program, std::uint8_t code, std::int32_t weight = 0) {
  penstock_column_op* op = &program->ops[program->n_ops++];
  op->op = code;
  op->weight = weight;
  return op;
}

std::int32_t some_weight(SeededRandom& random) {
  const std::int32_t weights[] = {1, 1, 1, 2, -3, 0, 1000};
  return weights[random.below(std::size(weights))];
}

penstock_program make_program(SeededRandom& random, const penstock_node_table& header) {
  penstock_program program = {};
  program.magic = PENSTOCK_PROGRAM_MAGIC;
  program.version = PENSTOCK_PROGRAM_VERSION;
  program.tie = static_cast<std::uint8_t>(random.below(3));
  program.best = static_cast<std::uint8_t>(random.one_in(2) ? 1 : random.between(1, 8));
  program.seed = random.next();
  if (random.one_in(2)) add(&program, PENSTOCK_FILTER_BITS)->group = 9;
  for (std::uint64_t fits = random.below(8); fits < 10; fits += 5) {
    penstock_column_op* fit = add(&program, PENSTOCK_FILTER_FIT);
    fit->n = static_cast<std::uint8_t>(random.below(7));
    for (std::uint32_t i = 0; i < fit->n; i++)
      fit->column[i] = static_cast<std::uint16_t>(i < 2 ? i : random.below(kResources));
  }
  const std::uint32_t bits = static_cast<std::uint32_t>(random.below(4));
  for (std::uint32_t i = 0; i < bits; i++) {
    penstock_column_op* op = add(&program, PENSTOCK_SCORE_BITS, some_weight(random));
    op->group = static_cast<std::uint8_t>(random.below(3));
    op->normalise = static_cast<std::uint8_t>(random.below(PENSTOCK_NORMALISE_SPREAD + 1));
  }
  const bool least = random.one_in(2);
  const bool swapped = random.one_in(2);
  const bool alike = random.one_in(20);
  const std::uint8_t codes[] = {static_cast<std::uint8_t>(least ? PENSTOCK_SCORE_LEAST_ALLOCATED
                                                                : PENSTOCK_SCORE_MOST_ALLOCATED),
                                PENSTOCK_SCORE_BALANCED};
  for (const std::uint8_t code : codes) {
    penstock_column_op* op = add(&program, code, some_weight(random));
    op->n = random.one_in(20) ? 1 : 2;
    const bool second = swapped && code == PENSTOCK_SCORE_BALANCED;
    op->column[0] = second ? 1 : 0;
    if (op->n == 2) {
      const int other = alike == second ? 1 : 0;
      op->column[1] = static_cast<std::uint16_t>(random.one_in(20) ? 2 : other);
    }
    if (random.one_in(4)) op->skip_unasked = static_cast<std::uint32_t>(random.below(1u << op->n));
    if (code == PENSTOCK_SCORE_BALANCED) continue;
    for (std::uint32_t i = 0; i < op->n; i++)
      op->list_weight[i] =
          static_cast<std::uint16_t>(random.one_in(2) ? 1 : random.between(1, 100));
  }
  if (random.one_in(4)) {
    penstock_column_op* op = add(&program, PENSTOCK_SCORE_RATIO, some_weight(random));
    op->n = 1;
    op->column[0] = 2;
    op->list_weight[0] = 1;
    for (std::uint32_t i = 0; i < PENSTOCK_SHAPE_POINTS; i++)
      program.shape[i] = static_cast<std::uint8_t>(i);
  }
  if (random.one_in(4)) {
    penstock_column_op* op = add(&program, PENSTOCK_SCORE_DOMAINS, 2);
    op->group = 5;
    op->normalise = random.one_in(2) ? PENSTOCK_NORMALISE_MIN_MAX : PENSTOCK_NORMALISE_NONE;
  }
  std::uint64_t detail = 0;
  EXPECT_EQ(penstock_program_check(&program, &header, &detail), PENSTOCK_OK) << detail;
  return program;
}

penstock_task make_task(SeededRandom& random, const penstock_program& program,
                        const penstock_node_table& header) {
  penstock_task task = {};
  task.row = -1;
  task.tie = random.next();
  for (std::uint32_t r = 0; r < kResources; r++) {
    const std::int64_t asked[] = {0, 1, random.between(1, 1000), std::int64_t{1} << 30};
    const std::uint64_t common = r < 2 ? 3 : 2;
    task.request[r] = asked[random.below(common + (random.one_in(8) ? 1 : 0))];
    task.scored_request[r] = random.one_in(4) ? random.between(0, 5000) : task.request[r];
    if (random.one_in(50)) task.scored_request[r] = PENSTOCK_MAX_REQUEST;
  }
  task.n_terms = static_cast<std::uint32_t>(random.below(6));
  for (std::uint32_t i = 0; i < task.n_terms; i++) {
    penstock_term& term = task.terms[i];
    term.column = static_cast<std::uint16_t>(random.between(1, kBits - 1));
    term.group = static_cast<std::uint8_t>(random.one_in(8) ? 9 : random.below(3));
    term.clear = random.one_in(3) ? 1 : 0;
    term.weight = static_cast<std::int32_t>(random.one_in(3) ? random.between(-100, 100)
                                                             : random.between(0, 5));
  }
  if (random.one_in(2)) {
    task.n_domain_terms = 1;
    task.domain_terms[0].group = 5;
    task.domain_terms[0].weight = 3;
    task.domain_terms[0].domains = 3;
    task.n_raises = 1;
  }
  EXPECT_EQ(penstock_task_check(&task, &program, &header), PENSTOCK_OK);
  return task;
}

TEST(SimdSelectPair, RandomCasesGiveTheBitsOfTheDefinition) {
  std::uint64_t decisions = 0;
  std::uint64_t paired = 0;
  std::uint64_t with_fit = 0;
  std::uint64_t placed = 0;
  std::uint64_t by_terms[SelectPlan::kMaxTerms + 1] = {};
  on_every_target([&](const char* target) {
    for (std::uint64_t seed = 0; seed < 400; seed++) {
      SeededRandom random(seed);
      const std::uint32_t many[] = {1, 63, 65, 512, 513, 1400};
      const auto rows = random.one_in(2) ? many[random.below(6)]
                                         : static_cast<std::uint32_t>(random.between(1, 1400));
      HostTable expected = make_table(random, rows);
      HostTable actual = expected;
      const penstock_program program = make_program(random, *expected.header());
      for (int i = 0; i < 8; i++) {
        const penstock_task task = make_task(random, program, *expected.header());
        penstock_result defined;
        penstock_result result;
        scalar_select(expected.view(), program, task, true, &defined);
        simd_select(actual.view(), program, task, true, &result);
        ASSERT_EQ(difference(defined, result), "") << target << ", seed " << seed << ", task " << i;
        const SelectPlan plan(program, task);
        decisions++;
        paired += plan.paired.n == 2 ? 1 : 0;
        with_fit += plan.paired_fit != nullptr ? 1 : 0;
        placed += result.status == PENSTOCK_OK ? 1 : 0;
        by_terms[plan.n_terms]++;
      }
      ASSERT_EQ(difference(expected, actual), "") << target << ", seed " << seed;
    }
  });
  // Comparisons that go another way, or place nothing, would prove little.
  EXPECT_GT(paired, decisions / 3);
  EXPECT_GT(with_fit, decisions / 5);
  EXPECT_GT(placed, decisions / 2);
  for (const std::uint64_t n : by_terms) EXPECT_GT(n, decisions / 50);
}

// A filter that has nothing to do for a task is left out; naming row 0 is something to do.
TEST(SimdSelectPair, ATaskThatNamesItsRowGetsNoOther) {
  HostTable table(130, 192, 1, 0, 2, 0);
  for (std::uint32_t row = 0; row < 130; row++) table.set_bit(PENSTOCK_BIT_NODE, row);
  penstock_program program = {};
  program.best = 8;
  add(&program, PENSTOCK_FILTER_ROW);
  for (const std::int32_t row : {-1, 0, 1, 63, 64, 129, 130}) {
    penstock_task task = {};
    task.row = row;
    penstock_result result;
    simd_select(table.view(), program, task, false, &result);
    EXPECT_EQ(result.feasible, row == -1 ? 130u : row < 130 ? 1u : 0u) << row;
    EXPECT_EQ(result.row, row == -1 ? 0 : row < 130 ? row : -1);
  }
}

// ---- the kernel alone ----

// A block of rows with room, and what a task asks of it.
struct Block {
  HostTable table{kBlockRows, kBlockRows, kResources, 0, 2, 0};
  TableView view = table.view();
  PairScores pair = {};
  std::uint64_t feasible[kBlockWords];
  std::uint64_t above[kBlockWords];
  std::int64_t total[kBlockRows];

  Block() {
    pair.column[1] = 1;
    pair.least = true;
    pair.weight = 1;
    pair.list_weight[0] = pair.list_weight[1] = 1;
    for (std::uint32_t r = 0; r < kResources; r++)
      std::fill_n(view.column(view.allocatable, r), kBlockRows, 1000);
  }
  std::int64_t& cell(std::int64_t* base, std::uint32_t r, std::uint32_t row) {
    return view.column(base, r)[row];
  }
  bool score(std::int64_t threshold = INT64_MIN) {
    std::fill_n(feasible, kBlockWords, ~std::uint64_t{0});
    return block_kernels().score_pair(view, pair, {0, kBlockWords}, threshold, feasible, total,
                                      above);
  }
  static bool bit(const std::uint64_t* words, std::uint32_t row) {
    return ((words[row / 64] >> (row % 64)) & 1) != 0;
  }
};

// 100 * x / y around every whole percent up to the end of the range.
TEST(SimdSelectPair, QuotientsAreExact) {
  on_every_target([](const char* target) {
    Block block;
    SeededRandom random(46);
    for (int round = 0; round < 200; round++) {
      block.pair.least = round % 2 == 0;
      for (std::uint32_t k = 0; k < 2; k++)
        block.pair.list_weight[k] = round < 50 ? 1 : static_cast<double>(random.between(1, 100));
      std::int64_t expected[kBlockRows];
      for (std::uint32_t row = 0; row < kBlockRows; row++) {
        std::int64_t sum = 0;
        for (std::uint32_t k = 0; k < 2; k++) {
          const std::int64_t allocatable =
              random.one_in(2) ? kEnd - 1 - random.between(0, 1000) : random.between(1, kEnd - 1);
          const std::int64_t percent = random.between(0, 100);
          const std::int64_t counted =
              std::max<std::int64_t>((percent * allocatable + 99) / 100 - random.between(0, 1), 0);
          block.cell(block.view.allocatable, k, row) = allocatable;
          // Far from a balance for which the row would be scored another way.
          block.cell(block.view.requested, k, row) = k == 0 ? allocatable / 3 : 0;
          block.cell(block.view.scored, k, row) =
              block.pair.least ? allocatable - counted : counted;
          sum += counted * 100 / allocatable * static_cast<std::int64_t>(block.pair.list_weight[k]);
        }
        expected[row] =
            sum / static_cast<std::int64_t>(block.pair.list_weight[0] + block.pair.list_weight[1]);
      }
      ASSERT_TRUE(block.score()) << target;
      for (std::uint32_t row = 0; row < kBlockRows; row++)
        ASSERT_EQ(block.total[row], expected[row]) << target << ", row " << row;
    }
  });
}

// The formula of two resources in the order of the definition, where whole numbers are near.
TEST(SimdSelectPair, BalanceIsExactWhereWholeNumbersAreNear) {
  std::uint64_t whole = 0;
  on_every_target([&](const char* target) {
    Block block;
    block.pair.weight = 0;
    block.pair.balanced_weight = 1;
    block.pair.request[0] = 1;
    SeededRandom random(7);
    for (int round = 0; round < 200; round++) {
      std::int64_t expected[kBlockRows];
      for (std::uint32_t row = 0; row < kBlockRows; row++) {
        double fraction[2];
        for (std::uint32_t k = 0; k < 2; k++) {
          const std::int64_t allocatable =
              random.between(1, round % 4 != 0 ? 200 : std::int64_t{1} << 45);
          const std::int64_t requested = random.between(0, allocatable + allocatable / 8);
          block.cell(block.view.allocatable, k, row) = allocatable;
          block.cell(block.view.requested, k, row) = requested;
          fraction[k] = std::min(1.0, static_cast<double>(requested + block.pair.request[k]) /
                                          static_cast<double>(allocatable));
        }
        const double score = (1 - std::fabs(fraction[0] - fraction[1]) / 2) * 100;
        whole += std::fabs(score - std::round(score)) < 1e-9 ? 1 : 0;
        expected[row] = static_cast<std::int64_t>(score);
      }
      ASSERT_TRUE(block.score()) << target;
      for (std::uint32_t row = 0; row < kBlockRows; row++)
        ASSERT_EQ(block.total[row], expected[row]) << target << ", row " << row;
    }
  });
  EXPECT_GT(whole, 1000u);
}

TEST(SimdSelectPair, FitsToTheLastUnit) {
  on_every_target([](const char* target) {
    Block block;
    block.pair.request[0] = block.pair.request[1] = 300;
    block.pair.n_others = 2;
    block.pair.other[0] = 2;
    block.pair.other[1] = 4;
    block.pair.other_request[0] = block.pair.other_request[1] = 300;
    for (const bool looks : {true, false}) {
      block.pair.fits[0] = block.pair.fits[1] = looks;
      for (const std::uint32_t r : {0u, 1u, 2u, 3u, 4u}) {
        const std::uint32_t row = 101 * r + 7;
        block.cell(block.view.requested, r, row) = 700;
        ASSERT_TRUE(block.score());
        for (std::uint32_t i = 0; i < kBlockRows; i++)
          ASSERT_TRUE(Block::bit(block.feasible, i)) << target << ", row " << i;
        block.cell(block.view.requested, r, row) = 701;
        ASSERT_TRUE(block.score());
        const bool matters = r == 2 || r == 4 || (r < 2 && looks);
        for (std::uint32_t i = 0; i < kBlockRows; i++)
          ASSERT_EQ(Block::bit(block.feasible, i), i != row || !matters)
              << target << ", row " << i << ", resource " << r;
        block.cell(block.view.requested, r, row) = 0;
      }
    }
  });
}

TEST(SimdSelectPair, RowsAboveTheThresholdAreNamed) {
  on_every_target([](const char* target) {
    Block block;
    for (std::uint32_t row = 0; row < kBlockRows; row++)
      for (std::uint32_t k = 0; k < 2; k++)
        block.cell(block.view.scored, k, row) = 10 * (row % 100);
    block.pair.fits[0] = true;
    block.pair.request[0] = 1;
    block.cell(block.view.requested, 0, 5) = 1000;  // high enough, but full
    ASSERT_TRUE(block.score(90));
    for (std::uint32_t row = 0; row < kBlockRows; row++) {
      ASSERT_EQ(block.total[row], 100 - row % 100) << target;
      ASSERT_EQ(Block::bit(block.above, row), row % 100 < 10 && row != 5) << target << row;
    }
  });
}

TEST(SimdSelectPair, ABlockWithLargerCellsIsLeftToTheDefinition) {
  on_every_target([](const char* target) {
    Block block;
    block.pair.n_others = 1;
    block.pair.other[0] = 3;
    for (std::int64_t* base : {block.view.allocatable, block.view.requested, block.view.scored}) {
      for (const std::uint32_t r : {0u, 1u, 3u}) {
        if (base == block.view.scored && r == 3) continue;  // which nobody asks for
        std::int64_t& cell = block.cell(base, r, 511);
        const std::int64_t before = cell;
        for (const std::int64_t wrong : {kEnd, std::int64_t{-1}, INT64_MIN, INT64_MAX}) {
          cell = wrong;
          EXPECT_FALSE(block.score()) << target << " " << wrong;
          for (const std::uint64_t word : block.feasible) EXPECT_EQ(word, ~std::uint64_t{0});
        }
        cell = kEnd - 1;
        EXPECT_TRUE(block.score()) << target;
        cell = before;
      }
    }
  });
}

}  // namespace
}  // namespace penstock
