// SELECT as a function, against the engine `scalar`, and its arithmetic against float64.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "penstock/descriptor/descriptor.h"
#include "penstock/engine/scalar_select.h"
#include "penstock/engine/select_conformance.h"
#include "penstock/hls/penstock_hls.h"
#include "penstock/hls/select_arithmetic.h"
#include "penstock/hls/select_scan.h"

namespace penstock {
namespace {

constexpr std::uint64_t bit_of(std::uint32_t op) { return std::uint64_t{1} << op; }

// What the kernel does.
SelectRules rules_of_kernel() {
  SelectRules rules;
  rules.max_rows = 300;
  rules.opcodes = bit_of(PENSTOCK_FILTER_BITS) | bit_of(PENSTOCK_FILTER_FIT) |
                  bit_of(PENSTOCK_FILTER_GPU) | bit_of(PENSTOCK_FILTER_ROW) |
                  bit_of(PENSTOCK_FILTER_DOMAINS) | bit_of(PENSTOCK_SCORE_LEAST_ALLOCATED) |
                  bit_of(PENSTOCK_SCORE_MOST_ALLOCATED) | bit_of(PENSTOCK_SCORE_BALANCED) |
                  bit_of(PENSTOCK_SCORE_BITS) | bit_of(PENSTOCK_SCORE_FEATURES) |
                  bit_of(PENSTOCK_SCORE_DOMAINS) | bit_of(PENSTOCK_SCORE_SPREAD);
  rules.ties = 1u << PENSTOCK_TIE_LOWEST_ROW | 1u << PENSTOCK_TIE_ROTATING;
  rules.gpus = false;
  rules.domains = false;
  return rules;
}

// A random case whose BALANCED have two resources at most: more is refused, which a test looks at.
SelectCase kernel_case(std::uint64_t seed, const SelectRules& rules = rules_of_kernel()) {
  SelectCase c = make_select_case(seed, rules);
  for (std::uint32_t i = 0; i < c.program.n_ops; ++i) {
    penstock_column_op& op = c.program.ops[i];
    if (op.op != PENSTOCK_SCORE_BALANCED || op.n <= 2) continue;
    op.n = 2;
    op.skip_unasked &= 3;
    std::fill(op.column + 2, std::end(op.column), std::uint16_t{0});
  }
  return c;
}

struct Status {
  std::uint32_t status, field;
  std::uint64_t detail;
};

// A pool that holds what a SELECT names.
class Pool {
 public:
  explicit Pool(const SelectCase& c)
      : program_(64 + lines(c.table.header()->bytes)),
        tasks_(program_ + lines(sizeof(penstock_program))),
        results_(tasks_ + lines(c.tasks.size() * sizeof(penstock_task))),
        status_(results_ + lines(c.tasks.size() * sizeof(penstock_result))),
        n_(static_cast<std::uint32_t>(c.tasks.size())),
        lines_(status_ / 64 + 2) {
    std::memset(lines_.data(), 0xa5, lines_.size() * sizeof(Line));
    put(kTable, c.table.header(), c.table.header()->bytes);
    put(program_, &c.program, sizeof(c.program));
    put(tasks_, c.tasks.data(), n_ * sizeof(penstock_task));
  }

  Status run(std::uint32_t flags) {
    penstock_hls_select(penstock_hls::WordPort(bytes()), words(), penstock_hls::CellPort(bytes()),
                        words(), kTable, kTable, program_, tasks_, results_, status_, n_, flags);
    Status status;
    std::memcpy(&status, bytes() + status_, sizeof status);
    return status;
  }
  penstock_result result(std::uint32_t i) const {
    penstock_result result;
    std::memcpy(&result, bytes() + results_ + i * sizeof result, sizeof result);
    return result;
  }
  bool results_untouched() const {
    return std::all_of(bytes() + results_, bytes() + status_,
                       [](std::byte b) { return b == std::byte{0xa5}; });
  }
  void put(std::uint64_t offset, const void* data, std::uint64_t size) {
    if (size != 0) std::memcpy(bytes() + offset, data, size);
  }
  void put_task(std::uint32_t i, const penstock_task& task) {
    put(tasks_ + i * sizeof task, &task, sizeof task);
  }
  penstock_node_table* table() { return reinterpret_cast<penstock_node_table*>(bytes() + kTable); }

 private:
  static constexpr std::uint64_t kTable = 64;
  struct alignas(64) Line {
    std::uint64_t words[8];
  };
  static std::uint64_t lines(std::uint64_t size) { return (size + 63) / 64 * 64; }
  std::byte* bytes() { return reinterpret_cast<std::byte*>(lines_.data()); }
  const std::byte* bytes() const { return reinterpret_cast<const std::byte*>(lines_.data()); }
  std::uint64_t* words() { return lines_.data()->words; }

  std::uint64_t program_, tasks_, results_, status_;
  std::uint32_t n_;
  std::vector<Line> lines_;
};

// Runs a case on the kernel and by definition. The header's generation is the host's to raise.
void compare(SelectCase c, std::uint32_t more_flags, Pool* pool) {
  const std::uint32_t flags = more_flags | (c.commit ? PENSTOCK_HLS_COMMIT : 0);
  const Status status = pool->run(flags);
  ASSERT_EQ(status.status, PENSTOCK_OK);
  std::uint64_t placed = 0;
  for (std::uint32_t i = 0; i < c.tasks.size(); ++i) {
    penstock_result expected;
    scalar_select(c.table.view(), c.program, c.tasks[i], c.commit, &expected);
    placed += c.commit && expected.status == PENSTOCK_OK;
    ASSERT_EQ(difference(expected, pool->result(i)), "") << "task " << i;
  }
  pool->table()->generation += placed;
  HostTable actual = c.table;
  std::memcpy(static_cast<void*>(actual.header()), pool->table(), c.table.header()->bytes);
  ASSERT_EQ(difference(c.table, actual), "");
}

TEST(HlsSelect, RandomCasesAreThoseOfTheDefinition) {
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    const SelectCase c = kernel_case(seed);
    Pool pool(c);
    ASSERT_NO_FATAL_FAILURE(compare(c, PENSTOCK_HLS_FORGET, &pool)) << "seed " << seed;
  }
}

TEST(HlsSelect, EveryOperationAndNormalisation) {
  std::uint64_t seed = 10000;
  for (const std::uint32_t op :
       {PENSTOCK_FILTER_FIT, PENSTOCK_FILTER_ROW, PENSTOCK_SCORE_LEAST_ALLOCATED,
        PENSTOCK_SCORE_MOST_ALLOCATED, PENSTOCK_SCORE_BALANCED, PENSTOCK_SCORE_BITS,
        PENSTOCK_SCORE_FEATURES, PENSTOCK_SCORE_DOMAINS})
    for (std::uint32_t normalise = 0; normalise <= PENSTOCK_NORMALISE_SPREAD; ++normalise) {
      int ran = 0;
      for (int i = 0; i < 200 && ran < 12; ++i) {
        SelectRules rules = rules_of_kernel();
        rules.focus = op;
        rules.max_rows = 100;
        SelectCase c = kernel_case(++seed, rules);
        for (std::uint32_t o = 0; o < c.program.n_ops; ++o)
          if (PENSTOCK_COLUMN_OP_IS_SCORE(c.program.ops[o].op))
            c.program.ops[o].normalise = static_cast<std::uint8_t>(normalise);
        std::uint64_t detail = 0;
        if (penstock_program_check(&c.program, c.table.header(), &detail) != PENSTOCK_OK) continue;
        ++ran;
        Pool pool(c);
        ASSERT_NO_FATAL_FAILURE(compare(c, PENSTOCK_HLS_FORGET, &pool)) << "seed " << seed;
      }
      EXPECT_GE(ran, 6) << op << " normalised by " << normalise;
    }
}

// A case of its own kind whose every part the tests below change.
SelectCase plain_case(std::uint64_t seed) {
  SelectRules rules = rules_of_kernel();
  rules.damaged = false;
  rules.opcodes = bit_of(PENSTOCK_FILTER_FIT) | bit_of(PENSTOCK_SCORE_LEAST_ALLOCATED);
  while (true) {
    SelectCase c = make_select_case(seed++, rules);
    if (c.commit && c.tasks.size() >= 2 && c.program.n_ops != 0) return c;
  }
}

// A table of ten nodes with one resource, and tasks that ask for 10 of 100.
SelectCase ten_nodes(std::uint32_t n_tasks) {
  SelectCase c{HostTable(10, 64, 1, 0, 3, 1), {}, std::vector<penstock_task>(n_tasks), true};
  const TableView view = c.table.view();
  for (std::uint32_t row = 0; row < 10; ++row) {
    c.table.set_bit(PENSTOCK_BIT_NODE, row);
    view.column(view.allocatable, 0)[row] = 100;
  }
  c.program.magic = PENSTOCK_PROGRAM_MAGIC;
  c.program.version = PENSTOCK_PROGRAM_VERSION;
  c.program.best = 2;
  c.program.n_ops = 2;
  c.program.ops[0].op = PENSTOCK_FILTER_FIT;
  c.program.ops[0].n = 1;
  c.program.ops[1].op = PENSTOCK_FILTER_BITS;
  c.program.ops[1].group = 5;
  for (penstock_task& task : c.tasks) {
    task.row = -1;
    task.request[0] = task.scored_request[0] = 10;
  }
  return c;
}

TEST(HlsSelect, ABitThatIsSetCountsForTheNextTask) {
  SelectCase c = ten_nodes(12);
  for (penstock_task& task : c.tasks) {
    task.n_terms = 1;
    task.terms[0] = {PENSTOCK_BIT_FIRST_FREE, 5, 1, 0};
    task.set_bits[0] = PENSTOCK_BIT_FIRST_FREE;
  }
  Pool pool(c);
  ASSERT_NO_FATAL_FAILURE(compare(c, PENSTOCK_HLS_FORGET, &pool));
  for (int i = 0; i < 12; ++i)
    EXPECT_EQ(pool.result(static_cast<std::uint32_t>(i)).row, i < 10 ? i : -1);
}

TEST(HlsSelect, MentionsOfOneColumnAddUp) {
  for (const std::uint16_t second : {std::uint16_t{0}, std::uint16_t{1}}) {
    SelectCase c = ten_nodes(1);
    const TableView view = c.table.view();
    for (std::uint32_t row = 0; row < 10; ++row)
      view.column(view.free, 0)[row] = PENSTOCK_MAX_FREE_VALUE - 1;
    c.tasks[0].count[0] = 1;
    c.tasks[0].count[3] = second;
    Pool pool(c);
    ASSERT_NO_FATAL_FAILURE(compare(c, PENSTOCK_HLS_FORGET, &pool));
    EXPECT_EQ(pool.result(0).status, second == 0 ? PENSTOCK_OK : PENSTOCK_OUT_OF_RANGE);
  }
}

TEST(HlsSelect, ADamagedCellRefusesTheCommit) {
  for (const std::int64_t cell :
       {-PENSTOCK_MAX_QUANTITY, INT64_MIN, PENSTOCK_MAX_QUANTITY + 1, INT64_MAX}) {
    for (const int which : {0, 1, 2}) {
      SelectCase c = ten_nodes(2);
      const TableView view = c.table.view();
      if (which == 0) view.column(view.requested, 0)[0] = cell;
      if (which == 1) view.column(view.scored, 0)[0] = cell;
      if (which == 2) view.column(view.free, 0)[0] = cell;
      for (penstock_task& task : c.tasks) {
        task.count[0] = 1;
        task.row = 0;
      }
      c.program.ops[1] = {};
      c.program.ops[1].op = PENSTOCK_FILTER_ROW;
      const bool fits = which != 0 || cell < 0;  // a damaged cell is read as the nearest bound
      Pool pool(c);
      ASSERT_NO_FATAL_FAILURE(compare(c, PENSTOCK_HLS_FORGET, &pool));
      EXPECT_EQ(pool.result(0).status, fits ? PENSTOCK_OUT_OF_RANGE : PENSTOCK_NOT_FOUND);
    }
  }
}

TEST(HlsSelect, ATableThatIsThereIsNotReadAgain) {
  const SelectCase c = ten_nodes(3);
  Pool pool(c);
  ASSERT_NO_FATAL_FAILURE(compare(c, PENSTOCK_HLS_FORGET, &pool));
  ASSERT_EQ(pool.result(0).status, PENSTOCK_OK);
  const auto table_now = [&](bool commit) {
    SelectCase now = c;
    std::memcpy(static_cast<void*>(now.table.header()), pool.table(), c.table.header()->bytes);
    now.commit = commit;
    return now;
  };
  // The commits stand in the banks, as the header's generation says.
  ASSERT_NO_FATAL_FAILURE(compare(table_now(true), 0, &pool));

  // Cells that change without a word are not seen, until the generation rises.
  const penstock_result before = pool.result(0);
  const TableView view = table_view(pool.table());
  for (std::uint32_t row = 0; row < 10; ++row) view.column(view.allocatable, 0)[row] = 0;
  ASSERT_EQ(pool.run(0).status, PENSTOCK_OK);
  EXPECT_EQ(pool.result(0).row, before.row);
  ++pool.table()->generation;
  ASSERT_NO_FATAL_FAILURE(compare(table_now(false), 0, &pool));
  EXPECT_EQ(pool.result(0).row, -1);
  // Or until the kernel is told.
  for (std::uint32_t row = 0; row < 10; ++row) view.column(view.allocatable, 0)[row] = 1000;
  ASSERT_NO_FATAL_FAILURE(compare(table_now(false), PENSTOCK_HLS_FORGET, &pool));
  EXPECT_EQ(pool.result(0).row, 0);
}

TEST(HlsSelect, ATableOfManyRows) {
  SelectRules rules = rules_of_kernel();
  rules.max_rows = 5000;
  rules.max_tasks = 3;
  rules.max_bits = 40;
  int large = 0;
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    const SelectCase c = kernel_case(seed, rules);
    large += c.table.header()->rows > 1100;
    Pool pool(c);
    ASSERT_NO_FATAL_FAILURE(compare(c, PENSTOCK_HLS_FORGET, &pool)) << "seed " << seed;
  }
  EXPECT_GE(large, 3);
}

void expect_refusal(const SelectCase& c, Pool* pool, std::uint32_t field, std::uint64_t detail) {
  const Status status = pool->run(PENSTOCK_HLS_COMMIT | PENSTOCK_HLS_FORGET);
  EXPECT_EQ(status.status, PENSTOCK_UNSUPPORTED);
  EXPECT_EQ(status.field, field);
  EXPECT_EQ(status.detail, detail);
  EXPECT_TRUE(pool->results_untouched());
  EXPECT_EQ(std::memcmp(pool->table(), c.table.header(), c.table.header()->bytes), 0);
}

TEST(HlsSelect, RefusesWhatItDoesNotDo) {
  const SelectCase good = plain_case(2);
  const auto with_last_op = [&](std::uint32_t op, std::uint32_t n) {
    SelectCase c = good;
    penstock_column_op& last = c.program.ops[c.program.n_ops - 1];
    last = {};
    last.op = static_cast<std::uint8_t>(op);
    last.n = static_cast<std::uint8_t>(n);
    Pool pool(c);
    expect_refusal(c, &pool, PENSTOCK_FIELD_PROGRAM, c.program.n_ops - 1u);
  };
  with_last_op(PENSTOCK_SCORE_BALANCED, 3);
  with_last_op(PENSTOCK_SCORE_RATIO, 1);
  with_last_op(PENSTOCK_SCORE_BEST_FIT, 1);
  with_last_op(PENSTOCK_SCORE_FGD, 1);

  SelectCase hash = good;
  hash.program.tie = PENSTOCK_TIE_HASH;
  Pool hash_pool(hash);
  expect_refusal(hash, &hash_pool, PENSTOCK_FIELD_PROGRAM, PENSTOCK_MAX_OPS);

  SelectCase gpus = good;
  gpus.tasks[1].gpu_count = 1;
  gpus.tasks[1].gpu_milli = 500;
  Pool gpus_pool(gpus);
  expect_refusal(gpus, &gpus_pool, PENSTOCK_FIELD_TASK, 1);

  SelectCase raises = good;
  raises.tasks[1].n_raises = 1;
  Pool raises_pool(raises);
  expect_refusal(raises, &raises_pool, PENSTOCK_FIELD_TASK, 1);
  EXPECT_EQ(raises_pool.run(PENSTOCK_HLS_FORGET).status, PENSTOCK_OK);  // without COMMIT

  SelectCase wide = good;
  wide.table.header()->n_resources = penstock_hls::kResources + 1;
  Pool wide_pool(wide);
  expect_refusal(wide, &wide_pool, PENSTOCK_FIELD_TABLE, 64);
}

TEST(HlsSelect, ADomainTermMattersWhereAnOperationLooksAtIt) {
  SelectCase c = plain_case(3);
  penstock_column_op& spread = c.program.ops[c.program.n_ops++];
  spread = {};
  spread.op = PENSTOCK_SCORE_SPREAD;
  spread.group = 77;
  c.tasks[1].n_domain_terms = 2;
  c.tasks[1].domain_terms[1].group = 77;
  Pool seen(c);
  expect_refusal(c, &seen, PENSTOCK_FIELD_TASK, 1);
  c.tasks[1].n_domain_terms = 1;  // the second is not read then
  Pool unseen(c);
  EXPECT_EQ(unseen.run(PENSTOCK_HLS_FORGET).status, PENSTOCK_OK);
}

TEST(HlsSelect, StreamsAreDeepEnough) {
  penstock_hls_plain::set_concurrent(true);
  for (std::uint64_t seed = 500; seed < 520; ++seed) {
    SelectRules rules = rules_of_kernel();
    rules.max_tasks = 12;
    const SelectCase c = kernel_case(seed, rules);
    Pool pool(c);
    compare(c, PENSTOCK_HLS_FORGET, &pool);
    if (HasFatalFailure()) break;
  }
  penstock_hls_plain::set_concurrent(false);
  EXPECT_EQ(penstock_hls_plain::fills().by_name.size(), 2u);
}

std::int64_t balanced_in_f64(std::int64_t used0, std::int64_t all0, std::int64_t used1,
                             std::int64_t all1) {
  const double f0 = std::min(1.0, static_cast<double>(used0) / static_cast<double>(all0));
  const double f1 = std::min(1.0, static_cast<double>(used1) / static_cast<double>(all1));
  return static_cast<std::int64_t>((1 - std::fabs(f0 - f1) / 2) * 100);
}

TEST(HlsSelectArithmetic, BalancedIsThatOfF64) {
  using penstock_hls::balanced_of;
  using penstock_hls::fraction_of;
  SeededRandom random(7);
  const auto some = [&](std::int64_t most) {
    const std::uint64_t bits = random.below(54);
    const std::int64_t value = static_cast<std::int64_t>(random.next() >> (63 - bits));
    return std::min(value, most);
  };
  std::int64_t met[101] = {};
  for (int i = 0; i < 1000000; ++i) {
    std::int64_t all0 = std::max<std::int64_t>(some(PENSTOCK_MAX_QUANTITY), 1);
    std::int64_t all1 = std::max<std::int64_t>(some(PENSTOCK_MAX_QUANTITY), 1);
    std::int64_t used0 = some(all0 + all0 / 8);
    std::int64_t used1 = some(all1 + all1 / 8);
    if (i % 4 == 1) {
      // Percentages that come out even, or by one off.
      all0 = 100 * random.between(1, 1 << 20);
      all1 = all0;
      used0 = all0 / 100 * random.between(0, 100);
      used1 = all1 / 100 * random.between(0, 100) + random.between(-1, 1);
      used1 = std::max<std::int64_t>(used1, 0);
    }
    const std::int64_t expected = balanced_in_f64(used0, all0, used1, all1);
    ++met[expected];
    const auto u = [](std::int64_t value) { return static_cast<std::uint64_t>(value); };
    ASSERT_EQ(balanced_of(fraction_of(u(used0), u(all0)), fraction_of(u(used1), u(all1))), expected)
        << used0 << "/" << all0 << " and " << used1 << "/" << all1;
  }
  EXPECT_EQ(std::count(met + 50, met + 101, 0), 0);
}

TEST(HlsSelectArithmetic, FractionsAreThoseOfF64) {
  SeededRandom random(8);
  for (int i = 0; i < 1000000; ++i) {
    const std::uint64_t whole = (random.next() >> (11 + random.below(52))) + 1;
    const std::uint64_t part = random.below(whole + 1);
    const penstock_hls::Fraction f = penstock_hls::fraction_of(part, whole);
    const double expected = static_cast<double>(part) / static_cast<double>(whole);
    ASSERT_EQ(std::ldexp(static_cast<double>(f.mantissa), -52 - static_cast<int>(f.exponent)),
              expected)
        << part << "/" << whole;
    ASSERT_EQ(penstock_hls::percent_of(f), static_cast<std::uint32_t>(100 * expected))
        << part << "/" << whole;
  }
}

TEST(HlsSelectArithmetic, NormalisationIsThatOfTheDefinition) {
  SeededRandom random(9);
  for (int i = 0; i < 600000; ++i) {
    const auto normalise = static_cast<std::uint32_t>(random.below(6));
    const std::int64_t reach = std::int64_t{1} << random.below(52);
    std::int64_t scores[3];
    std::uint8_t feasible[3] = {1, 1, 1};
    for (std::int64_t& score : scores) score = random.between(-reach, reach);
    if (random.one_in(4)) scores[1] = scores[0];
    const ScoreRange expected = scalar_score_range(normalise, scores, feasible, 3);
    penstock_hls::Range range = {0, 0, false};
    for (const std::int64_t score : scores) penstock_hls::widen_range(range, normalise, score);
    for (const std::int64_t score : scores)
      ASSERT_EQ(penstock_hls::normalised(normalise, range, score),
                scalar_normalise_one(normalise, expected, score))
          << normalise << " of " << score << " among " << scores[0] << " " << scores[1] << " "
          << scores[2];
  }
}

}  // namespace
}  // namespace penstock
