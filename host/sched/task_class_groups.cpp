// What depends on all groups together: which of them are feasible, what normalisation makes of
// their raw scores, and where the best row is.
#include <algorithm>
#include <cmath>

#include "penstock/descriptor/descriptor.h"
#include "penstock/sched/task_class.h"

namespace penstock {

std::int64_t TaskClass::domain_in(const Term& term, const Group& group) const {
  return group.key[term.part];
}

// 0 where the row has no domain. `key` is what the group's key says of the term.
std::int64_t TaskClass::count_of(const Term& term, std::int64_t key) const {
  if (key < 0) return 0;
  return term.narrow ? count_at(term.record->count, static_cast<std::int32_t>(key)) : key;
}

// ---- filters ----

void TaskClass::refresh_terms() {
  for (GroupFilter& filter : group_filters_) {
    for (Term& term : filter.terms) {
      if (!term.stale || term.record->kind != PENSTOCK_DOMAIN_SPREAD) continue;
      const penstock_domain_term& record = *term.record;
      const std::int32_t* counts = table_.count_column(record.count);
      const std::int32_t* nodes = table_.count_column(record.nodes);
      std::int32_t least = INT32_MAX;
      std::uint32_t eligible = 0;
      for (std::uint32_t d = 0; d < record.domains; d++) {
        const bool counted = nodes[d] > 0;
        eligible += counted;
        least = counted ? std::min(least, counts[d]) : least;
      }
      if (eligible > 0) least = std::clamp(least, 0, PENSTOCK_MAX_DOMAIN_COUNT);
      term.min = record.min_domains > 1 && eligible < record.min_domains ? 0 : least;
      term.stale = false;
    }
    for (Presence& presence : filter.present) {
      if (!presence.stale) continue;
      const std::int32_t* counts = table_.count_column(presence.record->count);
      presence.any = std::any_of(counts, counts + presence.record->domains,
                                 [](std::int32_t count) { return count > 0; });
      presence.stale = false;
    }
  }
}

bool TaskClass::passes(const GroupFilter& filter, const Group& group) const {
  const auto none_present = [&filter] {
    return std::none_of(filter.present.begin(), filter.present.end(),
                        [](const Presence& presence) { return presence.any; });
  };
  for (const Term& term : filter.terms) {
    const penstock_domain_term& record = *term.record;
    const bool has_domain = domain_in(term, group) >= 0;
    const std::int64_t count = count_of(term, domain_in(term, group));
    switch (record.kind) {
      case PENSTOCK_DOMAIN_ABSENT:
        if (count != 0) return false;
        break;
      case PENSTOCK_DOMAIN_PRESENT:
        if (!has_domain || (count == 0 && (record.self == 0 || !none_present()))) return false;
        break;
      case PENSTOCK_DOMAIN_SPREAD:
        if (!has_domain || count + record.self - term.min > record.weight) return false;
        break;
      default:
        return false;
    }
  }
  return true;
}

bool TaskClass::passes(const Group& group) const {
  return std::all_of(group_filters_.begin(), group_filters_.end(),
                     [&](const GroupFilter& filter) { return passes(filter, group); });
}

// ---- live groups ----

void TaskClass::DomainSet::add(std::int64_t domain) {
  const auto at = static_cast<std::size_t>(domain + 1);
  if (at >= groups.size()) groups.resize(at + 1);
  if (groups[at]++ == 0) different++;
}

void TaskClass::DomainSet::remove(std::int64_t domain) {
  if (--groups[static_cast<std::size_t>(domain + 1)] == 0) different--;
}

void TaskClass::clear_live() {
  live_.clear();
  steady_.clear();
  for (GroupScore& score : group_scores_) {
    score.term_keys.assign(score.terms.size(), {});
    score.domains.assign(score.terms.size(), {});
    score.part_keys.clear();
    score.ignored.clear();
    score.range = {};
  }
  listed_ = false;
  settled_ = false;
  rated_ = false;
}

void TaskClass::add_live(std::uint16_t index) {
  const Group& group = *groups_[index];
  place_of_[index] = static_cast<std::uint16_t>(live_.size());
  live_.push_back(index);
  steady_.push_back(kUnrated);
  for (GroupScore& score : group_scores_) {
    bool ignored = false;
    for (std::size_t t = 0; t < score.terms.size(); t++) {
      const std::int64_t key = domain_in(score.terms[t], group);
      score.term_keys[t].push_back(key);
      ignored =
          ignored || (key < 0 && (score.terms[t].record->kind & PENSTOCK_SPREAD_REQUIRED) != 0);
    }
    for (std::size_t t = 0; t < score.terms.size() && !ignored; t++)
      if (score.terms[t].narrow) score.domains[t].add(score.term_keys[t].back());
    score.ignored.push_back(ignored ? 1 : 0);
    score.part_keys.push_back(score.part != kMaxParts ? group.key[score.part] : 0);
  }
  settled_ = false;
}

// The last one takes its place.
void TaskClass::remove_live(std::uint16_t index) {
  const std::size_t place = place_of_[index];
  const auto drop = [place](auto* list) {
    (*list)[place] = list->back();
    list->pop_back();
  };
  for (GroupScore& score : group_scores_) {
    for (std::size_t t = 0; t < score.terms.size(); t++) {
      if (score.terms[t].narrow && score.ignored[place] == 0)
        score.domains[t].remove(score.term_keys[t][place]);
      drop(&score.term_keys[t]);
    }
    drop(&score.ignored);
    drop(&score.part_keys);
  }
  drop(&steady_);
  place_of_[live_.back()] = static_cast<std::uint16_t>(place);
  drop(&live_);
  place_of_[index] = kNoGroup;
  settled_ = false;
  rated_ = false;
}

void TaskClass::list_live() {
  for (std::size_t i = 0; i < groups_.size(); i++) {
    const bool wanted = rows_in_[i] > 0 && passes(*groups_[i]);
    if (wanted == (place_of_[i] != kNoGroup)) continue;
    if (wanted) {
      add_live(static_cast<std::uint16_t>(i));
    } else {
      remove_live(static_cast<std::uint16_t>(i));
    }
  }
  listed_ = true;
}

// ---- scores ----

namespace {

ScoreRange range_of(std::uint32_t normalise, const std::vector<std::int64_t>& scores) {
  ScoreRange range;
  for (const std::int64_t score : scores) {
    if (normalise == PENSTOCK_NORMALISE_SPREAD && score < 0) continue;
    range.min = range.any ? std::min(range.min, score) : score;
    range.max = range.any ? std::max(range.max, score) : score;
    range.any = true;
  }
  return range;
}

}  // namespace

void TaskClass::rate_groups() {
  refresh_terms();
  // Filters on domains may let other groups pass than before.
  if (!listed_ || !group_filters_.empty()) list_live();
  if (!settled_) rate_steady();
  feasible_ = 0;
  for (const std::uint16_t index : live_) feasible_ += rows_in_[index];
  bonus_ = steady_;
  for (const GroupScore& score : group_scores_)
    if (!score.steady()) rate_moving(score);
  rated_ = true;
}

// Where the ranges are as before, only for groups that came.
void TaskClass::rate_steady() {
  bool again = false;
  for (GroupScore& score : group_scores_) {
    if (!score.steady()) continue;
    const ScoreRange range = range_of(score.op->normalise, score.part_keys);
    again = again || range.min != score.range.min || range.max != score.range.max;
    score.range = range;
  }
  for (std::size_t i = 0; i < live_.size(); i++) {
    if (!again && steady_[i] != kUnrated) continue;
    steady_[i] = 0;
    for (const GroupScore& score : group_scores_) {
      if (score.steady())
        steady_[i] += score.op->weight *
                      scalar_normalise_one(score.op->normalise, score.range, score.part_keys[i]);
    }
  }
  settled_ = true;
}

void TaskClass::rate_moving(const GroupScore& score) {
  if (score.op->op == PENSTOCK_SCORE_SPREAD) {
    raw_spread(score);
  } else {
    raw_ = score.part_keys;
    for (std::size_t t = 0; t < score.terms.size(); t++)
      for (std::size_t i = 0; i < raw_.size(); i++)
        raw_[i] += score.terms[t].record->weight * count_of(score.terms[t], score.term_keys[t][i]);
  }
  const std::uint32_t normalise = score.op->normalise;
  const std::int64_t weight = score.op->weight;
  const ScoreRange range = range_of(normalise, raw_);
  // In float64 the quotient is exact as long as both are below 2^52; see percent().
  const bool spreads =
      normalise == PENSTOCK_NORMALISE_SPREAD && range.max > 0 && range.max < std::int64_t{1} << 40;
  for (std::size_t i = 0; i < raw_.size(); i++) {
    if (spreads) {
      const double part = static_cast<double>(100 * (range.max + range.min - raw_[i]));
      const auto quotient = static_cast<std::int64_t>(part / static_cast<double>(range.max));
      bonus_[i] += raw_[i] < 0 ? 0 : weight * quotient;
    } else {
      bonus_[i] += weight * scalar_normalise_one(normalise, range, raw_[i]);
    }
  }
}

// Leaves in raw_ the scores of PENSTOCK_SCORE_SPREAD; -1 where a required domain is missing.
void TaskClass::raw_spread(const GroupScore& score) {
  const std::size_t n = live_.size();
  std::uint32_t rows = 0;
  for (std::size_t i = 0; i < n; i++) rows += score.ignored[i] != 0 ? 0 : rows_in_[live_[i]];
  sums_.assign(n, 0);
  for (std::size_t t = 0; t < score.terms.size(); t++) {
    const Term& term = score.terms[t];
    const bool rows_count = (term.record->kind & PENSTOCK_SPREAD_HOSTNAME) != 0 ||
                            term.record->domain == PENSTOCK_ROW_DOMAIN;
    const double log = spread_log(table_, rows_count ? rows : score.domains[t].different);
    const auto skew = static_cast<double>(std::int64_t{term.record->weight} - 1);
    const std::vector<std::int64_t>& keys = score.term_keys[t];
    const auto share = [&](std::int64_t key) {
      return key < 0 ? 0 : static_cast<double>(count_of(term, key)) * log + skew;
    };
    if (!term.narrow) {
      for (std::size_t i = 0; i < n; i++)
        sums_[i] = sums_[i] + (keys[i] < 0 ? 0 : static_cast<double>(keys[i]) * log + skew);
      continue;
    }
    const std::vector<std::uint32_t>& seen = score.domains[t].groups;
    by_domain_.assign(seen.size(), 0);
    for (std::size_t d = 1; d < seen.size(); d++)
      if (seen[d] > 0) by_domain_[d] = share(static_cast<std::int64_t>(d) - 1);
    for (std::size_t i = 0; i < n; i++)
      if (score.ignored[i] == 0)
        sums_[i] = sums_[i] + by_domain_[static_cast<std::size_t>(keys[i] + 1)];
  }
  raw_.resize(n);
  for (std::size_t i = 0; i < n; i++) {
    // Half away from zero, of a sum that is not negative.
    const auto whole = static_cast<std::int64_t>(sums_[i]);
    const bool up = sums_[i] - static_cast<double>(whole) >= 0.5;
    raw_[i] = score.ignored[i] != 0 ? -1 : whole + up;
  }
}

// ---- the best row ----

std::uint32_t TaskClass::best_row(const RescorerRows& rows) const {
  if (program_.tie == PENSTOCK_TIE_LOWEST_ROW) return rows.first_best(0);
  if (program_.tie == PENSTOCK_TIE_ROTATING) {
    const std::uint32_t row =
        rows.first_best(static_cast<std::uint32_t>(task_.tie % table_.header->rows));
    return row != RescorerTree::kNoRow ? row : rows.first_best(0);
  }
  std::uint32_t best = rows.first_best(0);
  std::uint64_t best_hash = penstock_tie_hash(program_.seed, task_.tie, best);
  for (std::uint32_t row = best; (row = rows.first_best(row + 1)) != RescorerTree::kNoRow;) {
    const std::uint64_t hash = penstock_tie_hash(program_.seed, task_.tie, row);
    if (hash <= best_hash) continue;
    best = row;
    best_hash = hash;
  }
  return best;
}

bool TaskClass::find_best(Place* best) const {
  bool any = false;
  std::int64_t highest = 0;
  for (std::size_t i = 0; i < live_.size(); i++) {
    const std::uint64_t root = root_[live_[i]];
    if (root == RescorerTree::kAbsent) continue;  // all of its rows are taken out
    const std::int64_t score = RescorerTree::decode(root) + bonus_[i];
    highest = any ? std::max(highest, score) : score;
    any = true;
  }
  if (!any) return false;
  any = false;
  for (std::size_t i = 0; i < live_.size(); i++) {
    const std::uint64_t root = root_[live_[i]];
    if (root == RescorerTree::kAbsent || RescorerTree::decode(root) + bonus_[i] != highest)
      continue;
    const std::uint32_t row = best_row(groups_[live_[i]]->rows);
    if (any &&
        !scalar_better(program_, task_, table_.header->rows, highest, row, highest, best->row))
      continue;
    *best = {live_[i], row, highest};
    any = true;
  }
  return true;
}

}  // namespace penstock
