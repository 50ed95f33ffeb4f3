// The engine `hls` against the numeric contract, through the plugin that a user loads: what it does
// it does with the right bits, and what it does not do is what its README says.
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "penstock/descriptor/node_table.h"
#include "penstock/engine/conformance.h"
#include "penstock/memory/temporary_pool_test.h"

namespace penstock {
namespace {

class HlsConformance : public PoolTest {
 protected:
  void SetUp() override { create(std::uint64_t{16} << 20); }
};

std::set<std::string> rows_with(const ConformanceReport& report, Verdict verdict) {
  std::set<std::string> names;
  for (const ConformanceRow& row : report.rows)
    if (row.verdict == verdict)
      names.insert(row.operation + (row.type.empty() ? "" : " ") + row.type);
  return names;
}

TEST_F(HlsConformance, ConformsOnEveryKindOfMemory) {
  for (const Coherence coherence : {Coherence::hardware, Coherence::software}) {
    const auto pool = map(platform_, 0, coherence);
    auto engine = make_engine("hls");
    ASSERT_TRUE(engine.ok()) << engine.status().to_string();
    ConformanceOptions options;
    options.pool = pool.get();
    options.quick = true;
    options.seed = coherence == Coherence::hardware ? 1 : 4;
    auto report = run_conformance(**engine, options);
    ASSERT_TRUE(report.ok()) << report.status().to_string();
    EXPECT_TRUE(report->passed()) << report->to_table();
    EXPECT_EQ(rows_with(*report, Verdict::fail), std::set<std::string>{});
    EXPECT_GT(report->comparisons(), 100'000u);

    const std::set<std::string> passed = rows_with(*report, Verdict::pass);
    for (std::uint32_t type = 0; type < PENSTOCK_TYPE_COUNT; ++type)
      for (std::uint32_t redop = 0; redop < PENSTOCK_REDOP_COUNT; ++redop) {
        const std::string row =
            std::string("REDUCE ") + penstock_redop_name(redop) + " " + penstock_type_name(type);
        EXPECT_EQ(passed.count(row), type == PENSTOCK_F64 ? 0u : 1u) << row;
      }
    for (const char* row : {"COPY", "SELECT", "SELECT normalise reversed",
                            "SELECT normalise min_max_f64", "SELECT ties rotating"})
      EXPECT_TRUE(passed.count(row)) << row;
    const std::set<std::string> unsupported = rows_with(*report, Verdict::unsupported);
    for (const char* row :
         {"UPDATE", "SELECT ties hash", "SELECT tasks gpus", "SELECT tasks domains"})
      EXPECT_TRUE(unsupported.count(row)) << row;
    const auto score = [](std::uint32_t op) {
      return std::string("SELECT scores ") + penstock_column_opcode_name(op);
    };
    for (const std::uint32_t op :
         {PENSTOCK_SCORE_LEAST_ALLOCATED, PENSTOCK_SCORE_MOST_ALLOCATED, PENSTOCK_SCORE_BALANCED,
          PENSTOCK_SCORE_BITS, PENSTOCK_SCORE_FEATURES, PENSTOCK_SCORE_DOMAINS,
          PENSTOCK_SCORE_SPREAD})
      EXPECT_TRUE(passed.count(score(op))) << score(op);
    for (const std::uint32_t op : {PENSTOCK_SCORE_RATIO, PENSTOCK_SCORE_FGD})
      EXPECT_TRUE(unsupported.count(score(op))) << score(op);
  }
}

// What lies in the process's own memory it reaches, too, at any address.
TEST_F(HlsConformance, ConformsInHostMemory) {
  auto engine = make_engine("hls");
  ASSERT_TRUE(engine.ok()) << engine.status().to_string();
  ConformanceOptions options;
  options.quick = true;
  options.seed = 9;
  auto report = run_conformance(**engine, options);
  ASSERT_TRUE(report.ok()) << report.status().to_string();
  EXPECT_TRUE(report->passed()) << report->to_table();
}

}  // namespace
}  // namespace penstock
