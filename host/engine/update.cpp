#include "penstock/engine/update.h"

#include <memory>
#include <new>

#include "penstock/descriptor/descriptor.h"

namespace penstock {
namespace {

// Where an int64 cell of the table is and what it may hold.
struct Cells {
  std::int64_t* base;
  std::uint32_t columns;
  std::int64_t min;
  std::int64_t max;
};

Cells cells_of(const TableView& table, std::uint32_t field) {
  const penstock_node_table& header = *table.header;
  switch (field) {
    case PENSTOCK_UPDATE_ALLOCATABLE:
      return {table.allocatable, header.n_resources, 0, PENSTOCK_MAX_QUANTITY};
    case PENSTOCK_UPDATE_REQUESTED:
      return {table.requested, header.n_resources, 0, PENSTOCK_MAX_QUANTITY};
    case PENSTOCK_UPDATE_SCORED:
      return {table.scored, header.n_resources, 0, PENSTOCK_MAX_QUANTITY};
    case PENSTOCK_UPDATE_GPU:
      return {table.gpu, header.n_gpus, 0, 1000};
    case PENSTOCK_UPDATE_FREE:
      return {table.free, header.n_free, -PENSTOCK_MAX_FREE_VALUE, PENSTOCK_MAX_FREE_VALUE};
  }
  return {nullptr, 0, 0, 0};
}

// What can be said of an update without looking at a cell.
std::uint32_t check(const TableView& table, const penstock_update& update) {
  const penstock_node_table& header = *table.header;
  if (update.reserved != 0 || update.mode > PENSTOCK_UPDATE_ADD) return PENSTOCK_INVALID_ARGUMENT;
  if (update.field == PENSTOCK_UPDATE_ROWS) {
    if (update.mode != PENSTOCK_UPDATE_SET || update.column != 0 || update.row != 0)
      return PENSTOCK_INVALID_ARGUMENT;
    return update.value >= 0 && update.value <= header.capacity ? PENSTOCK_OK
                                                                : PENSTOCK_OUT_OF_RANGE;
  }
  if (update.row >= header.capacity) return PENSTOCK_INVALID_ARGUMENT;
  if (update.field == PENSTOCK_UPDATE_BIT) {
    if (update.mode != PENSTOCK_UPDATE_SET || update.column >= header.n_bits)
      return PENSTOCK_INVALID_ARGUMENT;
    return update.value == 0 || update.value == 1 ? PENSTOCK_OK : PENSTOCK_OUT_OF_RANGE;
  }
  const Cells cells = cells_of(table, update.field);
  if (update.column >= cells.columns) return PENSTOCK_INVALID_ARGUMENT;
  if (update.mode == PENSTOCK_UPDATE_SET && (update.value < cells.min || update.value > cells.max))
    return PENSTOCK_OUT_OF_RANGE;
  return PENSTOCK_OK;
}

std::int64_t read(const TableView& table, const penstock_update& update) {
  if (update.field == PENSTOCK_UPDATE_ROWS) return table.header->rows;
  if (update.field == PENSTOCK_UPDATE_BIT)
    return (table.bit_column(update.column)[update.row / 64] >> (update.row % 64)) & 1;
  return table.column(cells_of(table, update.field).base, update.column)[update.row];
}

void write(const TableView& table, const penstock_update& update, std::int64_t value) {
  if (update.field == PENSTOCK_UPDATE_ROWS) {
    table.header->rows = static_cast<std::uint32_t>(value);
  } else if (update.field == PENSTOCK_UPDATE_BIT) {
    std::uint64_t& word = table.bit_column(update.column)[update.row / 64];
    const std::uint64_t mask = std::uint64_t{1} << (update.row % 64);
    word = value != 0 ? word | mask : word & ~mask;
  } else {
    table.column(cells_of(table, update.field).base, update.column)[update.row] = value;
  }
}

// Only ADD depends on what the cell holds. False when the sum is out of the cell's bounds.
bool new_value(const TableView& table, const penstock_update& update, std::int64_t old_value,
               std::int64_t* value) {
  if (update.mode == PENSTOCK_UPDATE_SET) {
    *value = update.value;
    return true;
  }
  const Cells cells = cells_of(table, update.field);
  return !__builtin_add_overflow(old_value, update.value, value) && *value >= cells.min &&
         *value <= cells.max;
}

}  // namespace

std::uint32_t apply_updates(const TableView& table, const penstock_update* updates, std::uint64_t n,
                            std::uint64_t* bad_index) {
  *bad_index = 0;
  bool adds = false;
  for (std::uint64_t i = 0; i < n; i++) {
    if (const std::uint32_t status = check(table, updates[i]); status != PENSTOCK_OK) {
      *bad_index = i;
      return status;
    }
    adds = adds || updates[i].mode == PENSTOCK_UPDATE_ADD;
  }

  // From here on only an ADD can fail, and then what came before it is taken back in reverse.
  std::unique_ptr<std::int64_t[]> old_values;
  if (adds) {
    old_values.reset(new (std::nothrow) std::int64_t[n]);
    if (!old_values) return PENSTOCK_NO_SPACE;
  }
  for (std::uint64_t i = 0; i < n; i++) {
    const std::int64_t old_value = read(table, updates[i]);
    std::int64_t value = 0;
    if (!new_value(table, updates[i], old_value, &value)) {
      for (std::uint64_t j = i; j-- > 0;) write(table, updates[j], old_values[j]);
      *bad_index = i;
      return PENSTOCK_OUT_OF_RANGE;
    }
    if (adds) old_values[i] = old_value;
    write(table, updates[i], value);
  }
  table.header->generation++;
  return PENSTOCK_OK;
}

}  // namespace penstock
