#include "penstock/sched/task_class.h"

#include <algorithm>

namespace penstock {

std::size_t TaskClass::KeyHash::operator()(const Key& key) const {
  std::uint64_t hash = 0;
  for (const std::int64_t part : key)
    hash = (hash ^ static_cast<std::uint64_t>(part)) * UINT64_C(0x9e3779b97f4a7c15);
  return hash ^ (hash >> 32);
}

TaskClass::TaskClass(const TableView& table, const penstock_program& program,
                     const penstock_task& task, RescorerDomains* domains,
                     const TaskClassLimits& limits)
    : table_(table),
      program_(program),
      task_(task),
      context_(table_, program_, task_),
      domains_(domains),
      limits_(limits) {
  const std::uint64_t fitting = limits_.bytes / RescorerTree::bytes(table_.header->capacity);
  limits_.groups = static_cast<std::uint32_t>(
      std::clamp<std::uint64_t>(fitting, 1, std::min<std::uint32_t>(limits_.groups, kNoGroup - 1)));
  plan();
}

std::uint64_t TaskClass::bytes() const {
  const std::uint64_t capacity = table_.header->capacity;
  return groups_.size() * (RescorerTree::bytes(table_.header->capacity) + sizeof(Group)) +
         capacity * sizeof(std::uint16_t) + capacity / 8 + sizeof(*this);
}

void TaskClass::rebuild() {
  const std::uint32_t capacity = table_.header->capacity;
  groups_.clear();
  unused_groups_.clear();
  group_of_key_.clear();
  live_.clear();
  rated_ = false;
  usable_ = true;
  bits_hold_.assign(capacity / 64, 0);
  group_of_.assign(capacity, kNoGroup);
  for (GroupFilter& filter : group_filters_) {
    for (Term& term : filter.terms) term.stale = true;
    for (Presence& presence : filter.present) presence.stale = true;
  }
  for (std::uint32_t row = 0; row < table_.header->rows && usable_; row++) refresh(row, true);
}

void TaskClass::refresh(std::uint32_t row, bool all) {
  std::uint64_t& word = bits_hold_[row / 64];
  const std::uint64_t mask = std::uint64_t{1} << row % 64;
  if (all) word = bits_hold(row) ? word | mask : word & ~mask;
  if ((word & mask) == 0 || !cells_hold(row)) {
    leave(row);
    return;
  }
  const std::uint16_t group = group_of_[row];
  Key key{};
  for (std::uint32_t i = 0; i < parts_.size(); i++) {
    key[i] = !all && group != kNoGroup && parts_[i].steady() ? groups_[group]->key[i]
                                                             : part_value(parts_[i], row);
  }
  enter(row, key, base(row));
}

void TaskClass::refresh_count(std::uint32_t column, std::uint32_t domain) {
  if ((counts_used_ >> column % 64 & 1) == 0) return;
  rated_ = rated_ && !rates_follow_counts_;
  for (GroupFilter& filter : group_filters_) {
    for (Term& term : filter.terms)
      term.stale = term.stale || term.record->count == column || term.record->nodes == column;
    for (Presence& presence : filter.present)
      presence.stale = presence.stale || presence.record->count == column;
  }
  for (const Watch& watch : watched_) {
    if (watch.count != column) continue;
    if (watch.domain == PENSTOCK_ROW_DOMAIN) {
      refresh(domain, false);
      continue;
    }
    for (const std::uint32_t row : domains_->rows_of(watch.domain, domain)) refresh(row, false);
  }
}

void TaskClass::leave(std::uint32_t row) {
  const std::uint16_t index = group_of_[row];
  if (index == kNoGroup) return;
  Group& group = *groups_[index];
  group_of_[row] = kNoGroup;
  group.tree.set(row, RescorerTree::kAbsent);
  feasible_--;
  rated_ = rated_ && !rates_follow_counts_;
  if (--group.rows > 0) return;
  group_of_key_.erase(group.key);
  unused_groups_.push_back(index);
  rated_ = false;
}

void TaskClass::enter(std::uint32_t row, const Key& key, std::int64_t base) {
  const std::uint64_t value = RescorerTree::encode(base);
  const std::uint16_t before = group_of_[row];
  if (before != kNoGroup) {
    Group& group = *groups_[before];
    if (std::equal(key.begin(), key.begin() + parts_.size(), group.key.begin())) {
      group.tree.set(row, value);
      return;
    }
    leave(row);
  }
  const std::uint16_t index = find_group(key);
  if (index == kNoGroup) {
    usable_ = false;
    return;
  }
  Group& group = *groups_[index];
  group_of_[row] = index;
  group.tree.set(row, value);
  feasible_++;
  rated_ = rated_ && !rates_follow_counts_;
  if (group.rows++ == 0) rated_ = false;
}

std::uint16_t TaskClass::find_group(const Key& key) {
  const auto found = group_of_key_.find(key);
  if (found != group_of_key_.end()) return found->second;
  std::uint16_t index = kNoGroup;
  if (!unused_groups_.empty()) {
    index = unused_groups_.back();
    unused_groups_.pop_back();
  } else if (groups_.size() < limits_.groups) {
    index = static_cast<std::uint16_t>(groups_.size());
    groups_.push_back(std::make_unique<Group>(table_.header->capacity));
  } else {
    return kNoGroup;
  }
  groups_[index]->key = key;
  groups_[index]->bonus = 0;
  group_of_key_.emplace(key, index);
  return index;
}

void TaskClass::choose(std::uint64_t tie, penstock_result* result) {
  task_.tie = tie;
  if (!rated_) rate_groups();
  result->feasible = feasible_;
  // Each of the best is taken out while the next is looked for, and put back at the end.
  std::array<std::uint64_t, PENSTOCK_MAX_BEST> taken;
  std::array<Place, PENSTOCK_MAX_BEST> places;
  std::uint32_t n = 0;
  while (n < program_.best && find_best(&places[n])) {
    const Place& place = places[n];
    result->best[n] = {static_cast<std::int32_t>(place.row), 0, place.score};
    RescorerTree& tree = groups_[place.group]->tree;
    taken[n++] = tree.get(place.row);
    if (n == program_.best) break;
    tree.set(place.row, RescorerTree::kAbsent);
  }
  result->n_best = n;
  for (std::uint32_t i = 0; i < n; i++) groups_[places[i].group]->tree.set(places[i].row, taken[i]);
}

}  // namespace penstock
