// Regions within one process: names, arenas, devices, limits.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <thread>

#include "penstock/memory/superblock.h"
#include "penstock/memory/temporary_pool_test.h"

namespace penstock {
namespace {

using ::testing::HasSubstr;
using PoolRegions = PoolTest;

TEST_F(PoolRegions, sizes_and_alignment) {
  create();
  auto pool = map();
  const auto one = pool->allocate(request(1)).value();
  const auto more = pool->allocate(request(4097)).value();
  EXPECT_EQ(one.bytes, 4096u);
  EXPECT_EQ(more.bytes, 8192u);
  EXPECT_EQ(one.address % 4096, 0u);
  EXPECT_EQ(more.address, one.address + 4096) << "first fit";
  EXPECT_EQ(pool->devices()[0].used, 12288u);
  EXPECT_TRUE(pool->check().empty());
}

TEST_F(PoolRegions, refuses_what_makes_no_sense) {
  create(2 * kMiB, 2);
  auto pool = map();
  EXPECT_EQ(pool->allocate(request(0)).status().code(), Code::invalid_argument);
  EXPECT_EQ(pool->allocate(request(UINT64_MAX)).status().code(), Code::invalid_argument);
  EXPECT_EQ(pool->allocate(request(1, "", 2)).status().code(), Code::invalid_argument);
  EXPECT_EQ(pool->allocate(request(1, "", -2)).status().code(), Code::invalid_argument);
  EXPECT_EQ(pool->allocate(request(1, std::string(48, 'n'))).status().code(),
            Code::invalid_argument);
  EXPECT_EQ(pool->allocate(request(1, std::string("a\0b", 3))).status().code(),
            Code::invalid_argument);
  RegionRequest kind = request(1);
  kind.kind = static_cast<RegionKind>(9);
  EXPECT_EQ(pool->allocate(kind).status().code(), Code::invalid_argument);
  EXPECT_TRUE(pool->allocate(request(1, std::string(47, 'n'))).ok());
  EXPECT_EQ(pool->find(RegionKind::user, "").status().code(), Code::invalid_argument);
}

TEST_F(PoolRegions, names_are_unique_per_kind) {
  create();
  auto pool = map();
  const auto first = pool->allocate(request(1, "weights")).value();
  const Status twice = pool->allocate(request(1, "weights")).status();
  EXPECT_EQ(twice.code(), Code::already_exists);
  EXPECT_THAT(twice.message(), HasSubstr("user region 'weights' exists already"));
  EXPECT_THAT(twice.message(), HasSubstr("process " + std::to_string(::getpid())));
  RegionRequest other_kind = request(1, "weights");
  other_kind.kind = RegionKind::table;
  EXPECT_TRUE(pool->allocate(other_kind).ok());
  EXPECT_EQ(pool->find(RegionKind::user, "weights").value().address, first.address);
  EXPECT_EQ(pool->find(RegionKind::queue, "weights").status().code(), Code::not_found);
  EXPECT_EQ(pool->find(RegionKind::user, "weight").status().code(), Code::not_found);
  EXPECT_TRUE(pool->free(first).ok());
  EXPECT_EQ(pool->find(RegionKind::user, "weights").status().code(), Code::not_found);
  EXPECT_TRUE(pool->allocate(request(1, "weights")).ok());
  EXPECT_TRUE(pool->allocate(request(1)).ok());
  EXPECT_TRUE(pool->allocate(request(1)).ok()) << "anonymous regions need no name";
}

TEST_F(PoolRegions, a_stale_generation_frees_nothing) {
  create();
  auto pool = map();
  const auto first = pool->allocate(request(1)).value();
  ASSERT_TRUE(pool->free(first).ok());
  const auto second = pool->allocate(request(1)).value();
  ASSERT_EQ(second.slot, first.slot);
  ASSERT_EQ(second.address, first.address);
  EXPECT_NE(second.generation, first.generation);
  EXPECT_EQ(pool->free(first).code(), Code::not_found);
  EXPECT_EQ(pool->hold(first).code(), Code::not_found);
  Region wild = second;
  wild.slot = 1u << 30;
  EXPECT_EQ(pool->free(wild).code(), Code::not_found);
  EXPECT_EQ(pool->devices()[0].used, 4096u);
  EXPECT_TRUE(pool->free(second).ok());
}

TEST_F(PoolRegions, devices_are_chosen_by_number_or_by_room) {
  create(2 * kMiB, 3);
  auto pool = map();
  for (std::int32_t device = 0; device < 3; ++device) {
    const auto region = pool->allocate(request(4096, "", device)).value();
    EXPECT_EQ(penstock_address_space(region.address), static_cast<std::uint32_t>(device));
  }
  // Device 0 also holds the tables, so it is the fullest.
  ASSERT_TRUE(pool->allocate(request(1 * kMiB, "", 1)).ok());
  EXPECT_EQ(penstock_address_space(pool->allocate(request(4096)).value().address), 2u);
  const auto devices = pool->devices();
  EXPECT_EQ(devices[1].used, 4096u + (1u << 20));
  // The emptiest device comes first, but one that has a piece for it is taken all the same.
  const std::uint64_t large = devices[1].free;
  const auto filler = pool->allocate(request(devices[2].free - 4 * 4096, "", 2)).value();
  EXPECT_EQ(penstock_address_space(filler.address), 2u);
  EXPECT_EQ(penstock_address_space(pool->allocate(request(large)).value().address), 0u);
  EXPECT_EQ(penstock_address_space(pool->allocate(request(large)).value().address), 1u);
}

TEST_F(PoolRegions, a_full_arena_names_need_and_room) {
  create();
  auto pool = map();
  const std::uint64_t all = pool->devices()[0].free;
  const Status much = pool->allocate(request(all + 1)).status();
  EXPECT_EQ(much.code(), Code::no_space);
  EXPECT_THAT(much.message(), HasSubstr("no room for " + std::to_string(all + 4096) + " bytes"));
  EXPECT_THAT(much.message(), HasSubstr("device 0 has " + std::to_string(all) + " bytes free"));
  const auto whole = pool->allocate(request(all)).value();
  EXPECT_EQ(pool->allocate(request(1)).status().code(), Code::no_space);
  // The last byte of the arena is usable.
  std::byte* memory = pool->resolve(whole.address, whole.bytes);
  ASSERT_NE(memory, nullptr);
  memory[whole.bytes - 1] = std::byte{1};
  EXPECT_TRUE(pool->free(whole).ok());
  EXPECT_TRUE(pool->allocate(request(all)).ok());
}

TEST_F(PoolRegions, a_full_table_says_so) {
  create(2 * kMiB);
  auto pool = map();
  std::vector<Region> made;
  while (true) {
    auto region = pool->allocate(request(1));
    if (!region.ok()) {
      EXPECT_EQ(region.status().code(), Code::no_space);
      EXPECT_THAT(region.status().message(), HasSubstr("slots"));
      break;
    }
    made.push_back(*region);
  }
  EXPECT_EQ(made.size(), 2 * kMiB / (16 << 10));
  EXPECT_GT(pool->devices()[0].free, kMiB) << "the table was full, not the arena";
  EXPECT_TRUE(pool->free(made[40]).ok());
  EXPECT_EQ(pool->allocate(request(1)).value().slot, made[40].slot);
}

TEST_F(PoolRegions, arenas_of_hosts_do_not_overlap) {
  create(4 * kMiB, 2, 2);
  auto first = map(0);
  auto second = map(1);
  const std::uint64_t rooms[] = {first->devices()[1].free, second->devices()[1].free};
  const auto a = first->allocate(request(rooms[0], "a", 1)).value();
  const auto b = second->allocate(request(rooms[1], "b", 1)).value();
  EXPECT_LE(rooms[0] + rooms[1], 4 * kMiB - 4096);
  EXPECT_GE(rooms[0] + rooms[1], 4 * kMiB - 4 * 4096);
  EXPECT_TRUE(a.address + a.bytes <= b.address || b.address + b.bytes <= a.address);
  EXPECT_EQ(first->allocate(request(1, "", 1)).status().code(), Code::no_space);
  EXPECT_EQ(first->devices()[1].used, rooms[0] + rooms[1]);

  // A region is found by every host, its name is taken for all, and its own host frees it.
  EXPECT_EQ(second->find(RegionKind::user, "a").value().address, a.address);
  EXPECT_EQ(second->allocate(request(1, "a")).status().code(), Code::already_exists);
  const Status foreign = second->free(a);
  EXPECT_EQ(foreign.code(), Code::unsupported);
  EXPECT_THAT(foreign.message(), HasSubstr("arena of host 0"));
  EXPECT_TRUE(first->free(a).ok());
  EXPECT_EQ(second->regions().size(), 1u);
  EXPECT_TRUE(first->check().empty());
}

TEST_F(PoolRegions, two_mappings_of_one_process_are_two_leases) {
  create();
  auto first = map();
  auto second = map();
  EXPECT_NE(first->lease().lock_slot, second->lease().lock_slot);
  EXPECT_EQ(second->liveness(first->lease()), Liveness::alive);
  EXPECT_EQ(first->liveness(first->lease()), Liveness::alive);
  const Lease gone = first->lease();
  const auto left = first->allocate(request(1, "left")).value();
  EXPECT_EQ(second->regions()[0].owner, Liveness::alive);
  first.reset();
  EXPECT_EQ(second->liveness(gone), Liveness::dead);
  EXPECT_EQ(second->regions()[0].owner, Liveness::dead);
  EXPECT_THAT(second->check(), ::testing::ElementsAre(HasSubstr("'left' in slot 0 was left by")));
  EXPECT_EQ(second->reclaim().value(), 1u);
  EXPECT_EQ(second->free(left).code(), Code::not_found);
  first = map();
  Lease wild = first->lease();
  wild.process.pid_namespace += 1;
  EXPECT_EQ(second->liveness(wild), Liveness::dead) << "its slot has another holder";
  wild = second->lease();
  wild.lock_slot = 1u << 20;
  EXPECT_EQ(second->liveness(wild), Liveness::dead);
  wild = second->lease();
  wild.host = 99;
  EXPECT_EQ(second->liveness(wild), Liveness::dead);
}

TEST_F(PoolRegions, leases_of_other_boots) {
  create(4 * kMiB, 1, 2);
  auto pool = map(0);
  Lease earlier = pool->lease();
  earlier.process.boot_id[5] ^= 1;
  EXPECT_EQ(pool->liveness(earlier), Liveness::dead) << "this host has booted since";
  earlier.host = 1;
  EXPECT_EQ(pool->liveness(earlier), Liveness::unknown) << "another host may be up";
}

TEST_F(PoolRegions, a_held_region_outlives_its_owner) {
  create();
  auto owner = map();
  auto member = map();
  auto third = map();
  const auto region = owner->allocate(request(1, "shared")).value();
  EXPECT_EQ(member->drop(region).code(), Code::not_found);
  ASSERT_EQ(member->hold(region).to_string(), "ok");
  ASSERT_EQ(member->hold(region).to_string(), "ok");
  owner.reset();
  EXPECT_EQ(third->reclaim().value(), 0u);
  EXPECT_EQ(member->reclaim().value(), 0u);
  EXPECT_EQ(third->regions()[0].owner, Liveness::alive);
  EXPECT_TRUE(third->find(RegionKind::user, "shared").ok());
  ASSERT_EQ(third->hold(region).to_string(), "ok");
  ASSERT_EQ(member->drop(region).to_string(), "ok") << "holding twice needs dropping once";
  EXPECT_EQ(member->reclaim().value(), 0u);
  third.reset();
  EXPECT_EQ(member->find(RegionKind::user, "shared").status().code(), Code::not_found);
  EXPECT_EQ(member->reclaim().value(), 1u);
}

TEST_F(PoolRegions, a_hold_ends_with_free_and_does_not_pass_to_the_next_region) {
  create();
  auto first = map();
  auto second = map();
  const auto region = first->allocate(request(1)).value();
  ASSERT_TRUE(first->hold(region).ok());
  ASSERT_TRUE(second->hold(region).ok());
  ASSERT_TRUE(first->free(region).ok());
  const auto next = first->allocate(request(1)).value();
  EXPECT_NE(next.slot, region.slot) << "second still holds the old slot";
  EXPECT_TRUE(second->drop(region).ok());
  EXPECT_EQ(first->allocate(request(1)).value().slot, region.slot);
}

TEST_F(PoolRegions, space_and_names_of_the_dead_are_taken_back_when_needed) {
  create();
  auto dead = map();
  auto pool = map();
  const std::uint64_t all = pool->devices()[0].free;
  ASSERT_TRUE(dead->allocate(request(all / 2, "name")).ok());
  RegionRequest kept = request(4096, "kept", -1, true);
  ASSERT_TRUE(dead->allocate(kept).ok());
  EXPECT_EQ(pool->allocate(request(all - 8192)).status().code(), Code::no_space);
  dead.reset();
  EXPECT_TRUE(pool->allocate(request(1, "name")).ok());
  EXPECT_EQ(pool->devices()[0].used, 8192u);
  EXPECT_EQ(pool->allocate(request(1, "kept")).status().code(), Code::already_exists);
  EXPECT_TRUE(pool->free(pool->find(RegionKind::user, "kept").value()).ok());
}

TEST_F(PoolRegions, torn_entries_are_found_and_cleared) {
  create();
  auto pool = map();
  const auto region = pool->allocate(request(1)).value();
  auto file = platform_.open(spec_, OpenMode::read_write).value();
  const std::uint64_t entry = 4096 + 256 * 64 + region.slot * 128;
  ASSERT_TRUE(file->write_at(entry + 24, "x", 1).ok());  // into the generation
  EXPECT_THAT(pool->check(),
              ::testing::ElementsAre(HasSubstr("slot 0 of the region table counts")));
  EXPECT_TRUE(pool->regions().empty());
  EXPECT_EQ(pool->reclaim().value(), 0u);
  EXPECT_TRUE(pool->check().empty());
}

TEST_F(PoolRegions, check_finds_a_damaged_superblock) {
  create();
  auto pool = map();
  auto file = platform_.open(spec_, OpenMode::read_write).value();
  ASSERT_TRUE(file->write_at(50, "x", 1).ok());
  EXPECT_THAT(pool->check(), ::testing::ElementsAre(HasSubstr("checksum")));
  ASSERT_TRUE(file->write_at(50, "\0", 1).ok());
  EXPECT_TRUE(pool->check().empty());
}

TEST_F(PoolRegions, locks_exclude_threads_and_mappings) {
  create();
  auto first = map();
  auto second = map();
  EXPECT_EQ(first->lock(16, 0).status().code(), Code::invalid_argument);
  auto held = first->lock(1, 0);
  ASSERT_TRUE(held.ok());
  const Status thread = first->lock(1, 10).status();
  EXPECT_EQ(thread.code(), Code::deadline_exceeded);
  EXPECT_THAT(thread.message(), HasSubstr("lock 1 was held by another thread of this process"));
  const Status process = second->lock(1, 10).status();
  EXPECT_EQ(process.code(), Code::deadline_exceeded);
  EXPECT_THAT(process.message(), HasSubstr("held by another process for 10 ms"));
  EXPECT_TRUE(second->lock(2, 0).ok());
  *held = nullptr;
  EXPECT_TRUE(second->lock(1, 0).ok());
  EXPECT_TRUE(first->lock(1, 1000).ok());
}

TEST_F(PoolRegions, threads_allocate_and_free_at_once) {
  create();
  auto pool = map();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 200; ++i) {
        auto region = pool->allocate(request(8192, fmt::format("{}-{}", t, i)));
        ASSERT_EQ(region.status().to_string(), "ok");
        std::byte* memory = pool->resolve(region->address, region->bytes);
        std::memset(memory, t, region->bytes);
        EXPECT_TRUE(pool->find(RegionKind::user, fmt::format("{}-{}", t, i)).ok());
        for (std::uint64_t at = 0; at < region->bytes; ++at) {
          ASSERT_EQ(memory[at], static_cast<std::byte>(t));
        }
        EXPECT_TRUE(pool->free(*region).ok());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(pool->devices()[0].used, 0u);
}

}  // namespace
}  // namespace penstock
