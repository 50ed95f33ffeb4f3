#include "penstock/sched/replay_published.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "penstock/sched/synthetic.h"

namespace penstock {
namespace {

using testing::HasSubstr;

constexpr const char* kFile =
    "workload,policy,arrived_pct,n_seeds,mean_gpu_alloc_pct,min,max\n"
    "w,01-Random,100,10,80.0,79.5,80.5\n"
    "w,01-Random,130,10,81.0,80.5,82.5\n"
    "w,06-FGD,130,10,95.4,95.3,95.5\n"
    "w,mine,130,1,50,50,50\n"
    "v,02-DotProd,100,10,90.6,90.3,91.0\n";

ReplayResult result_of(const char* policy, double full, double end) {
  ReplayResult result;
  result.policy = policy;
  result.inflate = 1.3;
  result.gpu_alloc_at_full_pct = full;
  result.gpu_alloc_pct = end;
  return result;
}

TEST(Published, VerdictsByToleranceAndBand) {
  const auto rows = parse_published(kFile, "f");
  ASSERT_TRUE(rows.ok()) << rows.status().to_string();
  const std::vector<ReplayResult> results = {
      result_of("random", 80.2, 82.2), result_of("random", 80.4, 82.4), result_of("fgd", 95, 94)};
  const auto compared = compare_published(rows.value(), "w", results, 0.4);
  ASSERT_TRUE(compared.ok()) << compared.status().to_string();
  ASSERT_EQ(compared.value().size(), 3u);
  EXPECT_NEAR(compared.value()[0].difference, 0.3, 1e-9);
  EXPECT_EQ(compared.value()[0].verdict, PublishedVerdict::within);
  EXPECT_NEAR(compared.value()[1].difference, 1.3, 1e-9);
  EXPECT_EQ(compared.value()[1].verdict, PublishedVerdict::in_band);
  EXPECT_NEAR(compared.value()[2].difference, -1.4, 1e-9);
  EXPECT_EQ(compared.value()[2].verdict, PublishedVerdict::apart);
  EXPECT_THAT(published_text(compared.value()), HasSubstr("-1.400  apart"));
  const auto json = nlohmann::json::parse(published_json(compared.value()));
  EXPECT_EQ(json[1]["verdict"], "in band");
  EXPECT_EQ(json[2]["published"]["mean"], 95.4);
  EXPECT_EQ(compare_published(rows.value(), "v", {result_of("dot-product", 90.6, 91)}, 0.1)
                .value()[0]
                .verdict,
            PublishedVerdict::within);
}

TEST(Published, SaysWhatThereIs) {
  const auto rows = parse_published(kFile, "f").value();
  const auto none = compare_published(rows, "x", {result_of("random", 80, 81)}, 1);
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.status().code(), Code::not_found);
  EXPECT_THAT(none.status().message(), HasSubstr("'x'"));
  EXPECT_THAT(none.status().message(), HasSubstr("v, w"));
  // Neither 100 % nor the end at 120 % was published of fgd.
  ReplayResult other = result_of("fgd", -1, 95);
  other.inflate = 0.9;
  EXPECT_FALSE(compare_published(rows, "w", {other}, 1).ok());
}

TEST(Published, BadRowsAreNamed) {
  const auto refused = [](const std::string& row, const char* words) {
    const auto rows = parse_published(
        "workload,policy,arrived_pct,n_seeds,mean_gpu_alloc_pct,min,max\n" + row + "\n", "f");
    ASSERT_FALSE(rows.ok()) << row;
    EXPECT_THAT(rows.status().message(), HasSubstr("f:2")) << row;
    EXPECT_THAT(rows.status().message(), HasSubstr(words)) << row;
  };
  refused("w,p,x,1,80,79,81", "arrived_pct");
  refused("w,p,100,0,80,79,81", "n_seeds");
  refused("w,p,100,1,nan,79,81", "mean_gpu_alloc_pct");
  refused("w,p,100,1,80,80.5,81", "at most the mean");
  refused("w,p,100,1,80,79,79.5", "at least the mean");
  refused("w,p,100,1,80,79,1e99", "max");
  EXPECT_FALSE(parse_published("a,b\n1,2\n", "f").ok());
}

TEST(ReplayRuns, ThreadsHaveNoInfluence) {
  const SyntheticTrace trace = synthetic_trace({30, 200, 1}).value();
  ReplayConfig config;
  config.nodes = trace.nodes;
  config.pods = trace.pods;
  config.seed = 5;
  ReplayRuns runs{{"fgd", "random"}, 3, 1};
  const auto alone = replay_runs(config, runs);
  runs.jobs = 4;
  std::size_t calls = 0;
  const auto together = replay_runs(
      config, runs,
      [&](const std::string&, std::uint64_t, const ReplayProgress&) { return ++calls > 0; });
  ASSERT_TRUE(alone.ok() && together.ok());
  ASSERT_EQ(alone.value().size(), 6u);
  EXPECT_GT(calls, 6u);
  for (std::size_t i = 0; i < 6; ++i) {
    const ReplayResult& a = alone.value()[i];
    const ReplayResult& b = together.value()[i];
    EXPECT_EQ(a.policy, i < 3 ? "fgd" : "random");
    EXPECT_EQ(a.seed, 5 + i % 3);
    EXPECT_EQ(a.gpu_alloc_pct, b.gpu_alloc_pct);
    EXPECT_EQ(a.gpu_alloc_at_full_pct, b.gpu_alloc_at_full_pct);
    EXPECT_GT(a.gpu_alloc_at_full_pct, 50);
    EXPECT_LE(a.gpu_alloc_at_full_pct, a.gpu_alloc_pct);
  }
  config.policy = "fgd";
  EXPECT_EQ(replay(config).value().gpu_alloc_pct, alone.value()[0].gpu_alloc_pct);
}

TEST(ReplayRuns, ErrorsAndCancelling) {
  const SyntheticTrace trace = synthetic_trace({30, 200, 1}).value();
  ReplayConfig config;
  config.nodes = trace.nodes;
  config.pods = trace.pods;
  EXPECT_EQ(replay_runs(config, {{"fgd", "worst"}, 2, 2}).status().code(), Code::not_found);
  EXPECT_EQ(replay_runs(config, {{}, 2, 2}).status().code(), Code::invalid_argument);
  EXPECT_EQ(replay_runs(config, {{"fgd"}, 0, 2}).status().code(), Code::invalid_argument);
  EXPECT_EQ(replay_runs(config, {{"fgd"}, 1, 0}).status().code(), Code::invalid_argument);
  const auto stop = [](const std::string&, std::uint64_t, const ReplayProgress&) { return false; };
  EXPECT_EQ(replay_runs(config, {{"fgd"}, 3, 2}, stop).status().code(), Code::cancelled);
  config.inflate = 0.5;
  EXPECT_LT(replay_runs(config, {{"fgd"}, 1, 1}).value()[0].gpu_alloc_at_full_pct, 0);
}

}  // namespace
}  // namespace penstock
