// Who a process is, and whether it still runs, from /proc.
#include "penstock/base/process_linux.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace penstock {
namespace {

// Up to `capacity - 1` bytes of a small file, terminated; false if it cannot be read.
bool read_small(const char* path, char* text, std::size_t capacity) {
  const int fd = ::open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  std::size_t length = 0;
  while (length + 1 < capacity) {
    const ssize_t got = ::read(fd, text + length, capacity - 1 - length);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    length += static_cast<std::size_t>(got);
  }
  ::close(fd);
  text[length] = '\0';
  return length > 0;
}

struct Stat {
  char state = 0;
  std::uint64_t threads = 0;
  std::uint64_t start_time = 0;
};

// The name (field 2) may hold blanks and brackets, so fields are counted from the last ')'.
bool parse_stat(const char* text, Stat* stat) {
  const char* at = std::strrchr(text, ')');
  if (at == nullptr || at[1] != ' ') return false;
  stat->state = at[2];
  at += 2;
  for (int field = 3; field < 22; ++field) {
    at = std::strchr(at, ' ');
    if (at == nullptr) return false;
    ++at;
    if (field + 1 == 20) stat->threads = std::strtoull(at, nullptr, 10);
  }
  stat->start_time = std::strtoull(at, nullptr, 10);
  return true;
}

std::array<std::uint8_t, 16> read_boot_id() {
  std::array<std::uint8_t, 16> id{};
  char text[64];
  if (!read_small("/proc/sys/kernel/random/boot_id", text, sizeof text)) return id;
  std::size_t nibbles = 0;
  for (const char* at = text; *at != '\0' && nibbles < 32; ++at) {
    unsigned value;
    if (*at >= '0' && *at <= '9') {
      value = static_cast<unsigned>(*at - '0');
    } else if (*at >= 'a' && *at <= 'f') {
      value = static_cast<unsigned>(*at - 'a') + 10;
    } else {
      continue;
    }
    auto& byte = id[nibbles / 2];
    byte = static_cast<std::uint8_t>(byte << 4 | value);
    ++nibbles;
  }
  return id;
}

}  // namespace

std::uint64_t this_process_generation() {
  // The handler runs in the child before fork() returns there.
  static std::atomic<std::uint64_t> generation{0};
  static const int registered = ::pthread_atfork(
      nullptr, nullptr, [] { generation.fetch_add(1, std::memory_order_relaxed); });
  PENSTOCK_CHECK(registered == 0, "pthread_atfork: {}", registered);
  return generation.load(std::memory_order_relaxed);
}

ProcessIdentity this_process() {
  // Per thread, because a lock could be held by another thread while this one forks.
  thread_local ProcessIdentity cached;
  const auto pid = static_cast<std::uint32_t>(::getpid());
  // A forked child inherits the parent's copy; its pid tells.
  if (cached.pid == pid) return cached;
  ProcessIdentity fresh;
  fresh.pid = pid;
  fresh.boot_id = read_boot_id();
  char text[1024];
  Stat stat;
  if (read_small("/proc/self/stat", text, sizeof text) && parse_stat(text, &stat)) {
    fresh.start_time = stat.start_time;
  }
  struct stat info;
  if (::stat("/proc/self/ns/pid", &info) == 0) fresh.pid_namespace = info.st_ino;
  cached = fresh;
  return fresh;
}

namespace {

// False if /proc does not tell.
bool read_stat(std::uint32_t pid, Stat* stat) {
  char path[64];
  std::snprintf(path, sizeof path, "/proc/%u/stat", pid);
  char text[1024];
  return read_small(path, text, sizeof text) && parse_stat(text, stat);
}

}  // namespace

char state_of_process(const ProcessIdentity& process) {
  const ProcessIdentity self = this_process();
  if (process.boot_id != self.boot_id || process.pid_namespace != self.pid_namespace) return '?';
  Stat stat;
  if (!read_stat(process.pid, &stat) || stat.start_time != process.start_time) return '?';
  return stat.state;
}

Liveness process_liveness(const ProcessIdentity& process) {
  const ProcessIdentity self = this_process();
  if (process == self) return Liveness::alive;
  if (process.boot_id != self.boot_id || process.pid_namespace != self.pid_namespace) {
    return Liveness::unknown;
  }
  if (process.pid == 0 || process.pid > INT32_MAX) return Liveness::dead;
  Stat stat;
  if (read_stat(process.pid, &stat)) {
    if (stat.start_time != process.start_time) return Liveness::dead;
    // A zombie has ended, only its exit status is still there; unless just its first thread ended.
    const bool ended = (stat.state == 'Z' || stat.state == 'X') && stat.threads <= 1;
    return ended ? Liveness::dead : Liveness::alive;
  }
  // /proc may hide the processes of other users; a signal of 0 only asks.
  if (::kill(static_cast<pid_t>(process.pid), 0) != 0 && errno == ESRCH) return Liveness::dead;
  return Liveness::unknown;
}

}  // namespace penstock
