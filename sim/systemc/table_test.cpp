#include "penstock/sim/systemc/table.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "penstock/engine/select_conformance.h"

namespace penstock::systemc {
namespace {

// The columns of a table, as the card loads them.
Table loaded(const HostTable& host) {
  Table table;
  table.header = *host.header();
  const penstock_node_table& h = table.header;
  const auto* base = reinterpret_cast<const std::byte*>(host.header());
  const auto load = [base](auto* columns, std::uint32_t n, std::uint64_t offset,
                           std::size_t cells) {
    columns->resize(n);
    for (auto& column : *columns) {
      column.resize(cells);
      std::memcpy(column.data(), base + offset, cells * sizeof(column[0]));
      offset += cells * sizeof(column[0]);
    }
  };
  load(&table.allocatable, h.n_resources, h.allocatable, h.capacity);
  load(&table.requested, h.n_resources, h.requested, h.capacity);
  load(&table.scored, h.n_resources, h.scored, h.capacity);
  load(&table.bits, h.n_bits, h.bits, h.capacity / 64);
  load(&table.free, h.n_free, h.free, h.capacity);
  return table;
}

SelectRules card_rules() {
  SelectRules rules;
  rules.max_rows = 200;
  rules.opcodes = 0;
  for (std::uint32_t op = 0; op < 32; ++op)
    if ((SelectLimits::kFilters >> op & 1) != 0) rules.opcodes |= std::uint64_t{1} << op;
  for (std::uint32_t op = 32; op < 64; ++op)
    if ((SelectLimits::kScores >> (op - 32) & 1) != 0) rules.opcodes |= std::uint64_t{1} << op;
  rules.normalisations = SelectLimits::kNormalise;
  return rules;
}

TEST(SelectTable, DecidesAndCommitsAsTheScalarKernels) {
  const std::unique_ptr<const Kernels> kernels = scalar_kernels();
  std::uint64_t decided = 0;
  std::uint64_t refused = 0;
  for (std::uint64_t seed = 1; seed <= 3000; ++seed) {
    SelectCase c = make_select_case(seed, card_rules());
    std::uint64_t detail = 0;
    Intervals intervals;
    if (!table_fits_card(*c.table.header()) ||
        !program_suits_card(c.program, &detail, &intervals)) {
      ++refused;
      continue;
    }
    Table table = loaded(c.table);
    const Program program = decode_program(c.program);
    for (const penstock_task& task : c.tasks) {
      ASSERT_EQ(check_task(task, c.program, *c.table.header()), PENSTOCK_OK);
      if (!task_suits_card(task, c.program, c.commit)) {
        ++refused;
        continue;
      }
      penstock_result expected;
      kernels->select(c.table.view(), c.program, task, c.commit, &expected);
      penstock_result actual = decide(table, program, task);
      if (c.commit && actual.status == PENSTOCK_OK)
        actual.status = commit(&table, task, static_cast<std::uint32_t>(actual.row));
      ASSERT_EQ(difference(expected, actual), "") << "seed " << seed;
      ++decided;
    }
    const Table after = loaded(c.table);
    EXPECT_EQ(table.requested, after.requested);
    EXPECT_EQ(table.scored, after.scored);
    EXPECT_EQ(table.free, after.free);
    EXPECT_EQ(table.bits, after.bits);
    EXPECT_EQ(table.header.generation, after.header.generation);
  }
  EXPECT_GT(decided, 500u) << refused << " cases asked for more than the card has";
}

// ---- checks ----

// Changes bytes of a record, mostly to values near which rules change.
template <typename T>
void disturb(std::mt19937_64& random, T* record, std::size_t within) {
  constexpr std::uint64_t kEdges[] = {0,
                                      1,
                                      2,
                                      3,
                                      15,
                                      16,
                                      17,
                                      100,
                                      101,
                                      255,
                                      1000,
                                      1001,
                                      1u << 20,
                                      (1u << 20) + 1,
                                      std::uint64_t{1} << 53,
                                      (std::uint64_t{1} << 53) + 1,
                                      ~std::uint64_t{0}};
  auto* bytes = reinterpret_cast<unsigned char*>(record);
  const std::uint64_t edge = kEdges[random() % std::size(kEdges)];
  const std::size_t width = std::size_t{1} << random() % 4;
  const std::size_t at = random() % (within / width) * width;
  std::memcpy(bytes + at, &edge, width);
}

TEST(SelectTable, ChecksHeadersAsTheDefinition) {
  std::mt19937_64 random(5);
  std::uint64_t wrong = 0;
  for (int i = 0; i < 100000; ++i) {
    penstock_node_table header;
    ASSERT_NE(
        penstock_node_table_init(&header, 1 + random() % 4000, 1 + random() % 16, random() % 17,
                                 2 + random() % 90, random() % 20, random() % 3, random() % 9),
        0u);
    header.rows = static_cast<std::uint32_t>(random() % (header.capacity + 1));
    if (random() % 8 != 0) disturb(random, &header, sizeof(header));
    const std::uint32_t expected = penstock_node_table_check(&header, header.bytes);
    ASSERT_EQ(check_header(header), expected);
    wrong += expected != PENSTOCK_OK;
  }
  EXPECT_GT(wrong, 10000u);
}

TEST(SelectTable, ChecksProgramsAndTasksAsTheDefinition) {
  std::mt19937_64 random(6);
  std::uint64_t wrong_programs = 0;
  std::uint64_t wrong_tasks = 0;
  for (std::uint64_t seed = 1; seed <= 4000; ++seed) {
    SelectRules rules;
    rules.max_rows = 70;
    SelectCase c = make_select_case(seed, rules);
    for (int i = 0; i < 10; ++i) {
      penstock_program program = c.program;
      const std::size_t used = 64 + std::size_t{program.n_ops} * sizeof(penstock_column_op);
      disturb(random, &program, random() % 4 == 0 ? sizeof(program) : used);
      std::uint64_t expected_detail = 0;
      std::uint64_t detail = 0;
      const std::uint32_t expected =
          penstock_program_check(&program, c.table.header(), &expected_detail);
      ASSERT_EQ(check_program(program, *c.table.header(), &detail), expected) << "seed " << seed;
      ASSERT_EQ(detail, expected_detail) << "seed " << seed;
      wrong_programs += expected != PENSTOCK_OK;

      penstock_task task = c.tasks[random() % c.tasks.size()];
      disturb(random, &task, sizeof(task));
      const std::uint32_t of_task = penstock_task_check(&task, &c.program, c.table.header());
      ASSERT_EQ(check_task(task, c.program, *c.table.header()), of_task) << "seed " << seed;
      wrong_tasks += of_task != PENSTOCK_OK;
    }
  }
  EXPECT_GT(wrong_programs, 5000u);
  EXPECT_GT(wrong_tasks, 5000u);
}

}  // namespace
}  // namespace penstock::systemc
