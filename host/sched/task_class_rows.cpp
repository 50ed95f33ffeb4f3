// What a class says of one row by itself. The arithmetic is scalar_select's; tests compare the two.
#include <algorithm>
#include <array>
#include <cmath>

#include "penstock/sched/task_class.h"

namespace penstock {
namespace {

// As every computation reads a cell: what a damaged pool holds is brought back into its bounds.
std::int64_t quantity(std::int64_t cell) {
  return std::clamp<std::int64_t>(cell, 0, PENSTOCK_MAX_QUANTITY);
}

// part * 100 / whole toward zero, for 0 <= part <= whole and whole > 0. The quotient of two int64
// in float64 has the right integer part when their sum is below 2^53: it could only be rounded up
// to an integer k from k - 1/whole, and that is further from k than float64's step there.
std::int64_t percent(std::int64_t part, std::int64_t whole) {
  if (whole < std::int64_t{1} << 45) {
    return static_cast<std::int64_t>(static_cast<double>(part * 100) / static_cast<double>(whole));
  }
  return part * 100 / whole;
}

}  // namespace

bool TaskClass::bits_hold(std::uint32_t row) const {
  if (row >= table_.header->rows) return false;
  std::uint64_t word = ~std::uint64_t{0};
  for (const BitTest& test : bit_tests_) word &= test.words[row / 64] ^ test.flip;
  return (word >> row % 64 & 1) != 0;
}

bool TaskClass::cells_hold(std::uint32_t row) const {
  for (const FitTest& test : fit_tests_) {
    const std::int64_t left = quantity(test.allocatable[row]) - quantity(test.requested[row]);
    if (test.request > left) return false;
  }
  for (const penstock_column_op* op : row_filters_)
    if (!scalar_filter(context_, *op, row)) return false;
  for (const DomainTest& test : domain_tests_) {
    const std::int32_t domain = table_.domain_of(test.domain, row);
    switch (test.ask) {
      case Ask::absent:
        if (domain >= 0 && count_at(test.count, domain) != 0) return false;
        break;
      case Ask::present:
        if (domain < 0 || count_at(test.count, domain) == 0) return false;
        break;
      case Ask::has_domain:
        if (domain < 0) return false;
        break;
    }
  }
  return true;
}

std::int64_t TaskClass::count_at(std::uint16_t column, std::int32_t domain) const {
  return std::clamp<std::int64_t>(table_.count_column(column)[domain], 0,
                                  PENSTOCK_MAX_DOMAIN_COUNT);
}

std::int64_t TaskClass::share_score(const ShareScore& score, std::uint32_t row) const {
  std::uint32_t sum = 0;
  std::uint32_t weights = 0;
  for (std::uint32_t i = score.begin; i < score.end; i++) {
    const Share& share = shares_[i];
    const std::int64_t allocatable = quantity(share.allocatable[row]);
    if (allocatable == 0) continue;
    const std::int64_t used = quantity(share.used[row]) + share.request;
    const std::int64_t counted = score.op == PENSTOCK_SCORE_LEAST_ALLOCATED
                                     ? std::max<std::int64_t>(allocatable - used, 0)
                                     : std::min(used, allocatable);
    sum += static_cast<std::uint32_t>(percent(counted, allocatable)) * share.weight;
    weights += share.weight;
  }
  return weights == 0 ? 0 : sum / weights;
}

std::int64_t TaskClass::balanced_score(const ShareScore& score, std::uint32_t row) const {
  std::array<double, PENSTOCK_MAX_RESOURCES> fractions;
  std::uint32_t n = 0;
  double total = 0;
  for (std::uint32_t i = score.begin; i < score.end; i++) {
    const Share& share = shares_[i];
    const std::int64_t allocatable = quantity(share.allocatable[row]);
    if (allocatable == 0) continue;
    const std::int64_t used = quantity(share.used[row]) + share.request;
    fractions[n] = std::min(1.0, static_cast<double>(used) / static_cast<double>(allocatable));
    total += fractions[n++];
  }
  double deviation = 0;
  if (n == 2) {
    deviation = std::fabs(fractions[0] - fractions[1]) / 2;
  } else if (n > 2) {
    const double mean = total / n;
    double squares = 0;
    for (std::uint32_t i = 0; i < n; i++) squares += (fractions[i] - mean) * (fractions[i] - mean);
    deviation = std::sqrt(squares / n);
  }
  return static_cast<std::int64_t>((1 - deviation) * 100);
}

std::int64_t TaskClass::base(std::uint32_t row) const {
  std::int64_t sum = 0;
  for (const ShareScore& score : share_scores_) {
    sum += score.weight * (score.op == PENSTOCK_SCORE_BALANCED ? balanced_score(score, row)
                                                               : share_score(score, row));
  }
  for (const penstock_column_op* op : row_scores_)
    sum += op->weight * scalar_score(context_, *op, row);
  for (const DomainShare& share : domain_shares_) {
    const std::int32_t domain = table_.domain_of(share.domain, row);
    if (domain >= 0) sum += share.weight * count_at(share.count, domain);
  }
  return sum;
}

std::int64_t TaskClass::part_value(const Part& part, std::uint32_t row) const {
  switch (part.kind) {
    case PartKind::domain:
      return table_.domain_of(part.domain, row);
    case PartKind::bits:
    case PartKind::raw:
      return scalar_score(context_, *part.op, row);
    case PartKind::count:
    case PartKind::present: {
      const std::int32_t domain = table_.domain_of(part.domain, row);
      if (domain < 0) return -1;
      const std::int64_t count = count_at(part.count, domain);
      return part.kind == PartKind::present ? std::min<std::int64_t>(count, 1) : count;
    }
    case PartKind::sum:
      break;
  }
  std::int64_t sum = 0;
  for (std::uint32_t i = 0; i < task_.n_domain_terms; i++) {
    const penstock_domain_term& term = task_.domain_terms[i];
    if (term.group != part.op->group || is_narrow(term.domain)) continue;
    const std::int32_t domain = table_.domain_of(term.domain, row);
    if (domain >= 0) sum += term.weight * count_at(term.count, domain);
  }
  return sum;
}

}  // namespace penstock
