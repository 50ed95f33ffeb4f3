// The simulated world itself: turns, time, caches, death, and that a seed decides everything.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <set>

#include "penstock/sim/incoherent/scenario.h"

namespace penstock::sim {
namespace {

constexpr std::uint64_t kBytes = 16384;

WorldConfig config(std::uint32_t hosts, std::uint64_t seed = 1) {
  WorldConfig config;
  config.seed = seed;
  config.hosts = hosts;
  config.chaos.evict_in = 0;
  return config;
}

// A file that every process maps.
void make_memory(World& world) {
  world.spawn(0, [](Platform& platform) {
    auto file = platform.open("memory", OpenMode::create_new).value();
    ASSERT_TRUE(file->reserve(kBytes).ok());
  });
  ASSERT_TRUE(world.run());
}
std::byte* map(Platform& platform) {
  return platform.open("memory", OpenMode::read_write).value()->map(kBytes).value();
}

TEST(World, equal_seeds_go_the_same_way_and_others_do_not) {
  std::set<std::uint64_t> hashes;
  for (const Scenario& scenario : scenarios()) {
    Options options;
    options.seed = 5;
    const Outcome once = scenario.run(options);
    const Outcome again = scenario.run(options);
    EXPECT_EQ(once.trace_hash, again.trace_hash) << scenario.name;
    EXPECT_EQ(once.steps, again.steps) << scenario.name;
    EXPECT_GT(once.steps, 100u) << scenario.name;
    options.seed = 6;
    EXPECT_NE(scenario.run(options).trace_hash, once.trace_hash) << scenario.name;
    hashes.insert(once.trace_hash);
  }
  // Scenarios that differ only in what follows a death may die before they differ.
  EXPECT_GE(hashes.size() + 3, scenarios().size());
}

TEST(World, a_trace_has_a_line_for_every_event_and_does_not_change_the_way) {
  const Scenario scenario = scenarios().front();
  Options options;
  options.seed = 9;
  const Outcome silent = scenario.run(options);
  std::uint64_t lines = 0;
  options.trace = [&lines](const std::string& line) {
    ++lines;
    EXPECT_FALSE(line.empty());
  };
  const Outcome traced = scenario.run(options);
  EXPECT_GE(lines, traced.steps);
  EXPECT_EQ(silent.trace_hash, traced.trace_hash);
}

TEST(World, a_store_is_seen_by_another_host_only_once_written_back_and_invalidated) {
  World world(config(2));
  make_memory(world);
  std::byte* writer = nullptr;
  std::byte* reader = nullptr;
  world.spawn(0, [&](Platform& platform) {
    writer = map(platform);
    writer[100] = std::byte{1};
  });
  world.spawn(1, [&](Platform& platform) { reader = map(platform); });
  ASSERT_TRUE(world.run());
  world.spawn(1, [&](Platform& platform) {
    platform.invalidate(reader + 100, 1);
    platform.full_fence();
  });
  ASSERT_TRUE(world.run());
  EXPECT_EQ(reader[100], std::byte{0}) << "not written back yet";
  world.spawn(0, [&](Platform& platform) {
    platform.write_back(writer + 100, 1);
    platform.store_fence();
  });
  ASSERT_TRUE(world.run());
  EXPECT_EQ(reader[100], std::byte{0}) << "not invalidated yet";
  world.spawn(1, [&](Platform& platform) {
    platform.invalidate(reader + 100, 1);
    platform.full_fence();
  });
  ASSERT_TRUE(world.run());
  EXPECT_EQ(reader[100], std::byte{1});
}

TEST(World, processes_of_one_host_share_its_cache) {
  World world(config(1));
  make_memory(world);
  std::byte* first = nullptr;
  std::byte* second = nullptr;
  world.spawn(0, [&](Platform& platform) {
    first = map(platform);
    first[5] = std::byte{3};
  });
  world.spawn(0, [&](Platform& platform) { second = map(platform); });
  ASSERT_TRUE(world.run());
  EXPECT_EQ(second[5], std::byte{3});
}

TEST(World, an_invalidated_dirty_line_is_written_back_first) {
  World world(config(2));
  make_memory(world);
  std::byte seen{0};
  world.spawn(0, [](Platform& platform) {
    std::byte* memory = map(platform);
    memory[0] = std::byte{9};
    platform.invalidate(memory, 1);
    platform.full_fence();
    EXPECT_EQ(memory[0], std::byte{9});
  });
  ASSERT_TRUE(world.run());
  world.spawn(1, [&](Platform& platform) {
    std::byte* memory = map(platform);
    platform.invalidate(memory, 1);
    platform.full_fence();
    seen = memory[0];
  });
  ASSERT_TRUE(world.run());
  EXPECT_EQ(seen, std::byte{9});
}

// Also what nobody asked for happens: a dirty line is evicted.
TEST(World, eviction_publishes_what_was_never_written_back) {
  int seen = 0;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    WorldConfig often = config(2, seed);
    often.chaos.evict_in = 2;
    World world(often);
    make_memory(world);
    world.spawn(0, [](Platform& platform) {
      std::byte* memory = map(platform);
      platform.invalidate(memory, 1);
      memory[0] = std::byte{4};
      for (int turn = 0; turn < 200; ++turn) platform.pause();
    });
    ASSERT_TRUE(world.run());
    world.spawn(1, [&](Platform& platform) {
      std::byte* memory = map(platform);
      platform.invalidate(memory, 1);
      platform.full_fence();
      seen += memory[0] == std::byte{4} ? 1 : 0;
    });
    ASSERT_TRUE(world.run());
  }
  EXPECT_GT(seen, 5);
}

TEST(World, sleepers_wake_in_order_and_time_leaps_over_idleness) {
  World world(config(1));
  std::vector<int> order;
  for (const int which : {3, 1, 2}) {
    world.spawn(0, [&, which](Platform& platform) {
      const std::uint64_t before = platform.now_ns();
      platform.sleep_ns(static_cast<std::uint64_t>(which) * 1'000'000'000);
      EXPECT_GE(platform.now_ns() - before, static_cast<std::uint64_t>(which) * 1'000'000'000);
      order.push_back(which);
    });
  }
  ASSERT_TRUE(world.run());
  EXPECT_THAT(order, testing::ElementsAre(1, 2, 3));
  EXPECT_LT(world.steps(), 100u);
}

TEST(World, a_process_that_never_ends_is_given_up) {
  WorldConfig short_of_time = config(1);
  short_of_time.max_steps = 1000;
  World world(short_of_time);
  bool stop = false;
  world.spawn(0, [&](Platform& platform) {
    while (!stop && platform.now_ns() < 10'000'000'000) platform.pause();
  });
  EXPECT_FALSE(world.run());
}

TEST(World, the_killed_lose_their_locks_and_are_known_to_be_dead) {
  WorldConfig deadly = config(2);
  deadly.one_machine = true;
  deadly.halt = {HaltKind::kill, 1, 30, 0};
  World world(deadly);
  make_memory(world);
  ProcessIdentity victim;
  world.spawn(0, [&](Platform& platform) {
    victim = platform.self();
    auto file = platform.open("memory", OpenMode::read_write).value();
    ASSERT_TRUE(file->try_lock(7, 1).ok());
    while (platform.now_ns() < 10'000'000'000) platform.pause();
    (void)file->try_lock(7, 1);  // a ghost's lock holds nothing
  });
  ASSERT_TRUE(world.run());
  EXPECT_TRUE(world.is_dead(1));
  EXPECT_TRUE(world.has_halted());
  world.spawn(1, [&](Platform& platform) {
    EXPECT_EQ(platform.liveness(victim), Liveness::dead);
    EXPECT_EQ(platform.liveness(platform.self()), Liveness::alive);
    auto file = platform.open("memory", OpenMode::read_write).value();
    EXPECT_FALSE(file->is_locked(7, 1).value());
    EXPECT_TRUE(file->try_lock(7, 1).ok());
  });
  ASSERT_TRUE(world.run());
}

TEST(World, another_machine_knows_nothing_of_a_process) {
  World world(config(2));
  ProcessIdentity first;
  world.spawn(0, [&](Platform& platform) { first = platform.self(); });
  ASSERT_TRUE(world.run());
  world.spawn(1, [&](Platform& platform) {
    EXPECT_NE(platform.self().boot_id, first.boot_id);
    EXPECT_EQ(platform.liveness(first), Liveness::unknown);
  });
  ASSERT_TRUE(world.run());
}

// Of ten dirty lines some are lost and some not, and the machine comes back with an empty cache.
TEST(World, power_loss_keeps_some_dirty_lines_and_loses_others) {
  std::map<int, int> kept_times;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    WorldConfig deadly = config(2, seed);
    deadly.halt = {HaltKind::power_loss, 1, 40, 0};
    World world(deadly);
    make_memory(world);
    world.spawn(0, [](Platform& platform) {
      std::byte* memory = map(platform);
      for (int line = 0; line < 10; ++line) memory[line * 64] = std::byte{1};
      while (platform.now_ns() < 10'000'000'000) platform.pause();
    });
    ASSERT_TRUE(world.run());
    ASSERT_TRUE(world.has_halted());
    world.boot(0);
    int kept = 0;
    world.spawn(1, [&](Platform& platform) {
      std::byte* memory = map(platform);
      platform.invalidate(memory, 640);
      platform.full_fence();
      for (int line = 0; line < 10; ++line) kept += memory[line * 64] == std::byte{1} ? 1 : 0;
    });
    int seen_again = 0;
    world.spawn(0, [&](Platform& platform) {
      const std::byte* memory = map(platform);
      for (int line = 0; line < 10; ++line) seen_again += memory[line * 64] == std::byte{1} ? 1 : 0;
    });
    ASSERT_TRUE(world.run());
    EXPECT_EQ(kept, seen_again);
    ++kept_times[kept];
  }
  EXPECT_GT(kept_times.size(), 3u);
}

TEST(World, a_stopped_process_goes_on_later) {
  WorldConfig stopping = config(1);
  stopping.halt = {HaltKind::stop, 0, 10, 5'000'000'000};
  World world(stopping);
  std::uint64_t longest = 0;
  world.spawn(0, [&](Platform& platform) {
    std::uint64_t last = platform.now_ns();
    for (int turn = 0; turn < 50; ++turn) {
      platform.pause();
      const std::uint64_t now = platform.now_ns();
      longest = std::max(longest, now - last);
      last = now;
    }
  });
  ASSERT_TRUE(world.run());
  EXPECT_GE(longest, 5'000'000'000u);
}

TEST(SiteWatch, a_dropped_site_does_nothing_and_is_told_by_its_address) {
  SiteWatch all({}, true);
  WorldConfig watched = config(1);
  watched.sites = &all;
  {
    World world(watched);
    make_memory(world);
    world.spawn(0, [](Platform& platform) {
      std::byte* memory = map(platform);
      for (int turn = 0; turn < 3; ++turn) platform.write_back(memory, 1);
      platform.store_fence();
    });
    ASSERT_TRUE(world.run());
  }
  ASSERT_EQ(all.sites().size(), 2u);
  const SiteWatch::Site site = all.sites().begin()->first;
  EXPECT_EQ(site.primitive, Primitive::write_back);
  EXPECT_EQ(all.sites().begin()->second, 3u);
  const std::string text = fmt::format("write_back@{:x}", site.callers[0]);
  EXPECT_EQ(parse_drops(text).value()[0].address, site.callers[0]);
}

TEST(SiteWatch, drops_are_parsed_and_nonsense_is_refused) {
  const auto drops = parse_drops("any@1f,full_fence@0a");
  ASSERT_EQ(drops.status().to_string(), "ok");
  ASSERT_EQ(drops.value().size(), 2u);
  EXPECT_EQ(drops.value()[0].primitives, 0xf);
  EXPECT_EQ(drops.value()[0].address, 0x1fu);
  EXPECT_EQ(drops.value()[1].primitives, 8);
  for (const char* text : {"", "write_back", "write_back@", "write_back@xyz", "flush@12", "@12"}) {
    EXPECT_EQ(parse_drops(text).status().code(), Code::invalid_argument) << text;
  }
}

}  // namespace
}  // namespace penstock::sim
