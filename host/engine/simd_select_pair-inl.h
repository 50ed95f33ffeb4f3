// The block kernel of PairScores: what nearly every policy asks of processors and memory, with each
// column read once. The scores never leave the registers before they are summed.
#if defined(PENSTOCK_ENGINE_SIMD_SELECT_PAIR_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PENSTOCK_ENGINE_SIMD_SELECT_PAIR_INL_H_
#undef PENSTOCK_ENGINE_SIMD_SELECT_PAIR_INL_H_
#else
#define PENSTOCK_ENGINE_SIMD_SELECT_PAIR_INL_H_
#endif

#include "hwy/cache_control.h"
#include "penstock/engine/simd_select_resources-inl.h"

HWY_BEFORE_NAMESPACE();
namespace penstock {
namespace HWY_NAMESPACE {

// The nearest whole number, of |v| < 2^50.
HWY_INLINE Real nearest(Real v) { return (v + real(kRounder)) - real(kRounder); }

// floor(100 * part / whole) of integers 0 <= part <= whole, from 1 / whole that is too small by
// less than 2^-21 of it and too large by a few roundings at most. What is rounded to the nearest
// number lies below the quotient by 0.5001 to 0.5002, so that it is the result or 1 less, which the
// remainder tells (see percent).
HWY_INLINE Real percent_by(Real part, Real whole, Real reciprocal) {
  constexpr double kBias = 1.0 / 8192;
  const Real hundredfold = part * real(100);
  const Real low = hn::MulAdd(hundredfold, reciprocal, real(-0.5 - kBias));
  const Real next = (low + real(kRounder)) - real(kRounder - 1);
  const RealMask above = hn::NegMulAdd(next, whole, hundredfold) < hn::Zero(kReal);
  return hn::IfThenElse(above, next - real(1), next);
}

// What the task asks of a block.
struct PairBlock {
  struct Resource {
    const std::int64_t* allocatable;
    const std::int64_t* requested;
    const std::int64_t* scored;
    Int request;
    Int scored_request;
    Int looked_at;  // by FIT: all bits, or none
  };
  Resource resource[2];
  Resource other[PairScores::kMaxOthers];
  std::uint32_t n_others;
  // The mean is a sum of the products with `share`, and of what makes rounding to the nearest
  // number a division by the weights (see kExact) that is rounded down.
  Real share[2];
  Real half;
  Real weight;
  Real balanced_weight;
};

inline PairBlock pair_block(const TableView& table, const PairScores& pair, RowBlock block) {
  const auto at = [&](std::int64_t* base, std::uint32_t r) {
    return table.column(base, r) + block.begin;
  };
  PairBlock made;
  const double weights = pair.list_weight[0] + pair.list_weight[1];
  for (std::uint32_t k = 0; k < 2; k++) {
    const std::uint32_t r = pair.column[k];
    made.resource[k] = {
        at(table.allocatable, r), at(table.requested, r),          at(table.scored, r),
        integer(pair.request[k]), integer(pair.scored_request[k]), integer(pair.fits[k] ? -1 : 0)};
    made.share[k] = real(pair.list_weight[k] / weights);
  }
  made.half = real(0.5 / weights - 0.5);
  made.weight = real(pair.weight);
  made.balanced_weight = real(pair.balanced_weight);
  made.n_others = pair.n_others;
  for (std::uint32_t k = 0; k < pair.n_others; k++) {
    const std::uint32_t r = pair.other[k];
    made.other[k] = {at(table.allocatable, r),       at(table.requested, r), nullptr,
                     integer(pair.other_request[k]), hn::Zero(kInt),         integer(-1)};
  }
  return made;
}

// One vector of rows, some of which lack a resource: as sum_of_pair.
template <bool kLeast>
HWY_NOINLINE Real score_pair_of_some(const PairBlock& block, const PairScores& pair,
                                     std::size_t row) {
  Resources list;
  list.n = 2;
  std::int64_t scores[2][hn::MaxLanes(kInt)];
  for (std::uint32_t k = 0; k < 2; k++) {
    list.allocatable[k] = block.resource[k].allocatable + row;
    list.used[k] = block.resource[k].scored + row;
    list.request[k] = block.resource[k].scored_request;
    list.weight[k] = real(pair.list_weight[k]);
  }
  allocation_score_of_some<kLeast>(list, 0, scores[0]);
  for (std::uint32_t k = 0; k < 2; k++) {
    list.used[k] = block.resource[k].requested + row;
    list.request[k] = block.resource[k].request;
  }
  balanced_score_of_some(list, 0, scores[1]);
  return hn::MulAdd(to_real(load(scores[0])), block.weight,
                    hn::MulAdd(to_real(load(scores[1])), block.balanced_weight, real(kRounder)));
}

// One vector of rows on its way.
struct PairRows {
  Int allocatable[2];
  Int left[2];  // once the task is there
  Real whole[2];
  Real product;  // of both: 0 where a resource is missing
  Real reciprocal[2];
};

// Has the lines of later rows fetched from farther caches, once for every line.
HWY_INLINE void fetch_ahead(const PairBlock& block, std::size_t row) {
  constexpr std::size_t kRowsOfLine = PENSTOCK_CACHE_LINE / sizeof(std::int64_t);
  constexpr std::size_t kAhead = 256;
  if (row % kRowsOfLine != 0) return;
  for (const PairBlock::Resource& resource : block.resource) {
    hwy::Prefetch(resource.allocatable + row + kAhead);
    hwy::Prefetch(resource.requested + row + kAhead);
    hwy::Prefetch(resource.scored + row + kAhead);
  }
  for (std::uint32_t k = 0; k < block.n_others; k++) {
    hwy::Prefetch(block.other[k].allocatable + row + kAhead);
    hwy::Prefetch(block.other[k].requested + row + kAhead);
  }
}

// Loads what FIT looks at; the lanes that it lets pass. kFits: it looks at both resources.
template <bool kFits>
HWY_INLINE IntMask fit_pair(const PairBlock& block, std::size_t row, PairRows* rows, Word& cells) {
  Int short_of = hn::Zero(kInt);  // below 0 where something does not fit
  for (std::uint32_t k = 0; k < 2; k++) {
    const PairBlock::Resource& resource = block.resource[k];
    rows->allocatable[k] = load(resource.allocatable + row);
    const Int requested = load(resource.requested + row);
    gather(rows->allocatable[k], requested, cells);
    rows->left[k] = rows->allocatable[k] - requested - resource.request;
    if (!kFits) short_of = hn::OrAnd(short_of, rows->left[k], resource.looked_at);
  }
  if (kFits) short_of = hn::Or(rows->left[0], rows->left[1]);
  for (std::uint32_t k = 0; k < block.n_others; k++) {
    const PairBlock::Resource& resource = block.other[k];
    const Int allocatable = load(resource.allocatable + row);
    const Int requested = load(resource.requested + row);
    gather(allocatable, requested, cells);
    short_of = hn::Or(short_of, allocatable - requested - resource.request);
  }
  return hn::Not(hn::Zero(kInt) > short_of);
}

// The reciprocals of both resources from that of their product, which Newton's step brings from
// below to within 2^-22. No numbers where a resource is missing.
HWY_INLINE void invert_pair(PairRows* rows) {
  for (std::uint32_t k = 0; k < 2; k++) rows->whole[k] = to_real(rows->allocatable[k]);
  rows->product = rows->whole[0] * rows->whole[1];
  const Real rough = rough_reciprocal(rows->product);
  const Real both = rough * hn::NegMulAdd(rows->product, rough, real(2));
  rows->reciprocal[0] = both * rows->whole[1];
  rows->reciprocal[1] = both * rows->whole[0];
}

// LEAST_ALLOCATED or MOST_ALLOCATED.
template <bool kLeast>
HWY_INLINE Real mean_of_pair(const PairBlock& block, std::size_t row, const PairRows& rows,
                             Word& cells) {
  const Int scored[2] = {load(block.resource[0].scored + row),
                         load(block.resource[1].scored + row)};
  gather(scored[0], scored[1], cells);
  Real mean = block.half;
  for (std::uint32_t k = 0; k < 2; k++) {
    const Real counted = counted_quantity<kLeast>(rows.allocatable[k], scored[k],
                                                  block.resource[k].scored_request, rows.whole[k]);
    mean = hn::MulAdd(percent_by(counted, rows.whole[k], rows.reciprocal[k]), block.share[k], mean);
  }
  return nearest(mean);
}

// BALANCED by the definition's own operations.
HWY_INLINE Real exact_balance(const PairRows& rows) {
  Real fractions[2];
  for (std::uint32_t k = 0; k < 2; k++)
    fractions[k] = hn::Min(real(1), to_real(rows.allocatable[k] - rows.left[k]) / rows.whole[k]);
  const Real deviation = hn::Abs(fractions[0] - fractions[1]) * real(0.5);
  return hn::Floor((real(1) - deviation) * real(100));
}

// BALANCED, and the lanes for which the reciprocals are sure of it, for the reason that
// balanced_score_of_two gives; they are not where a resource is missing. The fractions differ as
// what is left of them does, which is not below 0 where FIT lets the row pass.
template <bool kFits>
HWY_INLINE Real balance_of_pair(const PairRows& rows, IntMask* sure) {
  constexpr double kDoubt = 1.0 / 8192;
  Real left[2];
  for (std::uint32_t k = 0; k < 2; k++) {
    left[k] = to_real(rows.left[k]);
    if (!kFits) left[k] = hn::Max(left[k], hn::Zero(kReal));
  }
  const Real apart = hn::NegMulAdd(left[1], rows.reciprocal[1], left[0] * rows.reciprocal[0]);
  // Less 0.5, to be rounded down.
  const Real balance = hn::NegMulAdd(hn::Abs(apart), real(50), real(99.5));
  const Real whole = nearest(balance);
  *sure = hn::RebindMask(kInt, hn::Abs(balance - whole) < real(0.5 - kDoubt));
  return whole;
}

// The weighted sum of both scores as an integer on top of kRounder.
HWY_INLINE Real sum_of_pair(const PairBlock& block, Real mean, Real balance) {
  return hn::MulAdd(mean, block.weight, hn::MulAdd(balance, block.balanced_weight, real(kRounder)));
}

template <bool kLeast, bool kFits>
bool score_pair_of(const TableView& table, const PairScores& pair, RowBlock rows_of,
                   std::int64_t threshold, std::uint64_t* feasible, std::int64_t* total,
                   std::uint64_t* above) {
  const std::size_t lanes = hn::Lanes(kInt);
  const PairBlock block = pair_block(table, pair, rows_of);
  const Int limit = integer(threshold);
  const Int rounder = hn::BitCast(kInt, real(kRounder));
  Word cells = hn::Zero(kWord);
  std::uint64_t passes[kBlockWords] = {};
  for (std::uint32_t w = 0; w < rows_of.words; w++) {
    above[w] = 0;
    if (feasible[w] == 0) continue;
    Real highest = hn::Neg(hn::Inf(kReal));
    for (std::size_t i = 0; i < 64; i += lanes) {
      const std::size_t row = w * 64 + i;
      fetch_ahead(block, row);
      PairRows rows;
      const IntMask pass =
          hn::And(fit_pair<kFits>(block, row, &rows, cells), bits_mask(feasible[w], i));
      if (hn::AllFalse(kInt, pass)) continue;
      passes[w] |= mask_bits(pass) << i;
      invert_pair(&rows);
      const Real mean = mean_of_pair<kLeast>(block, row, rows, cells);
      IntMask sure;
      Real sum = sum_of_pair(block, mean, balance_of_pair<kFits>(rows, &sure));
      if (HWY_UNLIKELY(!hn::AllFalse(kInt, hn::AndNot(sure, pass)))) {
        sum = sum_of_pair(block, mean, exact_balance(rows));
        const IntMask complete = hn::RebindMask(kInt, rows.product > hn::Zero(kReal));
        if (!hn::AllFalse(kInt, hn::AndNot(complete, pass)))
          sum = score_pair_of_some<kLeast>(block, pair, row);
      }
      hn::StoreU(hn::BitCast(kInt, sum) - rounder, kInt, total + row);
      highest = hn::IfThenElse(hn::RebindMask(kReal, pass), hn::Max(highest, sum), highest);
    }
    if (hn::AllFalse(kInt, hn::BitCast(kInt, highest) - rounder > limit)) continue;
    for (std::size_t i = 0; i < 64; i += lanes)
      above[w] |= mask_bits(load(total + w * 64 + i) > limit) << i;
    above[w] &= passes[w];
  }
  if (!all_below(cells)) return false;
  for (std::uint32_t w = 0; w < rows_of.words; w++) feasible[w] &= passes[w];
  return true;
}

template <bool kFits>
bool score_pair_fitting(const TableView& table, const PairScores& pair, RowBlock block,
                        std::int64_t threshold, std::uint64_t* feasible, std::int64_t* total,
                        std::uint64_t* above) {
  return (pair.least
              ? score_pair_of<true, kFits>
              : score_pair_of<false, kFits>)(table, pair, block, threshold, feasible, total, above);
}

}  // namespace HWY_NAMESPACE
}  // namespace penstock
HWY_AFTER_NAMESPACE();
#endif
