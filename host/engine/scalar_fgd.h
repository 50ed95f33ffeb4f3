// SCORE_FGD as node_table.h defines it.
#ifndef PENSTOCK_ENGINE_SCALAR_FGD_H_
#define PENSTOCK_ENGINE_SCALAR_FGD_H_

#include <cstdint>

#include "penstock/engine/host_engine.h"

namespace penstock {

// What a row is to FGD: what is free on its GPUs and of the resource that limits typical tasks.
struct FgdRow {
  std::int64_t left = 0;
  std::uint32_t n_gpus = 0;
  std::int32_t free_milli[PENSTOCK_MAX_GPUS] = {};
};
FgdRow fgd_row(const TableView& table, const penstock_column_op& op, std::uint32_t row);

// Wants what scalar_score wants. *gpu_mask (may be null) gets the GPUs that the score is about:
// those that the task takes, fewer than gpu_count if not enough fit.
std::int64_t scalar_fgd_score(const TableView& table, const penstock_program& program,
                              const penstock_column_op& op, const penstock_task& task,
                              std::uint32_t row, std::uint32_t* gpu_mask);

// How many thresholds of the program are at most d.
std::int64_t fgd_score_of(const penstock_program& program, std::int64_t d);

inline bool shares_a_gpu(const penstock_task& task) {
  return task.gpu_count == 1 && task.gpu_milli < 1000;
}

// The score of a placement, for every way to compute F: `fragmentation` (of an FgdRow) gives it.
// This is the loop over the GPUs that a task may take.
template <typename Fragmentation>
std::int64_t fgd_best(const penstock_program& program, const penstock_column_op& op,
                      const penstock_task& task, FgdRow row, std::uint32_t* gpu_mask,
                      Fragmentation fragmentation) {
  const std::int64_t before = fragmentation(row);
  row.left -= task.request[op.column[0]];
  const auto milli = static_cast<std::int32_t>(task.gpu_milli);
  std::int64_t best = -1;
  std::uint32_t mask = 0;
  std::uint32_t taken = 0;
  for (std::uint32_t s = 0; s < row.n_gpus && (shares_a_gpu(task) || taken < task.gpu_count); s++) {
    if (row.free_milli[s] < milli) continue;
    row.free_milli[s] -= milli;
    if (!shares_a_gpu(task)) {
      mask |= 1u << s;
      taken++;
      continue;
    }
    const std::int64_t score = fgd_score_of(program, before - fragmentation(row));
    if (score > best) {
      best = score;
      mask = 1u << s;
    }
    row.free_milli[s] += milli;
  }
  if (gpu_mask != nullptr) *gpu_mask = mask;
  if (shares_a_gpu(task)) return best < 0 ? 0 : best;
  if (taken < task.gpu_count) return 0;
  return fgd_score_of(program, before - fragmentation(row));
}

}  // namespace penstock
#endif
