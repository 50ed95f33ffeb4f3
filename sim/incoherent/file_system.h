// The files of a simulated world: one name space that all hosts see, with locks that belong to an
// open description and reach as far as one machine.
#ifndef PENSTOCK_SIM_INCOHERENT_FILE_SYSTEM_H_
#define PENSTOCK_SIM_INCOHERENT_FILE_SYSTEM_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "penstock/base/platform.h"
#include "penstock/sim/incoherent/cache.h"

namespace penstock::sim {

// A lock of an open description. Any [begin, end), as large as an offset can be.
struct RangeLock {
  std::uint32_t machine = 0;
  std::uint64_t description = 0;
  bool shared = false;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

// What a path names.
struct Inode {
  std::uint64_t identity = 0;
  std::uint64_t bytes = 0;
  std::shared_ptr<DeviceMemory> memory;  // null while empty
  std::uint32_t mappings = 0;
  std::vector<RangeLock> locks;
};

class FileSystem {
 public:
  Result<std::shared_ptr<Inode>> open(const std::string& path, OpenMode mode);
  Status remove(const std::string& path);
  std::uint64_t identity(const std::string& path) const;
  std::uint64_t next_description() { return ++descriptions_; }
  // Makes the file this long; the new bytes are zero. unsupported while it is mapped.
  Status resize(const std::string& path, Inode& inode, std::uint64_t bytes);
  bool is_empty() const { return files_.empty(); }

  // Locks. busy when another description of the machine holds a conflicting one.
  static Status lock(const std::string& path, Inode& inode, const RangeLock& wanted);
  static void unlock(Inode& inode, const RangeLock& range);
  static bool is_locked(const Inode& inode, const RangeLock& range);
  static void unlock_all(Inode& inode, std::uint64_t description);

 private:
  std::map<std::string, std::shared_ptr<Inode>> files_;
  std::uint64_t inodes_ = 0;
  std::uint32_t devices_ = 0;
  std::uint64_t descriptions_ = 0;
};

}  // namespace penstock::sim
#endif
