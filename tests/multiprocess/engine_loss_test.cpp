// What a comm does when a rank's engine cannot be made, or is lost in the middle of a call.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "ranks.h"

namespace penstock::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::uint32_t kRanks = 3;
constexpr std::uint32_t kLoser = 1;  // whose engine is special; the others have simd
constexpr std::uint64_t kCount = 30000;
constexpr std::uint64_t kOnePass = 3000;  // more than what travels inline

Result<std::unique_ptr<Comm>> join_with(Pool& pool, std::uint32_t rank, const std::string& engine) {
  CommConfig config;
  config.name = "test";
  config.rank = rank;
  config.size = kRanks;
  config.engine = rank == kLoser ? engine : "simd";
  config.timeout_ms = 30000;
  config.rank_bytes = 16384;
  return Comm::join(pool, config);
}

// Sums of several passes; "" if every element is right.
std::string reduce_rounds(Comm& comm, int rounds, bool in_place, std::uint64_t count = kCount) {
  std::vector<std::int32_t> send(count), recv(count);
  for (int round = 0; round < rounds; ++round) {
    for (std::uint64_t i = 0; i < count; ++i) {
      send[i] = static_cast<std::int32_t>(i * (comm.rank() + 1)) + round;
    }
    Call call;
    call.collective = Collective::all_reduce;
    call.send = send.data();
    call.recv = in_place ? send.data() : recv.data();
    call.count = count;
    call.type = PENSTOCK_INT32;
    if (Status status = comm.run(call); !status.ok()) return status.to_string();
    const auto* got = static_cast<const std::int32_t*>(call.recv);
    for (std::uint64_t i = 0; i < count; ++i) {
      const auto sum = static_cast<std::int32_t>(i * 6) + 3 * round;
      if (got[i] != sum) return fmt::format("round {}: element {} is {}", round, i, got[i]);
    }
  }
  return "";
}

// All ranks run rounds with this engine in rank kLoser.
std::string run_with(const std::string& engine, bool in_place, const std::string& ends_with) {
  const ScopedPool pool(2);
  return run_ranks(kRanks, [&](std::uint32_t rank) -> std::string {
    auto mapped = Pool::map(Platform::host(), pool.spec(), {});
    if (!mapped.ok()) return mapped.status().to_string();
    auto comm = join_with(**mapped, rank, engine);
    if (!comm.ok()) return comm.status().to_string();
    std::string wrong = reduce_rounds(**comm, 4, in_place);
    if (wrong.empty() && rank == kLoser && (*comm)->engine().name != ends_with) {
      wrong = "it ends with " + (*comm)->engine().name;
    }
    return wrong;
  });
}

TEST(EngineLoss, AListGoesOnWithTheNextThatCanBeMade) {
  EXPECT_EQ("", run_with("no-such-engine,fault:simd,scalar", false, "fault:simd"));
}

TEST(EngineLoss, ANameAloneFailsWhereTheCommIsMade) {
  const ScopedPool pool(1);
  auto mapped = Pool::map(Platform::host(), pool.spec(), {}).value();
  const auto comm = join_with(*mapped, kLoser, "no-such-engine");
  EXPECT_EQ(comm.status().code(), Code::not_found);
  EXPECT_THAT(comm.status().message(), HasSubstr("no-such-engine"));
}

// Wherever in the descriptors of a call it happens.
TEST(EngineLoss, AListGoesOnInTheMiddleOfACall) {
  for (int lost = 1; lost <= 40; lost += 3) {
    const std::string engine = fmt::format("fault:simd;lost={},scalar", lost);
    EXPECT_EQ("", run_with(engine, false, "scalar")) << engine;
  }
}

// Where the source of a reduction may be gone, the comm ends; it never gives a wrong sum.
TEST(EngineLoss, InPlaceItGoesOnOrSaysWhyNot) {
  int ended = 0;
  for (int lost = 1; lost <= 12; ++lost) {
    const std::string end =
        run_with(fmt::format("fault:simd;lost={},scalar", lost), true, "scalar");
    EXPECT_THAT(end, Not(HasSubstr("element"))) << lost;
    if (end.empty()) continue;
    ++ended;
    for (std::uint32_t rank = 0; rank < kRanks; ++rank)
      EXPECT_THAT(end, HasSubstr(fmt::format("rank {}: ", rank))) << lost;
    EXPECT_THAT(end, HasSubstr("a REDUCE in place cannot be done again")) << lost;
  }
  EXPECT_GT(ended, 0);
  EXPECT_LT(ended, 12);
}

TEST(EngineLoss, OneAfterAnotherIsLost) {
  EXPECT_EQ("", run_with("fault:simd;lost=5,fault:scalar;lost=4,fault:simd;fail=2:no_space,simd",
                         false, "simd"));
}

// A descriptor that fails once is enough: nobody knows what such an engine does next.
TEST(EngineLoss, AFailedDescriptorIsDoneAgain) {
  for (int fail = 1; fail <= 20; fail += 6) {
    for (const char* status : {"io_error", "no_space", "internal"}) {
      const std::string engine = fmt::format("fault:simd;fail={}:{},scalar", fail, status);
      EXPECT_EQ("", run_with(engine, false, "scalar")) << engine;
    }
  }
}

// The others never see a wrong sum: what tells them to read comes after what they read. In calls of
// one pass, which nothing else would end.
TEST(EngineLoss, ANameAloneFailsTheCommOnEveryRank) {
  for (int fail = 1; fail <= 10; ++fail) {
    const std::string engine = fmt::format("fault:simd;fail={}:io_error", fail);
    const ScopedPool pool(2);
    EXPECT_EQ(
        "", run_ranks(kRanks,
                      [&](std::uint32_t rank) -> std::string {
                        auto mapped = Pool::map(Platform::host(), pool.spec(), {});
                        if (!mapped.ok()) return mapped.status().to_string();
                        auto comm = join_with(**mapped, rank, engine);
                        if (!comm.ok()) return comm.status().to_string();
                        const std::string end = reduce_rounds(**comm, 6, false, kOnePass);
                        if (end.find("element") != std::string::npos) return end;
                        if (end.empty()) return "nothing failed";
                        if (rank == kLoser && end.find("fault:simd refused") == std::string::npos) {
                          return end;
                        }
                        const Status health = (*comm)->health();
                        return health.ok() ? "the comm goes on after: " + end : "";
                      }))
        << engine;
  }
}

// A comm that is made of one whose engine was replaced begins with the replacement.
TEST(EngineLoss, ShrinkKeepsTheEngineThatWorks) {
  const ScopedPool pool(2);
  EXPECT_EQ("", run_ranks(kRanks, [&](std::uint32_t rank) -> std::string {
              auto mapped = Pool::map(Platform::host(), pool.spec(), {});
              if (!mapped.ok()) return mapped.status().to_string();
              auto comm = join_with(**mapped, rank, "fault:simd;lost=4,scalar");
              if (!comm.ok()) return comm.status().to_string();
              if (std::string wrong = reduce_rounds(**comm, 1, false); !wrong.empty()) return wrong;
              if (Status status = (*comm)->run(Call()); !status.ok()) return status.to_string();
              auto next = (*comm)->shrink();
              if (!next.ok()) return next.status().to_string();
              if (rank == kLoser && (*next)->engine().name != "scalar") {
                return "it begins with " + (*next)->engine().name;
              }
              return reduce_rounds(**next, 2, true);
            }));
}

}  // namespace
}  // namespace penstock::test
