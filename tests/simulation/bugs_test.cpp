// Protocols with a mistake in them: the simulation has to see each, and must find nothing in the
// right one.
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <functional>
#include <memory>

#include "penstock/sim/incoherent/world.h"

namespace penstock::sim {
namespace {

constexpr int kSeeds = 300;
constexpr std::uint64_t kPayload = 640;  // ten lines
constexpr std::uint64_t kFlagAt = 8192;

// Two hosts on one file of memory that no pool manages.
struct Shared {
  explicit Shared(std::uint64_t seed) : random(seed) {
    WorldConfig config;
    config.seed = seed;
    config.hosts = 2;
    config.chaos = Chaos::of(random);
    config.max_steps = 200'000;
    world = std::make_unique<World>(config);
    world->spawn(0, [](Platform& platform) {
      auto file = platform.open("memory", OpenMode::create_new).value();
      ASSERT_TRUE(file->reserve(64 << 10).ok());
    });
    EXPECT_TRUE(world->run());
  }
  using Body = std::function<void(Platform&, std::byte* memory)>;
  void spawn(std::uint32_t host, Body body) {
    world->spawn(host, [body = std::move(body)](Platform& platform) {
      auto file = platform.open("memory", OpenMode::read_write).value();
      std::byte* memory = file->map(64 << 10).value();
      body(platform, memory);
      EXPECT_TRUE(platform.unmap(memory, 64 << 10).ok());
    });
  }
  Random random;
  std::unique_ptr<World> world;
};

std::uint64_t load(const std::byte* at) {
  std::uint64_t value;
  std::memcpy(&value, at, sizeof value);
  return value;
}
void store(std::byte* at, std::uint64_t value) { std::memcpy(at, &value, sizeof value); }

// A payload and then a flag; which of the steps are left out is the mistake.
struct Steps {
  bool write_back = true;
  bool store_fence = true;
  bool invalidate = true;
  bool full_fence = true;
  bool invalidate_before_flag = false;  // instead of after it
};

// How many seeds see another payload than the one that was published.
int wrong_payloads(const Steps& steps) {
  int wrong = 0;
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    Shared shared(seed);
    bool failed = false;
    // The reader has old contents in its cache.
    shared.spawn(1, [](Platform& platform, std::byte* memory) {
      platform.invalidate(memory, kPayload);
      platform.full_fence();
    });
    EXPECT_TRUE(shared.world->run());
    shared.spawn(0, [&](Platform& platform, std::byte* memory) {
      std::memset(memory, 7, kPayload);
      if (steps.write_back) platform.write_back(memory, kPayload);
      if (steps.store_fence) platform.store_fence();
      store(memory + kFlagAt, 1);
      platform.write_back(memory + kFlagAt, 8);
      // It lives on: what it asked for need not have taken effect yet.
      for (int turn = 0; turn < 50; ++turn) platform.pause();
    });
    shared.spawn(1, [&](Platform& platform, std::byte* memory) {
      if (steps.invalidate_before_flag) platform.invalidate(memory, kPayload);
      do {
        platform.invalidate(memory + kFlagAt, 8);
        platform.full_fence();
        platform.pause();
      } while (load(memory + kFlagAt) == 0);
      if (steps.invalidate && !steps.invalidate_before_flag) platform.invalidate(memory, kPayload);
      if (steps.full_fence) platform.full_fence();
      for (std::uint64_t at = 0; at < kPayload; ++at) failed |= memory[at] != std::byte{7};
    });
    EXPECT_TRUE(shared.world->run());
    wrong += failed ? 1 : 0;
  }
  return wrong;
}

TEST(IncoherentBugs, the_right_protocol_is_right) { EXPECT_EQ(wrong_payloads({}), 0); }

TEST(IncoherentBugs, a_missing_write_back_is_seen) {
  Steps steps;
  steps.write_back = false;
  EXPECT_GT(wrong_payloads(steps), kSeeds / 2);
}

TEST(IncoherentBugs, a_missing_fence_between_payload_and_flag_is_seen) {
  Steps steps;
  steps.store_fence = false;
  EXPECT_GT(wrong_payloads(steps), kSeeds / 20);
}

TEST(IncoherentBugs, a_missing_invalidation_is_seen) {
  Steps steps;
  steps.invalidate = false;
  EXPECT_GT(wrong_payloads(steps), kSeeds / 2);
}

TEST(IncoherentBugs, a_missing_fence_after_the_invalidation_is_seen) {
  Steps steps;
  steps.full_fence = false;
  EXPECT_GT(wrong_payloads(steps), kSeeds / 20);
}

TEST(IncoherentBugs, an_invalidation_before_the_flag_is_seen) {
  Steps steps;
  steps.invalidate_before_flag = true;
  EXPECT_GT(wrong_payloads(steps), kSeeds / 20);
}

// Each host counts in its half of the range: with a line each all is well; with one line for both,
// a write-back takes the other's counter with it.
int lost_counts(std::uint64_t distance) {
  int lost = 0;
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    Shared shared(seed);
    for (std::uint32_t host = 0; host < 2; ++host) {
      shared.spawn(host, [host, distance](Platform& platform, std::byte* memory) {
        std::byte* mine = memory + host * distance;
        for (std::uint64_t count = 1; count <= 5; ++count) {
          store(mine, count);
          platform.write_back(mine, 8);
          platform.store_fence();
        }
      });
    }
    EXPECT_TRUE(shared.world->run());
    bool failed = false;
    shared.spawn(1, [&](Platform& platform, std::byte* memory) {
      platform.invalidate(memory, 128);
      platform.full_fence();
      failed = load(memory) != 5 || load(memory + distance) != 5;
    });
    EXPECT_TRUE(shared.world->run());
    lost += failed ? 1 : 0;
  }
  return lost;
}

TEST(IncoherentBugs, two_hosts_that_write_one_line_are_seen) {
  EXPECT_EQ(lost_counts(64), 0);
  EXPECT_GT(lost_counts(32), kSeeds / 2);
}

// An atomic read-modify-write does not reach beyond a host's cache.
TEST(IncoherentBugs, a_lock_made_of_an_atomic_is_seen) {
  int both = 0;
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    Shared shared(seed);
    int inside = 0;
    bool failed = false;
    for (std::uint32_t host = 0; host < 2; ++host) {
      shared.spawn(host, [&](Platform& platform, std::byte* memory) {
        auto& lock = *reinterpret_cast<std::atomic<std::uint32_t>*>(memory);
        platform.invalidate(memory, 4);
        platform.full_fence();
        if (lock.exchange(1) != 0) return;
        platform.write_back(memory, 4);
        platform.store_fence();
        failed |= ++inside > 1;
        for (int turn = 0; turn < 20; ++turn) platform.pause();
        --inside;
        lock.store(0);
        platform.write_back(memory, 4);
        platform.store_fence();
      });
    }
    EXPECT_TRUE(shared.world->run());
    both += failed ? 1 : 0;
  }
  EXPECT_GT(both, kSeeds / 20);
}

}  // namespace
}  // namespace penstock::sim
