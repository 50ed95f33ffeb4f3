/* What follows the choice: the result, and the task's place on the winner's row. By one group. */
#ifndef PENSTOCK_DRIVERS_KERNELS_SELECT_COMMIT_H_
#define PENSTOCK_DRIVERS_KERNELS_SELECT_COMMIT_H_

#include "penstock/drivers/kernels/select_passes.h"

PENSTOCK_KERNELS_BEGIN

/* ---- the result ---- */

PENSTOCK_FUNCTION void select_gather_feasible(const select_state* s, u32 lane) {
  const PENSTOCK_GLOBAL select_partial* partials = select_partials(s);
  u32 n = 0;
  for (u32 group = lane; group < s->batch->groups; group += s->lanes) n += partials[group].feasible;
  select_set_slot(s, lane, 0, 0, n, 0);
}

/* `best` holds program.best places, with row -1 where there is none. */
PENSTOCK_FUNCTION void select_write_result(const select_state* s,
                                           const PENSTOCK_GLOBAL select_best* best, u32 lane) {
  PENSTOCK_GLOBAL select_result* result = s->result;
  if (lane != 0) return;
  u32 n = 0;
  for (u32 i = 0; i < SELECT_MAX_BEST; i++) {
    const u32 there = i < s->program->best && best[i].row >= 0;
    result->best[i].row = there ? best[i].row : 0;
    result->best[i].reserved = 0;
    result->best[i].score = there ? best[i].score : 0;
    n += there;
  }
  result->status = n == 0 ? SELECT_NOT_FOUND : SELECT_OK;
  result->row = n == 0 ? -1 : best[0].row;
  result->score = n == 0 ? 0 : best[0].score;
  result->feasible = s->shared->n[0];
  result->gpu_mask = n == 0 ? 0 : select_pick_gpus(s, (u32)best[0].row);
  result->n_best = n;
  result->reserved = 0;
}

/* ---- commit: every change is an item; all are looked at before one is made ---- */

#define SELECT_FIRST_GPU SELECT_MAX_RESOURCES
#define SELECT_FIRST_COUNT (SELECT_FIRST_GPU + SELECT_MAX_GPUS)
#define SELECT_FIRST_RAISE (SELECT_FIRST_COUNT + 4)
#define SELECT_CHANGES (SELECT_FIRST_RAISE + SELECT_MAX_RAISES)

/* The count cells that the task raises on the row. */
PENSTOCK_FUNCTION void select_find_raises(const select_state* s, u32 row, u32 lane) {
  PENSTOCK_GLOBAL i64* raised = select_context_of(s)->raised;
  for (u32 i = lane; i < SELECT_MAX_RAISES; i += s->lanes) {
    const PENSTOCK_GLOBAL select_raise* raise = &s->task->raises[i];
    i64 cell = -1;
    if (i < s->task->n_raises && (raise->eligible == 0 || select_bit(s, raise->eligible, row))) {
      const i32 domain = select_domain_of(s, raise->domain, row);
      if (domain >= 0) cell = (i64)raise->count * s->batch->table.capacity + domain;
    }
    raised[i] = cell;
  }
}

PENSTOCK_FUNCTION u32 select_stays(i64 cell, i64 by, i64 least, i64 most) {
  return cell >= least && cell <= most && cell <= most - by;
}

/* How often the free column at `i` is mentioned; 0 if it was mentioned before, or is none. */
PENSTOCK_FUNCTION u32 select_mentions(const select_state* s, u32 i) {
  const u32 column = s->task->count[i];
  u32 n = 0;
  for (u32 j = 0; j < 4 && column != 0; j++) {
    if (s->task->count[j] != column) continue;
    if (j < i) return 0;
    n++;
  }
  return n;
}
/* The same of raised cells. */
PENSTOCK_FUNCTION u32 select_raises_of(const select_state* s, u32 i) {
  const PENSTOCK_GLOBAL i64* raised = select_context_of(s)->raised;
  u32 n = 0;
  for (u32 j = 0; j < SELECT_MAX_RAISES && raised[i] >= 0; j++) {
    if (raised[j] != raised[i]) continue;
    if (j < i) return 0;
    n++;
  }
  return n;
}

/* Makes one of the changes, or (`apply` 0) says whether it keeps its cells within their bounds. */
PENSTOCK_FUNCTION u32 select_change(const select_state* s, u32 row, u32 item, u32 apply) {
  const PENSTOCK_GLOBAL select_table* table = &s->batch->table;
  if (item < SELECT_FIRST_GPU) {
    if (item >= table->n_resources) return 1;
    PENSTOCK_GLOBAL i64* requested = select_cell(s, table->requested, item, row);
    PENSTOCK_GLOBAL i64* scored = select_cell(s, table->scored, item, row);
    if (!apply)
      return select_stays(*requested, s->task->request[item], 0, SELECT_MAX_QUANTITY) &&
             select_stays(*scored, s->task->scored_request[item], 0, SELECT_MAX_QUANTITY);
    *requested += s->task->request[item];
    *scored += s->task->scored_request[item];
  } else if (item < SELECT_FIRST_COUNT) {
    const u32 gpu = item - SELECT_FIRST_GPU;
    if (((s->result->gpu_mask >> gpu) & 1) == 0) return 1;
    PENSTOCK_GLOBAL i64* cell = select_cell(s, table->gpu, gpu, row);
    if (!apply) return *cell >= (i64)s->task->gpu_milli && *cell <= 1000;
    *cell -= s->task->gpu_milli;
  } else if (item < SELECT_FIRST_RAISE) {
    const u32 i = item - SELECT_FIRST_COUNT;
    const u32 n = select_mentions(s, i);
    if (n == 0) return 1;
    PENSTOCK_GLOBAL i64* cell = select_cell(s, table->free, s->task->count[i] - 1u, row);
    if (!apply) return select_stays(*cell, n, -SELECT_MAX_FREE_VALUE, SELECT_MAX_FREE_VALUE);
    *cell += n;
  } else {
    const u32 i = item - SELECT_FIRST_RAISE;
    const u32 n = select_raises_of(s, i);
    if (n == 0) return 1;
    PENSTOCK_GLOBAL i32* cell =
        (PENSTOCK_GLOBAL i32*)(s->table + table->count) + select_context_of(s)->raised[i];
    if (!apply) return select_stays(*cell, n, 0, SELECT_MAX_DOMAIN_COUNT);
    *cell += (i32)n;
  }
  return 1;
}

PENSTOCK_FUNCTION void select_check_changes(const select_state* s, u32 row, u32 lane) {
  u32 fails = ones_u64(s->result->gpu_mask) != s->task->gpu_count;
  for (u32 item = lane; item < SELECT_CHANGES; item += s->lanes)
    fails |= !select_change(s, row, item, 0);
  select_set_slot(s, lane, 0, 0, 0, fails);
}

PENSTOCK_FUNCTION void select_make_changes(const select_state* s, u32 row, u32 lane) {
  for (u32 item = lane; item < SELECT_CHANGES; item += s->lanes) select_change(s, row, item, 1);
}

PENSTOCK_FUNCTION void select_set_bits(const select_state* s, u32 row, u32 lane) {
  if (lane != 0) return;
  for (u32 i = 0; i < 8; i++)
    if (s->task->set_bits[i] != 0)
      *select_word(s, s->task->set_bits[i], row) |= (u64)1 << (row % 64);
}

PENSTOCK_FUNCTION void select_refuse(const select_state* s, u32 lane) {
  if (lane == 0) s->result->status = SELECT_OUT_OF_RANGE;
}

PENSTOCK_FUNCTION void select_commit(const select_state* s, u32 row) {
  PENSTOCK_PHASE(select_find_raises(s, row, lane));
  PENSTOCK_PHASE(select_check_changes(s, row, lane));
  select_fold(s);
  if (s->shared->flag[0]) {
    PENSTOCK_PHASE(select_refuse(s, lane));
  } else {
    PENSTOCK_PHASE(select_make_changes(s, row, lane));
    PENSTOCK_PHASE(select_set_bits(s, row, lane));
  }
}

/* Merges what the groups chose where there are more than one, writes the result and commits. */
PENSTOCK_FUNCTION void select_finish(const select_state* s) {
  PENSTOCK_GLOBAL select_best* best = select_chosen(s);
  if (s->batch->groups > 1) {
    best += (u64)s->batch->groups * SELECT_MAX_BEST;
    select_choose(s, 1, best);
  }
  PENSTOCK_PHASE(select_gather_feasible(s, lane));
  select_fold(s);
  PENSTOCK_PHASE(select_write_result(s, best, lane));
  if (s->batch->commit && best[0].row >= 0) select_commit(s, (u32)best[0].row);
}

PENSTOCK_KERNELS_END
#endif
