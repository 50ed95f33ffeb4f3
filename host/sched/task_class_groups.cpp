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

// 0 where the row has no domain.
std::int64_t TaskClass::count_in(const Term& term, const Group& group) const {
  const std::int64_t part = group.key[term.part];
  if (part < 0) return 0;
  return term.narrow ? count_at(term.record->count, static_cast<std::int32_t>(part)) : part;
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
    const std::int64_t count = count_in(term, group);
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

// ---- scores ----

void TaskClass::rate_groups() {
  refresh_terms();
  live_.clear();
  feasible_ = 0;
  for (std::uint32_t i = 0; i < groups_.size(); i++) {
    Group& group = *groups_[i];
    group.bonus = 0;
    if (group.rows == 0 || !passes(group)) continue;
    live_.push_back(static_cast<std::uint16_t>(i));
    feasible_ += group.rows;
  }
  for (const GroupScore& score : group_scores_) add_score(score);
  rated_ = true;
}

void TaskClass::add_score(const GroupScore& score) {
  raw_.assign(live_.size(), 0);
  if (score.op->op == PENSTOCK_SCORE_SPREAD) {
    raw_spread(score);
  } else {
    for (std::size_t i = 0; i < live_.size(); i++) {
      const Group& group = *groups_[live_[i]];
      if (score.part != kMaxParts) raw_[i] = group.key[score.part];
      for (const Term& term : score.terms) raw_[i] += term.record->weight * count_in(term, group);
    }
  }
  const std::uint32_t normalise = score.op->normalise;
  const auto counts = [normalise](std::int64_t raw) {
    return normalise != PENSTOCK_NORMALISE_SPREAD || raw >= 0;
  };
  ScoreRange range;
  for (const std::int64_t raw : raw_) {
    if (!counts(raw)) continue;
    range.min = range.any ? std::min(range.min, raw) : raw;
    range.max = range.any ? std::max(range.max, raw) : raw;
    range.any = true;
  }
  for (std::size_t i = 0; i < live_.size(); i++) {
    const std::int64_t normalised =
        counts(raw_[i]) ? scalar_normalise_one(normalise, range, raw_[i]) : 0;
    groups_[live_[i]]->bonus += score.op->weight * normalised;
  }
}

// Leaves in raw_ the scores of PENSTOCK_SCORE_SPREAD; -1 where a required domain is missing.
void TaskClass::raw_spread(const GroupScore& score) {
  for (std::size_t i = 0; i < live_.size(); i++) {
    const Group& group = *groups_[live_[i]];
    const bool ignored = std::any_of(score.terms.begin(), score.terms.end(), [&](const Term& term) {
      return (term.record->kind & PENSTOCK_SPREAD_REQUIRED) != 0 && domain_in(term, group) < 0;
    });
    raw_[i] = ignored ? -1 : 0;
  }
  std::array<double, PENSTOCK_MAX_DOMAIN_TERMS> logs;
  for (std::size_t t = 0; t < score.terms.size(); t++)
    logs[t] = spread_log(table_, spread_size(score.terms[t]));
  for (std::size_t i = 0; i < live_.size(); i++) {
    if (raw_[i] < 0) continue;
    const Group& group = *groups_[live_[i]];
    double sum = 0;
    for (std::size_t t = 0; t < score.terms.size(); t++) {
      const Term& term = score.terms[t];
      if (domain_in(term, group) < 0) continue;
      sum = sum + (static_cast<double>(count_in(term, group)) * logs[t] +
                   static_cast<double>(term.record->weight - 1));
    }
    raw_[i] = static_cast<std::int64_t>(std::round(sum));
  }
}

// Over the groups with raw_ >= 0: their rows, or the different domains of the term.
std::uint32_t TaskClass::spread_size(const Term& term) const {
  std::uint32_t rows = 0;
  std::vector<std::int64_t> domains;
  for (std::size_t i = 0; i < live_.size(); i++) {
    if (raw_[i] < 0) continue;
    const Group& group = *groups_[live_[i]];
    rows += group.rows;
    domains.push_back(domain_in(term, group));
  }
  if ((term.record->kind & PENSTOCK_SPREAD_HOSTNAME) != 0 ||
      term.record->domain == PENSTOCK_ROW_DOMAIN)
    return rows;
  std::sort(domains.begin(), domains.end());
  return static_cast<std::uint32_t>(std::unique(domains.begin(), domains.end()) - domains.begin());
}

// ---- the best row ----

std::uint32_t TaskClass::best_row(const RescorerTree& tree) const {
  if (program_.tie == PENSTOCK_TIE_LOWEST_ROW) return tree.first_best(0);
  if (program_.tie == PENSTOCK_TIE_ROTATING) {
    const std::uint32_t row =
        tree.first_best(static_cast<std::uint32_t>(task_.tie % table_.header->rows));
    return row != RescorerTree::kNoRow ? row : tree.first_best(0);
  }
  std::uint32_t best = tree.first_best(0);
  std::uint64_t best_hash = penstock_tie_hash(program_.seed, task_.tie, best);
  for (std::uint32_t row = best; (row = tree.first_best(row + 1)) != RescorerTree::kNoRow;) {
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
  for (const std::uint16_t index : live_) {
    const Group& group = *groups_[index];
    if (group.tree.best() == RescorerTree::kAbsent) continue;  // all of its rows are taken out
    const std::int64_t score = RescorerTree::decode(group.tree.best()) + group.bonus;
    highest = any ? std::max(highest, score) : score;
    any = true;
  }
  if (!any) return false;
  any = false;
  for (const std::uint16_t index : live_) {
    const Group& group = *groups_[index];
    if (group.tree.best() == RescorerTree::kAbsent) continue;
    if (RescorerTree::decode(group.tree.best()) + group.bonus != highest) continue;
    const std::uint32_t row = best_row(group.tree);
    if (any &&
        !scalar_better(program_, task_, table_.header->rows, highest, row, highest, best->row))
      continue;
    *best = {index, row, highest};
    any = true;
  }
  return true;
}

}  // namespace penstock
