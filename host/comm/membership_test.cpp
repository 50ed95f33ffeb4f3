// How a place in a comm is given up: while a lock is in the hands of a process that is stopped, and
// before all have come.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <functional>
#include <thread>

#include "penstock/base/forwarding_platform_test.h"
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

// Runs something once, in between: when the clock is read the next time after `when` holds.
class InterruptedPlatform final : public ForwardingPlatform {
 public:
  std::uint64_t now_ns() override {
    if (when_ && when_()) {
      when_ = nullptr;
      then_();
    }
    return to_.now_ns();
  }
  void interrupt(std::function<bool()> when, std::function<void()> then) {
    when_ = std::move(when);
    then_ = std::move(then);
  }

 private:
  std::function<bool()> when_;
  std::function<void()> then_;
};

// A meeting of four, to which the last does not come.
class GivingUpTest : public PoolTest {
 protected:
  void SetUp() override {
    create(32 * kMiB);
    reader_ = map();
  }
  // What ends the meeting for this rank.
  Status meet(Pool& pool, std::uint32_t rank, std::function<Status()> watch) {
    CommConfig config;
    config.name = "part";
    config.timeout_ms = 60'000;
    config.rank_bytes = 4096;
    Meeting meeting;
    meeting.region = "part";
    meeting.rank = rank;
    meeting.size = 4;
    meeting.fixed = true;
    meeting.watch = std::move(watch);
    return Membership::meet(pool, config, 0, std::move(meeting)).status();
  }
  std::thread meet_elsewhere(std::uint32_t rank, const std::atomic<bool>& end) {
    std::thread thread([this, rank, &end] {
      auto pool = map();
      (void)meet(*pool, rank, [&]() -> Status {
        return end.load() ? error(Code::revoked, "rank {} was told to", rank) : Status();
      });
    });
    while (!has_come(rank)) std::this_thread::yield();
    return thread;
  }
  bool has_come(std::uint32_t rank) {
    auto region = reader_->find(RegionKind::comm, "part");
    if (!region.ok()) return false;
    const void* line = reader_->resolve(region->address + ControlLayout(4).member(rank), 64);
    ControlMember member;
    std::memcpy(&member, line, sizeof(member));
    return member.state == MemberState::joined;
  }

  // What rank 0 is told when rank 1 gives up while rank 0 comes, and rank 2 stays.
  Status told(const Status& own_watch) {
    std::atomic<bool> end_of[3] = {};
    std::thread second = meet_elsewhere(2, end_of[2]);
    std::thread first = meet_elsewhere(1, end_of[1]);
    InterruptedPlatform platform;
    auto pool = map(platform);
    platform.interrupt([this] { return has_come(0); },
                       [&] {
                         end_of[1].store(true);
                         first.join();
                       });
    const Status status = meet(*pool, 0, [&] { return own_watch; });
    end_of[2].store(true);
    second.join();
    return status;
  }

  std::unique_ptr<Pool> reader_;
};

TEST_F(GivingUpTest, IsExplainedByWhatTheOthersKnow) {
  const Status reason = error(Code::peer_dead, "rank 7 (pid 4711) died");
  EXPECT_EQ(reason.to_string(), told(reason).to_string());
}

TEST_F(GivingUpTest, NamesThoseWhoHaveNotCome) {
  const Status status = told(Status());
  EXPECT_EQ(Code::revoked, status.code());
  EXPECT_THAT(status.message(), ::testing::HasSubstr("gave up the meeting: no sign of rank 3 in"));
}

}  // namespace
}  // namespace penstock
