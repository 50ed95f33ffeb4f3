/* The host's dialect of the kernels: plain functions that run work item by work item, for tests
 * against the host's engines and for devices that are imitated. README.md has the rules. */
#ifndef PENSTOCK_DRIVERS_KERNELS_DIALECT_HOST_H_
#define PENSTOCK_DRIVERS_KERNELS_DIALECT_HOST_H_

#include <bit>
#include <cmath>
#include <cstdint>
#include <utility>

#define PENSTOCK_DIALECT_HOST 1
#define PENSTOCK_HAS_F64 1

#define PENSTOCK_KERNELS_BEGIN namespace penstock::kernels {
#define PENSTOCK_KERNELS_END }

PENSTOCK_KERNELS_BEGIN

using u8 = std::uint8_t;
using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;
using i8 = std::int8_t;
using i16 = std::int16_t;
using i32 = std::int32_t;
using i64 = std::int64_t;
using f32 = float;
using f64 = double;

#define PENSTOCK_GLOBAL
#define PENSTOCK_LOCAL
#define PENSTOCK_LOCAL_ARRAY(type, name, count) static thread_local type name[count]
#define PENSTOCK_FUNCTION static inline
#define PENSTOCK_UNROLL

/* Which work item the calling thread executes. */
struct position {
  u32 group, groups, lane, lanes;
  u32 flipped; /* bits of the lanes' numbers that are flipped, for another order in a phase */
};
extern thread_local position here;
#define PENSTOCK_GROUP (::penstock::kernels::here.group)
#define PENSTOCK_GROUPS (::penstock::kernels::here.groups)
#define PENSTOCK_LANE (::penstock::kernels::here.lane)
#define PENSTOCK_LANES (::penstock::kernels::here.lanes)
#define PENSTOCK_PHASE(call)                                                    \
  for (u32 turn = 0; turn < PENSTOCK_LANES; ++turn) {                           \
    [[maybe_unused]] const u32 lane = turn ^ ::penstock::kernels::here.flipped; \
    call;                                                                       \
  }

/* A kernel finds its arguments as launchers of the CUDA driver pass them: an array of pointers. */
#define PENSTOCK_KERNEL(name, Arguments) inline void name(void* const* parameters)
#define PENSTOCK_ENTER(Arguments)                                             \
  const Arguments& arguments = *static_cast<const Arguments*>(parameters[0]); \
  const memory_t memory = 0
#define PENSTOCK_KERNEL_WEIGHTED(name, Arguments) PENSTOCK_KERNEL(name, Arguments)
#define PENSTOCK_ENTER_WEIGHTED(Arguments) \
  PENSTOCK_ENTER(Arguments);               \
  weights_t weights = static_cast<const reduce_weights*>(parameters[1])->bits

/* An address is a pointer. */
using memory_t = int;
PENSTOCK_FUNCTION u8* penstock_at(memory_t, u64 address) {
  return reinterpret_cast<u8*>(static_cast<std::uintptr_t>(address));
}
using weights_t = const u64*;

PENSTOCK_FUNCTION u32 bits_of_f32(f32 value) { return std::bit_cast<u32>(value); }
PENSTOCK_FUNCTION f32 f32_of_bits(u32 bits) { return std::bit_cast<f32>(bits); }
PENSTOCK_FUNCTION u64 bits_of_f64(f64 value) { return std::bit_cast<u64>(value); }
PENSTOCK_FUNCTION f64 f64_of_bits(u64 bits) { return std::bit_cast<f64>(bits); }

/* Each operation rounds on its own, to nearest even. */
PENSTOCK_FUNCTION f32 add_f32(f32 a, f32 b) { return a + b; }
PENSTOCK_FUNCTION f32 sub_f32(f32 a, f32 b) { return a - b; }
PENSTOCK_FUNCTION f32 mul_f32(f32 a, f32 b) { return a * b; }
PENSTOCK_FUNCTION f32 div_f32(f32 a, f32 b) { return a / b; }
PENSTOCK_FUNCTION i32 round_f32(f32 a) { return static_cast<i32>(std::nearbyint(a)); }
PENSTOCK_FUNCTION f64 add_f64(f64 a, f64 b) { return a + b; }
PENSTOCK_FUNCTION f64 sub_f64(f64 a, f64 b) { return a - b; }
PENSTOCK_FUNCTION f64 mul_f64(f64 a, f64 b) { return a * b; }
PENSTOCK_FUNCTION f64 div_f64(f64 a, f64 b) { return a / b; }
PENSTOCK_FUNCTION f64 sqrt_f64(f64 a) { return std::sqrt(a); }

/* Leading zeros; 32 or 64 of zero. */
PENSTOCK_FUNCTION u32 leading_zeros_u32(u32 a) { return static_cast<u32>(std::countl_zero(a)); }
PENSTOCK_FUNCTION u32 leading_zeros_u64(u64 a) { return static_cast<u32>(std::countl_zero(a)); }
PENSTOCK_FUNCTION u32 ones_u64(u64 a) { return static_cast<u32>(std::popcount(a)); }
/* The upper half of the product. */
PENSTOCK_FUNCTION u64 mul_high_u64(u64 a, u64 b) {
  __extension__ using u128 = unsigned __int128;
  return static_cast<u64>(static_cast<u128>(a) * b >> 64);
}

/* Stores a value and returns what was there; one thread runs all work items. */
PENSTOCK_FUNCTION u32 exchange_u32(u32* at, u32 value) { return std::exchange(*at, value); }

/* Sixteen bytes at once, from an address that is a multiple of 16. */
struct pack {
  u32 word[4];
};
PENSTOCK_FUNCTION pack load_pack(const u8* from) {
  pack p;
  const u32* word = reinterpret_cast<const u32*>(from);
  for (u32 i = 0; i < 4; ++i) p.word[i] = word[i];
  return p;
}
PENSTOCK_FUNCTION void store_pack(u8* to, pack p) {
  u32* word = reinterpret_cast<u32*>(to);
  for (u32 i = 0; i < 4; ++i) word[i] = p.word[i];
}

PENSTOCK_KERNELS_END
#endif
