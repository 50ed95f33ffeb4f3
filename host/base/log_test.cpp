#include "penstock/base/log.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "penstock/base/process_test.h"

namespace penstock::log {
namespace {

// The level is read once, so each case has a process of its own.
int enabled_levels(const char* value) {
  Child child([&] {
    ::setenv("PENSTOCK_LOG", value, 1);
    int levels = 0;
    for (int level = 0; level < 6; ++level) {
      if (enabled(static_cast<Level>(level))) levels |= 1 << level;
    }
    ::_exit(levels);
  });
  return child.wait();
}

TEST(Log, level_comes_from_the_environment) {
  EXPECT_EQ(enabled_levels("trace"), 0b11111);
  EXPECT_EQ(enabled_levels("info"), 0b11100);
  EXPECT_EQ(enabled_levels(""), 0b11000);
  EXPECT_EQ(enabled_levels("error"), 0b10000);
  EXPECT_EQ(enabled_levels("off"), 0);
}

TEST(Log, writes_to_standard_error) {
  ::testing::internal::CaptureStderr();
  warn("{} and {}", "one", 2);
  const std::string text = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(text.find("warning: one and 2\n"), std::string::npos) << text;
}

}  // namespace
}  // namespace penstock::log
