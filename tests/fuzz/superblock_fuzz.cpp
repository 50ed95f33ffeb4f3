// What a pool reads back from its devices: superblock, leases and region table, first as plain
// bytes, then as a device file that is mapped.
//
// Input: byte 0 says what is made right before reading (bit 0: the superblock's checksum, bit 1:
// the entries' checksums, bit 2: a good superblock instead of the input's, bit 3: the file is
// mapped, too), byte 1 the device's length in units of 64 KiB; then 128 bytes of superblock, and
// 128 bytes for each entry of the region table and, at the same time, for two leases.
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "penstock/base/checksum.h"
#include "penstock/memory/lease.h"
#include "penstock/memory/pool.h"
#include "penstock/memory/region_table.h"
#include "penstock/memory/superblock.h"

namespace penstock {
namespace {

constexpr std::uint64_t kFileBytes = std::uint64_t{2} << 20;

struct Input {
  std::uint8_t mode = 0;
  std::uint64_t device_bytes = 0;
  Superblock block{};
  std::vector<RegionEntry> entries;
};

Input read_input(const std::uint8_t* data, std::size_t size) {
  Input input;
  const auto take = [&](void* to, std::size_t bytes) {
    const std::size_t length = std::min(bytes, size);
    if (length > 0) std::memcpy(to, data, length);
    data += length;
    size -= length;
  };
  std::uint8_t units = 0;
  take(&input.mode, 1);
  take(&units, 1);
  input.device_bytes = std::uint64_t{units} << 16;
  take(&input.block, sizeof input.block);
  if ((input.mode & 4) != 0) input.block = make_superblock({}, 0, 1, kFileBytes, 2, 32);
  if ((input.mode & 1) != 0) input.block.checksum = crc32c(&input.block, 124);
  while (size > 0 && input.entries.size() < 64) {
    RegionEntry entry{};
    take(&entry, sizeof entry);
    if ((input.mode & 2) != 0) seal(&entry);
    input.entries.push_back(entry);
  }
  return input;
}

void read_bytes(const Input& input, const std::vector<std::byte>& page) {
  PoolId id;
  (void)read_making_marker(page.data(), page.size(), &id);
  const Result<Superblock> block =
      read_superblock("device", page.data(), page.size(), input.device_bytes);
  PENSTOCK_CHECK(block.ok() || !block.status().message().empty());
  if (!block.ok()) return;
  const Superblock& good = block.value();
  PENSTOCK_CHECK(good.bytes <= input.device_bytes && good.data_offset < good.bytes);
  PENSTOCK_CHECK(good.arena_bytes <= (good.bytes - good.data_offset) / good.hosts);
  (void)check_same_pool("other", good, good, 0);

  Superblock first = make_superblock(good.pool_id, 0, good.device_count, good.bytes, good.hosts,
                                     good.region_slots);
  const Geometry geometry(good.device_count, first);
  std::vector<RegionEntry> memory(std::size_t{first.hosts} * first.region_slots);
  const std::size_t count = std::min(memory.size(), input.entries.size());
  std::copy_n(input.entries.begin(), count, memory.begin());
  const RegionTable table(reinterpret_cast<std::byte*>(memory.data()), geometry,
                          SharedMemory(Platform::host(), Coherence::hardware));
  for (std::uint32_t host = 0; host < first.hosts; ++host) {
    const std::vector<LiveEntry> live = table.live(host);
    for (const LiveEntry& each : live) {
      const std::uint64_t begin = first.data_offset + host * first.arena_bytes;
      PENSTOCK_CHECK(each.entry.offset >= begin && each.entry.bytes <= first.arena_bytes);
      PENSTOCK_CHECK(each.entry.offset + each.entry.bytes <= begin + first.arena_bytes);
      PENSTOCK_CHECK(std::strlen(each.entry.name) < kRegionNameBytes);
    }
    const RegionTable::Room room = table.room(live, host, 0);
    PENSTOCK_CHECK(room.largest <= room.free && room.free <= first.arena_bytes);
    if (room.largest > 0) {
      const auto offset = table.first_fit(live, host, 0, room.largest);
      PENSTOCK_CHECK(offset.has_value());
      for (const LiveEntry& each : live) {
        if (each.entry.device != 0) continue;
        PENSTOCK_CHECK(*offset + room.largest <= each.entry.offset ||
                       each.entry.offset + each.entry.bytes <= *offset);
      }
    }
  }
}

// One file for all inputs; its pages are reserved once.
const std::string& device_path() {
  // Never destroyed: the file is removed when the process ends.
  static const std::string& path = *[] {
    const auto* made = new std::string("/dev/shm/penstock-fuzz-" + std::to_string(::getpid()));
    (void)Platform::host().remove(*made);
    auto file = Platform::host().open(*made, OpenMode::create_new);
    PENSTOCK_CHECK(file.ok(), "{}", file.status().message());
    PENSTOCK_CHECK((*file)->reserve(kFileBytes).ok());
    std::atexit([] { (void)Platform::host().remove(device_path()); });
    return made;
  }();
  return path;
}

void map_file(const Input& input, const std::vector<std::byte>& page) {
  auto file = Platform::host().open(device_path(), OpenMode::read_write).value();
  // The tables of the good superblock; another's lie elsewhere, and then find parts of these.
  std::vector<std::byte> tables(65536 - kPageBytes);
  const std::size_t bytes = input.entries.size() * sizeof(RegionEntry);
  if (bytes > 0) {
    std::memcpy(tables.data(), input.entries.data(), bytes);
    std::memcpy(tables.data() + 2 * 256 * 64, input.entries.data(), bytes);
  }
  PENSTOCK_CHECK(file->write_at(0, page.data(), page.size()).ok());
  PENSTOCK_CHECK(file->write_at(kPageBytes, tables.data(), tables.size()).ok());
  file.reset();
  MapOptions options;
  options.lock_timeout_ms = 0;
  auto mapped = Pool::map(Platform::host(), device_path(), options);
  if (!mapped.ok()) {
    PENSTOCK_CHECK(!mapped.status().message().empty());
    return;
  }
  Pool& pool = **mapped;
  (void)pool.check();
  for (const RegionInfo& info : pool.regions()) {
    PENSTOCK_CHECK(pool.resolve(info.region.address, info.region.bytes) != nullptr);
  }
  (void)pool.devices();
  RegionRequest request;
  request.bytes = 5000;
  request.name = "fuzz";
  auto region = pool.allocate(request);
  if (region.ok()) {
    PENSTOCK_CHECK(pool.resolve(region->address, region->bytes) != nullptr);
    PENSTOCK_CHECK(pool.free(*region).ok());
  }
  (void)pool.reclaim();
  // Damaged or not, what is left in the file must not be removed under a live mapping.
  PENSTOCK_CHECK(!Pool::destroy(Platform::host(), device_path()).ok());
}

}  // namespace
}  // namespace penstock

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace penstock;
  const Input input = read_input(data, size);
  std::vector<std::byte> page(kPageBytes);
  std::memcpy(page.data(), &input.block, sizeof input.block);
  read_bytes(input, page);
  for (const RegionEntry& entry : input.entries) {
    LeaseRecord record;
    std::memcpy(&record, &entry, sizeof record);
    (void)read_lease_record(record);
  }
  if ((input.mode & 8) != 0) map_file(input, page);
  return 0;
}
