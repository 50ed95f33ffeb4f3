/* The numbers that descriptors, engines and applications share. They are part of the ABI: new ones
 * are only appended. C99. */
#ifndef PENSTOCK_DESCRIPTOR_TYPES_H_
#define PENSTOCK_DESCRIPTOR_TYPES_H_

#include <stdint.h>

/* What the shared library exports. */
#define PENSTOCK_API __attribute__((visibility("default")))

#ifdef __cplusplus
extern "C" {
#endif

/* Element types. f8e4m3 is the variant without infinities (OCP 8-bit floating point, "E4M3"). */
enum penstock_type {
  PENSTOCK_INT8 = 0,
  PENSTOCK_UINT8 = 1,
  PENSTOCK_INT32 = 2,
  PENSTOCK_UINT32 = 3,
  PENSTOCK_INT64 = 4,
  PENSTOCK_UINT64 = 5,
  PENSTOCK_F16 = 6,
  PENSTOCK_F32 = 7,
  PENSTOCK_F64 = 8,
  PENSTOCK_BF16 = 9,
  PENSTOCK_F8E4M3 = 10,
  PENSTOCK_F8E5M2 = 11,
  PENSTOCK_TYPE_COUNT = 12
};

/* Reduction operations. AVG is SUM, then times f32(1/n) in the fold type (f64(1/n) for f64;
 * integers divide, truncating toward zero). PREMUL_SUM multiplies every source by `scale` before
 * the fold; the product is rounded in the fold type before it is added. With one source SUM, PROD,
 * MIN, MAX and AVG copy the bits; PREMUL_SUM still multiplies. Weights, and conversion on the way
 * out: descriptor.h. */
enum penstock_redop {
  PENSTOCK_SUM = 0,
  PENSTOCK_PROD = 1,
  PENSTOCK_MIN = 2,
  PENSTOCK_MAX = 3,
  PENSTOCK_AVG = 4,
  PENSTOCK_PREMUL_SUM = 5,
  PENSTOCK_REDOP_COUNT = 6
};

/* How an operation ended: of a descriptor and of a call. */
enum penstock_status {
  PENSTOCK_OK = 0,
  PENSTOCK_INVALID_ARGUMENT = 1, /* the caller asked for something that makes no sense */
  PENSTOCK_UNSUPPORTED = 2,      /* makes sense, but this engine or build cannot do it */
  PENSTOCK_OUT_OF_RANGE = 3,     /* an address outside of the queue's windows */
  PENSTOCK_NO_SPACE = 4,         /* memory, pool, region table or queue is full */
  PENSTOCK_NOT_FOUND = 5,
  PENSTOCK_ALREADY_EXISTS = 6,
  PENSTOCK_PERMISSION_DENIED = 7,
  PENSTOCK_DEADLINE_EXCEEDED = 8,
  PENSTOCK_CANCELLED = 9,
  PENSTOCK_PEER_DEAD = 10, /* a rank of the comm died or stopped responding */
  PENSTOCK_REVOKED = 11,   /* the comm was aborted or this handle belongs to an old epoch */
  PENSTOCK_MISMATCH = 12,  /* ranks disagree about the call */
  PENSTOCK_CORRUPT = 13,   /* input or shared memory does not hold what it should */
  PENSTOCK_IO_ERROR = 14,
  PENSTOCK_BUSY = 15,
  PENSTOCK_INTERNAL = 16,
  PENSTOCK_STATUS_COUNT = 17
};

/* Bytes of one element; 0 for a value that is no type. */
PENSTOCK_API uint32_t penstock_type_size(uint32_t type);

/* Names as they appear on command lines and in messages ("bf16", "sum", "deadline_exceeded");
 * "?" for a value out of range. Static storage, never null, thread-safe. */
PENSTOCK_API const char* penstock_type_name(uint32_t type);
PENSTOCK_API const char* penstock_redop_name(uint32_t redop);
PENSTOCK_API const char* penstock_status_name(uint32_t status);

#ifdef __cplusplus
}
#endif
#endif
