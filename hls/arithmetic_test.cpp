// The kernels' integer arithmetic against the host's: f32 against the processor's own floats,
// converters against host/engine/numeric.h, integers against C++. PENSTOCK_HLS_PAIRS says how many
// random pairs each f32 operation gets.
#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <cstring>
#include <vector>

#include "penstock/descriptor/types.h"
#include "penstock/engine/numeric.h"
#include "penstock/hls/float32.h"
#include "penstock/hls/integers.h"
#include "penstock/hls/narrow_float.h"

#ifndef PENSTOCK_HLS_PAIRS
#define PENSTOCK_HLS_PAIRS 2000000
#endif

namespace penstock_hls {
namespace {

namespace numeric = penstock::numeric;

float as_float(u32 bits) { return std::bit_cast<float>(bits); }
u32 bits_of(float value) { return std::bit_cast<u32>(numeric::canonical(value)); }

class Random {
 public:
  explicit Random(u64 seed) : state_(seed) {}
  u64 operator()() {  // splitmix64
    u64 z = (state_ += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }

 private:
  u64 state_;
};

// Fractions with few bits, with long runs of them, and any.
u32 some_fraction(u64 random) {
  const u32 any = static_cast<u32>(random) & 0x7fffff;
  const u32 place = static_cast<u32>(random >> 32) % 24;
  switch (random >> 60 & 3) {
    case 0:
      return any;
    case 1:
      return (any >> place) << place;
    case 2:
      return (u32{1} << place) & 0x7fffff;
    default:
      return (0x7fffffu << place ^ static_cast<u32>(random >> 63)) & 0x7fffff;
  }
}
u32 with_exponent(int exponent, u64 random) {
  const int field = exponent < 0 ? 0 : exponent > 255 ? 255 : exponent;
  return static_cast<u32>(random >> 59 & 1) << 31 | static_cast<u32>(field) << 23 |
         some_fraction(random);
}

struct Pair {
  u32 a, b;
};
// By turns: any bits; what cancels out or almost; operands within reach of each other's rounding;
// products at the edges of overflow, of subnormal results and of nothing; subnormals; infinities
// and NaNs.
Pair some_pair(Random& random, u64 turn) {
  const u64 x = random();
  const u64 y = random();
  const int exponent = static_cast<int>(x >> 24 & 0xff);
  const int near = static_cast<int>(y >> 24 & 63) - 32;
  switch (turn % 8) {
    case 0:
      return {static_cast<u32>(x), static_cast<u32>(y)};
    case 1: {
      const u32 a = with_exponent(exponent, random());
      return {a, x >> 40 & 3 ? a ^ (static_cast<u32>(y) & 0x80000007u) : a ^ kSign};
    }
    case 2:
      return {with_exponent(exponent, random()), with_exponent(exponent + near, random())};
    case 3:
      return {with_exponent(exponent, random()),
              with_exponent(381 - exponent + near / 8, random())};
    case 4:
      return {with_exponent(exponent, random()), with_exponent(127 - exponent + near, random())};
    case 5:
      return {with_exponent(0, random()), with_exponent(exponent, random())};
    case 6:
      return {with_exponent(static_cast<int>(x & 3), random()),
              with_exponent(static_cast<int>(y & 3), random())};
    default:
      return {with_exponent(255, x >> 8 & 1 ? x & ~u64{0x7fffff} & ~(u64{3} << 60) : x),
              with_exponent(exponent, y)};
  }
}

std::vector<u32> corners() {
  std::vector<u32> values;
  for (const u32 magnitude :
       {0x00000000u, 0x00000001u, 0x00000002u, 0x00000003u, 0x003fffffu, 0x00400000u,
        0x007fffffu, 0x00800000u, 0x00800001u, 0x00ffffffu, 0x01000000u, 0x0c800000u,
        0x1fffffffu, 0x20000000u, 0x33800000u, 0x34000000u, 0x3f7fffffu, 0x3f800000u,
        0x3f800001u, 0x3fffffffu, 0x40000000u, 0x4b000000u, 0x4b7fffffu, 0x4b800000u,
        0x5f000000u, 0x7e800000u, 0x7effffffu, 0x7f000000u, 0x7f7ffffeu, 0x7f7fffffu,
        0x7f800000u, 0x7f800001u, 0x7fbfffffu, 0x7fc00000u, 0x7fffffffu}) {
    values.push_back(magnitude);
    values.push_back(magnitude | 0x80000000u);
  }
  return values;
}

template <typename Got, typename Expected>
void compare_pairs(Got got, Expected expected) {
  u64 subnormal = 0, infinite = 0, nan = 0, zero = 0;
  const auto compare = [&](u32 a, u32 b) {
    const u32 want = bits_of(expected(as_float(a), as_float(b)));
    ASSERT_EQ(got(a, b), want) << std::hex << a << " " << b;
    const u32 magnitude = want & kMagnitude;
    subnormal += magnitude != 0 && magnitude < kImplicit;
    infinite += magnitude == kInfinity;
    nan += magnitude > kInfinity;
    zero += magnitude == 0;
  };
  for (const u32 a : corners())
    for (const u32 b : corners()) ASSERT_NO_FATAL_FAILURE(compare(a, b));
  Random random(20);
  for (u64 i = 0; i < PENSTOCK_HLS_PAIRS; ++i) {
    const Pair pair = some_pair(random, i);
    ASSERT_NO_FATAL_FAILURE(compare(pair.a, pair.b));
  }
  // A generator that misses a case is seen.
  EXPECT_GT(subnormal, u64{1000});
  EXPECT_GT(infinite, u64{1000});
  EXPECT_GT(nan, u64{1000});
  EXPECT_GT(zero, u64{1000});
}

TEST(Float32, SumsAreTheProcessors) {
  compare_pairs([](u32 a, u32 b) { return f32_add(a, b); }, [](float a, float b) { return a + b; });
}
TEST(Float32, ProductsAreTheProcessors) {
  compare_pairs([](u32 a, u32 b) { return f32_multiply(a, b); },
                [](float a, float b) { return a * b; });
}
TEST(Float32, MinimaAreThoseOfTheStandard) {
  compare_pairs([](u32 a, u32 b) { return f32_pick(a, b, false); }, numeric::minimum<float>);
}
TEST(Float32, MaximaAreThoseOfTheStandard) {
  compare_pairs([](u32 a, u32 b) { return f32_pick(a, b, true); }, numeric::maximum<float>);
}
TEST(Float32, ReciprocalsAreTheProcessors) {
  for (u32 n = 1; n <= 64; ++n)
    EXPECT_EQ(f32_reciprocal(n), bits_of(1.0f / static_cast<float>(n))) << n;
}

template <typename F>
void widen_all(u32 type, u32 codes) {
  for (u32 code = 0; code < codes; ++code)
    ASSERT_EQ(widen(type, code), std::bit_cast<u32>(numeric::widen<F>(code))) << std::hex << code;
}
TEST(NarrowFloat, WidensEveryCode) {
  widen_all<numeric::F16>(PENSTOCK_F16, 1u << 16);
  widen_all<numeric::Bf16>(PENSTOCK_BF16, 1u << 16);
  widen_all<numeric::F8e4m3>(PENSTOCK_F8E4M3, 1u << 8);
  widen_all<numeric::F8e5m2>(PENSTOCK_F8E5M2, 1u << 8);
}

template <typename F>
void narrow_one(u32 type, u32 bits) {
  ASSERT_EQ(narrow(type, bits), numeric::narrow<F>(as_float(bits)))
      << type << " " << std::hex << bits;
}
void narrow_to_all(u32 bits) {
  narrow_one<numeric::F16>(PENSTOCK_F16, bits);
  narrow_one<numeric::Bf16>(PENSTOCK_BF16, bits);
  narrow_one<numeric::F8e4m3>(PENSTOCK_F8E4M3, bits);
  narrow_one<numeric::F8e5m2>(PENSTOCK_F8E5M2, bits);
}
// Whatever the upper bits are, the lower ones matter as zero, the least, and all: they tell a tie
// from what is beside it.
TEST(NarrowFloat, NarrowsEveryTie) {
  constexpr int kLow = PENSTOCK_HLS_PAIRS > 10'000'000 ? 8 : 13;
  for (u64 upper = 0; upper < u64{1} << (32 - kLow); ++upper) {
    const u32 bits = static_cast<u32>(upper << kLow);
    for (const u32 low : {0u, 1u, (1u << kLow) - 1}) {
      narrow_to_all(bits | low);
      if (HasFatalFailure()) return;
    }
  }
}
TEST(NarrowFloat, NarrowsAnyBits) {
  Random random(21);
  for (u64 i = 0; i < PENSTOCK_HLS_PAIRS; ++i) {
    narrow_to_all(static_cast<u32>(random()));
    if (HasFatalFailure()) return;
  }
}
// The bf16 whose tie needs the sixteenth bit are beyond the upper 19: every one of them, and its
// neighbours.
TEST(NarrowFloat, NarrowsHalfWayBetweenAllCodes) {
  for (u32 code = 0; code < 1u << 16; ++code)
    for (const u32 low : {0x7fffu, 0x8000u, 0x8001u}) {
      narrow_to_all(code << 16 | low);
      if (HasFatalFailure()) return;
    }
}

template <typename T, typename Step>
u64 by_elements(u64 a, u64 b, Step step) {
  T x[8 / sizeof(T)], y[8 / sizeof(T)];
  std::memcpy(x, &a, 8);
  std::memcpy(y, &b, 8);
  for (std::size_t i = 0; i < 8 / sizeof(T); ++i) x[i] = static_cast<T>(step(x[i], y[i]));
  u64 result = 0;
  std::memcpy(&result, x, 8);
  return result;
}
template <typename T>
void compare_integers(u32 size, bool is_signed) {
  Random random(22 + size + (is_signed ? 10 : 0));
  for (int i = 0; i < 100000; ++i) {
    u64 a = random();
    u64 b = random();
    if (i % 4 == 1) a = b;
    if (i % 4 == 2) a = tops_of(size) & random();
    if (i % 8 == 3) b = ~u64{0};
    const u32 n = static_cast<u32>(random() % 64) + 1;
    ASSERT_EQ(integers_add(a, b, size),
              by_elements<T>(a, b, [](T x, T y) { return u64(x) + u64(y); }));
    ASSERT_EQ(integers_multiply(a, b, size),
              by_elements<T>(a, b, [](T x, T y) { return u64(x) * u64(y); }));
    ASSERT_EQ(integers_pick(a, b, size, is_signed, false),
              by_elements<T>(a, b, [](T x, T y) { return x < y ? x : y; }));
    ASSERT_EQ(integers_pick(a, b, size, is_signed, true),
              by_elements<T>(a, b, [](T x, T y) { return x > y ? x : y; }));
    ASSERT_EQ(integers_divide(a, n, size, is_signed),
              by_elements<T>(a, 0, [n](T x, T) { return x / static_cast<T>(n); }))
        << std::hex << a << " / " << n;
  }
}
TEST(Integers, AreThoseOfTheProcessor) {
  compare_integers<std::int8_t>(kBits8, true);
  compare_integers<std::uint8_t>(kBits8, false);
  compare_integers<std::int32_t>(kBits32, true);
  compare_integers<std::uint32_t>(kBits32, false);
  compare_integers<std::int64_t>(kBits64, true);
  compare_integers<std::uint64_t>(kBits64, false);
}

}  // namespace
}  // namespace penstock_hls
