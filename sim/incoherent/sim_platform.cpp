#include "penstock/sim/incoherent/sim_platform.h"

#include <algorithm>
#include <cstring>

namespace penstock::sim {

class SimFile final : public File {
 public:
  SimFile(SimPlatform& platform, std::string path, std::shared_ptr<Inode> inode,
          std::uint64_t description)
      : platform_(platform),
        path_(std::move(path)),
        inode_(std::move(inode)),
        description_(description) {
    process().descriptions.emplace_back(inode_, description_);
  }
  ~SimFile() override {
    if (!step(Event::unlock, 0, 0)) return;
    FileSystem::unlock_all(*inode_, description_);
    std::erase_if(process().descriptions,
                  [&](const auto& each) { return each.second == description_; });
  }

  const std::string& path() const override { return path_; }
  std::uint64_t identity() const override { return inode_->identity; }
  Result<std::uint64_t> size() const override { return inode_->bytes; }
  Status reserve(std::uint64_t bytes) override {
    if (!step(Event::file, 0, bytes)) return Status();
    return world().files_.resize(path_, *inode_, bytes);
  }
  Result<std::size_t> read_at(std::uint64_t offset, void* data, std::size_t bytes) const override;
  Status write_at(std::uint64_t offset, const void* data, std::size_t bytes) override;
  Result<std::byte*> map(std::uint64_t bytes) override;

  Status try_lock(std::uint64_t offset, std::uint64_t bytes) override {
    return set_lock(offset, bytes, false);
  }
  Status try_lock_shared(std::uint64_t offset, std::uint64_t bytes) override {
    return set_lock(offset, bytes, true);
  }
  Status lock(std::uint64_t offset, std::uint64_t bytes, std::uint32_t timeout_ms) override;
  Status unlock(std::uint64_t offset, std::uint64_t bytes) override {
    if (step(Event::unlock, offset, bytes)) FileSystem::unlock(*inode_, range(offset, bytes));
    return Status();
  }
  Result<bool> is_locked(std::uint64_t offset, std::uint64_t bytes) const override {
    if (!step(Event::lock, offset, bytes)) return false;
    return FileSystem::is_locked(*inode_, range(offset, bytes));
  }

 private:
  World& world() const { return platform_.world_; }
  Process& process() const { return platform_.process_; }
  bool step(Event event, std::uint64_t offset, std::uint64_t bytes) const {
    return world().step(process(), event, inode_->identity, offset, bytes);
  }
  RangeLock range(std::uint64_t offset, std::uint64_t bytes) const {
    return {platform_.host().machine, description_, false, offset, offset + bytes};
  }
  Status set_lock(std::uint64_t offset, std::uint64_t bytes, bool shared) {
    if (!step(Event::lock, offset, bytes)) return Status();
    RangeLock wanted = range(offset, bytes);
    wanted.shared = shared;
    return FileSystem::lock(path_, *inode_, wanted);
  }

  SimPlatform& platform_;
  const std::string path_;
  const std::shared_ptr<Inode> inode_;
  const std::uint64_t description_;
};

Status SimFile::lock(std::uint64_t offset, std::uint64_t bytes, std::uint32_t timeout_ms) {
  const std::uint64_t deadline_ns = platform_.now_ns() + std::uint64_t{timeout_ms} * 1'000'000;
  while (true) {
    Status status = try_lock(offset, bytes);
    if (status.code() != Code::busy) return status;
    if (platform_.now_ns() >= deadline_ns) {
      return error(Code::deadline_exceeded,
                   "{}: the lock at {:#x} was held by another process for {} ms", path_, offset,
                   timeout_ms);
    }
    platform_.sleep_ns(100'000);
  }
}

// Reading and writing a device drops and writes back its lines in this host's cache, as on device
// DAX.
Result<std::size_t> SimFile::read_at(std::uint64_t offset, void* data, std::size_t bytes) const {
  const bool lives = step(Event::file, offset, bytes);
  if (offset >= inode_->bytes) return std::size_t{0};
  const std::size_t length = std::min<std::uint64_t>(bytes, inode_->bytes - offset);
  if (length == 0) return std::size_t{0};
  CachedDevice& device = platform_.host().cache.of(inode_->memory);
  for (std::uint64_t line = offset / kLine; lives && line * kLine < offset + length; ++line) {
    device.drop(line);
  }
  std::memcpy(data, device.data() + offset, length);
  return length;
}

Status SimFile::write_at(std::uint64_t offset, const void* data, std::size_t bytes) {
  if (!step(Event::file, offset, bytes)) return Status();
  if (offset + bytes > inode_->bytes) {
    PENSTOCK_TRY(world().files_.resize(path_, *inode_, offset + bytes));
  }
  if (bytes == 0) return Status();
  CachedDevice& device = platform_.host().cache.of(inode_->memory);
  const std::uint64_t first = offset / kLine;
  const std::uint64_t last = (offset + bytes - 1) / kLine;
  device.drop(first);
  device.drop(last);
  std::memcpy(device.data() + offset, data, bytes);
  for (std::uint64_t line = first; line <= last; ++line) device.write(line);
  return Status();
}

Result<std::byte*> SimFile::map(std::uint64_t bytes) {
  step(Event::map, 0, bytes);
  if (bytes == 0 || bytes > inode_->bytes) {
    return error(Code::invalid_argument, "{}: a mapping of {} bytes of a file of {}", path_, bytes,
                 inode_->bytes);
  }
  CachedDevice& device = platform_.host().cache.of(inode_->memory);
  ++inode_->mappings;
  platform_.mappings_.push_back({device.data(), inode_});
  return device.data();
}

std::uint64_t SimPlatform::now_ns() {
  const bool lives = world_.step(process_, Event::now);
  return lives ? world_.clock_ns_ : process_.ghost_ns;
}

std::uint64_t SimPlatform::random() {
  world_.step(process_, Event::random);
  return world_.numbers_.next();
}

void SimPlatform::pause() { world_.step(process_, Event::pause); }
void SimPlatform::yield() { world_.step(process_, Event::yield); }

void SimPlatform::sleep_ns(std::uint64_t ns) {
  if (!world_.step(process_, Event::sleep, 0, 0, ns)) return;
  world_.sleep_until(process_, world_.clock_ns_ + ns);
}

Result<std::unique_ptr<File>> SimPlatform::open(const std::string& path, OpenMode mode, unsigned) {
  if (!world_.step(process_, Event::open)) {
    return error(Code::io_error, "{}: the process that opens it is dead", path);
  }
  PENSTOCK_ASSIGN(std::shared_ptr<Inode> inode, world_.files_.open(path, mode));
  return std::unique_ptr<File>(
      std::make_unique<SimFile>(*this, path, std::move(inode), world_.files_.next_description()));
}

Status SimPlatform::remove(const std::string& path) {
  if (!world_.step(process_, Event::file)) return Status();
  return world_.files_.remove(path);
}

std::uint64_t SimPlatform::file_identity(const std::string& path) {
  world_.step(process_, Event::identity);
  return world_.files_.identity(path);
}

Status SimPlatform::unmap(void* address, std::uint64_t bytes) {
  world_.step(process_, Event::unmap, 0, 0, bytes);
  const auto found = std::find_if(mappings_.begin(), mappings_.end(), [&](const Mapping& mapping) {
    return mapping.address == address;
  });
  if (found == mappings_.end()) {
    return error(Code::invalid_argument, "unmapping {} bytes where nothing is mapped", bytes);
  }
  --found->inode->mappings;
  mappings_.erase(found);
  return Status();
}

Liveness SimPlatform::liveness(const ProcessIdentity& process) {
  if (!world_.step(process_, Event::identity)) return Liveness::unknown;
  return world_.liveness(process_, process);
}

CachedDevice* SimPlatform::place(const void* data, std::size_t* bytes,
                                 std::uint64_t* offset) const {
  CachedDevice* device = *bytes == 0 ? nullptr : host().cache.find(data, offset);
  if (device != nullptr) *bytes = std::min<std::uint64_t>(*bytes, device->bytes() - *offset);
  return device;
}

void SimPlatform::write_back(const void* data, std::size_t bytes) {
  std::uint64_t offset = 0;
  CachedDevice* device = place(data, &bytes, &offset);
  const std::uint32_t number = device == nullptr ? 0 : device->memory().number();
  if (!world_.step(process_, Event::write_back, number, offset, bytes)) return;
  if (is_dropped(Primitive::write_back, __builtin_return_address(0))) return;
  if (device != nullptr) world_.write_back(process_, *device, offset, bytes);
}

void SimPlatform::invalidate(const void* data, std::size_t bytes) {
  std::uint64_t offset = 0;
  CachedDevice* device = place(data, &bytes, &offset);
  const std::uint32_t number = device == nullptr ? 0 : device->memory().number();
  if (!world_.step(process_, Event::invalidate, number, offset, bytes)) return;
  if (is_dropped(Primitive::invalidate, __builtin_return_address(0))) return;
  if (device != nullptr) world_.invalidate(process_, *device, offset, bytes);
}

void SimPlatform::store_fence() {
  if (!world_.step(process_, Event::store_fence)) return;
  if (is_dropped(Primitive::store_fence, __builtin_return_address(0))) return;
  world_.settle(process_, false);
}

void SimPlatform::full_fence() {
  if (!world_.step(process_, Event::full_fence)) return;
  if (is_dropped(Primitive::full_fence, __builtin_return_address(0))) return;
  world_.settle(process_, true);
}

}  // namespace penstock::sim
