#include "penstock/base/trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "penstock/base/platform.h"

namespace penstock::trace {
namespace {

using testing::HasSubstr;
using testing::Not;

class Trace : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/penstock-trace-XXXXXX";
    ASSERT_NE(nullptr, ::mkdtemp(name));
    folder_ = name;
  }
  void TearDown() override {
    ASSERT_TRUE(start(Config()).ok());
    for (const char* file : {"/t", "/t.0", "/t.1"}) (void)std::remove((folder_ + file).c_str());
    ::rmdir(folder_.c_str());
  }
  Config config(std::uint64_t max_events = 1000) const {
    Config made;
    made.file = folder_ + "/t";
    made.max_events = max_events;
    return made;
  }
  std::vector<std::string> lines(const std::string& file) const {
    std::ifstream in(folder_ + file);
    std::vector<std::string> all;
    for (std::string line; std::getline(in, line);) all.push_back(line);
    return all;
  }
  // The number behind "key": in an event's line.
  static double number(const std::string& line, const std::string& key) {
    const std::size_t at = line.find("\"" + key + "\":");
    return at == std::string::npos ? -1 : std::strtod(line.c_str() + at + key.size() + 3, nullptr);
  }
  std::string folder_;
};

TEST_F(Trace, OffRecordsNothing) {
  ASSERT_TRUE(start(Config()).ok());
  EXPECT_FALSE(enabled());
  { const Scope scope(Kind::wait, "wait", 1, 2); }
  EXPECT_EQ(0u, totals().events);
  EXPECT_TRUE(flush().ok());
  EXPECT_TRUE(lines("/t").empty());
}

TEST_F(Trace, ASliceThatBeganWhileOffIsNotRecorded) {
  ASSERT_TRUE(start(Config()).ok());
  {
    const Scope scope(Kind::wait, "wait", 1, 2);
    ASSERT_TRUE(start(config()).ok());
  }
  EXPECT_EQ(0u, totals().events);
}

TEST_F(Trace, SlicesNestAndKeepTheirTime) {
  ASSERT_TRUE(start(config()).ok());
  const std::uint64_t before_ns = Platform::host().now_ns();
  {
    const Scope call(Kind::call, "all_reduce", 4096, 3);
    Platform::host().sleep_ns(2'000'000);
    const Scope wait(Kind::wait, "wait", 2, 7);
    Platform::host().sleep_ns(1'000'000);
  }
  const std::uint64_t after_ns = Platform::host().now_ns();
  ASSERT_TRUE(flush().ok());
  const auto file = lines("/t");
  ASSERT_EQ(6u, file.size());
  EXPECT_THAT(file[0], HasSubstr("\"rank\":0,\"size\":1"));
  EXPECT_THAT(file[0], HasSubstr("\"events\":2,\"dropped\":0"));
  // The outer one comes first, though it ended last.
  EXPECT_THAT(file[3], HasSubstr("\"cat\":\"call\",\"name\":\"all_reduce\","
                                 "\"args\":{\"bytes\":4096,\"root\":3}"));
  EXPECT_THAT(file[4], HasSubstr("\"args\":{\"rank\":2,\"value\":7}"));
  EXPECT_EQ("]}", file[5]);
  const double outer = number(file[3], "ts"), outer_us = number(file[3], "dur");
  const double inner = number(file[4], "ts"), inner_us = number(file[4], "dur");
  EXPECT_GE(outer, static_cast<double>(before_ns) / 1e3 - 0.001);
  EXPECT_LE(outer + outer_us, static_cast<double>(after_ns) / 1e3 + 0.001);
  EXPECT_GE(inner - outer, 2000);
  EXPECT_GE(inner_us, 1000);
  EXPECT_LE(inner + inner_us, outer + outer_us + 0.001);
}

TEST_F(Trace, AFullBufferDropsAndCounts) {
  ASSERT_TRUE(start(config(3)).ok());
  for (int i = 0; i < 10; ++i) const Scope scope(Kind::copy, "copy", 64);
  EXPECT_EQ(3u, totals().events);
  EXPECT_EQ(7u, totals().dropped);
  ASSERT_TRUE(flush().ok());
  EXPECT_THAT(lines("/t")[0], HasSubstr("\"events\":3,\"dropped\":7"));
}

TEST_F(Trace, ThreadsHaveBuffersOfTheirOwn) {
  ASSERT_TRUE(start(config(100)).ok());
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([] {
      for (int i = 0; i < 100; ++i) const Scope scope(Kind::signal, "signal", 1);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(400u, totals().events);
  EXPECT_EQ(0u, totals().dropped);
  ASSERT_TRUE(flush().ok());
  std::vector<int> of_thread(4, 0);
  for (const std::string& line : lines("/t")) {
    const double thread = number(line, "tid");
    if (thread >= 0) ++of_thread.at(static_cast<std::size_t>(thread));
  }
  EXPECT_THAT(of_thread, testing::Each(100));
}

TEST_F(Trace, TimesAddUpByKindWithoutAFile) {
  Config times;
  times.times = true;
  ASSERT_TRUE(start(times).ok());
  const Times before = thread_times();
  for (int i = 0; i < 3; ++i) {
    const Scope scope(Kind::wait, "wait", 5, 0);
    Platform::host().sleep_ns(1'000'000);
  }
  const Times after = thread_times();
  const auto wait = static_cast<std::size_t>(Kind::wait);
  const auto copy = static_cast<std::size_t>(Kind::copy);
  EXPECT_EQ(3u, after.count[wait] - before.count[wait]);
  EXPECT_GE(after.ns[wait] - before.ns[wait], 3'000'000u);
  EXPECT_EQ(before.count[copy], after.count[copy]);
  EXPECT_GE(after.waited_for_ns[5] - before.waited_for_ns[5], 3'000'000u);
  EXPECT_EQ(before.waited_for_ns[0], after.waited_for_ns[0]);
  EXPECT_EQ(0u, totals().events);
}

TEST_F(Trace, RanksWritePartsAndAForkedChildWritesNone) {
  Config rank1 = config();
  rank1.rank = 1;
  rank1.size = 2;
  ASSERT_TRUE(start(rank1).ok());
  { const Scope scope(Kind::put, "put", 0, 64); }
  const pid_t child = ::fork();
  if (child == 0) {
    const bool off = !enabled() && flush().ok();
    ::_exit(off && lines("/t.1").empty() ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(0, status);
  ASSERT_TRUE(flush().ok());
  const auto file = lines("/t.1");
  ASSERT_EQ(5u, file.size());
  EXPECT_EQ(0u, file[3].find("{\"pid\":1,"));
  EXPECT_THAT(file[1], HasSubstr("rank 1 (pid"));
  EXPECT_TRUE(lines("/t").empty());
}

TEST_F(Trace, ReportsArriveInOneFile) {
  Config some;
  some.reports = folder_ + "/t";
  some.rank = 1;
  some.size = 2;
  ASSERT_TRUE(start(some).ok());
  ASSERT_TRUE(report("{\"a\":1}").ok());
  EXPECT_THAT(lines("/t.1"),
              testing::ElementsAre("{\"rank\":1,\"size\":2,\"reports\":[", "{\"a\":1}", "]}"));
  ASSERT_TRUE(report("{\"b\":2}").ok());
  EXPECT_THAT(lines("/t.1"), testing::ElementsAre("{\"rank\":1,\"size\":2,\"reports\":[",
                                                  "{\"a\":1},", "{\"b\":2}", "]}"));
  some.reports = "/nonexistent/folder/t";
  ASSERT_TRUE(start(some).ok());
  EXPECT_THAT(report("{}").message(), HasSubstr("/nonexistent/folder/t.1"));
}

TEST_F(Trace, BadConfigurationsAreRefused) {
  EXPECT_EQ(Code::invalid_argument, start(config(0)).code());
  Config nowhere;
  nowhere.file = "/nonexistent/folder/t";
  ASSERT_TRUE(start(nowhere).ok());
  const Status status = flush();
  EXPECT_EQ(Code::io_error, status.code());
  EXPECT_THAT(status.message(), HasSubstr("/nonexistent/folder/t"));
}

TEST_F(Trace, TheEnvironmentTurnsItOn) {
  ::setenv("PENSTOCK_TRACE", (folder_ + "/t").c_str(), 1);
  ::setenv("PENSTOCK_TRACE_EVENTS", "0", 1);
  ASSERT_TRUE(start(Config()).ok());
  EXPECT_THAT(start_from_environment(0, 2).message(), HasSubstr("PENSTOCK_TRACE_EVENTS=0"));
  ::setenv("PENSTOCK_TRACE_EVENTS", "5", 1);
  ASSERT_TRUE(start_from_environment(0, 2).ok());
  { const Scope scope(Kind::get, "get", 1, 64); }
  // What is on stays: a second world of the process does not begin anew.
  ASSERT_TRUE(start_from_environment(1, 2).ok());
  EXPECT_EQ(1u, totals().events);
  ASSERT_TRUE(flush().ok());
  EXPECT_EQ(5u, lines("/t.0").size());
  ::unsetenv("PENSTOCK_TRACE");
  ::unsetenv("PENSTOCK_TRACE_EVENTS");
}

}  // namespace
}  // namespace penstock::trace
