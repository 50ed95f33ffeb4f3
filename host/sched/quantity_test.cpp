#include "penstock/sched/quantity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace penstock {
namespace {

TEST(Quantity, WholeUnitsRoundUp) {
  const struct {
    const char* text;
    std::int64_t value;
  } cases[] = {
      {"0", 0},
      {"1", 1},
      {"+7", 7},
      {"007", 7},
      {"-0", 0},
      {"1m", 1},
      {"1000m", 1},
      {"1001m", 2},
      {"1500m", 2},
      {"0.1", 1},
      {".5", 1},
      {"5.", 5},
      {"2e3", 2000},
      {"2E3", 2000},
      {"2e+3", 2000},
      {"2500e-3", 3},
      {"1k", 1000},
      {"1Ki", 1024},
      {"1.5Gi", 1610612736},
      {"128Mi", 134217728},
      {"1M", 1000000},
      {"1G", 1000000000},
      {"1T", 1000000000000},
      {"1Ti", 1099511627776},
      {"1P", 1000000000000000},
      {"1Pi", 1125899906842624},
      {"0.001Ei", 1152921504606847},
      {"1n", 1},
      {"1u", 1},
      {"1000000000n", 1},
      {"1e-100000", 1},
      {"0e100000", 0},
      {"100000000000000000000n", 100000000000},
      {"9007199254740992", 9007199254740992},
      {"9007199254740991.5", 9007199254740992},
      {"9007199254740991.00000000000000000001", 9007199254740992},
      {"9007199254740991.00000000000000000000", 9007199254740991},
      {"1.00000000000000000000000001", 2},
      {"0.12345678901234567890123", 1},
      {"12345678901234567891n", 12345678902},
      {"123456789012345000000100n", 123456789012346},
      {"12345678901234567891e-9", 12345678902},
      {"1.", 1},
      {"1e-1", 1},
      {"0.00", 0},
      {"0.0000000000000000000000000000000000000000000001E", 1},
  };
  for (const auto& c : cases) {
    const auto value = parse_quantity(c.text);
    ASSERT_TRUE(value.ok()) << c.text << ": " << value.status().to_string();
    EXPECT_EQ(value.status().code(), Code::ok);
    EXPECT_EQ(*parse_quantity(c.text), c.value) << c.text;
  }
}

TEST(Quantity, ThousandthsRoundUp) {
  const struct {
    const char* text;
    std::int64_t value;
  } cases[] = {
      {"1", 1000},      {"1500m", 1500}, {"0.1", 100},     {"0.0001", 1},
      {"2e3", 2000000}, {"1u", 1},       {"1n", 1},        {"1.0005", 1001},
      {"250m", 250},    {"96", 96000},   {"1Ki", 1024000}, {".5", 500},
      {"1e3", 1000000}, {"+1", 1000},    {"1.", 1000},     {"0.5Ki", 512000},
  };
  for (const auto& c : cases) {
    const auto value = parse_milli_quantity(c.text);
    ASSERT_TRUE(value.ok()) << c.text << ": " << value.status().to_string();
    EXPECT_EQ(*parse_milli_quantity(c.text), c.value) << c.text;
  }
}

TEST(Quantity, RefusesWhatIsNone) {
  for (const char* text : {"",
                           " ",
                           "m",
                           "Gi",
                           ".",
                           "+",
                           "-",
                           "1 Gi",
                           "1gi",
                           "1mi",
                           "1KI",
                           "1kk",
                           "1e",
                           "1e+",
                           "1e+-3",
                           "1e3m",
                           "1.2.3",
                           "--1",
                           "1x",
                           "0x10",
                           "1K",
                           "inf",
                           "NaN",
                           "nan",
                           "1e3.5",
                           "1,5",
                           "1.00000000000000000001Ki",
                           "1e99999999999999999999"}) {
    const auto value = parse_quantity(text);
    ASSERT_FALSE(value.ok()) << text;
    EXPECT_EQ(value.status().code(), Code::invalid_argument) << text;
    EXPECT_THAT(value.status().message(),
                testing::HasSubstr(std::string("found '") + text + "', expected"));
  }
}

TEST(Quantity, RefusesWhatIsOutOfRange) {
  for (const char* text : {"-1", "-1m", "9007199254740993", "9007199254740992.1", "8.1Pi", "1E",
                           "1Ei", "1e100", "1e99999", "12345678901234567891",
                           "9007199254740992.00000000000000000001", "-12345678901234567891n"}) {
    const auto value = parse_quantity(text);
    ASSERT_FALSE(value.ok()) << text;
    EXPECT_EQ(value.status().code(), Code::out_of_range) << text;
  }
  EXPECT_EQ(parse_milli_quantity("9007199254740.993").status().code(), Code::out_of_range);
  EXPECT_EQ(*parse_milli_quantity("9007199254740.992"), 9007199254740992);
}

TEST(Quantity, FormatsBytesExactly) {
  EXPECT_EQ(format_bytes(0), "0");
  EXPECT_EQ(format_bytes(512), "512");
  EXPECT_EQ(format_bytes(1024), "1Ki");
  EXPECT_EQ(format_bytes(1536), "1.5Ki");
  EXPECT_EQ(format_bytes(1000000), "1000000");
  EXPECT_EQ(format_bytes(209715200), "200Mi");
  EXPECT_EQ(format_bytes(1610612736), "1.5Gi");
  EXPECT_EQ(format_bytes(-1536), "-1.5Ki");
  EXPECT_EQ(format_bytes(9007199254740992), "8Pi");
}

}  // namespace
}  // namespace penstock
