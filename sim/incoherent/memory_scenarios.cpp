// Fences, regions and names of a pool, below any comm.
#include <cstring>

#include "penstock/memory/fence.h"
#include "penstock/sim/incoherent/scenario.h"

namespace penstock::sim {
namespace {

constexpr std::uint64_t kSecondNs = 1'000'000'000;

// Two hosts send a payload back and forth, each behind a fence of its own.
Outcome fence(const Options& options) {
  Run run("fence", options);
  run.limit_ranks(2, 2);
  const std::uint32_t rounds = 2 + run.random().below(6);
  const std::uint64_t words = 1 + run.random().below(200);
  Region region;
  World& world = run.make_world();
  world.spawn(0, [&](Platform& platform) {
    auto pool = run.map(platform, 0);
    if (!pool.ok()) return run.fail(pool.status().to_string());
    RegionRequest request;
    request.bytes = 128 + words * 8;
    request.persistent = true;
    auto made = pool.value()->allocate(request);
    if (!made.ok()) return run.fail(made.status().to_string());
    region = made.value();
    std::byte* base = pool.value()->resolve(region.address, region.bytes);
    std::memset(base, 0, 128);
    pool.value()->publish(base, 128);
    platform.store_fence();
  });
  run.run();
  for (std::uint32_t rank = 0; rank < 2 && !run.failed(); ++rank) {
    run.spawn_rank(rank, [&, rank](Pool& pool) -> Status {
      std::byte* base = pool.resolve(region.address, region.bytes);
      auto* payload = reinterpret_cast<std::uint64_t*>(base + 128);
      Fence mine(pool, base + 64 * rank);
      const Fence theirs(pool, base + 64 * (1 - rank));
      for (std::uint32_t round = 1; round <= rounds; ++round) {
        if (rank == 1) {
          PENSTOCK_TRY(theirs.wait(round, pool.platform().now_ns() + kSecondNs, true));
        } else if (round > 1) {
          PENSTOCK_TRY(theirs.wait(round - 1, pool.platform().now_ns() + kSecondNs, true));
        }
        const std::uint64_t turn = round * 2 - (rank == 0 ? 1 : 0);
        if (turn > 1) {
          pool.observe(payload, words * 8);
          for (std::uint64_t i = 0; i < words; ++i) {
            if (payload[i] == run.value(turn - 1, 0, i)) continue;
            return error(Code::internal, "word {} of {} in turn {} is not what was published", i,
                         words, turn);
          }
        }
        for (std::uint64_t i = 0; i < words; ++i) payload[i] = run.value(turn, 0, i);
        pool.publish(payload, words * 8);
        mine.signal(round);
      }
      return Status();
    });
  }
  run.run();
  run.check_and_destroy(false);
  return run.finish();
}

// Each process fills what it allocates and finds it whole before it frees it, so that two regions
// never overlap and no host undoes another's entry in the table.
Outcome regions_of(Run& run) {
  run.make_world();
  for (std::uint32_t rank = 0; rank < run.ranks() && !run.failed(); ++rank) {
    run.spawn_rank(rank, [&run, rank](Pool& pool) -> Status {
      struct Mine {
        Region region;
        std::uint64_t stamp;
      };
      Random own(run.value(1, rank, 0));
      std::vector<Mine> mine;
      for (int turn = 0; turn < 12; ++turn) {
        if (mine.empty() || own.chance(2)) {
          RegionRequest request;
          request.bytes = 1 + own.below(12000);
          if (own.chance(3)) request.name = fmt::format("{}/{}", rank, turn);
          PENSTOCK_ASSIGN(const Region region, pool.allocate(request));
          std::byte* base = pool.resolve(region.address, region.bytes);
          mine.push_back({region, run.value(2, rank, static_cast<std::uint64_t>(turn))});
          for (std::uint64_t at = 0; at < region.bytes; at += 512) {
            std::memcpy(base + at, &mine.back().stamp, 8);
            pool.publish(base + at, 8);
          }
          pool.platform().store_fence();
          if (!request.name.empty()) {
            PENSTOCK_ASSIGN(const Region found, pool.find(RegionKind::user, request.name));
            if (found.address != region.address) {
              return error(Code::internal, "region {} is found elsewhere", request.name);
            }
          }
          continue;
        }
        const std::uint32_t which = own.below(static_cast<std::uint32_t>(mine.size()));
        const std::byte* base = pool.resolve(mine[which].region.address, mine[which].region.bytes);
        for (std::uint64_t at = 0; at < mine[which].region.bytes; at += 512) {
          pool.observe(base + at, 8);
          if (std::memcmp(base + at, &mine[which].stamp, 8) == 0) continue;
          return error(Code::internal, "byte {} of a region of rank {} was overwritten", at, rank);
        }
        PENSTOCK_TRY(pool.free(mine[which].region));
        mine.erase(mine.begin() + which);
      }
      for (const Mine& each : mine) PENSTOCK_TRY(pool.free(each.region));
      return Status();
    });
  }
  run.run();
  run.check_and_destroy();
  return run.finish();
}

Outcome regions(const Options& options) {
  Run run("regions", options);
  run.set_machines(Machines::one);
  return regions_of(run);
}

Outcome regions_of_machines(const Options& options) {
  Run run("regions_of_machines", options);
  run.set_machines(Machines::each);
  return regions_of(run);
}

// Machines that share no lock claim the same name: one gets it, and everybody finds that one.
Outcome names(const Options& options) {
  Run run("names", options);
  run.limit_ranks(2, 4);
  run.set_machines(Machines::each);
  run.make_world();
  std::vector<std::uint64_t> won;
  std::vector<std::uint64_t> found(run.ranks());
  std::uint32_t done = 0;
  for (std::uint32_t rank = 0; rank < run.ranks() && !run.failed(); ++rank) {
    run.spawn_rank(rank, [&, rank](Pool& pool) -> Status {
      Random own(run.value(1, rank, 0));
      for (std::uint32_t wait = own.below(3) * own.below(200); wait > 0; --wait) {
        pool.platform().yield();
      }
      RegionRequest request;
      request.name = "name";
      request.bytes = 4096;
      auto region = pool.allocate(request);
      if (region.ok()) {
        won.push_back(region.value().generation);
      } else if (region.status().code() != Code::already_exists) {
        return region.status();
      }
      ++done;
      while (done < run.ranks() && !run.failed()) pool.platform().yield();
      PENSTOCK_ASSIGN(const Region seen, pool.find(RegionKind::user, "name"));
      found[rank] = seen.generation;
      ++done;
      while (done < 2 * run.ranks() && !run.failed()) pool.platform().yield();
      return region.ok() ? pool.free(region.value()) : Status();
    });
  }
  run.run();
  if (!run.failed() && won.size() != 1) {
    run.fail(fmt::format("{} hosts made the region of one name", won.size()));
  }
  for (std::uint32_t rank = 0; rank < run.ranks() && !run.failed(); ++rank) {
    if (found[rank] != won[0]) run.fail(fmt::format("rank {} found another region", rank));
  }
  run.check_and_destroy();
  return run.finish();
}

}  // namespace

std::vector<Scenario> memory_scenarios() {
  return {
      {"fence", "a payload goes back and forth behind fences", fence},
      {"regions", "processes of one machine allocate and free", regions},
      {"regions_of_machines", "machines allocate and free, each in its arena", regions_of_machines},
      {"names", "machines claim the same name at once", names},
  };
}

}  // namespace penstock::sim
