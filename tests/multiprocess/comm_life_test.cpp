// How comms begin and end: meeting, disagreement, death, stopping, aborting, leaving, forking.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <vector>

#include "ranks.h"
#include "tally.h"

namespace penstock::test {
namespace {

using testing::HasSubstr;

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

Status sum_once(Comm& comm) {
  std::vector<std::int32_t> data(1000, static_cast<std::int32_t>(comm.rank() + 1));
  Call call;
  call.collective = Collective::all_reduce;
  call.send = call.recv = data.data();
  call.count = data.size();
  call.type = PENSTOCK_INT32;
  PENSTOCK_TRY(comm.run(call));
  const auto want = static_cast<std::int32_t>(comm.size() * (comm.size() + 1) / 2);
  for (const std::int32_t value : data) {
    if (value != want) return error(Code::internal, "the sum is {}, not {}", value, want);
  }
  return {};
}

std::vector<RegionInfo> regions_of(const std::string& spec) {
  auto pool = Pool::map(Platform::host(), spec);
  PENSTOCK_CHECK(pool.ok(), "{}", pool.status().to_string());
  return (*pool)->regions();
}

TEST(Rendezvous, LeavesNothingInThePool) {
  const ScopedPool pool(2);
  EXPECT_EQ("", run_ranks(4, [&](std::uint32_t rank) -> std::string {
              for (int round = 0; round < 10; ++round) {
                auto member = join(pool.spec(), rank, 4);
                if (!member.ok()) return member.status().to_string();
                if (Status status = sum_once(*member->comm); !status.ok()) {
                  return status.to_string();
                }
              }
              return "";
            }));
  EXPECT_TRUE(regions_of(pool.spec()).empty());
}

TEST(Rendezvous, NamesTheRanksThatDidNotCome) {
  const ScopedPool pool(1);
  EXPECT_EQ("", run_ranks(2, [&](std::uint32_t rank) -> std::string {
              auto member = join(pool.spec(), rank, 4, "test", Coherence::hardware, 3000);
              if (member.ok()) return "met two ranks that do not exist";
              if (member.status().code() != Code::deadline_exceeded) {
                return member.status().to_string();
              }
              const std::string& message = member.status().message();
              return message.find("rank 2, 3") == std::string::npos ? message : "";
            }));
  EXPECT_TRUE(regions_of(pool.spec()).empty());
}

TEST(Rendezvous, RanksThatDisagreeAboutTheSizeAreToldBothValues) {
  const ScopedPool pool(1);
  Ranks ranks(2, [&](std::uint32_t rank) -> std::string {
    if (rank == 1) ::usleep(200'000);
    auto member = join(pool.spec(), rank, rank == 0 ? 2 : 3, "test", Coherence::hardware, 1000);
    return member.ok() ? "joined" : member.status().to_string();
  });
  const auto ends = ranks.join();
  EXPECT_THAT(ends[0].message, HasSubstr("deadline_exceeded"));
  EXPECT_THAT(ends[1].message, HasSubstr("mismatch: comm 'test' has 2 ranks, but rank 1 joined it "
                                         "as one of 3"));
}

TEST(Rendezvous, ARankThatIsHeldIsRefused) {
  const ScopedPool pool(1);
  Ranks ranks(2, [&](std::uint32_t process) -> std::string {
    if (process == 1) ::usleep(200'000);
    auto member = join(pool.spec(), 0, 2, "test", Coherence::hardware, 1000);
    return member.ok() ? "joined" : member.status().to_string();
  });
  const auto ends = ranks.join();
  EXPECT_THAT(ends[0].message, HasSubstr("deadline_exceeded"));
  EXPECT_THAT(ends[1].message, HasSubstr("already_exists: rank 0 of comm 'test' is held by pid"));
}

TEST(Rendezvous, ASmallPoolMakesSmallPasses) {
  const ScopedPool pool(1, kMinDeviceBytes);
  EXPECT_EQ("", run_ranks(5, [&](std::uint32_t rank) -> std::string {
              auto member = join(pool.spec(), rank, 5);
              if (!member.ok()) return member.status().to_string();
              return sum_once(*member->comm).message();
            }));
}

TEST(Rendezvous, APoolWithoutRoomSaysHowMuchIsMissing) {
  const ScopedPool pool(1, kMinDeviceBytes);
  auto mapped = Pool::map(Platform::host(), pool.spec());
  ASSERT_TRUE(mapped.ok());
  RegionRequest request;
  request.bytes = 1u << 20;
  while (request.bytes >= 4096) {
    if (!(*mapped)->allocate(request).ok()) request.bytes /= 2;
  }
  CommConfig config;
  const auto comm = Comm::join(**mapped, config);
  ASSERT_FALSE(comm.ok());
  EXPECT_EQ(Code::no_space, comm.status().code()) << comm.status().to_string();
}

class Death : public testing::TestWithParam<bool> {};
std::string moment(const testing::TestParamInfo<bool>& param) {
  return param.param ? "while_the_others_wait" : "in_mid_traffic";
}
INSTANTIATE_TEST_SUITE_P(, Death, testing::Values(false, true), moment);

// Whoever dies is named to all others, long before the deadline; the next run starts clean.
TEST_P(Death, IsNamedToTheOthersAndTheNextRunIsClean) {
  const bool waiting = GetParam();
  const ScopedPool pool(1);
  const Tally met;
  Ranks ranks(4, [&](std::uint32_t rank) -> std::string {
    auto member = join(pool.spec(), rank, 4, "test", Coherence::hardware, 30000);
    if (!member.ok()) return "join: " + member.status().to_string();
    met.add();
    if (waiting && rank == 2) ::pause();
    for (;;) {
      const Status status = sum_once(*member->comm);
      if (status.ok()) continue;
      const Status again = sum_once(*member->comm);  // the comm stays revoked
      return again.code() == status.code() ? status.to_string() : "usable again";
    }
  });
  ASSERT_TRUE(met.await(4));
  ::usleep(100'000);
  const auto start = std::chrono::steady_clock::now();
  const pid_t victim = ranks.pid(2);
  ::kill(victim, SIGKILL);
  const auto ends = ranks.join();
  EXPECT_LT(seconds_since(start), 25);  // the deadline is 30 s
  for (const std::uint32_t rank : {0u, 1u, 3u}) {
    EXPECT_THAT(ends[rank].message, HasSubstr(fmt::format("rank 2 (pid {})", victim)));
  }
  EXPECT_EQ("", run_ranks(4, [&](std::uint32_t rank) -> std::string {
              auto member = join(pool.spec(), rank, 4);
              if (!member.ok()) return member.status().to_string();
              return sum_once(*member->comm).message();
            }));
  EXPECT_TRUE(regions_of(pool.spec()).empty());
}

TEST(Rendezvous, ADeathDuringItLetsAReplacementIn) {
  const ScopedPool pool(1);
  Ranks first(1, [&](std::uint32_t) -> std::string {
    auto member = join(pool.spec(), 1, 3);
    return "";
  });
  ::usleep(200'000);
  Ranks others(1, [&](std::uint32_t) -> std::string {
    auto member = join(pool.spec(), 0, 3);
    if (!member.ok()) return member.status().to_string();
    return sum_once(*member->comm).message();
  });
  ::usleep(100'000);
  ::kill(first.pid(0), SIGKILL);
  first.join();
  Ranks replacement(2, [&](std::uint32_t index) -> std::string {
    auto member = join(pool.spec(), index + 1, 3);
    if (!member.ok()) return member.status().to_string();
    return sum_once(*member->comm).message();
  });
  for (const RankEnd& end : others.join()) EXPECT_EQ("", end.message);
  for (const RankEnd& end : replacement.join()) EXPECT_EQ("", end.message);
}

TEST(Stop, PassesTheDeadlineAndIsNamed) {
  const ScopedPool pool(1);
  const Tally met;
  const Tally told;
  Ranks ranks(3, [&](std::uint32_t rank) -> std::string {
    auto member = join(pool.spec(), rank, 3, "test", Coherence::hardware, 1000);
    if (!member.ok()) return "join: " + member.status().to_string();
    met.add();
    for (;;) {
      const Status status = sum_once(*member->comm);
      if (status.ok()) continue;
      told.add();
      return status.to_string();
    }
  });
  const pid_t stopped = ranks.pid(1);
  ASSERT_TRUE(met.await(3));
  ::usleep(100'000);
  ::kill(stopped, SIGSTOP);
  EXPECT_TRUE(told.await(2));
  ::kill(stopped, SIGCONT);
  const auto ends = ranks.join();
  // One of the others runs into its deadline and names the stopped rank; the rest hear of it.
  for (const std::uint32_t rank : {0u, 2u}) {
    EXPECT_THAT(ends[rank].message, HasSubstr(fmt::format("rank 1 (pid {})", stopped)));
    EXPECT_THAT(ends[rank].message, HasSubstr("did not respond within 1000 ms"));
  }
  EXPECT_THAT(ends[1].message, HasSubstr("revoked"));
}

// Ranks 0 and 2 wait for rank 3, and rank 1 for both of them, on two lanes. Its deadline passes
// first, and on neither lane is it the neighbour who is to blame.
TEST(Stop, IsNamedByWhoWaitsForSeveralThatWaitForIt) {
  const ScopedPool pool(1);
  const Tally told;
  Ranks ranks(4, [&](std::uint32_t rank) -> std::string {
    auto member = join(pool.spec(), rank, 4, "test", Coherence::hardware, 2000);
    if (!member.ok()) return "join: " + member.status().to_string();
    if (Status status = sum_once(*member->comm); !status.ok()) return status.to_string();
    if (rank == 3) ::raise(SIGSTOP);
    if (rank != 1) ::usleep(700'000);
    std::vector<std::int32_t> sent(200'000);
    std::vector<std::int32_t> received(200'000);
    Call call;
    call.collective = Collective::send_recv;
    call.count = sent.size();
    call.type = PENSTOCK_INT32;
    call.send = sent.data();
    call.root = 2;
    call.sender = true;
    if (rank == 1) {
      auto started = member->comm->start(call);
      if (!started.ok()) return started.status().to_string();
    }
    call.sender = false;
    call.send = nullptr;
    call.recv = received.data();
    call.root = rank == 1 ? 0 : 3;
    const Status status = member->comm->run(call);
    told.add();
    return status.to_string();
  });
  const pid_t stopped = ranks.pid(3);
  EXPECT_TRUE(told.await(3));
  ::kill(stopped, SIGCONT);
  const auto ends = ranks.join();
  for (const std::uint32_t rank : {0u, 1u, 2u}) {
    EXPECT_THAT(ends[rank].message, HasSubstr(fmt::format("rank 3 (pid {})", stopped)));
    EXPECT_THAT(ends[rank].message, HasSubstr("it has been stopped"));
  }
}

// Rank 2 does not come, perhaps for the sake of a lock in the hands of rank 0.
TEST(Stop, OfARankThatHadComeIsToldToWhoWaitsForTheRest) {
  const ScopedPool pool(1);
  const Tally told;
  Ranks ranks(2, [&](std::uint32_t rank) -> std::string {
    auto member = join(pool.spec(), rank, 3, "test", Coherence::hardware, 4000);
    told.add();
    return member.ok() ? "met a rank that does not exist" : member.status().to_string();
  });
  const pid_t stopped = ranks.pid(0);
  ::usleep(2'000'000);
  ::kill(stopped, SIGSTOP);
  EXPECT_TRUE(told.await(1));
  ::kill(stopped, SIGCONT);
  const auto ends = ranks.join();
  EXPECT_THAT(ends[1].message, HasSubstr("no sign of rank 2 in pool"));
  EXPECT_THAT(ends[1].message,
              HasSubstr(fmt::format("rank 0 (pid {}), which has come, is stopped", stopped)));
}

TEST(Abort, ReachesEveryRankWithItsReason) {
  const ScopedPool pool(1);
  EXPECT_EQ("", run_ranks(3, [&](std::uint32_t rank) -> std::string {
              auto member = join(pool.spec(), rank, 3);
              if (!member.ok()) return member.status().to_string();
              if (rank == 0) {
                ::usleep(100'000);
                member->comm->abort("out of patience");
                member->comm->abort("twice does not matter");
                return sum_once(*member->comm).code() == Code::revoked ? "" : "not revoked";
              }
              const Status status = sum_once(*member->comm);
              if (status.code() != Code::revoked) return status.to_string();
              return status.message().find("out of patience") == std::string::npos
                         ? status.message()
                         : "";
            }));
}

TEST(Fork, AChildCannotUseItsParentsComm) {
  const ScopedPool pool(1);
  EXPECT_EQ("", run_ranks(2, [&](std::uint32_t rank) -> std::string {
              auto member = join(pool.spec(), rank, 2);
              if (!member.ok()) return member.status().to_string();
              if (rank == 0) {
                const pid_t child = ::fork();
                if (child == 0) {
                  const Status status = member->comm->run(Call());
                  const bool right = status.code() == Code::invalid_argument &&
                                     status.message().find("forked child") != std::string::npos;
                  member->comm.reset();  // must not leave for the parent
                  ::_exit(right ? 0 : 1);
                }
                int status = 0;
                ::waitpid(child, &status, 0);
                if (status != 0) return "the child used the comm";
              }
              return sum_once(*member->comm).message();
            }));
}

TEST(BadCalls, AreRefusedAndTheCommStaysUsable) {
  const ScopedPool pool(1);
  EXPECT_EQ("", run_ranks(2, [&](std::uint32_t rank) -> std::string {
              auto member = join(pool.spec(), rank, 2);
              if (!member.ok()) return member.status().to_string();
              std::vector<float> data(100);
              Call good;
              good.collective = Collective::all_reduce;
              good.send = good.recv = data.data();
              good.count = 100;
              good.type = PENSTOCK_F32;
              std::vector<std::pair<Call, const char*>> bad(7, {good, ""});
              bad[0].first.type = 12, bad[0].second = "type 12 does not exist";
              bad[1].first.redop = 6, bad[1].second = "operation 6 does not exist";
              bad[2].first.recv = data.data() + 1, bad[2].second = "overlap";
              bad[3].first.recv = nullptr, bad[3].second = "receive buffer is null";
              bad[4].first.count = std::uint64_t{1} << 60, bad[4].second = "too large";
              bad[5].first.collective = Collective::broadcast, bad[5].first.root = 2;
              bad[5].second = "root 2 is out of range";
              bad[6].first.scale = 1, bad[6].second = "a scale is given";
              for (const auto& [call, what] : bad) {
                const Status status = member->comm->run(call);
                if (status.code() != Code::invalid_argument ||
                    status.message().find(what) == std::string::npos) {
                  return fmt::format("'{}' gave {}", what, status.to_string());
                }
              }
              return sum_once(*member->comm).message();
            }));
}

}  // namespace
}  // namespace penstock::test
