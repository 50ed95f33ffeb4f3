// The columns of a node table that come and go.
#include <algorithm>
#include <utility>

#include "penstock/sched/node_table.h"

namespace penstock {
namespace {

penstock_update set(std::uint16_t field, std::uint32_t column, std::uint32_t row,
                    std::int64_t value) {
  return {field, PENSTOCK_UPDATE_SET, column, row, 0, value};
}

bool bit_is_set(const TableView& view, std::uint32_t column, std::uint32_t row) {
  return (view.bit_column(column)[row / 64] >> (row % 64) & 1) != 0;
}

}  // namespace

Result<std::uint16_t> NodeTable::intern(const std::string& key, NodePredicate predicate) {
  if (const std::int32_t known = catalogue_.touch(key); known >= 0) {
    const auto column = static_cast<std::uint16_t>(known);
    if (!catalogue_.bit_column(column).predicate) {
      catalogue_.set_predicate(column, std::move(predicate));
    }
    return column;
  }
  PENSTOCK_ASSIGN(const std::uint16_t column, catalogue_.assign(key, predicate, false));
  // Only what differs from what an evicted column left there.
  const TableView cells = view();
  std::vector<penstock_update> updates;
  for (std::uint32_t row = 0; row < header_->rows; ++row) {
    const bool wanted = holds_node(row) && predicate(catalogue_.node(row));
    if (wanted != bit_is_set(cells, column, row)) {
      updates.push_back(set(PENSTOCK_UPDATE_BIT, column, row, wanted ? 1 : 0));
    }
  }
  PENSTOCK_TRY(update(updates));
  return column;
}

Result<std::uint16_t> NodeTable::state_column(const std::string& key) {
  if (const std::int32_t known = catalogue_.touch(key); known >= 0) {
    return static_cast<std::uint16_t>(known);
  }
  PENSTOCK_ASSIGN(const std::uint16_t column, catalogue_.assign(key, {}, true));
  const TableView cells = view();
  std::vector<penstock_update> updates;
  for (std::uint32_t row = 0; row < header_->rows; ++row) {
    if (bit_is_set(cells, column, row)) {
      updates.push_back(set(PENSTOCK_UPDATE_BIT, column, row, 0));
    }
  }
  PENSTOCK_TRY(update(updates));
  return column;
}

Result<std::uint16_t> NodeTable::domain_column(const std::string& label, bool by_row) {
  const std::string key = Catalogue::domain_key(label, by_row);
  if (const std::int32_t known = catalogue_.touch_domain(key); known >= 0) {
    return static_cast<std::uint16_t>(known);
  }
  PENSTOCK_ASSIGN(const std::uint16_t column, catalogue_.assign_domain(key));
  const std::int32_t* cells = view().domain_column(column);
  std::vector<penstock_update> updates;
  for (std::uint32_t row = 0; row < header_->rows; ++row) {
    const std::int32_t wanted = catalogue_.domain_cell(column, row);
    if (cells[row] != wanted) updates.push_back(set(PENSTOCK_UPDATE_DOMAIN, column, row, wanted));
  }
  PENSTOCK_TRY(update(updates));
  return column;
}

Status NodeTable::set_counts(std::uint16_t column, std::span<const std::int32_t> values) {
  PENSTOCK_CHECK(values.size() <= header_->capacity);
  const std::int32_t* cells = view().count_column(column);
  std::vector<penstock_update> updates;
  for (std::uint32_t domain = 0; domain < header_->capacity; ++domain) {
    const std::int32_t wanted = domain < values.size() ? values[domain] : 0;
    if (cells[domain] != wanted) {
      updates.push_back(set(PENSTOCK_UPDATE_COUNT, column, domain, wanted));
    }
  }
  return update(updates);
}

Result<std::uint16_t> NodeTable::add_count(const std::string& key, std::uint16_t domain,
                                           std::uint16_t eligible,
                                           std::span<const std::int32_t> values) {
  PENSTOCK_ASSIGN(const std::uint16_t column, catalogue_.assign_count(key, domain, eligible));
  if (Status status = set_counts(column, values); !status.ok()) {
    catalogue_.drop_count(column);
    return status;
  }
  return column;
}

bool NodeTable::bit(std::uint32_t column, std::uint32_t row) const {
  return bit_is_set(view(), column, row);
}

}  // namespace penstock
