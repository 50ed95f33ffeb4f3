#include "penstock/memory/fence.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <thread>

#include "penstock/base/forwarding_platform_test.h"
#include "penstock/base/process_test.h"
#include "penstock/memory/temporary_pool_test.h"

namespace penstock {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using FenceTest = PoolTest;

// Writes down what is asked of the cache, with addresses relative to a base.
class RecordingPlatform final : public ForwardingPlatform {
 public:
  void write_back(const void* data, std::size_t bytes) override {
    note("write_back", data, bytes);
    to_.write_back(data, bytes);
  }
  void invalidate(const void* data, std::size_t bytes) override {
    note("invalidate", data, bytes);
    to_.invalidate(data, bytes);
  }
  void store_fence() override {
    calls.push_back("store_fence");
    to_.store_fence();
  }
  void full_fence() override {
    calls.push_back("full_fence");
    to_.full_fence();
  }

  const void* base = nullptr;
  std::vector<std::string> calls;

 private:
  void note(const char* what, const void* data, std::size_t bytes) {
    calls.push_back(fmt::format(
        "{} {}+{}", what, static_cast<const std::byte*>(data) - static_cast<const std::byte*>(base),
        bytes));
  }
};

class FenceOrder : public FenceTest {
 protected:
  void run(Coherence coherence) {
    pool_ = map(recording_, 0, coherence);
    const auto region = pool_->allocate(request(4096)).value();
    memory_ = pool_->resolve(region.address, region.bytes);
    std::memset(memory_, 0, region.bytes);
    recording_.base = memory_;
    recording_.calls.clear();
    fence_ = std::make_unique<Fence>(*pool_, memory_);
  }
  void TearDown() override {
    fence_.reset();
    pool_.reset();
    PoolTest::TearDown();
  }

  RecordingPlatform recording_;
  std::unique_ptr<Pool> pool_;
  std::unique_ptr<Fence> fence_;
  std::byte* memory_ = nullptr;
};

TEST_F(FenceOrder, software_coherence_writes_back_and_invalidates_in_order) {
  create();
  run(Coherence::software);
  pool_->publish(memory_ + 64, 100);
  fence_->signal(1);
  EXPECT_THAT(recording_.calls, ElementsAre("write_back 64+100", "store_fence", "write_back 0+8"));
  recording_.calls.clear();
  EXPECT_EQ(fence_->load(), 1u);
  pool_->observe(memory_ + 64, 100);
  EXPECT_THAT(recording_.calls,
              ElementsAre("invalidate 0+8", "full_fence", "invalidate 64+100", "full_fence"));
}

TEST_F(FenceOrder, hardware_coherence_keeps_only_the_store_fence) {
  create();
  run(Coherence::hardware);
  pool_->publish(memory_ + 64, 100);
  fence_->signal(1);
  EXPECT_EQ(fence_->load(), 1u);
  pool_->observe(memory_ + 64, 100);
  EXPECT_THAT(recording_.calls, ElementsAre("store_fence"));
}

TEST_F(FenceOrder, the_region_table_is_published_and_observed) {
  create();
  run(Coherence::software);
  const auto count = [&](const char* what) {
    return std::count_if(recording_.calls.begin(), recording_.calls.end(),
                         [&](const std::string& call) { return call.rfind(what, 0) == 0; });
  };
  const auto region = pool_->allocate(request(4096, "name")).value();
  EXPECT_GE(count("write_back"), 1);
  EXPECT_EQ(count("write_back"), count("store_fence"));
  // The last store is the entry of two lines.
  EXPECT_EQ(recording_.calls.back(), "store_fence");
  EXPECT_THAT(recording_.calls[recording_.calls.size() - 2], HasSubstr("+128"));
  recording_.calls.clear();
  EXPECT_TRUE(pool_->find(RegionKind::user, "name").ok());
  EXPECT_GE(count("invalidate"), 2);
  EXPECT_EQ(count("write_back"), 0);
  recording_.calls.clear();
  EXPECT_TRUE(pool_->free(region).ok());
  EXPECT_GE(count("write_back"), 1);
}

TEST_F(FenceTest, never_goes_back) {
  create();
  auto pool = map();
  const auto region = pool->allocate(request(4096)).value();
  std::byte* line = pool->resolve(region.address, 64);
  std::memset(line, 0, 64);
  Fence fence(*pool, line);
  EXPECT_EQ(fence.load(), 0u);
  EXPECT_TRUE(fence.reached(0));
  fence.signal(7);
  fence.signal(3);
  EXPECT_EQ(fence.load(), 7u);
  fence.signal(7);
  EXPECT_EQ(fence.load(), 7u);
  EXPECT_TRUE(fence.reached(7));
  EXPECT_FALSE(fence.reached(8));
  fence.signal(UINT64_MAX);
  EXPECT_TRUE(fence.reached(UINT64_MAX));
}

TEST_F(FenceTest, a_wait_ends_with_its_deadline_and_says_what_it_saw) {
  create();
  auto pool = map();
  const auto region = pool->allocate(request(4096)).value();
  std::byte* line = pool->resolve(region.address, 64);
  std::memset(line, 0, 64);
  Fence fence(*pool, line);
  fence.signal(5);
  EXPECT_TRUE(fence.wait(5, 0, false).ok()) << "reached already, whatever the deadline";
  const std::uint64_t before_ns = platform_.now_ns();
  const Status late = fence.wait(7, before_ns + 20'000'000, true);
  const std::uint64_t waited_ns = platform_.now_ns() - before_ns;
  EXPECT_EQ(late.code(), Code::deadline_exceeded);
  EXPECT_THAT(late.message(), HasSubstr("should reach 7, but is at 5"));
  EXPECT_THAT(late.message(), HasSubstr(fmt::format("{:#x}", region.address)));
  EXPECT_GE(waited_ns, 20'000'000u);
  EXPECT_LT(waited_ns, 2'000'000'000u);
  std::thread signaller([&] {
    Platform::host().sleep_ns(5'000'000);
    fence.signal(7);
  });
  EXPECT_TRUE(fence.wait(7, platform_.now_ns() + 10'000'000'000, false).ok());
  signaller.join();
}

// One process fills eight lines and signals; the other sees all of them, and answers.
void ping_pong(const std::string& spec, Coherence coherence) {
  constexpr std::uint64_t kRounds = 3000;
  constexpr std::size_t kWords = 64;
  MapOptions options;
  options.coherence = coherence;
  auto pool = Pool::map(Platform::host(), spec, options).value();
  RegionRequest request;
  request.bytes = 4096;
  request.name = "lines";
  const auto region = pool->allocate(request).value();
  std::byte* memory = pool->resolve(region.address, region.bytes);
  std::memset(memory, 0, region.bytes);
  pool->publish(memory, region.bytes);
  Platform::host().store_fence();

  const auto play = [kRounds](Pool& mine, std::byte* lines, bool first) {
    Fence ping(mine, lines);
    Fence pong(mine, lines + 64);
    auto* words = reinterpret_cast<std::uint64_t*>(lines + 128);
    const std::uint64_t deadline_ns = Platform::host().now_ns() + 40'000'000'000;
    for (std::uint64_t round = 1; round <= kRounds; ++round) {
      if (first) {
        for (std::size_t i = 0; i < kWords; ++i) words[i] = round * 1000 + i;
        mine.publish(words, kWords * 8);
        ping.signal(round);
        ASSERT_TRUE(pong.wait(round, deadline_ns, true).ok());
      } else {
        ASSERT_TRUE(ping.wait(round, deadline_ns, true).ok());
        mine.observe(words, kWords * 8);
        for (std::size_t i = 0; i < kWords; ++i) ASSERT_EQ(words[i], round * 1000 + i);
        pong.signal(round);
      }
    }
  };
  Child child([&] {
    auto own = Pool::map(Platform::host(), spec, options).value();
    const auto found = own->find(RegionKind::user, "lines").value();
    play(*own, own->resolve(found.address, found.bytes), false);
  });
  play(*pool, memory, true);
  EXPECT_EQ(child.wait(), 0);
}

TEST_F(FenceTest, orders_the_payload_between_processes) {
  create();
  ping_pong(spec_, Coherence::hardware);
}

TEST_F(FenceTest, orders_the_payload_between_processes_with_software_coherence) {
  create();
  ping_pong(spec_, Coherence::software);
}

}  // namespace
}  // namespace penstock
