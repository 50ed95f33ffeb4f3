// Windows between processes: one-sided access, signals, blocks, and how a window ends.
#include "penstock/comm/window.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <vector>

#include "ranks.h"
#include "tally.h"

namespace penstock::test {
namespace {

using testing::HasSubstr;

// A rank with its window. The window goes before the comm.
struct Place {
  Member member;
  std::unique_ptr<CommWindow> window;
};

Result<Place> open(const std::string& spec, std::uint32_t rank, std::uint32_t size,
                   const CommWindowConfig& config, Coherence coherence = Coherence::hardware) {
  Place place;
  PENSTOCK_ASSIGN(place.member, join(spec, rank, size, "test", coherence));
  PENSTOCK_ASSIGN(place.window, CommWindow::make(*place.member.pool, *place.member.comm, config));
  return place;
}

std::vector<RegionInfo> regions_of(const std::string& spec) {
  auto pool = Pool::map(Platform::host(), spec);
  PENSTOCK_CHECK(pool.ok(), "{}", pool.status().to_string());
  return (*pool)->regions();
}

std::uint64_t pattern(std::uint64_t rank, std::uint64_t round, std::uint64_t index) {
  return (rank + 1) * 0x9e3779b97f4a7c15u ^ (round << 32) ^ index;
}

Status barrier(Comm& comm) { return comm.run(Call()); }

class Window : public testing::TestWithParam<Coherence> {};
std::string name_of(const testing::TestParamInfo<Coherence>& param) {
  return coherence_name(param.param);
}
INSTANTIATE_TEST_SUITE_P(, Window, testing::Values(Coherence::hardware, Coherence::software),
                         name_of);

// Every rank writes into its right neighbour's part, which checks what it got and says so.
std::string ring(Place& place, std::uint32_t rounds) {
  CommWindow& window = *place.window;
  const std::uint32_t size = window.size();
  const std::uint32_t right = (window.rank() + 1) % size;
  const std::uint32_t left = (window.rank() + size - 1) % size;
  const std::size_t words = 5000;
  for (std::uint64_t round = 1; round <= rounds; ++round) {
    std::vector<std::uint64_t> data(words);
    for (std::size_t i = 0; i < words; ++i) data[i] = pattern(window.rank(), round, i);
    Status status = window.put(right, 128, data.data(), words * 8);
    if (status.ok()) status = window.signal(right, 0, round);
    if (status.ok()) status = window.wait_signal(left, 0, round);
    if (status.ok()) status = window.observe(128, words * 8);
    if (!status.ok()) return status.to_string();
    std::memcpy(data.data(), window.data() + 128, words * 8);
    for (std::size_t i = 0; i < words; ++i) {
      if (data[i] != pattern(left, round, i)) {
        return fmt::format("round {}, word {}: {:#x}", round, i, data[i]);
      }
    }
    status = window.signal(left, 1, round);
    if (status.ok()) status = window.wait_signal(right, 1, round);
    if (!status.ok()) return status.to_string();
  }
  return "";
}

TEST_P(Window, WhatWasPutBeforeASignalIsSeenAfterIt) {
  for (const std::uint32_t devices : {1u, 3u}) {
    const ScopedPool pool(devices);
    EXPECT_EQ("", run_ranks(4, [&](std::uint32_t rank) -> std::string {
                CommWindowConfig config;
                config.bytes = 64 << 10;
                auto place = open(pool.spec(), rank, 4, config, GetParam());
                return place.ok() ? ring(*place, 50) : place.status().to_string();
              }));
    EXPECT_TRUE(regions_of(pool.spec()).empty());
  }
}

TEST_P(Window, GetReadsWhatTheOwnerPublished) {
  const ScopedPool pool(1);
  EXPECT_EQ("", run_ranks(3, [&](std::uint32_t rank) -> std::string {
              CommWindowConfig config;
              config.bytes = 1000 * (rank + 1);  // parts may differ
              auto place = open(pool.spec(), rank, 3, config, GetParam());
              if (!place.ok()) return place.status().to_string();
              CommWindow& window = *place->window;
              std::memset(window.data(), static_cast<int>(rank + 1), config.bytes);
              if (Status status = window.publish(0, config.bytes); !status.ok()) {
                return status.to_string();
              }
              window.flush();
              if (!barrier(*place->member.comm).ok()) return "barrier";
              for (std::uint32_t source = 0; source < 3; ++source) {
                if (window.bytes(source) != 1000 * (source + 1)) return "wrong size";
                std::vector<std::uint8_t> got(777);
                if (!window.get(source, 33, got.data(), got.size()).ok()) return "get";
                for (const std::uint8_t byte : got) {
                  if (byte != source + 1) return fmt::format("rank {} gave {}", source, byte);
                }
              }
              return barrier(*place->member.comm).message();
            }));
}

TEST(WindowOfOne, EdgesAndBadArguments) {
  const ScopedPool pool(1);
  EXPECT_EQ("", run_ranks(1, [&](std::uint32_t) -> std::string {
              CommWindowConfig config;
              config.bytes = 200;
              config.signals = 2;
              config.blocks = 1;
              config.block_bytes = 10;
              auto place = open(pool.spec(), 0, 1, config);
              if (!place.ok()) return place.status().to_string();
              CommWindow& w = *place->window;
              const std::vector<std::uint8_t> ones(256, 1);
              std::memset(w.data(), 7, 192);
              if (!w.put(0, 64, ones.data(), 70).ok()) return "put";
              // Lines 1 and 2 are the put's: 70 ones, the rest zero. Line 0 is untouched.
              const auto* bytes = reinterpret_cast<const std::uint8_t*>(w.data());
              for (int i = 0; i < 192; ++i) {
                const int want = i < 64 ? 7 : i < 134 ? 1 : 0;
                if (bytes[i] != want) return fmt::format("byte {} is {}", i, bytes[i]);
              }
              if (!w.put(0, 128, ones.data(), 72).ok()) return "a put up to the end";
              if (!w.put(0, 192, nullptr, 0).ok()) return "a put of nothing";
              std::uint8_t sink[256];
              const std::vector<std::pair<Status, const char*>> refused = {
                  {w.put(0, 8, sink, 8), "multiple of 64, not 8; the next one is 64"},
                  {w.put(0, 128, sink, 73), "73 bytes at offset 128 goes beyond the 200 bytes"},
                  {w.put(0, UINT64_MAX - 63, sink, 128), "goes beyond"},
                  {w.put(1, 0, sink, 8), "target 1 is out of range; there are ranks 0 to 0"},
                  {w.put(0, 0, nullptr, 8), "null pointer"},
                  {w.get(0, 199, sink, 2), "goes beyond the 200 bytes of rank 0"},
                  {w.get(7, 0, sink, 2), "source 7 is out of range"},
                  {w.publish(0, 201), "goes beyond"},
                  {w.signal(0, 2, 1), "signal slot 2 is out of range; 0 to 1 exist"},
                  {w.wait_signal(0, 2, 1), "signal slot 2"},
                  {w.publish_block(1, 0, sink, 1).status(), "block 1 is out of range; each rank"},
                  {w.publish_block(0, 0, sink, 11).status(), "block of 11 bytes; this window's"},
                  {w.find_block(5).status(), "no rank has published a block with key 5"},
              };
              for (const auto& [status, what] : refused) {
                if (status.message().find(what) == std::string::npos) {
                  return fmt::format("'{}' gave {}", what, status.to_string());
                }
              }
              return "";
            }));
}

TEST(WindowSignals, OnlyRiseAndAreWaitedForWithADeadline) {
  const ScopedPool pool(1);
  EXPECT_EQ("", run_ranks(2, [&](std::uint32_t rank) -> std::string {
              auto place = open(pool.spec(), rank, 2, CommWindowConfig());
              if (!place.ok()) return place.status().to_string();
              CommWindow& w = *place->window;
              if (rank == 1) {
                if (!w.signal(0, 3, 9).ok() || !w.signal(0, 3, 4).ok()) return "signal";
                return w.wait_signal(0, 0, 1).message();
              }
              if (Status status = w.wait_signal(1, 3, 9); !status.ok()) return status.to_string();
              auto value = w.read_signal(1, 3);
              if (!value.ok() || *value != 9) return "not 9";
              auto first = w.wait_signal_of_any(3, 5);
              if (!first.ok() || *first != 1) return "not from rank 1";
              const Status late = w.wait_signal(1, 3, 10, 50);
              if (late.code() != Code::deadline_exceeded ||
                  late.message().find("signal 3 of rank 1 did not reach 10 within 50 ms") ==
                      std::string::npos) {
                return late.to_string();
              }
              const Status nobody = w.wait_signal_of_any(5, 1, 50).status();
              if (nobody.code() != Code::deadline_exceeded) return nobody.to_string();
              return w.signal(1, 0, 1).message();
            }));
}

// The writer's versions are told by every word; a reader may get any version, but whole.
TEST_P(Window, ABlockIsFetchedWholeWhileItIsRewritten) {
  for (const std::uint32_t copies : {1u, 2u}) {
    const ScopedPool pool(2);
    EXPECT_EQ("", run_ranks(3, [&](std::uint32_t rank) -> std::string {
                CommWindowConfig config;
                config.blocks = 2;
                config.block_bytes = 40000;
                config.block_copies = copies;
                auto opened = open(pool.spec(), rank, 3, config, GetParam());
                if (!opened.ok()) return opened.status().to_string();
                CommWindow& w = *opened->window;
                std::vector<std::uint64_t> words(5000);
                const std::uint64_t last = 300;
                if (rank == 0) {
                  for (std::uint64_t v = 1; v <= last; ++v) {
                    words.assign(1 + v * 16, v * 0x0101010101u);
                    auto version = w.publish_block(1, 42, words.data(), words.size() * 8);
                    if (!version.ok()) return version.status().to_string();
                    if (*version != v) return "versions do not count";
                  }
                  return barrier(*opened->member.comm).message();
                }
                std::uint64_t seen = 0;
                std::uint64_t fetched = 0;
                while (seen < last) {
                  auto info = w.fetch_block(0, 1, seen, words.data(), words.size() * 8);
                  if (!info.ok()) return info.status().to_string();
                  if (info->version < seen) return "went back";
                  if (info->bytes != (1 + info->version * 16) * 8 || info->key != 42) {
                    return "another version's header";
                  }
                  for (std::size_t i = 0; i < info->bytes / 8; ++i) {
                    if (words[i] == info->version * 0x0101010101u) continue;
                    return fmt::format("version {} is torn at word {}", info->version, i);
                  }
                  seen = info->version;
                  ++fetched;
                }
                if (fetched == 0) return "nothing was fetched";
                return barrier(*opened->member.comm).message();
              }));
  }
}

// How many versions a view survives is what block_copies says.
TEST_P(Window, AViewIsValidUntilItsPlaceIsOverwritten) {
  for (const std::uint32_t copies : {1u, 3u}) {
    const ScopedPool pool(1);
    EXPECT_EQ("", run_ranks(2, [&](std::uint32_t rank) -> std::string {
                CommWindowConfig config;
                config.blocks = 1;
                config.block_bytes = 8;
                config.block_copies = copies;
                auto opened = open(pool.spec(), rank, 2, config, GetParam());
                if (!opened.ok()) return opened.status().to_string();
                CommWindow& w = *opened->window;
                BlockView view;
                for (std::uint64_t v = 1; v <= copies + 1; ++v) {
                  if (rank == 0 && !w.publish_block(0, 9, &v, sizeof v).ok()) return "publish";
                  if (!barrier(*opened->member.comm).ok()) return "barrier";
                  if (rank == 1 && v == 1) {
                    auto got = w.view_block(0, 0, 1);
                    if (!got.ok() || got->info.version != 1) return "no version 1";
                    view = *got;
                    auto found = w.find_block(9);
                    if (!found.ok() || found->owner != 0 || found->bytes != 8) return "not found";
                  }
                  if (rank == 1 && w.still_valid(view) != (v <= copies)) {
                    return fmt::format("{} copies, version {}: {}", copies, v, v > copies);
                  }
                  if (!barrier(*opened->member.comm).ok()) return "barrier";
                }
                return "";
              }));
  }
}

TEST(WindowMaking, DisagreementIsNamedAndTheCommStaysUsable) {
  const ScopedPool pool(1);
  Ranks ranks(2, [&](std::uint32_t rank) -> std::string {
    auto member = join(pool.spec(), rank, 2);
    if (!member.ok()) return member.status().to_string();
    CommWindowConfig config;
    config.signals = 4 + rank;
    auto window = CommWindow::make(*member->pool, *member->comm, config);
    if (window.ok()) return "made";
    if (!barrier(*member->comm).ok()) return "the comm is broken";
    return window.status().to_string();
  });
  const auto ends = ranks.join();
  EXPECT_THAT(ends[0].message, HasSubstr("mismatch: window: signals is 4 at rank 0 and 5 at rank"));
  EXPECT_THAT(ends[1].message, HasSubstr("mismatch: window: signals is 5 at rank 1 and 4 at rank"));
  EXPECT_TRUE(regions_of(pool.spec()).empty());
}

TEST(WindowMaking, TheFailureOfOneRankIsEverybodys) {
  const ScopedPool pool(1);
  Ranks ranks(3, [&](std::uint32_t rank) -> std::string {
    auto member = join(pool.spec(), rank, 3);
    if (!member.ok()) return member.status().to_string();
    CommWindowConfig config;
    config.bytes = rank == 1 ? std::uint64_t{1} << 40 : 4096;
    auto window = CommWindow::make(*member->pool, *member->comm, config);
    if (window.ok()) return "made";
    config.bytes = 4096;
    config.blocks = rank == 2 ? 65537 : 0;
    auto second = CommWindow::make(*member->pool, *member->comm, config);
    if (second.ok()) return "made the second";
    return window.status().to_string() + "\n" + second.status().to_string();
  });
  for (const RankEnd& end : ranks.join()) {
    EXPECT_THAT(end.message, HasSubstr("no_space: rank 1: "));
    EXPECT_THAT(end.message, HasSubstr("invalid_argument: rank 2: window: blocks is 65537"));
  }
  EXPECT_TRUE(regions_of(pool.spec()).empty());
}

TEST(WindowEnd, ADeadPeerIsNamedToWhoWaitsAndItsMemoryComesBack) {
  const ScopedPool pool(1);
  const Tally met;
  Ranks ranks(3, [&](std::uint32_t rank) -> std::string {
    CommWindowConfig config;
    config.bytes = 4096;
    auto place = open(pool.spec(), rank, 3, config);
    if (!place.ok()) return place.status().to_string();
    met.add();
    if (rank == 2) ::pause();
    return place->window->wait_signal(2, 0, 1).to_string();
  });
  ASSERT_TRUE(met.await(3));
  ::usleep(100'000);
  const pid_t victim = ranks.pid(2);
  ::kill(victim, SIGKILL);
  const auto ends = ranks.join();
  for (const std::uint32_t rank : {0u, 1u}) {
    EXPECT_THAT(ends[rank].message, HasSubstr(fmt::format("rank 2 (pid {})", victim)));
  }
  auto mapped = Pool::map(Platform::host(), pool.spec());
  ASSERT_TRUE(mapped.ok());
  ASSERT_TRUE((*mapped)->reclaim().ok());
  EXPECT_TRUE((*mapped)->regions().empty());
}

// A rank that is stopped may still write when it wakes: until then its window is nobody else's.
TEST(WindowEnd, MemoryIsNotGivenAwayWhileAStoppedRankMayWriteToIt) {
  const ScopedPool pool(1);
  Ranks ranks(2, [&](std::uint32_t rank) -> std::string {
    CommWindowConfig config;
    config.bytes = 1 << 20;
    auto place = open(pool.spec(), rank, 2, config);
    if (!place.ok()) return place.status().to_string();
    if (rank == 0) {
      place->window.reset();
      return "";  // its process ends, too: what it made is held by rank 1 alone
    }
    ::raise(SIGSTOP);
    const std::vector<std::uint8_t> late(1 << 20, 0xee);
    (void)place->window->put(0, 0, late.data(), late.size());
    return "";
  });
  ::usleep(500'000);
  auto mapped = Pool::map(Platform::host(), pool.spec());
  ASSERT_TRUE(mapped.ok());
  ASSERT_TRUE((*mapped)->reclaim().ok());
  EXPECT_EQ(4u, [&] {
    std::size_t window_regions = 0;
    for (const RegionInfo& info : (*mapped)->regions()) window_regions += info.name.empty();
    return window_regions;
  }());
  // All that is left of the pool, full of another's data.
  std::vector<Region> others;
  RegionRequest request;
  for (request.bytes = 16u << 20; request.bytes >= 4096;) {
    auto region = (*mapped)->allocate(request);
    if (!region.ok()) {
      request.bytes /= 2;
      continue;
    }
    std::memset((*mapped)->resolve(region->address, region->bytes), 0x11, region->bytes);
    others.push_back(*region);
  }
  ASSERT_FALSE(others.empty());
  ::kill(ranks.pid(1), SIGCONT);
  for (const RankEnd& end : ranks.join()) EXPECT_EQ("", end.message);
  for (const Region& region : others) {
    const auto* bytes = (*mapped)->resolve(region.address, region.bytes);
    std::uint64_t wrong = 0;
    for (std::uint64_t i = 0; i < region.bytes; ++i) wrong += bytes[i] != std::byte{0x11};
    EXPECT_EQ(0u, wrong);
    EXPECT_TRUE((*mapped)->free(region).ok());
  }
  ASSERT_TRUE((*mapped)->reclaim().ok());
  EXPECT_TRUE((*mapped)->regions().empty());
}

TEST(WindowEnd, AForkedChildHasNoPartInIt) {
  const ScopedPool pool(1);
  EXPECT_EQ("", run_ranks(2, [&](std::uint32_t rank) -> std::string {
              CommWindowConfig config;
              config.bytes = 64;
              auto place = open(pool.spec(), rank, 2, config);
              if (!place.ok()) return place.status().to_string();
              if (rank == 0) {
                const pid_t child = ::fork();
                if (child == 0) {
                  const std::uint64_t value = 1;
                  const Status status = place->window->put(1, 0, &value, sizeof value);
                  place->window.reset();  // must not leave for the parent
                  ::_exit(status.code() == Code::invalid_argument ? 0 : 1);
                }
                int status = 0;
                ::waitpid(child, &status, 0);
                if (status != 0) return "the child used the window";
              }
              return ring(*place, 0) + barrier(*place->member.comm).message();
            }));
}

}  // namespace
}  // namespace penstock::test
