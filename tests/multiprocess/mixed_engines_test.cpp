// Ranks of one comm with engines of different kinds: their results are those of ranks that all have
// `scalar`, bit for bit, on every rank.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "buffers.h"
#include "penstock/engine/choice.h"
#include "ranks.h"

namespace penstock::test {
namespace {

// One a rank. What this machine cannot run is replaced by a queue over simd; that is found out in
// the rank's own process, because engines may start threads.
constexpr const char* kEngines[] = {PENSTOCK_TEST_ENGINES};
constexpr const char* kInstead = "fault:simd";
constexpr auto kRanks = static_cast<std::uint32_t>(std::size(kEngines));

struct Pair {
  std::unique_ptr<Pool> pool;
  std::unique_ptr<Comm> mixed;
  std::unique_ptr<Comm> plain;  // scalar everywhere
};

Result<Pair> join_both(const std::string& spec, std::uint32_t rank, Coherence coherence,
                       std::uint64_t rank_bytes, std::uint32_t group) {
  Pair pair;
  MapOptions options;
  options.coherence = coherence;
  PENSTOCK_ASSIGN(pair.pool, Pool::map(Platform::host(), spec, options));
  CommConfig config;
  config.rank = rank;
  config.size = kRanks;
  config.rank_bytes = rank_bytes;
  config.group = group;
  config.timeout_ms = 60000;
  config.name = "mixed";
  config.engine = std::string(kEngines[rank]) + "," + kInstead;
  PENSTOCK_ASSIGN(pair.mixed, Comm::join(*pair.pool, config));
  config.name = "plain";
  config.engine = "scalar";
  PENSTOCK_ASSIGN(pair.plain, Comm::join(*pair.pool, config));
  return pair;
}

std::vector<std::byte> noise(std::uint64_t bytes, std::uint64_t seed, std::uint32_t rank) {
  std::vector<std::byte> data(bytes);
  for (std::uint64_t i = 0; i < bytes; ++i) {
    data[i] = static_cast<std::byte>(input(seed, rank, i / 8) >> (8 * (i % 8)));
  }
  return data;
}

// The call on one comm, with fresh buffers; what came of it.
Status run_on(Comm& comm, Call call, std::uint64_t seed, bool in_place,
              std::vector<std::byte>* result) {
  const BufferBytes bytes = buffer_bytes(call, comm.rank(), comm.size());
  const std::uint64_t span = std::max(bytes.send, bytes.recv);
  std::vector<std::byte> send = noise(in_place ? span : bytes.send, seed, comm.rank());
  std::vector<std::byte> recv(in_place ? 0 : bytes.recv, std::byte{0x5a});
  const std::uint64_t own = comm.rank() * call.count * penstock_type_size(call.type);
  std::byte* from = send.data();
  std::byte* to = in_place ? from : recv.data();
  if (in_place && bytes.send < bytes.recv) from += own;
  if (in_place && bytes.recv < bytes.send) to += own;
  call.send = bytes.send > 0 ? from : nullptr;
  call.recv = bytes.recv > 0 ? to : nullptr;
  PENSTOCK_TRY(comm.run(call));
  result->assign(to, to + bytes.recv);
  return {};
}

std::string compare(const Pair& pair, const Call& call, std::uint64_t seed, bool in_place) {
  std::vector<std::byte> got, expected;
  const std::string what =
      fmt::format("{} {} of {} x {}{} on {}", collective_name(call.collective),
                  penstock_redop_name(call.redop), call.count, penstock_type_name(call.type),
                  in_place ? " in place" : "", pair.mixed->engine().name);
  if (Status status = run_on(*pair.plain, call, seed, in_place, &expected); !status.ok()) {
    return "all scalar: " + what + ": " + status.to_string();
  }
  if (Status status = run_on(*pair.mixed, call, seed, in_place, &got); !status.ok()) {
    return what + ": " + status.to_string();
  }
  if (got == expected) return "";
  const auto differs = std::mismatch(got.begin(), got.end(), expected.begin());
  return fmt::format("{}: byte {} of {} differs", what, differs.first - got.begin(), got.size());
}

// Every collective; every type with sums, and every operation on a few types.
std::string run_all(const Pair& pair, const std::vector<std::uint64_t>& counts,
                    const std::vector<std::uint32_t>& types) {
  std::uint64_t seed = 1;
  for (const std::uint64_t count : counts) {
    for (const Collective collective : kAll) {
      for (const std::uint32_t type : types) {
        Call call;
        call.collective = collective;
        call.count = count;
        call.type = type;
        call.root = has_root(collective) ? static_cast<std::uint32_t>(seed % kRanks) : 0;
        call.redop = static_cast<std::uint32_t>(seed % PENSTOCK_REDOP_COUNT);
        if (call.redop == PENSTOCK_PREMUL_SUM && !reduces(collective)) call.redop = PENSTOCK_SUM;
        if (call.redop == PENSTOCK_PREMUL_SUM) call.scale = 0x3f800001;
        const std::string wrong = compare(pair, call, seed, seed % 3 == 0);
        if (!wrong.empty()) return wrong;
        ++seed;
      }
    }
    if (Status status = pair.mixed->run(Call()); !status.ok()) return status.to_string();
  }
  return "";
}

std::vector<std::uint32_t> all_types() {
  std::vector<std::uint32_t> types;
  for (std::uint32_t type = 0; type < PENSTOCK_TYPE_COUNT; ++type) types.push_back(type);
  return types;
}

// Whatever is not an engine of the calling thread has been given work.
std::string was_asked(const Pair& pair, std::uint32_t rank) {
  const std::string name = kEngines[rank];
  const bool direct = name == "scalar" || name == "simd";
  if (direct != (pair.mixed->counters().descriptors == 0)) {
    return fmt::format("{} executed {} descriptors", pair.mixed->engine().name,
                       pair.mixed->counters().descriptors);
  }
  return "";
}

std::string mixed_world(const std::string& spec, std::uint32_t rank, Coherence coherence,
                        std::uint64_t rank_bytes, std::uint32_t group,
                        const std::vector<std::uint64_t>& counts,
                        const std::vector<std::uint32_t>& types) {
  auto pair = join_both(spec, rank, coherence, rank_bytes, group);
  if (!pair.ok()) return pair.status().to_string();
  std::string wrong = run_all(*pair, counts, types);
  return wrong.empty() ? was_asked(*pair, rank) : wrong;
}

constexpr double kSeconds = 100;

TEST(MixedEngines, EveryCollectiveOfEveryType) {
  const ScopedPool pool(2, 128u << 20);
  EXPECT_EQ("", run_ranks(
                    kRanks,
                    [&](std::uint32_t rank) {
                      return mixed_world(pool.spec(), rank, Coherence::hardware, 1u << 20, 0,
                                         {1, 37, 3001}, all_types());
                    },
                    kSeconds));
}

TEST(MixedEngines, SeveralPasses) {
  const ScopedPool pool(1, 128u << 20);
  EXPECT_EQ("", run_ranks(
                    kRanks,
                    [&](std::uint32_t rank) {
                      return mixed_world(pool.spec(), rank, Coherence::hardware, 8192, 0, {3001},
                                         {PENSTOCK_F32, PENSTOCK_BF16, PENSTOCK_INT64});
                    },
                    kSeconds));
}

TEST(MixedEngines, MemoryThatIsNotCoherent) {
  const ScopedPool pool(2, 128u << 20);
  EXPECT_EQ("", run_ranks(
                    kRanks,
                    [&](std::uint32_t rank) {
                      return mixed_world(pool.spec(), rank, Coherence::software, 1u << 20, 0,
                                         {5, 5003}, {PENSTOCK_F32, PENSTOCK_F16, PENSTOCK_UINT8});
                    },
                    kSeconds));
}

TEST(MixedEngines, TwoLevels) {
  const ScopedPool pool(2, 128u << 20);
  EXPECT_EQ("", run_ranks(
                    kRanks,
                    [&](std::uint32_t rank) {
                      return mixed_world(pool.spec(), rank, Coherence::hardware, 1u << 20,
                                         kRanks / 2, {2003}, {PENSTOCK_F32, PENSTOCK_F64});
                    },
                    kSeconds));
}

// Buffers that lie in the pool are offered to others by ranks that work directly, but only where
// all do.
TEST(MixedEngines, BuffersInThePool) {
  const ScopedPool pool(2, 128u << 20);
  EXPECT_EQ("", run_ranks(
                    kRanks,
                    [&](std::uint32_t rank) -> std::string {
                      auto pair = join_both(pool.spec(), rank, Coherence::hardware, 1u << 20, 0);
                      if (!pair.ok()) return pair.status().to_string();
                      constexpr std::uint64_t kCount = 20000;
                      RegionRequest request;
                      request.bytes = 2 * kCount * sizeof(std::int32_t);
                      auto region = pair->pool->allocate(request);
                      if (!region.ok()) return region.status().to_string();
                      auto* data = reinterpret_cast<std::int32_t*>(
                          pair->pool->resolve(region->address, region->bytes));
                      for (std::uint64_t round = 0; round < 3; ++round) {
                        for (std::uint64_t i = 0; i < kCount; ++i) {
                          data[i] = static_cast<std::int32_t>(i * (rank + 1) + round);
                        }
                        Call call;
                        call.collective = Collective::all_reduce;
                        call.send = data;
                        call.recv = round == 1 ? data : data + kCount;
                        call.count = kCount;
                        call.type = PENSTOCK_INT32;
                        if (Status status = pair->mixed->run(call); !status.ok()) {
                          return status.to_string();
                        }
                        const auto* got = static_cast<const std::int32_t*>(call.recv);
                        for (std::uint64_t i = 0; i < kCount; ++i) {
                          const auto sum = static_cast<std::int32_t>(
                              i * (kRanks * (kRanks + 1) / 2) + kRanks * round);
                          if (got[i] != sum) return fmt::format("element {} is {}", i, got[i]);
                        }
                      }
                      return "";
                    },
                    kSeconds));
}

TEST(MixedEngines, SendAndReceiveInARing) {
  const ScopedPool pool(1, 128u << 20);
  EXPECT_EQ("", run_ranks(
                    kRanks,
                    [&](std::uint32_t rank) -> std::string {
                      auto pair = join_both(pool.spec(), rank, Coherence::hardware, 1u << 20, 0);
                      if (!pair.ok()) return pair.status().to_string();
                      for (const std::uint64_t bytes : {std::uint64_t{60}, std::uint64_t{70001}}) {
                        const std::vector<std::byte> out = noise(bytes, 9, rank);
                        std::vector<std::byte> in(bytes);
                        Call send;
                        send.collective = Collective::send_recv;
                        send.sender = true;
                        send.root = (rank + 1) % kRanks;
                        send.send = out.data();
                        send.count = bytes;
                        Call receive = send;
                        receive.sender = false;
                        receive.root = (rank + kRanks - 1) % kRanks;
                        receive.send = nullptr;
                        receive.recv = in.data();
                        for (const Call& call : {send, receive}) {
                          auto request = pair->mixed->start(call);
                          if (!request.ok()) return request.status().to_string();
                          if (call.sender) continue;
                          if (Status status = pair->mixed->wait(**request); !status.ok()) {
                            return status.to_string();
                          }
                        }
                        if (in != noise(bytes, 9, receive.root)) return "wrong bytes";
                        if (Status status = pair->mixed->run(Call()); !status.ok()) {
                          return status.to_string();
                        }
                      }
                      return "";
                    },
                    kSeconds));
}

}  // namespace
}  // namespace penstock::test
