/* The node table, the column program, and what SELECT and UPDATE mean.
 *
 * A **node table** holds a cluster's state as columns, one row per node, in one region:
 *
 *   header (4 KiB) | allocatable | requested | scored | gpu | bits | free | domain | count | logs
 *
 *   allocatable[r][row]  int64  what the node offers of resource r
 *   requested[r][row]    int64  what the tasks placed there asked for
 *   scored[r][row]       int64  the same as scores count it (defaults for tasks that name nothing)
 *   gpu[s][row]          int64  free thousandths of the node's s-th GPU; 0 where there is none
 *   bits[b][row / 64]    uint64 one bit per node: a label selector, a taint set, a port, a model
 *   free[c][row]         int64  whatever else a policy wants to weigh or count
 *   domain[d][row]       int32  the row's domain in topology d, counted from 0; -1 where it has
 * none count[c][domain]     int32  how many there are of something in each domain logs[i] double
 * ln(i + 2) for i in [0, capacity], from the host; only where there are domain columns
 *
 * Columns are `capacity` rows long and follow one another without gaps; capacity is a multiple of
 * 64, so that every column of cells starts on a cache line. Bit column 0 says which rows hold a
 * node; rows without it, and rows from header.rows on, are never chosen. A count column goes with a
 * domain column, or with PENSTOCK_ROW_DOMAIN, where every row is a domain by itself.
 *
 * A **program** is what a policy compiles to: column operations that run for every row. Filters
 * come first, and the first that fails stops the row. Then every score gives an int64 per feasible
 * row, is normalised over the feasible rows, and is multiplied by its weight; the weighted sum is
 * the row's score. A program without scores gives every feasible row 0.
 *
 * SELECT places tasks one after another: filter, score, take the best k (highest score; equal
 * scores by the program's tie rule), and with PENSTOCK_FLAG_COMMIT add the task to the winner's row
 * before the next task is looked at: requested += request, scored += scored_request, the picked
 * GPUs lose gpu_milli, counted free columns rise by one (by one for each mention), so do the counts
 * that the task raises, set_bits are set, generation rises by one. A commit that would push a cell
 * past its bound, or for which the row has too few GPUs, is refused (result status
 * PENSTOCK_OUT_OF_RANGE, nothing changed; the result still says which row it was). UPDATE changes
 * cells: all of its updates or none.
 *
 * Cells: allocatable, requested and scored 0..MAX_QUANTITY, gpu 0..1000, free within
 * +-MAX_FREE_VALUE, domain -1..capacity - 1, count 0..MAX_DOMAIN_COUNT. Commits and UPDATE keep
 * them there; a cell that is found outside of its bound (a damaged pool) is read as the nearest
 * bound, a domain cell as -1, and a cell of logs that is not in 0..MAX_LOG as 0.
 *
 * All arithmetic is int64 with the bounds below, so that nothing overflows. Where float64 is named,
 * each operation is rounded on its own (no fused multiply-add), in the order given, int64 operands
 * are converted by rounding to nearest even, and trunc() is the conversion to int64 toward zero, of
 * a value that is first limited to +-MAX_FREE_VALUE.
 */
#ifndef PENSTOCK_DESCRIPTOR_NODE_TABLE_H_
#define PENSTOCK_DESCRIPTOR_NODE_TABLE_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PENSTOCK_TABLE_MAGIC UINT64_C(0x656c626174747350) /* "Psttable" */
#define PENSTOCK_TABLE_VERSION 2u
#define PENSTOCK_TABLE_HEADER_BYTES 4096u
#define PENSTOCK_MAX_ROWS (1u << 20)
#define PENSTOCK_MAX_RESOURCES 16u
#define PENSTOCK_MAX_GPUS 16u /* GPUs of one node */
#define PENSTOCK_MAX_BIT_COLUMNS 4096u
#define PENSTOCK_MAX_FREE_COLUMNS 256u
#define PENSTOCK_MAX_DOMAIN_COLUMNS 64u
#define PENSTOCK_MAX_COUNT_COLUMNS 4096u
#define PENSTOCK_MAX_QUANTITY                                         \
  (INT64_C(1) << 53) /* of any cell; exact in float64, times 100 fits \
                      */
#define PENSTOCK_MAX_REQUEST PENSTOCK_MAX_QUANTITY
#define PENSTOCK_MAX_FEATURE (INT64_C(1) << 8)     /* magnitude of a task's feature */
#define PENSTOCK_MAX_FREE_VALUE (INT64_C(1) << 40) /* magnitude of a cell of a free column */
#define PENSTOCK_MAX_DOMAIN_COUNT (1 << 20)        /* of a cell of a count column */
#define PENSTOCK_MAX_LOG 64.0                      /* of a cell of logs */
#define PENSTOCK_MAX_WEIGHT 1000000 /* magnitude of a score's weight, and of a term's */
#define PENSTOCK_MAX_NORMALISED (INT64_C(1) << 20) /* magnitude of a normalised score */
#define PENSTOCK_MAX_SCORE (INT64_C(1) << 62)      /* magnitude of a row's weighted sum */

/* Bit columns with a fixed meaning. */
#define PENSTOCK_BIT_NODE 0u          /* the row holds a node */
#define PENSTOCK_BIT_UNSCHEDULABLE 1u /* cordoned */
#define PENSTOCK_BIT_FIRST_FREE 2u

struct penstock_node_table {
  uint64_t magic;
  uint32_t version;
  uint32_t header_bytes;
  uint64_t bytes;       /* of the whole table, header included */
  uint32_t capacity;    /* rows that fit; multiple of 64 */
  uint32_t rows;        /* rows [0, rows) may hold nodes */
  uint32_t n_resources; /* 1..16 */
  uint32_t n_gpus;      /* 0..16 */
  uint32_t n_bits;      /* 2..4096 */
  uint32_t n_free;      /* 0..256 */
  uint32_t n_domains;   /* 0..64 */
  uint32_t n_counts;    /* 0..4096 */
  uint64_t allocatable; /* byte offsets from the table's start; a function of the geometry */
  uint64_t requested;
  uint64_t scored;
  uint64_t gpu;
  uint64_t bits;
  uint64_t free;
  uint64_t domain;
  uint64_t count;
  uint64_t logs;       /* where the table ends if it has no domain columns */
  uint64_t generation; /* raised by every committed task and every UPDATE, and by whoever else
                          writes cells: an engine may keep what it read of this generation */
  uint64_t checksum;   /* FNV-1a 64 over version..n_counts with rows taken as 0 */
};

/* Fills a header for the geometry (capacity is rounded up to a multiple of 64) and returns the
 * table's size in bytes, or 0 if a count is out of its range. `header` may be null to ask for the
 * size alone. Does not touch the columns; the caller zeroes them, and fills logs. */
uint64_t penstock_node_table_init(struct penstock_node_table* header, uint32_t capacity,
                                  uint32_t n_resources, uint32_t n_gpus, uint32_t n_bits,
                                  uint32_t n_free, uint32_t n_domains, uint32_t n_counts);

/* PENSTOCK_OK if `header` (of a mapping of at least `bytes`) is a node table of this version whose
 * offsets agree with its geometry and that fits; else PENSTOCK_CORRUPT or PENSTOCK_OUT_OF_RANGE. */
uint32_t penstock_node_table_check(const struct penstock_node_table* header, uint64_t bytes);

/* ---- programs ---- */

#define PENSTOCK_PROGRAM_MAGIC 0x67725073u /* "sPrg" */
#define PENSTOCK_PROGRAM_VERSION 2u
#define PENSTOCK_MAX_OPS 64u
#define PENSTOCK_MAX_BEST 8u
#define PENSTOCK_SHAPE_POINTS 101u /* utilisation in percent: 0..100 */
#define PENSTOCK_MAX_TYPICAL 256u
#define PENSTOCK_MAX_TYPICAL_WEIGHT (INT64_C(1) << 20)
#define PENSTOCK_FGD_THRESHOLDS 99u

enum penstock_column_opcode {
  /* Filters: pass or fail. */
  PENSTOCK_FILTER_BITS = 1,    /* every term of the task in `group` holds */
  PENSTOCK_FILTER_FIT = 2,     /* for each resource in the list: request 0, or
                                  request <= allocatable - requested */
  PENSTOCK_FILTER_GPU = 3,     /* at least gpu_count GPUs have gpu_milli thousandths free
                                  (gpu_count 0 passes) */
  PENSTOCK_FILTER_ROW = 4,     /* the task's row is -1 or this one */
  PENSTOCK_FILTER_DOMAINS = 5, /* every domain term of the task in `group` passes, each by its kind;
      n is the count in the row's domain.
      ABSENT: the row has no domain, or n is 0.
      PRESENT: it has one, and n > 0 or the term may be the first: its `self` is 1 and the counts of
      every PRESENT term of the group are 0 over their [0, domains).
      SPREAD: it has one, and n + self - min <= weight. min is the least count of the domains
      d < domains with nodes[d] > 0: 2^31 - 1 if there are none, and 0 if there are fewer than
      min_domains of them and min_domains is above 1 */

  /* Scores: int64. `left` is allocatable - requested, before the task is placed. A task asks for a
     resource when its request of it is above 0. Entries whose bit is set in the op's skip_unasked
     leave the sums (LEAST_ALLOCATED, MOST_ALLOCATED, BALANCED, RATIO) when the task does not ask
     for the resource. Divisions of integers truncate toward zero. */
  PENSTOCK_SCORE_LEAST_ALLOCATED = 32, /* kube-scheduler NodeResourcesFit LeastAllocated: resources
      with allocatable 0 leave both sums; u = scored + scored_request; s = u > allocatable ? 0 :
      (allocatable - u) * 100 / allocatable; score = sum(s * w) / sum(w), 0 if sum(w) is 0 */
  PENSTOCK_SCORE_MOST_ALLOCATED =
      33,                          /* the same with s = min(u, allocatable) * 100 / allocatable */
  PENSTOCK_SCORE_BALANCED = 34,    /* kube-scheduler BalancedAllocation in float64: fractions
         f = min(1, (requested + request) / allocatable) of the listed resources with
         allocatable > 0; fewer than two: std = 0; two: std = |f0 - f1| / 2; else the population's:
         mean = (0 + f0 + f1 + ...) / n, std = sqrt((0 + (f0 - mean) * (f0 - mean) + ...) / n);
         score = trunc((1 - std) * 100). A task that asks for none of the list scores 0 everywhere
       */
  PENSTOCK_SCORE_BITS = 35,        /* sum of the weights of the task's terms in `group` that hold */
  PENSTOCK_SCORE_FEATURES = 36,    /* sum over j < n of feature[j] * free[column[j]][row] */
  PENSTOCK_SCORE_BEST_FIT = 37,    /* float64: s = 0; for each resource in order:
         s = s + 0.5 * (left - request) / scale; score = trunc(100 * (1 - s)) */
  PENSTOCK_SCORE_DOT_PRODUCT = 38, /* float64: s = 0; for each resource in order:
      s = s + (left / scale) * (request / scale); score = trunc(100 * (1 - s / n)), n >= 1 */
  PENSTOCK_SCORE_GPU_PACKING = 39, /* `column[0]` (n = 1) is the resource that counts the node's GPU
      thousandths. Tasks without GPU: 0. All GPUs of the node entirely free, which is when the free
      thousandths are above 0 and sum up to that resource's allocatable: max(33 - f, f) with f that
      sum / 1000. Else take the gpu_count fullest GPUs that fit (least free first, then lowest
      index); fewer of them: 0; u of them entirely free: max(50 - u, 33) if u > 0, else
      max(100 - p / 10, 50) with p the sum over them of (free thousandths / 10) */
  PENSTOCK_SCORE_GPU_CLUSTERING = 40, /* tasks without GPU: 0. used = 25 * (gpu_scale - left) /
      gpu_scale with left the node's free thousandths in total and gpu_scale = scale[0]; `column[j]`
      are n free columns that count the node's tasks of each class (there when above 0); the task's
      class is entry `klass`, in no entry if klass >= n; only the task's class is there: used + 75,
      it and others: used + 50, none: used + 25, only others: used */
  PENSTOCK_SCORE_DOMAINS = 41, /* sum over the task's domain terms in `group` whose domain the row
      has of weight * count */
  PENSTOCK_SCORE_SPREAD = 42,  /* kube-scheduler PodTopologySpread, over the task's domain terms in
      `group`. Rows that lack the domain of a REQUIRED term are ignored: -1. A term's size is, over
      the feasible rows that are not ignored, their number if it is a HOSTNAME term, else how many
      different domains they have (that a row has none counts as one more). In float64: s = 0; for
      each term in order whose domain the row has: s = s + (count * logs[size] + (weight - 1));
      score = s rounded half away from zero. Without a term in the group the operation gives 0
      everywhere, and 0 it stays when it is normalised */
  PENSTOCK_SCORE_RATIO = 43, /* kube-scheduler RequestedToCapacityRatio: resources with allocatable
    0 leave both sums; u = scored + scored_request; s = program.shape[u > allocatable ? 100 :
    u * 100 / allocatable]; resources with s = 0 leave both sums; score = sum(s * w) / sum(w) in
    float64, rounded half away from zero, 0 if sum(w) is 0 */
  PENSTOCK_SCORE_FGD = 44 /* FGD ("Beware of Fragmentation", USENIX ATC '23). The fragmentation F of
 a row is the sum over program.typical of weight * x. x is all of the row's free GPU thousandths
 if the typical task cannot run there: gpu_count 0, or its model bit clear, or its request of
 resource column[0] (n = 1) above `left`, or fewer than gpu_count GPUs with gpu_milli free; else x
 is what is free on GPUs with less than gpu_milli. score = how many of program.threshold are <= d,
 where d is by how much F falls when the task's request of column[0] and its GPUs are taken. A task
 that shares a GPU (gpu_count 1, gpu_milli below 1000) takes the GPU with the highest score of
 those that fit, others the lowest that fit, and lowest index decides; fewer than gpu_count GPUs
 that fit: 0 */
};
#define PENSTOCK_COLUMN_OP_IS_SCORE(op) ((op) >= 32)

enum penstock_normalise {
  PENSTOCK_NORMALISE_NONE = 0,
  /* Negative scores can make DEFAULT and REVERSED large: their results are limited to
     +-MAX_NORMALISED. */
  PENSTOCK_NORMALISE_DEFAULT = 1,     /* max (at least 0) over feasible rows; 0: unchanged; else
                                         100 * s / max in integers, toward zero */
  PENSTOCK_NORMALISE_REVERSED = 2,    /* as above, then 100 - that; max 0: all 100 */
  PENSTOCK_NORMALISE_MIN_MAX = 3,     /* (s - min) * 100 / (max - min); all equal: 0 */
  PENSTOCK_NORMALISE_MIN_MAX_F64 = 4, /* kube-scheduler InterPodAffinity, in float64:
                                         trunc(100 * ((s - min) / (max - min))); all equal: 0 */
  PENSTOCK_NORMALISE_SPREAD = 5 /* kube-scheduler PodTopologySpread: negative scores become 0, and
                                   stay out of max and min; max 0: the others 100; else
                                   100 * (max + min - s) / max in integers, toward zero */
};

/* One column operation: 128 bytes. Lists have n entries; entries past n, and fields that the
 * operation does not use, are zero. FEATURES takes up to 8 entries, BEST_FIT and DOT_PRODUCT up
 * to 6.
 *
 * So that no weighted sum overflows, the sum over a program's scores of |weight| * bound is at most
 * MAX_SCORE, where bound is what the score can reach: 100 for LEAST_ALLOCATED, MOST_ALLOCATED,
 * BALANCED, RATIO and GPU_PACKING, 2^20 for GPU_CLUSTERING, 2^24 for BITS, 2^51 for FEATURES, 2^40
 * for BEST_FIT and DOT_PRODUCT, 2^46 for DOMAINS, 2^36 for SPREAD. MIN_MAX, MIN_MAX_F64 and SPREAD
 * make it 100. DEFAULT and REVERSED leave the first five at 100, and make that of the others
 * MAX_NORMALISED. */
struct penstock_column_op {
  uint8_t op;
  uint8_t normalise;
  uint8_t n;             /* entries of the list: 0..16 */
  uint8_t group;         /* FILTER_BITS, FILTER_DOMAINS, SCORE_BITS, SCORE_DOMAINS, SCORE_SPREAD */
  int32_t weight;        /* scores; 0 for filters */
  uint32_t skip_unasked; /* bit i: entry i counts only for tasks that ask for it */
  uint32_t reserved;
  uint16_t column[PENSTOCK_MAX_RESOURCES];      /* resource index, or free column */
  uint16_t list_weight[PENSTOCK_MAX_RESOURCES]; /* LEAST/MOST_ALLOCATED, RATIO: 1..100 */
  int64_t scale[6]; /* BEST_FIT, DOT_PRODUCT: largest machine, entry by entry (n <= 6), > 0 */
};

enum penstock_tie {
  PENSTOCK_TIE_LOWEST_ROW = 0,
  PENSTOCK_TIE_ROTATING = 1, /* first row at or after task.tie % rows, wrapping */
  PENSTOCK_TIE_HASH = 2      /* highest penstock_tie_hash(seed, task.tie, row), then lowest row */
};

enum penstock_gpu_pick {
  PENSTOCK_GPU_LEAST_FREE = 0, /* least free that fits, then lowest index */
  PENSTOCK_GPU_LOWEST = 1,     /* lowest index that fits */
  PENSTOCK_GPU_HASH = 2,       /* by penstock_tie_hash(seed, ~task.tie, index), highest first */
  PENSTOCK_GPU_FGD = 3         /* those that SCORE_FGD takes; the program has that operation */
};

/* A task that is typical of a workload, for SCORE_FGD. */
struct penstock_typical {
  int64_t request;    /* of the resource column[0]: 0..MAX_REQUEST */
  uint32_t gpu_count; /* 0..16 */
  uint32_t gpu_milli; /* 1..1000, 0 if gpu_count is 0 */
  uint16_t model;     /* bit column of the nodes that may hold it; 0: any */
  uint16_t reserved[3];
  int64_t weight; /* how frequent: at least 1, all together at most MAX_TYPICAL_WEIGHT */
};

struct penstock_program {
  uint32_t magic;
  uint16_t version;
  uint16_t n_ops;
  uint8_t tie;
  uint8_t gpu_pick;
  uint8_t best; /* k: how many rows a result lists, 1..8 */
  uint8_t reserved[5];
  uint64_t seed;
  uint32_t n_typical; /* 0..256 */
  uint32_t reserved2;
  uint64_t reserved3[4];
  struct penstock_column_op ops[PENSTOCK_MAX_OPS];       /* filters first */
  uint8_t shape[128];                                    /* RATIO: 0..100 at each of 0..100 percent;
                                                            the rest zero */
  struct penstock_typical typical[PENSTOCK_MAX_TYPICAL]; /* those past n_typical are not read */
  int64_t threshold[PENSTOCK_FGD_THRESHOLDS]; /* FGD: entry s - 1 is the least d with score s; none
                                                 is below the one before it */
};

/* splitmix64's finaliser over the three inputs: a total order that every engine can compute. */
static inline uint64_t penstock_tie_hash(uint64_t seed, uint64_t tie, uint64_t row) {
  uint64_t z = seed ^ (tie * UINT64_C(0xd1342543de82ef95));
  z ^= (row + 1) * UINT64_C(0x9e3779b97f4a7c15);
  z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
  return z ^ (z >> 31);
}

/* ---- tasks ---- */

#define PENSTOCK_MAX_TERMS 16u
#define PENSTOCK_MAX_FEATURES 8u
#define PENSTOCK_MAX_DOMAIN_TERMS 12u
#define PENSTOCK_MAX_RAISES 16u
#define PENSTOCK_ROW_DOMAIN 0xffffu /* as a domain column: the row itself is its domain */

/* A term asks one bit column one question. Group numbers are the policy compiler's own. */
struct penstock_term {
  uint16_t column;
  uint8_t group;
  uint8_t clear;  /* 0: holds where the bit is set; 1: where it is clear */
  int32_t weight; /* for SCORE_BITS */
};

enum penstock_domain_kind {
  PENSTOCK_DOMAIN_ABSENT = 0,
  PENSTOCK_DOMAIN_PRESENT = 1,
  PENSTOCK_DOMAIN_SPREAD = 2
};
#define PENSTOCK_SPREAD_REQUIRED 1u
#define PENSTOCK_SPREAD_HOSTNAME 2u

/* A term asks how many there are of something in the row's domain. What an operation does not use
 * is not read, but has to be in its range. */
struct penstock_domain_term {
  uint16_t domain; /* domain column, or PENSTOCK_ROW_DOMAIN */
  uint16_t count;  /* count column */
  uint16_t nodes;  /* kind SPREAD: the count column of how many eligible nodes each domain has */
  uint8_t group;
  uint8_t kind;     /* FILTER_DOMAINS: a penstock_domain_kind; SCORE_SPREAD: any of
                       PENSTOCK_SPREAD_REQUIRED and _HOSTNAME; SCORE_DOMAINS: 0 */
  int32_t weight;   /* SCORE_DOMAINS: within +-MAX_WEIGHT; kind SPREAD and SCORE_SPREAD: the most
                       skew, >= 1 */
  uint32_t self;    /* kind SPREAD: 1 if the task counts itself, PRESENT: 1 if it may be the
                       first; else 0 */
  uint32_t domains; /* the domains [0, domains) are in use; at most capacity */
  uint32_t min_domains; /* kind SPREAD; 0 and 1: any number */
  uint64_t reserved;
};

/* At commit count[count][domain of the row] rises by 1, if the row has a domain and its bit of
 * `eligible` is set (as it was before the commit). Raises of one cell add up. */
struct penstock_raise {
  uint16_t count;
  uint16_t domain;   /* or PENSTOCK_ROW_DOMAIN */
  uint16_t eligible; /* bit column; 0: always */
  uint16_t reserved;
};

struct penstock_task {
  int64_t request[PENSTOCK_MAX_RESOURCES];        /* what is subtracted; 0..MAX_REQUEST */
  int64_t scored_request[PENSTOCK_MAX_RESOURCES]; /* what scores count */
  uint32_t gpu_count;                             /* 0..16 */
  uint32_t gpu_milli; /* of each GPU: 1..1000 if gpu_count > 0, else 0 */
  int64_t row;        /* -1: any */
  uint64_t tie;       /* the caller's number for this task, input of the tie rules */
  uint32_t n_terms;
  uint32_t klass; /* GPU_CLUSTERING: the entry of its column list that counts this task's class */
  struct penstock_term terms[PENSTOCK_MAX_TERMS]; /* those past n_terms are not read */
  int64_t feature[PENSTOCK_MAX_FEATURES];
  uint16_t set_bits[8]; /* bit columns set on the winner's row at commit (host ports), from
                           BIT_FIRST_FREE on; 0: none */
  uint16_t count[4]; /* free columns raised by 1 on the winner's row at commit, plus 1; 0: none */
  uint32_t n_domain_terms;
  uint32_t n_raises;
  struct penstock_domain_term domain_terms[PENSTOCK_MAX_DOMAIN_TERMS]; /* those past n_domain_terms
                                                                          are not read */
  struct penstock_raise raises[PENSTOCK_MAX_RAISES];                   /* nor those past n_raises */
};

struct penstock_best {
  int32_t row;
  uint32_t reserved;
  int64_t score;
};

struct penstock_result {
  uint32_t status;   /* PENSTOCK_OK; PENSTOCK_NOT_FOUND when no row passes the filters;
                        PENSTOCK_OUT_OF_RANGE when the commit was refused */
  int32_t row;       /* the winner, or -1 */
  int64_t score;     /* of the winner */
  uint32_t feasible; /* rows that passed */
  uint32_t gpu_mask; /* GPUs taken at commit (or that would be) */
  uint32_t n_best;
  uint32_t reserved;
  struct penstock_best best[PENSTOCK_MAX_BEST]; /* n_best rows, best first; the rest zero */
};

/* ---- updates ---- */

enum penstock_update_field {
  PENSTOCK_UPDATE_ROWS = 0, /* header.rows = value (column and row 0) */
  PENSTOCK_UPDATE_ALLOCATABLE = 1,
  PENSTOCK_UPDATE_REQUESTED = 2,
  PENSTOCK_UPDATE_SCORED = 3,
  PENSTOCK_UPDATE_GPU = 4,    /* 0..1000 */
  PENSTOCK_UPDATE_BIT = 5,    /* 0 or 1 */
  PENSTOCK_UPDATE_FREE = 6,   /* magnitude up to MAX_FREE_VALUE */
  PENSTOCK_UPDATE_DOMAIN = 7, /* -1..capacity - 1 */
  PENSTOCK_UPDATE_COUNT = 8   /* `row` is the domain; 0..MAX_DOMAIN_COUNT */
};
enum penstock_update_mode {
  PENSTOCK_UPDATE_SET = 0,
  PENSTOCK_UPDATE_ADD = 1 /* not for BIT, ROWS, DOMAIN */
};

/* ALLOCATABLE, REQUESTED and SCORED stay within 0..MAX_QUANTITY; every cell stays within its bound
 * at every step of the list. */
struct penstock_update {
  uint16_t field;
  uint16_t mode;
  uint32_t column;
  uint32_t row; /* below capacity */
  uint32_t reserved;
  int64_t value;
};

#ifdef __cplusplus
#define PENSTOCK_SIZE_IS(type, size) static_assert(sizeof(struct type) == size, #type)
#else
#define PENSTOCK_SIZE_IS(type, size) \
  typedef char type##_size_is[sizeof(struct type) == (size) ? 1 : -1]
#endif
PENSTOCK_SIZE_IS(penstock_node_table, 144);
PENSTOCK_SIZE_IS(penstock_column_op, 128);
PENSTOCK_SIZE_IS(penstock_typical, 32);
PENSTOCK_SIZE_IS(penstock_program, 64 + 64 * 128 + 128 + 256 * 32 + 99 * 8);
PENSTOCK_SIZE_IS(penstock_term, 8);
PENSTOCK_SIZE_IS(penstock_domain_term, 32);
PENSTOCK_SIZE_IS(penstock_raise, 8);
PENSTOCK_SIZE_IS(penstock_task, 1024);
PENSTOCK_SIZE_IS(penstock_result, 160);
PENSTOCK_SIZE_IS(penstock_update, 24);

/* PENSTOCK_OK or why not: PENSTOCK_CORRUPT (magic, version), PENSTOCK_INVALID_ARGUMENT (a value out
 * of its range, a filter after a score, a column that the table does not have, weights that could
 * overflow), PENSTOCK_UNSUPPORTED (an operation or normalisation of a later version). *detail
 * (never null) gets the index of the op concerned, PENSTOCK_MAX_OPS when it is none of them. Wants
 * a checked table header; what these functions accept, an engine may run without further checks. */
uint32_t penstock_program_check(const struct penstock_program* program,
                                const struct penstock_node_table* table, uint64_t* detail);
/* PENSTOCK_OK or PENSTOCK_INVALID_ARGUMENT (a value out of its range, a request of a resource or a
 * column that the table does not have, a kind or a skew that an operation of the program on the
 * term's group does not know). Wants a checked table header and program. */
uint32_t penstock_task_check(const struct penstock_task* task,
                             const struct penstock_program* program,
                             const struct penstock_node_table* table);

/* "fit", "least_allocated", ...; "?" out of range. */
const char* penstock_column_opcode_name(uint32_t op);

#ifdef __cplusplus
}
#endif
#endif
