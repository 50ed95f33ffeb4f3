/* What a group knows while it works on one task, and how its lanes go together.
 *
 * A kernel is a sequence of phases: in a phase every lane runs the same function once, and what
 * lanes tell each other passes through memory from one phase to the next. Nothing that belongs to a
 * lane lives longer than a phase. What stands between phases is the same for all lanes, and reads
 * no memory that the phase after it writes, because lanes are not equally fast. So the host's
 * dialect runs phases as plain loops. */
#ifndef PENSTOCK_DRIVERS_KERNELS_SELECT_STATE_H_
#define PENSTOCK_DRIVERS_KERNELS_SELECT_STATE_H_

#include "penstock/drivers/kernels/select_types.h"

PENSTOCK_KERNELS_BEGIN

typedef struct {
  PENSTOCK_GLOBAL u8* table;
  const PENSTOCK_GLOBAL select_batch* batch;
  const PENSTOCK_GLOBAL select_program* program;
  const PENSTOCK_GLOBAL select_task* task;
  const PENSTOCK_GLOBAL select_step* step;
  PENSTOCK_GLOBAL select_result* result;
  PENSTOCK_GLOBAL u8* scratch;
  PENSTOCK_LOCAL select_local* shared;
  u32 number; /* of the task */
  u32 group, lanes;
} select_state;

/* ---- scratch ---- */

PENSTOCK_FUNCTION PENSTOCK_GLOBAL i64* select_totals(const select_state* s) {
  return (PENSTOCK_GLOBAL i64*)(s->scratch + s->batch->totals);
}
PENSTOCK_FUNCTION PENSTOCK_GLOBAL i64* select_raws(const select_state* s, u32 slot) {
  return (PENSTOCK_GLOBAL i64*)(s->scratch + s->batch->raws) + (u64)slot * s->batch->table.capacity;
}
PENSTOCK_FUNCTION PENSTOCK_GLOBAL u32* select_met(const select_state* s, u32 term) {
  return (PENSTOCK_GLOBAL u32*)(s->scratch + s->batch->met) + (u64)term * s->batch->table.capacity;
}
PENSTOCK_FUNCTION PENSTOCK_GLOBAL select_partial* select_partials(const select_state* s) {
  return (PENSTOCK_GLOBAL select_partial*)(s->scratch + s->batch->partials);
}
/* Of the raw scores in `slot`, one for each group. */
PENSTOCK_FUNCTION PENSTOCK_GLOBAL select_range* select_ranges(const select_state* s, u32 slot) {
  return (PENSTOCK_GLOBAL select_range*)(s->scratch + s->batch->ranges) +
         (u64)slot * s->batch->groups;
}
/* The best rows of each group, SELECT_MAX_BEST places for each; row -1 where there is none. */
PENSTOCK_FUNCTION PENSTOCK_GLOBAL select_best* select_chosen(const select_state* s) {
  return (PENSTOCK_GLOBAL select_best*)(s->scratch + s->batch->chosen);
}
PENSTOCK_FUNCTION PENSTOCK_GLOBAL select_context* select_context_of(const select_state* s) {
  return (PENSTOCK_GLOBAL select_context*)(s->scratch + s->batch->context);
}

/* The rows of the group: [begin, end). */
PENSTOCK_FUNCTION u32 select_rows_begin(const select_state* s) {
  const u32 begin = s->group * s->batch->rows_of_group;
  return begin < s->batch->table.rows ? begin : s->batch->table.rows;
}
PENSTOCK_FUNCTION u32 select_rows_end(const select_state* s) {
  const u32 begin = select_rows_begin(s);
  const u32 left = s->batch->table.rows - begin;
  return begin + (left < s->batch->rows_of_group ? left : s->batch->rows_of_group);
}

/* ---- cells, as every computation reads them: within their bounds ---- */

PENSTOCK_FUNCTION i64 select_limit(i64 value, i64 low, i64 high) {
  return value < low ? low : value > high ? high : value;
}

PENSTOCK_FUNCTION PENSTOCK_GLOBAL i64* select_cell(const select_state* s, u64 base, u32 column,
                                                   u32 row) {
  return (PENSTOCK_GLOBAL i64*)(s->table + base) + (u64)column * s->batch->table.capacity + row;
}
PENSTOCK_FUNCTION PENSTOCK_GLOBAL i32* select_small_cell(const select_state* s, u64 base,
                                                         u32 column, u32 row) {
  return (PENSTOCK_GLOBAL i32*)(s->table + base) + (u64)column * s->batch->table.capacity + row;
}
PENSTOCK_FUNCTION PENSTOCK_GLOBAL u64* select_word(const select_state* s, u32 column, u32 row) {
  return (PENSTOCK_GLOBAL u64*)(s->table + s->batch->table.bits) +
         (u64)column * (s->batch->table.capacity / 64) + row / 64;
}

PENSTOCK_FUNCTION i64 select_quantity(const select_state* s, u64 base, u32 column, u32 row) {
  return select_limit(*select_cell(s, base, column, row), 0, SELECT_MAX_QUANTITY);
}
PENSTOCK_FUNCTION i64 select_gpu_free(const select_state* s, u32 gpu, u32 row) {
  return select_limit(*select_cell(s, s->batch->table.gpu, gpu, row), 0, 1000);
}
PENSTOCK_FUNCTION i64 select_free_value(const select_state* s, u32 column, u32 row) {
  return select_limit(*select_cell(s, s->batch->table.free, column, row), -SELECT_MAX_FREE_VALUE,
                      SELECT_MAX_FREE_VALUE);
}
PENSTOCK_FUNCTION u32 select_bit(const select_state* s, u32 column, u32 row) {
  return (u32)(*select_word(s, column, row) >> (row % 64)) & 1;
}
PENSTOCK_FUNCTION i64 select_left(const select_state* s, u32 resource, u32 row) {
  return select_quantity(s, s->batch->table.allocatable, resource, row) -
         select_quantity(s, s->batch->table.requested, resource, row);
}
/* -1 where the row has none. */
PENSTOCK_FUNCTION i32 select_domain_of(const select_state* s, u32 column, u32 row) {
  if (column == SELECT_ROW_DOMAIN) return (i32)row;
  const i32 domain = *select_small_cell(s, s->batch->table.domain, column, row);
  return domain >= 0 && (u32)domain < s->batch->table.capacity ? domain : -1;
}
PENSTOCK_FUNCTION i32 select_count(const select_state* s, u32 column, u32 domain) {
  return (i32)select_limit(*select_small_cell(s, s->batch->table.count, column, domain), 0,
                           SELECT_MAX_DOMAIN_COUNT);
}

PENSTOCK_FUNCTION u64 select_tie_hash(u64 seed, u64 tie, u64 row) {
  u64 z = seed ^ (tie * 0xd1342543de82ef95ul);
  z ^= (row + 1) * 0x9e3779b97f4a7c15ul;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ul;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebul;
  return z ^ (z >> 31);
}

/* ---- reductions over the lanes of a group: what every slot held comes together in slot 0 ---- */

PENSTOCK_FUNCTION void select_fold_step(PENSTOCK_LOCAL select_local* shared, u32 lane, u32 stride) {
  if (lane >= stride) return;
  const u32 other = lane + stride;
  if (shared->low[other] < shared->low[lane]) shared->low[lane] = shared->low[other];
  if (shared->high[other] > shared->high[lane]) shared->high[lane] = shared->high[other];
  shared->n[lane] += shared->n[other];
  shared->flag[lane] |= shared->flag[other];
}
/* The least of low, the most of high, the sum of n, any bit of flag. */
PENSTOCK_FUNCTION void select_fold(const select_state* s) {
  for (u32 stride = s->lanes / 2; stride > 0; stride /= 2)
    PENSTOCK_PHASE(select_fold_step(s->shared, lane, stride));
}
PENSTOCK_FUNCTION void select_set_slot(const select_state* s, u32 lane, i64 low, i64 high, u32 n,
                                       u32 flag) {
  s->shared->low[lane] = low;
  s->shared->high[lane] = high;
  s->shared->n[lane] = n;
  s->shared->flag[lane] = flag;
}

PENSTOCK_KERNELS_END
#endif
