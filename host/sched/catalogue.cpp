#include "penstock/sched/catalogue.h"

#include <algorithm>

#include "penstock/descriptor/node_table.h"

namespace penstock {
namespace {

const NodeFacts kNoNode;

}  // namespace

Catalogue::Catalogue(std::vector<ResourceName> resources, std::vector<std::string> free_columns,
                     std::uint32_t bit_columns, std::uint32_t domain_columns,
                     std::uint32_t count_columns)
    : resources_(std::move(resources)),
      free_columns_(std::move(free_columns)),
      bits_(bit_columns),
      rows_using_(bit_columns),
      domains_(domain_columns),
      counts_(count_columns) {
  PENSTOCK_CHECK(bit_columns >= PENSTOCK_BIT_FIRST_FREE && bit_columns <= PENSTOCK_MAX_BIT_COLUMNS);
  for (std::uint32_t column = 0; column < PENSTOCK_BIT_FIRST_FREE; ++column) {
    bits_[column].key = column == PENSTOCK_BIT_NODE ? "node" : "unschedulable";
    bits_[column].state = true;
  }
}

std::int32_t Catalogue::find_resource(std::string_view name) const {
  for (std::size_t i = 0; i < resources_.size(); ++i) {
    if (resources_[i].name == name) return static_cast<std::int32_t>(i);
  }
  return -1;
}

std::int32_t Catalogue::find_free_column(std::string_view name) const {
  const auto found = std::find(free_columns_.begin(), free_columns_.end(), name);
  return found == free_columns_.end() ? -1
                                      : static_cast<std::int32_t>(found - free_columns_.begin());
}

std::int32_t Catalogue::find_node(const std::string& name) const {
  const auto found = row_of_.find(name);
  return found == row_of_.end() ? -1 : static_cast<std::int32_t>(found->second);
}

const NodeFacts& Catalogue::node(std::uint32_t row) const {
  return row < nodes_.size() ? nodes_[row] : kNoNode;
}

std::uint32_t Catalogue::next_row() const {
  return free_rows_.empty() ? rows() : *free_rows_.begin();
}

void Catalogue::put_node(std::uint32_t row, NodeFacts facts) {
  PENSTOCK_CHECK(!facts.name.empty() && node(row).name.empty());
  for (std::uint32_t gap = rows(); gap < row; ++gap) free_rows_.insert(gap);
  if (row >= nodes_.size()) nodes_.resize(row + 1);
  free_rows_.erase(row);
  row_of_[facts.name] = row;
  nodes_[row] = std::move(facts);
  for (DomainColumn& column : domains_) enter_domain(&column, row);
}

void Catalogue::change_node(std::uint32_t row, NodeFacts facts) {
  PENSTOCK_CHECK(!facts.name.empty() && node(row).name == facts.name);
  for (DomainColumn& column : domains_) leave_domain(&column, row);
  nodes_[row] = std::move(facts);
  for (DomainColumn& column : domains_) enter_domain(&column, row);
}

void Catalogue::take_node(std::uint32_t row) {
  PENSTOCK_CHECK(!node(row).name.empty());
  for (DomainColumn& column : domains_) leave_domain(&column, row);
  row_of_.erase(nodes_[row].name);
  nodes_[row] = {};
  free_rows_.insert(row);
  const auto from = uses_.lower_bound({row, 0}), to = uses_.lower_bound({row + 1, 0});
  for (auto use = from; use != to; ++use) --rows_using_[use->first.second];
  uses_.erase(from, to);
}

std::int32_t Catalogue::touch(const std::string& key) {
  const auto found = column_of_.find(key);
  if (found == column_of_.end()) return -1;
  bits_[found->second].last_batch = batch_;
  return found->second;
}

Result<std::uint16_t> Catalogue::assign(const std::string& key, NodePredicate predicate,
                                        bool state) {
  PENSTOCK_CHECK(!key.empty() && !column_of_.contains(key));
  std::uint32_t chosen = 0;
  for (std::uint32_t column = PENSTOCK_BIT_FIRST_FREE; column < bits_.size(); ++column) {
    const BitColumn& candidate = bits_[column];
    if (candidate.key.empty()) {
      chosen = column;
      break;
    }
    if (rows_using_[column] > 0 || is_kept(candidate.last_batch)) continue;
    if (chosen == 0 || candidate.last_batch < bits_[chosen].last_batch) chosen = column;
  }
  if (chosen == 0) {
    full_ = Kind::bits;
    return error(Code::no_space,
                 "all {} bit columns of the table are in use, and '{}' needs one; make the table "
                 "with more, or place fewer tasks at a time",
                 bits_.size(), key);
  }
  BitColumn& column = bits_[chosen];
  if (!column.key.empty()) {
    column_of_.erase(column.key);
    ++evictions_;
    for (std::uint32_t i = 0; i < counts_.size(); ++i) {
      if (counts_[i].eligible == chosen) drop_count(static_cast<std::uint16_t>(i));
    }
  }
  column = {key, std::move(predicate), state, batch_};
  column_of_[key] = static_cast<std::uint16_t>(chosen);
  return static_cast<std::uint16_t>(chosen);
}

void Catalogue::set_predicate(std::uint16_t column, NodePredicate predicate) {
  bits_[column].predicate = std::move(predicate);
}

void Catalogue::drop_unknown_columns() {
  for (std::uint32_t i = PENSTOCK_BIT_FIRST_FREE; i < bits_.size(); ++i) {
    if (bits_[i].key.empty() || bits_[i].state || bits_[i].predicate) continue;
    column_of_.erase(bits_[i].key);
    bits_[i] = {};
    for (std::uint32_t count = 0; count < counts_.size(); ++count) {
      if (counts_[count].eligible == i) drop_count(static_cast<std::uint16_t>(count));
    }
  }
}

std::uint32_t Catalogue::add_use(std::uint32_t row, std::uint16_t column) {
  std::uint32_t& uses = uses_[{row, column}];
  if (uses == 0) ++rows_using_[column];
  return ++uses;
}

std::uint32_t Catalogue::drop_use(std::uint32_t row, std::uint16_t column) {
  const auto found = uses_.find({row, column});
  if (found == uses_.end()) return 0;
  if (--found->second > 0) return found->second;
  uses_.erase(found);
  --rows_using_[column];
  return 0;
}

}  // namespace penstock
