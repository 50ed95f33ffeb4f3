#include "penstock/engine/update.h"

#include <atomic>
#include <memory>
#include <new>

#include "penstock/descriptor/descriptor.h"

namespace penstock {
namespace {

// Where a field's cells are and what one may hold. Those of domains and counts are int32.
struct Cells {
  std::uint32_t columns;
  std::int64_t min;
  std::int64_t max;
};

Cells cells_of(const penstock_node_table& header, std::uint32_t field) {
  switch (field) {
    case PENSTOCK_UPDATE_ALLOCATABLE:
    case PENSTOCK_UPDATE_REQUESTED:
    case PENSTOCK_UPDATE_SCORED:
      return {header.n_resources, 0, PENSTOCK_MAX_QUANTITY};
    case PENSTOCK_UPDATE_GPU:
      return {header.n_gpus, 0, 1000};
    case PENSTOCK_UPDATE_FREE:
      return {header.n_free, -PENSTOCK_MAX_FREE_VALUE, PENSTOCK_MAX_FREE_VALUE};
    case PENSTOCK_UPDATE_DOMAIN:
      return {header.n_domains, -1, std::int64_t{header.capacity} - 1};
    case PENSTOCK_UPDATE_COUNT:
      return {header.n_counts, 0, PENSTOCK_MAX_DOMAIN_COUNT};
    default:
      return {0, 0, 0};
  }
}

// Of a field with int64 cells; null for any other.
std::int64_t* base_of(const TableView& table, std::uint32_t field) {
  switch (field) {
    case PENSTOCK_UPDATE_ALLOCATABLE:
      return table.allocatable;
    case PENSTOCK_UPDATE_REQUESTED:
      return table.requested;
    case PENSTOCK_UPDATE_SCORED:
      return table.scored;
    case PENSTOCK_UPDATE_GPU:
      return table.gpu;
    case PENSTOCK_UPDATE_FREE:
      return table.free;
    default:
      return nullptr;
  }
}

// The cell of a DOMAIN or COUNT, null for any other field.
std::int32_t* small_cell(const TableView& table, const penstock_update& update) {
  if (update.field == PENSTOCK_UPDATE_DOMAIN)
    return table.domain_column(update.column) + update.row;
  if (update.field == PENSTOCK_UPDATE_COUNT) return table.count_column(update.column) + update.row;
  return nullptr;
}

// The list may lie in memory that another process writes. What is used is what was checked: the
// fence keeps the compiler from reading the original again.
penstock_update private_copy(const penstock_update& update) {
  const penstock_update copy = update;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  return copy;
}

std::int64_t read(const TableView& table, const penstock_update& update) {
  if (update.field == PENSTOCK_UPDATE_ROWS) return table.header->rows;
  if (update.field == PENSTOCK_UPDATE_BIT)
    return (table.bit_column(update.column)[update.row / 64] >> (update.row % 64)) & 1;
  if (const std::int32_t* cell = small_cell(table, update)) return *cell;
  return table.column(base_of(table, update.field), update.column)[update.row];
}

void write(const TableView& table, const penstock_update& update, std::int64_t value) {
  if (update.field == PENSTOCK_UPDATE_ROWS) {
    table.header->rows = static_cast<std::uint32_t>(value);
  } else if (update.field == PENSTOCK_UPDATE_BIT) {
    std::uint64_t& word = table.bit_column(update.column)[update.row / 64];
    const std::uint64_t mask = std::uint64_t{1} << (update.row % 64);
    word = value != 0 ? word | mask : word & ~mask;
  } else if (std::int32_t* cell = small_cell(table, update)) {
    *cell = static_cast<std::int32_t>(value);
  } else {
    table.column(base_of(table, update.field), update.column)[update.row] = value;
  }
}

// Only ADD depends on what the cell holds. False when the sum is out of the cell's bounds.
bool new_value(const TableView& table, const penstock_update& update, std::int64_t old_value,
               std::int64_t* value) {
  if (update.mode == PENSTOCK_UPDATE_SET) {
    *value = update.value;
    return true;
  }
  const Cells cells = cells_of(*table.header, update.field);
  return !__builtin_add_overflow(old_value, update.value, value) && *value >= cells.min &&
         *value <= cells.max;
}

}  // namespace

std::uint32_t check_update(const penstock_node_table& header, const penstock_update& update) {
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
  const Cells cells = cells_of(header, update.field);
  if (update.column >= cells.columns) return PENSTOCK_INVALID_ARGUMENT;
  if (update.field == PENSTOCK_UPDATE_DOMAIN && update.mode != PENSTOCK_UPDATE_SET)
    return PENSTOCK_INVALID_ARGUMENT;
  if (update.mode == PENSTOCK_UPDATE_SET && (update.value < cells.min || update.value > cells.max))
    return PENSTOCK_OUT_OF_RANGE;
  return PENSTOCK_OK;
}

std::uint32_t apply_updates(const TableView& table, const penstock_update* updates, std::uint64_t n,
                            std::uint64_t* bad_index) {
  *bad_index = 0;
  for (std::uint64_t i = 0; i < n; i++) {
    if (const std::uint32_t status = check_update(*table.header, private_copy(updates[i]));
        status != PENSTOCK_OK) {
      *bad_index = i;
      return status;
    }
  }

  // From here on an ADD can fail, and an entry that was rewritten meanwhile; then what came before
  // is taken back in reverse.
  const std::unique_ptr<penstock_update[]> undo(new (std::nothrow) penstock_update[n]);
  if (!undo) return PENSTOCK_NO_SPACE;
  for (std::uint64_t i = 0; i < n; i++) {
    const penstock_update update = private_copy(updates[i]);
    std::uint32_t status = check_update(*table.header, update);
    if (status == PENSTOCK_OK) {
      undo[i] = update;
      undo[i].value = read(table, update);
      std::int64_t value = 0;
      if (new_value(table, update, undo[i].value, &value)) {
        write(table, update, value);
        continue;
      }
      status = PENSTOCK_OUT_OF_RANGE;
    }
    for (std::uint64_t j = i; j-- > 0;) write(table, undo[j], undo[j].value);
    *bad_index = i;
    return status;
  }
  table.header->generation++;
  return PENSTOCK_OK;
}

}  // namespace penstock
