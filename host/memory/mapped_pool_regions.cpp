// Regions of a mapped pool: allocation, holds, reclaim, and the check of all of it.
#include <algorithm>
#include <cstring>
#include <numeric>
#include <set>

#include "penstock/base/log.h"
#include "penstock/memory/agreement_block.h"
#include "penstock/memory/mapped_pool.h"

namespace penstock {
namespace {

std::uint64_t round_to_page(std::uint64_t bytes) {
  return (bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
}

}  // namespace

std::string MappedPool::label(const RegionEntry& entry) const {
  const char* kind = region_kind_name(static_cast<RegionKind>(entry.kind));
  return entry.name[0] == '\0' ? fmt::format("anonymous {} region", kind)
                               : fmt::format("{} region '{}'", kind, entry.name);
}

std::vector<DeviceInfo> MappedPool::devices() const {
  const std::vector<LiveEntry> live = table_->live();
  std::vector<DeviceInfo> all;
  for (std::uint32_t index = 0; index < devices_.size(); ++index) {
    DeviceInfo info{devices_[index].path, devices_[index].bytes, 0, 0};
    for (const LiveEntry& each : live) {
      if (each.entry.device == index) info.used += each.entry.bytes;
    }
    info.free = table_->room(live, options_.host_id, index).free;
    all.push_back(info);
  }
  return all;
}

bool MappedPool::is_held(std::uint32_t slot) {
  const std::lock_guard<std::mutex> guard(mutex_);
  if (holds_.count(slot) > 0) return true;
  const Result<bool> locked = file_->is_locked(kHoldLocks + slot, 1);
  return !locked.ok() || locked.value();
}

bool MappedPool::is_reclaimable(const LiveEntry& entry) {
  return (entry.entry.flags & kRegionPersistent) == 0 &&
         liveness(lease_of(entry.entry)) == Liveness::dead && !is_held(entry.slot);
}

std::uint32_t MappedPool::reclaim_locked() {
  std::uint32_t count = 0;
  const std::uint32_t first = options_.host_id * table_->slots_per_host();
  for (std::uint32_t slot = first; slot < first + table_->slots_per_host(); ++slot) {
    RegionEntry entry;
    const EntryState state = table_->state(slot, &entry);
    // With the table lock held, a claim of this host is a dead process's.
    if (state == EntryState::torn || state == EntryState::claimed) table_->clear(slot);
    if (state != EntryState::live || !is_reclaimable({slot, entry})) continue;
    log::info("pool {}: takes back the {} of {} bytes that process {} left", spec_, label(entry),
              entry.bytes, entry.pid);
    table_->clear(slot);
    ++count;
  }
  return count;
}

Result<std::uint32_t> MappedPool::reclaim() {
  PENSTOCK_ASSIGN(const auto guard, lock(0, options_.lock_timeout_ms));
  return reclaim_locked();
}

Status MappedPool::check_name(const RegionRequest& request, bool* reclaimed) {
  if (request.name.empty()) return Status();
  for (const LiveEntry& each : table_->live()) {
    if (each.entry.kind != static_cast<std::uint8_t>(request.kind) ||
        request.name != each.entry.name) {
      continue;
    }
    if (!*reclaimed && each.entry.host == options_.host_id && is_reclaimable(each)) {
      reclaim_locked();
      *reclaimed = true;
      continue;
    }
    return error(Code::already_exists,
                 "pool {}: the {} exists already, made by process {} of host {}", spec_,
                 label(each.entry), each.entry.pid, each.entry.host);
  }
  return Status();
}

std::optional<std::uint32_t> MappedPool::free_slot() {
  const std::uint32_t first = options_.host_id * table_->slots_per_host();
  std::optional<std::uint32_t> held;
  for (std::uint32_t slot = first; slot < first + table_->slots_per_host(); ++slot) {
    RegionEntry entry;
    if (table_->state(slot, &entry) == EntryState::live) continue;
    forget_hold(slot);
    // Who still holds what was here before would hold the new region, so such a slot comes last.
    if (!is_held(slot)) return slot;
    if (!held) held = slot;
  }
  return held;
}

std::optional<Region> MappedPool::place(const RegionRequest& request, std::uint64_t bytes) {
  const std::optional<std::uint32_t> slot = free_slot();
  if (!slot) return std::nullopt;
  const std::vector<LiveEntry> live = table_->live(options_.host_id);
  std::vector<std::uint32_t> order;
  if (request.device >= 0) {
    order.push_back(static_cast<std::uint32_t>(request.device));
  } else {
    std::vector<std::uint64_t> free;
    for (std::uint32_t index = 0; index < devices_.size(); ++index) {
      free.push_back(table_->room(live, options_.host_id, index).free);
    }
    order.resize(devices_.size());
    std::iota(order.begin(), order.end(), 0u);
    std::stable_sort(order.begin(), order.end(),
                     [&](std::uint32_t a, std::uint32_t b) { return free[a] > free[b]; });
  }
  for (const std::uint32_t device : order) {
    const auto offset = table_->first_fit(live, options_.host_id, device, bytes);
    if (!offset) continue;
    RegionEntry entry{};
    entry.live = is_contested(request) ? kEntryClaimed : kEntryLive;
    entry.kind = static_cast<std::uint8_t>(request.kind);
    entry.flags = request.persistent ? kRegionPersistent : 0;
    entry.device = static_cast<std::uint8_t>(device);
    entry.host = static_cast<std::uint16_t>(options_.host_id);
    entry.lock_slot = static_cast<std::uint16_t>(lease_.lock_slot);
    entry.offset = *offset;
    entry.bytes = bytes;
    entry.generation = platform_.random();
    entry.start_time = self_.start_time;
    entry.pid_namespace = self_.pid_namespace;
    entry.boot_id = self_.boot_id;
    entry.pid = self_.pid;
    std::memcpy(entry.name, request.name.data(), request.name.size());
    seal(&entry);
    table_->store(*slot, entry);
    return region_of(entry, *slot);
  }
  return std::nullopt;
}

Status MappedPool::no_room(const RegionRequest& request, std::uint64_t bytes) const {
  const std::vector<LiveEntry> live = table_->live(options_.host_id);
  if (live.size() >= table_->slots_per_host()) {
    return error(Code::no_space, "pool {}: all {} slots of host {}'s region table are taken", spec_,
                 table_->slots_per_host(), options_.host_id);
  }
  std::string rooms;
  for (std::uint32_t index = 0; index < devices_.size(); ++index) {
    if (request.device >= 0 && index != static_cast<std::uint32_t>(request.device)) continue;
    const RegionTable::Room room = table_->room(live, options_.host_id, index);
    rooms += fmt::format("{}device {} has {} bytes free, {} in one piece",
                         rooms.empty() ? "" : "; ", index, room.free, room.largest);
  }
  return error(Code::no_space, "pool {}: no room for {} bytes in the arena of host {}: {}", spec_,
               bytes, options_.host_id, rooms);
}

Result<Region> MappedPool::allocate(const RegionRequest& request) {
  const auto kind = static_cast<std::uint32_t>(request.kind);
  if (kind < 1 || kind > 4) return error(Code::invalid_argument, "{} is no kind of region", kind);
  if (request.name.size() >= kRegionNameBytes || request.name.find('\0') != std::string::npos) {
    return error(Code::invalid_argument,
                 "a region's name has 0..{} bytes and no zero among them, but '{}' has {}",
                 kRegionNameBytes - 1, request.name, request.name.size());
  }
  if (request.bytes == 0 || request.bytes > kMaxDeviceBytes) {
    return error(Code::invalid_argument, "a region of {} bytes: it must be 1..{}", request.bytes,
                 kMaxDeviceBytes);
  }
  if (request.device < -1 || request.device >= static_cast<std::int64_t>(devices_.size())) {
    return error(Code::invalid_argument,
                 "pool {} has no device {}: it must be 0..{}, or -1 for the emptiest", spec_,
                 request.device, devices_.size() - 1);
  }
  const std::uint64_t bytes = round_to_page(request.bytes);
  PENSTOCK_ASSIGN(const auto guard, lock(0, options_.lock_timeout_ms));
  bool reclaimed = false;
  PENSTOCK_TRY(check_name(request, &reclaimed));
  std::optional<Region> region = place(request, bytes);
  if (!region && !reclaimed && reclaim_locked() > 0) region = place(request, bytes);
  if (!region) return no_room(request, bytes);
  if (is_contested(request)) PENSTOCK_TRY(settle_name(request, region->slot));
  return *region;
}

// Two hosts that claim a name at once may both have found it free. Each claim is published before
// the other hosts' slots are read again, so at least one of two claimers sees the other. The higher
// host withdraws from a lower one's claim; the lower waits until the higher one has withdrawn or
// made its entry live, which the higher does without waiting for a lower. So at most one entry gets
// live, and one does: the waiting goes upward, and whoever withdraws has seen another's claim or
// live entry. Model: tests/models/claim.pml.
//
// A decision of the agreement (agreement.h) could not take this one's place: it would settle who
// wins although another stopped, but could not call back a winner of before that sleeps right in
// front of making its entry live.
Status MappedPool::settle_name(const RegionRequest& request, std::uint32_t slot) {
  const std::uint64_t deadline_ns =
      platform_.now_ns() + std::uint64_t{options_.lock_timeout_ms} * 1'000'000;
  const std::uint32_t per_host = table_->slots_per_host();
  while (true) {
    platform_.full_fence();  // the claim before the look
    std::optional<std::uint32_t> waits_for;
    for (std::uint32_t other = 0; other < table_->slots(); ++other) {
      const std::uint32_t host = other / per_host;
      if (host == options_.host_id) continue;
      RegionEntry entry;
      const EntryState state = table_->state(other, &entry);
      if (state != EntryState::live && state != EntryState::claimed) continue;
      if (entry.kind != static_cast<std::uint8_t>(request.kind) || request.name != entry.name) {
        continue;
      }
      if (state == EntryState::claimed && liveness(lease_of(entry)) == Liveness::dead) continue;
      if (state == EntryState::live || host < options_.host_id) {
        table_->clear(slot);
        return error(Code::already_exists,
                     "pool {}: the {} was made by process {} of host {} at the same time", spec_,
                     label(entry), entry.pid, host);
      }
      waits_for = host;
    }
    if (!waits_for) {
      table_->confirm(slot);
      return Status();
    }
    if (platform_.now_ns() >= deadline_ns) {
      table_->clear(slot);
      return error(Code::deadline_exceeded,
                   "pool {}: host {} has claimed the name '{}' for {} ms without making it", spec_,
                   *waits_for, request.name, options_.lock_timeout_ms);
    }
    platform_.sleep_ns(20'000);
  }
}

Result<RegionEntry> MappedPool::entry_of(const Region& region) const {
  RegionEntry entry;
  if (region.slot < table_->slots() && table_->state(region.slot, &entry) == EntryState::live &&
      entry.generation == region.generation) {
    return entry;
  }
  return error(Code::not_found, "pool {}: the region of {} bytes at {:#x} (slot {}) is gone", spec_,
               region.bytes, region.address, region.slot);
}

Status MappedPool::free(const Region& region) {
  PENSTOCK_ASSIGN(const auto guard, lock(0, options_.lock_timeout_ms));
  PENSTOCK_ASSIGN(const RegionEntry entry, entry_of(region));
  if (entry.host != options_.host_id) {
    return error(Code::unsupported,
                 "pool {}: the {} lies in the arena of host {}, and only that "
                 "host frees it",
                 spec_, label(entry), entry.host);
  }
  table_->clear(region.slot);
  forget_hold(region.slot);
  return Status();
}

Result<Region> MappedPool::find(RegionKind kind, const std::string& name) {
  PENSTOCK_TRY(check_process());
  if (name.empty()) {
    return error(Code::invalid_argument, "pool {}: an anonymous region cannot be found", spec_);
  }
  for (const LiveEntry& each : table_->live()) {
    if (each.entry.kind != static_cast<std::uint8_t>(kind) || name != each.entry.name) continue;
    if (is_reclaimable(each)) continue;  // as good as gone
    return region_of(each.entry, each.slot);
  }
  return error(Code::not_found, "pool {} has no {} region '{}'", spec_, region_kind_name(kind),
               name);
}

std::vector<RegionInfo> MappedPool::regions() {
  std::vector<RegionInfo> all;
  for (const LiveEntry& each : table_->live()) {
    RegionInfo info;
    info.region = region_of(each.entry, each.slot);
    info.kind = static_cast<RegionKind>(each.entry.kind);
    info.name = each.entry.name;
    info.persistent = (each.entry.flags & kRegionPersistent) != 0;
    info.lease = lease_of(each.entry);
    info.owner = liveness(info.lease);
    if (info.owner == Liveness::dead && is_held(each.slot)) info.owner = Liveness::alive;
    all.push_back(info);
  }
  return all;
}

Status MappedPool::hold(const Region& region) {
  // Under the table lock, so that no reclaim comes between the look and the lock.
  PENSTOCK_ASSIGN(const auto guard, lock(0, options_.lock_timeout_ms));
  PENSTOCK_ASSIGN(const RegionEntry entry, entry_of(region));
  const std::lock_guard<std::mutex> mutex_guard(mutex_);
  PENSTOCK_TRY(file_->try_lock_shared(kHoldLocks + region.slot, 1));
  holds_[region.slot] = entry.generation;
  return Status();
}

Status MappedPool::drop(const Region& region) {
  PENSTOCK_TRY(check_process());
  const std::lock_guard<std::mutex> guard(mutex_);
  const auto held = holds_.find(region.slot);
  if (held == holds_.end() || held->second != region.generation) {
    return error(Code::not_found, "pool {}: the region at {:#x} is not held by this mapping", spec_,
                 region.address);
  }
  holds_.erase(held);
  return file_->unlock(kHoldLocks + region.slot, 1);
}

void MappedPool::forget_hold(std::uint32_t slot) {
  const std::lock_guard<std::mutex> guard(mutex_);
  if (holds_.erase(slot) > 0) (void)file_->unlock(kHoldLocks + slot, 1);
}

void MappedPool::check_agreements(std::vector<std::string>* findings) const {
  for (std::uint32_t which = 0; which < kPoolAgreements; ++which) {
    const AgreementBlocks blocks(memory_, agreement_space(which));
    for (std::uint32_t slot = 0; slot < blocks.space().depth; ++slot) {
      for (std::uint32_t host = 0; host < blocks.space().participants; ++host) {
        const Result<AgreementRecord> record = blocks.load_settled(slot, host);
        if (record.ok()) continue;
        findings->push_back(fmt::format("history {} of the pool's agreements: {}", which,
                                        record.status().message()));
      }
    }
  }
}

std::vector<std::string> MappedPool::check() {
  std::vector<std::string> findings;
  if (const Status child = check_process(); !child.ok()) return {child.message()};
  if (!still_named()) {
    findings.push_back(fmt::format("{} no longer names the file that is mapped", devices_[0].path));
  }
  const Geometry& geometry = table_->geometry();
  for (std::size_t index = 0; index < devices_.size(); ++index) {
    const Result<Superblock> block = read_superblock(devices_[index].path, devices_[index].base,
                                                     kPageBytes, devices_[index].bytes);
    if (!block.ok()) {
      findings.push_back(block.status().message());
    } else if (std::memcmp(&block.value(), &geometry[index], sizeof(Superblock)) != 0) {
      findings.push_back(
          fmt::format("{}: the superblock has changed since it was mapped", devices_[index].path));
    }
  }
  check_agreements(&findings);
  std::vector<LiveEntry> live;
  for (std::uint32_t slot = 0; slot < table_->slots(); ++slot) {
    RegionEntry entry;
    std::string why;
    const EntryState state = table_->state(slot, &entry, &why);
    if (state == EntryState::torn) {
      findings.push_back(fmt::format("slot {} of the region table counts as free: {}", slot, why));
    } else if (state == EntryState::live) {
      live.push_back({slot, entry});
    }
  }
  std::sort(live.begin(), live.end(), [](const LiveEntry& a, const LiveEntry& b) {
    return std::pair(a.entry.device, a.entry.offset) < std::pair(b.entry.device, b.entry.offset);
  });
  std::set<std::pair<std::uint8_t, std::string>> names;
  for (std::size_t i = 0; i < live.size(); ++i) {
    const RegionEntry& entry = live[i].entry;
    if (i > 0 && live[i - 1].entry.device == entry.device &&
        live[i - 1].entry.offset + live[i - 1].entry.bytes > entry.offset) {
      findings.push_back(fmt::format("slots {} and {} overlap on device {} at {}", live[i - 1].slot,
                                     live[i].slot, entry.device, entry.offset));
    }
    if (entry.name[0] != '\0' && !names.emplace(entry.kind, entry.name).second) {
      findings.push_back(
          fmt::format("the {} exists twice, once in slot {}", label(entry), live[i].slot));
    }
    if (is_reclaimable(live[i])) {
      findings.push_back(fmt::format("the {} in slot {} was left by process {}, which has ended",
                                     label(entry), live[i].slot, entry.pid));
    }
  }
  return findings;
}

}  // namespace penstock
