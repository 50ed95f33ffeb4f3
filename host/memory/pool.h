// A pool: shared memory made of 1..16 memory devices, divided into regions.
//
// Each device is a file, a file in /dev/shm, or a device DAX node. Every device starts with a
// superblock (format in superblock.h); device 0 also holds the region table. A pool is named by its
// spec: the paths of its devices joined by ','. A spec that is one path without ',' names the
// device files PATH (one device) or PATH.0 .. PATH.n-1, whatever the superblock says.
//
// Sharing between processes of one host is arbitrated by open-file-description locks on device 0
// (past the end of the data, see superblock.h). Space is divided into one arena per configured
// host, so that a host allocates and frees in its own arena without asking another host; several
// hosts are configured when the pool is made.
//
// What a dead process left behind is recognised by its lease: every process that maps a pool
// writable holds a lock on a byte of its own, which the system drops when the process ends,
// whatever the reason. A lease is dead when its boot id is not this boot, when its lock is free, or
// when its pid is gone or belongs to a process with another start time.
#ifndef PENSTOCK_MEMORY_POOL_H_
#define PENSTOCK_MEMORY_POOL_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "penstock/base/platform.h"
#include "penstock/base/status.h"
#include "penstock/descriptor/address.h"
#include "penstock/memory/agreement_space.h"

namespace penstock {

// What the mapping needs so that another host sees a store.
enum class Coherence { hardware, software };
Result<Coherence> parse_coherence(const std::string& text);
const char* coherence_name(Coherence coherence);

struct PoolConfig {
  std::string spec;
  std::uint32_t devices = 1;           // 1..16; used when spec is a single path
  std::uint64_t bytes_per_device = 0;  // at least kMinDeviceBytes; rounded up to 2 MiB
  std::uint32_t hosts = 1;             // 1..16 arenas
  unsigned permissions = 0600;
};
inline constexpr std::uint64_t kMinDeviceBytes = std::uint64_t{2} << 20;

struct MapOptions {
  Coherence coherence = Coherence::hardware;
  std::uint32_t host_id = 0;  // whose arena this process allocates in
  // How long a call waits for another process: for one that makes the pool, or that holds the lock
  // of the region table.
  std::uint32_t lock_timeout_ms = 30000;
};

enum class RegionKind : std::uint32_t { user = 1, comm = 2, table = 3, queue = 4 };
const char* region_kind_name(RegionKind kind);

struct RegionRequest {
  std::string name;  // 0..47 bytes; "" is anonymous; a name is unique per kind among live regions
  RegionKind kind = RegionKind::user;
  std::uint64_t bytes = 0;   // at least 1; rounded up to 4 KiB
  std::int32_t device = -1;  // -1: the device with most free space
  bool persistent = false;   // stays when its maker ends (a node table); freed by name only
};

struct Region {
  penstock_address address = 0;  // pool offset, 4 KiB aligned
  std::uint64_t bytes = 0;
  std::uint32_t slot = 0;        // in the region table
  std::uint64_t generation = 0;  // tells this allocation from a later one in the same slot
};

struct Lease {
  std::uint32_t host = 0;
  std::uint32_t lock_slot = 0;
  ProcessIdentity process;
};

struct RegionInfo {
  Region region;
  RegionKind kind;
  std::string name;
  bool persistent;
  Lease lease;
  Liveness owner;
};

struct DeviceInfo {
  std::string path;
  std::uint64_t bytes;
  std::uint64_t used;  // by regions of all arenas
  std::uint64_t free;  // in this host's arena
};

// What resolve() reaches of a device.
struct DeviceData {
  penstock_address address = 0;  // 4 KiB aligned, as is the memory there
  std::uint64_t bytes = 0;
};

// Thread-safe. Not usable in a forked child (every call there returns an error that says so).
class Pool {
 public:
  // Makes the pool with every page reserved. already_exists if a device file exists and is not
  // empty; on any error nothing is left behind. What a maker that died left half-made is taken
  // over. A device DAX node gives all its bytes, and is refused only while it holds a pool.
  static Status create(Platform& platform, const PoolConfig& config);
  // not_found, permission_denied, corrupt (with what is wrong and where), unsupported (version),
  // no_space (a 257th mapping on a host). Waits for a process that is just making the pool.
  static Result<std::unique_ptr<Pool>> map(Platform& platform, const std::string& spec,
                                           const MapOptions& options = {});
  // Removes the device files. busy (naming the pids) if live processes map it, unless forced.
  static Status destroy(Platform& platform, const std::string& spec, bool force = false);

  virtual ~Pool() = default;

  virtual Platform& platform() const = 0;
  virtual const std::string& spec() const = 0;
  virtual Coherence coherence() const = 0;
  virtual std::uint32_t host_id() const = 0;
  virtual std::uint32_t device_count() const = 0;
  virtual std::vector<DeviceInfo> devices() const = 0;
  // False once the path of device 0 no longer names the mapped file.
  virtual bool still_named() const = 0;

  // Translation. resolve: null unless [address, address + bytes) lies in one device's data.
  virtual std::byte* resolve(penstock_address address, std::uint64_t bytes) const = 0;
  // All that resolve() reaches of a device below device_count(), for whoever hands a device's
  // memory to hardware. bytes is 0 where there is no such memory.
  virtual DeviceData device_data(std::uint32_t device) const;
  // The pool offset of memory inside a mapping of this pool, this one or another one of this
  // process; false if it is other memory.
  virtual bool address_of(const void* data, std::uint64_t bytes, penstock_address* out) const = 0;

  // The space of history `which` of what the pool keeps for its hosts; base is null where there is
  // none. For Agreement::open.
  virtual AgreementSpace agreement_space(std::uint32_t which) const;

  // Publishing and observing (architecture, "Memory"). Nothing under hardware coherence.
  // publish: writes the lines back; visible to others after the next Fence::signal.
  virtual void publish(const void* data, std::size_t bytes) const = 0;
  // observe: drops cached copies, so that later loads see what was published; includes the full
  // fence. The range must not hold unpublished data of another host.
  virtual void observe(const void* data, std::size_t bytes) const = 0;

  // Regions: one per 16 KiB of a host's share, 32 to 1024 for each host. Contents are whatever was
  // there. allocate: no_space names need and free space, already_exists the holder; takes back
  // regions of dead owners when space or slots run out. free: not_found for a stale generation,
  // unsupported for another host's region. find: a region that reclaim would take is not found.
  virtual Result<Region> allocate(const RegionRequest& request) = 0;
  virtual Status free(const Region& region) = 0;
  virtual Result<Region> find(RegionKind kind, const std::string& name) = 0;
  virtual std::vector<RegionInfo> regions() = 0;
  // Keeps a region alive while this process lives, whoever made it: a shared lock on a byte of the
  // region's slot. A region whose owner is dead is reclaimed only when nobody holds it; owner() in
  // RegionInfo is then `alive`. The members of a comm hold its regions this way. drop ends it (free
  // does so, too); holding twice needs dropping once.
  virtual Status hold(const Region& region) = 0;
  virtual Status drop(const Region& region) = 0;
  // Frees what dead owners left; returns how many regions.
  virtual Result<std::uint32_t> reclaim() = 0;
  // Superblocks, region table entries, overlaps, leases, agreements: one sentence per finding, none
  // if sound.
  virtual std::vector<std::string> check() = 0;

  // This process's lease, and whether somebody's still holds.
  virtual Lease lease() const = 0;
  virtual Liveness liveness(const Lease& lease) = 0;

  // A critical section among the processes of this host, for rendezvous. deadline_exceeded names
  // the holder's wait. Locks: 0 is the region table (taken by allocate and free), 1 the comms, 8 to
  // 15 the agreements.
  class Lock {
   public:
    virtual ~Lock() = default;
  };
  virtual Result<std::unique_ptr<Lock>> lock(std::uint32_t which, std::uint32_t timeout_ms) = 0;
};

}  // namespace penstock
#endif
