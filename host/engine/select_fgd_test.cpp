// SCORE_FGD against fragmentation that was worked out by hand, and the tables of simd against the
// plain definition.
#include <gtest/gtest.h>

#include "penstock/engine/scalar_fgd.h"
#include "penstock/engine/scalar_select.h"
#include "penstock/engine/select_conformance.h"
#include "penstock/engine/simd_fgd.h"
#include "penstock/engine/simd_select.h"

namespace penstock {
namespace {

constexpr std::uint16_t kModel = 2;

// Scores of 50 at d = 0, and one more for every 100.
penstock_program make_program(const std::vector<penstock_typical>& typical) {
  penstock_program program = {};
  program.magic = PENSTOCK_PROGRAM_MAGIC;
  program.version = PENSTOCK_PROGRAM_VERSION;
  program.n_ops = 2;
  program.best = 1;
  program.gpu_pick = PENSTOCK_GPU_FGD;
  program.ops[0].op = PENSTOCK_FILTER_GPU;
  program.ops[1].op = PENSTOCK_SCORE_FGD;
  program.ops[1].n = 1;
  program.ops[1].weight = 1;
  program.n_typical = static_cast<std::uint32_t>(typical.size());
  std::copy(typical.begin(), typical.end(), program.typical);
  for (int i = 0; i < static_cast<int>(PENSTOCK_FGD_THRESHOLDS); i++)
    program.threshold[i] = (i - 49) * 100;
  return program;
}

penstock_task make_task(std::int64_t cpu, std::uint32_t gpu_count, std::uint32_t gpu_milli) {
  penstock_task task = {};
  task.row = -1;
  task.request[0] = cpu;
  task.gpu_count = gpu_count;
  task.gpu_milli = gpu_milli;
  return task;
}

// One row with 10 of 16 cpu left, and 1000 and 600 thousandths free on two GPUs.
HostTable make_table() {
  HostTable table(1, 1, 1, 2, 3, 0);
  const TableView view = table.view();
  table.set_bit(PENSTOCK_BIT_NODE, 0);
  view.allocatable[0] = 16;
  view.requested[0] = 6;
  view.column(view.gpu, 0)[0] = 1000;
  view.column(view.gpu, 1)[0] = 600;
  return table;
}

// Half of one GPU with 4 cpu (weight 2), two GPUs with 8 cpu, and 2 cpu without GPU. The row of
// make_table holds the first, neither of the others: F = 2 * 0 + 1600 + 1600 = 3200.
std::vector<penstock_typical> make_typical() {
  return {{4, 1, 500, 0, {}, 2}, {8, 2, 1000, 0, {}, 1}, {2, 0, 0, 0, {}, 1}};
}

struct Case {
  const char* what;
  penstock_task task;
  std::int64_t score;
  std::uint32_t gpu_mask;
};

void expect(const Case& c, const penstock_program& program, const HostTable& start) {
  for (const bool simd : {false, true}) {
    HostTable table = start;
    std::uint64_t detail = 0;
    ASSERT_EQ(penstock_program_check(&program, table.header(), &detail), PENSTOCK_OK) << c.what;
    ASSERT_EQ(penstock_task_check(&c.task, &program, table.header()), PENSTOCK_OK) << c.what;
    penstock_result result;
    (simd ? simd_select : scalar_select)(table.view(), program, c.task, true, &result);
    EXPECT_EQ(result.status, PENSTOCK_OK) << c.what;
    EXPECT_EQ(result.score, c.score) << c.what << (simd ? " simd" : " scalar");
    EXPECT_EQ(result.gpu_mask, c.gpu_mask) << c.what;
    const TableView view = table.view();
    for (std::uint32_t s = 0; s < 2; s++)
      EXPECT_EQ(view.column(view.gpu, s)[0],
                (s == 0 ? 1000 : 600) - ((c.gpu_mask >> s) & 1) * c.task.gpu_milli)
          << c.what;
  }
}

TEST(Fgd, FragmentationBeforeAndAfterWorkedOutByHand) {
  const penstock_program program = make_program(make_typical());
  const Case cases[] = {
      // On GPU 0: 700 and 600 are left, F = 0 + 1300 + 1300, d = 600. On GPU 1: 1000 and 300, of
      // which the 300 are too few for the first: F = 2 * 300 + 1300 + 1300, d = 0.
      {"a share goes to the GPU that loses least", make_task(3, 1, 300), 56, 1},
      // 3 cpu left, too few for the first, on either GPU: F = 4 * 1300, d = -2000.
      {"equal scores go to the lowest GPU", make_task(7, 1, 300), 30, 1},
      // GPU 0: 400 and 600, F = 2 * 400 + 1000 + 1000, d = 400; GPU 1: 1000 and 0, F = 0 + 1000 +
      // 1000, d = 1200.
      {"a share fills up the GPU in use", make_task(3, 1, 600), 62, 2},
      // 0 and 600: F = 0 + 600 + 600, d = 2000.
      {"a whole GPU", make_task(1, 1, 1000), 70, 1},
      // 5 cpu left, enough for the first: d = 0.
      {"cpu that nobody misses", make_task(5, 0, 0), 50, 0},
      // 3 cpu left: F = 4 * 1600, d = -3200.
      {"cpu that is missed", make_task(7, 0, 0), 18, 0},
  };
  for (const Case& c : cases) expect(c, program, make_table());
}

TEST(Fgd, SeveralGpusRunOnlyWhereEnoughAreFree) {
  HostTable table = make_table();
  const TableView view = table.view();
  view.column(view.gpu, 1)[0] = 1000;
  // The second typical task runs now: F = 2 * 0 + 0 + 2000. With one GPU of 1000 taken: F = 0 +
  // 1000 + 1000, d = 0; with 1 cpu left beside: F = 4 * 1000, d = -2000.
  const penstock_program program = make_program(make_typical());
  for (const bool simd : {false, true}) {
    for (const auto& [cpu, score] : {std::pair(0, 50), std::pair(9, 30)}) {
      HostTable copy = table;
      penstock_result result;
      (simd ? simd_select : scalar_select)(copy.view(), program, make_task(cpu, 1, 1000), true,
                                           &result);
      EXPECT_EQ(result.score, score) << simd;
    }
  }
}

TEST(Fgd, ATypicalTaskRunsOnlyWhereItsModelIs) {
  std::vector<penstock_typical> typical = make_typical();
  typical[0].model = kModel;
  // Without the model the first cannot run: before F = 4 * 1600, after 4 * 1300: d = 1200.
  const Case without = {"another model", make_task(3, 1, 300), 62, 1};
  expect(without, make_program(typical), make_table());
  HostTable table = make_table();
  table.set_bit(kModel, 0);
  const Case with = {"the model", make_task(3, 1, 300), 56, 1};
  expect(with, make_program(typical), table);
}

TEST(Fgd, TheCheckHoldsWhatTheListMayContain) {
  const HostTable table = make_table();
  const auto verdict = [&](auto change) {
    penstock_program program = make_program(make_typical());
    change(program);
    std::uint64_t detail = 0;
    return penstock_program_check(&program, table.header(), &detail);
  };
  EXPECT_EQ(verdict([](auto&) {}), PENSTOCK_OK);
  EXPECT_EQ(verdict([](auto& p) { p.n_ops = 1; }), PENSTOCK_INVALID_ARGUMENT) << "pick without it";
  EXPECT_EQ(verdict([](auto& p) { p.ops[1].n = 0; }), PENSTOCK_INVALID_ARGUMENT);
  EXPECT_EQ(verdict([](auto& p) { p.ops[1].column[0] = 1; }), PENSTOCK_INVALID_ARGUMENT);
  EXPECT_EQ(verdict([](auto& p) { p.threshold[7] = p.threshold[6] - 1; }),
            PENSTOCK_INVALID_ARGUMENT);
  EXPECT_EQ(verdict([](auto& p) { p.typical[0].weight = 0; }), PENSTOCK_INVALID_ARGUMENT);
  EXPECT_EQ(verdict([](auto& p) { p.typical[0].weight = PENSTOCK_MAX_TYPICAL_WEIGHT - 1; }),
            PENSTOCK_INVALID_ARGUMENT);
  EXPECT_EQ(verdict([](auto& p) { p.typical[0].weight = PENSTOCK_MAX_TYPICAL_WEIGHT - 2; }),
            PENSTOCK_OK);
  EXPECT_EQ(verdict([](auto& p) { p.typical[1].gpu_milli = 1001; }), PENSTOCK_INVALID_ARGUMENT);
  EXPECT_EQ(verdict([](auto& p) { p.typical[1].gpu_count = 17; }), PENSTOCK_INVALID_ARGUMENT);
  EXPECT_EQ(verdict([](auto& p) { p.typical[2].gpu_milli = 1; }), PENSTOCK_INVALID_ARGUMENT);
  EXPECT_EQ(verdict([](auto& p) { p.typical[0].model = 3; }), PENSTOCK_INVALID_ARGUMENT);
  EXPECT_EQ(verdict([](auto& p) { p.typical[0].request = -1; }), PENSTOCK_INVALID_ARGUMENT);
  EXPECT_EQ(verdict([](auto& p) { p.typical[0].reserved[2] = 1; }), PENSTOCK_INVALID_ARGUMENT);
}

// Random tables, damaged ones among them, lists and tasks.
TEST(Fgd, TablesGiveWhatTheDefinitionGives) {
  std::uint64_t compared = 0;
  std::uint64_t apart = 0;
  std::int64_t first = -1;
  for (std::uint64_t seed = 1; seed <= 300; seed++) {
    SelectRules rules;
    rules.max_rows = 130;
    SelectCase made = make_select_case(seed, rules);
    SeededRandom random(seed);
    std::vector<penstock_typical> typical(random.below(20));
    for (penstock_typical& task : typical) {
      task.request = random.one_in(2) ? random.between(0, 12) : random.between(0, 1 << 20) * 1000;
      task.gpu_count = static_cast<std::uint32_t>(random.below(4));
      if (random.one_in(2)) task.gpu_count = 1;
      task.gpu_milli =
          task.gpu_count == 0 ? 0 : static_cast<std::uint32_t>(random.between(1, 20) * 50);
      if (random.one_in(3))
        task.model = static_cast<std::uint16_t>(random.below(made.table.header()->n_bits));
      task.weight = random.between(1, 40);
    }
    penstock_program program = make_program(typical);
    std::uint64_t detail = 0;
    ASSERT_EQ(penstock_program_check(&program, made.table.header(), &detail), PENSTOCK_OK);
    const TableView view = made.table.view();
    for (const penstock_task& task : made.tasks) {
      for (std::uint32_t row = 0; row < made.table.header()->rows; row++) {
        std::uint32_t plain_mask = 0;
        std::uint32_t mask = 0;
        const std::int64_t plain =
            scalar_fgd_score(view, program, program.ops[1], task, row, &plain_mask);
        ASSERT_EQ(FgdTables::of(program).score(view, program, program.ops[1], task, row, &mask),
                  plain)
            << "seed " << seed << " row " << row;
        ASSERT_EQ(mask, plain_mask);
        compared++;
        if (first < 0) first = plain;
        apart += plain != first;
      }
    }
  }
  EXPECT_GT(compared, 10'000u);
  EXPECT_GT(apart, compared / 10) << "the cases hardly differ";
}

}  // namespace
}  // namespace penstock
