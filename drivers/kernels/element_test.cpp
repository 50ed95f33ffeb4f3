// Elements against the host engines' arithmetic: every code of the narrow types, and of f32 every
// pattern near a rounding boundary and many more. PENSTOCK_EVERY_F32=1 tries all of f32.
#include "penstock/drivers/kernels/element.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

#include "penstock/engine/numeric.h"

namespace penstock::kernels {
namespace {

template <typename F>
void expect_widened(u32 codes, f32 (*widen)(u32)) {
  for (u32 code = 0; code < codes; ++code) {
    const f32 expected = numeric::widen<F>(code);
    const f32 value = widen(code);
    if (std::isnan(expected)) {
      EXPECT_TRUE(std::isnan(value)) << code;
    } else {
      EXPECT_EQ(bits_of_f32(value), bits_of_f32(expected)) << code;
    }
  }
}

TEST(ElementTest, EveryCodeWidens) {
  expect_widened<numeric::F16>(0x10000, widen_f16);
  expect_widened<numeric::Bf16>(0x10000, widen_bf16);
  expect_widened<numeric::F8e4m3>(0x100, widen_f8e4m3);
  expect_widened<numeric::F8e5m2>(0x100, widen_f8e5m2);
}

void expect_narrowed(u32 bits) {
  const f32 value = f32_of_bits(bits);
  ASSERT_EQ(narrow_f16(value), numeric::narrow<numeric::F16>(value)) << bits;
  ASSERT_EQ(narrow_bf16(value), numeric::narrow<numeric::Bf16>(value)) << bits;
  ASSERT_EQ(narrow_f8e4m3(value), numeric::narrow<numeric::F8e4m3>(value)) << bits;
  ASSERT_EQ(narrow_f8e5m2(value), numeric::narrow<numeric::F8e5m2>(value)) << bits;
}

// What f32 has between two neighbours of a narrow format that matters: both, their middle, and the
// numbers next to each.
TEST(ElementTest, EveryBoundaryNarrows) {
  for (u32 upper = 0; upper < 0x10000; ++upper)
    for (const u32 middle : {0u, 0x1000u, 0x8000u, 0xf000u})
      for (const u32 off : {0xffffffffu, 0u, 1u}) expect_narrowed((upper << 16) + middle + off);
  std::mt19937_64 random(1);
  for (int i = 0; i < 1'000'000; ++i) expect_narrowed(static_cast<u32>(random()));
}

TEST(ElementTest, EveryF32Narrows) {
  if (std::getenv("PENSTOCK_EVERY_F32") == nullptr) GTEST_SKIP() << "PENSTOCK_EVERY_F32 is not set";
  u32 bits = 0;
  do expect_narrowed(bits);
  while (++bits != 0);
}

const u32 kSpecial[] = {0,          0x80000000, 1,          0x80000001, 0x7fffff,   0x800000,
                        0x3f800000, 0xbf800000, 0x3f800001, 0x7f7fffff, 0xff7fffff, 0x7f800000,
                        0xff800000, 0x7fc00000, 0xffc00000, 0x7f800001, 0xff812345, 0x42fe0000};

void expect_extremes(u32 a_bits, u32 b_bits) {
  const f32 a = f32_of_bits(a_bits), b = f32_of_bits(b_bits);
  EXPECT_EQ(bits_of_f32(canonical_f32(min_f32(a, b))),
            bits_of_f32(numeric::canonical(numeric::minimum(a, b))));
  EXPECT_EQ(bits_of_f32(canonical_f32(max_f32(a, b))),
            bits_of_f32(numeric::canonical(numeric::maximum(a, b))));
  const f64 c = a, d = b;
  EXPECT_EQ(bits_of_f64(canonical_f64(min_f64(c, d))),
            bits_of_f64(numeric::canonical(numeric::minimum(c, d))));
  EXPECT_EQ(bits_of_f64(canonical_f64(max_f64(c, d))),
            bits_of_f64(numeric::canonical(numeric::maximum(c, d))));
}

TEST(ElementTest, MinimumAndMaximum) {
  for (const u32 a : kSpecial)
    for (const u32 b : kSpecial) expect_extremes(a, b);
  std::mt19937_64 random(2);
  for (int i = 0; i < 100'000; ++i)
    expect_extremes(static_cast<u32>(random()), static_cast<u32>(random()));
}

// A quotient whose denominator is normal, as a processor divides.
void expect_quotient(f32 a, f32 b) {
  const f32 expected = a / b;
  const f32 quotient = div_f32_in_integers(a, b);
  if (expected < 0x1p-126f) {
    ASSERT_LT(quotient, 0x1p-126f) << a << " / " << b;
  } else {
    ASSERT_EQ(bits_of_f32(quotient), bits_of_f32(expected)) << a << " / " << b;
  }
}

TEST(ElementTest, DivisionInIntegers) {
  std::mt19937_64 random(3);
  for (int i = 0; i < 2'000'000; ++i) {
    const u64 bits = random();
    const u32 a = static_cast<u32>(bits) % 0x7f800000;
    const u32 b = 0x800000 + static_cast<u32>(bits >> 32) % (0x7f800000 - 0x800000);
    expect_quotient(f32_of_bits(a), f32_of_bits(b));
    expect_quotient(f32_of_bits(a), 127.0f);
    expect_quotient(1.0f, f32_of_bits(b));
    expect_quotient(f32_of_bits(b), f32_of_bits(b ^ (a & 1)));
  }
  for (const u32 a : kSpecial)
    for (const u32 b : kSpecial)
      if (a < INFINITY_F32 && b >= 0x800000 && b < INFINITY_F32)
        expect_quotient(f32_of_bits(a), f32_of_bits(b));
}

TEST(ElementTest, BlockScalesCodesAndValues) {
  std::mt19937_64 random(4);
  for (int i = 0; i < 1'000'000; ++i) {
    const f32 value = f32_of_bits(static_cast<u32>(random()));
    const f32 other = f32_of_bits(static_cast<u32>(random()));
    const f32 largest = numeric::block_magnitude(other);
    ASSERT_EQ(bits_of_f32(block_magnitude(value)), bits_of_f32(numeric::block_magnitude(value)));
    const f32 scale = numeric::block_scale(largest);
    ASSERT_EQ(bits_of_f32(block_scale(largest)), bits_of_f32(scale)) << largest;
    const f32 limited = std::fabs(value) <= largest ? value : other;
    const auto code = numeric::block_code(limited, 1.0f / scale);
    ASSERT_EQ(block_code(limited, 1.0f / scale), static_cast<u8>(code)) << limited;
    for (const f32 s : {scale, value})
      ASSERT_EQ(bits_of_f32(canonical_f32(block_value(static_cast<u8>(code), s))),
                bits_of_f32(numeric::canonical(numeric::block_value(code, s))));
  }
}

}  // namespace
}  // namespace penstock::kernels
