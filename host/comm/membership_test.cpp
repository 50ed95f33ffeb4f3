// How a place in a comm is given up while a lock is in the hands of a process that is stopped.
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <thread>

#include "penstock/comm/rendezvous.h"
#include "penstock/memory/temporary_pool_test.h"

namespace penstock {
namespace {

constexpr std::uint32_t kTableLock = 0;  // see Pool::lock
constexpr std::uint32_t kCommsLock = 1;

class LeaveTest : public PoolTest {
 protected:
  void SetUp() override {
    create(32 * kMiB);
    for (auto& pool : pools_) pool = map();
    holder_ = map();
  }

  // Two ranks that have met, each over a mapping of its own.
  void meet(const std::string& name, std::uint32_t timeout_ms) {
    std::array<std::thread, 2> threads;
    for (std::uint32_t rank = 0; rank < 2; ++rank) {
      threads[rank] = std::thread([&, rank] {
        CommConfig config;
        config.name = name;
        config.rank = rank;
        config.size = 2;
        config.timeout_ms = timeout_ms;
        config.rank_bytes = 4096;
        auto joined = Membership::join(*pools_[rank], config, 0);
        if (joined.ok()) members_[rank] = std::move(joined).value();
      });
    }
    for (std::thread& thread : threads) thread.join();
    ASSERT_TRUE(members_[0] && members_[1]);
  }
  std::size_t comm_regions() { return holder_->regions().size(); }

  std::array<std::unique_ptr<Pool>, 2> pools_;
  std::unique_ptr<Pool> holder_;
  std::array<std::unique_ptr<Membership>, 2> members_;
};

// Another comm may wait for this rank, whose deadline must not pass for the sake of freeing memory.
TEST_F(LeaveTest, TellsAndGoesOnWhileALockIsHeld) {
  for (const std::uint32_t which : {kCommsLock, kTableLock}) {
    SCOPED_TRACE(which);
    meet("test", 5000);
    {
      auto held = holder_->lock(which, 5000);
      ASSERT_TRUE(held.ok());
      const auto began = std::chrono::steady_clock::now();
      members_[0]->leave();
      const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
      EXPECT_LT(took.count(), 1.9);  // an eighth of 5 s; two seconds is what the destructor waits
      EXPECT_TRUE(members_[1]->has_left(0));
      EXPECT_EQ(2u, comm_regions());
    }
    members_[0].reset();
    members_[1].reset();
    EXPECT_EQ(0u, comm_regions());  // the last has freed it for both
  }
}

// When nobody could free the memory, the next who leaves whatever comm does.
TEST_F(LeaveTest, WhatNobodyCouldFreeIsFreedByWhoLeavesLater) {
  meet("later", 400);
  std::array<std::unique_ptr<Membership>, 2> later = std::move(members_);
  meet("test", 400);
  {
    auto held = holder_->lock(kCommsLock, 5000);
    ASSERT_TRUE(held.ok());
    for (auto& member : members_) {
      member->leave();
      member.reset();
    }
    EXPECT_EQ(4u, comm_regions());
  }
  later[0].reset();
  EXPECT_EQ(2u, comm_regions());
  later[1].reset();
  EXPECT_EQ(0u, comm_regions());
}

}  // namespace
}  // namespace penstock
