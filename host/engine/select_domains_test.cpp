// The operations on domains and what a commit does to counts, against upstream's own cases and
// numbers worked out by hand. Both host engines run every case.
#include <gtest/gtest.h>

#include <initializer_list>
#include <limits>
#include <vector>

#include "penstock/descriptor/descriptor.h"
#include "penstock/engine/scalar_select.h"
#include "penstock/engine/select_conformance.h"
#include "penstock/engine/simd_select.h"

namespace penstock {
namespace {

using Values = std::vector<std::int64_t>;
using Cells = std::vector<std::int32_t>;
using Select = void (*)(const TableView&, const penstock_program&, const penstock_task&, bool,
                        penstock_result*);
constexpr std::int64_t kInfeasible = INT64_MIN;
constexpr std::uint16_t kZone = 0;
constexpr std::uint16_t kHost = 1;

// Up to 8 rows; two domain columns, four count columns, two free bit columns.
class SelectDomains : public testing::TestWithParam<Select> {
 protected:
  void SetUp() override {
    program_.magic = PENSTOCK_PROGRAM_MAGIC;
    program_.version = PENSTOCK_PROGRAM_VERSION;
    program_.best = PENSTOCK_MAX_BEST;
    task_.row = -1;
    for (std::uint32_t row = 0; row < 8; row++) table_.set_bit(PENSTOCK_BIT_NODE, row);
  }

  void set_domains(std::uint16_t column, const Cells& cells) {
    std::copy(cells.begin(), cells.end(), table_.view().domain_column(column));
    table_.header()->rows = static_cast<std::uint32_t>(cells.size());
  }
  void set_counts(std::uint16_t column, const Cells& cells) {
    std::copy(cells.begin(), cells.end(), table_.view().count_column(column));
  }
  penstock_column_op& add_op(std::uint8_t code, std::uint8_t normalise = 0) {
    penstock_column_op& op = program_.ops[program_.n_ops++];
    op.op = code;
    op.normalise = normalise;
    op.weight = PENSTOCK_COLUMN_OP_IS_SCORE(code) ? 1 : 0;
    return op;
  }
  penstock_domain_term& add_term(std::uint16_t domain, std::uint16_t count, std::uint8_t kind,
                                 std::int32_t weight) {
    penstock_domain_term& term = task_.domain_terms[task_.n_domain_terms++];
    term.domain = domain;
    term.count = count;
    term.kind = kind;
    term.weight = weight;
    term.domains = 64;
    return term;
  }

  penstock_result select(bool commit = false) {
    std::uint64_t detail = 0;
    EXPECT_EQ(penstock_program_check(&program_, table_.header(), &detail), PENSTOCK_OK) << detail;
    EXPECT_EQ(penstock_task_check(&task_, &program_, table_.header()), PENSTOCK_OK);
    penstock_result result;
    GetParam()(table_.view(), program_, task_, commit, &result);
    return result;
  }
  Values scores() {
    Values all(table_.header()->rows, kInfeasible);
    const penstock_result result = select();
    for (std::uint32_t i = 0; i < result.n_best; i++)
      all[static_cast<std::size_t>(result.best[i].row)] = result.best[i].score;
    return all;
  }
  Cells passing() {
    Cells rows;
    const Values all = scores();
    for (std::size_t row = 0; row < all.size(); row++)
      if (all[row] != kInfeasible) rows.push_back(static_cast<std::int32_t>(row));
    return rows;
  }

  HostTable table_{8, 64, 1, 0, 4, 0, 2, 4};
  penstock_program program_ = {};
  penstock_task task_ = {};
};
INSTANTIATE_TEST_SUITE_P(Engines, SelectDomains, testing::Values(&scalar_select, &simd_select),
                         [](const auto& engine) { return engine.index == 0 ? "scalar" : "simd"; });

// ---- filters ----

TEST_P(SelectDomains, AbsentWantsNoneInTheDomain) {
  add_op(PENSTOCK_FILTER_DOMAINS);
  set_domains(kZone, {0, 1, 2, -1, 64, -2, 1});
  set_counts(0, {0, 3, -5, 1});
  add_term(kZone, 0, PENSTOCK_DOMAIN_ABSENT, 0);
  // A domain out of the table is none, and a count below 0 is 0.
  EXPECT_EQ(passing(), (Cells{0, 2, 3, 4, 5}));
  set_domains(kHost, {3, 0, 0, 0, 3, 0, 0});
  add_term(kHost, 0, PENSTOCK_DOMAIN_ABSENT, 0);
  EXPECT_EQ(passing(), (Cells{2, 3, 5})) << "all terms have to hold";
  task_.domain_terms[1].group = 1;
  EXPECT_EQ(passing(), (Cells{0, 2, 3, 4, 5})) << "of another group";
}

TEST_P(SelectDomains, PresentWantsOneInTheDomainOrToBeTheFirst) {
  add_op(PENSTOCK_FILTER_DOMAINS);
  set_domains(kZone, {0, 1, 2, -1});
  set_counts(0, {0, 3, 0, 0});
  penstock_domain_term& term = add_term(kZone, 0, PENSTOCK_DOMAIN_PRESENT, 0);
  term.domains = 3;
  EXPECT_EQ(passing(), (Cells{1}));
  term.self = 1;
  EXPECT_EQ(passing(), (Cells{1})) << "there is one elsewhere";
  set_counts(0, {0, 0, 0, 9});
  EXPECT_EQ(passing(), (Cells{0, 1, 2})) << "none in the domains in use";
  term.domains = 4;
  EXPECT_EQ(passing(), Cells{});
  // Another term of the group that has something stands against it, one of another group or kind
  // does not.
  term.domains = 3;
  set_counts(1, {5});
  penstock_domain_term& other = add_term(PENSTOCK_ROW_DOMAIN, 1, PENSTOCK_DOMAIN_PRESENT, 0);
  other.self = 1;
  EXPECT_EQ(passing(), Cells{});
  set_domains(kHost, {0, 0, 0, 0});
  other.domain = kHost;
  EXPECT_EQ(passing(), Cells{}) << "the other term holds everywhere, the first one nowhere";
  other.group = 1;
  EXPECT_EQ(passing(), (Cells{0, 1, 2}));
}

TEST_P(SelectDomains, SpreadKeepsTheSkew) {
  add_op(PENSTOCK_FILTER_DOMAINS);
  set_domains(kZone, {0, 1, 2, 3, -1, 1});
  set_counts(0, {2, 3, 4, 0});
  set_counts(1, {1, 2, 1, 0});  // no eligible node in domain 3
  penstock_domain_term& term = add_term(kZone, 0, PENSTOCK_DOMAIN_SPREAD, 1);
  term.nodes = 1;
  term.self = 1;
  term.domains = 4;
  EXPECT_EQ(passing(), (Cells{0, 3})) << "least is 2";
  term.weight = 2;
  EXPECT_EQ(passing(), (Cells{0, 1, 3, 5}));
  term.self = 0;
  EXPECT_EQ(passing(), (Cells{0, 1, 2, 3, 5}));
  term.min_domains = 3;
  EXPECT_EQ(passing(), (Cells{0, 1, 2, 3, 5})) << "there are as many";
  term.min_domains = 4;
  EXPECT_EQ(passing(), (Cells{0, 3})) << "there are fewer: least is 0";
  term.min_domains = 1;
  term.domains = 0;
  EXPECT_EQ(passing(), (Cells{0, 1, 2, 3, 5})) << "nothing to compare with";
  // Counts are read within their bounds: least is 0 here, and 2^20 there.
  term.domains = 4;
  set_counts(0, {INT32_MIN, INT32_MAX, 0, 0});
  term.weight = 1 << 20;
  EXPECT_EQ(passing(), (Cells{0, 1, 2, 3, 5}));
  term.weight--;
  EXPECT_EQ(passing(), (Cells{0, 2, 3}));
}

// ---- scores ----

TEST_P(SelectDomains, WeightedSumOfCounts) {
  add_op(PENSTOCK_SCORE_DOMAINS);
  set_domains(kZone, {0, 1, -1, 0});
  set_counts(0, {7, 1 << 20});
  set_counts(1, {100, 90, 0, -1});
  add_term(kZone, 0, 0, -3);
  add_term(PENSTOCK_ROW_DOMAIN, 1, 0, 2);
  add_term(PENSTOCK_ROW_DOMAIN, 1, 0, 1000).group = 1;
  EXPECT_EQ(scores(), (Values{200 - 21, 180 - 3 * (1 << 20), 0, -21}));
}

struct SpreadCase {
  const char* name;
  std::vector<std::array<std::int32_t, 3>> terms;  // domain column, count column, skew
  Cells zone, foo, bar, zone_foo, zone_bar;        // by row, by row, by row, by zone, by zone
  std::vector<bool> candidate;
  Values scores;
};

// Upstream's table of cases for the score of PodTopologySpread; count columns 0 and 1 hold pods
// with the label foo or bar by host, 2 and 3 by zone.
TEST_P(SelectDomains, SpreadAsUpstream) {
  const SpreadCase cases[] = {
      {"skew 2", {{kHost, 0, 2}}, {}, {2, 1, 0, 3}, {}, {}, {}, {}, {33, 66, 100, 16}},
      {"skew 3", {{kHost, 0, 3}}, {}, {4, 3, 2, 1}, {}, {}, {}, {}, {44, 66, 77, 100}},
      {"equal", {{kHost, 0, 1}}, {}, {1, 1}, {}, {}, {}, {}, {100, 100}},
      {"one of four is no candidate",
       {{kHost, 0, 1}},
       {},
       {4, 2, 1, 3},
       {},
       {},
       {},
       {true, true, true, false},
       {33, 83, 100, kInfeasible}},
      {"zone",
       {{kZone, 2, 1}},
       {0, 0, 1, 1},
       {},
       {},
       {6, 4},
       {},
       {true, true, true, false},
       {75, 75, 100, kInfeasible}},
      {"zone foo and host bar",
       {{kZone, 2, 1}, {kHost, 1, 1}},
       {0, 0, 1, 1},
       {},
       {0, 1, 0, 1},
       {2, 1},
       {},
       {},
       {60, 20, 100, 60}},
      {"zone foo and host bar, other placement",
       {{kZone, 2, 1}, {kHost, 1, 1}},
       {0, 0, 1, 1},
       {},
       {0, 1, 0, 1},
       {0, 2},
       {},
       {},
       {100, 60, 40, 0}},
      {"zone foo and zone bar",
       {{kZone, 2, 1}, {kZone, 3, 1}},
       {0, 0, 1, 1},
       {},
       {},
       {3, 3},
       {2, 1},
       {true, false, true, false},
       {85, kInfeasible, 100, kInfeasible}},
  };
  add_op(PENSTOCK_FILTER_BITS);
  add_op(PENSTOCK_SCORE_SPREAD, PENSTOCK_NORMALISE_SPREAD).group = 3;
  task_.n_terms = 1;
  task_.terms[0] = {2, 0, 0, 0};
  for (const SpreadCase& c : cases) {
    const std::size_t rows = c.scores.size();
    for (std::uint32_t row = 0; row < rows; row++)
      table_.set_bit(2, row, c.candidate.empty() || c.candidate[row]);
    set_domains(kZone, c.zone);
    set_domains(kHost, rows == 2 ? Cells{0, 1} : Cells{0, 1, 2, 3});
    for (std::uint16_t column = 0; column < 4; column++) {
      set_counts(column, {0, 0, 0, 0});
      const Cells* counts[] = {&c.foo, &c.bar, &c.zone_foo, &c.zone_bar};
      set_counts(column, *counts[column]);
    }
    task_.n_domain_terms = 0;
    for (const auto& [domain, count, skew] : c.terms) {
      const bool host = domain == kHost;
      // The same whether hosts have a column or each row is one.
      const auto column = static_cast<std::uint16_t>(domain);
      add_term(host && rows == 2 ? PENSTOCK_ROW_DOMAIN : column, static_cast<std::uint16_t>(count),
               PENSTOCK_SPREAD_REQUIRED | (host ? PENSTOCK_SPREAD_HOSTNAME : 0u), skew)
          .group = 3;
    }
    EXPECT_EQ(scores(), c.scores) << c.name;
  }
}

// Upstream's case of a node that lacks the topology: it is ignored, which changes the others' size.
TEST_P(SelectDomains, SpreadIgnoresRowsWithoutARequiredDomain) {
  add_op(PENSTOCK_SCORE_SPREAD, PENSTOCK_NORMALISE_SPREAD);
  set_domains(kHost, {0, -1, 2});
  set_counts(0, {4, 0, 1});
  penstock_domain_term& term =
      add_term(kHost, 0, PENSTOCK_SPREAD_REQUIRED | PENSTOCK_SPREAD_HOSTNAME, 1);
  EXPECT_EQ(scores(), (Values{16, 0, 100}));
  program_.ops[0].normalise = PENSTOCK_NORMALISE_NONE;
  EXPECT_EQ(scores(), (Values{6, -1, 1}));  // 4 * ln 4 and ln 4
  // Not required: three rows count, and the one without the domain adds nothing.
  term.kind = PENSTOCK_SPREAD_HOSTNAME;
  EXPECT_EQ(scores(), (Values{6, 0, 2}));  // 4 * ln 5 = 6.44, ln 5 = 1.61
  // By domains: two, and one more for having none.
  term.kind = 0;
  set_domains(kHost, {0, -1, 0, 2, -1});
  EXPECT_EQ(scores(), (Values{6, 0, 6, 2, 0}));
  program_.ops[0].normalise = PENSTOCK_NORMALISE_SPREAD;
  EXPECT_EQ(scores(), (Values{0, 100, 0, 66, 100}));
}

TEST_P(SelectDomains, SpreadRoundsHalfAwayFromZeroAndReadsDamagedLogsAsZero) {
  add_op(PENSTOCK_SCORE_SPREAD);
  set_counts(0, {1, 3, 5, 0});
  table_.header()->rows = 4;
  add_term(PENSTOCK_ROW_DOMAIN, 0, PENSTOCK_SPREAD_HOSTNAME, INT32_MAX);
  auto* log = const_cast<double*>(table_.view().logs) + 4;
  const std::int64_t base = INT32_MAX - 1;
  *log = 0.5;
  EXPECT_EQ(scores(), (Values{base + 1, base + 2, base + 3, base}));
  for (const double damaged : {-1.0, 64.5, std::numeric_limits<double>::quiet_NaN(),
                               std::numeric_limits<double>::infinity()}) {
    *log = damaged;
    EXPECT_EQ(scores(), (Values{base, base, base, base}));
  }
  *log = 64;
  EXPECT_EQ(scores(), (Values{base + 64, base + 192, base + 320, base}));
}

TEST_P(SelectDomains, SpreadWithoutTermsIsNothing) {
  add_op(PENSTOCK_SCORE_SPREAD, PENSTOCK_NORMALISE_SPREAD);
  table_.header()->rows = 3;
  EXPECT_EQ(scores(), (Values{0, 0, 0}));
  add_term(kHost, 0, 0, 1).group = 1;
  for (std::uint8_t n = 0; n <= PENSTOCK_NORMALISE_SPREAD; n++) {
    program_.ops[0].normalise = n;
    EXPECT_EQ(scores(), (Values{0, 0, 0})) << int{n};
  }
  task_.domain_terms[0].group = 0;
  program_.ops[0].normalise = PENSTOCK_NORMALISE_SPREAD;
  EXPECT_EQ(scores(), (Values{100, 100, 100})) << "with a term, no skew is the best";
}

// ---- commits ----

TEST_P(SelectDomains, CommitRaisesCounts) {
  set_domains(kZone, {5, -1, 4});
  table_.set_bit(2, 0);
  task_.n_raises = 6;
  task_.raises[0] = {0, kZone, 0, 0};
  task_.raises[1] = {1, PENSTOCK_ROW_DOMAIN, 2, 0};
  task_.raises[2] = {2, kZone, 3, 0};  // row 0 is not eligible
  task_.raises[3] = {3, kZone, 2, 0};
  task_.raises[4] = {3, kZone, 0, 0};
  task_.raises[5] = {3, kHost, 0, 0};  // the same cell if the row's domain is 5, too
  task_.set_bits[0] = 3;               // comes after it was looked at
  table_.view().domain_column(kHost)[0] = 5;
  HostTable expected = table_;
  expected.view().count_column(0)[5] = 1;
  expected.view().count_column(1)[0] = 1;
  expected.view().count_column(3)[5] = 3;
  expected.set_bit(3, 0);
  expected.header()->generation = 1;
  const HostTable before = table_;
  EXPECT_EQ(select(true).status, PENSTOCK_OK);
  EXPECT_EQ(difference(expected, table_), "");

  // Released, only the bit that was set and the generation tell.
  table_.set_bit(3, 0, false);
  EXPECT_EQ(scalar_release(table_.view(), task_, 0, 0), PENSTOCK_OK);
  EXPECT_EQ(table_.header()->generation, 2u);
  table_.header()->generation = 0;
  EXPECT_EQ(difference(before, table_), "");
  EXPECT_EQ(scalar_release(table_.view(), task_, 0, 0), PENSTOCK_OUT_OF_RANGE);
  EXPECT_EQ(difference(before, table_), "") << "counts do not fall below 0";
}

TEST_P(SelectDomains, ARaisePastItsBoundIsRefusedWhole) {
  set_domains(kZone, {5});
  task_.request[0] = 3;
  task_.n_raises = 2;
  task_.raises[0] = {3, kZone, 0, 0};
  task_.raises[1] = {3, kZone, 0, 0};
  std::int32_t& cell = table_.view().count_column(3)[5];
  for (const std::int32_t refused :
       {PENSTOCK_MAX_DOMAIN_COUNT, PENSTOCK_MAX_DOMAIN_COUNT - 1, -1, INT32_MAX, INT32_MIN}) {
    cell = refused;
    const HostTable before = table_;
    EXPECT_EQ(select(true).status, PENSTOCK_OUT_OF_RANGE) << refused;
    EXPECT_EQ(difference(before, table_), "") << refused;
  }
  cell = PENSTOCK_MAX_DOMAIN_COUNT - 2;
  EXPECT_EQ(select(true).status, PENSTOCK_OK);
  EXPECT_EQ(cell, PENSTOCK_MAX_DOMAIN_COUNT);
}

TEST(ScalarCommit, TakesBackWhatItDid) {
  HostTable table(4, 64, 2, 3, 4, 2);
  const TableView view = table.view();
  for (std::uint32_t s = 0; s < 3; s++) view.column(view.gpu, s)[2] = 700;
  penstock_task task = {};
  task.request[0] = 10;
  task.scored_request[1] = 20;
  task.gpu_count = 2;
  task.gpu_milli = 300;
  task.count[0] = task.count[1] = 2;
  const HostTable before = table;
  EXPECT_EQ(scalar_commit(view, task, 2, 0b001), PENSTOCK_OUT_OF_RANGE) << "one GPU of two";
  EXPECT_EQ(scalar_commit(view, task, 2, 0b1001), PENSTOCK_OUT_OF_RANGE) << "no such GPU";
  EXPECT_EQ(scalar_commit(view, task, 1, 0b101), PENSTOCK_OUT_OF_RANGE) << "no room on them";
  EXPECT_EQ(difference(before, table), "");
  EXPECT_EQ(scalar_commit(view, task, 2, 0b101), PENSTOCK_OK);
  EXPECT_EQ(view.requested[2], 10);
  EXPECT_EQ(view.column(view.scored, 1)[2], 20);
  EXPECT_EQ(view.gpu[2], 400);
  EXPECT_EQ(view.column(view.gpu, 1)[2], 700);
  EXPECT_EQ(view.column(view.free, 1)[2], 2);
  EXPECT_EQ(scalar_release(view, task, 2, 0b110), PENSTOCK_OK) << "of a task like it elsewhere";
  EXPECT_EQ(scalar_release(view, task, 2, 0b101), PENSTOCK_OUT_OF_RANGE) << "there is no other";
  EXPECT_EQ(table.header()->generation, 2u);
}

}  // namespace
}  // namespace penstock
