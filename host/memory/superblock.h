// What every memory device of a pool begins with: one page that decides whether it is a pool.
//
// All numbers are little-endian. Page 0 of a device:
//
//   byte 0  magic u64 ("PENSTOCK")
//        8  version u32                12  reserved u32, 0
//       16  pool id, 16 random bytes: the same on all devices of a pool
//       32  device index u32           36  device count u32 (1..16)
//       40  bytes u64 of this device, a multiple of 4096
//       48  hosts u32 (1..16)          52  region slots u32 per host
//       56  lease slots u32 per host   60  reserved u32, 0
//       64  lease offset u64           72  region table offset u64      (0 except on device 0)
//       80  data offset u64            88  arena bytes u64 per host
//       96  agreement offset u64 (0 except on device 0)
//      104  reserved, 0               124  checksum u32: CRC-32C of bytes 0..123
//      128  zero to 4095
//
// Device 0 goes on with the lease table (host after host, a line per slot; lease.h), the region
// table (host after host, two lines per slot; region_table.h) and the agreements among the hosts
// (agreement_space.h). Data begins at the data offset; host h's arena is [data offset + h * arena
// bytes, + arena bytes). Offsets and arena bytes follow from the other numbers (see set_geometry),
// so that a superblock that contradicts itself is noticed.
//
// While a pool is being made, its devices begin with a marker instead (another magic, then at byte
// 16 the pool id), and the maker holds the making lock. Device 0's magic is written last.
#ifndef PENSTOCK_MEMORY_SUPERBLOCK_H_
#define PENSTOCK_MEMORY_SUPERBLOCK_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "penstock/base/status.h"

namespace penstock {

inline constexpr std::uint64_t kPoolMagic = 0x4b434f54534e4550;    // "PENSTOCK"
inline constexpr std::uint64_t kMakingMagic = 0x474e494b414d5350;  // "PSMAKING"
inline constexpr std::uint32_t kPoolVersion = 2;
inline constexpr std::uint64_t kPageBytes = 4096;
inline constexpr std::uint32_t kMaxHosts = 16;
inline constexpr std::uint32_t kLeaseSlots = 256;  // of each host
inline constexpr std::uint32_t kMinRegionSlots = 32;
inline constexpr std::uint32_t kMaxRegionSlots = 1024;
inline constexpr std::uint64_t kMaxDeviceBytes = std::uint64_t{1} << 55;

using PoolId = std::array<std::uint8_t, 16>;

struct Superblock {
  std::uint64_t magic;
  std::uint32_t version;
  std::uint32_t reserved0;
  PoolId pool_id;
  std::uint32_t device_index;
  std::uint32_t device_count;
  std::uint64_t bytes;
  std::uint32_t hosts;
  std::uint32_t region_slots;
  std::uint32_t lease_slots;
  std::uint32_t reserved1;
  std::uint64_t lease_offset;
  std::uint64_t table_offset;
  std::uint64_t data_offset;
  std::uint64_t arena_bytes;
  std::uint64_t agreement_offset;
  std::uint8_t reserved2[20];
  std::uint32_t checksum;
};
static_assert(sizeof(Superblock) == 128, "the superblock is two cache lines");
static_assert(offsetof(Superblock, checksum) == 124);

// Where the locks lie: open-file-description locks on device 0, past the end of all data.
inline constexpr std::uint64_t kLockBase = std::uint64_t{1} << 60;
inline constexpr std::uint32_t kNamedLocks = 16;  // Pool::lock
inline constexpr std::uint64_t kMakingLock = kLockBase + 64;
inline constexpr std::uint64_t kLeaseLocks = kLockBase + 4096;  // a byte per lease slot
inline constexpr std::uint64_t kHoldLocks = kLockBase + 65536;  // a byte per region slot

// The superblock of device `index` for these numbers, checksum included.
Superblock make_superblock(const PoolId& pool_id, std::uint32_t index, std::uint32_t count,
                           std::uint64_t bytes, std::uint32_t hosts, std::uint32_t region_slots);
// How many region slots each host gets in a pool of this size.
std::uint32_t region_slots_for(std::uint64_t total_bytes, std::uint32_t hosts);

// Reads a superblock out of the first `available` bytes of a device that is `device_bytes` long.
// Pure: any bytes are fine. Checked in this order, each with a sentence that begins with `path`:
// too short, magic (corrupt; busy for the marker of a pool in the making), version (unsupported),
// checksum, geometry, device shorter than the geometry says (corrupt).
Result<Superblock> read_superblock(const std::string& path, const void* bytes,
                                   std::size_t available, std::uint64_t device_bytes);
// Whether `other` is device `index` of the pool that `first` (its device 0) belongs to.
Status check_same_pool(const std::string& path, const Superblock& first, const Superblock& other,
                       std::uint32_t index);

// True if the bytes begin with the marker of a pool in the making; its pool id goes to *pool_id.
bool read_making_marker(const void* bytes, std::size_t available, PoolId* pool_id);

}  // namespace penstock
#endif
