#include "penstock/sched/go_log.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace penstock {
namespace {

// Bits of math.Log of Go on amd64; the C library has others for some.
TEST(GoLog, HasTheBitsOfMathLog) {
  const struct {
    int x;
    std::uint64_t bits;
  } cases[] = {
      {2, 0x3fe62e42fefa39ef},      {3, 0x3ff193ea7aad030a},       {4, 0x3ff62e42fefa39ef},
      {5, 0x3ff9c041f7ed8d33},      {7, 0x3fff2272ae325a57},       {10, 0x40026bb1bbb55516},
      {102, 0x40127ff8df87c7bd},    {1002, 0x401ba3965d405f5f},    {5002, 0x40210901f6dc84b9},
      {100002, 0x402706a0c9b7a3ab}, {1048578, 0x402bb9d3feb8c46b},
  };
  for (const auto& c : cases) {
    EXPECT_EQ(std::bit_cast<std::uint64_t>(go_log(c.x)), c.bits) << c.x;
  }
  // FNV-1a over the bits of all that a table may ask for.
  std::uint64_t hash = 14695981039346656037u;
  for (int x = 2; x <= (1 << 20) + 2; ++x) {
    const auto bits = std::bit_cast<std::uint64_t>(go_log(x));
    for (int i = 0; i < 64; i += 8) hash = (hash ^ (bits >> i & 255)) * 1099511628211u;
  }
  EXPECT_EQ(hash, 0x5bf745a989af42cf);
}

TEST(GoLog, EdgesAreThoseOfMathLog) {
  EXPECT_EQ(go_log(1), 0);
  EXPECT_EQ(go_log(0), -std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::isnan(go_log(-1)));
  EXPECT_TRUE(std::isnan(go_log(std::numeric_limits<double>::quiet_NaN())));
  EXPECT_EQ(go_log(std::numeric_limits<double>::infinity()),
            std::numeric_limits<double>::infinity());
}

// The algorithm is right to less than one unit in the last place.
TEST(GoLog, IsALogarithm) {
  for (int i = 2; i < 200000; ++i) {
    const double exact = static_cast<double>(std::log(static_cast<long double>(i)));
    const double unit = std::nextafter(exact, 100.0) - exact;
    ASSERT_LE(std::fabs(go_log(i) - exact), unit) << i;
  }
}

}  // namespace
}  // namespace penstock
