// The conformance suite on the engine `cuda`, over the stand-in driver unless PENSTOCK_CUDA_DRIVER
// names another.
#include <gtest/gtest.h>

#include <cstdlib>

#include "penstock/drivers/cuda/device.h"
#include "penstock/engine/conformance.h"
#include "penstock/memory/temporary_pool_test.h"

namespace penstock {
namespace {

const bool kPrepared = setenv("PENSTOCK_CUDA_DRIVER", PENSTOCK_TEST_CUDA_DRIVER, 0) == 0;

class CudaConformance : public PoolTest, public ::testing::WithParamInterface<const char*> {};

TEST_P(CudaConformance, Quick) {
  ASSERT_TRUE(kPrepared);
  create(8 * kMiB);
  const auto pool = map();
  auto engine = cuda::cuda_engine_factory().make(GetParam());
  ASSERT_TRUE(engine.ok()) << engine.status().to_string();
  ConformanceOptions options;
  options.pool = pool.get();
  options.seed = 21;
  options.quick = true;
  auto report = run_conformance(**engine, options);
  ASSERT_TRUE(report.ok()) << report.status().to_string();
  EXPECT_TRUE(report->passed()) << report->to_table();
  EXPECT_GT(report->comparisons(), 100'000u);
  for (const ConformanceRow& row : report->rows) {
    // What it has to have.
    const bool moves = row.operation == "COPY" || row.operation.starts_with("REDUCE") ||
                       row.operation.starts_with("OUTER_STEP");
    EXPECT_FALSE(moves && row.verdict == Verdict::unsupported)
        << row.operation << ' ' << row.type << ' ' << row.reason;
  }
}

INSTANTIATE_TEST_SUITE_P(, CudaConformance, ::testing::Values("0", "0;staged=1", "0;graphs=0"));

}  // namespace
}  // namespace penstock
