#include "penstock/sched/csv.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <thread>

namespace penstock {
namespace {

using testing::HasSubstr;

std::vector<std::vector<std::string>> rows_of(std::string_view text,
                                              const std::vector<std::string>& columns) {
  CsvReader csv(text, "t.csv");
  const Status opened = csv.open(columns);
  EXPECT_TRUE(opened.ok()) << opened.to_string();
  std::vector<std::vector<std::string>> rows;
  for (;;) {
    auto more = csv.next();
    EXPECT_TRUE(more.ok()) << more.status().to_string();
    if (!more.ok() || !*more) return rows;
    auto& row = rows.emplace_back();
    for (std::size_t i = 0; i < columns.size(); ++i) row.push_back(csv.field(i));
  }
}

Status problem_of(std::string_view text, const std::vector<std::string>& columns) {
  CsvReader csv(text, "t.csv");
  if (Status opened = csv.open(columns); !opened.ok()) return opened;
  for (;;) {
    auto more = csv.next();
    if (!more.ok()) return more.status();
    if (!*more) return {};
  }
}

using Rows = std::vector<std::vector<std::string>>;

TEST(Csv, FindsColumnsByNameAndIgnoresOthers) {
  EXPECT_EQ(rows_of("x,b,a\n1,2,3\n4,5,6\n", {"a", "b"}), (Rows{{"3", "2"}, {"6", "5"}}));
}

TEST(Csv, TakesLineEndsOfBothKindsAndNoneAtTheEnd) {
  EXPECT_EQ(rows_of("\xef\xbb\xbf"
                    "a,b\r\n1,2\r\n\r\n\n3,4",
                    {"a", "b"}),
            (Rows{{"1", "2"}, {"3", "4"}}));
}

TEST(Csv, TakesQuotesAway) {
  EXPECT_EQ(rows_of("a,b\n\"x,\"\"y\"\"\nz\",\n\"\",\"2\"", {"a", "b"}),
            (Rows{{"x,\"y\"\nz", ""}, {"", "2"}}));
}

TEST(Csv, NamesLineOfARowAfterAQuotedLineBreak) {
  CsvReader csv("a\n\"1\n2\"\nq\n", "t.csv");
  ASSERT_TRUE(csv.open({"a"}).ok());
  ASSERT_TRUE(*csv.next());
  EXPECT_EQ(csv.line(), 2u);
  ASSERT_TRUE(*csv.next());
  EXPECT_EQ(csv.where(), "t.csv:4");
  EXPECT_EQ(csv.bad(0, "a number").message(), "t.csv:4: column 'a': found 'q', expected a number");
}

TEST(Csv, RefusesWhatIsNotWellFormed) {
  const std::vector<std::string> columns = {"a", "b"};
  const std::string long_line = "a,b\n" + std::string(70000, 'x') + ",1\n";
  const std::string long_quote = "a,b\n\"" + std::string(70000, 'x');
  const std::string many = "a,b\n" + std::string(2000, ',') + "\n";
  const struct {
    std::string text;
    const char* message;
  } cases[] = {
      {"", "t.csv: the file is empty, expected a header row with a, b"},
      {"a,c\n1,2\n", "t.csv:1: the header lacks the column 'b'; found 'a,c'"},
      {"a,b,a\n1,2,3\n", "t.csv:1: the header names the column 'a' twice"},
      {"a,b\n1,2\n3\n", "t.csv:3: found 1 fields, expected 2"},
      {"a,b\n1,2,3\n", "t.csv:2: found 3 fields, expected 2"},
      {std::string("a,b\n1,\0002\n", 9), "t.csv:2: found a NUL byte"},
      {std::string("a,b\n1,\"\000\"\n", 10), "t.csv:2: found a NUL byte"},
      {"a,b\n1,\"2\n", "t.csv:2: found a quote that is not closed"},
      {"a,b\n1,x\"2\"\n", "t.csv:2: found a quote within the field 'x'"},
      {"a,b\n1,\"2\"x\n", "t.csv:2: found 'x' after a closing quote"},
      {"a,b\n1\r2,3\n", "t.csv:2: found a carriage return"},
      {long_line, "t.csv:2: the line is longer than 65536 bytes"},
      {long_quote, "t.csv:2: found a quote that is not closed within 65536 bytes"},
      {many, "t.csv:2: the line has more than 1024 fields"},
  };
  for (const auto& c : cases) {
    const Status problem = problem_of(c.text, columns);
    EXPECT_EQ(problem.code(), Code::invalid_argument) << c.message;
    EXPECT_THAT(problem.message(), HasSubstr(c.message));
  }
}

TEST(Csv, ReadsWholeNumbersOnly) {
  for (const char* text : {"", " 1", "1 ", "+1", "0x1", "1.0", "1e3", "nan", "-1", "101",
                           "9223372036854775808", "99999999999999999999999"}) {
    const std::string document = std::string("a,b\n") + text + ",\n";
    CsvReader csv(document, "t.csv");
    ASSERT_TRUE(csv.open({"a", "b"}).ok());
    ASSERT_TRUE(*csv.next());
    const auto value = csv.integer(0, 0, 100);
    ASSERT_FALSE(value.ok()) << text;
    EXPECT_EQ(value.status().message(), std::string("t.csv:2: column 'a': found '") + text +
                                            "', expected a whole number from 0 to 100");
  }
  CsvReader csv("a\n-100\n", "t.csv");
  ASSERT_TRUE(csv.open({"a"}).ok());
  ASSERT_TRUE(*csv.next());
  EXPECT_EQ(csv.integer(0, -100, 100).value(), -100);
}

TEST(Csv, EscapesWhatCannotBePrinted) {
  EXPECT_EQ(printable("a\x01\xff"), "a\\x01\\xff");
  EXPECT_EQ(printable("abcdef", 3), "abc...");
}

TEST(Csv, ReadsAPipeToItsEnd) {
  const std::string path = testing::TempDir() + "penstock_csv_pipe_" + std::to_string(::getpid());
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  const std::string text = std::string(100000, 'x') + "end";
  for (const std::uint64_t limit : {text.size(), text.size() - 1}) {
    std::thread writer([&] { std::ofstream(path, std::ios::binary) << text; });
    const auto bytes = read_file(path, limit);
    writer.join();
    if (limit == text.size()) {
      ASSERT_TRUE(bytes.ok()) << bytes.status().to_string();
      EXPECT_EQ(bytes.value(), text);
    } else {
      EXPECT_EQ(bytes.status().code(), Code::out_of_range);
    }
  }
  ::unlink(path.c_str());
}

TEST(Csv, AFolderIsNoFile) {
  const auto bytes = read_file(testing::TempDir(), 10);
  ASSERT_FALSE(bytes.ok());
  EXPECT_THAT(bytes.status().message(), HasSubstr("neither a file"));
}

TEST(Csv, SaysThatAFileIsMissing) {
  const auto bytes = read_file("/nonexistent/x.csv", 10);
  ASSERT_FALSE(bytes.ok());
  EXPECT_EQ(bytes.status().code(), Code::not_found);
  EXPECT_THAT(bytes.status().message(), HasSubstr("/nonexistent/x.csv"));
}

}  // namespace
}  // namespace penstock
