// How many cycles a decision takes, what stays in the banks from one job to the next, and the
// default policy's program on a table as large as schedulers make it.
#include <algorithm>
#include <cstdio>

#include "penstock/rtl/score/score_test_rig.h"

namespace penstock::rtl {
namespace {

constexpr std::uint32_t kBitColumns = 256;

enum Group : std::uint8_t {
  kUnschedulable,
  kTaints,
  kAffinity,
  kPorts,
  kModel,
  kPreferredTaints,
  kPreferredAffinity
};

penstock_column_op& add(penstock_program* p, std::uint8_t op, std::uint8_t n, std::int32_t weight,
                        std::uint8_t group = 0, std::uint8_t normalise = 0) {
  penstock_column_op& out = p->ops[p->n_ops++];
  out.op = op;
  out.n = n;
  out.weight = weight;
  out.group = group;
  out.normalise = normalise;
  for (std::uint8_t i = 0; i < n; ++i) out.column[i] = i;
  if (op == PENSTOCK_SCORE_LEAST_ALLOCATED) std::fill_n(out.list_weight, n, std::uint16_t{1});
  return out;
}

penstock_program empty_program(std::uint8_t best) {
  penstock_program p{};
  p.magic = PENSTOCK_PROGRAM_MAGIC;
  p.version = PENSTOCK_PROGRAM_VERSION;
  p.best = best;
  p.tie = PENSTOCK_TIE_ROTATING;
  return p;
}

// What the policy "default" compiles to, filters and scores in its order.
penstock_program default_program(std::uint8_t best) {
  penstock_program p = empty_program(best);
  add(&p, PENSTOCK_FILTER_BITS, 0, 0, kUnschedulable);
  add(&p, PENSTOCK_FILTER_ROW, 0, 0);
  add(&p, PENSTOCK_FILTER_BITS, 0, 0, kTaints);
  add(&p, PENSTOCK_FILTER_BITS, 0, 0, kAffinity);
  add(&p, PENSTOCK_FILTER_BITS, 0, 0, kPorts);
  add(&p, PENSTOCK_FILTER_FIT, 4, 0);
  add(&p, PENSTOCK_FILTER_BITS, 0, 0, kModel);
  add(&p, PENSTOCK_FILTER_GPU, 0, 0);
  add(&p, PENSTOCK_SCORE_BITS, 0, 3, kPreferredTaints, PENSTOCK_NORMALISE_REVERSED);
  add(&p, PENSTOCK_SCORE_BITS, 0, 2, kPreferredAffinity, PENSTOCK_NORMALISE_DEFAULT);
  add(&p, PENSTOCK_SCORE_LEAST_ALLOCATED, 2, 1);
  add(&p, PENSTOCK_SCORE_BALANCED, 2, 1);
  return p;
}

// Without a normalised score, and with some, but without BALANCED.
penstock_program plain_program(std::uint8_t best, bool normalised) {
  penstock_program p = empty_program(best);
  add(&p, PENSTOCK_FILTER_BITS, 0, 0, kUnschedulable);
  add(&p, PENSTOCK_FILTER_FIT, 4, 0);
  add(&p, PENSTOCK_SCORE_LEAST_ALLOCATED, 2, 1);
  const std::uint8_t normalise = normalised ? PENSTOCK_NORMALISE_DEFAULT : PENSTOCK_NORMALISE_NONE;
  add(&p, PENSTOCK_SCORE_BITS, 0, 3, kPreferredTaints, normalise);
  add(&p, PENSTOCK_SCORE_BITS, 0, 2, kPreferredAffinity, normalise);
  add(&p, PENSTOCK_SCORE_FEATURES, 2, 1, 0, normalise);
  return p;
}

// Tasks name bit columns below `columns`: more than are resident at once, or not.
SelectCase cluster(std::uint32_t rows, std::size_t tasks, const penstock_program& program,
                   std::int64_t columns = kBitColumns) {
  SelectCase c{HostTable(rows, rows, 4, 8, kBitColumns, 2), program, {}, true};
  SeededRandom random(rows);
  const TableView view = c.table.view();
  for (std::uint32_t row = 0; row < rows; ++row) {
    for (std::uint32_t r = 0; r < 4; ++r) {
      view.column(view.allocatable, r)[row] =
          random.between(1, 4) * (std::int64_t{1} << (5 + 9 * r));
      view.column(view.requested, r)[row] = view.column(view.scored, r)[row] =
          random.between(0, view.column(view.allocatable, r)[row] / 2);
    }
    for (std::uint32_t b = 0; b < kBitColumns; ++b)
      c.table.set_bit(b, row, b == 0 || random.one_in(4));
  }
  for (std::size_t i = 0; i < tasks; ++i) {
    penstock_task task{};
    for (std::uint32_t r = 0; r < 4; ++r)
      task.request[r] = task.scored_request[r] = random.between(0, 9);
    task.row = -1;
    task.tie = random.next();
    const auto column = [&] {
      return static_cast<std::uint16_t>(random.one_in(2) ? random.between(1, 6)
                                                         : random.between(2, columns - 1));
    };
    const std::uint8_t groups[] = {kUnschedulable,     kTaints,
                                   kPreferredTaints,   kPreferredTaints,
                                   kPreferredAffinity, kPreferredAffinity};
    for (const std::uint8_t group : groups)
      task.terms[task.n_terms++] = {column(), group, static_cast<std::uint8_t>(group < 2 ? 1 : 0),
                                    static_cast<std::int32_t>(random.between(1, 100))};
    task.set_bits[0] = random.one_in(2) ? column() : std::uint16_t{0};
    if (task.set_bits[0] == 1) task.set_bits[0] = 0;
    task.feature[0] = random.between(-9, 9);
    task.count[0] = 1;
    c.tasks.push_back(task);
  }
  return c;
}

// Cycles of a decision in the midst of a batch, with a memory that answers after 40 cycles.
double cycles_of_a_decision(std::uint32_t rows, const penstock_program& program) {
  sim::AxiConfig config;
  config.fixed = true;
  config.read_latency = config.write_latency = 40;
  double cycles[2] = {};
  const std::size_t tasks[2] = {4, 12};
  for (int i = 0; i < 2; ++i) {
    Rig rig(7, config);
    rig.fixed = true;
    SelectCase c = cluster(rows, tasks[i], program, 50);
    const Job job = place(rig, c, 0, 9);
    rig.run(job);  // the table and most columns are resident after it
    EXPECT_EQ(wrong_after(rig, job, c), "");
    Job again = place(rig, c, 0, 9);
    cycles[i] = static_cast<double>(rig.run(again).cycles);
    EXPECT_EQ(wrong_after(rig, again, c), "");
    EXPECT_EQ(rig.decisions, 2 * tasks[i]);
    EXPECT_EQ(rig.rows_scanned, 2 * tasks[i] * rows);
  }
  return (cycles[1] - cycles[0]) / 8;
}

TEST(ScoreSpeed, CyclesOfADecision) {
  for (const std::uint32_t rows : {1000u, kRows}) {
    const double groups = (rows + 7) / 8;
    for (const std::uint8_t best : {std::uint8_t{1}, std::uint8_t{8}}) {
      const double plain = cycles_of_a_decision(rows, plain_program(best, false));
      const double normalised = cycles_of_a_decision(rows, plain_program(best, true));
      const double balanced = cycles_of_a_decision(rows, default_program(best));
      std::printf("%u rows, best %u: plain %.0f, normalised %.0f, default policy %.0f cycles\n",
                  rows, best, plain, normalised, balanced);
      EXPECT_LE(plain, groups + 200);
      EXPECT_LE(normalised, 2 * groups + 200);
      EXPECT_LE(balanced, 4 * 2 * groups + 200);
      // One pass for the ranges at a step a group, and one of four steps.
      EXPECT_LE(balanced, 5 * groups + 250);
    }
  }
}

TEST(ScoreSpeed, ALongBatchOfTheDefaultPolicy) {
  Rig rig(8, sim::AxiConfig{});
  SelectCase c = cluster(700, 60, default_program(4));
  const Job job = place(rig, c, 0, 1);
  ASSERT_EQ(rig.run(job).status, PENSTOCK_OK);
  ASSERT_EQ(wrong_after(rig, job, c), "");
}

TEST(ScoreSpeed, BanksHoldATableUntilItsGenerationChanges) {
  sim::AxiConfig config;
  config.fixed = true;
  Rig rig(9, config);
  rig.fixed = true;
  SelectCase c = cluster(kRows, 2, plain_program(3, true));
  c.commit = false;
  const auto beats = [&] {
    const Job job = place(rig, c, 0, 0);
    const std::uint64_t before = rig.slave->counts().read_beats;
    EXPECT_EQ(rig.run(job).status, PENSTOCK_OK);
    EXPECT_EQ(wrong_after(rig, job, c), "");
    return rig.slave->counts().read_beats - before;
  };
  const std::uint64_t columns = 14 * kRows / 8;
  EXPECT_GT(beats(), columns);
  EXPECT_LT(beats(), 200u);  // the header, the program and the tasks
  // Committed tasks raise the generation in the banks and in memory.
  c.commit = true;
  EXPECT_LT(beats(), 300u);
  EXPECT_LT(beats(), 300u);
  // Who changes cells raises it, too.
  const TableView view = c.table.view();
  view.column(view.requested, 1)[77] += 1000;
  c.table.header()->generation += 1;
  EXPECT_GT(beats(), columns);
  EXPECT_LT(beats(), 300u);
  // A table elsewhere, and one with fewer rows.
  c.table.header()->rows -= 1;
  EXPECT_GT(beats(), columns);
  EXPECT_LT(beats(), 300u);
  // Cells that changed behind the card's back are seen once it is told to forget.
  view.column(view.requested, 1)[78] += 1000;
  rig.dut->sel_forget_i = 1;
  rig.tick();
  rig.dut->sel_forget_i = 0;
  EXPECT_GT(beats(), columns);
}

}  // namespace
}  // namespace penstock::rtl
