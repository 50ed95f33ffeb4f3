#include "penstock/sim/incoherent/file_system.h"

#include <algorithm>

namespace penstock::sim {
namespace {

bool overlaps(const RangeLock& a, const RangeLock& b) { return a.begin < b.end && b.begin < a.end; }

bool conflicts(const RangeLock& held, const RangeLock& wanted) {
  return held.machine == wanted.machine && held.description != wanted.description &&
         overlaps(held, wanted) && !(held.shared && wanted.shared);
}

}  // namespace

Result<std::shared_ptr<Inode>> FileSystem::open(const std::string& path, OpenMode mode) {
  const auto found = files_.find(path);
  if (mode == OpenMode::create_new) {
    if (found != files_.end()) {
      return error(Code::already_exists, "{}: creating failed: the file exists", path);
    }
    auto inode = std::make_shared<Inode>();
    inode->identity = ++inodes_;
    files_[path] = inode;
    return inode;
  }
  if (found == files_.end()) {
    return error(Code::not_found, "{}: opening failed: there is no such file", path);
  }
  return found->second;
}

Status FileSystem::remove(const std::string& path) {
  if (files_.erase(path) > 0) return Status();
  return error(Code::not_found, "{}: removing failed: there is no such file", path);
}

std::uint64_t FileSystem::identity(const std::string& path) const {
  const auto found = files_.find(path);
  return found == files_.end() ? 0 : found->second->identity;
}

Status FileSystem::resize(const std::string& path, Inode& inode, std::uint64_t bytes) {
  if (bytes == inode.bytes) return Status();
  if (inode.mappings > 0) {
    return error(Code::unsupported, "{}: a file of {} bytes is resized to {} while it is mapped",
                 path, inode.bytes, bytes);
  }
  std::shared_ptr<DeviceMemory> memory;
  if (bytes > 0) {
    memory = std::make_shared<DeviceMemory>(devices_++, bytes);
    const std::uint64_t kept = std::min(bytes, inode.bytes);
    for (std::uint64_t line = 0; line * kLine < kept; ++line) {
      memory->write_line(line, inode.memory->line(line));
    }
  }
  inode.memory = std::move(memory);
  inode.bytes = bytes;
  return Status();
}

Status FileSystem::lock(const std::string& path, Inode& inode, const RangeLock& wanted) {
  for (const RangeLock& held : inode.locks) {
    if (conflicts(held, wanted)) {
      return error(Code::busy, "{}: the lock at {:#x} is held by another process", path,
                   wanted.begin);
    }
  }
  unlock(inode, wanted);  // a lock of one's own is replaced
  inode.locks.push_back(wanted);
  return Status();
}

void FileSystem::unlock(Inode& inode, const RangeLock& range) {
  std::vector<RangeLock> kept;
  for (const RangeLock& held : inode.locks) {
    if (held.description != range.description || !overlaps(held, range)) {
      kept.push_back(held);
      continue;
    }
    RangeLock part = held;
    part.end = range.begin;
    if (held.begin < range.begin) kept.push_back(part);
    part = held;
    part.begin = range.end;
    if (range.end < held.end) kept.push_back(part);
  }
  inode.locks = std::move(kept);
}

bool FileSystem::is_locked(const Inode& inode, const RangeLock& range) {
  return std::any_of(inode.locks.begin(), inode.locks.end(), [&](const RangeLock& held) {
    return held.machine == range.machine && held.description != range.description &&
           overlaps(held, range);
  });
}

void FileSystem::unlock_all(Inode& inode, std::uint64_t description) {
  std::erase_if(inode.locks,
                [&](const RangeLock& held) { return held.description == description; });
}

}  // namespace penstock::sim
