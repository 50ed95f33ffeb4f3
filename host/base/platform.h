// The only door to the operating system: clock, files and mappings, cache flushes, waiting,
// randomness, process identity. Production code takes a Platform&, so that it can run inside a
// simulation; Platform::host() is the real one.
#ifndef PENSTOCK_BASE_PLATFORM_H_
#define PENSTOCK_BASE_PLATFORM_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "penstock/base/status.h"

namespace penstock {

// Who holds something. Equal start time and boot id tell a process from a later one with its pid.
struct ProcessIdentity {
  std::array<std::uint8_t, 16> boot_id{};
  std::uint64_t start_time = 0;     // field 22 of /proc/self/stat, clock ticks since boot
  std::uint64_t pid_namespace = 0;  // inode; pids of another namespace mean nothing here
  std::uint32_t pid = 0;
  bool operator==(const ProcessIdentity&) const = default;
};

// unknown: the process is of another boot (perhaps of another host) or of another pid namespace, so
// that its pid says nothing here. Pool::liveness knows more.
enum class Liveness { alive, dead, unknown };

// An open file or device. Closing it drops its locks. Not thread-safe.
class File {
 public:
  virtual ~File() = default;
  virtual const std::string& path() const = 0;
  virtual Result<std::uint64_t> size() const = 0;
  // Makes the file exactly `bytes` long with every page backed by storage, so that no later store
  // can fail. no_space names the need and what the file system has.
  virtual Status reserve(std::uint64_t bytes) = 0;
  virtual Result<std::size_t> read_at(std::uint64_t offset, void* data,
                                      std::size_t bytes) const = 0;
  virtual Status write_at(std::uint64_t offset, const void* data, std::size_t bytes) = 0;
  // Shared, readable and writable, at an address of the system's choice. The mapping outlives the
  // File. Page aligned.
  virtual Result<std::byte*> map(std::uint64_t bytes) = 0;
  // Exclusive open-file-description lock on [offset, offset + bytes); may lie past the end of the
  // file. try_lock returns busy when another description holds it. lock waits up to timeout_ms.
  virtual Status try_lock(std::uint64_t offset, std::uint64_t bytes) = 0;
  // Shared: any number of descriptions may hold it at once, no exclusive one beside them.
  virtual Status try_lock_shared(std::uint64_t offset, std::uint64_t bytes) = 0;
  virtual Status lock(std::uint64_t offset, std::uint64_t bytes, std::uint32_t timeout_ms) = 0;
  virtual Status unlock(std::uint64_t offset, std::uint64_t bytes) = 0;
  // True if any other description holds a lock that overlaps the range.
  virtual Result<bool> is_locked(std::uint64_t offset, std::uint64_t bytes) const = 0;
  // Changes when the path is removed and made again. (device << 32) ^ inode.
  virtual std::uint64_t identity() const = 0;
  // A device DAX node: its size is fixed, its bytes are never zeroed, and it is never removed.
  virtual bool is_device() const { return false; }
};

enum class OpenMode { read_write, read_only, create_new };  // create_new fails if it exists

// Thread-safe.
class Platform {
 public:
  virtual ~Platform() = default;
  static Platform& host();

  virtual std::uint64_t now_ns() = 0;  // monotonic
  virtual std::uint64_t random() = 0;  // seeded by the system; not for cryptography
  virtual unsigned cpu_count() = 0;    // that this process may run on

  // One turn of a poll loop: a pause instruction, a yield or a short sleep.
  virtual void pause() = 0;
  virtual void yield() = 0;
  virtual void sleep_ns(std::uint64_t ns) = 0;

  virtual Result<std::unique_ptr<File>> open(const std::string& path, OpenMode mode,
                                             unsigned permissions = 0600) = 0;
  virtual Status remove(const std::string& path) = 0;
  virtual bool exists(const std::string& path) = 0;
  // Identity of what the path names now (see File::identity), 0 if nothing.
  virtual std::uint64_t file_identity(const std::string& path) = 0;
  virtual Status unmap(void* address, std::uint64_t bytes) = 0;

  virtual ProcessIdentity self() = 0;  // right in a forked child, too
  // Grows in every forked child; a load, so that it can be compared at every call.
  virtual std::uint64_t process_generation() = 0;
  virtual Liveness liveness(const ProcessIdentity& process) = 0;
  // The state of a process that lives, as a letter of proc(5): 'T' or 't' is stopped, 'R' and 'S'
  // run or wait. '?' when it has ended or is of another boot or pid namespace, or hidden.
  virtual char process_state(const ProcessIdentity&) { return '?'; }

  // Cache control; ranges are widened to whole lines. write_back leaves lines in the cache or not,
  // as the processor likes; it is ordered by store_fence. invalidate writes a dirty line back
  // first (clflushopt or clflush, never clwb), and is ordered against later loads by full_fence.
  virtual void write_back(const void* data, std::size_t bytes) = 0;
  virtual void invalidate(const void* data, std::size_t bytes) = 0;
  virtual void store_fence() = 0;
  virtual void full_fence() = 0;
};

// How a waiting loop spends its turns: spins briefly when every waiter can have a CPU, then yields;
// yields at once when there are more waiters than CPUs; sleeps after about a millisecond of
// nothing, so that a long wait does not burn a core.
class Backoff {
 public:
  Backoff(Platform& platform, bool oversubscribed)
      : platform_(&platform), spins_left_(oversubscribed ? 0 : kSpins) {}
  void turn();

 private:
  static constexpr std::uint32_t kSpins = 2000;
  Platform* platform_;
  std::uint32_t spins_left_;
  std::uint32_t yields_ = 0;
  std::uint64_t yielding_since_ns_ = 0;
  std::uint64_t sleep_ns_ = 0;  // 0: not sleeping yet
};

}  // namespace penstock
#endif
