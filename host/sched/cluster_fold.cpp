// More terms about other pods than a task's record holds: the host works them out row by row, in
// columns that are right for one decision. Slower, and the same answer.
#include <algorithm>
#include <array>

#include "penstock/sched/cluster_state.h"

namespace penstock {
namespace {

// A sum is cut into cells of this many values, each with its weight.
constexpr std::int64_t kCell = std::int64_t{1} << 19;
constexpr const char* kOnce = "for one decision: ";

using Terms = std::vector<penstock_domain_term>;

bool is_of(const penstock_domain_term& term, TermGroup group) {
  return term.group == static_cast<std::uint8_t>(group);
}

// What the terms say of a row; cells are those that commits and updates keep in their bounds.
class Rows {
 public:
  explicit Rows(const TableView& cells) : cells_(cells) {}

  std::int64_t count(const penstock_domain_term& term, std::uint32_t row) const {
    const std::int32_t domain = cells_.domain_of(term.domain, row);
    return domain < 0 ? 0 : cells_.count_column(term.count)[domain];
  }
  bool has_domain(const penstock_domain_term& term, std::uint32_t row) const {
    return cells_.domain_of(term.domain, row) >= 0;
  }
  bool all_zero(const penstock_domain_term& term) const {
    const std::int32_t* counts = cells_.count_column(term.count);
    return std::all_of(counts, counts + term.domains, [](std::int32_t n) { return n == 0; });
  }
  std::int64_t least(const penstock_domain_term& term) const {
    std::int64_t least = INT32_MAX;
    std::uint32_t domains = 0;
    for (std::uint32_t domain = 0; domain < term.domains; ++domain) {
      if (cells_.count_column(term.nodes)[domain] == 0) continue;
      ++domains;
      least = std::min<std::int64_t>(least, cells_.count_column(term.count)[domain]);
    }
    return term.min_domains > 1 && domains < term.min_domains ? 0 : least;
  }

 private:
  const TableView cells_;
};

void take(Terms* terms, TermGroup group, Terms* out) {
  std::copy_if(terms->begin(), terms->end(), std::back_inserter(*out),
               [&](const auto& term) { return is_of(term, group); });
  std::erase_if(*terms, [&](const auto& term) { return is_of(term, group); });
}

}  // namespace

bool Cluster::State::is_for_one_decision(const penstock_domain_term& term) const {
  return table->catalogue().count_column(term.count).key.starts_with(std::string("rows ") + kOnce);
}

// A term that asks a column of these values; none if they are all 0.
Status Cluster::State::add_rows(const char* what, TermGroup group, std::int32_t weight,
                                std::vector<std::int32_t> values, Terms* terms) {
  if (std::all_of(values.begin(), values.end(), [](std::int32_t value) { return value == 0; })) {
    return {};
  }
  PENSTOCK_ASSIGN(const auto column, columns.rows(std::string(kOnce) + what, ++scratch,
                                                  [&] { return std::move(values); }));
  penstock_domain_term term{};
  term.domain = column.domain;
  term.count = column.count;
  term.group = static_cast<std::uint8_t>(group);
  term.weight = weight;
  term.domains = column.domains;
  terms->push_back(term);
  return {};
}

Status Cluster::State::fold_score(Terms* terms) {
  Terms preferred;
  take(terms, TermGroup::preferred_pod_affinity, &preferred);
  const Rows rows(table->view());
  std::array<std::vector<std::int32_t>, 4> parts;  // above zero: low, high; below: low, high
  for (auto& part : parts) part.resize(table->rows());
  for (std::uint32_t row = 0; row < table->rows(); ++row) {
    std::int64_t sum = 0;
    for (const auto& term : preferred) sum += term.weight * rows.count(term, row);
    const std::size_t sign = sum < 0 ? 2 : 0;
    const std::int64_t size = sum < 0 ? -sum : sum;
    parts[sign][row] = static_cast<std::int32_t>(size % kCell);
    parts[sign + 1][row] = static_cast<std::int32_t>(std::min(size / kCell, kCell));
  }
  constexpr TermGroup kGroup = TermGroup::preferred_pod_affinity;
  constexpr auto kHigh = static_cast<std::int32_t>(kCell);
  PENSTOCK_TRY(add_rows("affinity", kGroup, 1, std::move(parts[0]), terms));
  PENSTOCK_TRY(add_rows("affinity, high", kGroup, kHigh, std::move(parts[1]), terms));
  PENSTOCK_TRY(add_rows("anti-affinity", kGroup, -1, std::move(parts[2]), terms));
  return add_rows("anti-affinity, high", kGroup, -kHigh, std::move(parts[3]), terms);
}

Status Cluster::State::fold_affinity(Terms* terms) {
  Terms filters;
  take(terms, TermGroup::pod_affinity, &filters);
  const Rows rows(table->view());
  const auto is_present = [](const auto& term) { return term.kind == PENSTOCK_DOMAIN_PRESENT; };
  const bool first = std::all_of(filters.begin(), filters.end(), [&](const auto& term) {
    return !is_present(term) || (term.self == 1 && rows.all_zero(term));
  });
  std::vector<std::int32_t> affinity(table->rows()), anti(table->rows()), carried(table->rows());
  for (const auto& term : filters) {
    const bool of_others = is_carrier(term);
    for (std::uint32_t row = 0; row < table->rows(); ++row) {
      if (is_present(term)) {
        if (!rows.has_domain(term, row) || (rows.count(term, row) == 0 && !first))
          affinity[row] = 1;
      } else if (rows.count(term, row) > 0) {
        (of_others ? carried : anti)[row] = 1;
      }
    }
  }
  constexpr TermGroup kGroup = TermGroup::pod_affinity;
  PENSTOCK_TRY(add_rows("refused by affinity", kGroup, 0, std::move(affinity), terms));
  PENSTOCK_TRY(add_rows("refused by anti-affinity", kGroup, 0, std::move(anti), terms));
  return add_rows("refused by others", kGroup, 0, std::move(carried), terms);
}

Status Cluster::State::fold_spread(Terms* terms) {
  Terms filters;
  take(terms, TermGroup::spread, &filters);
  const Rows rows(table->view());
  std::vector<std::int32_t> label(table->rows()), skew(table->rows());
  std::vector<std::int64_t> least;
  for (const auto& term : filters) least.push_back(rows.least(term));
  for (std::uint32_t row = 0; row < table->rows(); ++row) {
    // The first that fails decides which of the two it is.
    for (std::size_t i = 0; i < filters.size() && label[row] == 0 && skew[row] == 0; ++i) {
      const auto& term = filters[i];
      if (!rows.has_domain(term, row)) {
        label[row] = 1;
      } else if (rows.count(term, row) + term.self - least[i] > term.weight) {
        skew[row] = 1;
      }
    }
  }
  PENSTOCK_TRY(add_rows("no label", TermGroup::spread, 1, std::move(label), terms));
  return add_rows("skew", TermGroup::spread, 1, std::move(skew), terms);
}

Status Cluster::State::fold_terms(const KubernetesPod& pod, Terms* terms) {
  for (const auto fold : {&State::fold_score, &State::fold_affinity, &State::fold_spread}) {
    if (terms->size() <= PENSTOCK_MAX_DOMAIN_TERMS) return {};
    PENSTOCK_TRY((this->*fold)(terms));
  }
  if (terms->size() <= PENSTOCK_MAX_DOMAIN_TERMS) return {};
  return error(Code::unsupported,
               "pod {}: its topology spread constraints that need not hold make {} terms, at most "
               "{} are weighed",
               pod.name, terms->size(), PENSTOCK_MAX_DOMAIN_TERMS);
}

bool Cluster::State::is_carrier(const penstock_domain_term& term) const {
  return table->catalogue().count_column(term.count).key.starts_with("pods carry ");
}

}  // namespace penstock
