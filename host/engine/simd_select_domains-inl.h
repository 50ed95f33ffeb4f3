// Block kernels of the operations on domains. Cells are int32; the columns of counts by domain are
// small and are gathered from, those by row are read along with the rows.
#if defined(PENSTOCK_ENGINE_SIMD_SELECT_DOMAINS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PENSTOCK_ENGINE_SIMD_SELECT_DOMAINS_INL_H_
#undef PENSTOCK_ENGINE_SIMD_SELECT_DOMAINS_INL_H_
#else
#define PENSTOCK_ENGINE_SIMD_SELECT_DOMAINS_INL_H_
#endif

#include <algorithm>
#include <cstring>

#include "penstock/engine/simd_select_vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace penstock {
namespace HWY_NAMESPACE {

const hn::ScalableTag<std::int32_t> kCell;
using Cell = hn::Vec<decltype(kCell)>;
using CellMask = hn::Mask<decltype(kCell)>;
// As many cells as there are lanes of float64.
using HalfCell = hn::Rebind<std::int32_t, hn::ScalableTag<double>>;
const HalfCell kHalfCell;

// What a term reads of the rows from `row` on: which have a domain, and the count there, brought
// into its bounds (anything where there is no domain).
template <class D>
struct DomainCounts {
  hn::Mask<D> valid;
  hn::Vec<D> n;
};
template <class D>
struct TermColumns {
  D d;
  const std::int32_t* domain;  // null: every row is one
  const std::int32_t* count;
  hn::Vec<D> capacity;

  TermColumns() = default;
  TermColumns(D tag, const TableView& table, const penstock_domain_term& term)
      : d(tag),
        domain(term.domain == PENSTOCK_ROW_DOMAIN ? nullptr : table.domain_column(term.domain)),
        count(table.count_column(term.count)),
        capacity(hn::Set(tag, static_cast<std::int32_t>(table.header->capacity))) {}

  HWY_INLINE DomainCounts<D> at(std::size_t row) const {
    const auto zero = hn::Zero(d);
    const auto most = hn::Set(d, PENSTOCK_MAX_DOMAIN_COUNT);
    if (domain == nullptr) {
      return {hn::FirstN(d, hn::Lanes(d)), hn::Min(hn::Max(hn::LoadU(d, count + row), zero), most)};
    }
    const auto cell = hn::LoadU(d, domain + row);
    const auto valid = hn::And(cell > hn::Set(d, -1), capacity > cell);
    const auto n = hn::GatherIndex(d, count, hn::IfThenElseZero(valid, cell));
    return {valid, hn::Min(hn::Max(n, zero), most)};
  }
};

HWY_INLINE std::uint64_t cell_mask_bits(CellMask mask) {
  std::uint8_t bytes[8] = {};
  hn::StoreMaskBits(kCell, mask, bytes);
  std::uint64_t bits = 0;
  std::memcpy(&bits, bytes, sizeof bits);
  return bits;
}

// Every kind of term asks whether the count is in a range.
struct CountRange {
  std::int32_t low;
  std::int32_t high;
  bool absent;  // rows without a domain pass
};
inline CountRange count_range(const penstock_domain_term& term,
                              const DecisionContext::Term& known) {
  switch (term.kind) {
    case PENSTOCK_DOMAIN_ABSENT:
      return {0, 0, true};
    case PENSTOCK_DOMAIN_PRESENT:
      return {known.may_be_first ? 0 : 1, INT32_MAX, false};
    default:
      break;
  }
  const std::int64_t high = std::int64_t{term.weight} + known.least - term.self;
  return {0, static_cast<std::int32_t>(std::clamp<std::int64_t>(high, -1, INT32_MAX)), false};
}

inline void filter_domains(const DecisionContext& context, const penstock_column_op& op,
                           RowBlock block, std::uint64_t* feasible) {
  const penstock_task& task = context.task;
  for (std::uint32_t t = 0; t < task.n_domain_terms; t++) {
    const penstock_domain_term& term = task.domain_terms[t];
    if (term.group != op.group) continue;
    const TermColumns columns(kCell, context.table, term);
    const CountRange range = count_range(term, context.terms[t]);
    const Cell low_less_1 = hn::Set(kCell, range.low - 1);
    const Cell high = hn::Set(kCell, range.high);
    for (std::uint32_t w = 0; w < block.words; w++) {
      if (feasible[w] == 0) continue;
      std::uint64_t passes = 0;
      for (std::size_t i = 0; i < 64; i += hn::Lanes(kCell)) {
        const auto counts = columns.at(block.begin + w * 64 + i);
        CellMask pass = hn::And(counts.valid, counts.n > low_less_1);
        pass = hn::AndNot(counts.n > high, pass);
        if (range.absent) pass = hn::Or(pass, hn::Not(counts.valid));
        passes |= cell_mask_bits(pass) << i;
      }
      feasible[w] &= passes;
    }
  }
}

// Sums within 2^44, so that float64 is exact.
inline bool domains_score(const DecisionContext& context, const penstock_column_op& op,
                          RowBlock block, std::int64_t* scores) {
  const penstock_task& task = context.task;
  bool first = true;
  for (std::uint32_t t = 0; t < task.n_domain_terms; t++) {
    const penstock_domain_term& term = task.domain_terms[t];
    if (term.group != op.group) continue;
    const TermColumns columns(kHalfCell, context.table, term);
    const Real weight = real(term.weight);
    for (std::size_t row = 0; row < block.words * 64; row += hn::Lanes(kReal)) {
      const auto counts = columns.at(block.begin + row);
      const Real share = hn::PromoteTo(kReal, hn::IfThenElseZero(counts.valid, counts.n)) * weight;
      const Real sum = first ? share : share + to_real(load(scores + row));
      store_integer(sum, scores + row);
    }
    first = false;
  }
  if (first) std::fill_n(scores, block.words * 64, 0);
  return true;
}

inline bool spread_score(const DecisionContext& context, const penstock_column_op& op,
                         RowBlock block, std::int64_t* scores) {
  struct Term {
    TermColumns<HalfCell> columns;
    Real log;
    Real skew_less_1;
    bool required;
  };
  Term terms[PENSTOCK_MAX_DOMAIN_TERMS];
  std::uint32_t n = 0;
  for (std::uint32_t t = 0; t < context.task.n_domain_terms; t++) {
    const penstock_domain_term& term = context.task.domain_terms[t];
    if (term.group != op.group) continue;
    terms[n++] = {TermColumns(kHalfCell, context.table, term), real(context.terms[t].log),
                  real(static_cast<double>(std::int64_t{term.weight} - 1)),
                  (term.kind & PENSTOCK_SPREAD_REQUIRED) != 0};
  }
  for (std::size_t row = 0; row < block.words * 64; row += hn::Lanes(kReal)) {
    Real s = hn::Zero(kReal);
    Real ignored = hn::Zero(kReal);  // above 0 where a required domain is missing
    for (std::uint32_t t = 0; t < n; t++) {
      const Term& term = terms[t];
      const auto counts = term.columns.at(block.begin + row);
      const Real next = s + (hn::PromoteTo(kReal, counts.n) * term.log + term.skew_less_1);
      if (term.columns.domain == nullptr) {
        s = next;
        continue;
      }
      const RealMask valid =
          hn::PromoteTo(kReal, hn::VecFromMask(kHalfCell, counts.valid)) != hn::Zero(kReal);
      s = hn::IfThenElse(valid, next, s);
      if (term.required) ignored = hn::IfThenElse(valid, ignored, real(1));
    }
    const Real score = hn::IfThenElse(ignored > hn::Zero(kReal), real(-1), round_positive(s));
    store_integer(score, scores + row);
  }
  return true;
}

// Of 64 rows from `row` on, which have a domain in the column.
inline std::uint64_t rows_with_domain(const TableView& table, std::uint32_t column,
                                      std::uint32_t row) {
  const std::int32_t* domain = table.domain_column(column) + row;
  const Cell none = hn::Set(kCell, -1);
  const Cell capacity = hn::Set(kCell, static_cast<std::int32_t>(table.header->capacity));
  std::uint64_t rows = 0;
  for (std::size_t i = 0; i < 64; i += hn::Lanes(kCell)) {
    const Cell cell = hn::LoadU(kCell, domain + i);
    rows |= cell_mask_bits(hn::And(cell > none, capacity > cell)) << i;
  }
  return rows;
}

// The domains below 64 of those of 64 rows from `row` on that are set in `rows`, as bits in *seen.
// False, and nothing is known, if one of them has a higher domain.
inline bool low_domains(const TableView& table, std::uint32_t column, std::uint32_t row,
                        std::uint64_t rows, std::uint64_t* seen) {
  const std::int32_t* domain = table.domain_column(column) + row;
  Word all = hn::Zero(kWord);
  Int high = hn::Zero(kInt);
  for (std::size_t i = 0; i < 64; i += hn::Lanes(kInt)) {
    const IntMask counts = bits_mask(rows, i);
    const Int cell = hn::PromoteTo(kInt, hn::LoadU(kHalfCell, domain + i));
    high = hn::Or(high, hn::IfThenElseZero(counts, cell));
    // Shifts by 64 and more are not defined; a cell that is one makes `high` large.
    const Int amount = hn::And(cell, integer(63));
    const Word bit = hn::Shl(hn::Set(kWord, 1), hn::BitCast(kWord, amount));
    all = hn::Or(all, hn::BitCast(kWord, hn::IfThenElseZero(counts, hn::BitCast(kInt, bit))));
  }
  if (!hn::AllTrue(kInt, hn::ShiftRight<6>(high) == hn::Zero(kInt))) return false;
  std::uint64_t lanes[hn::MaxLanes(kWord)];
  hn::StoreU(all, kWord, lanes);
  for (std::size_t i = 0; i < hn::Lanes(kWord); i++) *seen |= lanes[i];
  return true;
}

// The least of the counts [0, n) whose entry in `nodes` is above 0, INT32_MAX if there is none, and
// how many such entries there are.
inline void least_count(const std::int32_t* counts, const std::int32_t* nodes, std::uint32_t n,
                        std::int32_t* least, std::uint32_t* with_nodes) {
  const std::size_t lanes = hn::Lanes(kCell);
  const Cell zero = hn::Zero(kCell);
  const Cell most = hn::Set(kCell, PENSTOCK_MAX_DOMAIN_COUNT);
  Cell low = hn::Set(kCell, INT32_MAX);
  Cell members = zero;
  for (std::size_t i = 0; i < n; i += lanes) {
    // Columns are multiples of 64 long: what lies past n can be read, and does not count.
    const CellMask in =
        hn::And(hn::FirstN(kCell, std::min(lanes, n - i)), hn::LoadU(kCell, nodes + i) > zero);
    const Cell cell = hn::Min(hn::Max(hn::LoadU(kCell, counts + i), zero), most);
    low = hn::IfThenElse(in, hn::Min(low, cell), low);
    members = members - hn::VecFromMask(kCell, in);
  }
  std::int32_t lows[hn::MaxLanes(kCell)];
  std::int32_t numbers[hn::MaxLanes(kCell)];
  hn::StoreU(low, kCell, lows);
  hn::StoreU(members, kCell, numbers);
  *least = *std::min_element(lows, lows + lanes);
  *with_nodes = 0;
  for (std::size_t i = 0; i < lanes; i++) *with_nodes += static_cast<std::uint32_t>(numbers[i]);
}

inline bool any_positive(const std::int32_t* counts, std::uint32_t n) {
  const std::size_t lanes = hn::Lanes(kCell);
  for (std::size_t i = 0; i < n; i += lanes) {
    const CellMask in = hn::FirstN(kCell, std::min(lanes, n - i));
    if (!hn::AllFalse(kCell, hn::And(in, hn::LoadU(kCell, counts + i) > hn::Zero(kCell))))
      return true;
  }
  return false;
}

}  // namespace HWY_NAMESPACE
}  // namespace penstock
HWY_AFTER_NAMESPACE();
#endif
