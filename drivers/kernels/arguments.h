/* What the kernels are told, the same bytes in every dialect. Sizes are in elements unless a name
 * says bytes. An address is what penstock_at() of the dialect takes. */
#ifndef PENSTOCK_DRIVERS_KERNELS_ARGUMENTS_H_
#define PENSTOCK_DRIVERS_KERNELS_ARGUMENTS_H_

#include "penstock/drivers/kernels/dialect.h"

PENSTOCK_KERNELS_BEGIN

/* Values of enum penstock_redop and penstock_type, by names that every dialect has. */
#define FOLD_SUM 0u
#define FOLD_PROD 1u
#define FOLD_MIN 2u
#define FOLD_MAX 3u
#define FOLD_AVG 4u
#define FOLD_PREMUL_SUM 5u
#define TYPE_INT8 0u
#define TYPE_F16 6u
#define TYPE_F32 7u
#define TYPE_BF16 9u
#define TYPE_F8E4M3 10u
#define TYPE_F8E5M2 11u

#define KERNEL_SOURCES 64
#define KERNEL_DESTINATIONS 3
#define BLOCK_SCALE_BYTES 4u

/* Operands that are reached in packs of 16 bytes where their addresses agree modulo 16: `head`
 * elements one by one, then `packs` packs, then the rest one by one. */
typedef struct {
  u64 src;
  u64 dst[KERNEL_DESTINATIONS];
  u64 bytes;
  u64 head;
  u64 packs;
  u32 n_dst;
  u32 reserved;
} copy_arguments;

typedef struct {
  u64 src[KERNEL_SOURCES];
  u64 dst[KERNEL_DESTINATIONS];
  u64 count;
  u64 head;
  u64 packs;
  u64 scale;  /* of PREMUL_SUM: the bits of the fold type */
  u64 factor; /* of AVG: what the sum is multiplied by; of integers n_src */
  u32 redop;
  u32 n_src;
  u32 n_dst;
  u32 out_type;
  u32 block;
  u32 weighted; /* 1: each source is multiplied by its weight, and `scale` means nothing */
  u32 aligned;  /* 1: addresses are multiples of the size of their elements */
  u32 wide;     /* 1: and of the size of four of them; kernels of converted results look at it */
} reduce_arguments;

typedef struct {
  u64 bits[KERNEL_SOURCES]; /* f32 in the low half, or f64 */
} reduce_weights;

/* An outer step of block-scaled or other deltas; redop, weights and out_type mean nothing. */
typedef struct {
  u64 src[KERNEL_SOURCES];
  u64 momentum;
  u64 parameters;
  u64 count;
  u32 factor; /* f32: 1 / n_src */
  u32 learning_rate;
  u32 momentum_factor;
  u32 n_src;
  u32 block;
  u32 aligned;
  u32 wide;
  u32 reserved;
} outer_step_arguments;

PENSTOCK_KERNELS_END
#endif
