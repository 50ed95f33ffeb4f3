#include "penstock/engine/simd_select_blocks.h"

#include <algorithm>

// Between AVX2 and the baseline there is nothing worth its compile time.
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "penstock/engine/simd_select_blocks.cpp"
#include "hwy/foreach_target.h"
// After foreach_target.h.
#include "hwy/highway.h"
#include "penstock/engine/simd_select_domains-inl.h"
#include "penstock/engine/simd_select_pair-inl.h"
#include "penstock/engine/simd_select_resources-inl.h"
#include "penstock/engine/simd_select_vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace penstock {
namespace HWY_NAMESPACE {

// ---- filters ----

bool fit(const TableView& table, const penstock_column_op& op, const penstock_task& task,
         RowBlock block, std::uint64_t* feasible) {
  const std::int64_t* allocatable[PENSTOCK_MAX_RESOURCES];
  const std::int64_t* requested[PENSTOCK_MAX_RESOURCES];
  Int request_less_1[PENSTOCK_MAX_RESOURCES];
  std::uint32_t n = 0;
  for (std::uint32_t i = 0; i < op.n; i++) {
    const std::uint32_t r = op.column[i];
    if (task.request[r] == 0) continue;
    allocatable[n] = table.column(table.allocatable, r) + block.begin;
    requested[n] = table.column(table.requested, r) + block.begin;
    request_less_1[n++] = integer(task.request[r] - 1);
  }
  if (n == 0) return true;
  const std::size_t lanes = hn::Lanes(kInt);
  Word cells = hn::Zero(kWord);
  std::uint64_t passes[kBlockWords] = {};
  for (std::uint32_t w = 0; w < block.words; w++) {
    if (feasible[w] == 0) continue;
    for (std::size_t i = 0; i < 64; i += lanes) {
      IntMask all = hn::FirstN(kInt, lanes);
      for (std::uint32_t k = 0; k < n; k++) {
        const Int a = load(allocatable[k] + w * 64 + i);
        const Int q = load(requested[k] + w * 64 + i);
        gather(a, q, cells);
        all = hn::And(all, a - q > request_less_1[k]);
      }
      passes[w] |= mask_bits(all) << i;
    }
  }
  if (!all_below(cells)) return false;
  for (std::uint32_t w = 0; w < block.words; w++) feasible[w] &= passes[w];
  return true;
}

bool gpus_fit(const TableView& table, const penstock_task& task, RowBlock block,
              std::uint64_t* feasible) {
  if (task.gpu_count == 0) return true;
  const std::size_t lanes = hn::Lanes(kInt);
  const Int milli_less_1 = integer(static_cast<std::int64_t>(task.gpu_milli) - 1);
  const Int count_less_1 = integer(static_cast<std::int64_t>(task.gpu_count) - 1);
  for (std::uint32_t w = 0; w < block.words; w++) {
    if (feasible[w] == 0) continue;
    std::uint64_t passes = 0;
    for (std::size_t i = 0; i < 64; i += lanes) {
      Int fitting = hn::Zero(kInt);
      for (std::uint32_t s = 0; s < table.header->n_gpus; s++) {
        const Int free_milli = load(table.column(table.gpu, s) + block.begin + w * 64 + i);
        fitting = fitting - hn::VecFromMask(kInt, free_milli > milli_less_1);
      }
      passes |= mask_bits(fitting > count_less_1) << i;
    }
    feasible[w] &= passes;
  }
  return true;
}

bool filter(const DecisionContext& context, const penstock_column_op& op, RowBlock block,
            std::uint64_t* feasible) {
  if (op.op == PENSTOCK_FILTER_FIT) return fit(context.table, op, context.task, block, feasible);
  if (op.op == PENSTOCK_FILTER_GPU) return gpus_fit(context.table, context.task, block, feasible);
  if (op.op != PENSTOCK_FILTER_DOMAINS) return false;
  filter_domains(context, op, block, feasible);
  return true;
}

// ---- other scores ----

bool bits_score(const TableView& table, const penstock_column_op& op, const penstock_task& task,
                RowBlock block, std::int64_t* scores) {
  const std::size_t lanes = hn::Lanes(kInt);
  std::fill_n(scores, block.words * 64, 0);
  for (std::uint32_t t = 0; t < task.n_terms; t++) {
    const penstock_term& term = task.terms[t];
    if (term.group != op.group) continue;
    const std::uint64_t* column = table.bit_column(term.column) + block.begin / 64;
    const Int weight = integer(term.weight);
    for (std::uint32_t w = 0; w < block.words; w++) {
      const std::uint64_t word = term.clear != 0 ? ~column[w] : column[w];
      if (word == 0) continue;
      for (std::size_t i = 0; i < 64; i += lanes) {
        std::int64_t* p = scores + w * 64 + i;
        hn::StoreU(load(p) + hn::IfThenElseZero(bits_mask(word, i), weight), kInt, p);
      }
    }
  }
  return true;
}

// Products stay below 2^48 and sums within 2^51, so that float64 is exact.
bool features_score(const TableView& table, const penstock_column_op& op, const penstock_task& task,
                    RowBlock block, std::int64_t* scores) {
  const Int bound = integer(PENSTOCK_MAX_FREE_VALUE);
  Word shifted =
      hn::Zero(kWord);  // cells + bound, which is negative or large for a cell out of its bounds
  for (std::size_t row = 0; row < block.words * 64; row += hn::Lanes(kInt)) {
    Real sum = hn::Zero(kReal);
    for (std::uint32_t j = 0; j < op.n; j++) {
      const Int cell = load(table.column(table.free, op.column[j]) + block.begin + row);
      gather(cell + bound, cell + bound, shifted);
      sum = sum + to_real(cell) * real(static_cast<double>(task.feature[j]));
    }
    store(sum, scores + row);
  }
  return all_below<41>(shifted);
}

HWY_INLINE Int gpu_free(const TableView& table, std::uint32_t s, std::size_t row) {
  const Int cell = load(table.column(table.gpu, s) + row);
  return hn::Min(hn::Max(cell, hn::Zero(kInt)), integer(1000));
}

// One GPU, or whole GPUs: then which of the fitting ones are taken makes no difference. The general
// case needs an order, and is left to the scalar function.
bool gpu_packing_score(const TableView& table, const penstock_column_op& op,
                       const penstock_task& task, RowBlock block, std::int64_t* scores) {
  const std::uint32_t count = task.gpu_count;
  if (count > 1 && task.gpu_milli != 1000) return false;
  const Int milli_less_1 = integer(static_cast<std::int64_t>(task.gpu_milli) - 1);
  const Real entire_score = real(std::max(50 - static_cast<int>(count), 33));
  Word cells = hn::Zero(kWord);
  for (std::size_t row = 0; row < block.words * 64; row += hn::Lanes(kInt)) {
    Int total = hn::Zero(kInt);
    Int fitting = hn::Zero(kInt);
    Int fullest = integer(1000);
    for (std::uint32_t s = 0; s < table.header->n_gpus; s++) {
      const Int free_milli = gpu_free(table, s, block.begin + row);
      const IntMask fits = free_milli > milli_less_1;
      total = total + free_milli;
      fitting = fitting - hn::VecFromMask(kInt, fits);
      fullest = hn::IfThenElse(fits, hn::Min(fullest, free_milli), fullest);
    }
    const Int gpus = load(table.column(table.allocatable, op.column[0]) + block.begin + row);
    gather(gpus, gpus, cells);
    const IntMask idle = hn::And(total > hn::Zero(kInt), total == gpus);
    const Real n = hn::Floor(to_real(total) / real(1000));
    const Real idle_score = hn::Max(real(33) - n, n);
    const Real percent = hn::Floor(to_real(fullest) / real(10));
    const Real partial = hn::Max(real(100) - hn::Floor(percent / real(10)), real(50));
    const Real chosen =
        hn::IfThenElse(hn::RebindMask(kReal, fullest == integer(1000)), entire_score, partial);
    const IntMask enough = fitting > integer(static_cast<std::int64_t>(count) - 1);
    store_integer(hn::IfThenElse(hn::RebindMask(kReal, idle), idle_score,
                                 hn::IfThenElseZero(hn::RebindMask(kReal, enough), chosen)),
                  scores + row);
  }
  return all_below(cells);
}

bool gpu_clustering_score(const TableView& table, const penstock_column_op& op,
                          const penstock_task& task, RowBlock block, std::int64_t* scores) {
  if (op.scale[0] >= std::int64_t{1} << kQuantityBits) return false;
  const Real scale = real(static_cast<double>(op.scale[0]));
  const Int zero = hn::Zero(kInt);
  for (std::size_t row = 0; row < block.words * 64; row += hn::Lanes(kInt)) {
    Int total = zero;
    for (std::uint32_t s = 0; s < table.header->n_gpus; s++)
      total = total + gpu_free(table, s, block.begin + row);
    Int own = zero;  // above 0 where a task of the class is
    Int others = zero;
    for (std::uint32_t j = 0; j < op.n; j++) {
      const Int cell = load(table.column(table.free, op.column[j]) + block.begin + row);
      (j == task.klass ? own : others) = hn::Max(j == task.klass ? own : others, cell);
    }
    const RealMask alone = hn::RebindMask(kReal, hn::Not(others > zero));
    const RealMask mine = hn::RebindMask(kReal, own > zero);
    const Real used = hn::Trunc(real(25) * to_real(integer(op.scale[0]) - total) / scale);
    store_integer(used + hn::IfThenElseZero(mine, real(50)) + hn::IfThenElseZero(alone, real(25)),
                  scores + row);
  }
  return true;
}

bool score(const DecisionContext& context, const penstock_column_op& op, RowBlock block,
           std::int64_t* scores) {
  const TableView& table = context.table;
  const penstock_task& task = context.task;
  switch (op.op) {
    case PENSTOCK_SCORE_LEAST_ALLOCATED:
      return allocation_score<true>(table, op, task, block, scores);
    case PENSTOCK_SCORE_MOST_ALLOCATED:
      return allocation_score<false>(table, op, task, block, scores);
    case PENSTOCK_SCORE_BALANCED:
      return balanced_score(table, op, task, block, scores);
    case PENSTOCK_SCORE_BITS:
      return bits_score(table, op, task, block, scores);
    case PENSTOCK_SCORE_FEATURES:
      return features_score(table, op, task, block, scores);
    case PENSTOCK_SCORE_BEST_FIT:
      return machine_score<true>(table, op, task, block, scores);
    case PENSTOCK_SCORE_DOT_PRODUCT:
      return machine_score<false>(table, op, task, block, scores);
    case PENSTOCK_SCORE_GPU_PACKING:
    case PENSTOCK_SCORE_GPU_CLUSTERING:
      if (task.gpu_count == 0) {
        std::fill_n(scores, block.words * 64, 0);
        return true;
      }
      return op.op == PENSTOCK_SCORE_GPU_PACKING
                 ? gpu_packing_score(table, op, task, block, scores)
                 : gpu_clustering_score(table, op, task, block, scores);
    case PENSTOCK_SCORE_DOMAINS:
      return domains_score(context, op, block, scores);
    case PENSTOCK_SCORE_SPREAD:
      return spread_score(context, op, block, scores);
    case PENSTOCK_SCORE_RATIO:
      return ratio_score(table, context.program, op, task, block, scores);
  }
  return false;
}

bool score_pair(const TableView& table, const PairScores& pair, RowBlock block,
                std::int64_t threshold, std::uint64_t* feasible, std::int64_t* total,
                std::uint64_t* above) {
  return (pair.fits[0] && pair.fits[1]
              ? score_pair_fitting<true>
              : score_pair_fitting<false>)(table, pair, block, threshold, feasible, total, above);
}

// ---- what follows the scores ----

template <bool kLimited>
void extend_range_of(const std::int64_t* scores, std::int64_t least, const std::uint64_t* feasible,
                     std::uint32_t words, ScoreRange* range) {
  const std::size_t lanes = hn::Lanes(kInt);
  const Int highest = integer(INT64_MAX);
  const Int lowest = integer(INT64_MIN);
  const Int limit = integer(least);
  Int min = integer(range->any ? range->min : INT64_MAX);
  Int max = integer(range->any ? range->max : INT64_MIN);
  IntMask any = hn::FirstN(kInt, 0);
  IntMask ignored = any;
  for (std::uint32_t w = 0; w < words; w++) {
    if (feasible[w] == 0) continue;
    if (!kLimited) range->any = true;
    for (std::size_t i = 0; i < 64; i += lanes) {
      const Int v = load(scores + w * 64 + i);
      IntMask counts = bits_mask(feasible[w], i);
      if (kLimited) {
        ignored = hn::Or(ignored, hn::And(limit > v, counts));
        counts = hn::AndNot(limit > v, counts);
        any = hn::Or(any, counts);
      }
      min = hn::Min(min, hn::IfThenElse(counts, v, highest));
      max = hn::Max(max, hn::IfThenElse(counts, v, lowest));
    }
  }
  range->any = range->any || !hn::AllFalse(kInt, any);
  range->has_ignored = range->has_ignored || !hn::AllFalse(kInt, ignored);
  if (!range->any) return;
  range->min = hn::GetLane(hn::MinOfLanes(kInt, min));
  range->max = hn::GetLane(hn::MaxOfLanes(kInt, max));
}
void extend_range(const std::int64_t* scores, std::int64_t least, const std::uint64_t* feasible,
                  std::uint32_t words, ScoreRange* range) {
  (least == INT64_MIN ? extend_range_of<false> : extend_range_of<true>)(scores, least, feasible,
                                                                        words, range);
}

// A normalised score is offset + sign * trunc((factor * score + shift) / divisor), with all of it
// below kExact.
struct Normaliser {
  double factor = 100;
  double shift = 0;
  double divisor = 0;
  double offset = 0;
  double sign = 1;
};
// False when its arithmetic would not be exact, or it would divide by 0.
inline bool make_normaliser(std::uint32_t kind, const ScoreRange& range, Normaliser* out) {
  constexpr std::int64_t kMost = kExact / 400;
  if (range.min < -kMost || range.max > kMost) return false;
  const auto max = static_cast<double>(std::max<std::int64_t>(range.max, 0));
  const auto min = static_cast<double>(range.min);
  out->divisor = max;
  switch (kind) {
    case PENSTOCK_NORMALISE_DEFAULT:
      break;
    case PENSTOCK_NORMALISE_REVERSED:
      out->offset = 100;
      out->sign = -1;
      break;
    case PENSTOCK_NORMALISE_MIN_MAX:
    case PENSTOCK_NORMALISE_MIN_MAX_F64:
      out->shift = -100 * min;
      out->divisor = static_cast<double>(range.max) - min;
      break;
    case PENSTOCK_NORMALISE_SPREAD:
      out->factor = -100;
      out->shift = 100 * (max + min);
      break;
    default:
      return false;
  }
  return out->divisor != 0;
}

// trunc(100 * ((score - min) / spread)) as float64 rounds it. That is the quotient in integers
// except perhaps where this leaves no remainder: elsewhere the true value is at least 1 / spread
// from the next integer, which is more than the roundings are.
HWY_INLINE Real f64_quotient(Real numerator, Real quotient, Real spread) {
  const Real remainder = hn::NegMulAdd(quotient, spread, numerator);
  const RealMask doubtful = hn::And(remainder == hn::Zero(kReal), quotient != real(100));
  if (hn::AllFalse(kReal, hn::And(doubtful, numerator != hn::Zero(kReal)))) return quotient;
  return hn::Trunc(real(100) * ((numerator / real(100)) / spread));
}

// total += weight * value, |value| at most 2^20.
HWY_INLINE void add_weighted(Real value, Real weight, std::int64_t* total) {
  const Real sum = hn::MulAdd(value, weight, real(kRounder));
  const Int added = hn::BitCast(kInt, sum) - hn::BitCast(kInt, real(kRounder));
  hn::StoreU(load(total) + added, kInt, total);
}

// Where no score is below 0: then no quotient is, and what follows it is one product and one sum.
template <bool kF64>
void add_positive(const Normaliser& n, std::int32_t weight, const std::int64_t* scores,
                  std::uint32_t words, std::int64_t* total) {
  const Real factor = real(n.factor);
  const Real shift = real(n.shift + 0.5);
  const Real divisor = real(n.divisor);
  const Real reciprocal = real(1) / divisor;
  const Real by = real(n.sign * weight);
  const Int offset = integer(static_cast<std::int64_t>(n.offset) * weight);
  const Int base = hn::BitCast(kInt, real(kRounder)) - offset;
  for (std::size_t row = 0; row < words * 64; row += hn::Lanes(kInt)) {
    const Real numerator = hn::MulAdd(to_real(load(scores + row)), factor, shift);
    Real quotient = hn::Floor(numerator * reciprocal);
    if (kF64) quotient = f64_quotient(numerator - real(0.5), quotient, divisor);
    const Real sum = hn::MulAdd(quotient, by, real(kRounder));
    hn::StoreU(load(total + row) + (hn::BitCast(kInt, sum) - base), kInt, total + row);
  }
}

template <bool kSpread>
void add_signed(const Normaliser& n, std::int32_t weight, const std::int64_t* scores,
                std::uint32_t words, std::int64_t* total) {
  const Real limit = real(static_cast<double>(PENSTOCK_MAX_NORMALISED));
  const Real reciprocal = real(1) / real(n.divisor);
  for (std::size_t row = 0; row < words * 64; row += hn::Lanes(kInt)) {
    const Real score = to_real(load(scores + row));
    const Real numerator = hn::MulAdd(score, real(n.factor), real(n.shift));
    const Real half = hn::CopySignToAbs(real(0.5), numerator);
    const Real quotient = hn::Trunc((numerator + half) * reciprocal);
    Real value = hn::MulAdd(real(n.sign), quotient, real(n.offset));
    value = hn::Clamp(value, hn::Neg(limit), limit);
    if (kSpread) value = hn::IfThenElseZero(score >= hn::Zero(kReal), value);
    add_weighted(value, real(weight), total + row);
  }
}

bool add_normalised(std::uint32_t kind, const ScoreRange& range, std::int32_t weight,
                    const std::int64_t* scores, std::uint32_t words, std::int64_t* total) {
  Normaliser n;
  if (!make_normaliser(kind, range, &n)) return false;
  if (kind == PENSTOCK_NORMALISE_MIN_MAX_F64) {
    add_positive<true>(n, weight, scores, words, total);
  } else if (kind == PENSTOCK_NORMALISE_MIN_MAX || (range.min >= 0 && !range.has_ignored)) {
    add_positive<false>(n, weight, scores, words, total);
  } else if (kind == PENSTOCK_NORMALISE_SPREAD) {
    add_signed<true>(n, weight, scores, words, total);
  } else {
    add_signed<false>(n, weight, scores, words, total);
  }
  return true;
}

// a * b modulo 2^64: products of halves, because not every target multiplies 64 bits.
#if HWY_TARGET == HWY_SCALAR
HWY_INLINE Word multiply(Word a, Word b) { return hn::Set(kWord, hn::GetLane(a) * hn::GetLane(b)); }
#else
HWY_INLINE Word multiply_low(Word a, Word b) {
  const hn::RepartitionToNarrow<decltype(kWord)> halves;
  return hn::MulEven(hn::BitCast(halves, a), hn::BitCast(halves, b));
}
HWY_INLINE Word multiply(Word a, Word b) {
  const Word cross =
      multiply_low(hn::ShiftRight<32>(a), b) + multiply_low(a, hn::ShiftRight<32>(b));
  return multiply_low(a, b) + hn::ShiftLeft<32>(cross);
}
#endif

// Products below 2^31 by 2^31 in one multiplication.
HWY_INLINE Int multiply_small(Int a, Int b) {
#if HWY_TARGET == HWY_SCALAR
  // What stands where rows are not feasible may be large.
  return hn::BitCast(kInt, multiply(hn::BitCast(kWord, a), hn::BitCast(kWord, b)));
#else
  const hn::RepartitionToNarrow<decltype(kInt)> halves;
  return hn::MulEven(hn::BitCast(halves, a), hn::BitCast(halves, b));
#endif
}

template <bool kSmall>
void accumulate_scores(const std::int64_t* scores, std::int32_t weight, bool add,
                       std::uint32_t words, std::int64_t* total) {
  const Int factor = integer(weight);
  for (std::size_t row = 0; row < words * 64; row += hn::Lanes(kInt)) {
    const Int v = load(scores + row);
    const Int product =
        kSmall ? multiply_small(v, factor)
               : hn::BitCast(kInt, multiply(hn::BitCast(kWord, v), hn::BitCast(kWord, factor)));
    hn::StoreU(add ? load(total + row) + product : product, kInt, total + row);
  }
}
void accumulate(const std::int64_t* scores, std::int32_t weight, bool small, bool add,
                std::uint32_t words, std::int64_t* total) {
  (small ? accumulate_scores<true> : accumulate_scores<false>)(scores, weight, add, words, total);
}

std::uint64_t above(const std::int64_t* total, std::int64_t threshold) {
  const Int limit = integer(threshold);
  std::uint64_t rows = 0;
  for (std::size_t i = 0; i < 64; i += hn::Lanes(kInt))
    rows |= mask_bits(load(total + i) > limit) << i;
  return rows;
}

// penstock_tie_hash, for consecutive rows.
HWY_INLINE Word tie_hash(std::uint64_t base, std::uint64_t row) {
  Word z = hn::Iota(kWord, row + 1);
  z = hn::Xor(hn::Set(kWord, base), multiply(z, hn::Set(kWord, UINT64_C(0x9e3779b97f4a7c15))));
  z = multiply(hn::Xor(z, hn::ShiftRight<30>(z)), hn::Set(kWord, UINT64_C(0xbf58476d1ce4e5b9)));
  z = multiply(hn::Xor(z, hn::ShiftRight<27>(z)), hn::Set(kWord, UINT64_C(0x94d049bb133111eb)));
  return hn::Xor(z, hn::ShiftRight<31>(z));
}

std::uint64_t above_hashed(const std::int64_t* total, std::int64_t threshold, std::uint64_t seed,
                           std::uint64_t tie, std::uint32_t row, std::uint64_t min_hash) {
  const Int limit = integer(threshold);
  // Unsigned comparison by flipping the sign bit.
  const Word flip = hn::Set(kWord, std::uint64_t{1} << 63);
  const Int least = hn::BitCast(kInt, hn::Xor(hn::Set(kWord, min_hash), flip));
  const std::uint64_t base = seed ^ (tie * UINT64_C(0xd1342543de82ef95));
  std::uint64_t rows = 0;
  for (std::size_t i = 0; i < 64; i += hn::Lanes(kInt)) {
    const Int v = load(total + i);
    const Int hash = hn::BitCast(kInt, hn::Xor(tie_hash(base, row + i), flip));
    const IntMask tied = hn::AndNot(least > hash, v == limit);
    rows |= mask_bits(hn::Or(v > limit, tied)) << i;
  }
  return rows;
}

const BlockKernels* kernels() {
  static const BlockKernels kKernels = {filter,         score,      score_pair, extend_range,
                                        add_normalised, accumulate, above,      above_hashed};
  return &kKernels;
}

const DomainKernels* whole_column_kernels() {
  static const DomainKernels kKernels = {rows_with_domain, low_domains, least_count, any_positive};
  return &kKernels;
}

}  // namespace HWY_NAMESPACE
}  // namespace penstock
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace penstock {

HWY_EXPORT(kernels);
HWY_EXPORT(whole_column_kernels);
const BlockKernels& block_kernels() { return *HWY_DYNAMIC_DISPATCH(kernels)(); }
const DomainKernels& domain_kernels() { return *HWY_DYNAMIC_DISPATCH(whole_column_kernels)(); }

}  // namespace penstock
#endif
