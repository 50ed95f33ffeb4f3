// Ranks that disagree about a call: told so, with both values, and nobody's memory is damaged.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "ranks.h"

namespace penstock::test {
namespace {

using testing::AnyOf;
using testing::HasSubstr;

constexpr std::int32_t kUntouched = -77;

struct Disagreement {
  const char* name;
  Call most;              // what all ranks but the last call
  Call last;              // what the last one calls
  const char* says_most;  // in the message
  const char* says_last;
};

Call call_of(Collective collective, std::uint64_t count, std::uint32_t type = PENSTOCK_INT32,
             std::uint32_t redop = PENSTOCK_SUM, std::uint32_t root = 0) {
  Call call;
  call.collective = collective;
  call.count = count;
  call.type = type;
  call.redop = redop;
  call.root = root;
  return call;
}

std::vector<Disagreement> disagreements(std::uint64_t count) {
  const auto call = [&](Collective collective, std::uint32_t root = 0) {
    return call_of(collective, count, PENSTOCK_INT32, PENSTOCK_SUM, root);
  };
  static std::vector<std::string> texts;
  const auto text = [&](const std::string& value) -> const char* {
    texts.push_back(value);
    return texts.back().c_str();
  };
  texts.clear();
  texts.reserve(64);
  std::vector<Disagreement> all;
  for (const Collective collective :
       {Collective::all_reduce, Collective::all_gather, Collective::reduce_scatter,
        Collective::all_to_all, Collective::broadcast, Collective::reduce, Collective::gather,
        Collective::scatter}) {
    Disagreement one{collective_name(collective), call(collective), call(collective), "", ""};
    one.last.count = count + 1;
    one.says_most = text(fmt::format("of {} int32", count));
    one.says_last = text(fmt::format("of {} int32", count + 1));
    all.push_back(one);
  }
  all.push_back({"type", call(Collective::all_reduce),
                 call_of(Collective::all_reduce, count, PENSTOCK_F32), "int32", "f32"});
  all.push_back({"operation", call(Collective::all_reduce),
                 call_of(Collective::all_reduce, count, PENSTOCK_INT32, PENSTOCK_MAX), "(sum)",
                 "(max)"});
  for (const Collective collective :
       {Collective::broadcast, Collective::reduce, Collective::gather, Collective::scatter}) {
    all.push_back({text(fmt::format("root of {}", collective_name(collective))),
                   call(collective, 0), call(collective, 1), "root 0", "root 1"});
  }
  all.push_back({"collective", call(Collective::all_reduce), call(Collective::all_gather),
                 "all_reduce", "all_gather"});
  all.push_back({"barrier", call(Collective::broadcast), Call(), "broadcast", "barrier"});
  return all;
}

// Runs the disagreeing call, and if that is over early (a root that only gives), a barrier. What
// the rank was told; or what else is wrong, after "WRONG".
std::string run_one(Comm& comm, const Call& given) {
  const std::size_t elements = (given.count + 1) * comm.size() + 64;
  const std::vector<std::int32_t> send(elements, static_cast<std::int32_t>(comm.rank() + 1) * 1000);
  std::vector<std::int32_t> recv(elements, kUntouched);
  Call call = given;
  call.send = send.data();
  call.recv = recv.data();
  Status status = comm.run(call);
  if (status.ok()) {
    status = comm.run(Call());
    if (status.ok()) return "WRONG: the comm went on";
  } else {
    // Of what the call would have written anyway, something may have come; nothing beyond it.
    for (std::size_t i = 0; i < elements; ++i) {
      const bool sent = recv[i] % 1000 == 0 && recv[i] > 0;
      if (recv[i] == kUntouched || (sent && i < given.count * comm.size())) continue;
      return fmt::format("WRONG: element {} became {}, and {}", i, recv[i], status.to_string());
    }
  }
  if (comm.run(Call()).code() != status.code()) return "WRONG: the comm is not revoked";
  return status.to_string();
}

class Mismatch : public testing::TestWithParam<std::tuple<std::uint32_t, std::uint64_t>> {};
std::string name_of(const testing::TestParamInfo<std::tuple<std::uint32_t, std::uint64_t>>& info) {
  return fmt::format("{}_ranks_{}", std::get<0>(info.param), std::get<1>(info.param));
}
INSTANTIATE_TEST_SUITE_P(, Mismatch,
                         testing::Combine(testing::Values(2u, 4u), testing::Values(8u, 300'000u)),
                         name_of);

TEST_P(Mismatch, IsToldWithBothValues) {
  const auto [size, count] = GetParam();
  const ScopedPool pool(1, 96u << 20);
  for (const Disagreement& one : disagreements(count)) {
    // Two roots that only give: none of the two reads what the other says.
    if (size == 2 && one.most.root != one.last.root && one.most.collective == one.last.collective &&
        (one.most.collective == Collective::broadcast ||
         one.most.collective == Collective::scatter)) {
      continue;
    }
    Ranks ranks(size, [&, ranks_here = size](std::uint32_t rank) -> std::string {
      auto member = join(pool.spec(), rank, ranks_here);
      if (!member.ok()) return "WRONG: " + member.status().to_string();
      return run_one(*member->comm, rank + 1 == ranks_here ? one.last : one.most);
    });
    const auto ends = ranks.join();
    bool told = false;
    for (std::uint32_t rank = 0; rank < size; ++rank) {
      const std::string& message = ends[rank].message;
      EXPECT_THAT(message, AnyOf(HasSubstr("mismatch: "), HasSubstr("revoked: ")))
          << one.name << ", rank " << rank;
      EXPECT_THAT(message, HasSubstr(one.says_most)) << one.name << ", rank " << rank;
      EXPECT_THAT(message, HasSubstr(one.says_last)) << one.name << ", rank " << rank;
      told = told || message.rfind("mismatch: ", 0) == 0;
    }
    std::string all;
    for (const RankEnd& end : ends) all += end.message + "\n";
    EXPECT_TRUE(told) << one.name << ":\n" << all;
  }
}

TEST(MismatchOfAPair, IsToldToBoth) {
  const ScopedPool pool(1);
  for (const std::uint64_t count : {8u, 300'000u}) {
    Ranks ranks(2, [&](std::uint32_t rank) -> std::string {
      auto member = join(pool.spec(), rank, 2);
      if (!member.ok()) return "WRONG: " + member.status().to_string();
      Call call = call_of(Collective::send_recv, rank == 0 ? count : count + 1);
      call.sender = rank == 0;
      call.root = 1 - rank;
      return run_one(*member->comm, call);
    });
    const auto ends = ranks.join();
    EXPECT_THAT(ends[1].message, HasSubstr(fmt::format("of {} int32", count)));
    EXPECT_THAT(ends[1].message, HasSubstr(fmt::format("of {} int32", count + 1)));
    EXPECT_THAT(ends[0].message, AnyOf(HasSubstr("mismatch: "), HasSubstr("revoked: ")));
  }
}

}  // namespace
}  // namespace penstock::test
