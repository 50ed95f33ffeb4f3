// What a placement does to a row's cells, and how it is taken back.
#include <algorithm>
#include <iterator>

#include "penstock/descriptor/descriptor.h"
#include "penstock/engine/scalar_select.h"

namespace penstock {
namespace {

// The counts that a task raises on a row; a cell stands here once for every raise of it.
struct Raised {
  std::int32_t* cell[PENSTOCK_MAX_RAISES];
  std::uint32_t n = 0;
};

Raised raised_counts(const TableView& table, const penstock_task& task, std::uint32_t row) {
  Raised raised;
  for (std::uint32_t i = 0; i < task.n_raises; i++) {
    const penstock_raise& raise = task.raises[i];
    const std::uint64_t word = table.bit_column(raise.eligible)[row / 64];
    if (raise.eligible != 0 && ((word >> (row % 64)) & 1) == 0) continue;
    const std::int32_t domain = table.domain_of(raise.domain, row);
    if (domain >= 0) raised.cell[raised.n++] = table.count_column(raise.count) + domain;
  }
  return raised;
}

// Whether every cell that the task changes stays in its bounds, and the row has the GPUs. `sign` is
// 1 to place the task, -1 to take it back.
bool change_fits(const TableView& table, const penstock_task& task, std::uint32_t row,
                 std::uint32_t gpu_mask, const Raised& raised, int sign) {
  const auto stays = [sign](std::int64_t cell, std::int64_t by, std::int64_t least,
                            std::int64_t most) {
    return cell >= least && cell <= most && (sign > 0 ? cell <= most - by : cell >= least + by);
  };
  for (std::uint32_t r = 0; r < table.header->n_resources; r++) {
    if (!stays(table.column(table.requested, r)[row], task.request[r], 0, PENSTOCK_MAX_QUANTITY) ||
        !stays(table.column(table.scored, r)[row], task.scored_request[r], 0,
               PENSTOCK_MAX_QUANTITY))
      return false;
  }
  if (static_cast<std::uint32_t>(__builtin_popcount(gpu_mask)) != task.gpu_count) return false;
  if ((gpu_mask >> table.header->n_gpus) != 0) return false;
  for (std::uint32_t s = 0; s < table.header->n_gpus; s++) {
    if (((gpu_mask >> s) & 1) == 0) continue;
    const std::int64_t cell = table.column(table.gpu, s)[row];
    if (cell < 0 || cell > 1000) return false;
    const std::int64_t after = cell - sign * std::int64_t{task.gpu_milli};
    if (after < 0 || after > 1000) return false;
  }
  for (const std::uint16_t column : task.count) {
    if (column == 0) continue;
    const auto mentions = std::count(std::begin(task.count), std::end(task.count), column);
    if (!stays(table.column(table.free, column - 1u)[row], mentions, -PENSTOCK_MAX_FREE_VALUE,
               PENSTOCK_MAX_FREE_VALUE))
      return false;
  }
  for (std::uint32_t i = 0; i < raised.n; i++) {
    const auto mentions = std::count(raised.cell, raised.cell + raised.n, raised.cell[i]);
    if (!stays(*raised.cell[i], mentions, 0, PENSTOCK_MAX_DOMAIN_COUNT)) return false;
  }
  return true;
}

std::uint32_t change(const TableView& table, const penstock_task& task, std::uint32_t row,
                     std::uint32_t gpu_mask, int sign) {
  const Raised raised = raised_counts(table, task, row);
  if (!change_fits(table, task, row, gpu_mask, raised, sign)) return PENSTOCK_OUT_OF_RANGE;
  for (std::uint32_t r = 0; r < table.header->n_resources; r++) {
    table.column(table.requested, r)[row] += sign * task.request[r];
    table.column(table.scored, r)[row] += sign * task.scored_request[r];
  }
  for (std::uint32_t s = 0; s < table.header->n_gpus; s++)
    if ((gpu_mask >> s) & 1) table.column(table.gpu, s)[row] -= sign * std::int64_t{task.gpu_milli};
  for (const std::uint16_t column : task.count)
    if (column != 0) table.column(table.free, column - 1u)[row] += sign;
  for (std::uint32_t i = 0; i < raised.n; i++) *raised.cell[i] += sign;
  table.header->generation++;
  return PENSTOCK_OK;
}

}  // namespace

std::uint32_t scalar_commit(const TableView& table, const penstock_task& task, std::uint32_t row,
                            std::uint32_t gpu_mask) {
  const std::uint32_t status = change(table, task, row, gpu_mask, 1);
  if (status != PENSTOCK_OK) return status;
  for (const std::uint16_t column : task.set_bits)
    if (column != 0) table.bit_column(column)[row / 64] |= std::uint64_t{1} << (row % 64);
  return PENSTOCK_OK;
}

std::uint32_t scalar_release(const TableView& table, const penstock_task& task, std::uint32_t row,
                             std::uint32_t gpu_mask) {
  return change(table, task, row, gpu_mask, -1);
}

}  // namespace penstock
