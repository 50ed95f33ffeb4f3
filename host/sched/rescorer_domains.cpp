#include "penstock/sched/rescorer_domains.h"

namespace penstock {

void RescorerDomains::put(std::uint32_t index, Column* column, std::uint32_t row) {
  const std::int32_t now = row < table_.header->rows ? table_.domain_of(index, row) : -1;
  const std::int32_t before = column->domain_of[row];
  if (now == before) return;
  if (before >= 0) {
    std::vector<std::uint32_t>& rows = column->rows[static_cast<std::size_t>(before)];
    const std::uint32_t last = rows.back();
    rows[column->place_of[row]] = last;
    column->place_of[last] = column->place_of[row];
    rows.pop_back();
  }
  column->domain_of[row] = now;
  if (now < 0) return;
  std::vector<std::uint32_t>& rows = column->rows[static_cast<std::size_t>(now)];
  column->place_of[row] = static_cast<std::uint32_t>(rows.size());
  rows.push_back(row);
}

const std::vector<std::uint32_t>& RescorerDomains::rows_of(std::uint32_t column,
                                                           std::uint32_t domain) {
  std::unique_ptr<Column>& kept = columns_[column];
  if (!kept) {
    const std::uint32_t capacity = table_.header->capacity;
    kept = std::make_unique<Column>();
    kept->domain_of.assign(capacity, -1);
    kept->place_of.resize(capacity);
    kept->rows.resize(capacity);
    for (std::uint32_t row = 0; row < table_.header->rows; row++) put(column, kept.get(), row);
  }
  return kept->rows[domain];
}

void RescorerDomains::row_changed(std::uint32_t row) {
  for (std::uint32_t i = 0; i < table_.header->n_domains; i++)
    if (columns_[i]) put(i, columns_[i].get(), row);
}

void RescorerDomains::clear() {
  for (std::unique_ptr<Column>& column : columns_) column.reset();
}

}  // namespace penstock
