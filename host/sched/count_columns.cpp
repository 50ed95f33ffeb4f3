#include "penstock/sched/count_columns.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

namespace penstock {

void CountColumns::use(NodeTable* table, std::uint64_t serial) {
  table_ = table;
  table_serial_ = serial;
  specs_.assign(table->header().n_counts, {});
  rows_.assign(table->header().capacity, nullptr);
}

void CountColumns::set_row(std::uint32_t row, const std::vector<PlacedPod*>* pods) {
  rows_[row] = pods;
}

bool CountColumns::is_current(std::uint32_t column) const {
  const auto& named = table_->catalogue().count_column(column);
  return !named.key.empty() && specs_[column].kind != Spec::Kind::none &&
         specs_[column].serial == named.serial;
}

Result<CountColumns::Column> CountColumns::found(std::uint16_t column) const {
  const std::uint16_t domain = table_->catalogue().count_column(column).domain;
  return Column{
      column, domain,
      domain == PENSTOCK_ROW_DOMAIN ? table_->rows() : table_->catalogue().domains_in_use(domain)};
}

std::vector<std::int32_t> CountColumns::count_pods(std::uint16_t domain, std::uint16_t eligible,
                                                   const PodPredicate& picks) const {
  const Catalogue& catalogue = table_->catalogue();
  const TableView cells = table_->view();
  std::vector<std::int32_t> values(catalogue.domains_in_use(domain));
  std::unordered_map<const PodClass*, bool> picked;
  for (std::uint32_t row = 0; row < table_->rows(); ++row) {
    const std::int32_t at = catalogue.domain_cell(domain, row);
    if (rows_[row] == nullptr || at < 0) continue;
    if ((cells.bit_column(eligible)[row / 64] >> (row % 64) & 1) == 0) continue;
    for (const PlacedPod* placed : *rows_[row]) {
      const auto [known, is_new] = picked.try_emplace(placed->pods);
      if (is_new) known->second = picks(*placed->pods);
      if (known->second) ++values[static_cast<std::size_t>(at)];
    }
  }
  return values;
}

Result<CountColumns::Column> CountColumns::pods(const std::string& key, const std::string& label,
                                                bool by_row, std::uint16_t eligible,
                                                const PodPredicate& picks, bool by_namespaces) {
  PENSTOCK_ASSIGN(const std::uint16_t domain, table_->domain_column(label, by_row));
  const std::string whole =
      fmt::format("pods {} {}{} on {}", key, by_row ? "#" : "=", key_part(label),
                  table_->catalogue().bit_column(eligible).key);
  if (const std::int32_t known = table_->find_count(whole); known >= 0) {
    return found(static_cast<std::uint16_t>(known));
  }
  PENSTOCK_ASSIGN(const std::uint16_t column,
                  table_->add_count(whole, domain, eligible, count_pods(domain, eligible, picks)));
  specs_[column] = {Spec::Kind::pods, picks, by_namespaces,
                    table_->catalogue().count_column(column).serial, 0};
  return found(column);
}

Result<CountColumns::Column> CountColumns::nodes(const std::string& label, std::uint16_t eligible) {
  PENSTOCK_ASSIGN(const std::uint16_t domain, table_->domain_column(label, false));
  const Catalogue& catalogue = table_->catalogue();
  const std::string whole =
      fmt::format("nodes ={} on {}", key_part(label), catalogue.bit_column(eligible).key);
  if (const std::int32_t known = table_->find_count(whole); known >= 0) {
    return found(static_cast<std::uint16_t>(known));
  }
  const TableView cells = table_->view();
  std::vector<std::int32_t> values(catalogue.domains_in_use(domain));
  for (std::uint32_t row = 0; row < table_->rows(); ++row) {
    const std::int32_t at = catalogue.domain_cell(domain, row);
    if (at < 0 || (cells.bit_column(eligible)[row / 64] >> (row % 64) & 1) == 0) continue;
    ++values[static_cast<std::size_t>(at)];
  }
  PENSTOCK_ASSIGN(const std::uint16_t column, table_->add_count(whole, domain, eligible, values));
  specs_[column] = {Spec::Kind::nodes, {}, false, catalogue.count_column(column).serial, 0};
  return found(column);
}

Result<CountColumns::Column> CountColumns::rows(
    const std::string& key, std::uint64_t stamp,
    const std::function<std::vector<std::int32_t>()>& values) {
  const std::string whole = "rows " + key;
  if (const std::int32_t known = table_->find_count(whole); known >= 0) {
    const auto column = static_cast<std::uint16_t>(known);
    if (specs_[column].stamp != stamp) {
      PENSTOCK_TRY(table_->set_counts(column, values()));
      specs_[column].stamp = stamp;
    }
    return found(column);
  }
  PENSTOCK_ASSIGN(const std::uint16_t column,
                  table_->add_count(whole, PENSTOCK_ROW_DOMAIN, 0, values()));
  specs_[column] = {
      Spec::Kind::rows, {}, false, table_->catalogue().count_column(column).serial, stamp};
  return found(column);
}

// Brings the list of columns that a pod of this class counts in up to date.
void CountColumns::react(PodClass* pods) {
  const Catalogue& catalogue = table_->catalogue();
  if (pods->table_seen != table_serial_) {
    pods->reacts.clear();
    pods->serial_seen = 0;
    pods->evictions_seen = 0;
    pods->table_seen = table_serial_;
  }
  if (pods->evictions_seen != catalogue.evictions()) {
    std::erase_if(pods->reacts, [&](const auto& entry) {
      return catalogue.count_column(entry.first).serial != entry.second;
    });
    pods->evictions_seen = catalogue.evictions();
  }
  if (pods->serial_seen == catalogue.last_serial()) return;
  for (std::uint32_t i = 0; i < specs_.size(); ++i) {
    const Spec& spec = specs_[i];
    if (spec.kind != Spec::Kind::pods || spec.serial <= pods->serial_seen || !is_current(i)) {
      continue;
    }
    if (spec.picks(*pods)) pods->reacts.emplace_back(static_cast<std::uint16_t>(i), spec.serial);
  }
  pods->serial_seen = catalogue.last_serial();
}

std::vector<penstock_raise> CountColumns::raises(PodClass* pods) {
  react(pods);
  std::vector<penstock_raise> out;
  for (const auto& [column, serial] : pods->reacts) {
    const auto& named = table_->catalogue().count_column(column);
    out.push_back({column, named.domain, named.eligible, 0});
  }
  return out;
}

void CountColumns::append_row(std::uint32_t row, int sign, std::vector<penstock_update>* out) {
  const Catalogue& catalogue = table_->catalogue();
  const TableView cells = table_->view();
  std::map<std::uint16_t, std::int64_t> counts;
  for (std::uint32_t i = 0; i < specs_.size(); ++i) {
    if (specs_[i].kind == Spec::Kind::nodes && is_current(i)) {
      counts[static_cast<std::uint16_t>(i)] = 1;
    }
  }
  if (rows_[row] != nullptr) {
    for (const PlacedPod* placed : *rows_[row]) {
      react(placed->pods);
      for (const auto& [column, serial] : placed->pods->reacts) ++counts[column];
    }
  }
  for (const auto& [column, count] : counts) {
    const auto& named = catalogue.count_column(column);
    const std::int32_t domain = catalogue.domain_cell(named.domain, row);
    if (domain < 0 || (cells.bit_column(named.eligible)[row / 64] >> (row % 64) & 1) == 0) continue;
    out->push_back({PENSTOCK_UPDATE_COUNT, PENSTOCK_UPDATE_ADD, column,
                    static_cast<std::uint32_t>(domain), 0, sign * count});
  }
}

void CountColumns::drop_by_namespaces() {
  for (std::uint32_t i = 0; i < specs_.size(); ++i) {
    if (specs_[i].by_namespaces && is_current(i)) {
      table_->drop_count(static_cast<std::uint16_t>(i));
    }
  }
}

}  // namespace penstock
