#include "penstock/engine/choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "penstock/engine/host_engine.h"

namespace penstock {
namespace {

using ::testing::HasSubstr;

// Takes no time, and is right where measure_speed looks: the first fold is a real one.
class InstantKernels final : public Kernels {
 public:
  explicit InstantKernels(bool right) : right_(right) {}
  void copy(void* const*, std::uint32_t, const void*, std::uint64_t, bool) const override {}
  void reduce(const ReduceArguments& arguments) const override {
    if (right_ && !done_.exchange(true)) scalar_kernels()->reduce(arguments);
  }
  void outer_step(const OuterStepArguments&) const override {}
  void select(const TableView&, const penstock_program&, const penstock_task&, bool,
              penstock_result*) const override {}

 private:
  const bool right_;
  mutable std::atomic<bool> done_{false};
};

Capabilities capabilities_of(const std::string& name) {
  Capabilities can = make_engine("scalar").value()->capabilities();
  can.name = name;
  return can;
}

EngineFactory factory_of(const std::string& name, const Capabilities& can, bool right = true) {
  EngineFactory factory;
  factory.name = name;
  factory.preference = 60;
  factory.probe = [name, can] { return EngineInfo{name, true, "for a test", can}; };
  factory.make = [can, right](const std::string&) -> Result<std::shared_ptr<Engine>> {
    return std::shared_ptr<Engine>(make_host_engine(can, std::make_unique<InstantKernels>(right)));
  };
  return factory;
}

class Choice : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    ASSERT_TRUE(register_engine(factory_of("instant", capabilities_of("instant"))).ok());
    ASSERT_TRUE(register_engine(factory_of("wrong", capabilities_of("wrong"), false)).ok());
    // As fast, but auto must not take it.
    EngineFactory model = factory_of("model", capabilities_of("model"));
    model.probe = [] {
      EngineInfo info{"model", true, "", {}};
      info.simulated = true;
      return info;
    };
    ASSERT_TRUE(register_engine(model).ok());
    Capabilities narrow = capabilities_of("narrow");
    narrow.redops[PENSTOCK_F16] = 1;
    narrow.opcodes &= ~(1u << PENSTOCK_OP_SELECT);
    ASSERT_TRUE(register_engine(factory_of("narrow", narrow)).ok());
    EngineFactory absent = factory_of("absent", capabilities_of("absent"));
    absent.present = [] { return false; };
    absent.probe = []() -> EngineInfo { std::abort(); };
    ASSERT_TRUE(register_engine(absent).ok());
  }

  void SetUp() override {
    char name[] = "/tmp/penstock-choice-XXXXXX";
    ASSERT_NE(::mkdtemp(name), nullptr);
    folder_ = name;
    keep_in("speed.txt");
  }
  void TearDown() override {
    ::unsetenv("PENSTOCK_SPEED");
    std::filesystem::remove_all(folder_);
  }
  std::string keep_in(const std::string& file) {
    const std::string path = folder_ + "/" + file;
    ::setenv("PENSTOCK_SPEED", path.c_str(), 1);
    return path;
  }
  static std::string text_of(const std::string& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  static std::string why_out(const AutoChoice& choice, const std::string& name) {
    for (const AutoCandidate& one : choice.candidates)
      if (one.name == name) return one.out;
    return "not a candidate";
  }

  std::string folder_;
};

TEST_F(Choice, TheFastestThatHasWhatIsNeeded) {
  const AutoChoice choice = choose_automatically(needs_of_collectives());
  EXPECT_EQ(choice.first(), "instant");
  EXPECT_EQ(choice.candidates[1].name, "simd");  // measured, too, and faster than the definition
  EXPECT_GT(choice.candidates[1].speed.copy, 1e8);
  EXPECT_GT(choice.candidates[1].speed.reduce, choice.candidates[2].speed.reduce);
  EXPECT_EQ(choice.candidates[2].name, "scalar");
  EXPECT_THAT(why_out(choice, "wrong"), HasSubstr("1 + 1 is not 2"));
  EXPECT_THAT(why_out(choice, "narrow"), HasSubstr("f16"));
  EXPECT_EQ(why_out(choice, "model"), "not a candidate");
  EXPECT_EQ(why_out(choice, "absent"), "not a candidate");
  EXPECT_THAT(why_out(choose_automatically(needs_of_decisions()), "narrow"), HasSubstr("SELECT"));
  EXPECT_THAT(choice.reason, HasSubstr(folder_));
  EXPECT_EQ(make_engine("auto", needs_of_collectives()).value()->capabilities().name, "instant");
}

TEST_F(Choice, WhatWasMeasuredIsKept) {
  const std::string path = folder_ + "/speed.txt";
  EXPECT_EQ(choose_automatically(needs_of_collectives()).first(), "instant");
  std::vector<KeptSpeed> kept = parse_kept_speeds(text_of(path), speed_machine());
  ASSERT_EQ(kept.size(), 5u);
  // As if simd had been the fastest: nothing is measured again.
  for (KeptSpeed& one : kept)
    if (one.name == "simd") one.speed = {1e15, 1e15, 1e15};
  std::ofstream(keep_in("other.txt")) << kept_speeds_text(speed_machine(), kept);
  EXPECT_EQ(choose_automatically(needs_of_collectives()).first(), "simd");
  // Figures of another machine, and damaged ones, are not believed.
  std::ofstream(keep_in("foreign.txt")) << kept_speeds_text(speed_machine() + 1, kept);
  EXPECT_EQ(choose_automatically(needs_of_collectives()).first(), "instant");
  std::string damaged = kept_speeds_text(speed_machine(), kept);
  damaged[damaged.find("1e+15")] = '2';
  std::ofstream(keep_in("damaged.txt")) << damaged;
  EXPECT_EQ(choose_automatically(needs_of_collectives()).first(), "instant");
}

TEST_F(Choice, WithoutMeasuringPreferenceDecides) {
  ::setenv("PENSTOCK_SPEED", "none", 1);
  const AutoChoice choice = choose_automatically(needs_of_collectives());
  EXPECT_EQ(choice.first(), "simd");
  EXPECT_EQ(choice.candidates[0].speed.copy, 0);
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
}

TEST_F(Choice, AFolderThatCannotBeWrittenIsNoError) {
  ::setenv("PENSTOCK_SPEED", "/proc/nowhere/speed.txt", 1);
  EXPECT_EQ(choose_automatically(needs_of_collectives()).first(), "instant");
}

TEST_F(Choice, AnEngineThatFailsIsNotMeasured) {
  auto failing = make_engine("fault:simd;fail=2:io_error").value();
  EXPECT_EQ(measure_speed(*failing).status().code(), Code::io_error);
  auto stalled = make_engine("fault:simd;stall=1").value();
  EXPECT_EQ(measure_speed(*stalled, 50).status().code(), Code::deadline_exceeded);
}

TEST(KeptSpeeds, ComeBackAsTheyWere) {
  const std::vector<KeptSpeed> speeds = {{"opencl:GPU", 7, 9, true, {1.5e9, 2.25e9, 1e6}, ""},
                                         {"card:xrt", 1, 0, false, {}, "no answer; at all"}};
  const std::vector<KeptSpeed> back = parse_kept_speeds(kept_speeds_text(42, speeds), 42);
  ASSERT_EQ(back.size(), 2u);
  EXPECT_EQ(back[0].name, "opencl:GPU");
  EXPECT_EQ(back[0].opcodes, 7u);
  EXPECT_EQ(back[0].types, 9u);
  EXPECT_TRUE(back[0].host_memory);
  EXPECT_EQ(back[0].speed.reduce, 2.25e9);
  EXPECT_EQ(back[0].failure, "");
  EXPECT_EQ(back[1].failure, "no answer; at all");
  EXPECT_TRUE(parse_kept_speeds("", 42).empty());
  EXPECT_TRUE(parse_kept_speeds(std::string(5000, 'x'), 42).empty());
}

TEST(EngineSource, GoesOnWithTheNext) {
  EngineSource source = EngineSource::parse("gpu,scalar,simd").value();
  EXPECT_EQ(source.next().value()->capabilities().name, "scalar");
  EXPECT_EQ(source.name(), "scalar");
  EXPECT_TRUE(source.more());
  EXPECT_EQ(source.next().value()->capabilities().name, "simd");
  EXPECT_FALSE(source.more());
  EXPECT_EQ(source.next().status().code(), Code::not_found);  // of what was wanted first
  EXPECT_FALSE(EngineSource::parse("scalar").value().more() == false);
  for (const char* wrong : {"", ",", "simd,", ",simd", "simd,,scalar"})
    EXPECT_EQ(EngineSource::parse(wrong).status().code(), Code::not_found) << wrong;
}

}  // namespace
}  // namespace penstock
