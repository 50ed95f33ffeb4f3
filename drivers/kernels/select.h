/* SELECT's kernels. A batch is either one launch of penstock_select_batch, by one group, or for
 * each task in turn
 *
 *   penstock_select_scan     all groups
 *   penstock_select_spread   all groups; if the step has SELECT_STEP_SPREAD
 *   penstock_select_rank     all groups; if the step has operations that wait for all rows
 *   penstock_select_finish   one group
 *
 * after penstock_select_clear (all groups) if any step has SELECT_STEP_SPREAD, and
 * penstock_select_begin (one group). Each launch sees what the one before it wrote. */
#ifndef PENSTOCK_DRIVERS_KERNELS_SELECT_H_
#define PENSTOCK_DRIVERS_KERNELS_SELECT_H_

#include "penstock/drivers/kernels/select_commit.h"

PENSTOCK_KERNELS_BEGIN

PENSTOCK_FUNCTION select_state select_enter(memory_t memory, const select_arguments* arguments,
                                            PENSTOCK_LOCAL select_local* shared) {
  const PENSTOCK_GLOBAL u8* inputs = penstock_at(memory, arguments->inputs);
  select_state s;
  s.table = penstock_at(memory, arguments->table);
  s.batch = (const PENSTOCK_GLOBAL select_batch*)inputs;
  s.program = (const PENSTOCK_GLOBAL select_program*)(inputs + s.batch->program);
  s.scratch = penstock_at(memory, arguments->scratch);
  s.shared = shared;
  s.group = PENSTOCK_GROUP;
  s.lanes = PENSTOCK_LANES;
  s.task = 0;
  s.step = 0;
  s.result = 0;
  s.number = 0;
  return s;
}

PENSTOCK_FUNCTION void select_turn_to(select_state* s, memory_t memory,
                                      const select_arguments* arguments, u32 number) {
  const PENSTOCK_GLOBAL u8* inputs = (const PENSTOCK_GLOBAL u8*)s->batch;
  s->number = number;
  s->task = (const PENSTOCK_GLOBAL select_task*)(inputs + s->batch->tasks) + number;
  s->step = (const PENSTOCK_GLOBAL select_step*)(inputs + s->batch->steps) + number;
  s->result = (PENSTOCK_GLOBAL select_result*)penstock_at(memory, arguments->results) + number;
}

PENSTOCK_FUNCTION void select_clear_lane(const select_state* s, u32 lane) {
  PENSTOCK_GLOBAL u32* met = select_met(s, 0);
  const u64 n = (u64)SELECT_MAX_DOMAIN_TERMS * s->batch->table.capacity;
  const u64 width = (u64)PENSTOCK_GROUPS * s->lanes;
  for (u64 i = (u64)s->group * s->lanes + lane; i < n; i += width) met[i] = 0;
}

/* Forgets which tasks met which domains. */
PENSTOCK_KERNEL(penstock_select_clear, select_arguments) {
  PENSTOCK_ENTER(select_arguments);
  PENSTOCK_LOCAL_ARRAY(select_local, shared, 1);
  const select_state s = select_enter(memory, &arguments, shared);
  PENSTOCK_PHASE(select_clear_lane(&s, lane));
}

/* Prepares task `first`. */
PENSTOCK_KERNEL(penstock_select_begin, select_arguments) {
  PENSTOCK_ENTER(select_arguments);
  PENSTOCK_LOCAL_ARRAY(select_local, shared, 1);
  select_state s = select_enter(memory, &arguments, shared);
  select_turn_to(&s, memory, &arguments, arguments.first);
  if ((s.step->flags & SELECT_STEP_PREPARE) != 0) select_prepare(&s);
}

/* Filters the rows for task `first`, and ranks them too if no operation waits for all rows. */
PENSTOCK_KERNEL(penstock_select_scan, select_arguments) {
  PENSTOCK_ENTER(select_arguments);
  PENSTOCK_LOCAL_ARRAY(select_local, shared, 1);
  select_state s = select_enter(memory, &arguments, shared);
  select_turn_to(&s, memory, &arguments, arguments.first);
  select_scan(&s);
  if (s.step->ranged == 0) select_rank(&s);
}

PENSTOCK_KERNEL(penstock_select_spread, select_arguments) {
  PENSTOCK_ENTER(select_arguments);
  PENSTOCK_LOCAL_ARRAY(select_local, shared, 1);
  select_state s = select_enter(memory, &arguments, shared);
  select_turn_to(&s, memory, &arguments, arguments.first);
  select_spread_pass(&s);
}

PENSTOCK_KERNEL(penstock_select_rank, select_arguments) {
  PENSTOCK_ENTER(select_arguments);
  PENSTOCK_LOCAL_ARRAY(select_local, shared, 1);
  select_state s = select_enter(memory, &arguments, shared);
  select_turn_to(&s, memory, &arguments, arguments.first);
  select_rank(&s);
}

/* Finishes task `first`, and prepares the next one if n is 1. */
PENSTOCK_KERNEL(penstock_select_finish, select_arguments) {
  PENSTOCK_ENTER(select_arguments);
  PENSTOCK_LOCAL_ARRAY(select_local, shared, 1);
  select_state s = select_enter(memory, &arguments, shared);
  select_turn_to(&s, memory, &arguments, arguments.first);
  select_finish(&s);
  if (arguments.n == 0) return;
  select_turn_to(&s, memory, &arguments, arguments.first + 1);
  if ((s.step->flags & SELECT_STEP_PREPARE) != 0) select_prepare(&s);
}

/* Tasks [first, first + n), one after another, by one group. */
PENSTOCK_KERNEL(penstock_select_batch, select_arguments) {
  PENSTOCK_ENTER(select_arguments);
  PENSTOCK_LOCAL_ARRAY(select_local, shared, 1);
  select_state s = select_enter(memory, &arguments, shared);
  for (u32 i = 0; i < arguments.n; i++) {
    select_turn_to(&s, memory, &arguments, arguments.first + i);
    if ((s.step->flags & SELECT_STEP_PREPARE) != 0) select_prepare(&s);
    select_scan(&s);
    if ((s.step->flags & SELECT_STEP_SPREAD) != 0) select_spread_pass(&s);
    select_rank(&s);
    select_finish(&s);
  }
}

PENSTOCK_KERNELS_END
#endif
