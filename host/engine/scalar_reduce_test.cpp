#include "penstock/engine/scalar_reduce.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace penstock {
namespace {

// One element per source, as bit patterns in T; every expectation below was worked out by hand.
template <typename T>
T reduce(std::uint32_t type, std::uint32_t redop, std::vector<T> values, std::uint64_t scale = 0) {
  std::vector<const void*> src;
  for (const T& value : values) src.push_back(&value);
  T result{};
  void* dst = &result;
  scalar_reduce(ReduceArguments{type, redop, static_cast<std::uint32_t>(src.size()), 1, src.data(),
                                &dst, 1, scale});
  return result;
}
using I8 = std::int8_t;
using U8 = std::uint8_t;
using U16 = std::uint16_t;
using U32 = std::uint32_t;
using I32 = std::int32_t;
using I64 = std::int64_t;
using U64 = std::uint64_t;

TEST(ScalarReduce, IntegersWrap) {
  EXPECT_EQ(reduce<I8>(PENSTOCK_INT8, PENSTOCK_SUM, {127, 1}), -128);
  EXPECT_EQ(reduce<I8>(PENSTOCK_INT8, PENSTOCK_PROD, {-128, -128}), 0);
  EXPECT_EQ(reduce<I8>(PENSTOCK_INT8, PENSTOCK_PROD, {17, 17}), 33);  // 289 - 256
  EXPECT_EQ(reduce<U8>(PENSTOCK_UINT8, PENSTOCK_SUM, {200, 100}), 44);
  EXPECT_EQ(reduce<I32>(PENSTOCK_INT32, PENSTOCK_SUM, {INT32_MAX, 1}), INT32_MIN);
  EXPECT_EQ(reduce<I64>(PENSTOCK_INT64, PENSTOCK_SUM, {INT64_MIN, -1}), INT64_MAX);
  EXPECT_EQ(reduce<U64>(PENSTOCK_UINT64, PENSTOCK_PROD, {1ull << 63, 3}), 1ull << 63);
  EXPECT_EQ(reduce<U32>(PENSTOCK_UINT32, PENSTOCK_PROD, {65536, 65537}), 65536u);
}

TEST(ScalarReduce, IntegersCompareByTheirSign) {
  EXPECT_EQ(reduce<I8>(PENSTOCK_INT8, PENSTOCK_MIN, {1, -1, 0}), -1);
  EXPECT_EQ(reduce<U8>(PENSTOCK_UINT8, PENSTOCK_MIN, {1, 255, 2}), 1);
  EXPECT_EQ(reduce<I64>(PENSTOCK_INT64, PENSTOCK_MAX, {INT64_MIN, -5}), -5);
  EXPECT_EQ(reduce<U64>(PENSTOCK_UINT64, PENSTOCK_MAX, {1, ~0ull}), ~0ull);
}

TEST(ScalarReduce, IntegerAverageTruncatesTowardZeroAfterTheWrap) {
  EXPECT_EQ(reduce<I32>(PENSTOCK_INT32, PENSTOCK_AVG, {-3, -4}), -3);
  EXPECT_EQ(reduce<I32>(PENSTOCK_INT32, PENSTOCK_AVG, {3, 4}), 3);
  EXPECT_EQ(reduce<I8>(PENSTOCK_INT8, PENSTOCK_AVG, {100, 100}), -28);       // (200 - 256) / 2
  EXPECT_EQ(reduce<U8>(PENSTOCK_UINT8, PENSTOCK_AVG, {255, 255, 255}), 84);  // 253 / 3
  EXPECT_EQ(reduce<I64>(PENSTOCK_INT64, PENSTOCK_AVG, {-7, 0, 0}), -2);
}

TEST(ScalarReduce, IntegerScaleIsTakenModuloTheWidth) {
  const U64 minus_two = ~0ull - 1;
  EXPECT_EQ(reduce<I32>(PENSTOCK_INT32, PENSTOCK_PREMUL_SUM, {5, 6}, minus_two), -22);
  EXPECT_EQ(reduce<U8>(PENSTOCK_UINT8, PENSTOCK_PREMUL_SUM, {5, 6}, 0x103), 33);
}

TEST(ScalarReduce, FoldsFromTheLeft) {
  // 2^24 + 1 is not an f32: from the left each 1 is lost, the other way round they count.
  EXPECT_EQ(reduce<float>(PENSTOCK_F32, PENSTOCK_SUM, {0x1p24f, 1, 1}), 0x1p24f);
  EXPECT_EQ(reduce<float>(PENSTOCK_F32, PENSTOCK_SUM, {1, 1, 0x1p24f}), 0x1.000002p24f);
  EXPECT_EQ(reduce<double>(PENSTOCK_F64, PENSTOCK_SUM, {1e16, 1, -1e16}), 0.0);
  EXPECT_EQ(reduce<double>(PENSTOCK_F64, PENSTOCK_SUM, {1e16, -1e16, 1}), 1.0);
}

TEST(ScalarReduce, NarrowFloatsRoundOnce) {
  // f16: 2048 + 1 + 1 is 2050 in f32; rounded at every hop it would stay 2048.
  EXPECT_EQ(reduce<U16>(PENSTOCK_F16, PENSTOCK_SUM, {0x6800, 0x3c00, 0x3c00}), 0x6801);
  // bf16: 256 + 1 + 1 is 258.
  EXPECT_EQ(reduce<U16>(PENSTOCK_BF16, PENSTOCK_SUM, {0x4380, 0x3f80, 0x3f80}), 0x4381);
  // f8e4m3: 16 + 1 + 1 is 18.
  EXPECT_EQ(reduce<U8>(PENSTOCK_F8E4M3, PENSTOCK_SUM, {0x58, 0x38, 0x38}), 0x59);
  // f8e5m2: 8 + 1 + 1 is 10.
  EXPECT_EQ(reduce<U8>(PENSTOCK_F8E5M2, PENSTOCK_SUM, {0x48, 0x3c, 0x3c}), 0x49);
}

TEST(ScalarReduce, OverflowByType) {
  EXPECT_EQ(reduce<U16>(PENSTOCK_F16, PENSTOCK_SUM, {0x7bff, 0x7bff}), 0x7c00);
  EXPECT_EQ(reduce<U8>(PENSTOCK_F8E4M3, PENSTOCK_SUM, {0x7e, 0x7e}), 0x7e);
  EXPECT_EQ(reduce<U8>(PENSTOCK_F8E5M2, PENSTOCK_SUM, {0xfb, 0xfb}), 0xfb);
  // Two infinities of f8e5m2 saturate like anything else that is converted.
  EXPECT_EQ(reduce<U8>(PENSTOCK_F8E5M2, PENSTOCK_MAX, {0x7c, 0x7c}), 0x7b);
  // On the way there the fold has the range of f32.
  EXPECT_EQ(reduce<U16>(PENSTOCK_F16, PENSTOCK_SUM, {0x7bff, 0x7bff, 0xfbff}), 0x7bff);
}

TEST(ScalarReduce, AverageMultipliesByTheReciprocal) {
  // f32(1/3) is 0x1.555556p-2, and 9 times that rounds to 3; 1 / 3 itself stays it.
  EXPECT_EQ(reduce<float>(PENSTOCK_F32, PENSTOCK_AVG, {9, 0, 0}), 3.0f);
  EXPECT_EQ(reduce<float>(PENSTOCK_F32, PENSTOCK_AVG, {1, 0, 0}), 0x1.555556p-2f);
  // A case in which division and reciprocal part: 5 / 5 is 1, 5 * f32(0.2) rounds to 1; 41 / 41 is
  // 1, but 41 * f32(1/41) = 41 * 0x1.8f9c18p-6 is 0x1.fffffecp-1, which rounds to 0x1.fffffep-1.
  std::vector<float> values(41, 1.0f);
  EXPECT_EQ(reduce<float>(PENSTOCK_F32, PENSTOCK_AVG, values), 0x1.fffffep-1f);
  EXPECT_EQ(reduce<double>(PENSTOCK_F64, PENSTOCK_AVG, {1, 2, 3, 4}), 2.5);
  EXPECT_EQ(reduce<U16>(PENSTOCK_BF16, PENSTOCK_AVG, {0x3f80, 0x4000}), 0x3fc0);
}

TEST(ScalarReduce, PremulScalesEachSourceFirst) {
  const U64 half = 0x3f000000, third = 0x3eaaaaab;
  EXPECT_EQ(reduce<float>(PENSTOCK_F32, PENSTOCK_PREMUL_SUM, {3, 5}, half), 4.0f);
  EXPECT_EQ(reduce<float>(PENSTOCK_F32, PENSTOCK_PREMUL_SUM, {3}, half), 1.5f);  // one source, too
  EXPECT_EQ(reduce<U16>(PENSTOCK_F16, PENSTOCK_PREMUL_SUM, {0x4200, 0x4500}, half), 0x4400);
  EXPECT_EQ(reduce<double>(PENSTOCK_F64, PENSTOCK_PREMUL_SUM, {3, 5}, 0x3fe0000000000000), 4.0);
  // max * 1/3 + max * 1/3 stays finite, where (max + max) * 1/3 would not.
  EXPECT_EQ(reduce<float>(PENSTOCK_F32, PENSTOCK_PREMUL_SUM, {0x1.8p127f, 0x1.8p127f}, third),
            0x1p127f);
}

TEST(ScalarReduce, EveryNanIsCanonical) {
  EXPECT_EQ(reduce<U32>(PENSTOCK_F32, PENSTOCK_SUM, {0xff812345, 0x3f800000}), 0x7fc00000u);
  EXPECT_EQ(reduce<U32>(PENSTOCK_F32, PENSTOCK_SUM, {0x7f800000, 0xff800000}), 0x7fc00000u);
  EXPECT_EQ(reduce<U32>(PENSTOCK_F32, PENSTOCK_MIN, {0x3f800000, 0xffc00001}), 0x7fc00000u);
  EXPECT_EQ(reduce<U32>(PENSTOCK_F32, PENSTOCK_PREMUL_SUM, {0xff812345}, 0x3f800000), 0x7fc00000u);
  EXPECT_EQ(reduce<U64>(PENSTOCK_F64, PENSTOCK_MAX, {0xfff0000000000001, 0}),
            0x7ff8000000000000ull);
  EXPECT_EQ(reduce<U16>(PENSTOCK_F16, PENSTOCK_PROD, {0x7c00, 0x0000}), 0x7e00);
  EXPECT_EQ(reduce<U16>(PENSTOCK_BF16, PENSTOCK_SUM, {0xff81, 0x0000}), 0x7fc0);
  EXPECT_EQ(reduce<U8>(PENSTOCK_F8E4M3, PENSTOCK_SUM, {0xff, 0x00}), 0x7f);
  EXPECT_EQ(reduce<U8>(PENSTOCK_F8E5M2, PENSTOCK_SUM, {0xfd, 0x00}), 0x7e);
}

TEST(ScalarReduce, OneSourceIsACopyOfTheBits) {
  for (const std::uint32_t redop :
       {PENSTOCK_SUM, PENSTOCK_PROD, PENSTOCK_MIN, PENSTOCK_MAX, PENSTOCK_AVG}) {
    EXPECT_EQ(reduce<U32>(PENSTOCK_F32, redop, {0xff812345}), 0xff812345u);
    EXPECT_EQ(reduce<U8>(PENSTOCK_F8E5M2, redop, {0xfc}), 0xfc);
  }
}

TEST(ScalarReduce, SubnormalsAreKept) {
  EXPECT_EQ(reduce<U32>(PENSTOCK_F32, PENSTOCK_SUM, {1, 1}), 2u);
  EXPECT_EQ(reduce<U16>(PENSTOCK_F16, PENSTOCK_SUM, {1, 2}), 3);
  EXPECT_EQ(reduce<U16>(PENSTOCK_BF16, PENSTOCK_SUM, {1, 2}), 3);
  EXPECT_EQ(reduce<U64>(PENSTOCK_F64, PENSTOCK_AVG, {3, 5}), 4u);
}

TEST(ScalarReduce, WritesEveryDestinationAndMayBeInPlace) {
  float a[] = {1, 2, 3}, b[] = {10, 20, 30}, c[] = {0, 0, 0};
  const void* src[] = {a, b};
  void* dst[] = {c, b};
  scalar_reduce(ReduceArguments{PENSTOCK_F32, PENSTOCK_SUM, 2, 2, src, dst, 3, 0});
  EXPECT_EQ(a[2], 3.0f);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(b[i], 11.0f * static_cast<float>(i + 1));
    EXPECT_EQ(c[i], b[i]);
  }
}

}  // namespace
}  // namespace penstock
