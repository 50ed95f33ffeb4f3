#include "penstock/comm/tuning_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "penstock/comm/plan_checker.h"

namespace penstock {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;

const TuningMachine kMachine{"A CPU", 4, Coherence::hardware};

std::string file_with(const std::string& entries) {
  return R"({"format": "penstock-tuning", "version": 1, "entries": [)" + entries + "]}";
}
std::string entry_with(const std::string& more, int ranks = 2) {
  return fmt::format(R"({{"machine": {{"cpu": "A CPU", "cpus": 4, "coherence": "hardware"}},
                         "ranks": {}{}}})",
                     ranks, more);
}

TuningEntry entry_of(std::uint32_t ranks, std::uint32_t chunks) {
  TuningEntry entry;
  entry.machine = kMachine;
  entry.ranks = ranks;
  entry.tuning.chunks = chunks;
  return entry;
}

TEST(TuningFile, FieldsThatAreMissingKeepTheirDefaults) {
  auto table = parse_tuning_table(
      file_with(entry_with(R"(, "tuning": {"chunks": 7}, "local": {"expose_bytes": 99})")), "f");
  ASSERT_TRUE(table.ok()) << table.status().message();
  ASSERT_EQ(table->entries.size(), 1u);
  EXPECT_EQ(table->entries[0].machine, kMachine);
  Tuning expected;
  expected.chunks = 7;
  EXPECT_EQ(table->entries[0].tuning, expected);
  EXPECT_EQ(table->entries[0].local.expose_bytes, 99u);
  EXPECT_EQ(table->entries[0].local.stream_bytes, LocalTuning().stream_bytes);
}

TEST(TuningFile, WhatIsWrittenIsRead) {
  TuningTable table;
  TuningEntry entry = entry_of(2, 9);
  entry.tuning = {1, 2, 3, 64, 5, 1};
  entry.local = {6, std::uint64_t{7} << 40};
  entry.note = "\"quoted\"\n\xff";
  table.put(entry);
  entry.machine.coherence = Coherence::software;
  table.put(entry);
  auto read = parse_tuning_table(tuning_table_text(table), "f");
  ASSERT_TRUE(read.ok()) << read.status().message();
  ASSERT_EQ(read->entries.size(), 2u);
  EXPECT_EQ(read->entries[1].tuning, entry.tuning);
  EXPECT_EQ(read->entries[1].local, entry.local);
  EXPECT_EQ(read->entries[1].machine, entry.machine);
}

TEST(TuningFile, WhatIsWrongIsNamedWithItsPlace) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "this is no JSON"},
      {"[]", "the file: it must be an object"},
      {R"({"format": "x"})", "format: it must be \"penstock-tuning\""},
      {R"({"format": "penstock-tuning"})", "version: it is missing"},
      {R"({"format": "penstock-tuning", "version": 1})", "entries: it must be a list"},
      {file_with("3"), "entries[0]: it must be an object"},
      {file_with(R"({"ranks": 2})"), "entries[0].machine: it is missing"},
      {file_with(R"({"machine": {"cpu": 1, "cpus": 2, "coherence": "x"}, "ranks": 2})"),
       "entries[0].machine.cpu: it must be a string"},
      {file_with(R"({"machine": {"cpu": "", "cpus": 2, "coherence": "x"}, "ranks": 2})"),
       "entries[0].machine.coherence: \"x\" is neither hardware nor software"},
      {file_with(entry_with("", 1)), "entries[0].ranks: it is 1, and must be 2..64"},
      {file_with(entry_with("") + "," + entry_with("")), "entries[1]: there is another entry"},
      {file_with(entry_with(R"(, "tuning": {"chunk": 3})")),
       "entries[0].tuning.chunk: there is no such field; there are inline_bytes"},
      {file_with(entry_with(R"(, "tuning": {"chunks": -3})")),
       "entries[0].tuning.chunks: it must be a whole number"},
      {file_with(entry_with(R"(, "tuning": {"chunks": 4294967296})")),
       "entries[0].tuning.chunks: it is 4294967296, and must be 0..4294967295"},
      {file_with(entry_with(R"(, "tuning": {"chunks": 0})")), "chunks is 0, and must be 1..64"},
      {file_with(entry_with(R"(, "local": {"expose_bytes": 1.5})")),
       "entries[0].local.expose_bytes: it must be a whole number"},
      {file_with(entry_with(R"(, "extra": 1)")), "entries[0].extra: there is no such field"},
  };
  for (const auto& [text, what] : cases) {
    auto table = parse_tuning_table(text, "some/file.json");
    ASSERT_FALSE(table.ok()) << text;
    EXPECT_EQ(table.status().code(), Code::invalid_argument);
    EXPECT_THAT(table.status().message(), AllOf(HasSubstr("some/file.json"), HasSubstr(what)));
  }
  auto later =
      parse_tuning_table(R"({"format": "penstock-tuning", "version": 2, "entries": []})", "f");
  EXPECT_EQ(later.status().code(), Code::unsupported);
}

TEST(TuningTable, TheNearestEntryOfTheSameKindIsFound) {
  TuningTable table;
  for (const std::uint32_t ranks : {2u, 4u, 8u, 32u}) table.put(entry_of(ranks, ranks));
  const auto chunks = [&](std::uint32_t ranks, TuningMachine machine = kMachine) {
    const TuningEntry* const found = table.find(machine, ranks);
    return found == nullptr ? 0 : found->tuning.chunks;
  };
  EXPECT_EQ(chunks(2), 2u);
  EXPECT_EQ(chunks(3), 2u);
  EXPECT_EQ(chunks(4), 4u);
  EXPECT_EQ(chunks(5), 8u);  // 4 is nearer, but has a CPU for every rank
  EXPECT_EQ(chunks(30), 32u);
  EXPECT_EQ(chunks(2, {"A CPU", 4, Coherence::software}), 0u);
  EXPECT_EQ(chunks(2, {"another", 4, Coherence::hardware}), 0u);
  EXPECT_EQ(chunks(2, {"A CPU", 5, Coherence::hardware}), 0u);
  table.put(entry_of(4, 60));
  EXPECT_EQ(table.entries.size(), 4u);
  EXPECT_EQ(chunks(4), 60u);
}

TEST(TuningFields, AreOverriddenByName) {
  Tuning tuning;
  LocalTuning local;
  ASSERT_TRUE(set_tuning_fields("chunks=8,chunk_bytes=128K,stream_bytes=8G", tuning, local).ok());
  EXPECT_EQ(tuning.chunks, 8u);
  EXPECT_EQ(tuning.chunk_bytes, 131072u);
  EXPECT_EQ(local.stream_bytes, std::uint64_t{8} << 30);
  EXPECT_EQ(tuning.inline_bytes, Tuning().inline_bytes);
  for (const std::string text :
       {"chunk=1", "chunks", "chunks=", "chunks=x", "chunks=5G", "chunks=65", "=", "chunks=1,,"}) {
    EXPECT_EQ(set_tuning_fields(text, tuning, local).code(), Code::invalid_argument) << text;
  }
}

TEST(TuningFields, EveryFieldOfBothStructsIsThere) {
  // A struct that grows without its field being listed would lose it in the file.
  const Tuning tuning{1, 2, 3, 64, 5, 1};
  const LocalTuning local{7, 8};
  const auto fields = tuning_fields(tuning, local);
  EXPECT_EQ(sizeof(Tuning), 6 * sizeof(std::uint32_t));
  EXPECT_EQ(sizeof(LocalTuning), 2 * sizeof(std::uint64_t));
  ASSERT_EQ(fields.size(), 8u);
  EXPECT_EQ(fields[0], (FieldValue{"inline_bytes", 1}));
  EXPECT_EQ(fields[4], (FieldValue{"chunks", 5}));
  EXPECT_EQ(fields[5], (FieldValue{"push", 1}));
  EXPECT_EQ(fields[7], (FieldValue{"stream_bytes", 8}));
}

// Whatever check_tuning lets pass has to give plans, and right ones.
TEST(TuningFields, EveryTuningThatIsAcceptedGivesPlans) {
  for (int collective = 0; collective < kCollectives; ++collective) {
    for (const std::uint32_t ranks : {2u, 3u}) {
      for (const std::uint64_t bytes : {64u, 65u, 128u, 1000u, 5000u}) {
        for (const std::uint32_t chunks : {1u, 7u, 64u}) {
          PlanKey key;
          key.collective = static_cast<Collective>(collective);
          if (key.collective == Collective::send_recv && ranks != 2) continue;
          key.topology.ranks = ranks;
          key.part_bytes = key.collective == Collective::barrier ? 0 : bytes;
          key.tuning = {0, 0, 0, 64, chunks, 0};
          auto plan = make_plan(key);
          ASSERT_TRUE(plan.ok()) << plan.status().message();
          EXPECT_THAT(check_plan(**plan), IsEmpty())
              << collective_name(key.collective) << " of " << bytes << " in " << chunks;
        }
      }
    }
  }
}

class TuningInForceTest : public testing::Test {
 protected:
  void SetUp() override {
    char folder[] = "/tmp/tuning-test-XXXXXX";
    ASSERT_NE(::mkdtemp(folder), nullptr);
    folder_ = folder;
    ::setenv("XDG_CONFIG_HOME", folder, 1);
    ::unsetenv("PENSTOCK_TUNING");
    ::unsetenv("PENSTOCK_TUNING_SET");
  }
  void TearDown() override {
    ::unlink(path().c_str());
    ::rmdir((folder_ + "/penstock").c_str());
    ::rmdir(folder_.c_str());
    ::unsetenv("PENSTOCK_TUNING");
    ::unsetenv("PENSTOCK_TUNING_SET");
  }
  std::string path() const { return folder_ + "/penstock/tuning.json"; }
  void write(const std::string& text) {
    ASSERT_EQ(std::system(("mkdir -p " + folder_ + "/penstock").c_str()), 0);
    std::ofstream(path()) << text;
  }
  static Result<TuningInForce> force(std::uint32_t ranks = 2) {
    return tuning_in_force(Platform::host(), Coherence::hardware, ranks);
  }

  std::string folder_;
};

TEST_F(TuningInForceTest, WithoutAFileItIsWhatIsBuiltIn) {
  auto found = force();
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found->tuning, Tuning());
  EXPECT_EQ(found->origin, "built in");
}

TEST_F(TuningInForceTest, TheFilesEntryCountsAndTheEnvironmentOverridesIt) {
  TuningTable table;
  TuningEntry entry = entry_of(2, 11);
  entry.machine = this_machine(Platform::host(), Coherence::hardware);
  entry.tuning.inline_bytes = 77;
  table.put(entry);
  write(tuning_table_text(table));
  ::setenv("PENSTOCK_TUNING_SET", "inline_bytes=78", 1);
  auto found = force();
  ASSERT_TRUE(found.ok()) << found.status().message();
  EXPECT_EQ(found->tuning.chunks, 11u);
  EXPECT_EQ(found->tuning.inline_bytes, 78u);
  EXPECT_THAT(found->origin, AllOf(HasSubstr(path()), HasSubstr("inline_bytes=78")));
  ::setenv("PENSTOCK_TUNING", "none", 1);
  EXPECT_EQ(force()->tuning.chunks, Tuning().chunks);
}

TEST_F(TuningInForceTest, ABadFileOrNameIsAnError) {
  write("{");
  EXPECT_THAT(force().status().message(), HasSubstr(path()));
  ::setenv("PENSTOCK_TUNING", (folder_ + "/absent").c_str(), 1);
  EXPECT_EQ(force().status().code(), Code::not_found);
  EXPECT_THAT(force().status().message(), HasSubstr("PENSTOCK_TUNING"));
  ::setenv("PENSTOCK_TUNING", "none", 1);
  ::setenv("PENSTOCK_TUNING_SET", "chunks=0", 1);
  EXPECT_THAT(force().status().message(), HasSubstr("PENSTOCK_TUNING_SET"));
}

TEST(ThisMachine, HasAModelAndCpus) {
  const TuningMachine machine = this_machine(Platform::host(), Coherence::software);
  std::ifstream file("/proc/cpuinfo");
  std::string model = "unknown";
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("model name", 0) != 0) continue;
    model = line.substr(line.find(':') + 2);
    break;
  }
  EXPECT_EQ(machine.cpu, model);
  EXPECT_EQ(machine.cpus, static_cast<std::uint32_t>(::sysconf(_SC_NPROCESSORS_ONLN)));
  EXPECT_EQ(machine.coherence, Coherence::software);
}

}  // namespace
}  // namespace penstock
