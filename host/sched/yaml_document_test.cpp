#include "penstock/sched/yaml_document.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace penstock {
namespace {

using nlohmann::json;
using testing::HasSubstr;

json read(const std::string& text) {
  const auto value = parse_yaml(text, "c.yaml");
  EXPECT_TRUE(value.ok()) << text << ": " << value.status().to_string();
  return value.ok() ? value.value() : json();
}

TEST(Yaml, ReadsScalarsAsKubernetesDoes) {
  const struct {
    const char* text;
    json value;
  } cases[] = {
      {"~", nullptr},
      {"null", nullptr},
      {"yes", true},
      {"Off", false},
      {"true", true},
      {"'true'", "true"},
      {"\"12\"", "12"},
      {"12", 12},
      {"-12", -12},
      {"+12", 12},
      {"0x1F", 31},
      {"010", 8},
      {"0o17", 15},
      {"0b101", 5},
      {"1_000", 1000},
      {"1e3", 1000},
      {"1.5", 1.5},
      {".5", 0.5},
      {"1.", 1},
      {"100m", "100m"},
      {"1Gi", "1Gi"},
      {"09", 9},
      {"1.2.3", "1.2.3"},
      {"-", json::array({nullptr})},
      {"--", "--"},
      {"e3", "e3"},
      {"!!str 12", "12"},
      {"2.5e-3", 0.0025},
      {"9223372036854775807", INT64_MAX},
      {"cpu", "cpu"},
      {"0", 0},
      {"1e400", "1e400"},
      {"infinity", "infinity"},
      {"nan", "nan"},
      {"18446744073709551616", 18446744073709551616.0},
  };
  for (const auto& c : cases) EXPECT_EQ(read(c.text), c.value) << c.text;
  EXPECT_TRUE(read("1e3").is_number_integer());
}

TEST(Yaml, ReadsListsMapsAndJson) {
  EXPECT_EQ(read("a: 1\nb:\n- x\n- {c: d}\n"),
            json({{"a", 1}, {"b", json::array({"x", json({{"c", "d"}})})}}));
  EXPECT_EQ(read("{\"a\": [1, true, null, \"x\"], \"b\": {}}"),
            json({{"a", {1, true, nullptr, "x"}}, {"b", json::object()}}));
  EXPECT_EQ(read("a: &x {n: 1}\nb: *x\nc: [*x, &y 7, *y]\n"),
            json({{"a", {{"n", 1}}}, {"b", {{"n", 1}}}, {"c", {{{"n", 1}}, 7, 7}}}));
  EXPECT_EQ(read("a: |\n  two\n  lines\n"), json({{"a", "two\nlines\n"}}));
  EXPECT_EQ(read("a:\n"), json({{"a", nullptr}}));
}

TEST(Yaml, NamesWhatItRefusesAndWhere) {
  const struct {
    std::string text;
    Code code;
    const char* message;
  } cases[] = {
      {"", Code::invalid_argument, "c.yaml: no document"},
      {"a: 1\nb: 2\na: 3\n", Code::invalid_argument, "c.yaml:3:1: the key 'a' stands twice"},
      {"a: [1\n", Code::invalid_argument, "c.yaml:2:1: no YAML"},
      {"a: 1\n---\nb: 2\n", Code::invalid_argument, "a second document"},
      {"a: &x [*x]\n", Code::invalid_argument, "c.yaml:1:8: an alias within what it stands for"},
      {"a: *x\n", Code::invalid_argument, "no YAML: the referenced anchor is not defined"},
      {"a: .nan\n", Code::invalid_argument, "c.yaml:1:4: found .nan, expected a finite number"},
      {"a: -.inf\n", Code::invalid_argument, "found -.inf, expected a finite number"},
      {"a: !!binary abcd\n", Code::unsupported, "the tag tag:yaml.org,2002:binary"},
      {"a: &x {b: 1}\nc:\n  <<: *x\n", Code::unsupported, "c.yaml:3:3: a merge key"},
      {"? [a]\n: b\n", Code::invalid_argument, "a key that is no text"},
      {"~: b\n", Code::invalid_argument, "a key without a name"},
      {std::string(100, '[') + std::string(100, ']'), Code::out_of_range,
       "c.yaml:1:65: nests deeper than 64 levels"},
      {std::string((1 << 20) + 1, 'x'), Code::out_of_range, "1048577 bytes, expected at most"},
  };
  for (const auto& c : cases) {
    const auto value = parse_yaml(c.text, "c.yaml");
    ASSERT_FALSE(value.ok()) << c.text;
    EXPECT_EQ(value.status().code(), c.code) << value.status().to_string();
    EXPECT_THAT(value.status().message(), HasSubstr(c.message));
  }
}

TEST(Yaml, AliasesDoNotExplode) {
  std::string text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 12; ++i) {
    std::string line = fmt::format("a{}: &a{} [", i, i);
    for (int k = 0; k < 10; ++k) line += fmt::format("{}*a{}", k == 0 ? "" : ", ", i - 1);
    text += line + "]\n";
  }
  const auto many = parse_yaml(text, "c.yaml");
  ASSERT_FALSE(many.ok());
  EXPECT_EQ(many.status().code(), Code::out_of_range);
  EXPECT_THAT(many.status().message(), HasSubstr("the aliases make more than"));
  // One long text many times.
  text = "a: &a '" + std::string(500000, 'x') + "'\nb: [";
  for (int k = 0; k < 1000; ++k) text += "*a, ";
  EXPECT_EQ(parse_yaml(text + "1]\n", "c.yaml").status().code(), Code::out_of_range);
}

TEST(Yaml, HostileTextsEndQuickly) {
  for (const char* part :
       {"- ",   "a: ",  "? ",  "{a: ", "!",   "%YAML ", "[a b\n", "&a ", "[? ", "\\",
        "\"\\", "\xff", "*a ", "|\n",  ">\n", "- &a\n", "\t",     "'",   "{",   "#\n"}) {
    std::string text;
    while (text.size() < 100000) text += part;
    const auto value = parse_yaml(text, "c.yaml");
    EXPECT_NE(value.ok(), value.status().code() != Code::ok) << part;
  }
}

}  // namespace
}  // namespace penstock
