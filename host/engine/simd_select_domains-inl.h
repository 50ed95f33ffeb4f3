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

// One term of SPREAD: what it adds to a row, which is never negative, and 0 where there is no
// domain. What a domain adds is worked out once for the domains in use, if they are few.
struct SpreadTerm {
  static constexpr std::uint32_t kKnown = 64;
  static constexpr std::uint32_t kFew = 8;

  TermColumns<HalfCell> columns;
  Real log;
  Real skew_less_1;
  bool required;
  Int unknown;     // bits of unknown slots; slot 0 is of rows without a domain, d + 1 of domain d
  Real known_few;  // the slots, if there are as many as lanes
  bool few;
  double known[kKnown];

  void set(const TableView& table, const penstock_domain_term& term, double log_of_size) {
    columns = TermColumns(kHalfCell, table, term);
    const double skew = static_cast<double>(std::int64_t{term.weight} - 1);
    log = real(log_of_size);
    skew_less_1 = real(skew);
    required = (term.kind & PENSTOCK_SPREAD_REQUIRED) != 0 && columns.domain != nullptr;
    if (columns.domain == nullptr) return;
    // Count columns have 64 cells and more.
    const std::uint32_t n = term.domains < kFew ? kFew : kKnown;
    known[0] = 0;
    for (std::uint32_t slot = 1; slot < n; slot++) {
      const std::int32_t count = std::clamp(columns.count[slot - 1], 0, PENSTOCK_MAX_DOMAIN_COUNT);
      known[slot] = count * log_of_size + skew;
    }
    unknown = integer(~std::int64_t{n - 1});
    few = n == hn::Lanes(kReal);
    if (few) known_few = hn::LoadU(kReal, known);
  }

  HWY_INLINE Real of(const DomainCounts<HalfCell>& counts) const {
    return hn::PromoteTo(kReal, counts.n) * log + skew_less_1;
  }
  // With kRequired also takes down in `ignored`, as a value above 0, where a required domain is
  // missing.
  template <bool kRequired>
  HWY_INLINE Real at(std::size_t row, Real& ignored) const {
    if (columns.domain == nullptr) return of(columns.at(row));
    const Int slot = hn::PromoteTo(kInt, hn::LoadU(kHalfCell, columns.domain + row)) + integer(1);
    if (HWY_LIKELY(hn::AllTrue(kInt, hn::And(slot, unknown) == hn::Zero(kInt)))) {
      if (kRequired && required)
        ignored = hn::IfThenElse(hn::RebindMask(kReal, slot == hn::Zero(kInt)), real(1), ignored);
#if HWY_TARGET != HWY_SCALAR
      if (few) return hn::TableLookupLanes(known_few, hn::IndicesFromVec(kReal, slot));
#endif
      return hn::GatherIndex(kReal, known, slot);
    }
    const auto counts = columns.at(row);
    const Real valid = hn::PromoteTo(kReal, hn::VecFromMask(kHalfCell, counts.valid));
    const RealMask missing = valid == hn::Zero(kReal);
    if (kRequired && required) ignored = hn::IfThenElse(missing, real(1), ignored);
    return hn::IfThenZeroElse(missing, of(counts));
  }
};

template <bool kRequired>
void spread_score_of(const SpreadTerm* terms, std::uint32_t n, RowBlock block,
                     std::int64_t* scores) {
  for (std::size_t row = 0; row < block.words * 64; row += hn::Lanes(kReal)) {
    Real ignored = hn::Zero(kReal);
    // 0 and a term that is not negative are that term.
    Real s = terms[0].at<kRequired>(block.begin + row, ignored);
    for (std::uint32_t t = 1; t < n; t++)
      s = s + terms[t].at<kRequired>(block.begin + row, ignored);
    s = s + real(kBelowHalf);
    if (kRequired) {
      const RealMask left_out = ignored > hn::Zero(kReal);
      store_integer(hn::IfThenElse(left_out, real(-1), hn::Floor(s)), scores + row);
    } else {
      store_floor(s, scores + row);
    }
  }
}

inline bool spread_score(const DecisionContext& context, const penstock_column_op& op,
                         RowBlock block, std::int64_t* scores) {
  SpreadTerm terms[PENSTOCK_MAX_DOMAIN_TERMS];
  std::uint32_t n = 0;
  bool any_required = false;
  for (std::uint32_t t = 0; t < context.task.n_domain_terms; t++) {
    const penstock_domain_term& term = context.task.domain_terms[t];
    if (term.group != op.group) continue;
    terms[n].set(context.table, term, context.terms[t].log);
    any_required = any_required || terms[n].required;
    n++;
  }
  if (n == 0) {
    std::fill_n(scores, block.words * 64, 0);
  } else if (any_required) {
    spread_score_of<true>(terms, n, block, scores);
  } else {
    spread_score_of<false>(terms, n, block, scores);
  }
  return true;
}

// Of 64 rows from `row` on, which have a domain below `end` in the column.
inline std::uint64_t rows_with_domain(const TableView& table, std::uint32_t column,
                                      std::uint32_t row, std::uint32_t end) {
  const std::int32_t* domain = table.domain_column(column) + row;
  const Cell none = hn::Set(kCell, -1);
  const Cell limit = hn::Set(kCell, static_cast<std::int32_t>(end));
  std::uint64_t rows = 0;
  for (std::size_t i = 0; i < 64; i += hn::Lanes(kCell)) {
    const Cell cell = hn::LoadU(kCell, domain + i);
    rows |= cell_mask_bits(hn::And(cell > none, limit > cell)) << i;
  }
  return rows;
}

HWY_INLINE CellMask cell_bits_mask(std::uint64_t word, std::size_t from) {
  const std::uint64_t bits = word >> from;
  return hn::LoadMaskBits(kCell, reinterpret_cast<const std::uint8_t*>(&bits));
}

// The domains below 64 of those of 64 rows from `row` on that are set in `rows`, as bits in *seen.
// False, and nothing is known, if one of them has a higher domain.
inline bool low_domains(const TableView& table, std::uint32_t column, std::uint32_t row,
                        std::uint64_t rows, std::uint64_t* seen) {
  const std::int32_t* domain = table.domain_column(column) + row;
  const hn::RebindToUnsigned<hn::ScalableTag<std::int32_t>> bits_tag;
  const Cell low_half = hn::Set(kCell, 31);
  const auto one = hn::Set(bits_tag, 1);
  Cell low = hn::Zero(kCell);
  Cell high = low;
  Cell all = low;
  for (std::size_t i = 0; i < 64; i += hn::Lanes(kCell)) {
    const CellMask in = cell_bits_mask(rows, i);
    const Cell cell = hn::IfThenElseZero(in, hn::LoadU(kCell, domain + i));
    all = hn::Or(all, cell);
    // Shifts by 32 and more are not defined.
    const auto amount = hn::BitCast(bits_tag, hn::And(cell, low_half));
    const Cell bit = hn::IfThenElseZero(in, hn::BitCast(kCell, hn::Shl(one, amount)));
    const CellMask upper = cell > low_half;
    low = hn::Or(low, hn::IfThenZeroElse(upper, bit));
    high = hn::Or(high, hn::IfThenElseZero(upper, bit));
  }
  if (!hn::AllTrue(kCell, hn::ShiftRight<6>(all) == hn::Zero(kCell))) return false;
  std::int32_t lows[hn::MaxLanes(kCell)];
  std::int32_t highs[hn::MaxLanes(kCell)];
  hn::StoreU(low, kCell, lows);
  hn::StoreU(high, kCell, highs);
  std::uint64_t found = 0;
  for (std::size_t i = 0; i < hn::Lanes(kCell); i++)
    found |= std::uint64_t{static_cast<std::uint32_t>(highs[i])} << 32 |
             static_cast<std::uint32_t>(lows[i]);
  *seen |= found;
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
