// Making and removing pools.
//
// While a pool is made, its maker holds the making lock on device 0, and every device begins with a
// marker that names the pool. Device 0's superblock comes last, its magic at the very end, so that
// nobody maps half a pool. A maker that dies leaves markers, and perhaps finished superblocks with
// the marker's pool id on other devices; the next maker recognises both and takes them over. What
// is neither empty nor recognised that way is somebody's data and stays as it is.
#include <algorithm>
#include <cstring>

#include "penstock/descriptor/address.h"
#include "penstock/memory/lease.h"
#include "penstock/memory/pool.h"
#include "penstock/memory/pool_files.h"

namespace penstock {
namespace {

constexpr std::uint64_t kDeviceUnit = std::uint64_t{2} << 20;

struct Candidate {
  std::unique_ptr<File> file;
  bool is_new = false;    // made here: removed again on error
  bool leftover = false;  // of a maker that died: removed on error, too
};

// Removes what was made unless the pool is complete.
class Making {
 public:
  Making(Platform& platform, const PoolConfig& config) : platform_(platform), config_(config) {}
  ~Making() {
    if (!complete_) undo();
  }
  Making(const Making&) = delete;
  Making& operator=(const Making&) = delete;

  Status run();

 private:
  Result<Candidate> open_device(const std::string& path);
  Status take_device_0(const std::string& path);
  Status take_device(const std::string& path, std::uint32_t index);
  Status write_marker(File& file) const;
  Status write_pool();
  void undo();

  Platform& platform_;
  const PoolConfig& config_;
  std::vector<Candidate> devices_;
  PoolId leftover_id_{};
  PoolId pool_id_{};
  bool complete_ = false;
};

Result<Candidate> Making::open_device(const std::string& path) {
  Candidate device;
  // Between the two attempts somebody may make or remove the file; a few turns settle it.
  Status last;
  for (int turn = 0; turn < 10; ++turn) {
    auto made = platform_.open(path, OpenMode::create_new, config_.permissions);
    if (made.ok()) {
      device.file = std::move(made).value();
      device.is_new = true;
      return device;
    }
    if (made.status().code() != Code::already_exists) return made.status();
    auto opened = platform_.open(path, OpenMode::read_write);
    if (opened.ok()) {
      device.file = std::move(opened).value();
      return device;
    }
    last = opened.status();
    if (last.code() != Code::not_found) return last;
  }
  return last;
}

Status already_exists(const std::string& path, const char* what) {
  return error(Code::already_exists, "{} exists and {}; map it, or choose another path", path,
               what);
}

Status Making::take_device_0(const std::string& path) {
  PENSTOCK_ASSIGN(Candidate device, open_device(path));
  const Status locked = device.file->try_lock(kMakingLock, 1);
  if (locked.code() == Code::busy) {
    return already_exists(path, "is being made by another process");
  }
  if (!locked.ok()) {
    devices_.push_back(std::move(device));
    return locked;
  }
  if (platform_.file_identity(path) != device.file->identity()) {
    return already_exists(path, "was made by another process at the same time");
  }
  PENSTOCK_ASSIGN(const std::vector<std::byte> page, read_first_page(*device.file));
  device.leftover = read_making_marker(page.data(), page.size(), &leftover_id_);
  if (!device.leftover && !page.empty()) {
    const bool pool = read_superblock(path, page.data(), page.size(), UINT64_MAX).ok();
    if (pool) return already_exists(path, "is a pool");
    if (!device.file->is_device()) return already_exists(path, "is not empty, and no pool");
  }
  devices_.push_back(std::move(device));
  return Status();
}

Status Making::take_device(const std::string& path, std::uint32_t index) {
  PENSTOCK_ASSIGN(Candidate device, open_device(path));
  PENSTOCK_ASSIGN(const std::vector<std::byte> page, read_first_page(*device.file));
  PoolId marker_id;
  if (read_making_marker(page.data(), page.size(), &marker_id)) {
    device.leftover = true;
  } else if (!page.empty()) {
    const Result<Superblock> block = read_superblock(path, page.data(), page.size(), UINT64_MAX);
    if (block.ok()) {
      device.leftover = devices_[0].leftover && block.value().pool_id == leftover_id_ &&
                        block.value().device_index == index;
      if (!device.leftover) return already_exists(path, "belongs to a pool");
    } else if (!device.file->is_device()) {
      return already_exists(path, "is not empty, and no pool");
    }
  }
  devices_.push_back(std::move(device));
  return Status();
}

Status Making::write_marker(File& file) const {
  std::vector<std::byte> page(kPageBytes);
  std::memcpy(page.data(), &kMakingMagic, sizeof kMakingMagic);
  std::memcpy(page.data() + offsetof(Superblock, pool_id), pool_id_.data(), pool_id_.size());
  return file.write_at(0, page.data(), page.size());
}

// Zeroes [offset, offset + bytes): a device is not zeroed, and leftovers are not, either.
Status zero(File& file, std::uint64_t offset, std::uint64_t bytes) {
  const std::vector<std::byte> zeros(64 << 10);
  while (bytes > 0) {
    const std::uint64_t length = std::min<std::uint64_t>(bytes, zeros.size());
    PENSTOCK_TRY(file.write_at(offset, zeros.data(), length));
    offset += length;
    bytes -= length;
  }
  return Status();
}

Status write_superblock(File& file, const Superblock& block) {
  std::vector<std::byte> page(kPageBytes);
  std::memcpy(page.data(), &block, sizeof block);
  constexpr std::size_t kMagicBytes = sizeof block.magic;
  PENSTOCK_TRY(file.write_at(kMagicBytes, page.data() + kMagicBytes, page.size() - kMagicBytes));
  return file.write_at(0, page.data(), kMagicBytes);
}

Status Making::write_pool() {
  const auto count = static_cast<std::uint32_t>(devices_.size());
  std::vector<std::uint64_t> bytes;
  std::uint64_t total = 0;
  for (Candidate& device : devices_) {
    std::uint64_t size = (config_.bytes_per_device + kDeviceUnit - 1) / kDeviceUnit * kDeviceUnit;
    if (device.file->is_device()) {
      PENSTOCK_ASSIGN(size, device.file->size());
      size = size / kPageBytes * kPageBytes;
      if (size < kMinDeviceBytes) {
        return error(Code::no_space, "{} has {} bytes, but a memory device needs {}",
                     device.file->path(), size, kMinDeviceBytes);
      }
    }
    bytes.push_back(size);
    total += size;
  }
  for (Candidate& device : devices_) PENSTOCK_TRY(write_marker(*device.file));
  for (std::uint32_t index = 0; index < count; ++index) {
    PENSTOCK_TRY(devices_[index].file->reserve(bytes[index]));
  }
  const std::uint32_t slots = region_slots_for(total, config_.hosts);
  for (std::uint32_t index = count; index-- > 0;) {
    const Superblock block =
        make_superblock(pool_id_, index, count, bytes[index], config_.hosts, slots);
    File& file = *devices_[index].file;
    PENSTOCK_TRY(zero(file, kPageBytes, block.data_offset - kPageBytes));
    PENSTOCK_TRY(write_superblock(file, block));
  }
  return Status();
}

Status Making::run() {
  PENSTOCK_ASSIGN(const std::vector<std::string> paths,
                  device_paths(config_.spec, config_.devices));
  for (std::size_t half = 0; half < 2; ++half) {
    const std::uint64_t word = platform_.random();
    std::memcpy(pool_id_.data() + half * 8, &word, 8);
  }
  PENSTOCK_TRY(take_device_0(paths[0]));
  for (std::uint32_t index = 1; index < paths.size(); ++index) {
    PENSTOCK_TRY(take_device(paths[index], index));
  }
  PENSTOCK_TRY(write_pool());
  complete_ = true;
  return Status();
}

void Making::undo() {
  // Device 0 last: until then its lock keeps other makers away.
  for (std::size_t index = devices_.size(); index-- > 0;) {
    Candidate& device = devices_[index];
    if (device.file->is_device()) {
      const std::uint64_t none = 0;
      (void)device.file->write_at(0, &none, sizeof none);
    } else if (device.is_new || device.leftover) {
      (void)platform_.remove(device.file->path());
    } else {
      (void)device.file->reserve(0);  // it was empty before
    }
  }
}

// Who maps the pool, as far as this host can tell: "123, 124", or "" for nobody.
Result<std::string> live_holders(const PoolFiles& pool, const ProcessIdentity& self) {
  const Superblock& first = pool.superblocks[0];
  const File& file = *pool.files[0];
  std::string holders;
  for (std::uint32_t slot = 0; slot < first.hosts * first.lease_slots; ++slot) {
    LeaseRecord record;
    PENSTOCK_ASSIGN(
        const std::size_t length,
        file.read_at(first.lease_offset + slot * sizeof record, &record, sizeof record));
    const auto process = length == sizeof record ? read_lease_record(record) : std::nullopt;
    PENSTOCK_ASSIGN(const bool locked, file.is_locked(kLeaseLocks + slot, 1));
    // Locks do not reach another host. A record of another boot is such a host's, or, where there
    // is only one host, what a crash left.
    const bool elsewhere = process && first.hosts > 1 && process->boot_id != self.boot_id;
    if (!locked && !elsewhere) continue;
    if (!holders.empty()) holders += ", ";
    holders += process ? fmt::format("{}", process->pid) : "one that has just begun";
    if (elsewhere) holders += fmt::format(" of host {}", slot / first.lease_slots);
  }
  return holders;
}

Status remove_device(Platform& platform, File& file) {
  if (!file.is_device()) return platform.remove(file.path());
  const std::uint64_t none = 0;
  return file.write_at(0, &none, sizeof none);
}

// With `force`, a pool whose superblocks disagree: every device that has a pool's or a marker's
// magic.
Status destroy_damaged(Platform& platform, const std::string& spec) {
  PENSTOCK_ASSIGN(std::vector<std::string> paths, device_paths(spec, 1));
  if (paths.size() == 1 && !platform.exists(paths[0])) {
    PENSTOCK_ASSIGN(paths, device_paths(spec, PENSTOCK_MAX_DEVICES));
  }
  std::uint32_t removed = 0;
  for (const std::string& path : paths) {
    if (!platform.exists(path)) continue;
    PENSTOCK_ASSIGN(auto file, platform.open(path, OpenMode::read_write));
    PENSTOCK_ASSIGN(const std::vector<std::byte> page, read_first_page(*file));
    std::uint64_t magic = 0;
    if (page.size() >= sizeof magic) std::memcpy(&magic, page.data(), sizeof magic);
    if (magic != kPoolMagic && magic != kMakingMagic) {
      return error(Code::corrupt, "{} is no pool, so it is not removed", path);
    }
    PENSTOCK_TRY(remove_device(platform, *file));
    ++removed;
  }
  if (removed > 0) return Status();
  return error(Code::not_found, "there is no pool {}", spec);
}

}  // namespace

Status Pool::create(Platform& platform, const PoolConfig& config) {
  if (config.hosts < 1 || config.hosts > kMaxHosts) {
    return error(Code::invalid_argument, "a pool for {} hosts: it must be 1..{}", config.hosts,
                 kMaxHosts);
  }
  if (config.bytes_per_device < kMinDeviceBytes || config.bytes_per_device > kMaxDeviceBytes) {
    return error(Code::invalid_argument,
                 "pool {}: {} bytes per memory device, but it must be {} (2 MiB) to {}",
                 config.spec, config.bytes_per_device, kMinDeviceBytes, kMaxDeviceBytes);
  }
  return Making(platform, config).run();
}

Status Pool::destroy(Platform& platform, const std::string& spec, bool force) {
  Result<PoolFiles> opened = open_pool_files(platform, spec, 0);
  if (!opened.ok()) return force ? destroy_damaged(platform, spec) : opened.status();
  PoolFiles& pool = opened.value();
  // Under the table lock nobody takes a new lease. A forced removal does not wait for a holder.
  constexpr std::uint32_t kPatienceMs = 5000;
  if (!force) {
    PENSTOCK_TRY(pool.files[0]->lock(kLockBase, 1, kPatienceMs));
    PENSTOCK_ASSIGN(const std::string holders, live_holders(pool, platform.self()));
    if (!holders.empty()) {
      return error(Code::busy, "pool {} is mapped by process {}; end it, or force the removal",
                   spec, holders);
    }
  }
  Status first_failure;
  for (auto& file : pool.files) {
    Status removed = remove_device(platform, *file);
    if (!removed.ok() && first_failure.ok()) first_failure = std::move(removed);
  }
  return first_failure;
}

}  // namespace penstock
