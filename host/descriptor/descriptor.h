/* One fixed-size record asks an engine for one operation.
 *
 * C99, so that firmware, high-level synthesis and register models read the same text.
 * All fields are little-endian. A record is two cache lines (128 bytes):
 *
 *   byte   0        1        2      3       4         5      6      7
 *        +--------+--------+------+-------+---------+------+------+----------+
 *      0 | opcode | version| type | redop | out_type| n_src| n_dst| reserved |
 *        +--------+--------+------+-------+---------+------+------+----------+
 *      8 | flags (u32)              | timeout_ms (u32)                       |
 *     16 | cookie (u64): returned in the completion, never interpreted       |
 *     24 | count (u64): elements; bytes for COPY; tasks for SELECT; updates  |
 *     32 | scale (u64): bit pattern of the pre-multiplier in the fold type   |
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
 *
 * No destination is named twice. A destination of COPY or REDUCE is one of the sources exactly, or
 * overlaps neither a source nor another destination: an engine that finds anything else answers
 * PENSTOCK_INVALID_ARGUMENT with field DST. A source that lies outside of the windows is named SRC,
 * a destination DST, with status PENSTOCK_OUT_OF_RANGE.
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

enum penstock_opcode {
  PENSTOCK_OP_NOP = 0,
  PENSTOCK_OP_COPY = 1,
  PENSTOCK_OP_REDUCE = 2,
  PENSTOCK_OP_SIGNAL = 3,
  PENSTOCK_OP_WAIT = 4,
  PENSTOCK_OP_SELECT = 5,
  PENSTOCK_OP_UPDATE = 6,
  PENSTOCK_OP_COUNT = 7
};

enum penstock_flag {
  PENSTOCK_FLAG_SRC_LIST = 1u << 0, /* REDUCE: src[0] is the address of a list of n_src addresses */
  PENSTOCK_FLAG_COMMIT = 1u << 1,   /* SELECT: commit each winner before the next task is scored */
  /* COPY, REDUCE: a hint that the destinations will not be read soon, so that an engine may write
   * them past its caches. Every engine takes it, and results are equal. */
  PENSTOCK_FLAG_STREAM = 1u << 2,
  PENSTOCK_FLAG_ALL = 7u
};

/* The fold type decides how `scale` is read: the bit pattern of an f32 for f32 and all narrower
 * floats, of an f64 for f64, a two's complement 64-bit integer (taken modulo the type's width) for
 * integers. `scale` must be 0 unless redop is PREMUL_SUM. out_type equals type (conversion on the
 * way out is reserved and refused as unsupported). */
struct penstock_descriptor {
  uint8_t opcode;
  uint8_t version;
  uint8_t type;
  uint8_t redop;
  uint8_t out_type;
  uint8_t n_src;
  uint8_t n_dst;
  uint8_t reserved;
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
  uint64_t detail;   /* the value or the address that was refused; the fence's value for WAIT */
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
  PENSTOCK_FIELD_RESERVED = 8,
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
  PENSTOCK_FIELD_ENUM_COUNT = 19
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
