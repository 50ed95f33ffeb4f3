/* The kernels' dialect for CUDA. README.md has the rules. */
#ifndef PENSTOCK_DRIVERS_KERNELS_DIALECT_CUDA_H_
#define PENSTOCK_DRIVERS_KERNELS_DIALECT_CUDA_H_

#define PENSTOCK_DIALECT_CUDA 1
#define PENSTOCK_HAS_F64 1

#define PENSTOCK_KERNELS_BEGIN
#define PENSTOCK_KERNELS_END

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef signed char i8;
typedef short i16;
typedef int i32;
typedef long long i64;
typedef float f32;
typedef double f64;

#define PENSTOCK_GLOBAL
#define PENSTOCK_LOCAL
#define PENSTOCK_LOCAL_ARRAY(type, name, count) __shared__ type name[count]
#define PENSTOCK_FUNCTION static __device__ __forceinline__
#define PENSTOCK_UNROLL _Pragma("unroll")

#define PENSTOCK_GROUP (blockIdx.x)
#define PENSTOCK_GROUPS (gridDim.x)
#define PENSTOCK_LANE (threadIdx.x)
#define PENSTOCK_LANES (blockDim.x)
#define PENSTOCK_PHASE(call)        \
  do {                              \
    const u32 lane = PENSTOCK_LANE; \
    call;                           \
    __syncthreads();                \
  } while (0)

/* Arguments stay where the launch put them, in the bank of constants. */
#define PENSTOCK_KERNEL(name, Arguments)            \
  extern "C" __global__ void __launch_bounds__(256) \
      name(const __grid_constant__ Arguments arguments)
#define PENSTOCK_ENTER(Arguments) const memory_t memory = 0
#define PENSTOCK_KERNEL_WEIGHTED(name, Arguments)       \
  extern "C" __global__ void __launch_bounds__(256)     \
      name(const __grid_constant__ Arguments arguments, \
           const __grid_constant__ reduce_weights weights_by_value)
#define PENSTOCK_ENTER_WEIGHTED(Arguments) \
  PENSTOCK_ENTER(Arguments);               \
  weights_t weights = weights_by_value.bits

/* An address is a pointer of the device. */
typedef int memory_t;
PENSTOCK_FUNCTION u8* penstock_at(memory_t, u64 address) { return (u8*)address; }
typedef const u64* weights_t;

PENSTOCK_FUNCTION u32 bits_of_f32(f32 value) { return __float_as_uint(value); }
PENSTOCK_FUNCTION f32 f32_of_bits(u32 bits) { return __uint_as_float(bits); }
PENSTOCK_FUNCTION u64 bits_of_f64(f64 value) { return (u64)__double_as_longlong(value); }
PENSTOCK_FUNCTION f64 f64_of_bits(u64 bits) { return __longlong_as_double((i64)bits); }

/* Never contracted, whatever the compiler's options. */
PENSTOCK_FUNCTION f32 add_f32(f32 a, f32 b) { return __fadd_rn(a, b); }
PENSTOCK_FUNCTION f32 sub_f32(f32 a, f32 b) { return __fsub_rn(a, b); }
PENSTOCK_FUNCTION f32 mul_f32(f32 a, f32 b) { return __fmul_rn(a, b); }
PENSTOCK_FUNCTION f32 div_f32(f32 a, f32 b) { return __fdiv_rn(a, b); }
PENSTOCK_FUNCTION i32 round_f32(f32 a) { return __float2int_rn(a); }
PENSTOCK_FUNCTION f64 add_f64(f64 a, f64 b) { return __dadd_rn(a, b); }
PENSTOCK_FUNCTION f64 sub_f64(f64 a, f64 b) { return __dsub_rn(a, b); }
PENSTOCK_FUNCTION f64 mul_f64(f64 a, f64 b) { return __dmul_rn(a, b); }
PENSTOCK_FUNCTION f64 div_f64(f64 a, f64 b) { return __ddiv_rn(a, b); }
PENSTOCK_FUNCTION f64 sqrt_f64(f64 a) { return __dsqrt_rn(a); }

PENSTOCK_FUNCTION u32 leading_zeros_u32(u32 a) { return (u32)__clz((i32)a); }
PENSTOCK_FUNCTION u32 leading_zeros_u64(u64 a) { return (u32)__clzll((i64)a); }
PENSTOCK_FUNCTION u32 ones_u64(u64 a) { return (u32)__popcll(a); }
PENSTOCK_FUNCTION u64 mul_high_u64(u64 a, u64 b) { return __umul64hi(a, b); }

/* Stores a value and returns what was there, in one step. */
PENSTOCK_FUNCTION u32 exchange_u32(u32* at, u32 value) { return atomicExch(at, value); }

/* Sixteen bytes in one instruction, from an address that is a multiple of 16. */
struct pack {
  u32 word[4];
};
PENSTOCK_FUNCTION pack load_pack(const u8* from) {
  const uint4 v = *(const uint4*)from;
  pack p;
  p.word[0] = v.x, p.word[1] = v.y, p.word[2] = v.z, p.word[3] = v.w;
  return p;
}
PENSTOCK_FUNCTION void store_pack(u8* to, pack p) {
  *(uint4*)to = make_uint4(p.word[0], p.word[1], p.word[2], p.word[3]);
}

#endif
