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
  most_trees_ = static_cast<std::uint32_t>(std::clamp<std::uint64_t>(
      limits_.bytes / RescorerTree::bytes(table_.header->capacity), 1, UINT16_MAX));
  limits_.groups = std::clamp<std::uint32_t>(limits_.groups, 1, kNoGroup - 1);
  plan();
}

std::uint64_t TaskClass::bytes() const {
  const std::uint64_t capacity = table_.header->capacity;
  return trees_ * RescorerTree::bytes(table_.header->capacity) + groups_.size() * sizeof(Group) +
         capacity * sizeof(std::uint16_t) + capacity / 8 + sizeof(*this);
}

void TaskClass::rebuild() {
  const std::uint32_t capacity = table_.header->capacity;
  groups_.clear();
  unused_groups_.clear();
  group_of_key_.clear();
  root_.clear();
  rows_in_.clear();
  place_of_.clear();
  last_group_ = kNoGroup;
  trees_ = 0;
  clear_live();
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
  if (!uses_counts(column)) return;
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

void TaskClass::set_value(std::uint16_t group, std::uint32_t row, std::uint64_t value) {
  RescorerRows& rows = groups_[group]->rows;
  const bool had_tree = rows.has_tree();
  rows.set(row, value);
  root_[group] = rows.best();
  if (rows.has_tree() == had_tree) return;
  if (++trees_ > most_trees_) usable_ = false;
}

void TaskClass::leave(std::uint32_t row) {
  const std::uint16_t group = group_of_[row];
  if (group == kNoGroup) return;
  group_of_[row] = kNoGroup;
  set_value(group, row, RescorerTree::kAbsent);
  feasible_--;
  rated_ = rated_ && !rates_follow_counts_;
  if (--rows_in_[group] > 0) return;
  RescorerRows& rows = groups_[group]->rows;
  trees_ -= rows.has_tree();
  rows.shrink();
  if (place_of_[group] != kNoGroup) remove_live(group);
  group_of_key_.erase(groups_[group]->key);
  unused_groups_.push_back(group);
}

void TaskClass::enter(std::uint32_t row, const Key& key, std::int64_t base) {
  const std::uint64_t value = RescorerTree::encode(base);
  const std::uint16_t before = group_of_[row];
  if (before != kNoGroup) {
    if (same_key(*groups_[before], key)) {
      set_value(before, row, value);
      return;
    }
    leave(row);
  }
  // Neighbours often have the same key.
  const bool again =
      last_group_ != kNoGroup && rows_in_[last_group_] > 0 && same_key(*groups_[last_group_], key);
  const std::uint16_t group = again ? last_group_ : find_group(key);
  if (group == kNoGroup) {
    usable_ = false;
    return;
  }
  last_group_ = group;
  group_of_[row] = group;
  set_value(group, row, value);
  feasible_++;
  rated_ = rated_ && !rates_follow_counts_;
  if (rows_in_[group]++ > 0) return;
  listed_ = false;
  rated_ = false;
}

std::uint16_t TaskClass::find_group(const Key& key) {
  const auto found = group_of_key_.find(key);
  if (found != group_of_key_.end()) return found->second;
  std::uint16_t group = kNoGroup;
  if (!unused_groups_.empty()) {
    group = unused_groups_.back();
    unused_groups_.pop_back();
  } else if (groups_.size() < std::min(limits_.groups, std::max(64u, table_.header->rows / 8))) {
    group = static_cast<std::uint16_t>(groups_.size());
    groups_.push_back(std::make_unique<Group>(table_.header->capacity));
    root_.push_back(RescorerTree::kAbsent);
    rows_in_.push_back(0);
    place_of_.push_back(kNoGroup);
  } else {
    return kNoGroup;
  }
  groups_[group]->key = key;
  group_of_key_.emplace(key, group);
  return group;
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
    taken[n++] = groups_[place.group]->rows.get(place.row);
    if (n == program_.best) break;
    set_value(place.group, place.row, RescorerTree::kAbsent);
  }
  result->n_best = n;
  if (program_.best == 1) return;
  for (std::uint32_t i = 0; i < n; i++) set_value(places[i].group, places[i].row, taken[i]);
}

}  // namespace penstock
