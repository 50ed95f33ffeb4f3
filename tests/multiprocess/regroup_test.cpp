// Comms that come out of a comm: what is left of it, more, parts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <vector>

#include "ranks.h"
#include "tally.h"

namespace penstock::test {
namespace {

using testing::HasSubstr;
constexpr std::uint32_t kTimeoutMs = 20'000;    // a death is noticed by looking
constexpr std::uint32_t kStopTimeoutMs = 4000;  // a rank that is stopped, by its silence

// A sum over the comm of what tells one process from another; "" or what is wrong.
std::string sum_of(Comm& comm, std::int64_t mine, std::int64_t want, std::size_t count = 300) {
  std::vector<std::int64_t> data(count, mine);
  Call call;
  call.collective = Collective::all_reduce;
  call.send = call.recv = data.data();
  call.count = data.size();
  call.type = PENSTOCK_INT64;
  if (Status status = comm.run(call); !status.ok()) return "sum: " + status.to_string();
  for (const std::int64_t value : data) {
    if (value != want) return fmt::format("the sum is {}, not {}", value, want);
  }
  return "";
}

Result<Member> join_here(const std::string& spec, std::uint32_t rank, std::uint32_t size,
                         std::uint32_t timeout_ms = kTimeoutMs) {
  return join(spec, rank, size, "test", Coherence::hardware, timeout_ms);
}

// Runs sums until the comm fails; the status of that.
Status run_until_it_fails(Comm& comm) {
  std::vector<std::int32_t> data(100, 1);
  Call call;
  call.collective = Collective::all_reduce;
  call.send = call.recv = data.data();
  call.count = data.size();
  call.type = PENSTOCK_INT32;
  for (;;) PENSTOCK_TRY(comm.run(call));
}

std::size_t regions_of(const std::string& spec) {
  auto pool = Pool::map(Platform::host(), spec);
  PENSTOCK_CHECK(pool.ok(), "{}", pool.status().to_string());
  return (*pool)->regions().size();
}

TEST(Shrink, SurvivorsOfADeathGoOnInTheOldOrder) {
  const ScopedPool pool(1);
  const Tally met;
  Ranks ranks(4, [&](std::uint32_t rank) -> std::string {
    auto member = join_here(pool.spec(), rank, 4);
    if (!member.ok()) return member.status().to_string();
    met.add();
    const Status failed = run_until_it_fails(*member->comm);
    if (failed.code() != Code::peer_dead && failed.code() != Code::revoked) {
      return failed.to_string();
    }
    auto smaller = member->comm->shrink();
    if (!smaller.ok()) return smaller.status().to_string();
    Comm& comm = **smaller;
    const std::uint32_t want = rank == 0 ? 0 : rank - 1;
    if (comm.rank() != want || comm.size() != 3) {
      return fmt::format("rank {} of {}", comm.rank(), comm.size());
    }
    if (comm.epoch() != member->comm->epoch() + 1) return "epoch";
    if (member->comm->run(Call()).ok()) return "the old comm still works";
    if (member->comm->shrink().ok()) return "the old comm was shrunk twice";
    return sum_of(comm, 1 << rank, 0b1101, 100000);
  });
  ASSERT_TRUE(met.await(4));
  ::usleep(100'000);
  ::kill(ranks.pid(1), SIGKILL);
  const auto ends = ranks.join();
  for (const std::uint32_t rank : {0u, 2u, 3u}) EXPECT_EQ("", ends[rank].message);
  EXPECT_EQ(0u, regions_of(pool.spec()));
}

TEST(Shrink, AHealthyCommShrinksToThoseWhoCallIt) {
  const ScopedPool pool(1);
  EXPECT_EQ("", run_ranks(3, [&](std::uint32_t rank) -> std::string {
              auto member = join_here(pool.spec(), rank, 3);
              if (!member.ok()) return member.status().to_string();
              if (rank == 0) return "";  // leaves
              auto smaller = member->comm->shrink();
              if (!smaller.ok()) return smaller.status().to_string();
              if ((*smaller)->size() != 2) return "size";
              return sum_of(**smaller, 1 << rank, 0b110);
            }));
  EXPECT_EQ(0u, regions_of(pool.spec()));
}

// The stopped rank is voted out; when it wakes, its calls are refused, and its memory stays apart
// from the others' until then.
TEST(Shrink, AStoppedRankIsVotedOutAndRefusedWhenItWakes) {
  const ScopedPool pool(1);
  const Tally met;
  const Tally went_on;
  const Tally woken;
  Ranks ranks(3, [&](std::uint32_t rank) -> std::string {
    auto member = join_here(pool.spec(), rank, 3, kStopTimeoutMs);
    if (!member.ok()) return member.status().to_string();
    met.add();
    const Status failed = run_until_it_fails(*member->comm);
    auto smaller = member->comm->shrink();
    if (rank == 1) {
      woken.add();
      const Status refused = smaller.ok() ? Status() : smaller.status();
      return failed.to_string() + "\n" + refused.to_string();
    }
    if (!smaller.ok()) return smaller.status().to_string();
    if ((*smaller)->size() != 2) return fmt::format("{} ranks", (*smaller)->size());
    const std::string wrong = sum_of(**smaller, 1 << rank, 0b101);
    if (!wrong.empty()) return wrong;
    // The old regions are still there, beside those of the new comm.
    std::size_t regions = member->pool->regions().size();
    if (regions != 4) return fmt::format("{} regions while one is stopped", regions);
    went_on.add();
    if (!woken.await(1)) return "nobody woke";
    return sum_of(**smaller, 1 << rank, 0b101);
  });
  ASSERT_TRUE(met.await(3));
  ::usleep(100'000);
  ::kill(ranks.pid(1), SIGSTOP);
  EXPECT_TRUE(went_on.await(2));
  ::kill(ranks.pid(1), SIGCONT);
  const auto ends = ranks.join();
  EXPECT_EQ("", ends[0].message);
  EXPECT_EQ("", ends[2].message);
  EXPECT_THAT(ends[1].message,
              HasSubstr("revoked: comm 'test': ranks 0, 2 went on without rank 1"));
  EXPECT_EQ(0u, regions_of(pool.spec()));
}

TEST(Shrink, ASecondDeathMeanwhileShrinksOnceMore) {
  const ScopedPool pool(1);
  const Tally met;
  Ranks ranks(4, [&](std::uint32_t rank) -> std::string {
    auto member = join_here(pool.spec(), rank, 4);
    if (!member.ok()) return member.status().to_string();
    met.add();
    (void)run_until_it_fails(*member->comm);
    if (rank == 2) ::raise(SIGKILL);  // instead of coming
    auto smaller = member->comm->shrink();
    if (!smaller.ok()) return smaller.status().to_string();
    if ((*smaller)->size() != 2) return fmt::format("{} ranks", (*smaller)->size());
    return sum_of(**smaller, 1 << rank, 0b1001);
  });
  ASSERT_TRUE(met.await(4));
  ::usleep(100'000);
  ::kill(ranks.pid(1), SIGKILL);
  const auto ends = ranks.join();
  EXPECT_EQ("", ends[0].message);
  EXPECT_EQ("", ends[3].message);
  EXPECT_EQ(0u, regions_of(pool.spec()));
}

TEST(Shrink, ToOneRankAndThenAgain) {
  const ScopedPool pool(1);
  const Tally met;
  Ranks ranks(3, [&](std::uint32_t rank) -> std::string {
    auto member = join_here(pool.spec(), rank, 3);
    if (!member.ok()) return member.status().to_string();
    met.add();
    std::unique_ptr<Comm> comm = std::move(member->comm);
    for (std::uint32_t left = 2; left > 0; --left) {
      if (comm->size() == 2 && rank == 1) ::raise(SIGKILL);
      (void)run_until_it_fails(*comm);
      auto smaller = comm->shrink();
      if (!smaller.ok()) return smaller.status().to_string();
      comm = std::move(smaller).value();
      if (comm->size() != left) return fmt::format("{} ranks, not {}", comm->size(), left);
    }
    return comm->epoch() == 3 ? sum_of(*comm, 7, 7) : "epoch";
  });
  ASSERT_TRUE(met.await(3));
  ::usleep(100'000);
  ::kill(ranks.pid(2), SIGKILL);
  EXPECT_EQ("", ranks.join()[0].message);
  EXPECT_EQ(0u, regions_of(pool.spec()));
}

TEST(Revoke, EndsPendingAndLaterCallsOfEverybody) {
  const ScopedPool pool(1);
  EXPECT_EQ("", run_ranks(3, [&](std::uint32_t rank) -> std::string {
              auto member = join_here(pool.spec(), rank, 3);
              if (!member.ok()) return member.status().to_string();
              Comm& comm = *member->comm;
              if (rank == 2) {
                ::usleep(100'000);
                comm.revoke();
                comm.revoke();
              }
              std::int32_t value = 1;
              Call call;
              call.collective = Collective::all_reduce;
              call.send = call.recv = &value;
              call.count = 1;
              call.type = PENSTOCK_INT32;
              for (int again = 0; again < 2; ++again) {
                const Status status = comm.run(call);
                if (status.code() != Code::revoked) return status.to_string();
                if (status.message().find("rank 2 (pid") == std::string::npos) {
                  return status.message();
                }
              }
              auto all = comm.shrink();  // nobody is lost
              if (!all.ok()) return all.status().to_string();
              return (*all)->size() == 3 ? sum_of(**all, 1 << rank, 0b111) : "size";
            }));
  EXPECT_EQ(0u, regions_of(pool.spec()));
}

TEST(Grow, AReplacementJoinsTheSurvivors) {
  const ScopedPool pool(1);
  const auto newcomer = [&](std::int64_t mine) -> std::string {
    MapOptions options;
    auto mapped = Pool::map(Platform::host(), pool.spec(), options);
    if (!mapped.ok()) return mapped.status().to_string();
    CommConfig config;
    config.name = "test";
    config.newcomer = true;
    config.timeout_ms = 30000;
    auto comm = Comm::join(**mapped, config);
    if (!comm.ok()) return comm.status().to_string();
    if ((*comm)->rank() < 2 || (*comm)->size() != 4) return "place";
    return sum_of(**comm, mine, 0b11101);
  };
  Ranks ranks(3, [&](std::uint32_t rank) -> std::string {
    auto member = join_here(pool.spec(), rank, 3);
    if (!member.ok()) return member.status().to_string();
    (void)run_until_it_fails(*member->comm);
    auto smaller = member->comm->shrink();
    if (!smaller.ok()) return smaller.status().to_string();
    auto larger = (*smaller)->grow(4);
    if (!larger.ok()) return larger.status().to_string();
    if ((*larger)->rank() != (*smaller)->rank() || (*larger)->size() != 4) return "place";
    if ((*larger)->epoch() != 3) return "epoch";
    const std::string wrong = sum_of(**larger, 1 << rank, 0b11101);
    return wrong.empty() ? sum_of(**smaller, 1 << rank, 0b101) : wrong;  // stays as it was
  });
  ::usleep(200'000);
  Ranks replacements(2, [&](std::uint32_t index) { return newcomer(8 << index); });
  ::usleep(100'000);
  ::kill(ranks.pid(1), SIGKILL);
  const auto ends = ranks.join();
  EXPECT_EQ("", ends[0].message);
  EXPECT_EQ("", ends[2].message);
  for (const RankEnd& end : replacements.join()) EXPECT_EQ("", end.message);
  EXPECT_EQ(0u, regions_of(pool.spec()));
}

TEST(Grow, WithoutNewcomersSaysWhoIsMissingAndTheCommStaysUsable) {
  const ScopedPool pool(1);
  EXPECT_EQ("", run_ranks(2, [&](std::uint32_t rank) -> std::string {
              auto member = join(pool.spec(), rank, 2, "test", Coherence::hardware, 3000);
              if (!member.ok()) return member.status().to_string();
              auto larger = member->comm->grow(3);
              if (larger.ok()) return "grew without a newcomer";
              if (larger.status().message().find("no sign of rank 2") == std::string::npos) {
                return larger.status().to_string();
              }
              if (member->comm->grow(1).status().code() != Code::invalid_argument) return "grow(1)";
              return sum_of(*member->comm, 1 << rank, 0b11);
            }));
}

TEST(Grow, ANewcomerWithoutACommIsTold) {
  const ScopedPool pool(1);
  auto mapped = Pool::map(Platform::host(), pool.spec());
  ASSERT_TRUE(mapped.ok());
  CommConfig config;
  config.name = "test";
  config.newcomer = true;
  config.timeout_ms = 100;
  const auto comm = Comm::join(**mapped, config);
  EXPECT_EQ(Code::deadline_exceeded, comm.status().code());
  EXPECT_THAT(comm.status().message(), HasSubstr("took in a newcomer"));
}

TEST(Split, PartsByColorInTheOrderOfKeys) {
  const ScopedPool pool(2);
  EXPECT_EQ("", run_ranks(5, [&](std::uint32_t rank) -> std::string {
              auto member = join_here(pool.spec(), rank, 5);
              if (!member.ok()) return member.status().to_string();
              Comm& all = *member->comm;
              // Ranks 0, 2, 4 in reverse; 1 alone; 3 in none.
              const std::int32_t color = rank == 3 ? -1 : static_cast<std::int32_t>(rank % 2);
              auto part = all.split(color, -static_cast<std::int32_t>(rank));
              if (!part.ok()) return part.status().to_string();
              if (rank == 3) {
                if (*part) return "a comm for a negative color";
              } else if (rank == 1) {
                if ((*part)->size() != 1) return "size of the part of one";
                const std::string wrong = sum_of(**part, 5, 5);
                if (!wrong.empty()) return wrong;
              } else {
                if ((*part)->size() != 3 || (*part)->rank() != (4 - rank) / 2) return "place";
                const std::string wrong = sum_of(**part, 1 << rank, 0b10101, 50000);
                if (!wrong.empty()) return wrong;
              }
              // Same color, same key: the old order; a second split of the same comm.
              auto again = all.split(0, 0);
              if (!again.ok()) return again.status().to_string();
              if ((*again)->rank() != rank || (*again)->size() != 5) return "place in the second";
              const std::string wrong = sum_of(**again, 1 << rank, 0b11111);
              return wrong.empty() ? sum_of(all, 1 << rank, 0b11111) : wrong;
            }));
  EXPECT_EQ(0u, regions_of(pool.spec()));
}

TEST(Split, ADeathInTheParentReachesWhoeverWaits) {
  const ScopedPool pool(1);
  Ranks ranks(3, [&](std::uint32_t rank) -> std::string {
    auto member = join_here(pool.spec(), rank, 3);
    if (!member.ok()) return member.status().to_string();
    if (rank == 2) ::raise(SIGKILL);
    auto part = member->comm->split(0, 0);
    if (part.ok()) return "split without rank 2";
    auto smaller = member->comm->shrink();
    if (!smaller.ok()) return smaller.status().to_string();
    auto second = (*smaller)->split(0, 0);
    return second.ok() ? sum_of(**second, 1 << rank, 0b11) : second.status().to_string();
  });
  const auto ends = ranks.join();
  EXPECT_EQ("", ends[0].message);
  EXPECT_EQ("", ends[1].message);
}

// Every rank aborts and destroys its comms in an order of its own, while others wait in them.
TEST(Abort, SeveralCommsInAnyOrder) {
  const ScopedPool pool(1, 96u << 20);
  EXPECT_EQ("", run_ranks(3, [&](std::uint32_t rank) -> std::string {
              auto member = join_here(pool.spec(), rank, 3);
              if (!member.ok()) return member.status().to_string();
              std::vector<std::unique_ptr<Comm>> comms;
              for (std::int32_t i = 0; i < 4; ++i) {
                auto part = member->comm->split(i, 0);
                if (!part.ok()) return part.status().to_string();
                comms.push_back(std::move(part).value());
              }
              std::vector<std::int32_t> data(10, 1);
              for (std::uint32_t turn = 0; turn < 4; ++turn) {
                Comm& comm = *comms[(turn * 3 + rank) % 4];  // another one on each rank
                if (turn % 2 == 0) {
                  comm.abort("enough");
                } else {
                  Call call;
                  call.collective = Collective::broadcast;
                  call.recv = data.data();
                  call.send = data.data();
                  call.count = 10;
                  call.root = (rank + 1) % 3;
                  (void)comm.start(call);
                }
              }
              for (std::uint32_t i = 0; i < 4; ++i) {
                Comm& comm = *comms[(i + rank) % 4];
                comm.abort("all of them");
                if (comm.health().code() != Code::revoked) return "not revoked";
                comms[(i + rank) % 4].reset();
              }
              return sum_of(*member->comm, 1, 3);
            }));
  EXPECT_EQ(0u, regions_of(pool.spec()));
}

}  // namespace
}  // namespace penstock::test
