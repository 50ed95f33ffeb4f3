// Buffers that live in the pool, mixed with private ones: every rank decides for itself, so that a
// call finds some of them offered and some not. Calls repeat with new contents, so that who reads a
// buffer too late, or finds it overwritten too early, is seen.
#include <gtest/gtest.h>

#include <random>

#include "buffers.h"
#include "ranks.h"

namespace penstock::test {
namespace {

struct Setting {
  std::uint32_t ranks;
  std::uint32_t devices;
  Coherence coherence;
  std::uint32_t push;
  std::uint64_t rank_bytes;
  bool own_mapping;  // the buffers come from a mapping of the application's own
};

class PoolBuffers : public testing::TestWithParam<Setting> {};

std::vector<Setting> settings() {
  std::vector<Setting> all;
  for (const std::uint32_t ranks : {2u, 3u, 4u}) {
    for (const std::uint64_t rank_bytes : {std::uint64_t{8192}, std::uint64_t{1} << 20}) {
      all.push_back({ranks, 1, Coherence::hardware, 0, rank_bytes, false});
      all.push_back({ranks, 2, Coherence::hardware, 1, rank_bytes, true});
      all.push_back({ranks, 3, Coherence::software, 0, rank_bytes, false});
    }
  }
  all.push_back({5, 2, Coherence::hardware, 1, 8192, false});
  return all;
}

std::string setting_name(const testing::TestParamInfo<Setting>& info) {
  const Setting& s = info.param;
  return fmt::format("ranks_{}_devices_{}_{}_push_{}_rank_bytes_{}_{}", s.ranks, s.devices,
                     coherence_name(s.coherence), s.push, s.rank_bytes,
                     s.own_mapping ? "own_mapping" : "comms_mapping");
}

INSTANTIATE_TEST_SUITE_P(, PoolBuffers, testing::ValuesIn(settings()), setting_name);

// Hands out pieces of a region, each at a whole line plus `offset`.
class Arena {
 public:
  Arena(Pool& pool, std::uint64_t bytes) {
    RegionRequest request;
    request.bytes = bytes;
    auto region = pool.allocate(request);
    PENSTOCK_CHECK(region.ok(), "{}", region.status().to_string());
    next_ = pool.resolve(region->address, region->bytes);
    end_ = next_ + region->bytes;
    begin_ = next_;
  }
  std::byte* take(std::uint64_t bytes, std::uint64_t offset) {
    std::byte* piece = next_ + offset;
    next_ += (bytes + offset + 63) / 64 * 64;
    PENSTOCK_CHECK(next_ <= end_, "the arena is too small for {} bytes", bytes);
    return piece;
  }
  void reset() { next_ = begin_; }

 private:
  std::byte* begin_;
  std::byte* next_;
  std::byte* end_;
};

std::string run_random_calls(Comm& comm, Pool& pool, std::uint32_t rounds) {
  Arena arena(pool, 4u << 20);
  std::mt19937_64 common(comm.size());                   // the same on every rank
  std::mt19937_64 own(comm.size() * 100 + comm.rank());  // this rank's own choices
  for (std::uint32_t round = 0; round < rounds; ++round) {
    arena.reset();
    Call call;
    call.collective = kAll[common() % std::size(kAll)];
    const std::uint64_t counts[] = {3, 16, 500, 600, 5003, 16384, 40001};
    call.count = counts[common() % std::size(counts)];
    if (call.collective != Collective::all_reduce && call.collective != Collective::reduce &&
        call.collective != Collective::broadcast) {
      call.count = std::min<std::uint64_t>(call.count, 20000);
    }
    call.type = F32::type;
    const auto root = static_cast<std::uint32_t>(common() % comm.size());
    call.root = has_root(call.collective) ? root : 0;
    const std::uint64_t repeats = 1 + common() % 3;
    const bool in_place = own() % 3 == 0;
    const std::uint64_t send_offset = own() % 2 * 4;
    const std::uint64_t recv_offset = own() % 2 * 4;
    using Memory = Buffers<F32>::Memory;
    const Memory send = own() % 3 == 0 ? Memory() : [&](std::uint64_t bytes) {
      return arena.take(bytes, send_offset);
    };
    const Memory recv = own() % 3 == 0 ? Memory() : [&](std::uint64_t bytes) {
      return arena.take(bytes, recv_offset);
    };
    for (std::uint64_t repeat = 0; repeat < repeats; ++repeat) {
      if (repeat > 0) arena.reset();
      Buffers<F32> buffers(call, round * 7 + repeat, comm.rank(), comm.size(), in_place, send,
                           recv);
      if (Status status = comm.run(call); !status.ok()) return status.to_string();
      if (std::string wrong = buffers.verify(); !wrong.empty()) {
        return fmt::format("round {}: {}", round, wrong);
      }
    }
  }
  return "";
}

TEST_P(PoolBuffers, AnyMixtureGivesTheRightResult) {
  const Setting setting = GetParam();
  const ScopedPool pool(setting.devices);
  EXPECT_EQ("", run_ranks(setting.ranks, [&](std::uint32_t rank) -> std::string {
              Tuning tuning;
              tuning.push = setting.push;
              auto member = join(pool.spec(), rank, setting.ranks, "test", setting.coherence, 20000,
                                 setting.rank_bytes, tuning);
              if (!member.ok()) return member.status().to_string();
              MapOptions options;
              options.coherence = setting.coherence;
              auto own = Pool::map(Platform::host(), pool.spec(), options);
              if (!own.ok()) return own.status().to_string();
              return run_random_calls(*member->comm, setting.own_mapping ? **own : *member->pool,
                                      150);
            }));
}

TEST(PoolBuffer, ThatIsOfferedIsNotCopied) {
  const ScopedPool pool(1);
  EXPECT_EQ("", run_ranks(2, [&](std::uint32_t rank) -> std::string {
              auto member = join(pool.spec(), rank, 2);
              if (!member.ok()) return member.status().to_string();
              Arena arena(*member->pool, 1u << 20);
              Call call;
              call.collective = Collective::all_gather;
              call.count = 65536;
              call.type = PENSTOCK_UINT8;
              std::byte* send = arena.take(65536, 0);
              std::byte* recv = arena.take(2 * 65536, 0);
              std::fill_n(send, 65536, std::byte{7});
              call.send = send;
              call.recv = recv;
              if (Status status = member->comm->run(call); !status.ok()) return status.to_string();
              const CommCounters counters = member->comm->counters();
              if (counters.pool_bytes_written != 0 || counters.pool_bytes_read != 65536) {
                return fmt::format("{} bytes written to blocks, {} read",
                                   counters.pool_bytes_written, counters.pool_bytes_read);
              }
              return "";
            }));
}

}  // namespace
}  // namespace penstock::test
