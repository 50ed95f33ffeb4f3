/* A row's GPUs: which of them fit a task, in what order they are taken, and FGD's score. */
#ifndef PENSTOCK_DRIVERS_KERNELS_SELECT_GPUS_H_
#define PENSTOCK_DRIVERS_KERNELS_SELECT_GPUS_H_

#include "penstock/drivers/kernels/select_state.h"

PENSTOCK_KERNELS_BEGIN

typedef struct {
  u32 n;
  u32 index[SELECT_MAX_GPUS];
  i32 free_milli[SELECT_MAX_GPUS];
} select_fitting;

/* Whether GPU a stands before b, which has the lower index, by the pick (not FGD's). */
PENSTOCK_FUNCTION u32 select_gpu_before(const select_state* s, u32 pick, u32 a, i32 a_free, u32 b,
                                        i32 b_free) {
  if (pick == SELECT_GPU_LEAST_FREE) return a_free < b_free;
  if (pick != SELECT_GPU_HASH) return 0;
  return select_tie_hash(s->program->seed, ~s->task->tie, a) >
         select_tie_hash(s->program->seed, ~s->task->tie, b);
}

/* The GPUs that have room for one of the task's, in the order of the pick. */
PENSTOCK_FUNCTION select_fitting select_fitting_gpus(const select_state* s, u32 pick, u32 row) {
  select_fitting fitting;
  fitting.n = 0;
  for (u32 gpu = 0; gpu < s->batch->table.n_gpus; gpu++) {
    const i32 free_milli = (i32)select_gpu_free(s, gpu, row);
    if (free_milli < (i32)s->task->gpu_milli) continue;
    u32 at = fitting.n++;
    for (; at > 0 && select_gpu_before(s, pick, gpu, free_milli, fitting.index[at - 1],
                                       fitting.free_milli[at - 1]);
         at--) {
      fitting.index[at] = fitting.index[at - 1];
      fitting.free_milli[at] = fitting.free_milli[at - 1];
    }
    fitting.index[at] = gpu;
    fitting.free_milli[at] = free_milli;
  }
  return fitting;
}

PENSTOCK_FUNCTION i64 select_total_gpu_free(const select_state* s, u32 row) {
  i64 total = 0;
  for (u32 gpu = 0; gpu < s->batch->table.n_gpus; gpu++) total += select_gpu_free(s, gpu, row);
  return total;
}

PENSTOCK_FUNCTION i64 select_gpu_packing(const select_state* s, const PENSTOCK_GLOBAL select_op* op,
                                         u32 row) {
  const i64 total = select_total_gpu_free(s, row);
  if (total > 0 && total == select_quantity(s, s->batch->table.allocatable, op->column[0], row)) {
    const i64 gpus = total / 1000;
    return gpus > 33 - gpus ? gpus : 33 - gpus;
  }
  const select_fitting fitting = select_fitting_gpus(s, SELECT_GPU_LEAST_FREE, row);
  if (fitting.n < s->task->gpu_count) return 0;
  i64 entirely_free = 0;
  i64 percents = 0;
  for (u32 i = 0; i < s->task->gpu_count; i++) {
    entirely_free += fitting.free_milli[i] == 1000;
    percents += fitting.free_milli[i] / 10;
  }
  if (entirely_free > 0) return entirely_free < 17 ? 50 - entirely_free : 33;
  return percents < 500 ? 100 - percents / 10 : 50;
}

PENSTOCK_FUNCTION i64 select_gpu_clustering(const select_state* s,
                                            const PENSTOCK_GLOBAL select_op* op, u32 row) {
  u32 own = 0;
  u32 others = 0;
  for (u32 j = 0; j < op->n; j++) {
    const u32 there = select_free_value(s, op->column[j], row) > 0;
    if (j == s->task->klass)
      own |= there;
    else
      others |= there;
  }
  const i64 used = 25 * (op->scale[0] - select_total_gpu_free(s, row)) / op->scale[0];
  if (own) return used + (others ? 50 : 75);
  return used + (others ? 0 : 25);
}

/* ---- FGD ---- */

typedef struct {
  i64 left;
  i32 free_milli[SELECT_MAX_GPUS];
} select_fgd_row;

PENSTOCK_FUNCTION u32 select_fgd_runs(const select_state* s,
                                      const PENSTOCK_GLOBAL select_typical* typical,
                                      const select_fgd_row* state, u32 row) {
  if (typical->gpu_count == 0 || typical->request > state->left) return 0;
  if (typical->model != 0 && !select_bit(s, typical->model, row)) return 0;
  u32 fitting = 0;
  for (u32 gpu = 0; gpu < s->batch->table.n_gpus; gpu++)
    fitting += state->free_milli[gpu] >= (i32)typical->gpu_milli;
  return fitting >= typical->gpu_count;
}

PENSTOCK_FUNCTION i64 select_fgd_fragmentation(const select_state* s, const select_fgd_row* state,
                                               u32 row) {
  i64 sum = 0;
  for (u32 i = 0; i < s->program->n_typical; i++) {
    const PENSTOCK_GLOBAL select_typical* typical = &s->program->typical[i];
    const u32 runs = select_fgd_runs(s, typical, state, row);
    i64 lost = 0;
    for (u32 gpu = 0; gpu < s->batch->table.n_gpus; gpu++)
      if (!runs || state->free_milli[gpu] < (i32)typical->gpu_milli) lost += state->free_milli[gpu];
    sum += typical->weight * lost;
  }
  return sum;
}

/* How many thresholds are at most d; they do not fall. */
PENSTOCK_FUNCTION i64 select_fgd_score_of(const select_state* s, i64 d) {
  u32 low = 0;
  u32 high = SELECT_THRESHOLDS;
  while (low < high) {
    const u32 middle = (low + high) / 2;
    if (s->program->threshold[middle] <= d)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

/* *mask gets the GPUs that the score is about: fewer than gpu_count if not enough fit. */
PENSTOCK_FUNCTION i64 select_fgd(const select_state* s, const PENSTOCK_GLOBAL select_op* op,
                                 u32 row, u32* mask) {
  const u32 n_gpus = s->batch->table.n_gpus;
  const u32 shares = s->task->gpu_count == 1 && s->task->gpu_milli < 1000;
  const i32 milli = (i32)s->task->gpu_milli;
  select_fgd_row state;
  state.left = select_left(s, op->column[0], row);
  for (u32 gpu = 0; gpu < n_gpus; gpu++) state.free_milli[gpu] = (i32)select_gpu_free(s, gpu, row);
  const i64 before = select_fgd_fragmentation(s, &state, row);
  state.left -= s->task->request[op->column[0]];
  i64 best = -1;
  u32 taken = 0;
  *mask = 0;
  for (u32 gpu = 0; gpu < n_gpus && (shares || taken < s->task->gpu_count); gpu++) {
    if (state.free_milli[gpu] < milli) continue;
    state.free_milli[gpu] -= milli;
    if (!shares) {
      *mask |= 1u << gpu;
      taken++;
      continue;
    }
    const i64 score = select_fgd_score_of(s, before - select_fgd_fragmentation(s, &state, row));
    if (score > best) {
      best = score;
      *mask = 1u << gpu;
    }
    state.free_milli[gpu] += milli;
  }
  if (shares) return best < 0 ? 0 : best;
  if (taken < s->task->gpu_count) return 0;
  return select_fgd_score_of(s, before - select_fgd_fragmentation(s, &state, row));
}

/* The GPUs of the row that the task takes, as a mask. Fewer than gpu_count if not enough fit. */
PENSTOCK_FUNCTION u32 select_pick_gpus(const select_state* s, u32 row) {
  u32 mask = 0;
  if (s->task->gpu_count == 0) return 0;
  if (s->program->gpu_pick == SELECT_GPU_FGD) {
    u32 i = 0;
    while (s->program->ops[i].op != SELECT_SCORE_FGD) i++;
    select_fgd(s, &s->program->ops[i], row, &mask);
    return mask;
  }
  const select_fitting fitting = select_fitting_gpus(s, s->program->gpu_pick, row);
  for (u32 i = 0; i < fitting.n && i < s->task->gpu_count; i++) mask |= 1u << fitting.index[i];
  return mask;
}

PENSTOCK_KERNELS_END
#endif
