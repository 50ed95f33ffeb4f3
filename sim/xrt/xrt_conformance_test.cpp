// The conformance suite over XRT on copies, as on boards of today; tests/conformance has it in
// place.
#include "penstock/engine/conformance.h"
#include "penstock/sim/xrt/xrt_card_rig_test.h"

namespace penstock::sim {
namespace {

TEST_F(XrtCardTest, ConformsOnCopies) {
  open("seed=8", ";memory=staged;staging=1");
  ConformanceOptions options;
  options.pool = pool_.get();
  options.seed = 8;
  options.quick = true;
  options.timeout_ms = 120000;
  auto report = run_conformance(*engine_, options);
  ASSERT_TRUE(report.ok()) << report.status().to_string();
  EXPECT_TRUE(report->passed()) << report->to_table();
  EXPECT_GT(report->comparisons(), 100'000u);
}

}  // namespace
}  // namespace penstock::sim
