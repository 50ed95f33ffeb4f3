// Comms with groups: reductions in two levels, bit for bit what their definition says.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <vector>

#include "ranks.h"

namespace penstock::test {
namespace {

using testing::HasSubstr;

Result<Member> join_grouped(const std::string& spec, std::uint32_t rank, std::uint32_t size,
                            std::uint32_t group, const std::string& engine = "auto") {
  Member member;
  PENSTOCK_ASSIGN(member.pool, Pool::map(Platform::host(), spec));
  CommConfig config;
  config.name = "grouped";
  config.rank = rank;
  config.size = size;
  config.group = group;
  config.engine = engine;
  config.timeout_ms = 20000;
  config.rank_bytes = 1 << 16;
  PENSTOCK_ASSIGN(member.comm, Comm::join(*member.pool, config));
  return member;
}

// Magnitudes so far apart that every order of additions gives other bits.
float value_of(std::uint32_t rank, std::size_t i) {
  const auto mixed = static_cast<std::uint32_t>((rank * 7919 + i * 104729 + 3) * 2654435761u);
  const float magnitude = static_cast<float>(1u << (mixed >> 27 & 15));
  return (static_cast<float>(mixed & 0xffffff) / 16777216.0f - 0.5f) * magnitude;
}

// The definition, in plain C++.
std::vector<float> define(std::uint32_t size, std::uint32_t group, std::size_t count,
                          std::uint32_t redop, float scale) {
  std::vector<float> result(count);
  for (std::size_t i = 0; i < count; ++i) {
    float over_groups = 0;
    for (std::uint32_t first = 0; first < size; first += group) {
      float inside = 0;
      for (std::uint32_t r = first; r < first + group; ++r) {
        const float value = redop == PENSTOCK_PREMUL_SUM ? value_of(r, i) * scale : value_of(r, i);
        inside = r == first ? value : inside + value;
      }
      if (redop == PENSTOCK_AVG) inside *= 1.0f / static_cast<float>(group);
      over_groups = first == 0 ? inside : over_groups + inside;
    }
    if (redop == PENSTOCK_AVG) over_groups *= 1.0f / static_cast<float>(size / group);
    result[i] = over_groups;
  }
  return result;
}

struct Case {
  std::uint32_t size;
  std::uint32_t group;
  const char* engine;
};
class TwoLevel : public testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(, TwoLevel,
                         testing::Values(Case{4, 2, "auto"}, Case{6, 3, "auto"},
                                         Case{6, 2, "scalar"}, Case{8, 4, "auto"}),
                         [](const testing::TestParamInfo<Case>& param) {
                           return fmt::format("{}_ranks_in_groups_of_{}_{}", param.param.size,
                                              param.param.group, param.param.engine);
                         });

std::string compare(const char* what, const float* got, const std::vector<float>& want,
                    std::size_t offset, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    if (std::memcmp(&got[i], &want[offset + i], sizeof(float)) == 0) continue;
    return fmt::format("{} of {} elements: element {} is {}, not {}", what, count, i, got[i],
                       want[offset + i]);
  }
  return "";
}

std::string reduce_everything(Comm& comm, std::uint32_t group, std::size_t count, bool in_place) {
  const std::uint32_t size = comm.size();
  const float scale = 0.3f;
  for (const std::uint32_t redop : {PENSTOCK_SUM, PENSTOCK_AVG, PENSTOCK_PREMUL_SUM}) {
    const std::vector<float> want = define(size, group, count, redop, scale);
    Call call;
    call.type = PENSTOCK_F32;
    call.redop = redop;
    if (redop == PENSTOCK_PREMUL_SUM) std::memcpy(&call.scale, &scale, sizeof scale);
    std::vector<float> send(count);
    std::vector<float> recv(count);
    const auto refill = [&] {
      for (std::size_t i = 0; i < count; ++i) send[i] = value_of(comm.rank(), i);
    };
    call.count = count;
    call.send = send.data();
    call.recv = in_place ? send.data() : recv.data();
    call.collective = Collective::all_reduce;
    refill();
    if (Status status = comm.run(call); !status.ok()) return status.to_string();
    std::string wrong = compare("all_reduce", static_cast<float*>(call.recv), want, 0, count);
    if (!wrong.empty()) return wrong;
    for (std::uint32_t root = 0; root < size; root += 3) {
      call.collective = Collective::reduce;
      call.root = root;
      refill();
      if (Status status = comm.run(call); !status.ok()) return status.to_string();
      if (comm.rank() == root) {
        wrong = compare("reduce", static_cast<float*>(call.recv), want, 0, count);
        if (!wrong.empty()) return wrong;
      }
    }
    call.root = 0;
    if (count % size != 0) continue;
    const std::size_t part = count / size;
    call.collective = Collective::reduce_scatter;
    call.count = part;
    call.recv = in_place ? send.data() + comm.rank() * part : recv.data();
    refill();
    if (Status status = comm.run(call); !status.ok()) return status.to_string();
    wrong =
        compare("reduce_scatter", static_cast<float*>(call.recv), want, comm.rank() * part, part);
    if (!wrong.empty()) return wrong;
  }
  return "";
}

TEST_P(TwoLevel, GivesTheBitsOfItsDefinition) {
  const Case& param = GetParam();
  const ScopedPool pool(2);
  EXPECT_EQ("", run_ranks(param.size, [&](std::uint32_t rank) -> std::string {
              auto member = join_grouped(pool.spec(), rank, param.size, param.group, param.engine);
              if (!member.ok()) return member.status().to_string();
              for (const std::size_t count : {1u, 24u, 700u, 4800u, 48000u}) {
                for (const bool in_place : {false, true}) {
                  const std::string wrong =
                      reduce_everything(*member->comm, param.group, count, in_place);
                  if (!wrong.empty()) return wrong;
                }
              }
              return "";
            }));
}

// So that the test above can tell the two definitions apart.
TEST(TwoLevelDefinition, IsAnotherThanThatOfOneLevel) {
  EXPECT_NE(define(6, 2, 1000, PENSTOCK_SUM, 1), define(6, 6, 1000, PENSTOCK_SUM, 1));
  EXPECT_NE(define(6, 2, 1000, PENSTOCK_SUM, 1), define(6, 3, 1000, PENSTOCK_SUM, 1));
}

TEST(TwoLevelComm, BuffersInThePoolAreUsedWhereTheyAre) {
  const ScopedPool pool(2);
  EXPECT_EQ("", run_ranks(4, [&](std::uint32_t rank) -> std::string {
              auto member = join_grouped(pool.spec(), rank, 4, 2);
              if (!member.ok()) return member.status().to_string();
              const std::size_t count = 50'000;
              RegionRequest request;
              request.bytes = count * sizeof(float);
              auto region = member->pool->allocate(request);
              if (!region.ok()) return region.status().to_string();
              auto* data =
                  reinterpret_cast<float*>(member->pool->resolve(region->address, request.bytes));
              const auto want = define(4, 2, count, PENSTOCK_SUM, 1);
              for (int round = 0; round < 3; ++round) {
                for (std::size_t i = 0; i < count; ++i) data[i] = value_of(rank, i);
                Call call;
                call.collective = Collective::all_reduce;
                call.send = call.recv = data;
                call.count = count;
                call.type = PENSTOCK_F32;
                if (Status status = member->comm->run(call); !status.ok()) {
                  return status.to_string();
                }
                const std::string wrong = compare("all_reduce", data, want, 0, count);
                if (!wrong.empty()) return wrong;
              }
              return "";
            }));
}

TEST(TwoLevelComm, AGroupThatDoesNotDivideTheRanksIsRefused) {
  const ScopedPool pool(1);
  EXPECT_EQ("", run_ranks(1, [&](std::uint32_t) -> std::string {
              const Status status = join_grouped(pool.spec(), 0, 6, 4).status();
              if (status.code() != Code::invalid_argument) return status.to_string();
              return status.message().find("6 ranks in groups of 4: the group must divide") ==
                             std::string::npos
                         ? status.message()
                         : "";
            }));
}

TEST(TwoLevelComm, RanksThatDisagreeAboutTheGroupAreTold) {
  const ScopedPool pool(1);
  Ranks ranks(4, [&](std::uint32_t rank) -> std::string {
    auto member = join_grouped(pool.spec(), rank, 4, rank == 3 ? 0 : 2);
    return member.ok() ? "joined" : member.status().to_string();
  });
  // Whoever came first decided: then the others are those who are told.
  std::string all;
  for (const RankEnd& end : ranks.join()) all += end.message + "\n";
  EXPECT_THAT(all, HasSubstr("mismatch: comm 'grouped' has groups of"));
}

}  // namespace
}  // namespace penstock::test
