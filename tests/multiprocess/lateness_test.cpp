// Who is told what when a rank is late rather than lost. Clocks that stand almost still, or jump,
// make the order of events certain on a machine of any speed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <functional>
#include <vector>

#include "penstock/base/forwarding_platform_test.h"
#include "ranks.h"
#include "tally.h"

namespace penstock::test {
namespace {

using testing::HasSubstr;

// The host's, with another clock. One thread at a time.
class ClockPlatform final : public ForwardingPlatform {
 public:
  std::uint64_t now_ns() override { return then_ns_ + (to_.now_ns() - real_ns_) / slowness_; }
  void sleep_ns(std::uint64_t ns) override {
    if (before_sleep_) before_sleep_();
    to_.sleep_ns(ns);
  }
  // From now on, a second takes `slowness` seconds.
  void slow(std::uint64_t slowness) { set(now_ns(), slowness); }
  void jump(std::uint64_t ns) { set(now_ns() + ns, slowness_); }
  void before_sleep(std::function<void()> action) { before_sleep_ = std::move(action); }

 private:
  void set(std::uint64_t then_ns, std::uint64_t slowness) {
    real_ns_ = to_.now_ns();
    then_ns_ = then_ns;
    slowness_ = slowness;
  }

  std::uint64_t real_ns_ = to_.now_ns();
  std::uint64_t then_ns_ = real_ns_;
  std::uint64_t slowness_ = 1;
  std::function<void()> before_sleep_;
};

Result<Member> join_over(Platform& platform, const std::string& spec, std::uint32_t rank,
                         std::uint32_t size, std::uint32_t timeout_ms) {
  Member member;
  PENSTOCK_ASSIGN(member.pool, Pool::map(platform, spec));
  CommConfig config;
  config.name = "test";
  config.rank = rank;
  config.size = size;
  config.timeout_ms = timeout_ms;
  PENSTOCK_ASSIGN(member.comm, Comm::join(*member.pool, config));
  return member;
}

// A call that needs a rank that does not come: the clock jumps past the deadline in the middle, and
// what sleeps after that does `before_sleep`.
Status wait_past_deadline(Comm& comm, ClockPlatform& clock, std::uint32_t timeout_ms,
                          std::function<void()> before_sleep = {}) {
  PENSTOCK_ASSIGN(std::shared_ptr<Request> request, comm.start(Call()));
  for (int turn = 0; turn < 300; ++turn) {
    PENSTOCK_ASSIGN(const bool done, comm.test(*request));
    if (done) return {};
    ::usleep(1000);
  }
  clock.before_sleep(std::move(before_sleep));
  clock.jump(std::uint64_t{timeout_ms} * 1'000'000);
  return comm.wait(*request);
}

// Rank 1 may have passed a deadline of its own a moment before, and be about to say so.
TEST(Lateness, WhatTheSilentRankAnnouncesComesBeforeItsSilence) {
  const ScopedPool pool(1);
  const Tally asked;
  const Tally answered;
  Ranks ranks(2, [&](std::uint32_t rank) -> std::string {
    ClockPlatform clock;
    auto member = join_over(clock, pool.spec(), rank, 2, 60'000);
    if (!member.ok()) return member.status().to_string();
    if (rank == 1) {
      (void)asked.await(1);
      member->comm->abort("rank 1 knows who is to blame");
      answered.add();
      return "";
    }
    return wait_past_deadline(*member->comm, clock, 60'000,
                              [&] {
                                asked.add();
                                (void)answered.await(1, 5);
                              })
        .to_string();
  });
  const auto ends = ranks.join();
  EXPECT_THAT(ends[0].message, HasSubstr("was revoked by rank 1"));
  EXPECT_THAT(ends[0].message, HasSubstr("rank 1 knows who is to blame"));
}

// Rank 2's deadline passes while rank 1 is at something else, and not stopped: it is not given up
// as fast as one that is.
TEST(Lateness, OneThatIsNotStoppedMayStillComeToShrink) {
  const ScopedPool pool(1);
  constexpr std::uint32_t kTimeoutMs = 30'000;
  Ranks ranks(3, [&](std::uint32_t rank) -> std::string {
    ClockPlatform clock;
    auto member = join_over(clock, pool.spec(), rank, 3, kTimeoutMs);
    if (!member.ok()) return member.status().to_string();
    Comm& comm = *member->comm;
    if (rank == 1) {
      while (comm.health().ok()) ::usleep(1000);
      ::usleep(2'500'000);
    } else {
      const Status status = rank == 2 ? wait_past_deadline(comm, clock, kTimeoutMs) : comm.run({});
      if (status.message().find("rank 1 (pid") == std::string::npos) return status.to_string();
    }
    clock.slow(
        20);  // 50 ms, what one that is stopped is waited for, are a second; 400 ms are eight
    auto smaller = comm.shrink();
    if (!smaller.ok()) return smaller.status().to_string();
    return (*smaller)->size() == 3 ? "" : fmt::format("{} ranks", (*smaller)->size());
  });
  for (const RankEnd& end : ranks.join()) EXPECT_EQ("", end.message);
}

// Rank 1 stops on its way to a part of its own, and may hold the lock under which rank 2 has to
// come to the part of ranks 0 and 2.
TEST(Lateness, OfAPartIsPutDownToAStoppedRankOfAnother) {
  const ScopedPool pool(1);
  const Tally told;
  Ranks ranks(3, [&](std::uint32_t rank) -> std::string {
    auto member = join(pool.spec(), rank, 3, "test", Coherence::hardware, 3000);
    if (!member.ok()) return member.status().to_string();
    if (rank == 0) {
      const Status status = member->comm->split(0, 0).status();
      told.add();
      return status.to_string();
    }
    // What split does before the meeting.
    const std::int64_t choice[2] = {rank == 1 ? 1 : 0, 0};
    std::vector<std::int64_t> all(6);
    Call call;
    call.collective = Collective::all_gather;
    call.send = choice;
    call.recv = all.data();
    call.count = 2;
    call.type = PENSTOCK_INT64;
    const Status status = member->comm->run(call);
    if (!status.ok()) return status.to_string();
    if (rank == 1) ::raise(SIGSTOP);
    return told.await(1) ? "" : "nobody was told";
  });
  const pid_t stopped = ranks.pid(1);
  EXPECT_TRUE(told.await(1));
  ::kill(stopped, SIGCONT);
  const auto ends = ranks.join();
  EXPECT_THAT(ends[0].message, HasSubstr("no sign of rank 2 (pid"));
  EXPECT_THAT(ends[0].message,
              HasSubstr(fmt::format("rank 1 (pid {}), which is stopped (state T)", stopped)));
}

}  // namespace
}  // namespace penstock::test
