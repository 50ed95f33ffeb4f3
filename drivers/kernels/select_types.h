/* What SELECT's kernels read and write. The structures of programs, tasks and results are those of
 * host/descriptor/node_table.h, byte for byte and name for name: select_plan.cpp asserts it. So
 * programs and tasks are handed to a device as they are, once the host has checked them; what they
 * mean is said there. */
#ifndef PENSTOCK_DRIVERS_KERNELS_SELECT_TYPES_H_
#define PENSTOCK_DRIVERS_KERNELS_SELECT_TYPES_H_

#include "penstock/drivers/kernels/dialect.h"

PENSTOCK_KERNELS_BEGIN

/* Lanes of a group at most; a power of 2. Whoever compiles the kernels may choose another. */
#ifndef SELECT_MAX_LANES
#define SELECT_MAX_LANES 256
#endif

#define SELECT_MAX_OPS 64
#define SELECT_MAX_TERMS 16
#define SELECT_MAX_DOMAIN_TERMS 12
#define SELECT_MAX_RAISES 16
#define SELECT_MAX_BEST 8
#define SELECT_MAX_GPUS 16
#define SELECT_MAX_RESOURCES 16
#define SELECT_MAX_TYPICAL 256
#define SELECT_THRESHOLDS 99
#define SELECT_ROW_DOMAIN 0xffff
#define SELECT_MAX_QUANTITY ((i64)1 << 53)
#define SELECT_MAX_FREE_VALUE ((i64)1 << 40)
#define SELECT_MAX_DOMAIN_COUNT (1 << 20)
#define SELECT_MAX_LOG 64.0
#define SELECT_MAX_NORMALISED ((i64)1 << 20)

/* The status of a result. */
#define SELECT_OK 0
#define SELECT_NOT_FOUND 5
#define SELECT_OUT_OF_RANGE 3

/* A row's total where it is not feasible; no score is as low. */
#define SELECT_INFEASIBLE (-((i64)1 << 62) - ((i64)1 << 62))
#define SELECT_MOST (((i64)1 << 62) - 1 + ((i64)1 << 62))

enum select_opcode {
  SELECT_FILTER_BITS = 1,
  SELECT_FILTER_FIT = 2,
  SELECT_FILTER_GPU = 3,
  SELECT_FILTER_ROW = 4,
  SELECT_FILTER_DOMAINS = 5,
  SELECT_SCORE_LEAST_ALLOCATED = 32,
  SELECT_SCORE_MOST_ALLOCATED = 33,
  SELECT_SCORE_BALANCED = 34,
  SELECT_SCORE_BITS = 35,
  SELECT_SCORE_FEATURES = 36,
  SELECT_SCORE_BEST_FIT = 37,
  SELECT_SCORE_DOT_PRODUCT = 38,
  SELECT_SCORE_GPU_PACKING = 39,
  SELECT_SCORE_GPU_CLUSTERING = 40,
  SELECT_SCORE_DOMAINS = 41,
  SELECT_SCORE_SPREAD = 42,
  SELECT_SCORE_RATIO = 43,
  SELECT_SCORE_FGD = 44
};

enum select_normalise {
  SELECT_NORMALISE_NONE = 0,
  SELECT_NORMALISE_DEFAULT = 1,
  SELECT_NORMALISE_REVERSED = 2,
  SELECT_NORMALISE_MIN_MAX = 3,
  SELECT_NORMALISE_MIN_MAX_F64 = 4,
  SELECT_NORMALISE_SPREAD = 5
};

enum select_tie { SELECT_TIE_LOWEST_ROW = 0, SELECT_TIE_ROTATING = 1, SELECT_TIE_HASH = 2 };

enum select_gpu_pick {
  SELECT_GPU_LEAST_FREE = 0,
  SELECT_GPU_LOWEST = 1,
  SELECT_GPU_HASH = 2,
  SELECT_GPU_FGD = 3
};

enum select_domain_kind {
  SELECT_DOMAIN_ABSENT = 0,
  SELECT_DOMAIN_PRESENT = 1,
  SELECT_DOMAIN_SPREAD = 2
};
#define SELECT_SPREAD_REQUIRED 1
#define SELECT_SPREAD_HOSTNAME 2

typedef struct {
  u8 op, normalise, n, group;
  i32 weight;
  u32 skip_unasked, reserved;
  u16 column[SELECT_MAX_RESOURCES];
  u16 list_weight[SELECT_MAX_RESOURCES];
  i64 scale[6];
} select_op;

typedef struct {
  i64 request;
  u32 gpu_count, gpu_milli;
  u16 model, reserved[3];
  i64 weight;
} select_typical;

typedef struct {
  u32 magic;
  u16 version, n_ops;
  u8 tie, gpu_pick, best, reserved[5];
  u64 seed;
  u32 n_typical, reserved2;
  u64 reserved3[4];
  select_op ops[SELECT_MAX_OPS];
  u8 shape[128];
  select_typical typical[SELECT_MAX_TYPICAL];
  i64 threshold[SELECT_THRESHOLDS];
} select_program;

typedef struct {
  u16 column;
  u8 group, clear;
  i32 weight;
} select_term;

typedef struct {
  u16 domain, count, nodes;
  u8 group, kind;
  i32 weight;
  u32 self, domains, min_domains;
  u64 reserved;
} select_domain_term;

typedef struct {
  u16 count, domain, eligible, reserved;
} select_raise;

typedef struct {
  i64 request[SELECT_MAX_RESOURCES];
  i64 scored_request[SELECT_MAX_RESOURCES];
  u32 gpu_count, gpu_milli;
  i64 row;
  u64 tie;
  u32 n_terms, klass;
  select_term terms[SELECT_MAX_TERMS];
  i64 feature[8];
  u16 set_bits[8];
  u16 count[4];
  u32 n_domain_terms, n_raises;
  select_domain_term domain_terms[SELECT_MAX_DOMAIN_TERMS];
  select_raise raises[SELECT_MAX_RAISES];
} select_task;

typedef struct {
  i32 row;
  u32 reserved;
  i64 score;
} select_best;

typedef struct {
  u32 status;
  i32 row;
  i64 score;
  u32 feasible, gpu_mask, n_best, reserved;
  select_best best[SELECT_MAX_BEST];
} select_result;

/* ---- what the host finds out before a device starts ---- */

/* Where a table's columns are, in bytes from its start, and its geometry. */
typedef struct {
  u64 allocatable, requested, scored, gpu, bits, free, domain, count, logs;
  u32 capacity, rows, n_resources, n_gpus;
} select_table;

/* What is left to do of the program for one task. Operations that cannot refuse it a row, and
 * scores that are the same for every row, are not active. */
typedef struct {
  u64 filters; /* active ones: bit per operation */
  u64 plain;   /* active scores that are known as soon as their row is */
  u64 ranged;  /* active scores that wait for all rows: normalised ones, and SPREAD */
  i64 base;    /* what every feasible row gets from the inactive scores */
  u32 flags;
  u32 reserved;
} select_step;
#define SELECT_STEP_PREPARE 1u /* a domain filter has to know of all domains */
#define SELECT_STEP_SPREAD 2u  /* a SPREAD score is active */

/* What a kernel is launched with. Tasks are counted from 0 in a batch. */
typedef struct {
  u64 table, inputs, scratch, results; /* addresses; results hold one for each task */
  u32 first, n;
} select_arguments;

/* The head of `inputs`. Offsets are in bytes. */
typedef struct {
  select_table table;
  u64 program, tasks, steps; /* in inputs */
  /* In scratch: a total for each row; n_raws columns of scores before they are normalised, in the
   * order of the operations; for each domain term and domain the task that met it last, plus 1; and
   * one of each of the following for each group. */
  u64 totals, raws, met, partials, ranges, chosen;
  u64 context;
  u32 groups, rows_of_group; /* rows are divided among the groups in order */
  u32 commit;
  u32 n_raws;
} select_batch;

/* What a group found of its rows. */
typedef struct {
  u32 feasible;
  u32 sizes[SELECT_MAX_DOMAIN_TERMS];   /* of SPREAD terms: rows, or domains met first here */
  u32 without[SELECT_MAX_DOMAIN_TERMS]; /* 1: some row has no domain */
  u32 reserved;
} select_partial;
typedef struct {
  i64 low, high;
  u32 any, reserved;
} select_range;

/* What a task has to know of all domains, and of the row that it goes to. */
typedef struct {
  i32 least[SELECT_MAX_DOMAIN_TERMS];   /* FILTER_DOMAINS, kind SPREAD: min */
  u32 present[SELECT_MAX_DOMAIN_TERMS]; /* kind PRESENT: 1 if some count is not 0 */
  u32 may_be_first[SELECT_MAX_DOMAIN_TERMS];
  u32 reserved;
  i64 raised[SELECT_MAX_RAISES]; /* the count cells that are raised, -1: none */
} select_context;

/* What the lanes of a group tell each other: a slot for each lane, and what all of them need. */
typedef struct {
  i64 low[SELECT_MAX_LANES];
  i64 high[SELECT_MAX_LANES];
  u32 n[SELECT_MAX_LANES];
  u32 flag[SELECT_MAX_LANES];
  i64 range_low[SELECT_MAX_OPS];
  i64 range_high[SELECT_MAX_OPS];
  u64 log[SELECT_MAX_DOMAIN_TERMS]; /* bits of float64 */
  i64 last_score;                   /* of the row that was chosen last */
  u32 last_row, has_last;
} select_local;

PENSTOCK_KERNELS_END

#endif
