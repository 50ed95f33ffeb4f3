// Block kernels of the scores that look at allocatable, requested and scored.
#if defined(PENSTOCK_ENGINE_SIMD_SELECT_RESOURCES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PENSTOCK_ENGINE_SIMD_SELECT_RESOURCES_INL_H_
#undef PENSTOCK_ENGINE_SIMD_SELECT_RESOURCES_INL_H_
#else
#define PENSTOCK_ENGINE_SIMD_SELECT_RESOURCES_INL_H_
#endif

#include "penstock/engine/simd_select_vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace penstock {
namespace HWY_NAMESPACE {
// The listed resources that do not leave the sums, whatever the row.
struct Resources {
  const std::int64_t* allocatable[PENSTOCK_MAX_RESOURCES];
  const std::int64_t* used[PENSTOCK_MAX_RESOURCES];
  Int request[PENSTOCK_MAX_RESOURCES];
  Real weight[PENSTOCK_MAX_RESOURCES];
  std::uint32_t n;
};
inline void collect(const TableView& table, const penstock_column_op& op, const penstock_task& task,
                    std::int64_t* used, const std::int64_t* request, RowBlock block,
                    Resources* list) {
  list->n = 0;
  for (std::uint32_t i = 0; i < op.n; i++) {
    const std::uint32_t r = op.column[i];
    if (((op.skip_unasked >> i) & 1) != 0 && task.request[r] == 0) continue;
    list->allocatable[list->n] = table.column(table.allocatable, r) + block.begin;
    list->used[list->n] = table.column(used, r) + block.begin;
    list->request[list->n] = integer(request[r]);
    list->weight[list->n++] = real(op.list_weight[i]);
  }
}

const hn::Rebind<float, decltype(kReal)> kHalf;

// 1 / v for 0 < v < 2^kQuantityBits, off by less than 2^-11 of it.
HWY_INLINE Real rough_reciprocal(Real v) {
#if HWY_TARGET == HWY_AVX3
  return Real{_mm512_rcp14_pd(v.raw)};
#else
  return hn::PromoteTo(kReal, hn::ApproximateReciprocal(hn::DemoteTo(kHalf, v)));
#endif
}

// floor(100 * part / whole) of integers 0 <= part <= whole < 2^kQuantityBits, whole > 0. With the
// rough reciprocal, brought down by as much as it may be off, one gets a value that is below the
// quotient by less than 0.1, so that its floor is the result or 1 less, which the remainder tells:
// it is exact, fused or not.
HWY_INLINE Real percent(Real part, Real whole) {
  const Real low = part * real(100 * (1 - 1.0 / 2048)) * rough_reciprocal(whole);
  const Real guess = hn::Floor(low);
  const Real remainder = hn::NegMulAdd(guess, whole, part * real(100));
  return guess + hn::IfThenElseZero(remainder >= whole, real(1));
}

// What is counted of one resource in LEAST_ALLOCATED or MOST_ALLOCATED.
template <bool kLeast>
HWY_INLINE Real counted_quantity(Int allocatable, Int scored, Int request, Real limit) {
  return kLeast ? hn::Max(to_real(allocatable - scored - request), hn::Zero(kReal))
                : hn::Min(to_real(scored + request), limit);
}

// One vector of rows some of which have no such resource.
template <bool kLeast>
HWY_NOINLINE void allocation_score_of_some(const Resources& list, std::size_t row,
                                           std::int64_t* scores) {
  const Real zero = hn::Zero(kReal);
  Real sum = zero;
  Real weights = zero;
  for (std::uint32_t k = 0; k < list.n; k++) {
    const Int allocatable = load(list.allocatable[k] + row);
    const Real limit = to_real(allocatable);
    const RealMask counts = limit > zero;
    const Real counted =
        counted_quantity<kLeast>(allocatable, load(list.used[k] + row), list.request[k], limit);
    // Where allocatable is 0 this is no number, and does not count.
    const Real share = percent(counted, limit) * list.weight[k];
    sum = sum + hn::IfThenElseZero(counts, share);
    weights = weights + hn::IfThenElseZero(counts, list.weight[k]);
  }
  const Real score = hn::Floor(sum / hn::Max(weights, real(1)));
  store_integer(score, scores + row);
}

// kN resources, or list.n if that is 0: the loop over a known number is unrolled.
template <bool kLeast, std::uint32_t kN>
bool allocation_score_of(const Resources& list, RowBlock block, std::int64_t* scores) {
  const std::uint32_t n = kN == 0 ? list.n : kN;
  Word cells = hn::Zero(kWord);
  Real weights = hn::Zero(kReal);
  for (std::uint32_t k = 0; k < n; k++) weights = weights + list.weight[k];
  const Real reciprocal = real(1) / weights;
  for (std::size_t row = 0; row < block.words * 64; row += hn::Lanes(kInt)) {
    Real sum = real(0.5);  // for the division by the weights
    Int smallest = integer(1);
    for (std::uint32_t k = 0; k < n; k++) {
      const Int allocatable = load(list.allocatable[k] + row);
      const Int scored = load(list.used[k] + row);
      gather(allocatable, scored, cells);
      smallest = hn::Min(smallest, allocatable);
      const Real limit = to_real(allocatable);
      const Real counted = counted_quantity<kLeast>(allocatable, scored, list.request[k], limit);
      sum = hn::MulAdd(percent(counted, limit), list.weight[k], sum);
    }
    // Nearly always all of them are there.
    if (HWY_LIKELY(hn::AllTrue(kInt, smallest == integer(1)))) {
      store_floor(sum * reciprocal, scores + row);
    } else {
      allocation_score_of_some<kLeast>(list, row, scores);
    }
  }
  return all_below(cells);
}

template <bool kLeast>
bool allocation_score(const TableView& table, const penstock_column_op& op,
                      const penstock_task& task, RowBlock block, std::int64_t* scores) {
  Resources list;
  collect(table, op, task, table.scored, task.scored_request, block, &list);
  if (list.n == 2) return allocation_score_of<kLeast, 2>(list, block, scores);
  if (list.n > 0) return allocation_score_of<kLeast, 0>(list, block, scores);
  std::fill_n(scores, block.words * 64, 0);
  return true;
}

// One vector of rows, by the definition's own operations.
HWY_NOINLINE inline void balanced_score_of_some(const Resources& list, std::size_t row,
                                                std::int64_t* scores) {
  const Real zero = hn::Zero(kReal);
  const Real one = real(1);
  Real fractions[PENSTOCK_MAX_RESOURCES];
  RealMask counts[PENSTOCK_MAX_RESOURCES];
  Real n = zero;
  Real total = zero;
  Real difference = zero;  // of the first two that count
  for (std::uint32_t k = 0; k < list.n; k++) {
    const Int allocatable = load(list.allocatable[k] + row);
    counts[k] = hn::RebindMask(kReal, allocatable > hn::Zero(kInt));
    const Real limit = hn::IfThenElse(counts[k], to_real(allocatable), one);
    const Int used = load(list.used[k] + row) + list.request[k];
    fractions[k] = hn::Min(one, to_real(used) / limit);
    total = total + hn::IfThenElseZero(counts[k], fractions[k]);
    const Real next = hn::IfThenElse(n == zero, fractions[k], difference - fractions[k]);
    difference = hn::IfThenElse(counts[k], next, difference);
    n = n + hn::IfThenElseZero(counts[k], one);
  }
  Real deviation = hn::IfThenElseZero(n == real(2), hn::Abs(difference) / real(2));
  if (list.n > 2) {
    const Real population = hn::Max(n, one);
    const Real mean = total / population;
    Real squares = zero;
    for (std::uint32_t k = 0; k < list.n; k++) {
      const Real off = fractions[k] - mean;
      squares = squares + hn::IfThenElseZero(counts[k], off * off);
    }
    deviation = hn::IfThenElse(n > real(2), hn::Sqrt(squares / population), deviation);
  }
  store(truncate((one - deviation) * real(100)), scores + row);
}

// Two resources, as nearly always. Without a division, from reciprocals that are off by less than
// 2^-21: the score before it is truncated is then off by less than kDoubt, and where no whole
// number is that near, truncating gives what the definition gives.
inline bool balanced_score_of_two(const Resources& list, RowBlock block, std::int64_t* scores) {
  constexpr double kDoubt = 1.0 / 8192;
  Word cells = hn::Zero(kWord);
  const Real one = real(1);
  for (std::size_t row = 0; row < block.words * 64; row += hn::Lanes(kInt)) {
    Real fractions[2];
    Int smallest = integer(1);
    for (std::uint32_t k = 0; k < 2; k++) {
      const Int allocatable = load(list.allocatable[k] + row);
      const Int requested = load(list.used[k] + row);
      gather(allocatable, requested, cells);
      smallest = hn::Min(smallest, allocatable);
      const Real limit = to_real(allocatable);
      const Real rough = rough_reciprocal(limit);
      const Real reciprocal = rough * hn::NegMulAdd(limit, rough, real(2));
      fractions[k] = hn::Min(one, to_real(requested + list.request[k]) * reciprocal);
    }
    const Real score = hn::NegMulAdd(hn::Abs(fractions[0] - fractions[1]), real(50), real(100));
    const Real whole = hn::Floor(score);
    const Real rest = score - whole;
    const RealMask sure = hn::And(rest > real(kDoubt), rest < real(1 - kDoubt));
    if (HWY_LIKELY(hn::AllTrue(kInt, smallest == integer(1)) && hn::AllTrue(kReal, sure))) {
      store_integer(whole, scores + row);
    } else {
      balanced_score_of_some(list, row, scores);
    }
  }
  return all_below(cells);
}

inline bool balanced_score(const TableView& table, const penstock_column_op& op,
                           const penstock_task& task, RowBlock block, std::int64_t* scores) {
  bool asks = false;
  for (std::uint32_t i = 0; i < op.n; i++) asks = asks || task.request[op.column[i]] > 0;
  if (!asks) {
    std::fill_n(scores, block.words * 64, 0);
    return true;
  }
  Resources list;
  collect(table, op, task, table.requested, task.request, block, &list);
  if (list.n == 2) return balanced_score_of_two(list, block, scores);
  Word cells = hn::Zero(kWord);
  for (std::size_t row = 0; row < block.words * 64; row += hn::Lanes(kInt)) {
    for (std::uint32_t k = 0; k < list.n; k++) {
      gather(load(list.allocatable[k] + row), load(list.used[k] + row), cells);
    }
    balanced_score_of_some(list, row, scores);
  }
  return all_below(cells);
}

// RATIO: the shape is a table of float64, so that a row's point in it is gathered.
inline bool ratio_score(const TableView& table, const penstock_program& program,
                        const penstock_column_op& op, const penstock_task& task, RowBlock block,
                        std::int64_t* scores) {
  Resources list;
  collect(table, op, task, table.scored, task.scored_request, block, &list);
  double shape[PENSTOCK_SHAPE_POINTS];
  std::copy_n(program.shape, PENSTOCK_SHAPE_POINTS, shape);
  Word cells = hn::Zero(kWord);
  const Real zero = hn::Zero(kReal);
  for (std::size_t row = 0; row < block.words * 64; row += hn::Lanes(kInt)) {
    Real sum = zero;
    Real weights = zero;
    for (std::uint32_t k = 0; k < list.n; k++) {
      const Int allocatable = load(list.allocatable[k] + row);
      const Int scored = load(list.used[k] + row);
      gather(allocatable, scored, cells);
      const Real limit = to_real(allocatable);
      const RealMask counts = limit > zero;
      const Real utilisation = hn::IfThenElseZero(
          counts, percent(hn::Min(to_real(scored + list.request[k]), limit), limit));
      // Cells out of their bounds give anything, and nothing of it is used.
      const Real point = hn::Clamp(utilisation, zero, real(100));
      const Int at = hn::And(hn::ConvertTo(kInt, point), integer(127));
      const Real share = hn::GatherIndex(kReal, shape, hn::Min(at, integer(100)));
      const RealMask adds = hn::And(counts, share > zero);
      sum = sum + hn::IfThenElseZero(adds, share * list.weight[k]);
      weights = weights + hn::IfThenElseZero(adds, list.weight[k]);
    }
    const RealMask any = weights > zero;
    const Real mean = hn::IfThenElseZero(any, sum / hn::IfThenElse(any, weights, real(1)));
    store_floor(mean + real(kBelowHalf), scores + row);
  }
  return all_below(cells);
}

// BEST_FIT and DOT_PRODUCT.
template <bool kBestFit>
bool machine_score(const TableView& table, const penstock_column_op& op, const penstock_task& task,
                   RowBlock block, std::int64_t* scores) {
  Word cells = hn::Zero(kWord);
  for (std::size_t row = 0; row < block.words * 64; row += hn::Lanes(kInt)) {
    Real s = hn::Zero(kReal);
    for (std::uint32_t k = 0; k < op.n; k++) {
      const std::uint32_t r = op.column[k];
      const Int allocatable = load(table.column(table.allocatable, r) + block.begin + row);
      const Int requested = load(table.column(table.requested, r) + block.begin + row);
      gather(allocatable, requested, cells);
      const Int left = allocatable - requested;
      const double scale = static_cast<double>(op.scale[k]);
      if (kBestFit) {
        s = s + real(0.5) * to_real(left - integer(task.request[r])) / real(scale);
      } else {
        s = s + to_real(left) / real(scale) * real(static_cast<double>(task.request[r]) / scale);
      }
    }
    if (!kBestFit) s = s / real(op.n);
    store(truncate(real(100) * (real(1) - s)), scores + row);
  }
  return all_below(cells);
}

}  // namespace HWY_NAMESPACE
}  // namespace penstock
HWY_AFTER_NAMESPACE();
#endif
