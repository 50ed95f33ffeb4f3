#include "penstock/memory/region_table.h"

#include <algorithm>
#include <cstring>

#include "penstock/base/checksum.h"

namespace penstock {
namespace {

std::uint64_t arena_begin(const Superblock& device, std::uint32_t host) {
  return device.data_offset + host * device.arena_bytes;
}

std::uint32_t checksum_of(RegionEntry entry) {
  entry.live = kEntryLive;  // so that confirming changes one word only
  return crc32c(&entry, offsetof(RegionEntry, checksum));
}

std::string fault_of(const RegionEntry& entry, std::uint32_t host, const Geometry& geometry) {
  if (entry.checksum != checksum_of(entry)) {
    return "its checksum does not match, it was left half-written";
  }
  if (entry.live != kEntryLive && entry.live != kEntryClaimed) {
    return fmt::format("its state is {}, but it must be 0..{}", entry.live, kEntryClaimed);
  }
  if (entry.host != host)
    return fmt::format("it names host {} in the slots of {}", entry.host, host);
  if (entry.device >= geometry.size()) {
    return fmt::format("it names device {} of {}", entry.device, geometry.size());
  }
  const Superblock& device = geometry[entry.device];
  const std::uint64_t begin = arena_begin(device, host);
  const bool aligned = entry.offset % kPageBytes == 0 && entry.bytes % kPageBytes == 0;
  if (!aligned || entry.bytes == 0 || entry.offset < begin || entry.bytes > device.arena_bytes ||
      entry.offset - begin > device.arena_bytes - entry.bytes) {
    return fmt::format("its {} bytes at {} do not lie in the arena of {} bytes at {}", entry.bytes,
                       entry.offset, device.arena_bytes, begin);
  }
  if (entry.kind < 1 || entry.kind > 4) return fmt::format("its kind is {}", entry.kind);
  if (entry.lock_slot >= geometry[0].lease_slots) {
    return fmt::format("it names lease {}", entry.lock_slot);
  }
  if (std::memchr(entry.name, '\0', sizeof entry.name) == nullptr) return "its name has no end";
  return "";
}

}  // namespace

EntryState check_region_entry(const RegionEntry& entry, std::uint32_t slot,
                              const Geometry& geometry, std::string* why) {
  if (entry.live == 0) return EntryState::free;
  const std::string fault = fault_of(entry, slot / geometry[0].region_slots, geometry);
  if (fault.empty()) {
    return entry.live == kEntryLive ? EntryState::live : EntryState::claimed;
  }
  if (why != nullptr) *why = fault;
  return EntryState::torn;
}

Region region_of(const RegionEntry& entry, std::uint32_t slot) {
  return {penstock_address_make(entry.device, entry.offset), entry.bytes, slot, entry.generation};
}

Lease lease_of(const RegionEntry& entry) {
  Lease lease;
  lease.host = entry.host;
  lease.lock_slot = entry.lock_slot;
  lease.process.boot_id = entry.boot_id;
  lease.process.start_time = entry.start_time;
  lease.process.pid_namespace = entry.pid_namespace;
  lease.process.pid = entry.pid;
  return lease;
}

void seal(RegionEntry* entry) { entry->checksum = checksum_of(*entry); }

RegionEntry RegionTable::load(std::uint32_t slot) const {
  RegionEntry entry;
  memory_.load(&entry, at(slot), sizeof entry);
  return entry;
}

EntryState RegionTable::state(std::uint32_t slot, RegionEntry* entry, std::string* why) const {
  // Most slots are free, and their first word says so.
  memory_.load(entry, at(slot), sizeof(std::uint64_t));
  if (entry->live == 0) return EntryState::free;
  *entry = load(slot);
  return check_region_entry(*entry, slot, geometry_, why);
}

void RegionTable::store(std::uint32_t slot, const RegionEntry& entry) const {
  // What a cut-off clear left would, under the new first word, pass for the old entry.
  clear(slot);
  memory_.store(at(slot), &entry, sizeof entry);
}

void RegionTable::clear(std::uint32_t slot) const {
  // The first word alone frees the slot, so that no half-way state exists; then the rest goes.
  const RegionEntry none{};
  memory_.store(at(slot), &none, sizeof(std::uint64_t));
  memory_.store(at(slot), &none, sizeof none);
}

void RegionTable::confirm(std::uint32_t slot) const {
  RegionEntry entry = load(slot);
  entry.live = kEntryLive;
  memory_.store(at(slot), &entry, sizeof(std::uint64_t));
}

void RegionTable::collect(std::uint32_t first, std::uint32_t end,
                          std::vector<LiveEntry>* out) const {
  RegionEntry entry;
  for (std::uint32_t slot = first; slot < end; ++slot) {
    if (state(slot, &entry) == EntryState::live) out->push_back({slot, entry});
  }
}

std::vector<LiveEntry> RegionTable::live(std::uint32_t host) const {
  std::vector<LiveEntry> found;
  collect(host * slots_per_host(), (host + 1) * slots_per_host(), &found);
  return found;
}

std::vector<LiveEntry> RegionTable::live() const {
  std::vector<LiveEntry> found;
  collect(0, slots(), &found);
  return found;
}

std::vector<RegionTable::Gap> RegionTable::gaps(const std::vector<LiveEntry>& live,
                                                std::uint32_t host, std::uint32_t device) const {
  std::vector<Gap> taken;
  for (const LiveEntry& each : live) {
    if (each.entry.device == device && each.entry.host == host) {
      taken.push_back({each.entry.offset, each.entry.bytes});
    }
  }
  std::sort(taken.begin(), taken.end(),
            [](const Gap& a, const Gap& b) { return a.offset < b.offset; });
  const Superblock& block = geometry_[device];
  std::uint64_t at = arena_begin(block, host);
  const std::uint64_t end = at + block.arena_bytes;
  std::vector<Gap> found;
  for (const Gap& each : taken) {
    if (each.offset > at) found.push_back({at, each.offset - at});
    at = std::max(at, each.offset + each.bytes);
  }
  if (end > at) found.push_back({at, end - at});
  return found;
}

std::optional<std::uint64_t> RegionTable::first_fit(const std::vector<LiveEntry>& live,
                                                    std::uint32_t host, std::uint32_t device,
                                                    std::uint64_t bytes) const {
  for (const Gap& gap : gaps(live, host, device)) {
    if (gap.bytes >= bytes) return gap.offset;
  }
  return std::nullopt;
}

RegionTable::Room RegionTable::room(const std::vector<LiveEntry>& live, std::uint32_t host,
                                    std::uint32_t device) const {
  Room room;
  for (const Gap& gap : gaps(live, host, device)) {
    room.free += gap.bytes;
    room.largest = std::max(room.largest, gap.bytes);
  }
  return room;
}

}  // namespace penstock
