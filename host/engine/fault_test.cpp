#include "penstock/engine/fault.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "penstock/memory/fence.h"
#include "penstock/memory/temporary_pool_test.h"

namespace penstock {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class FaultTest : public PoolTest {
 protected:
  void SetUp() override {
    create();
    pool_ = map();
    region_ = pool_->allocate(request(4096)).value();
    queue_ = Queue::create(pool_.get(), QueueConfig{}).value();
  }
  void TearDown() override {
    queue_.reset();
    pool_.reset();
    PoolTest::TearDown();
  }
  static std::shared_ptr<Engine> make(const std::string& plan) {
    auto engine = make_engine("fault:scalar;" + plan);
    EXPECT_TRUE(engine.ok()) << engine.status().to_string();
    return engine.value();
  }
  // Copies byte 0 of the region to bytes 64, 65, ...
  void submit_copies(int n) {
    for (int i = 0; i < n; ++i) {
      penstock_descriptor d{};
      d.opcode = PENSTOCK_OP_COPY;
      d.version = 1;
      d.n_src = d.n_dst = 1;
      d.count = 1;
      d.cookie = static_cast<std::uint64_t>(i);
      d.src[0] = region_.address;
      d.dst[0] = region_.address + 64 + static_cast<std::uint64_t>(i);
      ASSERT_TRUE(queue_->submit(d));
    }
  }
  std::vector<std::uint32_t> statuses() {
    std::vector<std::uint32_t> out;
    penstock_completion c;
    while (queue_->poll(&c)) {
      EXPECT_EQ(c.cookie, out.size());
      out.push_back(c.status);
    }
    return out;
  }
  std::unique_ptr<Pool> pool_;
  Region region_;
  std::unique_ptr<Queue> queue_;
};

TEST_F(FaultTest, FailsWhatThePlanNames) {
  const auto engine = make("fail=2:io_error;fail=4:peer_dead");
  std::byte* bytes = pool_->resolve(region_.address, 128);
  bytes[0] = std::byte{9};
  submit_copies(5);
  EXPECT_EQ(engine->advance(*queue_), 5u);
  EXPECT_THAT(statuses(), ElementsAre(0, 14, 0, 10, 0));
  EXPECT_EQ(bytes[64], std::byte{9});
  EXPECT_EQ(bytes[65], std::byte{0});  // a failed one is not executed
  EXPECT_EQ(bytes[66], std::byte{9});
}

TEST_F(FaultTest, WhatIsLostDoesNotComeBack) {
  const auto engine = make("lost=3");
  const penstock_descriptor nop = [] {
    penstock_descriptor d{};
    d.version = 1;
    return d;
  }();
  EXPECT_TRUE(engine->accepts(nop).ok());
  submit_copies(5);
  engine->advance(*queue_);
  EXPECT_THAT(statuses(), ElementsAre(0, 0, 14, 14, 14));
  EXPECT_EQ(engine->accepts(nop).code(), Code::io_error);
}

TEST_F(FaultTest, TheSeedDecidesTheRest) {
  std::vector<std::uint32_t> runs[3];
  int run = 0;
  for (const char* plan : {"fail_per_million=300000;seed=5", "fail_per_million=300000;seed=5",
                           "fail_per_million=300000;seed=6"}) {
    const auto engine = make(plan);
    submit_copies(200);
    engine->advance(*queue_);
    runs[run++] = statuses();
  }
  EXPECT_EQ(runs[0], runs[1]);
  EXPECT_NE(runs[0], runs[2]);
  const auto failed = std::count(runs[0].begin(), runs[0].end(), PENSTOCK_IO_ERROR);
  EXPECT_GT(failed, 30);
  EXPECT_LT(failed, 90);
}

TEST_F(FaultTest, DelaysCompletions) {
  const auto engine = make("delay_us=20000");
  submit_copies(2);
  const std::uint64_t began = platform_.now_ns();
  EXPECT_EQ(engine->advance(*queue_), 0u);
  std::uint32_t completions = 0;
  while (completions < 2) completions += engine->advance(*queue_);
  EXPECT_GE(platform_.now_ns() - began, 40'000'000u);
  EXPECT_THAT(statuses(), ElementsAre(0, 0));
}

TEST_F(FaultTest, AStalledOneWaitsForTheCancel) {
  const auto engine = make("stall=2");
  submit_copies(3);
  EXPECT_EQ(engine->advance(*queue_), 1u);
  EXPECT_EQ(engine->advance(*queue_), 0u);
  queue_->cancel();
  EXPECT_EQ(engine->advance(*queue_), 2u);
  EXPECT_THAT(statuses(), ElementsAre(0, PENSTOCK_CANCELLED, PENSTOCK_CANCELLED));
}

TEST_F(FaultTest, WaitsAndTheirDeadlinesGoThrough) {
  const auto engine = make("seed=1");
  penstock_descriptor wait{};
  wait.opcode = PENSTOCK_OP_WAIT;
  wait.version = 1;
  wait.n_src = 2;
  wait.src[0] = region_.address;
  wait.src[1] = 3;
  wait.timeout_ms = 20;
  ASSERT_TRUE(queue_->submit(wait));
  EXPECT_EQ(engine->advance(*queue_), 0u);
  Fence(*pool_, pool_->resolve(region_.address, 64)).signal(3);
  EXPECT_EQ(engine->advance(*queue_), 1u);
  EXPECT_THAT(statuses(), ElementsAre(0));
  wait.src[1] = 4;
  ASSERT_TRUE(queue_->submit(wait));
  while (engine->advance(*queue_) == 0) platform_.pause();
  EXPECT_THAT(statuses(), ElementsAre(PENSTOCK_DEADLINE_EXCEEDED));
  ASSERT_TRUE(queue_->submit(wait));
  EXPECT_EQ(engine->advance(*queue_), 0u);
  queue_->cancel();
  EXPECT_EQ(engine->advance(*queue_), 1u);
  EXPECT_THAT(statuses(), ElementsAre(PENSTOCK_CANCELLED));
}

TEST(FaultPlan, Parses) {
  const FaultPlan plan =
      FaultPlan::parse("fail=3:internal;stall=9;delay_us=2;delay_random_us=1;seed=8").value();
  EXPECT_EQ(plan.fail, (std::map<std::uint64_t, std::uint32_t>{{3, 16}}));
  EXPECT_EQ(plan.stall, 9u);
  EXPECT_EQ(plan.delay_ns, 2000u);
  EXPECT_EQ(plan.delay_random_ns, 1000u);
  EXPECT_EQ(plan.seed, 8u);
  for (const char* wrong : {"fail=0:busy", "fail=1:ok", "fail=1:nonsense", "fail=1", "stall=",
                            "stall=-1", "seed=1x", "fail_per_million=1000001", "nothing=1", ";"}) {
    const auto refused = FaultPlan::parse(wrong);
    EXPECT_EQ(refused.status().code(), Code::invalid_argument) << wrong;
  }
  EXPECT_THAT(FaultPlan::parse("seed=1;stall=x").status().message(), HasSubstr("\"stall=x\""));
}

}  // namespace
}  // namespace penstock
