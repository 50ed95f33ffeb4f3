// Every collective between processes, against definitions that are written here element by element.
#include <gtest/gtest.h>

#include <vector>

#include "buffers.h"
#include "ranks.h"

namespace penstock::test {
namespace {

struct World {
  std::uint32_t ranks;
  std::uint32_t devices;
  Coherence coherence;
};

template <typename T>
std::string run_one(Comm& comm, Collective collective, std::uint64_t count, std::uint32_t root,
                    bool in_place, std::uint64_t seed) {
  Call call;
  call.collective = collective;
  call.count = count;
  call.type = T::type;
  call.root = has_root(collective) ? root : 0;
  Buffers<T> buffers(call, seed, comm.rank(), comm.size(), in_place);
  if (Status status = comm.run(call); !status.ok()) return status.to_string();
  return buffers.verify();
}

template <typename T>
std::string run_all(Comm& comm, const std::vector<std::uint64_t>& counts) {
  std::uint64_t seed = 1;
  for (const std::uint64_t count : counts) {
    for (const Collective collective : kAll) {
      for (const bool in_place : {false, true}) {
        const auto root = static_cast<std::uint32_t>(seed % comm.size());
        const std::string wrong = run_one<T>(comm, collective, count, root, in_place, seed++);
        if (!wrong.empty()) return wrong;
      }
    }
    if (Status status = comm.run(Call()); !status.ok()) return status.to_string();
  }
  return "";
}

class Collectives : public testing::TestWithParam<World> {};

std::string world_name(const testing::TestParamInfo<World>& info) {
  return fmt::format("ranks_{}_devices_{}_{}", info.param.ranks, info.param.devices,
                     coherence_name(info.param.coherence));
}

std::vector<World> worlds() {
  std::vector<World> all;
  for (const std::uint32_t ranks : {1u, 2u, 3u, 4u, 5u, 8u}) {
    for (const std::uint32_t devices : {1u, 2u, 6u}) {
      all.push_back({ranks, devices, Coherence::hardware});
    }
    all.push_back({ranks, 2, Coherence::software});
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(, Collectives, testing::ValuesIn(worlds()), world_name);

TEST_P(Collectives, EveryOneOfEveryAwkwardCount) {
  const World world = GetParam();
  const ScopedPool pool(world.devices);
  EXPECT_EQ("", run_ranks(world.ranks, [&](std::uint32_t rank) -> std::string {
              auto member = join(pool.spec(), rank, world.ranks, "test", world.coherence);
              if (!member.ok()) return member.status().to_string();
              Comm& comm = *member->comm;
              std::string wrong = run_all<F32>(comm, {0, 1, 2, 3, 15, 16, 17, 1000, 30011});
              if (wrong.empty()) wrong = run_all<Int64>(comm, {1, 7, 8, 9, 513});
              if (wrong.empty()) wrong = run_all<Uint8>(comm, {1, 63, 64, 65, 4097, 131072});
              return wrong;
            }));
}

// Small passes make long sequences of them: both halves of the scratch are reused many times.
TEST_P(Collectives, ManyPassesPerCall) {
  const World world = GetParam();
  const ScopedPool pool(world.devices);
  EXPECT_EQ("", run_ranks(world.ranks, [&](std::uint32_t rank) -> std::string {
              auto member =
                  join(pool.spec(), rank, world.ranks, "test", world.coherence, 20000, 4096);
              if (!member.ok()) return member.status().to_string();
              return run_all<F32>(*member->comm, {5000, 20001});
            }));
}

TEST_P(Collectives, NonBlockingCallsOverlapWithEachOther) {
  const World world = GetParam();
  const ScopedPool pool(world.devices);
  EXPECT_EQ("", run_ranks(world.ranks, [&](std::uint32_t rank) -> std::string {
              auto member = join(pool.spec(), rank, world.ranks, "test", world.coherence);
              if (!member.ok()) return member.status().to_string();
              Comm& comm = *member->comm;
              std::vector<Call> calls(std::size(kAll) * 3);
              std::vector<std::unique_ptr<Buffers<Int64>>> buffers;
              std::vector<std::shared_ptr<Request>> requests;
              for (std::size_t i = 0; i < calls.size(); ++i) {
                calls[i].collective = kAll[i % std::size(kAll)];
                calls[i].count = 100 + 2000 * (i / std::size(kAll));
                calls[i].type = PENSTOCK_INT64;
                calls[i].root =
                    has_root(calls[i].collective) ? static_cast<std::uint32_t>(i) % comm.size() : 0;
                buffers.push_back(
                    std::make_unique<Buffers<Int64>>(calls[i], i, rank, comm.size(), false));
                auto request = comm.start(calls[i]);
                if (!request.ok()) return request.status().to_string();
                requests.push_back(*request);
              }
              for (std::size_t i = calls.size(); i-- > 0;) {  // the last first
                if (Status status = comm.wait(*requests[i]); !status.ok()) {
                  return status.to_string();
                }
                if (std::string wrong = buffers[i]->verify(); !wrong.empty()) return wrong;
              }
              return "";
            }));
}

TEST_P(Collectives, SendAndReceiveBetweenAllPairsAtOnce) {
  const World world = GetParam();
  const ScopedPool pool(world.devices);
  EXPECT_EQ("", run_ranks(world.ranks, [&](std::uint32_t rank) -> std::string {
              auto member = join(pool.spec(), rank, world.ranks, "test", world.coherence);
              if (!member.ok()) return member.status().to_string();
              Comm& comm = *member->comm;
              for (const std::uint64_t count :
                   {std::uint64_t{1}, std::uint64_t{77}, std::uint64_t{200000}}) {
                std::vector<std::vector<std::int64_t>> out(comm.size()), in(comm.size());
                std::vector<std::shared_ptr<Request>> requests;
                for (std::uint32_t peer = 0; peer < comm.size(); ++peer) {
                  if (peer == rank) continue;
                  out[peer].resize(count);
                  in[peer].assign(count, -1);
                  for (std::uint64_t i = 0; i < count; ++i) {
                    out[peer][i] = static_cast<std::int64_t>(input(count, rank * 100 + peer, i));
                  }
                  Call send;
                  send.collective = Collective::send_recv;
                  send.sender = true;
                  send.root = peer;
                  send.send = out[peer].data();
                  send.count = count;
                  send.type = PENSTOCK_INT64;
                  Call receive = send;
                  receive.sender = false;
                  receive.send = nullptr;
                  receive.recv = in[peer].data();
                  for (const Call& call : {send, receive}) {
                    auto request = comm.start(call);
                    if (!request.ok()) return request.status().to_string();
                    requests.push_back(*request);
                  }
                }
                for (auto& request : requests) {
                  if (Status status = comm.wait(*request); !status.ok()) return status.to_string();
                }
                for (std::uint32_t peer = 0; peer < comm.size(); ++peer) {
                  for (std::uint64_t i = 0; i < in[peer].size(); ++i) {
                    const auto want = static_cast<std::int64_t>(input(count, peer * 100 + rank, i));
                    if (in[peer][i] != want) {
                      return fmt::format("from {}: element {} of {} is {}, not {}", peer, i, count,
                                         in[peer][i], want);
                    }
                  }
                }
              }
              return "";
            }));
}

TEST(TwoComms, InterleaveWithDifferentNamesSizesAndOrders) {
  const ScopedPool pool(2, 128u << 20);
  EXPECT_EQ("", run_ranks(4, [&](std::uint32_t rank) -> std::string {
              auto all = join(pool.spec(), rank, 4, "all");
              if (!all.ok()) return all.status().to_string();
              // A second comm of the even and the odd ranks, over the same mapping.
              CommConfig config;
              config.name = rank % 2 == 0 ? "even" : "odd";
              config.rank = rank / 2;
              config.size = 2;
              auto half = Comm::join(*all->pool, config);
              if (!half.ok()) return half.status().to_string();
              for (std::uint64_t seed = 0; seed < 50; ++seed) {
                const Collective collective = kAll[seed % std::size(kAll)];
                Comm& first = seed % 3 == 0 ? *all->comm : **half;
                Comm& second = seed % 3 == 0 ? **half : *all->comm;
                std::string wrong = run_one<F32>(first, collective, 3000, 1, false, seed);
                if (wrong.empty()) wrong = run_one<F32>(second, collective, 500, 0, true, seed);
                if (!wrong.empty()) return wrong;
              }
              return "";
            }));
}

TEST(TeamOfOne, PremultipliedSumMultiplies) {
  const ScopedPool pool(1);
  EXPECT_EQ("", run_ranks(1, [&](std::uint32_t) -> std::string {
              auto member = join(pool.spec(), 0, 1);
              if (!member.ok()) return member.status().to_string();
              std::vector<std::int32_t> data{1, -2, 3};
              Call call;
              call.collective = Collective::all_reduce;
              call.send = call.recv = data.data();
              call.count = 3;
              call.type = PENSTOCK_INT32;
              call.redop = PENSTOCK_PREMUL_SUM;
              call.scale = 7;
              if (Status status = member->comm->run(call); !status.ok()) return status.to_string();
              if (data != std::vector<std::int32_t>{7, -14, 21}) return "not multiplied";
              return "";
            }));
}

TEST(Buffers, InThePoolAreUsedByCollectives) {
  const ScopedPool pool(2);
  for (const Coherence coherence : {Coherence::hardware, Coherence::software}) {
    EXPECT_EQ("", run_ranks(3, [&](std::uint32_t rank) -> std::string {
                auto member = join(pool.spec(), rank, 3, "test", coherence);
                if (!member.ok()) return member.status().to_string();
                RegionRequest request;
                request.bytes = 40000;
                auto region = member->pool->allocate(request);
                if (!region.ok()) return region.status().to_string();
                auto* data = reinterpret_cast<std::int32_t*>(
                    member->pool->resolve(region->address, region->bytes));
                for (int i = 0; i < 10000; ++i) data[i] = i * static_cast<int>(rank + 1);
                Call call;
                call.collective = Collective::all_reduce;
                call.send = call.recv = data;
                call.count = 10000;
                call.type = PENSTOCK_INT32;
                if (Status status = member->comm->run(call); !status.ok()) {
                  return status.to_string();
                }
                for (int i = 0; i < 10000; ++i) {
                  if (data[i] != 6 * i) return fmt::format("element {} is {}", i, data[i]);
                }
                return "";
              }));
  }
}

}  // namespace
}  // namespace penstock::test
