// Replays of the published trace against the published means: GPU allocation at 100 % and 130 %
// arrived, ten seeds. Tolerances in percentage points; the published runs themselves lie up to 1.9
// apart.
#include <gtest/gtest.h>

#include "penstock/sched/replay_published.h"

namespace penstock {
namespace {

class PublishedTrace : public testing::TestWithParam<const char*> {};

TEST_P(PublishedTrace, MeansAreThePublishedOnes) {
  const std::string folder = PENSTOCK_TRACE_DATA "/";
  ReplayConfig config;
  config.nodes = read_trace_nodes(folder + "openb_node_list_gpu_node.csv").value();
  config.pods = read_trace_pods(folder + GetParam() + ".csv").value();
  const auto published = read_published(folder + "published_gpu_allocation.csv");
  ASSERT_TRUE(published.ok()) << published.status().to_string();
  const auto compare = [&](std::vector<std::string> policies, double tolerance) {
    const std::size_t rows = 2 * policies.size();
    const auto results = replay_runs(config, {std::move(policies), 10, 2});
    ASSERT_TRUE(results.ok()) << results.status().to_string();
    const auto compared =
        compare_published(published.value(), GetParam(), results.value(), tolerance);
    ASSERT_TRUE(compared.ok()) << compared.status().to_string();
    ASSERT_EQ(compared.value().size(), rows);
    for (const PublishedComparison& c : compared.value()) {
      EXPECT_LE(std::abs(c.difference), tolerance)
          << published_text(compared.value()) << c.published.policy;
    }
  };
  compare({"random", "dot-product", "best-fit", "fgd"}, 0.4);
  compare({"gpu-packing", "gpu-clustering"}, 1.0);
}

INSTANTIATE_TEST_SUITE_P(Lists, PublishedTrace,
                         testing::Values("openb_pod_list_default", "openb_pod_list_gpushare100",
                                         "openb_pod_list_cpu250"));

}  // namespace
}  // namespace penstock
