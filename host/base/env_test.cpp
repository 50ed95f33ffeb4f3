#include "penstock/base/env.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <set>

namespace penstock::env {
namespace {

// Sets a variable for one test.
class Setting {
 public:
  Setting(const char* name, const char* value) : name_(name) { ::setenv(name, value, 1); }
  ~Setting() { ::unsetenv(name_); }

 private:
  const char* name_;
};

TEST(Env, table_is_complete_and_in_order) {
  ASSERT_EQ(variables().size(), static_cast<std::size_t>(Id::count_));
  std::set<std::string> names;
  for (std::size_t i = 0; i < variables().size(); ++i) {
    const Variable& each = variables()[i];
    EXPECT_EQ(static_cast<std::size_t>(each.id), i);
    EXPECT_EQ(std::string(each.name).rfind("PENSTOCK_", 0), 0u) << each.name;
    EXPECT_TRUE(names.insert(each.name).second) << each.name;
    EXPECT_EQ(std::string(each.meaning).back(), '.') << each.name;
  }
  EXPECT_STREQ(variable(Id::timeout_ms).name, "PENSTOCK_TIMEOUT_MS");
}

TEST(Env, defaults) {
  ::unsetenv("PENSTOCK_POOL_BYTES");
  ::unsetenv("PENSTOCK_TIMEOUT_MS");
  ::unsetenv("PENSTOCK_RANK");
  EXPECT_EQ(bytes(Id::pool_bytes, 0, UINT64_MAX).value(), 268435456u);
  EXPECT_EQ(number(Id::timeout_ms, 1, 1000000).value(), 30000u);
  EXPECT_EQ(bytes(Id::block_bytes, 1, UINT64_MAX).value(), 1048576u);
  EXPECT_EQ(text(Id::coherence), "hardware");
  EXPECT_FALSE(is_set(Id::rank));
  EXPECT_EQ(text(Id::rank), "");
  const Status unset = number(Id::rank, 0, 10).status();
  EXPECT_EQ(unset.code(), Code::invalid_argument);
  EXPECT_NE(unset.message().find("PENSTOCK_RANK is not set"), std::string::npos) << unset.message();
}

TEST(Env, numbers_are_checked) {
  {
    const Setting setting("PENSTOCK_RANK", "7");
    EXPECT_TRUE(is_set(Id::rank));
    EXPECT_EQ(number(Id::rank, 0, 7).value(), 7u);
    EXPECT_EQ(number(Id::rank, 0, 6).status().to_string(),
              "invalid_argument: PENSTOCK_RANK=7 is out of range: it must be 0..6");
  }
  for (const char* wrong : {"x", "-1", "+1", " 1", "1 ", "1.5", "18446744073709551616", "0x10"}) {
    const Setting setting("PENSTOCK_RANK", wrong);
    const Status status = number(Id::rank, 0, UINT64_MAX).status();
    EXPECT_EQ(status.code(), Code::invalid_argument) << wrong;
    EXPECT_NE(status.message().find(wrong), std::string::npos) << status.message();
  }
  const Setting empty("PENSTOCK_TIMEOUT_MS", "");  // as if it were unset
  EXPECT_EQ(number(Id::timeout_ms, 1, UINT64_MAX).value(), 30000u);
}

TEST(Env, bytes_name_the_variable) {
  const Setting setting("PENSTOCK_POOL_BYTES", "12Q");
  const Status status = bytes(Id::pool_bytes, 0, UINT64_MAX).status();
  EXPECT_EQ(status.code(), Code::invalid_argument);
  EXPECT_EQ(status.message().rfind("PENSTOCK_POOL_BYTES: \"12Q\"", 0), 0u) << status.message();
  const Setting small("PENSTOCK_POOL_BYTES", "1K");
  EXPECT_EQ(bytes(Id::pool_bytes, 2048, 4096).status().code(), Code::invalid_argument);
}

TEST(Env, foreign_variables) {
  ::unsetenv("OMPI_COMM_WORLD_RANK");
  EXPECT_FALSE(foreign("OMPI_COMM_WORLD_RANK").has_value());
  const Setting setting("OMPI_COMM_WORLD_RANK", "3");
  EXPECT_EQ(foreign("OMPI_COMM_WORLD_RANK").value(), "3");
}

TEST(ParseBytes, accepts) {
  const std::pair<const char*, std::uint64_t> cases[] = {
      {"0", 0},
      {"64", 64},
      {"1K", 1024},
      {"1k", 1024},
      {"1.5M", 1572864},
      {"2G", 2147483648},
      {"0.5K", 512},
      {"0.001953125M", 2048},
      {"18446744073709551615", UINT64_MAX},
      {"17179869183G", 18446744072635809792u},
  };
  for (const auto& [text, expected] : cases) {
    const auto parsed = parse_bytes(text);
    ASSERT_TRUE(parsed.ok()) << text << ": " << parsed.status().to_string();
    EXPECT_EQ(parsed.value(), expected) << text;
  }
}

TEST(ParseBytes, refuses) {
  for (const char* text :
       {"", "K", ".5K", "1.", "1.K", "1.5", "1.3K", "-1", "1 K", "1KB", "1T", "17179869184G",
        "18446744073709551616", "17179869183.9999999999G", "1.5.5M", "0.0001K", "nan", "1e3"}) {
    const auto parsed = parse_bytes(text);
    EXPECT_EQ(parsed.status().code(), Code::invalid_argument) << text;
    EXPECT_NE(parsed.status().message().find('"' + std::string(text) + '"'), std::string::npos);
  }
}

}  // namespace
}  // namespace penstock::env
