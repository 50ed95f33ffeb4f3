// The world of a process: who it is among the ranks that its launcher started, and the pool that
// they share.
//
// Which pool: PENSTOCK_POOL if it is set; that pool must exist. Otherwise a **temporary pool**:
//   - with a launcher, the one that default_pool_spec names; rank 0 makes it from
//     PENSTOCK_POOL_BYTES and PENSTOCK_POOL_DEVICES, the other ranks wait for it, and whoever
//     leaves last removes it;
//   - without a launcher, a private one for this process alone.
//
// A temporary pool carries a region (user, "world") that belongs to its maker: the mark. By it
// ranks tell the pool of this job from what a crashed job of the same name left (there the mark's
// owner is dead), and a sweep tells temporary pools from those that somebody made to keep.
#ifndef PENSTOCK_COMM_WORLD_H_
#define PENSTOCK_COMM_WORLD_H_

#include <cstdint>
#include <memory>
#include <string>

#include "penstock/comm/comm.h"
#include "penstock/comm/launch.h"
#include "penstock/memory/pool.h"

namespace penstock {

// A temporary pool that this process made, mapped and marked; removed with this object even when
// others still map it (their mappings stay valid). One thread at a time.
class TemporaryPool {
 public:
  // spec "" makes up a name that no other process has: /dev/shm/penstock-<uid>-<pid>-<namespace of
  // the pid>-<random>. Errors are those of Pool::create and Pool::map.
  static Result<TemporaryPool> make(Platform& platform, const std::string& spec,
                                    std::uint32_t devices, std::uint64_t bytes_per_device);
  TemporaryPool(TemporaryPool&&) noexcept = default;
  TemporaryPool& operator=(TemporaryPool&&) = delete;
  ~TemporaryPool();

  Pool& pool() const { return *pool_; }
  // Gives up the duty to remove it.
  std::unique_ptr<Pool> release() { return std::move(pool_); }

 private:
  explicit TemporaryPool(std::unique_ptr<Pool> pool) : pool_(std::move(pool)) {}
  std::unique_ptr<Pool> pool_;
};

// Removes temporary pools of this user whose makers are dead and which nobody maps. Returns how
// many. What it cannot read or remove it leaves alone.
std::uint32_t sweep_temporary_pools(Platform& platform);

// Specs of whatever in /dev/shm is named like this user's temporary pools, sorted. With `all`, of
// every file there, pool or not.
std::vector<std::string> list_pool_specs(bool all = false);
// Whether the pool carries a mark, and whether the mark's owner still lives.
enum class Mark { none, dead, alive };
Mark find_mark(Pool& pool);

// Movable handle; not thread-safe. The comm that joins through it is destroyed before it.
class World {
 public:
  // Errors: those of detect_launch; invalid_argument names a variable with a bad value; those of
  // Pool::map (PENSTOCK_POOL) or Pool::create; deadline_exceeded when rank 0 made no pool within
  // PENSTOCK_TIMEOUT_MS; busy when another job of the same name still uses the pool.
  static Result<World> open(Platform& platform);
  World(World&&) noexcept = default;
  World& operator=(World&&) = delete;
  ~World();  // unmaps; removes a temporary pool that no other process maps

  const Launch& launch() const { return launch_; }
  Pool& pool() const { return *pool_; }
  bool temporary() const { return temporary_; }

  // Rank and size of the launch; engine, timeout, bytes per pass and way of waiting of the
  // environment. The name is PENSTOCK_COMM or comes from the job, so that jobs that share a pool
  // do not meet.
  Result<CommConfig> comm_config() const;

 private:
  World(Launch launch, std::unique_ptr<Pool> pool, bool temporary)
      : launch_(std::move(launch)), pool_(std::move(pool)), temporary_(temporary) {}
  static Result<std::unique_ptr<Pool>> make_shared(Platform& platform, const std::string& spec,
                                                   std::uint64_t deadline_ns);
  static Result<std::unique_ptr<Pool>> wait_for_shared(Platform& platform, const std::string& spec,
                                                       std::uint64_t deadline_ns);

  Launch launch_;
  std::unique_ptr<Pool> pool_;
  bool temporary_;
};

}  // namespace penstock
#endif
