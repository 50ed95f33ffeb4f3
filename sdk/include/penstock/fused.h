/* Collectives that do more than a fold on their way: conversion, a weight per rank, block-scaled
 * int8, and the outer step of local-update training. The C interface; its rules are those of
 * penstock.h.
 *
 * Every rank makes the same calls in the same order, with the same values but for pointers and
 * weights. Results have the same bits on every rank, on every engine and in every run. Errors:
 * those of the collectives; PENSTOCK_UNSUPPORTED for types that do not convert into one another.
 * What is refused before anything was exchanged leaves the comm usable.
 */
#ifndef PENSTOCK_FUSED_H_
#define PENSTOCK_FUSED_H_

#include "penstock/penstock.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct penstock_fused penstock_fused;

/* What keeps staging memory from call to call. The comm outlives it; together they are used by one
 * thread at a time. */
PENSTOCK_API enum penstock_status penstock_fused_create(penstock_comm* comm,
                                                        penstock_fused** fused);
PENSTOCK_API void penstock_fused_destroy(penstock_fused* fused);

typedef struct penstock_fused_call {
  size_t size;                 /* sizeof(penstock_fused_call) */
  const void* send;            /* count elements of `type` */
  void* recv;                  /* count elements of `out_type`; may be `send` if the types agree */
  uint64_t count;              /* 0 is allowed */
  enum penstock_type type;     /* what is folded in f32 (f32, f16, bf16, f8e4m3, f8e5m2) becomes */
  enum penstock_type out_type; /* any other of the same; other types stay what they are */
  enum penstock_redop redop;   /* of all_reduce; the average has its own */
  uint32_t block;              /* 32 or 64: exchanged as int8 in blocks of so many elements, each
                                  block with an f32 scale; 0: exchanged as type and out_type */
  uint64_t scale;              /* PENSTOCK_PREMUL_SUM: the factor's bit pattern in the fold type */
} penstock_fused_call;
#define PENSTOCK_FUSED_CALL_INIT \
  { sizeof(penstock_fused_call), 0, 0, 0, PENSTOCK_F32, PENSTOCK_F32, PENSTOCK_SUM, 0, 0 }

/* The fold of all ranks' vectors in rank order, in f32 for what converts, rounded once to out_type.
 * With a block each vector is quantised before it is exchanged, and the result once more: an
 * element x of a record with scale s moves by at most s * (1/2 + 2^-15), where s is the 127th part
 * of the record's largest magnitude. A NaN stays one; an infinity becomes the largest number. */
PENSTOCK_API enum penstock_status penstock_fused_all_reduce(penstock_fused* fused,
                                                            const penstock_fused_call* call);

/* The average with a weight per rank: the sum of weight * vector over the sum of the weights. A
 * rank of weight 0 is absent: it makes the call, but its vector takes no part, whatever it holds.
 * PENSTOCK_INVALID_ARGUMENT on every rank, and nothing is written, when all are absent. */
PENSTOCK_API enum penstock_status penstock_fused_average(penstock_fused* fused,
                                                         const penstock_fused_call* call,
                                                         double weight);

typedef struct penstock_outer_step_call {
  size_t size;        /* sizeof(penstock_outer_step_call) */
  const void* deltas; /* count elements of `type`: old parameters minus locally trained ones */
  float* parameters;  /* count: the old ones, the same on every rank; the new ones after */
  float* momentum;    /* penstock_fused_shard(fused, count, block): this rank's, 0 at first */
  uint64_t count;
  enum penstock_type type; /* f32, f16, bf16, f8e4m3 or f8e5m2 */
  uint32_t block;          /* of the deltas' exchange, as above */
  float learning_rate;
  float momentum_factor;
} penstock_outer_step_call;
#define PENSTOCK_OUTER_STEP_CALL_INIT \
  { sizeof(penstock_outer_step_call), 0, 0, 0, 0, PENSTOCK_F32, 0, 0, 0 }

/* g = the mean of all ranks' deltas; m = momentum_factor * m + g;
 * p = p - learning_rate * (momentum_factor * m + g): gradient descent with Nesterov momentum, where
 * the mean delta stands for the gradient (DiLoCo, arXiv 2311.08105). Each rank keeps the momentum
 * of its shard only. */
PENSTOCK_API enum penstock_status penstock_fused_outer_step(penstock_fused* fused,
                                                            const penstock_outer_step_call* call);
/* Elements of one rank's shard of `count`; 0 without a `fused`. */
PENSTOCK_API uint64_t penstock_fused_shard(const penstock_fused* fused, uint64_t count,
                                           uint32_t block);

#ifdef __cplusplus
}
#endif
#endif
