// Mapping, translation, leases and locks.
#include "penstock/memory/mapped_pool.h"

#include <algorithm>
#include <shared_mutex>

#include "penstock/base/log.h"

namespace penstock {

Result<Coherence> parse_coherence(const std::string& text) {
  if (text == "hardware") return Coherence::hardware;
  if (text == "software") return Coherence::software;
  return error(Code::invalid_argument, "\"{}\" is no coherence: it must be hardware or software",
               text);
}

const char* coherence_name(Coherence coherence) {
  return coherence == Coherence::hardware ? "hardware" : "software";
}

const char* region_kind_name(RegionKind kind) {
  switch (kind) {
    case RegionKind::user:
      return "user";
    case RegionKind::comm:
      return "comm";
    case RegionKind::table:
      return "table";
    case RegionKind::queue:
      return "queue";
  }
  return "?";
}

namespace {

// What this process has mapped, whoever did it: an application maps a pool that a comm has mapped
// for itself, and memory of the one is memory of the other.
struct Mapping {
  const void* owner;
  const Platform* platform;
  std::uint64_t identity;  // of the file
  std::uintptr_t base;
  std::uint64_t bytes;
};
struct Mappings {
  std::shared_mutex mutex;
  std::vector<Mapping> list;
};
// Never destroyed: a pool may be the last thing that goes.
Mappings& mappings() {
  static auto* const instance = new Mappings;
  return *instance;
}

}  // namespace

Result<std::unique_ptr<Pool>> Pool::map(Platform& platform, const std::string& spec,
                                        const MapOptions& options) {
  return MappedPool::make(platform, spec, options);
}

MappedPool::MappedPool(Platform& platform, const std::string& spec, const MapOptions& options)
    : platform_(platform),
      spec_(spec),
      options_(options),
      self_(platform.self()),
      generation_(platform.process_generation()),
      memory_(platform, options.coherence) {}

Result<std::unique_ptr<Pool>> MappedPool::make(Platform& platform, const std::string& spec,
                                               const MapOptions& options) {
  std::unique_ptr<MappedPool> pool(new MappedPool(platform, spec, options));
  PENSTOCK_TRY(pool->open());
  PENSTOCK_TRY(pool->take_lease());
  return std::unique_ptr<Pool>(std::move(pool));
}

Status MappedPool::open() {
  PENSTOCK_ASSIGN(PoolFiles found, open_pool_files(platform_, spec_, options_.lock_timeout_ms));
  const Superblock& first = found.superblocks[0];
  if (options_.host_id >= first.hosts) {
    return error(Code::invalid_argument, "pool {} was made for {} hosts: host id {} must be 0..{}",
                 spec_, first.hosts, options_.host_id, first.hosts - 1);
  }
  for (std::size_t index = 0; index < found.files.size(); ++index) {
    File& file = *found.files[index];
    const Superblock& block = found.superblocks[index];
    // A copy may have holes; a store into one could fail, with a signal instead of an error.
    if (!file.is_device()) {
      PENSTOCK_ASSIGN(const std::uint64_t size, file.size());
      PENSTOCK_TRY(file.reserve(size));
    }
    PENSTOCK_ASSIGN(std::byte * base, file.map(block.bytes));
    devices_.push_back({file.path(), base, block.bytes, block.data_offset, file.identity()});
  }
  table_.emplace(devices_[0].base + first.table_offset, found.superblocks, memory_);
  file_ = std::move(found.files[0]);
  file_identity_ = file_->identity();
  const std::unique_lock<std::shared_mutex> guard(mappings().mutex);
  for (const Device& device : devices_) {
    mappings().list.push_back({this, &platform_, device.identity,
                               reinterpret_cast<std::uintptr_t>(device.base), device.bytes});
  }
  is_listed_ = true;
  return Status();
}

Status MappedPool::take_lease() {
  // Under the table lock, so that Pool::destroy sees every lease or is seen by its taker.
  PENSTOCK_ASSIGN(const auto guard, lock(0, options_.lock_timeout_ms));
  if (!still_named()) {
    return error(Code::not_found, "pool {} was removed while it was being mapped", spec_);
  }
  const std::uint32_t slots = table_->geometry()[0].lease_slots;
  const std::lock_guard<std::mutex> mutex_guard(mutex_);
  for (std::uint32_t slot = 0; slot < slots; ++slot) {
    const Status locked = file_->try_lock(kLeaseLocks + options_.host_id * slots + slot, 1);
    if (locked.code() == Code::busy) continue;
    PENSTOCK_TRY(locked);
    lease_ = {options_.host_id, slot, self_};
    has_lease_ = true;
    const LeaseRecord record = make_lease_record(self_, options_.host_id);
    memory_.store(lease_record(options_.host_id, slot), &record, sizeof record);
    return Status();
  }
  return error(Code::no_space, "pool {} is mapped {} times on host {}, which is the most", spec_,
               slots, options_.host_id);
}

MappedPool::~MappedPool() {
  // A forked child leaves the lease alone: record and locks are its parent's.
  if (has_lease_ && check_process().ok()) {
    const LeaseRecord none{};
    memory_.store(lease_record(lease_.host, lease_.lock_slot), &none, sizeof none);
  }
  if (is_listed_) {
    const std::unique_lock<std::shared_mutex> guard(mappings().mutex);
    std::erase_if(mappings().list, [this](const Mapping& one) { return one.owner == this; });
  }
  for (const Device& device : devices_) {
    const Status unmapped = platform_.unmap(device.base, device.bytes);
    if (!unmapped.ok()) log::warn("pool {}: {}", spec_, unmapped.message());
  }
}

Status MappedPool::check_process() const {
  if (platform_.process_generation() == generation_) return Status();
  return error(Code::unsupported,
               "pool {} was mapped by process {}, and process {} is its forked child, which has to "
               "map the pool itself",
               spec_, self_.pid, platform_.self().pid);
}

LeaseRecord* MappedPool::lease_record(std::uint32_t host, std::uint32_t slot) const {
  const Superblock& first = table_->geometry()[0];
  auto* records = reinterpret_cast<LeaseRecord*>(devices_[0].base + first.lease_offset);
  return records + std::size_t{host} * first.lease_slots + slot;
}

bool MappedPool::still_named() const {
  return platform_.file_identity(devices_[0].path) == file_identity_;
}

std::byte* MappedPool::resolve(penstock_address address, std::uint64_t bytes) const {
  const std::uint32_t space = penstock_address_space(address);
  if (space >= devices_.size()) return nullptr;
  const Device& device = devices_[space];
  const std::uint64_t offset = penstock_address_offset(address);
  if (offset < device.data_offset || offset > device.bytes || bytes > device.bytes - offset) {
    return nullptr;
  }
  return device.base + offset;
}

bool MappedPool::address_of(const void* data, std::uint64_t bytes, penstock_address* out) const {
  const auto at = reinterpret_cast<std::uintptr_t>(data);
  for (std::uint32_t index = 0; index < devices_.size(); ++index) {
    const auto base = reinterpret_cast<std::uintptr_t>(devices_[index].base);
    if (at < base || at - base >= devices_[index].bytes) continue;
    const penstock_address address = penstock_address_make(index, at - base);
    if (resolve(address, bytes) == nullptr) return false;
    *out = address;
    return true;
  }
  return address_elsewhere(data, bytes, out);
}

bool MappedPool::address_elsewhere(const void* data, std::uint64_t bytes,
                                   penstock_address* out) const {
  const auto at = reinterpret_cast<std::uintptr_t>(data);
  const std::shared_lock<std::shared_mutex> guard(mappings().mutex);
  for (const Mapping& mapping : mappings().list) {
    if (mapping.owner == this || mapping.platform != &platform_) continue;
    if (at < mapping.base || at - mapping.base >= mapping.bytes) continue;
    for (std::uint32_t index = 0; index < devices_.size(); ++index) {
      if (devices_[index].identity != mapping.identity) continue;
      const penstock_address address = penstock_address_make(index, at - mapping.base);
      if (resolve(address, bytes) == nullptr) return false;
      *out = address;
      return true;
    }
  }
  return false;
}

AgreementSpace Pool::agreement_space(std::uint32_t) const { return {}; }
DeviceData Pool::device_data(std::uint32_t) const { return {}; }

DeviceData MappedPool::device_data(std::uint32_t device) const {
  if (device >= devices_.size()) return {};
  const Device& d = devices_[device];
  return {penstock_address_make(device, d.data_offset), d.bytes - d.data_offset};
}

AgreementSpace MappedPool::agreement_space(std::uint32_t which) const {
  const Superblock& first = table_->geometry()[0];
  const std::uint64_t offset = first.agreement_offset +
                               which * agreement_bytes(first.hosts, kPoolAgreementDepth);
  return {devices_[0].base + offset, first.hosts, kPoolAgreementDepth};
}

void MappedPool::publish(const void* data, std::size_t bytes) const {
  if (options_.coherence == Coherence::software) platform_.write_back(data, bytes);
}

void MappedPool::observe(const void* data, std::size_t bytes) const {
  if (options_.coherence == Coherence::software) {
    platform_.invalidate(data, bytes);
    platform_.full_fence();
  }
}

Liveness MappedPool::liveness(const Lease& lease) {
  if (!check_process().ok()) return Liveness::unknown;
  const Superblock& first = table_->geometry()[0];
  if (lease.host >= first.hosts || lease.lock_slot >= first.lease_slots) return Liveness::dead;
  if (lease.process.boot_id != self_.boot_id) {
    // Locks and pids of another host say nothing here; another boot of this host is over.
    return lease.host == lease_.host ? Liveness::dead : Liveness::unknown;
  }
  if (lease.host == lease_.host && lease.lock_slot == lease_.lock_slot) {
    return lease.process == self_ ? Liveness::alive : Liveness::dead;
  }
  Result<bool> locked = [&]() -> Result<bool> {
    const std::lock_guard<std::mutex> guard(mutex_);
    return file_->is_locked(kLeaseLocks + lease.host * first.lease_slots + lease.lock_slot, 1);
  }();
  if (!locked.ok()) return Liveness::unknown;
  if (!locked.value()) return Liveness::dead;
  // Somebody holds the slot; its record tells whether it is still the same process. A record that
  // cannot be read is being written.
  LeaseRecord record;
  memory_.load(&record, lease_record(lease.host, lease.lock_slot), sizeof record);
  const std::optional<ProcessIdentity> holder = read_lease_record(record);
  if (!holder) return Liveness::alive;
  if (*holder != lease.process) return Liveness::dead;
  // A forked child keeps its dead parent's lock.
  return platform_.liveness(lease.process) == Liveness::dead ? Liveness::dead : Liveness::alive;
}

// Two threads of a process share the file's lock, so an in-process flag comes first.
class MappedPool::NamedLock final : public Pool::Lock {
 public:
  NamedLock(MappedPool* pool, std::uint32_t which) : pool_(pool), which_(which) {}
  ~NamedLock() override {
    if (pool_->check_process().ok()) {
      const std::lock_guard<std::mutex> guard(pool_->mutex_);
      (void)pool_->file_->unlock(kLockBase + which_, 1);
    }
    pool_->lock_taken_[which_].store(false, std::memory_order_release);
  }

 private:
  MappedPool* pool_;
  std::uint32_t which_;
};

Result<std::unique_ptr<Pool::Lock>> MappedPool::lock(std::uint32_t which,
                                                     std::uint32_t timeout_ms) {
  if (which >= kNamedLocks) {
    return error(Code::invalid_argument, "pool {}: there is no lock {}, it must be 0..{}", spec_,
                 which, kNamedLocks - 1);
  }
  PENSTOCK_TRY(check_process());
  const std::uint64_t deadline_ns = platform_.now_ns() + std::uint64_t{timeout_ms} * 1'000'000;
  std::uint64_t sleep_ns = 2'000;
  bool have_flag = false;
  while (true) {
    if (!have_flag) have_flag = !lock_taken_[which].exchange(true, std::memory_order_acquire);
    if (have_flag) {
      Status locked;
      {
        const std::lock_guard<std::mutex> guard(mutex_);
        locked = file_->try_lock(kLockBase + which, 1);
      }
      if (locked.ok()) return std::unique_ptr<Lock>(std::make_unique<NamedLock>(this, which));
      if (locked.code() != Code::busy || platform_.now_ns() >= deadline_ns) {
        lock_taken_[which].store(false, std::memory_order_release);
        if (locked.code() != Code::busy) return locked;
      }
    }
    if (platform_.now_ns() >= deadline_ns) {
      return error(Code::deadline_exceeded, "pool {}: lock {} was held by another {} for {} ms",
                   spec_, which, have_flag ? "process" : "thread of this process", timeout_ms);
    }
    platform_.sleep_ns(sleep_ns);
    sleep_ns = std::min<std::uint64_t>(sleep_ns * 2, 500'000);
  }
}

}  // namespace penstock
