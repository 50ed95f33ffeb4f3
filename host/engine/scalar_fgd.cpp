#include "penstock/engine/scalar_fgd.h"

#include <algorithm>

namespace penstock {
namespace {

bool can_run(const TableView& table, const penstock_typical& typical, const FgdRow& state,
             std::uint32_t row) {
  if (typical.gpu_count == 0 || typical.request > state.left) return false;
  const std::uint64_t models = table.bit_column(typical.model)[row / 64];
  if (typical.model != 0 && ((models >> (row % 64)) & 1) == 0) return false;
  std::uint32_t fitting = 0;
  for (std::uint32_t s = 0; s < state.n_gpus; s++)
    fitting += state.free_milli[s] >= static_cast<std::int32_t>(typical.gpu_milli);
  return fitting >= typical.gpu_count;
}

std::int64_t fragmentation(const TableView& table, const penstock_program& program,
                           const FgdRow& state, std::uint32_t row) {
  std::int64_t sum = 0;
  for (std::uint32_t i = 0; i < program.n_typical; i++) {
    const penstock_typical& typical = program.typical[i];
    const bool runs = can_run(table, typical, state, row);
    std::int64_t lost = 0;
    for (std::uint32_t s = 0; s < state.n_gpus; s++)
      if (!runs || state.free_milli[s] < static_cast<std::int32_t>(typical.gpu_milli))
        lost += state.free_milli[s];
    sum += typical.weight * lost;
  }
  return sum;
}

}  // namespace

FgdRow fgd_row(const TableView& table, const penstock_column_op& op, std::uint32_t row) {
  const auto quantity = [&](std::int64_t* base) {
    return std::clamp<std::int64_t>(table.column(base, op.column[0])[row], 0,
                                    PENSTOCK_MAX_QUANTITY);
  };
  FgdRow state;
  state.left = quantity(table.allocatable) - quantity(table.requested);
  state.n_gpus = table.header->n_gpus;
  for (std::uint32_t s = 0; s < state.n_gpus; s++)
    state.free_milli[s] = static_cast<std::int32_t>(
        std::clamp<std::int64_t>(table.column(table.gpu, s)[row], 0, 1000));
  return state;
}

std::int64_t fgd_score_of(const penstock_program& program, std::int64_t d) {
  const std::int64_t* end = program.threshold + PENSTOCK_FGD_THRESHOLDS;
  return std::upper_bound(program.threshold, end, d) - program.threshold;
}

std::int64_t scalar_fgd_score(const TableView& table, const penstock_program& program,
                              const penstock_column_op& op, const penstock_task& task,
                              std::uint32_t row, std::uint32_t* gpu_mask) {
  return fgd_best(program, op, task, fgd_row(table, op, row), gpu_mask,
                  [&](const FgdRow& state) { return fragmentation(table, program, state, row); });
}

}  // namespace penstock
