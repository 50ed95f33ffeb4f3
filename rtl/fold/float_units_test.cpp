// The f32 adder, multiplier and comparator against the host's arithmetic, and the converters
// against host/engine/numeric.h. PENSTOCK_FOLD_PAIRS says how many random pairs each unit gets.
#include <gtest/gtest.h>
#include <verilated.h>

#include <array>
#include <bit>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "Vfold_harness.h"
#include "penstock/descriptor/types.h"
#include "penstock/engine/numeric.h"
#include "penstock/rtl/coverage/save_coverage.h"

namespace penstock::rtl {
namespace {

constexpr std::uint64_t kPairs = PENSTOCK_FOLD_PAIRS;

enum Select : std::uint8_t { kSum, kProduct, kMinimum, kMaximum, kNarrow, kWiden };

class Units {
 public:
  ~Units() { save_coverage(context_); }
  std::uint32_t operator()(Select select, std::uint32_t a, std::uint32_t b,
                           std::uint32_t type = 0) {
    harness_.select_i = select;
    harness_.type_i = static_cast<std::uint8_t>(type);
    harness_.a_i = a;
    harness_.b_i = b;
    harness_.eval();
    return harness_.result_o;
  }

 private:
  VerilatedContext context_;
  Vfold_harness harness_{&context_};
};

std::uint32_t expected(Select select, std::uint32_t a, std::uint32_t b) {
  const auto x = std::bit_cast<float>(a);
  const auto y = std::bit_cast<float>(b);
  float result = 0;
  switch (select) {
    case kSum:
      result = x + y;
      break;
    case kProduct:
      result = x * y;
      break;
    case kMinimum:
      result = numeric::minimum(x, y);
      break;
    default:
      result = numeric::maximum(x, y);
  }
  return std::bit_cast<std::uint32_t>(numeric::canonical(result));
}

// What the random pairs have met, so that a generator that misses a case is seen.
struct Met {
  std::uint64_t pairs = 0;
  std::uint64_t nan = 0;
  std::uint64_t infinite = 0;
  std::uint64_t zero = 0;
  std::uint64_t subnormal = 0;
  std::uint64_t subnormal_result = 0;
  std::uint64_t tie = 0;

  void count(Select select, std::uint32_t a, std::uint32_t b, std::uint32_t result) {
    const auto of = [](std::uint32_t bits) { return bits & 0x7fffffff; };
    const auto any = [&](auto test) { return test(of(a)) || test(of(b)); };
    ++pairs;
    nan += any([](std::uint32_t m) { return m > 0x7f800000; });
    infinite += any([](std::uint32_t m) { return m == 0x7f800000; });
    zero += any([](std::uint32_t m) { return m == 0; });
    subnormal += any([](std::uint32_t m) { return m != 0 && m < 0x800000; });
    subnormal_result += of(result) != 0 && of(result) < 0x800000;
    if (select > kProduct || of(result) >= 0x7f800000) return;
    // A tie lies half way between two numbers of f32; sums and products of two are exact in f64
    // unless they lie far apart.
    const double x = std::bit_cast<float>(a);
    const double y = std::bit_cast<float>(b);
    const double exact = select == kSum ? x + y : x * y;
    const auto value = static_cast<double>(std::bit_cast<float>(result));
    const double step = exact - value;
    if (step == 0) return;
    const bool outward = (step > 0) == (result >> 31 == 0);
    const std::uint32_t other = outward ? result + 1 : result - 1;
    tie += static_cast<double>(std::bit_cast<float>(other)) - exact == step;
  }
};

class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t operator()() {  // splitmix64
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }

 private:
  std::uint64_t state_;
};

std::uint32_t assemble(bool sign, int exponent, std::uint32_t fraction) {
  const int field = exponent < 0 ? 0 : exponent > 255 ? 255 : exponent;
  return std::uint32_t{sign} << 31 | static_cast<std::uint32_t>(field) << 23 |
         (fraction & 0x7fffff);
}

// Fractions in which rounding and carries have something to do: few bits, long runs, any.
std::uint32_t fraction(std::uint64_t bits) {
  const auto value = static_cast<std::uint32_t>(bits >> 8) & 0x7fffff;
  switch (bits & 3) {
    case 0:
      return value & ~((1U << (bits >> 32) % 24) - 1);
    case 1:
      return 1U << (bits >> 32) % 23 | (bits >> 63 ? 0x400000U : 0U);
    case 2:
      return 0x7fffffU << (bits >> 32) % 24 ^ (bits >> 63 ? 1U : 0U);
    default:
      return value;
  }
}

struct Pair {
  std::uint32_t a;
  std::uint32_t b;
};

Pair random_pair(Random& random, std::uint64_t i) {
  const std::uint64_t x = random();
  const std::uint64_t y = random();
  const bool sign_a = (x >> 62) & 1;
  const bool sign_b = (y >> 62) & 1;
  const int exponent = static_cast<int>(x >> 40 & 255);
  switch (i & 7) {
    case 0:  // any bits
      return {static_cast<std::uint32_t>(x), static_cast<std::uint32_t>(y)};
    case 1:  // near each other: cancellation, and shifts by little
      return {assemble(sign_a, exponent, fraction(x)),
              assemble(sign_b, exponent + static_cast<int>(y >> 40 & 3) - 1, fraction(y))};
    case 2:  // within reach of each other's rounding
      return {assemble(sign_a, exponent, fraction(x)),
              assemble(sign_b, exponent + static_cast<int>((y >> 40) % 55) - 27, fraction(y))};
    case 3:  // a product near the smallest normal number
      return {
          assemble(sign_a, exponent, fraction(x)),
          assemble(sign_b, 128 - exponent + static_cast<int>((y >> 40) % 60) - 40, fraction(y))};
    case 4:  // a product near the largest number
      return {assemble(sign_a, exponent, fraction(x)),
              assemble(sign_b, 381 - exponent + static_cast<int>(y >> 40 & 7) - 4, fraction(y))};
    case 5:  // subnormal numbers with each other, and with any
      return {
          assemble(sign_a, 0, fraction(x)),
          assemble(sign_b, y >> 40 & 1 ? static_cast<int>(y >> 41 & 3) : exponent, fraction(y))};
    case 6: {  // infinities, NaNs and zeros with any
      static constexpr std::array<std::uint32_t, 8> kSpecial = {
          0x7f800000, 0xff800000, 0x7fc00000, 0xffc00001, 0x7f800001, 0, 0x80000000, 0x3f800000};
      const std::uint32_t special = kSpecial[x >> 40 & 7];
      const std::uint32_t other =
          y >> 40 & 1 ? kSpecial[y >> 41 & 7] : assemble(sign_b, exponent, fraction(y));
      return y >> 50 & 1 ? Pair{special, other} : Pair{other, special};
    }
    default:  // all but equal magnitudes
      return {assemble(sign_a, exponent, fraction(x)),
              assemble(sign_b, exponent, fraction(x) + static_cast<std::uint32_t>(y & 3) - 1)};
  }
}

std::vector<std::uint32_t> directed_values() {
  std::vector<std::uint32_t> values;
  const std::array<int, 24> exponents = {0,   1,   2,   3,   23,  24,  25,  64,
                                         103, 104, 105, 126, 127, 128, 129, 149,
                                         150, 151, 152, 200, 252, 253, 254, 255};
  const std::array<std::uint32_t, 10> fractions = {
      0, 1, 2, 3, 0x3fffff, 0x400000, 0x400001, 0x555555, 0x7ffffe, 0x7fffff};
  for (const bool sign : {false, true})
    for (const int exponent : exponents)
      for (const std::uint32_t bits : fractions) values.push_back(assemble(sign, exponent, bits));
  return values;
}

void check_unit(Select select) {
  Units units;
  Met met;
  const auto check = [&](std::uint32_t a, std::uint32_t b) {
    const std::uint32_t want = expected(select, a, b);
    const std::uint32_t got = units(select, a, b);
    met.count(select, a, b, want);
    if (got == want) return true;
    ADD_FAILURE() << std::hex << "of 0x" << a << " and 0x" << b << ": 0x" << got << " instead of 0x"
                  << want;
    return false;
  };
  const std::vector<std::uint32_t> values = directed_values();
  for (const std::uint32_t a : values)
    for (const std::uint32_t b : values)
      if (!check(a, b)) return;
  Random random(select);
  for (std::uint64_t i = 0; i < kPairs; ++i) {
    const Pair pair = random_pair(random, i);
    if (!check(pair.a, pair.b)) return;
  }
  EXPECT_GE(met.pairs, kPairs);
  for (const std::uint64_t count : {met.nan, met.infinite, met.zero, met.subnormal})
    EXPECT_GT(count, kPairs / 100);
  EXPECT_GT(met.subnormal_result, kPairs / 100);
  if (select <= kProduct) {
    EXPECT_GT(met.tie, kPairs / 1000);
  }
  ::testing::Test::RecordProperty("pairs", std::to_string(met.pairs));
  ::testing::Test::RecordProperty("ties", std::to_string(met.tie));
}

TEST(FloatUnits, AddersSumIsTheHosts) { check_unit(kSum); }
TEST(FloatUnits, MultipliersProductIsTheHosts) { check_unit(kProduct); }
TEST(FloatUnits, ComparatorsMinimumIsTheContracts) { check_unit(kMinimum); }
TEST(FloatUnits, ComparatorsMaximumIsTheContracts) { check_unit(kMaximum); }

template <typename Format>
void check_widening(std::uint32_t type, std::uint32_t codes) {
  Units units;
  for (std::uint32_t code = 0; code < codes; ++code) {
    const auto want = std::bit_cast<std::uint32_t>(numeric::widen<Format>(code));
    ASSERT_EQ(units(kWiden, code, 0, type), want) << "code " << code;
  }
}

TEST(Converters, EveryCodeIsWidened) {
  check_widening<numeric::F16>(PENSTOCK_F16, 1U << 16);
  check_widening<numeric::Bf16>(PENSTOCK_BF16, 1U << 16);
  check_widening<numeric::F8e4m3>(PENSTOCK_F8E4M3, 1U << 8);
  check_widening<numeric::F8e5m2>(PENSTOCK_F8E5M2, 1U << 8);
}

// Values from `first` on, `step` apart.
template <typename Format>
void check_narrowing(std::uint32_t type, std::uint64_t first, std::uint64_t step) {
  Units units;
  std::uint64_t checked = 0;
  for (std::uint64_t bits = first; bits < std::uint64_t{1} << 32; bits += step) {
    const auto value = static_cast<std::uint32_t>(bits);
    const std::uint32_t want = numeric::narrow<Format>(std::bit_cast<float>(value));
    const std::uint32_t got = units(kNarrow, value, 0, type);
    if (got != want) {
      FAIL() << std::hex << "of 0x" << value << ": 0x" << got << " instead of 0x" << want;
    }
    ++checked;
  }
  EXPECT_GE(checked, ((std::uint64_t{1} << 32) - first) / step);
}

// Below a format's last bit only two things count: the next bit, and whether any after it is set.
// So every value of the upper bits with few of the lower ones is as good as all. PENSTOCK_FOLD_STEP
// takes every so many-th of all besides.
template <typename Format>
void check_narrowing(std::uint32_t type) {
  // f16 keeps 10 bits of the fraction; the bit below, and two more.
  for (const std::uint64_t low : {0, 1, 0x3ff}) check_narrowing<Format>(type, low, 1U << 10);
  check_narrowing<Format>(type, 0, PENSTOCK_FOLD_STEP);
}

TEST(Converters, F16IsRoundedAsTheContractSays) { check_narrowing<numeric::F16>(PENSTOCK_F16); }
TEST(Converters, Bf16IsRoundedAsTheContractSays) { check_narrowing<numeric::Bf16>(PENSTOCK_BF16); }
TEST(Converters, F8e4m3IsRoundedAsTheContractSays) {
  check_narrowing<numeric::F8e4m3>(PENSTOCK_F8E4M3);
}
TEST(Converters, F8e5m2IsRoundedAsTheContractSays) {
  check_narrowing<numeric::F8e5m2>(PENSTOCK_F8E5M2);
}

}  // namespace
}  // namespace penstock::rtl
