#include "penstock/rtl/score/score_test_rig.h"

namespace penstock::rtl {
namespace {

constexpr std::uint64_t kOpcodes =
    1u << PENSTOCK_FILTER_BITS | 1u << PENSTOCK_FILTER_FIT | 1u << PENSTOCK_FILTER_GPU |
    1u << PENSTOCK_FILTER_ROW | 1u << PENSTOCK_FILTER_DOMAINS |
    UINT64_C(1) << PENSTOCK_SCORE_LEAST_ALLOCATED | UINT64_C(1) << PENSTOCK_SCORE_MOST_ALLOCATED |
    UINT64_C(1) << PENSTOCK_SCORE_BALANCED | UINT64_C(1) << PENSTOCK_SCORE_BITS |
    UINT64_C(1) << PENSTOCK_SCORE_FEATURES | UINT64_C(1) << PENSTOCK_SCORE_DOMAINS |
    UINT64_C(1) << PENSTOCK_SCORE_SPREAD;

// A random case of what the card can do; every operation comes often in some of them.
SelectCase make_case(std::uint64_t seed) {
  constexpr std::uint32_t kFocus[] = {0,
                                      PENSTOCK_FILTER_BITS,
                                      PENSTOCK_FILTER_FIT,
                                      PENSTOCK_FILTER_ROW,
                                      PENSTOCK_SCORE_LEAST_ALLOCATED,
                                      PENSTOCK_SCORE_MOST_ALLOCATED,
                                      PENSTOCK_SCORE_BALANCED,
                                      PENSTOCK_SCORE_BITS,
                                      PENSTOCK_SCORE_FEATURES,
                                      PENSTOCK_SCORE_DOMAINS};
  SelectRules rules;
  rules.opcodes = kOpcodes;
  rules.max_rows = seed % 4 == 0 ? 1500 : 600;
  rules.ties = 1u << PENSTOCK_TIE_LOWEST_ROW | 1u << PENSTOCK_TIE_ROTATING;
  rules.max_resources = 8;
  rules.gpus = rules.domains = false;
  rules.focus = kFocus[seed % std::size(kFocus)];
  SelectCase c = make_select_case(seed, rules);
  for (std::uint32_t i = 0; i < c.program.n_ops; ++i) {
    penstock_column_op& op = c.program.ops[i];
    if (op.op == PENSTOCK_SCORE_BALANCED && op.n > 2) {
      op.n = 2;
      op.skip_unasked &= 3;
      std::fill(op.column + 2, op.column + 16, std::uint16_t{0});
    }
    if (op.op == PENSTOCK_SCORE_FEATURES && op.normalise == PENSTOCK_NORMALISE_MIN_MAX_F64)
      op.normalise = PENSTOCK_NORMALISE_MIN_MAX;
  }
  return c;
}

TEST(Score, RandomCasesGiveTheBitsOfScalar) {
  int compared = 0;
  int refused = 0;
  for (std::uint64_t seed = 1; seed <= PENSTOCK_CASES; ++seed) {
    SCOPED_TRACE(seed);
    SelectCase c = make_case(seed);
    Rig rig(seed, sim::AxiConfig{});
    const Job job = place(rig, c, 64 * (seed % 5), seed * 7);
    const Outcome outcome = rig.run(job);
    if (outcome.status == PENSTOCK_UNSUPPORTED) {
      ++refused;
      continue;
    }
    ASSERT_EQ(outcome, (Outcome{PENSTOCK_OK, PENSTOCK_FIELD_NONE, 0}));
    ASSERT_EQ(wrong_after(rig, job, c), "");
    ++compared;
  }
  EXPECT_GT(compared, PENSTOCK_CASES * 9 / 10);
  EXPECT_LT(refused, PENSTOCK_CASES / 10);
}

}  // namespace
}  // namespace penstock::rtl
