/* What UPDATE's kernels read and write. */
#ifndef PENSTOCK_DRIVERS_KERNELS_UPDATE_TYPES_H_
#define PENSTOCK_DRIVERS_KERNELS_UPDATE_TYPES_H_

#include "penstock/drivers/kernels/dialect.h"

PENSTOCK_KERNELS_BEGIN

enum update_kind {
  UPDATE_SET = 0, /* 8 bytes */
  UPDATE_ADD = 1,
  UPDATE_SET_SMALL = 2, /* 4 bytes */
  UPDATE_ADD_SMALL = 3,
  UPDATE_SET_BIT = 4, /* value is a mask, `at` the word's place */
  UPDATE_CLEAR_BIT = 5
};

typedef struct {
  u64 at; /* bytes from the table's start */
  i64 value;
  u32 index; /* in the list */
  u16 kind;
  u16 bounds; /* of ADD: which */
} update_change;

/* The head of `inputs`. Offsets are in bytes. */
typedef struct {
  u64 changes; /* in inputs: bucket after bucket */
  u64 begins;  /* in inputs: u32, where each bucket begins, and the end */
  u64 undo;    /* in scratch: i64 for each change, what was there before */
  u64 stops;   /* in scratch: update_stop for each bucket */
  u32 buckets, reserved;
  i64 low[8], high[8]; /* bounds */
} update_batch;

typedef struct {
  u32 done;  /* changes of the bucket that were made */
  u32 index; /* of the update at which it stopped; 0xffffffff: at none */
} update_stop;

typedef struct {
  u32 status, reserved; /* SELECT_OK or SELECT_OUT_OF_RANGE */
  u64 bad_index;
} update_result;

typedef struct {
  u64 table, inputs, scratch, results; /* addresses */
} update_arguments;

PENSTOCK_KERNELS_END
#endif
