#include "penstock/engine/conformance.h"

#include <gtest/gtest.h>

#include <cstring>

#include "penstock/engine/host_engine.h"
#include "penstock/engine/scalar_reduce.h"
#include "penstock/engine/simd_reduce.h"
#include "penstock/memory/temporary_pool_test.h"

namespace penstock {
namespace {

class ConformanceTest : public PoolTest {
 protected:
  void SetUp() override { create(8 * kMiB); }
  void TearDown() override {
    EXPECT_TRUE(use_simd_target(""));
    PoolTest::TearDown();
  }

  static void expect_all_pass(Result<ConformanceReport> report) {
    ASSERT_TRUE(report.ok()) << report.status().to_string();
    EXPECT_TRUE(report->passed()) << report->to_table();
    // 6 reductions of 12 types, COPY, SELECT, UPDATE, NOP, and 11 about the protocol; 5 filters, 13
    // scores, 6 normalisations, 3 rules for ties and 2 kinds of tasks of SELECT.
    constexpr std::size_t kPlain = 6u * 12 + 1 + 2 + 1 + 11 + 5 + 13 + 6 + 3 + 2;
    // 5 types into the other 4, and into blocks; blocks into 6; 2 weighted folds of 6 types and of
    // blocks, and none with weights of zero; OUTER_STEP of 5 types and of blocks.
    constexpr std::size_t kFused = 5u * 4 + 5 + 6 + 2 * 7 + 1 + 6;
    EXPECT_EQ(report->rows.size(), kPlain + kFused);
    for (const ConformanceRow& row : report->rows) {
      EXPECT_EQ(row.verdict, Verdict::pass) << row.operation << ' ' << row.type << row.reason;
      EXPECT_GT(row.comparisons, 0u) << row.operation;
    }
  }
  static const ConformanceRow* find(const ConformanceReport& report, const std::string& operation,
                                    const std::string& type) {
    for (const ConformanceRow& row : report.rows)
      if (row.operation == operation && row.type == type) return &row;
    return nullptr;
  }
};

TEST_F(ConformanceTest, ScalarConforms) {
  const auto pool = map();
  auto engine = make_engine("scalar");
  ASSERT_TRUE(engine.ok());
  ConformanceOptions options;
  options.pool = pool.get();
  auto report = run_conformance(**engine, options);
  expect_all_pass(report);
  EXPECT_GT(report->comparisons(), 3'000'000u);
}

TEST_F(ConformanceTest, SimdConformsOnEveryTarget) {
  const auto pool = map();
  const std::vector<std::string> targets = simd_targets();
  ASSERT_FALSE(targets.empty());
  for (const std::string& target : targets) {
    SCOPED_TRACE(target);
    ASSERT_TRUE(use_simd_target(target));
    EXPECT_EQ(simd_target(), target);
    auto engine = make_engine("simd");
    ASSERT_TRUE(engine.ok());
    ConformanceOptions options;
    options.pool = pool.get();
    options.seed = 2;
    expect_all_pass(run_conformance(**engine, options));
  }
  EXPECT_FALSE(use_simd_target("no such"));
}

TEST_F(ConformanceTest, FlushedPoolGivesTheSame) {
  const auto pool = map(platform_, 0, Coherence::software);
  ConformanceOptions options;
  options.pool = pool.get();
  options.quick = true;
  for (const char* name : {"simd", "scalar"}) {
    auto engine = make_engine(name);
    ASSERT_TRUE(engine.ok());
    expect_all_pass(run_conformance(**engine, options));
  }
}

TEST_F(ConformanceTest, HostMemoryLeavesOutOnlyWhatNeedsAPool) {
  auto engine = make_engine("simd");
  ASSERT_TRUE(engine.ok());
  ConformanceOptions options;
  options.quick = true;
  auto report = run_conformance(**engine, options);
  ASSERT_TRUE(report.ok());
  EXPECT_TRUE(report->passed()) << report->to_table();
  std::size_t unsupported = 0;
  for (const ConformanceRow& row : report->rows) unsupported += row.verdict == Verdict::unsupported;
  // windows, SIGNAL, WAIT, WAIT deadline, cancel, BARRIER, BARRIER deadline, BARRIER cancel
  EXPECT_EQ(unsupported, 8u);
}

// Engines that are wrong in one way: the suite has to find each.
enum class Fault { last_bit, byte_past_the_end, second_destination, nan_payload, copies_nothing };

class FaultyKernels final : public Kernels {
 public:
  explicit FaultyKernels(Fault fault) : fault_(fault), sound_(scalar_kernels()) {}
  void copy(void* const* dst, std::uint32_t n_dst, const void* src, std::uint64_t bytes,
            bool stream) const override {
    if (fault_ != Fault::copies_nothing) sound_->copy(dst, n_dst, src, bytes, stream);
  }
  void reduce(const ReduceArguments& a) const override {
    ReduceArguments changed = a;
    if (fault_ == Fault::second_destination && a.n_dst > 1) changed.n_dst = 1;
    sound_->reduce(changed);
    const std::uint64_t bytes = a.count * penstock_type_size(a.type);
    auto* dst = static_cast<unsigned char*>(a.dst[0]);
    if (fault_ == Fault::last_bit && a.count == 127) dst[bytes - 1] ^= 1;
    if (fault_ == Fault::byte_past_the_end && a.count == 17) dst[bytes] ^= 1;
    if (fault_ == Fault::nan_payload && a.type == PENSTOCK_F32) {
      for (std::uint64_t i = 0; i < a.count; ++i) {
        std::uint32_t bits = 0;
        std::memcpy(&bits, dst + 4 * i, 4);
        if (bits == 0x7fc00000) dst[4 * i + 3] = 0xff;  // what x86 produces
      }
    }
  }
  void outer_step(const OuterStepArguments& a) const override { sound_->outer_step(a); }
  void select(const TableView& table, const penstock_program& program, const penstock_task& task,
              bool commit, penstock_result* result) const override {
    sound_->select(table, program, task, commit, result);
  }

 private:
  const Fault fault_;
  const std::unique_ptr<const Kernels> sound_;
};

Capabilities scalar_capabilities() {
  auto engine = make_engine("scalar");
  EXPECT_TRUE(engine.ok());
  return (*engine)->capabilities();
}

TEST_F(ConformanceTest, FindsFaults) {
  struct Expected {
    Fault fault;
    const char* operation;
    const char* type;
    const char* reason;
  };
  for (const Expected& e :
       {Expected{Fault::last_bit, "REDUCE sum", "bf16", "expected"},
        Expected{Fault::byte_past_the_end, "REDUCE avg", "int8", "after the operand was changed"},
        Expected{Fault::second_destination, "REDUCE max", "f64", "expected"},
        Expected{Fault::nan_payload, "REDUCE sum", "f32", "expected 0x7fc00000, got 0xffc00000"},
        Expected{Fault::copies_nothing, "COPY", "", "expected"}}) {
    const auto engine =
        make_host_engine(scalar_capabilities(), std::make_unique<FaultyKernels>(e.fault));
    ConformanceOptions options;
    options.quick = true;
    auto report = run_conformance(*engine, options);
    ASSERT_TRUE(report.ok());
    EXPECT_FALSE(report->passed());
    const ConformanceRow* row = find(*report, e.operation, e.type);
    ASSERT_NE(row, nullptr);
    EXPECT_EQ(row->verdict, Verdict::fail) << e.operation;
    EXPECT_NE(row->reason.find(e.reason), std::string::npos) << row->reason;
  }
}

TEST_F(ConformanceTest, WhatAnEngineDoesNotHaveIsNoFailure) {
  Capabilities capabilities = scalar_capabilities();
  capabilities.redops[PENSTOCK_F64] = 0;
  capabilities.redops[PENSTOCK_INT8] = 1u << PENSTOCK_SUM;
  capabilities.max_sources = 4;
  capabilities.max_destinations = 1;
  capabilities.max_rows = 0;
  capabilities.opcodes &= ~(1u << PENSTOCK_OP_SELECT | 1u << PENSTOCK_OP_UPDATE);
  const auto engine = make_host_engine(capabilities, scalar_kernels());
  ConformanceOptions options;
  options.quick = true;
  auto report = run_conformance(*engine, options);
  ASSERT_TRUE(report.ok());
  EXPECT_TRUE(report->passed()) << report->to_table();
  EXPECT_EQ(find(*report, "REDUCE sum", "f64")->verdict, Verdict::unsupported);
  EXPECT_EQ(find(*report, "REDUCE prod", "int8")->verdict, Verdict::unsupported);
  EXPECT_EQ(find(*report, "REDUCE sum", "int8")->verdict, Verdict::pass);
  EXPECT_EQ(find(*report, "SELECT", "")->verdict, Verdict::unsupported);
  EXPECT_NE(report->to_json().find("\"verdict\": \"unsupported\""), std::string::npos);
}

TEST(ConformanceReport, NothingComparedIsAFailure) {
  ConformanceReport report;
  EXPECT_FALSE(report.passed());
  report.rows.push_back({"REDUCE sum", "f32", Verdict::unsupported, "\"quoted\"\n", 0});
  EXPECT_FALSE(report.passed());
  EXPECT_NE(report.to_json().find("\\\"quoted\\\"\\u000a"), std::string::npos);
  report.rows.push_back({"REDUCE sum", "int8", Verdict::pass, "", 5});
  EXPECT_TRUE(report.passed());
  EXPECT_EQ(report.comparisons(), 5u);
}

}  // namespace
}  // namespace penstock
