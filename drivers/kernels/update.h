/* UPDATE's kernels: all of the updates or none.
 *
 * The host sorts the updates into buckets by the word of the table that they change, each bucket in
 * the order of the list. So one work item goes through a bucket and no two touch the same word, and
 * what a cell holds at every step is what it would hold if the list were gone through in order.
 *
 *   penstock_update_apply  a work item for each bucket; stops at an ADD that leaves its bounds
 *   penstock_update_undo   one group; if any stopped, takes back all, and says which update it was
 */
#ifndef PENSTOCK_DRIVERS_KERNELS_UPDATE_H_
#define PENSTOCK_DRIVERS_KERNELS_UPDATE_H_

#include "penstock/drivers/kernels/select_types.h"
#include "penstock/drivers/kernels/update_types.h"

PENSTOCK_KERNELS_BEGIN

/* What the change leaves in its word, whose old value goes to *old; 0 if it would leave the bounds
 * of its cell, and then nothing changes. */
PENSTOCK_FUNCTION u32 update_apply_one(PENSTOCK_GLOBAL u8* table,
                                       const PENSTOCK_GLOBAL update_batch* batch,
                                       const PENSTOCK_GLOBAL update_change* change,
                                       PENSTOCK_GLOBAL i64* old) {
  PENSTOCK_GLOBAL i64* cell = (PENSTOCK_GLOBAL i64*)(table + change->at);
  PENSTOCK_GLOBAL i32* small_cell = (PENSTOCK_GLOBAL i32*)(table + change->at);
  const u32 is_small = change->kind == UPDATE_SET_SMALL || change->kind == UPDATE_ADD_SMALL;
  const i64 before = is_small ? *small_cell : *cell;
  i64 after = change->value;
  *old = before;
  if (change->kind == UPDATE_SET_BIT) after = before | change->value;
  if (change->kind == UPDATE_CLEAR_BIT) after = before & ~change->value;
  if (change->kind == UPDATE_ADD || change->kind == UPDATE_ADD_SMALL) {
    /* A damaged cell and any value: the sum wraps, which the signs tell. */
    after = (i64)((u64)before + (u64)change->value);
    if (((before ^ after) & (change->value ^ after)) < 0) return 0;
    if (after < batch->low[change->bounds] || after > batch->high[change->bounds]) return 0;
  }
  if (is_small)
    *small_cell = (i32)after;
  else
    *cell = after;
  return 1;
}

PENSTOCK_KERNEL(penstock_update_apply, update_arguments) {
  PENSTOCK_ENTER(update_arguments);
  const PENSTOCK_GLOBAL u8* inputs = penstock_at(memory, arguments.inputs);
  const PENSTOCK_GLOBAL update_batch* batch = (const PENSTOCK_GLOBAL update_batch*)inputs;
  const PENSTOCK_GLOBAL update_change* changes =
      (const PENSTOCK_GLOBAL update_change*)(inputs + batch->changes);
  const PENSTOCK_GLOBAL u32* begins = (const PENSTOCK_GLOBAL u32*)(inputs + batch->begins);
  PENSTOCK_GLOBAL u8* scratch = penstock_at(memory, arguments.scratch);
  PENSTOCK_GLOBAL i64* undo = (PENSTOCK_GLOBAL i64*)(scratch + batch->undo);
  PENSTOCK_GLOBAL update_stop* stops = (PENSTOCK_GLOBAL update_stop*)(scratch + batch->stops);
  const u32 bucket = (u32)PENSTOCK_ITEM;
  if (bucket >= batch->buckets) return;
  u32 at = begins[bucket];
  const u32 end = begins[bucket + 1];
  while (at < end &&
         update_apply_one(penstock_at(memory, arguments.table), batch, &changes[at], &undo[at]))
    at++;
  stops[bucket].done = at - begins[bucket];
  stops[bucket].index = at < end ? changes[at].index : 0xffffffffu;
}

PENSTOCK_FUNCTION void update_find_stop(const PENSTOCK_GLOBAL update_batch* batch,
                                        const PENSTOCK_GLOBAL update_stop* stops,
                                        PENSTOCK_LOCAL u32* first, u32 lane, u32 lanes) {
  first[lane] = 0xffffffffu;
  for (u32 bucket = lane; bucket < batch->buckets; bucket += lanes)
    if (stops[bucket].index < first[lane]) first[lane] = stops[bucket].index;
}

PENSTOCK_FUNCTION void update_stop_step(PENSTOCK_LOCAL u32* first, u32 lane, u32 stride) {
  if (lane < stride && first[lane + stride] < first[lane]) first[lane] = first[lane + stride];
}

PENSTOCK_FUNCTION void update_take_back(PENSTOCK_GLOBAL u8* table, const PENSTOCK_GLOBAL u8* inputs,
                                        const PENSTOCK_GLOBAL i64* undo,
                                        const PENSTOCK_GLOBAL update_stop* stops, u32 lane,
                                        u32 lanes) {
  const PENSTOCK_GLOBAL update_batch* batch = (const PENSTOCK_GLOBAL update_batch*)inputs;
  const PENSTOCK_GLOBAL update_change* changes =
      (const PENSTOCK_GLOBAL update_change*)(inputs + batch->changes);
  const PENSTOCK_GLOBAL u32* begins = (const PENSTOCK_GLOBAL u32*)(inputs + batch->begins);
  for (u32 bucket = lane; bucket < batch->buckets; bucket += lanes) {
    for (u32 i = stops[bucket].done; i > 0; i--) {
      const u32 at = begins[bucket] + i - 1;
      const u32 kind = changes[at].kind;
      if (kind == UPDATE_SET_SMALL || kind == UPDATE_ADD_SMALL)
        *(PENSTOCK_GLOBAL i32*)(table + changes[at].at) = (i32)undo[at];
      else
        *(PENSTOCK_GLOBAL i64*)(table + changes[at].at) = undo[at];
    }
  }
}

PENSTOCK_FUNCTION void update_report(PENSTOCK_GLOBAL update_result* result, u32 first, u32 lane) {
  if (lane != 0) return;
  result->status = first == 0xffffffffu ? SELECT_OK : SELECT_OUT_OF_RANGE;
  result->reserved = 0;
  result->bad_index = first == 0xffffffffu ? 0 : first;
}

PENSTOCK_KERNEL(penstock_update_undo, update_arguments) {
  PENSTOCK_ENTER(update_arguments);
  PENSTOCK_LOCAL_ARRAY(u32, first, SELECT_MAX_LANES);
  const PENSTOCK_GLOBAL u8* inputs = penstock_at(memory, arguments.inputs);
  const PENSTOCK_GLOBAL update_batch* batch = (const PENSTOCK_GLOBAL update_batch*)inputs;
  const PENSTOCK_GLOBAL u8* scratch = penstock_at(memory, arguments.scratch);
  const PENSTOCK_GLOBAL update_stop* stops =
      (const PENSTOCK_GLOBAL update_stop*)(scratch + batch->stops);
  const u32 lanes = PENSTOCK_LANES;
  PENSTOCK_PHASE(update_find_stop(batch, stops, first, lane, lanes));
  for (u32 stride = lanes / 2; stride > 0; stride /= 2)
    PENSTOCK_PHASE(update_stop_step(first, lane, stride));
  PENSTOCK_PHASE(update_report(
      (PENSTOCK_GLOBAL update_result*)penstock_at(memory, arguments.results), first[0], lane));
  if (first[0] != 0xffffffffu)
    PENSTOCK_PHASE(update_take_back(penstock_at(memory, arguments.table), inputs,
                                    (const PENSTOCK_GLOBAL i64*)(scratch + batch->undo), stops,
                                    lane, lanes));
}

PENSTOCK_KERNELS_END
#endif
