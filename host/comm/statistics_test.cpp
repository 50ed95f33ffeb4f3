#include "penstock/comm/statistics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace penstock {
namespace {

Call all_reduce(std::uint64_t count) {
  Call call;
  call.collective = Collective::all_reduce;
  call.count = count;
  call.type = PENSTOCK_F32;
  return call;
}

void turn(bool on) {
  trace::Config config;
  config.times = on;
  ASSERT_TRUE(trace::start(config).ok());
}

TEST(Statistics, CountNothingWhileOff) {
  turn(false);
  Statistics statistics("test", 0, 2);
  { const CallRecord record(statistics, all_reduce(10)); }
  EXPECT_EQ(0u, statistics.total().calls);
}

TEST(Statistics, SplitTheTimeOfACallByWhatItDid) {
  turn(true);
  Statistics statistics("test", 0, 3);
  Platform& platform = Platform::host();
  for (int i = 0; i < 2; ++i) {
    const CallRecord record(statistics, all_reduce(100));
    {
      const trace::Scope wait(trace::Kind::wait, "wait", 2, 1);
      platform.sleep_ns(2'000'000);
    }
    const trace::Scope copy(trace::Kind::copy, "copy", 400);
    platform.sleep_ns(1'000'000);
  }
  {
    // Outside of a call: nobody's.
    const trace::Scope wait(trace::Kind::wait, "wait", 1, 1);
  }
  { const CallRecord record(statistics, Call()); }
  const CollectiveStatistics& numbers = statistics.of(Collective::all_reduce);
  EXPECT_EQ(2u, numbers.calls);
  EXPECT_EQ(800u, numbers.bytes);
  EXPECT_EQ(2u, numbers.waits);
  EXPECT_GE(numbers.wait_ns, 4'000'000u);
  EXPECT_GE(numbers.copy_ns, 2'000'000u);
  EXPECT_EQ(0u, numbers.reduce_ns);
  EXPECT_GE(numbers.ns, numbers.wait_ns + numbers.copy_ns);
  EXPECT_GE(numbers.max_ns, 3'000'000u);
  EXPECT_EQ(numbers.wait_ns, statistics.waited_for_ns(2));
  EXPECT_EQ(0u, statistics.waited_for_ns(1));
  EXPECT_EQ(1u, statistics.of(Collective::barrier).calls);
  EXPECT_EQ(3u, statistics.total().calls);
  turn(false);
}

TEST(Statistics, ANonBlockingCallHasNoLatency) {
  turn(true);
  Statistics statistics("test", 0, 1);
  { const CallRecord record(statistics, all_reduce(1), false); }
  const CollectiveStatistics& numbers = statistics.of(Collective::all_reduce);
  EXPECT_EQ(1u, numbers.calls);
  EXPECT_EQ(0u, numbers.max_ns);
  EXPECT_THAT(numbers.latency, testing::Each(0u));
  turn(false);
}

TEST(Statistics, BucketsArePowersOfTwo) {
  EXPECT_EQ(0u, latency_bucket(0));
  EXPECT_EQ(0u, latency_bucket(1));
  EXPECT_EQ(1u, latency_bucket(2));
  EXPECT_EQ(9u, latency_bucket(1023));
  EXPECT_EQ(10u, latency_bucket(1024));
  EXPECT_EQ(kLatencyBuckets - 1, latency_bucket(UINT64_MAX));
}

TEST(Statistics, QuantilesAreUpperEndsOfBuckets) {
  std::array<std::uint64_t, kLatencyBuckets> buckets{};
  EXPECT_EQ(0u, latency_quantile(buckets, 0.5));
  buckets[10] = 98;  // 1024..2047
  buckets[20] = 2;   // 1048576..2097151
  EXPECT_EQ(2047u, latency_quantile(buckets, 0));
  EXPECT_EQ(2047u, latency_quantile(buckets, 0.5));
  EXPECT_EQ(2047u, latency_quantile(buckets, 0.98));
  EXPECT_EQ(2097151u, latency_quantile(buckets, 0.99));
  EXPECT_EQ(2097151u, latency_quantile(buckets, 1));
}

TEST(Statistics, AreJsonWhateverTheCommIsCalled) {
  turn(true);
  Statistics statistics("a \"b\" \\ \n \xff", 1, 2);
  { const CallRecord record(statistics, all_reduce(16)); }
  const auto json = nlohmann::json::parse(statistics.to_json());
  EXPECT_EQ("a \"b\" \\ \n \u00ff", json["comm"].get<std::string>());
  EXPECT_EQ(1, json["rank"]);
  EXPECT_EQ(2u, json["waited_for_ns"].size());
  EXPECT_EQ(64, json["collectives"]["all_reduce"]["bytes"]);
  EXPECT_EQ(1u, json["collectives"]["all_reduce"]["latency_log2_ns"].size());
  EXPECT_FALSE(json["collectives"].contains("barrier"));
  turn(false);
}

}  // namespace
}  // namespace penstock
