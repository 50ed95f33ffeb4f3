// The region table on device 0: per host a fixed number of slots of two cache lines.
//
// A slot is written only by processes of its host, under that host's table lock. An entry is live
// when its first byte says so and its checksum holds and its range lies in its host's arena;
// anything else counts as free. So a process that dies half way through writing an entry leaves a
// free slot, and one that dies before or after leaves the old or the new state.
//
// Between hosts no lock reaches, so a name is settled in two steps: an entry is published as
// claimed, the other hosts' slots are read again, and only then it is made live, by one word (see
// MappedPool::settle_name). A claimed entry is found by nobody; left behind, it counts as free for
// its own host.
#ifndef PENSTOCK_MEMORY_REGION_TABLE_H_
#define PENSTOCK_MEMORY_REGION_TABLE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "penstock/memory/pool.h"
#include "penstock/memory/shared_memory.h"
#include "penstock/memory/superblock.h"

namespace penstock {

inline constexpr std::size_t kRegionNameBytes = 48;  // the terminating zero included
inline constexpr std::uint8_t kRegionPersistent = 1;
inline constexpr std::uint8_t kEntryLive = 1;
inline constexpr std::uint8_t kEntryClaimed = 2;

struct RegionEntry {
  std::uint8_t live;   // 1, or 0 for a free slot
  std::uint8_t kind;   // RegionKind
  std::uint8_t flags;  // kRegionPersistent
  std::uint8_t device;
  std::uint16_t host;
  std::uint16_t lock_slot;  // the owner's lease
  std::uint64_t offset;     // in the device
  std::uint64_t bytes;
  std::uint64_t generation;  // random: tells this allocation from a later one
  std::uint64_t start_time;  // the owner
  std::uint64_t pid_namespace;
  std::array<std::uint8_t, 16> boot_id;
  std::uint32_t pid;
  char name[kRegionNameBytes];
  std::uint8_t reserved[8];
  std::uint32_t checksum;  // CRC-32C of all bytes before, with `live` taken as kEntryLive
};
static_assert(sizeof(RegionEntry) == 128, "an entry is two cache lines");
static_assert(offsetof(RegionEntry, checksum) == 124);

// What an entry has to agree with: the superblocks of all devices.
using Geometry = std::vector<Superblock>;

enum class EntryState { free, claimed, live, torn };
// What the entry of global slot `slot` (host * region slots + s) is. Pure: any bytes are
// fine. When it is torn and `why` is not null, *why says what is wrong with it.
EntryState check_region_entry(const RegionEntry& entry, std::uint32_t slot,
                              const Geometry& geometry, std::string* why);

Region region_of(const RegionEntry& entry, std::uint32_t slot);
Lease lease_of(const RegionEntry& entry);
void seal(RegionEntry* entry);  // sets the checksum

// A live entry and where it stands.
struct LiveEntry {
  std::uint32_t slot;
  RegionEntry entry;
};

// Access to the mapped table. Thread-safe for reading; writers hold the table lock.
class RegionTable {
 public:
  RegionTable(std::byte* base, Geometry geometry, SharedMemory memory)
      : base_(base), geometry_(std::move(geometry)), memory_(memory) {}

  const Geometry& geometry() const { return geometry_; }
  std::uint32_t slots_per_host() const { return geometry_[0].region_slots; }
  std::uint32_t slots() const { return geometry_[0].hosts * slots_per_host(); }

  RegionEntry load(std::uint32_t slot) const;
  EntryState state(std::uint32_t slot, RegionEntry* entry, std::string* why = nullptr) const;
  void store(std::uint32_t slot, const RegionEntry& entry) const;
  void clear(std::uint32_t slot) const;
  // Makes a claimed entry live.
  void confirm(std::uint32_t slot) const;

  // The live entries of one host, or of all.
  std::vector<LiveEntry> live(std::uint32_t host) const;
  std::vector<LiveEntry> live() const;

  // First fit in the host's arena on a device: the offset, or nothing. `live` are that host's.
  std::optional<std::uint64_t> first_fit(const std::vector<LiveEntry>& live, std::uint32_t host,
                                         std::uint32_t device, std::uint64_t bytes) const;
  struct Room {
    std::uint64_t free = 0;
    std::uint64_t largest = 0;
  };
  Room room(const std::vector<LiveEntry>& live, std::uint32_t host, std::uint32_t device) const;

 private:
  struct Gap {
    std::uint64_t offset;
    std::uint64_t bytes;
  };
  std::vector<Gap> gaps(const std::vector<LiveEntry>& live, std::uint32_t host,
                        std::uint32_t device) const;
  std::byte* at(std::uint32_t slot) const {
    return base_ + std::size_t{slot} * sizeof(RegionEntry);
  }
  void collect(std::uint32_t first, std::uint32_t end, std::vector<LiveEntry>* out) const;

  std::byte* base_;
  Geometry geometry_;
  SharedMemory memory_;
};

}  // namespace penstock
#endif
