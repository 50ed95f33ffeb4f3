#include "penstock/engine/numeric.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "penstock/engine/conformance_reference.h"

namespace penstock {
namespace {

using conformance::reference_code;
using conformance::reference_value;

float bits(std::uint32_t pattern) { return std::bit_cast<float>(pattern); }

template <typename F>
struct TypeOf;
template <>
struct TypeOf<numeric::F16> : std::integral_constant<std::uint32_t, PENSTOCK_F16> {};
template <>
struct TypeOf<numeric::Bf16> : std::integral_constant<std::uint32_t, PENSTOCK_BF16> {};
template <>
struct TypeOf<numeric::F8e4m3> : std::integral_constant<std::uint32_t, PENSTOCK_F8E4M3> {};
template <>
struct TypeOf<numeric::F8e5m2> : std::integral_constant<std::uint32_t, PENSTOCK_F8E5M2> {};

template <typename F>
class Formats : public testing::Test {};
using AllFormats = testing::Types<numeric::F16, numeric::Bf16, numeric::F8e4m3, numeric::F8e5m2>;
TYPED_TEST_SUITE(Formats, AllFormats);

TYPED_TEST(Formats, EveryCodeWidensToItsValueAndNarrowsBack) {
  using F = TypeParam;
  std::uint32_t nans = 0;
  for (std::uint32_t code = 0; code < 2 * F::sign_bit; ++code) {
    const double expected = reference_value(TypeOf<F>(), code);
    const float value = numeric::widen<F>(code);
    if (std::isnan(expected)) {
      ++nans;
      EXPECT_TRUE(std::isnan(value)) << code;
      EXPECT_EQ(numeric::narrow<F>(value), F::nan) << code;
      continue;
    }
    EXPECT_EQ(static_cast<double>(value), expected) << code;
    EXPECT_EQ(std::signbit(value), std::signbit(expected)) << code;
    const bool saturates = F::exponent_bits + F::fraction_bits == 7;
    const std::uint32_t back =
        std::isinf(value) && saturates ? (code & F::sign_bit) | F::largest : code;
    EXPECT_EQ(numeric::narrow<F>(value), back) << code;
  }
  // Two signs; all fractions but the infinity's where there is one.
  EXPECT_EQ(nans, F::has_infinity ? 2 * ((1u << F::fraction_bits) - 1) : 2u);
}

TYPED_TEST(Formats, RoundsAtEveryMidpoint) {
  using F = TypeParam;
  for (std::uint32_t code = 0; code < F::largest; ++code) {
    const double low = reference_value(TypeOf<F>(), code);
    const double high = reference_value(TypeOf<F>(), code + 1);
    const auto middle = static_cast<float>((low + high) / 2);
    ASSERT_EQ(static_cast<double>(middle), (low + high) / 2);  // exact
    const std::uint32_t even = code % 2 == 0 ? code : code + 1;
    for (const std::uint32_t sign : {0u, F::sign_bit}) {
      const float s = sign != 0 ? -1.0f : 1.0f;
      EXPECT_EQ(numeric::narrow<F>(s * middle), sign | even) << code;
      EXPECT_EQ(numeric::narrow<F>(s * std::nextafterf(middle, 0.0f)), sign | code) << code;
      EXPECT_EQ(numeric::narrow<F>(s * std::nextafterf(middle, HUGE_VALF)), sign | (code + 1))
          << code;
    }
  }
}

TYPED_TEST(Formats, AgreesWithTheReferenceOnAnyFloat) {
  using F = TypeParam;
  std::mt19937 random(7);
  for (int i = 0; i < 300000; ++i) {
    // Every other one has an exponent near the format's range.
    std::uint32_t pattern = static_cast<std::uint32_t>(random());
    if (i % 2 == 0) pattern = (pattern & 0x80ffffff) | (0x34u + (pattern >> 24) % 0x14) << 24;
    const float value = bits(pattern);
    ASSERT_EQ(numeric::narrow<F>(value), reference_code(TypeOf<F>(), static_cast<double>(value)))
        << std::hex << pattern;
  }
}

// From the documents: IEEE 754-2019 table 3.5 (binary16), OCP OFP8 1.0 table 2.
TEST(Numeric, Literals) {
  using namespace numeric;
  EXPECT_EQ(widen<F16>(0x3c00), 1.0f);
  EXPECT_EQ(widen<F16>(0x0001), 0x1p-24f);
  EXPECT_EQ(widen<F16>(0x7bff), 65504.0f);
  EXPECT_EQ(widen<F16>(0xfc00), -HUGE_VALF);
  EXPECT_EQ(narrow<F16>(65519.996f), 0x7bffu);
  EXPECT_EQ(narrow<F16>(65520.0f), 0x7c00u);
  EXPECT_EQ(narrow<F16>(-65520.0f), 0xfc00u);
  EXPECT_EQ(narrow<F16>(0x1p-25f), 0x0000u);
  EXPECT_EQ(narrow<F16>(-0x1.8p-25f), 0x8001u);
  EXPECT_EQ(narrow<F16>(bits(0xffc12345)), 0x7e00u);  // any NaN, either sign

  EXPECT_EQ(widen<Bf16>(0x0001), 0x1p-133f);
  EXPECT_EQ(narrow<Bf16>(bits(0x00000001)), 0u);
  EXPECT_EQ(narrow<Bf16>(bits(0x3f808000)), 0x3f80u);  // tie to even
  EXPECT_EQ(narrow<Bf16>(bits(0x3f818000)), 0x3f82u);
  EXPECT_EQ(narrow<Bf16>(bits(0x7f7fffff)), 0x7f80u);
  EXPECT_EQ(narrow<Bf16>(bits(0x7f800001)), 0x7fc0u);

  EXPECT_EQ(widen<F8e4m3>(0x7e), 448.0f);
  EXPECT_EQ(widen<F8e4m3>(0x08), 0x1p-6f);
  EXPECT_EQ(widen<F8e4m3>(0x01), 0x1p-9f);
  EXPECT_TRUE(std::isnan(widen<F8e4m3>(0xff)));
  EXPECT_EQ(narrow<F8e4m3>(464.0f), 0x7eu);
  EXPECT_EQ(narrow<F8e4m3>(HUGE_VALF), 0x7eu);
  EXPECT_EQ(narrow<F8e4m3>(-1e30f), 0xfeu);
  EXPECT_EQ(narrow<F8e4m3>(bits(0xffffffff)), 0x7fu);

  EXPECT_EQ(widen<F8e5m2>(0x7b), 57344.0f);
  EXPECT_EQ(widen<F8e5m2>(0x04), 0x1p-14f);
  EXPECT_EQ(widen<F8e5m2>(0x01), 0x1p-16f);
  EXPECT_EQ(widen<F8e5m2>(0x7c), HUGE_VALF);
  EXPECT_EQ(narrow<F8e5m2>(HUGE_VALF), 0x7bu);
  EXPECT_EQ(narrow<F8e5m2>(-61440.0f), 0xfbu);
  EXPECT_EQ(narrow<F8e5m2>(bits(0x7fc00000)), 0x7eu);
}

TEST(Numeric, MinimumAndMaximumOrderZerosAndKeepNans) {
  using numeric::maximum;
  using numeric::minimum;
  const float nan = std::nanf("");
  EXPECT_TRUE(std::signbit(minimum(0.0f, -0.0f)));
  EXPECT_TRUE(std::signbit(minimum(-0.0f, 0.0f)));
  EXPECT_FALSE(std::signbit(maximum(0.0f, -0.0f)));
  EXPECT_FALSE(std::signbit(maximum(-0.0f, 0.0f)));
  EXPECT_TRUE(std::isnan(minimum(nan, 1.0f)));
  EXPECT_TRUE(std::isnan(minimum(1.0f, nan)));
  EXPECT_TRUE(std::isnan(maximum(nan, HUGE_VALF)));
  EXPECT_TRUE(std::isnan(maximum(-HUGE_VALF, nan)));
  EXPECT_EQ(minimum(-3.0, 2.0), -3.0);
  EXPECT_EQ(maximum(-3.0, 2.0), 2.0);
}

#if defined(__FLT16_MANT_DIG__) && defined(__SSE2__)
// The compiler's own conversion, which is neither ours nor the reference's.
TEST(Numeric, F16AgreesWithTheCompiler) {
  std::mt19937 random(11);
  for (int i = 0; i < 300000; ++i) {
    const float value =
        bits((static_cast<std::uint32_t>(random()) & 0x807fffff) | (96u + i % 64) << 23);
    __extension__ const _Float16 half = static_cast<_Float16>(value);
    ASSERT_EQ(numeric::narrow<numeric::F16>(value), std::bit_cast<std::uint16_t>(half)) << value;
  }
}
#endif

}  // namespace
}  // namespace penstock
