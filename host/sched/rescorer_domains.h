// Which rows stand in a domain: the other direction of a node table's domain columns, made for the
// columns that somebody asks about.
#ifndef PENSTOCK_SCHED_RESCORER_DOMAINS_H_
#define PENSTOCK_SCHED_RESCORER_DOMAINS_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "penstock/engine/host_engine.h"

namespace penstock {

// One thread at a time. Sees rows [0, header.rows) as they were at the last row_changed or clear.
class RescorerDomains {
 public:
  explicit RescorerDomains(const TableView& table) : table_(table), columns_(kColumns) {}

  // In no particular order; valid until the next call of any function.
  const std::vector<std::uint32_t>& rows_of(std::uint32_t column, std::uint32_t domain);
  // The row's cells of domain columns, or whether it exists, may have changed.
  void row_changed(std::uint32_t row);
  void clear();

 private:
  static constexpr std::size_t kColumns = PENSTOCK_MAX_DOMAIN_COLUMNS;

  struct Column {
    std::vector<std::int32_t> domain_of;           // by row; -1: none
    std::vector<std::uint32_t> place_of;           // by row: its index in rows_of[domain]
    std::vector<std::vector<std::uint32_t>> rows;  // by domain
  };

  void put(std::uint32_t index, Column* column, std::uint32_t row);

  TableView table_;
  std::vector<std::unique_ptr<Column>> columns_;  // null: nobody asked
};

}  // namespace penstock
#endif
