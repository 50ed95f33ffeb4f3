// Domain and count columns of a catalogue.
#include <utility>

#include "penstock/descriptor/node_table.h"
#include "penstock/sched/catalogue.h"

namespace penstock {
namespace {

constexpr char kByRow = '#';

// The free column, else the least recently used of those that may go; the size of the list if there
// is none.
template <typename Column, typename IsKept>
std::uint32_t choose(const std::vector<Column>& columns, const IsKept& is_kept) {
  const auto count = static_cast<std::uint32_t>(columns.size());
  std::uint32_t chosen = count;
  for (std::uint32_t i = 0; i < count; ++i) {
    if (columns[i].key.empty()) return i;
    if (is_kept(columns[i].last_batch)) continue;
    if (chosen == count || columns[i].last_batch < columns[chosen].last_batch) chosen = i;
  }
  return chosen;
}

}  // namespace

std::string Catalogue::domain_key(const std::string& label, bool by_row) {
  return (by_row ? kByRow : '=') + label;
}

std::uint32_t Catalogue::domains_in_use(std::uint32_t column) const {
  const DomainColumn& domain = domains_[column];
  return static_cast<std::uint32_t>(domain.key[0] == kByRow ? domain.cells.size()
                                                            : domain.nodes.size());
}

std::int32_t Catalogue::domain_cell(std::uint32_t column, std::uint32_t row) const {
  const DomainColumn& domain = domains_[column];
  return row < domain.cells.size() ? domain.cells[row] : -1;
}

void Catalogue::enter_domain(DomainColumn* column, std::uint32_t row) {
  if (column->key.empty()) return;
  if (column->cells.size() <= row) column->cells.resize(row + 1, -1);
  const auto& labels = nodes_[row].labels;
  const auto label = labels.find(column->key.substr(1));
  if (label == labels.end()) return;
  if (column->key[0] == kByRow) {
    column->cells[row] = static_cast<std::int32_t>(row);
    return;
  }
  auto [found, is_new] = column->domain_of.try_emplace(label->second, 0);
  if (is_new) {
    // The lowest number that is free, so that numbers stay below the number of nodes.
    if (column->unused.empty()) {
      found->second = static_cast<std::uint32_t>(column->nodes.size());
      column->nodes.push_back(0);
    } else {
      found->second = *column->unused.begin();
      column->unused.erase(column->unused.begin());
    }
  }
  ++column->nodes[found->second];
  column->cells[row] = static_cast<std::int32_t>(found->second);
}

void Catalogue::leave_domain(DomainColumn* column, std::uint32_t row) {
  if (column->key.empty() || row >= column->cells.size()) return;
  const std::int32_t domain = std::exchange(column->cells[row], -1);
  if (domain < 0 || column->key[0] == kByRow) return;
  const auto index = static_cast<std::uint32_t>(domain);
  if (--column->nodes[index] > 0) return;
  column->domain_of.erase(nodes_[row].labels.at(column->key.substr(1)));
  column->unused.insert(index);
}

bool Catalogue::adopt_domains(std::uint32_t column, const std::int32_t* cells) {
  DomainColumn& domain = domains_[column];
  if (domain.key.empty()) return true;
  DomainColumn adopted;
  adopted.key = domain.key;
  adopted.cells.assign(nodes_.size(), -1);
  for (std::uint32_t row = 0; row < nodes_.size(); ++row) {
    const auto label = nodes_[row].labels.find(domain.key.substr(1));
    if (nodes_[row].name.empty() || label == nodes_[row].labels.end()) continue;
    if (cells[row] < 0 || cells[row] >= static_cast<std::int32_t>(PENSTOCK_MAX_ROWS)) return false;
    const auto index = static_cast<std::uint32_t>(cells[row]);
    adopted.cells[row] = cells[row];
    if (domain.key[0] == kByRow) {
      if (index != row) return false;
      continue;
    }
    const auto [known, is_new] = adopted.domain_of.try_emplace(label->second, index);
    if (known->second != index) return false;
    if (adopted.nodes.size() <= index) adopted.nodes.resize(index + 1);
    if (is_new && adopted.nodes[index] > 0) return false;
    ++adopted.nodes[index];
  }
  for (std::uint32_t i = 0; i < adopted.nodes.size(); ++i) {
    if (adopted.nodes[i] == 0) adopted.unused.insert(i);
  }
  domain = std::move(adopted);
  return true;
}

std::int32_t Catalogue::touch_domain(const std::string& key) {
  const auto found = domain_column_of_.find(key);
  if (found == domain_column_of_.end()) return -1;
  domains_[found->second].last_batch = batch_;
  return found->second;
}

Result<std::uint16_t> Catalogue::assign_domain(const std::string& key) {
  PENSTOCK_CHECK(key.size() > 1 && !domain_column_of_.contains(key));
  const std::uint32_t chosen =
      choose(domains_, [this](std::uint64_t last_batch) { return is_kept(last_batch); });
  if (chosen == domains_.size()) {
    full_ = Kind::domains;
    return error(Code::no_space,
                 "all {} domain columns of the table are in use, and the topology '{}' needs one",
                 domains_.size(), key.substr(1));
  }
  DomainColumn& column = domains_[chosen];
  if (!column.key.empty()) {
    domain_column_of_.erase(column.key);
    ++evictions_;
    for (std::uint32_t i = 0; i < counts_.size(); ++i) {
      if (!counts_[i].key.empty() && counts_[i].domain == chosen) {
        drop_count(static_cast<std::uint16_t>(i));
      }
    }
  }
  column = {};
  column.key = key;
  column.last_batch = batch_;
  domain_column_of_[key] = static_cast<std::uint16_t>(chosen);
  for (std::uint32_t row = 0; row < nodes_.size(); ++row) {
    if (!nodes_[row].name.empty()) enter_domain(&column, row);
  }
  return static_cast<std::uint16_t>(chosen);
}

std::int32_t Catalogue::touch_count(const std::string& key) {
  const auto found = count_column_of_.find(key);
  if (found == count_column_of_.end()) return -1;
  CountColumn& column = counts_[found->second];
  column.last_batch = batch_;
  if (column.domain != PENSTOCK_ROW_DOMAIN) domains_[column.domain].last_batch = batch_;
  if (column.eligible != 0) touch_bit(column.eligible);
  return found->second;
}

Result<std::uint16_t> Catalogue::assign_count(const std::string& key, std::uint16_t domain,
                                              std::uint16_t eligible) {
  PENSTOCK_CHECK(!key.empty() && !count_column_of_.contains(key));
  const std::uint32_t chosen =
      choose(counts_, [this](std::uint64_t last_batch) { return is_kept(last_batch); });
  if (chosen == counts_.size()) {
    full_ = Kind::counts;
    return error(Code::no_space, "all {} count columns of the table are in use, and '{}' needs one",
                 counts_.size(), key);
  }
  if (!counts_[chosen].key.empty()) drop_count(static_cast<std::uint16_t>(chosen));
  counts_[chosen] = {key, domain, eligible, ++serial_, batch_};
  count_column_of_[key] = static_cast<std::uint16_t>(chosen);
  return static_cast<std::uint16_t>(chosen);
}

void Catalogue::touch_columns(const penstock_task& task) {
  const auto touch_count_column = [this](std::uint16_t index) {
    CountColumn& column = counts_[index];
    column.last_batch = batch_;
    if (column.domain != PENSTOCK_ROW_DOMAIN) domains_[column.domain].last_batch = batch_;
    if (column.eligible != 0) touch_bit(column.eligible);
  };
  for (std::uint32_t i = 0; i < task.n_terms; ++i) touch_bit(task.terms[i].column);
  for (const std::uint16_t column : task.set_bits) {
    if (column != 0) touch_bit(column);
  }
  for (std::uint32_t i = 0; i < task.n_domain_terms; ++i) {
    const penstock_domain_term& term = task.domain_terms[i];
    touch_count_column(term.count);
    if (term.kind == PENSTOCK_DOMAIN_SPREAD) touch_count_column(term.nodes);
  }
}

void Catalogue::drop_count(std::uint16_t column) {
  if (counts_[column].key.empty()) return;
  count_column_of_.erase(counts_[column].key);
  counts_[column] = {};
  ++evictions_;
}

}  // namespace penstock
