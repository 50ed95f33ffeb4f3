/* The kernels' dialect for OpenCL C 1.2 and later. README.md has the rules.
 *
 * Build options: PENSTOCK_HAS_F64=1 where the device has cl_khr_fp64. */
#ifndef PENSTOCK_DRIVERS_KERNELS_DIALECT_OPENCL_H_
#define PENSTOCK_DRIVERS_KERNELS_DIALECT_OPENCL_H_

#define PENSTOCK_DIALECT_OPENCL 1
#ifndef PENSTOCK_HAS_F64
#define PENSTOCK_HAS_F64 0
#endif
#if PENSTOCK_HAS_F64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif
#pragma OPENCL FP_CONTRACT OFF

#define PENSTOCK_KERNELS_BEGIN
#define PENSTOCK_KERNELS_END

typedef uchar u8;
typedef ushort u16;
typedef uint u32;
typedef ulong u64;
typedef char i8;
typedef short i16;
typedef int i32;
typedef long i64;
typedef float f32;
#if PENSTOCK_HAS_F64
typedef double f64;
#endif

#define PENSTOCK_GLOBAL __global
#define PENSTOCK_LOCAL __local
#define PENSTOCK_LOCAL_ARRAY(type, name, count) __local type name[count]
#define PENSTOCK_FUNCTION static
#define PENSTOCK_UNROLL

#define PENSTOCK_GROUP ((u32)get_group_id(0))
#define PENSTOCK_GROUPS ((u32)get_num_groups(0))
#define PENSTOCK_LANE ((u32)get_local_id(0))
#define PENSTOCK_LANES ((u32)get_local_size(0))
/* With PENSTOCK_ONE_LANE=1 kernels of phases are compiled for groups of one work item, which suits
 * processors: compilers for them take minutes for kernels with many barriers. */
#ifndef PENSTOCK_ONE_LANE
#define PENSTOCK_ONE_LANE 0
#endif
#if PENSTOCK_ONE_LANE
#define PENSTOCK_PHASE(call) \
  do {                       \
    const u32 lane = 0;      \
    call;                    \
  } while (0)
#else
#define PENSTOCK_PHASE(call)                             \
  do {                                                   \
    const u32 lane = PENSTOCK_LANE;                      \
    call;                                                \
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE); \
  } while (0)
#endif

/* OpenCL has no pointers in arguments that are structures. So a kernel gets up to eight memory
 * objects, then its arguments by value, and an address is the number of an object in its upper byte
 * and an offset below. An object that no address names may be NULL. */
#define PENSTOCK_MEMORY_OBJECTS                                                        \
  __global u8 *m0, __global u8 *m1, __global u8 *m2, __global u8 *m3, __global u8 *m4, \
      __global u8 *m5, __global u8 *m6, __global u8 *m7
#define PENSTOCK_KERNEL(name, Arguments) \
  __kernel void name(PENSTOCK_MEMORY_OBJECTS, const Arguments arguments)
#define PENSTOCK_ENTER(Arguments) const memory_t memory = {{m0, m1, m2, m3, m4, m5, m6, m7}}
/* The weights are an object of their own, NULL where there are none. */
#define PENSTOCK_KERNEL_WEIGHTED(name, Arguments)                        \
  __kernel void name(PENSTOCK_MEMORY_OBJECTS, const Arguments arguments, \
                     __global const u64* weights)
#define PENSTOCK_ENTER_WEIGHTED(Arguments) PENSTOCK_ENTER(Arguments)

typedef struct {
  __global u8* object[8];
} memory_t;
PENSTOCK_FUNCTION __global u8* penstock_at(memory_t memory, u64 address) {
  return memory.object[(address >> 56) & 7] + (address & 0x00fffffffffffffful);
}
typedef __global const u64* weights_t;

PENSTOCK_FUNCTION u32 bits_of_f32(f32 value) { return as_uint(value); }
PENSTOCK_FUNCTION f32 f32_of_bits(u32 bits) { return as_float(bits); }
PENSTOCK_FUNCTION f32 add_f32(f32 a, f32 b) { return a + b; }
PENSTOCK_FUNCTION f32 sub_f32(f32 a, f32 b) { return a - b; }
PENSTOCK_FUNCTION f32 mul_f32(f32 a, f32 b) { return a * b; }
PENSTOCK_FUNCTION i32 round_f32(f32 a) { return convert_int_rte(a); }
#if PENSTOCK_HAS_F64
PENSTOCK_FUNCTION u64 bits_of_f64(f64 value) { return as_ulong(value); }
PENSTOCK_FUNCTION f64 f64_of_bits(u64 bits) { return as_double(bits); }
PENSTOCK_FUNCTION f64 add_f64(f64 a, f64 b) { return a + b; }
PENSTOCK_FUNCTION f64 sub_f64(f64 a, f64 b) { return a - b; }
PENSTOCK_FUNCTION f64 mul_f64(f64 a, f64 b) { return a * b; }
PENSTOCK_FUNCTION f64 div_f64(f64 a, f64 b) { return a / b; }
PENSTOCK_FUNCTION f64 sqrt_f64(f64 a) { return sqrt(a); }
#endif

PENSTOCK_FUNCTION u32 leading_zeros_u32(u32 a) { return clz(a); }
PENSTOCK_FUNCTION u32 leading_zeros_u64(u64 a) { return (u32)clz(a); }
PENSTOCK_FUNCTION u32 ones_u64(u64 a) { return (u32)popcount(a); }
PENSTOCK_FUNCTION u64 mul_high_u64(u64 a, u64 b) { return mul_hi(a, b); }

/* Stores a value and returns what was there, in one step. */
PENSTOCK_FUNCTION u32 exchange_u32(volatile __global u32* at, u32 value) {
  return atomic_xchg(at, value);
}

typedef struct pack {
  u32 word[4];
} pack;
PENSTOCK_FUNCTION pack load_pack(__global const u8* from) {
  const uint4 v = *(__global const uint4*)from;
  pack p;
  p.word[0] = v.x, p.word[1] = v.y, p.word[2] = v.z, p.word[3] = v.w;
  return p;
}
PENSTOCK_FUNCTION void store_pack(__global u8* to, pack p) {
  *(__global uint4*)to = (uint4)(p.word[0], p.word[1], p.word[2], p.word[3]);
}

#endif
