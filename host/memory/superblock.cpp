#include "penstock/memory/superblock.h"

#include <algorithm>
#include <cstring>

#include "penstock/base/checksum.h"
#include "penstock/descriptor/address.h"
#include "penstock/memory/agreement_space.h"
#include "penstock/memory/lease.h"
#include "penstock/memory/pool.h"
#include "penstock/memory/region_table.h"

namespace penstock {
namespace {

std::uint64_t round_up(std::uint64_t value, std::uint64_t unit) {
  return (value + unit - 1) / unit * unit;
}

// Fills offsets and arena size from the other numbers, which are within their bounds.
void set_geometry(Superblock* block) {
  block->lease_offset = 0;
  block->table_offset = 0;
  block->agreement_offset = 0;
  block->data_offset = kPageBytes;
  if (block->device_index == 0) {
    block->lease_offset = kPageBytes;
    block->table_offset =
        block->lease_offset +
        round_up(std::uint64_t{block->hosts} * block->lease_slots * sizeof(LeaseRecord),
                 kPageBytes);
    block->agreement_offset =
        block->table_offset +
        round_up(std::uint64_t{block->hosts} * block->region_slots * sizeof(RegionEntry),
                 kPageBytes);
    block->data_offset =
        block->agreement_offset + round_up(pool_agreement_bytes(block->hosts), kPageBytes);
  }
  block->arena_bytes = (block->bytes - block->data_offset) / block->hosts / kPageBytes * kPageBytes;
}

std::uint32_t checksum_of(const Superblock& block) {
  return crc32c(&block, offsetof(Superblock, checksum));
}

Status wrong_number(const std::string& path, const char* what, std::uint64_t value,
                    std::uint64_t min, std::uint64_t max) {
  return error(Code::corrupt, "{}: the superblock names {} {}, but it must be {}..{}", path, value,
               what, min, max);
}

Status check_geometry(const std::string& path, const Superblock& block) {
  if (block.device_count < 1 || block.device_count > PENSTOCK_MAX_DEVICES) {
    return wrong_number(path, "devices", block.device_count, 1, PENSTOCK_MAX_DEVICES);
  }
  if (block.device_index >= block.device_count) {
    return wrong_number(path, "as this device's index", block.device_index, 0,
                        block.device_count - 1);
  }
  if (block.bytes < kMinDeviceBytes || block.bytes > kMaxDeviceBytes ||
      block.bytes % kPageBytes != 0) {
    return error(Code::corrupt,
                 "{}: the superblock names {} bytes, but it must be a multiple of {} from {}", path,
                 block.bytes, kPageBytes, kMinDeviceBytes);
  }
  if (block.hosts < 1 || block.hosts > kMaxHosts) {
    return wrong_number(path, "hosts", block.hosts, 1, kMaxHosts);
  }
  if (block.region_slots < kMinRegionSlots || block.region_slots > kMaxRegionSlots) {
    return wrong_number(path, "region slots per host", block.region_slots, kMinRegionSlots,
                        kMaxRegionSlots);
  }
  if (block.lease_slots != kLeaseSlots) {
    return wrong_number(path, "lease slots per host", block.lease_slots, kLeaseSlots, kLeaseSlots);
  }
  Superblock expected = block;
  expected.reserved0 = expected.reserved1 = 0;
  std::memset(expected.reserved2, 0, sizeof expected.reserved2);
  set_geometry(&expected);
  if (block.data_offset >= block.bytes || std::memcmp(&expected, &block, sizeof block) != 0) {
    return error(
        Code::corrupt,
        "{}: the superblock contradicts itself: tables at {}, {} and {}, data at {}, arenas of {} "
        "bytes, but they follow from its sizes as {}, {}, {}, {} and {}",
        path, block.lease_offset, block.table_offset, block.agreement_offset, block.data_offset,
        block.arena_bytes, expected.lease_offset, expected.table_offset, expected.agreement_offset,
        expected.data_offset, expected.arena_bytes);
  }
  return Status();
}

}  // namespace

Superblock make_superblock(const PoolId& pool_id, std::uint32_t index, std::uint32_t count,
                           std::uint64_t bytes, std::uint32_t hosts, std::uint32_t region_slots) {
  Superblock block{};
  block.magic = kPoolMagic;
  block.version = kPoolVersion;
  block.pool_id = pool_id;
  block.device_index = index;
  block.device_count = count;
  block.bytes = bytes;
  block.hosts = hosts;
  block.region_slots = region_slots;
  block.lease_slots = kLeaseSlots;
  set_geometry(&block);
  block.checksum = checksum_of(block);
  return block;
}

std::uint32_t region_slots_for(std::uint64_t total_bytes, std::uint32_t hosts) {
  // A slot per 16 KiB, so that the table takes less than a hundredth of the pool.
  const std::uint64_t slots = total_bytes / hosts / (16 << 10);
  return static_cast<std::uint32_t>(
      std::clamp<std::uint64_t>(slots, kMinRegionSlots, kMaxRegionSlots));
}

Result<Superblock> read_superblock(const std::string& path, const void* bytes,
                                   std::size_t available, std::uint64_t device_bytes) {
  Superblock block;
  if (available < kPageBytes || device_bytes < kPageBytes) {
    return error(Code::corrupt, "{} is no pool: it has {} bytes, but a superblock takes {}", path,
                 std::min<std::uint64_t>(available, device_bytes), kPageBytes);
  }
  std::memcpy(&block, bytes, sizeof block);
  if (block.magic == kMakingMagic) {
    return error(Code::busy, "{} is a pool that is still being made", path);
  }
  if (block.magic != kPoolMagic) {
    return error(Code::corrupt, "{} is no pool: it begins with {:#018x}, not with {:#018x}", path,
                 block.magic, kPoolMagic);
  }
  if (block.version != kPoolVersion) {
    return error(Code::unsupported,
                 "{} is a pool of format version {}; this build reads version {}", path,
                 block.version, kPoolVersion);
  }
  if (const std::uint32_t sum = checksum_of(block); sum != block.checksum) {
    return error(Code::corrupt,
                 "{}: the superblock's checksum is {:#010x}, but its bytes give "
                 "{:#010x}",
                 path, block.checksum, sum);
  }
  PENSTOCK_TRY(check_geometry(path, block));
  if (device_bytes < block.bytes) {
    return error(Code::corrupt, "{}: the superblock names {} bytes, but only {} are there", path,
                 block.bytes, device_bytes);
  }
  return block;
}

Status check_same_pool(const std::string& path, const Superblock& first, const Superblock& other,
                       std::uint32_t index) {
  if (other.pool_id != first.pool_id) {
    return error(Code::corrupt, "{} belongs to another pool than device 0", path);
  }
  if (other.device_index != index) {
    return error(Code::corrupt, "{} is device {} of its pool, but stands in the place of device {}",
                 path, other.device_index, index);
  }
  if (other.device_count != first.device_count || other.hosts != first.hosts ||
      other.region_slots != first.region_slots) {
    return error(Code::corrupt,
                 "{} disagrees with device 0: {} devices and {} hosts, there {} and "
                 "{}",
                 path, other.device_count, other.hosts, first.device_count, first.hosts);
  }
  return Status();
}

bool read_making_marker(const void* bytes, std::size_t available, PoolId* pool_id) {
  Superblock block;
  if (available < sizeof block) return false;
  std::memcpy(&block, bytes, sizeof block);
  if (block.magic != kMakingMagic) return false;
  *pool_id = block.pool_id;
  return true;
}

}  // namespace penstock
