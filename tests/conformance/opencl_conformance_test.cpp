// The conformance suite on the OpenCL device that is here, as the plugin brings it.
#include <gtest/gtest.h>
#include <stdlib.h>

#include "penstock/engine/conformance.h"
#include "penstock/memory/temporary_pool_test.h"

namespace penstock {
namespace {

// PoCL keeps what it compiles, too; nothing of it goes into the user's folders.
const bool kept_here = ::setenv("POCL_CACHE_DIR", PENSTOCK_TEST_CACHE "/pocl", 1) == 0;

class OpenclConformance : public PoolTest, public ::testing::WithParamInterface<const char*> {
 protected:
  void SetUp() override {
    const std::string name = std::string("opencl:") + GetParam() + ";cache=" PENSTOCK_TEST_CACHE;
    auto engine = make_engine(name);
    if (!engine.ok() && engine.status().code() == Code::unsupported &&
        engine.status().message().find("no OpenCL platform") != std::string::npos)
      GTEST_SKIP() << engine.status().to_string();
    ASSERT_TRUE(engine.ok()) << engine.status().to_string();
    engine_ = std::move(engine).value();
    create(8 * kMiB);
  }
  void run(Pool* pool) {
    const bool has_f64 = engine_->capabilities().redops[PENSTOCK_F64] != 0;
    ConformanceOptions options;
    options.pool = pool;
    options.seed = 11;
    options.quick = true;
    options.timeout_ms = 120000;
    auto report = run_conformance(*engine_, options);
    ASSERT_TRUE(report.ok()) << report.status().to_string();
    EXPECT_TRUE(report->passed()) << report->to_table();
    EXPECT_GT(report->comparisons(), 100'000u);
    for (const ConformanceRow& row : report->rows) {
      const bool refused = row.verdict == Verdict::unsupported;
      for (const char* operation : {"COPY", "OUTER_STEP"})
        EXPECT_FALSE(refused && row.operation == operation) << row.operation << row.reason;
      if (row.operation.rfind("REDUCE ", 0) == 0 && refused) {
        EXPECT_TRUE(row.type == "f64" && !has_f64) << row.operation << ' ' << row.type;
      }
    }
  }
  std::shared_ptr<Engine> engine_;
};

TEST_P(OpenclConformance, QuickInAPool) { run(map().get()); }
TEST_P(OpenclConformance, QuickInAPoolThatIsFlushed) {
  run(map(platform_, 0, Coherence::software).get());
}
TEST_P(OpenclConformance, QuickInHostMemory) { run(nullptr); }

// Chunks that are small beside the operands, so that they take turns.
INSTANTIATE_TEST_SUITE_P(Memory, OpenclConformance, ::testing::Values("", ";staged=1;chunk=65536"),
                         [](const auto& one) { return one.index == 0 ? "found" : "staged"; });

}  // namespace
}  // namespace penstock
