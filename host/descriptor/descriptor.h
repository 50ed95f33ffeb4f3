/* One fixed-size record asks an engine for one operation.
 *
 * C99, so that firmware, high-level synthesis and register models read the same text.
 * All fields are little-endian. A record is two cache lines (128 bytes):
 *
 *   byte   0        1        2      3       4         5      6      7
 *        +--------+--------+------+-------+---------+------+------+----------+
 *      0 | opcode | version| type | redop | out_type| n_src| n_dst| block    |
 *        +--------+--------+------+-------+---------+------+------+----------+
 *      8 | flags (u32)              | timeout_ms (u32)                       |
 *     16 | cookie (u64): returned in the completion, never interpreted       |
 *     24 | count (u64): elements; bytes; tasks; updates; fences of BARRIER    |
 *     32 | scale (u64): multipliers, or the address of weights               |
 *     40 | dst[0..2] (3 x u64 address)                                       |
 *     64 | src[0..7] (8 x u64 address)                                       |
 *        +-------------------------------------------------------------------+
 *
 * What a field means depends on the opcode; a field that an opcode does not use must be zero,
 * so that later versions can give it a meaning. `penstock_descriptor_check` is the definition of
 * a well-formed record: every engine answers a malformed one with the status and the field that
 * it names, and touches no memory.
 *
 *   opcode  uses
 *   NOP     -
 *   COPY    count bytes from src[0] to every dst[0..n_dst-1]
 *   REDUCE  left fold of n_src sources of `count` elements of `type` in the order given, result
 *           as `out_type` to every dst. More than 8 sources: flag SRC_LIST, and src[0] is the
 *           address of an array of n_src addresses (8-byte aligned). The flag is set if and only
 *           if n_src > 8.
 *   SIGNAL  raises the fence at dst[0] to the value in src[0] (a value, not an address)
 *   WAIT    holds back what follows until the fence at src[0] is at least the value in src[1];
 *           timeout_ms 0 means the queue's default deadline
 *   SELECT  places `count` tasks one after another: src[0] node table, src[1] program,
 *           src[2] array of tasks, dst[0] array of results (node_table.h defines all four)
 *   UPDATE  applies `count` updates at src[1] to the node table at src[0]: all or none
 *   OUTER_STEP  one step of local-update training; see "Outer step" below
 *   BARRIER raises the fence at dst[0] to the value in src[1], as SIGNAL does, then holds back what
 *           follows until `count` fences, a line each and one after another from src[0], are at
 *           least that value; timeout_ms as of WAIT. The fence of dst[0] may be one of them. After
 *           the deadline `detail` of the completion is the index of the first that is behind
 *
 * n_src and n_dst say how many entries of src and dst mean something, for every opcode:
 *
 *   opcode  n_src  n_dst  count            alignment of the addresses
 *   NOP     0      0      0
 *   COPY    1      1..3   0..MAX_COUNT     any
 *   REDUCE  1..64  1..3   0..MAX_COUNT     any; 8 of a source list
 *   SIGNAL  1      1      0                64, and in the pool
 *   WAIT    2      0      0                64, and in the pool
 *   SELECT  3      1      0..MAX_TASKS     64 of the node table, 8 of the rest
 *   UPDATE  2      0      0..MAX_UPDATES   64 of the node table, 8 of the updates
 *   OUTER_STEP
 *           1..64  2      0..MAX_COUNT     any; 8 of a source list
 *   BARRIER 2      1      1..MAX_BARRIER   64, and in the pool
 *
 * No destination is named twice. A destination of COPY or REDUCE is one of the sources exactly, or
 * overlaps neither a source nor another destination: an engine that finds anything else answers
 * PENSTOCK_INVALID_ARGUMENT with field DST. A source that lies outside of the windows is named SRC,
 * a destination DST, with status PENSTOCK_OUT_OF_RANGE.
 *
 * Conversion. A REDUCE may have another out_type than its type where both are folded in f32: f32,
 * f16, bf16, f8e4m3, f8e5m2 and block-scaled int8, in every pair. The sources are widened, folded
 * in f32, and the result is rounded once, to nearest even; one source is converted like any fold.
 * Every other pair is PENSTOCK_UNSUPPORTED with field OUT_TYPE. Where an element of the result has
 * another size than one of the sources, or one of the two is block-scaled and the other is not, a
 * destination overlaps no source at all, not even exactly.
 *
 * Block-scaled int8. `block` 32 or 64 says that whatever of type and out_type is INT8 stands for
 * this: ceil(count / block) records, one after another, each of an f32 scale and `block` int8
 * codes. It is as wide as penstock_operand_bytes says, and needs no alignment. A code c from -127
 * to 127 is the number f32(c) * scale, rounded to f32; -128 is NaN. The codes of the last record
 * beyond `count` are written as 0 and their content is never looked at. REDUCE of one f32 (f16,
 * bf16, ...) source with out_type INT8 quantises, one with type INT8 and another out_type
 * dequantises, one with both INT8 and several sources is a reduction of quantised data; they fold
 * in f32. A record is made from f32 results x in these steps, each rounded to nearest even:
 *     an infinity becomes the largest finite f32 of its sign, a NaN gets code -128
 *     largest = the largest |x| of the record that is no NaN, 0 if there is none
 *     scale = largest / 127, then not below 2^-126 nor above 0x1.020406p+121, so that scale and
 *             127 * scale are normal numbers
 *     code = round(x * (1 / scale)) with the quotient, the product and the integer rounded in turn
 * so that |x - value of its code| <= scale * (1/2 + 2^-15), and no code but a NaN's is -128.
 * The sign of a zero is lost. `block` is 0 wherever no INT8 is block-scaled.
 *
 * Weights. Flag WEIGHTS of a REDUCE of floats (block-scaled int8 among them) with redop PREMUL_SUM
 * or AVG: `scale` is the 8-byte aligned address of n_src weights in the fold type (f32, or f64 for
 * f64), one for each source. Each source is multiplied by its weight, the product is rounded in the
 * fold type, and the products are added in the order given. AVG then multiplies with the reciprocal
 * of the sum of the weights: the sum is a left fold in the same type, the reciprocal and the
 * product are rounded in turn, also where one source is left; weights of 1 give the bits of AVG
 * without weights. A weight of zero, of either sign, leaves its source out: neither its elements,
 * whatever they hold, nor its weight take part; its address is checked as any. Where all weights
 * are zero no destination is touched, and the status is PENSTOCK_INVALID_ARGUMENT with field
 * WEIGHTS. Weights outside of the windows are PENSTOCK_OUT_OF_RANGE with field WEIGHTS. Integers
 * have no weights (PENSTOCK_UNSUPPORTED, FLAGS).
 *
 * Outer step. OUTER_STEP takes n_src deltas of `count` elements of `type` (as REDUCE's sources: any
 * type that is folded in f32), the f32 momentum m at dst[0] and the f32 parameters p at dst[1],
 * both read and written. redop is AVG and out_type F32; `scale` holds the f32 patterns of the
 * learning rate lr (low half) and of the momentum's factor mu (high half). In f32, every operation
 * rounded on its own, in this order, from left to right:
 *     g = (delta_0 + delta_1 + ... + delta_{n-1}) * f32(1/n)
 *     m = mu * m + g
 *     p = p - lr * (mu * m + g)         with the new m
 * which is one step of gradient descent with Nesterov momentum, where the mean delta stands for the
 * gradient (DiLoCo, arXiv 2311.08105): a delta is old parameters minus locally trained ones. A NaN
 * that is written is the canonical one. m and p overlap neither a source nor each other.
 */
#ifndef PENSTOCK_DESCRIPTOR_DESCRIPTOR_H_
#define PENSTOCK_DESCRIPTOR_DESCRIPTOR_H_

#include <stdint.h>

#include "penstock/descriptor/address.h"
#include "penstock/descriptor/types.h"

#ifdef __cplusplus
extern "C" {
#endif

#define PENSTOCK_DESCRIPTOR_VERSION 1u
#define PENSTOCK_INLINE_SOURCES 8u /* sources that fit into the record itself */
#define PENSTOCK_MAX_SOURCES 64u   /* sources of one REDUCE */
#define PENSTOCK_MAX_DESTINATIONS 3u
#define PENSTOCK_MAX_COUNT (UINT64_C(1) << 48) /* so that count * 8 bytes never wraps */
#define PENSTOCK_MAX_TASKS (UINT64_C(1) << 20)
#define PENSTOCK_MAX_UPDATES (UINT64_C(1) << 24)
#define PENSTOCK_MAX_BARRIER UINT64_C(64) /* fences that one BARRIER waits for */
#define PENSTOCK_BLOCK_SCALE_BYTES 4u     /* of the f32 before the codes of a block-scaled record */

enum penstock_opcode {
  PENSTOCK_OP_NOP = 0,
  PENSTOCK_OP_COPY = 1,
  PENSTOCK_OP_REDUCE = 2,
  PENSTOCK_OP_SIGNAL = 3,
  PENSTOCK_OP_WAIT = 4,
  PENSTOCK_OP_SELECT = 5,
  PENSTOCK_OP_UPDATE = 6,
  PENSTOCK_OP_OUTER_STEP = 7,
  PENSTOCK_OP_BARRIER = 8,
  PENSTOCK_OP_COUNT = 9
};

enum penstock_flag {
  /* REDUCE, OUTER_STEP: src[0] is the address of a list of n_src addresses */
  PENSTOCK_FLAG_SRC_LIST = 1u << 0,
  PENSTOCK_FLAG_COMMIT = 1u << 1, /* SELECT: commit each winner before the next task is scored */
  /* COPY, REDUCE: a hint that the destinations will not be read soon, so that an engine
   * may write them past its caches. Every engine takes it, and results are equal. */
  PENSTOCK_FLAG_STREAM = 1u << 2,
  PENSTOCK_FLAG_WEIGHTS = 1u << 3, /* REDUCE: `scale` is the address of a weight per source */
  PENSTOCK_FLAG_ALL = 15u
};

/* The fold type decides how `scale` is read: the bit pattern of an f32 for f32 and all narrower
 * floats, of an f64 for f64, a two's complement 64-bit integer (taken modulo the type's width) for
 * integers. `scale` must be 0 unless redop is PREMUL_SUM, the flag WEIGHTS is set or the opcode is
 * OUTER_STEP. out_type equals type unless the result is converted. */
struct penstock_descriptor {
  uint8_t opcode;
  uint8_t version;
  uint8_t type;
  uint8_t redop;
  uint8_t out_type;
  uint8_t n_src;
  uint8_t n_dst;
  uint8_t block; /* of block-scaled int8: 32 or 64; else 0 */
  uint32_t flags;
  uint32_t timeout_ms;
  uint64_t cookie;
  uint64_t count;
  uint64_t scale;
  penstock_address dst[PENSTOCK_MAX_DESTINATIONS];
  penstock_address src[PENSTOCK_INLINE_SOURCES];
};

/* Every accepted descriptor gives exactly one completion (32 bytes, two to a cache line). */
struct penstock_completion {
  uint64_t cookie;
  uint32_t status;   /* enum penstock_status */
  uint32_t field;    /* enum penstock_field: what was wrong with a malformed record, else 0 */
  uint64_t detail;   /* the value or the address that was refused; the fence's value for WAIT;
                        which fence is behind for BARRIER */
  uint64_t sequence; /* the n-th completion of this queue, from 1 */
};

enum penstock_field {
  PENSTOCK_FIELD_NONE = 0,
  PENSTOCK_FIELD_OPCODE = 1,
  PENSTOCK_FIELD_VERSION = 2,
  PENSTOCK_FIELD_TYPE = 3,
  PENSTOCK_FIELD_REDOP = 4,
  PENSTOCK_FIELD_OUT_TYPE = 5,
  PENSTOCK_FIELD_N_SRC = 6,
  PENSTOCK_FIELD_N_DST = 7,
  PENSTOCK_FIELD_BLOCK = 8,
  PENSTOCK_FIELD_RESERVED = PENSTOCK_FIELD_BLOCK, /* its name while it had to be 0 */
  PENSTOCK_FIELD_FLAGS = 9,
  PENSTOCK_FIELD_TIMEOUT = 10,
  PENSTOCK_FIELD_COUNT = 11,
  PENSTOCK_FIELD_SCALE = 12,
  PENSTOCK_FIELD_DST = 13,     /* detail is the address */
  PENSTOCK_FIELD_SRC = 14,     /* detail is the address */
  PENSTOCK_FIELD_TABLE = 15,   /* the node table at src[0] of SELECT or UPDATE */
  PENSTOCK_FIELD_PROGRAM = 16, /* the program of SELECT */
  PENSTOCK_FIELD_TASK = 17,    /* a task of SELECT; detail is its index */
  PENSTOCK_FIELD_UPDATE = 18,  /* an update of UPDATE; detail is its index */
  PENSTOCK_FIELD_WEIGHTS = 19, /* the weights at `scale`; detail is their address */
  PENSTOCK_FIELD_ENUM_COUNT = 20
};

#ifdef __cplusplus
static_assert(sizeof(struct penstock_descriptor) == 128, "the record is two cache lines");
static_assert(sizeof(struct penstock_completion) == 32, "two completions share a cache line");
#else
_Static_assert(sizeof(struct penstock_descriptor) == 128, "the record is two cache lines");
_Static_assert(sizeof(struct penstock_completion) == 32, "two completions share a cache line");
#endif

/* Names as they appear in messages ("COPY", "count"), as those of types.h. */
const char* penstock_opcode_name(uint32_t opcode);
const char* penstock_field_name(uint32_t field);

/* The type in which elements of `type` are folded: F32 for the narrower floats and for INT8 with a
 * block, otherwise `type` itself. */
uint32_t penstock_fold_type(uint32_t type, uint32_t block);
/* Bytes of an operand of `count` (up to MAX_COUNT) elements: block-scaled where type is INT8 and
 * block is not 0. 0 for a value that is no type. */
uint64_t penstock_operand_bytes(uint32_t type, uint32_t block, uint64_t count);

/* Decides whether a record is well formed, without touching any memory that it names. Returns
 * PENSTOCK_OK, PENSTOCK_INVALID_ARGUMENT or PENSTOCK_UNSUPPORTED; *field (never null) receives the
 * first wrong field in the order of enum penstock_field, *detail the value found there. Pure,
 * thread-safe. Node tables, programs and tasks are checked by penstock_*_check in node_table.h. */
uint32_t penstock_descriptor_check(const struct penstock_descriptor* descriptor, uint32_t* field,
                                   uint64_t* detail);

#ifdef __cplusplus
}
#endif
#endif
