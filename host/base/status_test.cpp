#include "penstock/base/status.h"

#include <gtest/gtest.h>

namespace penstock {
namespace {

Status half(int value, int* out) {
  if (value % 2 != 0) return error(Code::invalid_argument, "{} is odd", value);
  *out = value / 2;
  return Status();
}

Result<int> quarter(int value) {
  int first = 0;
  PENSTOCK_TRY(half(value, &first));
  int second = 0;
  PENSTOCK_TRY(half(first, &second));
  return second;
}

Result<std::string> quarter_text(int value) {
  PENSTOCK_ASSIGN(const int result, quarter(value));
  return std::to_string(result);
}

TEST(Status, success_is_empty) {
  const Status status;
  EXPECT_TRUE(status.ok());
  EXPECT_EQ(status.code(), Code::ok);
  EXPECT_EQ(status.message(), "");
  EXPECT_EQ(status.to_string(), "ok");
  EXPECT_TRUE(status.with_context("somewhere").ok());
  EXPECT_TRUE(Status(Code::ok, "ignored").ok());
}

TEST(Status, carries_code_and_sentence) {
  const Status status = error(Code::corrupt, "{}: bad magic {:#x}", "pool.0", 255);
  EXPECT_FALSE(status.ok());
  EXPECT_EQ(status.to_string(), "corrupt: pool.0: bad magic 0xff");
  EXPECT_EQ(status.with_context("map").to_string(), "corrupt: map: pool.0: bad magic 0xff");
}

TEST(Status, copies_are_independent) {
  Status first = error(Code::busy, "one");
  Status second = first;
  first = error(Code::io_error, "two");
  EXPECT_EQ(second.to_string(), "busy: one");
  second = second.with_context("x");
  EXPECT_EQ(second.to_string(), "busy: x: one");
  first = Status();
  EXPECT_TRUE(first.ok());
}

TEST(Status, codes_have_the_names_and_numbers_of_the_abi) {
  const char* const names[] = {
      "ok",        "invalid_argument", "unsupported",       "out_of_range",      "no_space",
      "not_found", "already_exists",   "permission_denied", "deadline_exceeded", "cancelled",
      "peer_dead", "revoked",          "mismatch",          "corrupt",           "io_error",
      "busy",      "internal"};
  std::uint32_t number = 0;
  for (const char* name : names) EXPECT_STREQ(code_name(static_cast<Code>(number++)), name);
  EXPECT_EQ(number, 17u);
  EXPECT_STREQ(code_name(static_cast<Code>(17)), "?");
}

TEST(Result, passes_values_and_errors_on) {
  EXPECT_EQ(quarter(12).value(), 3);
  EXPECT_EQ(quarter(6).status().to_string(), "invalid_argument: 3 is odd");
  EXPECT_EQ(quarter_text(8).value(), "2");
  EXPECT_EQ(quarter_text(7).status().to_string(), "invalid_argument: 7 is odd");
}

TEST(ResultDeathTest, a_value_that_is_not_there_aborts) {
  EXPECT_DEATH((void)quarter(7).value(), "7 is odd");
  EXPECT_DEATH((void)Result<int>(Status()), "without a value");
}

TEST(CheckDeathTest, names_the_condition) {
  PENSTOCK_CHECK(1 + 1 == 2);
  EXPECT_DEATH(PENSTOCK_CHECK(1 + 1 == 3, "sum is {}", 2), "1 \\+ 1 == 3: sum is 2");
}

}  // namespace
}  // namespace penstock
