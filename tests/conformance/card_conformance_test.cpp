// The conformance suite on the simulated cards, as the plugin brings them.
#include <gtest/gtest.h>

#include "penstock/engine/conformance.h"
#include "penstock/memory/temporary_pool_test.h"

namespace penstock {
namespace {

class CardConformance : public PoolTest, public ::testing::WithParamInterface<const char*> {
 protected:
  void run(const std::string& engine_name, std::uint64_t seed) {
    create(8 * kMiB);
    const auto pool = map();
    auto engine = make_engine(engine_name);
    ASSERT_TRUE(engine.ok()) << engine.status().to_string();
    ConformanceOptions options;
    options.pool = pool.get();
    options.seed = seed;
    options.quick = true;
    options.timeout_ms = 120000;
    auto report = run_conformance(**engine, options);
    ASSERT_TRUE(report.ok()) << report.status().to_string();
    EXPECT_TRUE(report->passed()) << report->to_table();
    EXPECT_GT(report->comparisons(), 100'000u);
    for (const ConformanceRow& row : report->rows) {
      const bool refused = row.verdict == Verdict::unsupported;
      // What the card has to have.
      for (const char* operation : {"COPY", "SELECT", "SIGNAL", "WAIT", "BARRIER", "cancel"})
        EXPECT_FALSE(refused && row.operation == operation) << row.operation << row.reason;
      if (row.operation.rfind("REDUCE ", 0) == 0) {
        EXPECT_EQ(refused, row.type == "f64") << row.operation << ' ' << row.type;
      }
    }
  }
};

TEST_P(CardConformance, Quick) { run(fmt::format("card:{};seed=11", GetParam()), 11); }

INSTANTIATE_TEST_SUITE_P(Buses, CardConformance, ::testing::Values(PENSTOCK_TEST_BUSES),
                         [](const auto& one) { return std::string(one.param); });

}  // namespace
}  // namespace penstock
