#include "penstock/base/file_linux.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "penstock/base/memory_linux.h"

namespace penstock {
namespace {

std::uint64_t identity_of(const struct stat& info) {
  return (static_cast<std::uint64_t>(info.st_dev) << 32) ^ info.st_ino;
}

// strerror is not thread-safe, and the GNU variant of strerror_r may return static text.
std::string errno_text(int number) {
  char buffer[128];
  return ::strerror_r(number, buffer, sizeof buffer);
}

Status errno_status(const std::string& path, const char* what, int number) {
  return error(code_of_errno(number), "{}: {} failed: {}", path, what, errno_text(number));
}

std::string readable(std::uint64_t bytes) {
  return bytes >= (1u << 20)
             ? fmt::format("{} bytes ({:.1f} MiB)", bytes, static_cast<double>(bytes) / (1u << 20))
             : fmt::format("{} bytes", bytes);
}

class LinuxFile final : public File {
 public:
  LinuxFile(Platform& platform, std::string path, int fd, const struct stat& info)
      : platform_(platform),
        path_(std::move(path)),
        fd_(fd),
        identity_(identity_of(info)),
        is_device_(S_ISCHR(info.st_mode)),
        device_number_(info.st_rdev),
        huge_pages_(S_ISREG(info.st_mode) ? huge_pages_of(path_) : "never"),
        is_hugetlbfs_(huge_pages_ == "hugetlbfs") {}
  ~LinuxFile() override {
    if (window_ != nullptr) ::munmap(window_, window_bytes_);
    ::close(fd_);
  }
  LinuxFile(const LinuxFile&) = delete;
  LinuxFile& operator=(const LinuxFile&) = delete;

  const std::string& path() const override { return path_; }
  std::uint64_t identity() const override { return identity_; }
  bool is_device() const override { return is_device_; }

  Result<std::uint64_t> size() const override {
    if (is_device_) return device_size();
    struct stat info;
    if (::fstat(fd_, &info) != 0) return errno_status(path_, "fstat", errno);
    return static_cast<std::uint64_t>(info.st_size);
  }

  Status reserve(std::uint64_t bytes) override;
  Result<std::size_t> read_at(std::uint64_t offset, void* data, std::size_t bytes) const override;
  Status write_at(std::uint64_t offset, const void* data, std::size_t bytes) override;

  Result<std::byte*> map(std::uint64_t bytes) override {
    if (bytes == 0) return error(Code::invalid_argument, "{}: a mapping of 0 bytes", path_);
    void* address = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
    if (address == MAP_FAILED) {
      return errno_status(path_, fmt::format("mapping {}", readable(bytes)).c_str(), errno);
    }
    // A wish: without huge pages everything works, too.
    if (huge_pages_ != "never" && !is_hugetlbfs_) ::madvise(address, bytes, MADV_HUGEPAGE);
    return static_cast<std::byte*>(address);
  }

  Status try_lock(std::uint64_t offset, std::uint64_t bytes) override {
    return set_lock(offset, bytes, F_WRLCK);
  }
  Status try_lock_shared(std::uint64_t offset, std::uint64_t bytes) override {
    return set_lock(offset, bytes, F_RDLCK);
  }
  Status lock(std::uint64_t offset, std::uint64_t bytes, std::uint32_t timeout_ms) override;
  Status unlock(std::uint64_t offset, std::uint64_t bytes) override {
    return set_lock(offset, bytes, F_UNLCK);
  }
  Result<bool> is_locked(std::uint64_t offset, std::uint64_t bytes) const override {
    struct flock range = make_range(offset, bytes, F_WRLCK);
    if (::fcntl(fd_, F_OFD_GETLK, &range) != 0) return errno_status(path_, "F_OFD_GETLK", errno);
    return range.l_type != F_UNLCK;
  }

 private:
  static struct flock make_range(std::uint64_t offset, std::uint64_t bytes, short type) {
    struct flock range {};
    range.l_type = type;
    range.l_whence = SEEK_SET;
    range.l_start = static_cast<off_t>(offset);
    range.l_len = static_cast<off_t>(bytes);
    return range;
  }
  Status set_lock(std::uint64_t offset, std::uint64_t bytes, short type) {
    struct flock range = make_range(offset, bytes, type);
    int failed;
    do {
      failed = ::fcntl(fd_, F_OFD_SETLK, &range);
    } while (failed != 0 && errno == EINTR);
    if (failed == 0) return Status();
    if (errno == EAGAIN || errno == EACCES) {
      return error(Code::busy, "{}: the lock at {:#x} is held by another process", path_, offset);
    }
    return errno_status(path_, "F_OFD_SETLK", errno);
  }
  Result<std::uint64_t> device_size() const;
  Status check_room(std::uint64_t bytes, const struct stat& info) const;
  Status no_room(std::uint64_t need, std::uint64_t free, std::uint64_t total) const;
  // A device DAX node cannot be read or written, only mapped; a file of huge pages cannot be
  // written.
  bool is_mapped_only() const { return is_device_ || is_hugetlbfs_; }
  Result<std::byte*> window() const;
  void populate_with_huge_pages(std::uint64_t bytes);

  Platform& platform_;
  const std::string path_;
  const int fd_;
  const std::uint64_t identity_;
  const bool is_device_;
  const dev_t device_number_;
  const std::string huge_pages_;  // see huge_pages_of
  const bool is_hugetlbfs_;
  mutable std::byte* window_ = nullptr;
  mutable std::uint64_t window_bytes_ = 0;
};

Result<std::uint64_t> LinuxFile::device_size() const {
  const std::string path =
      fmt::format("/sys/dev/char/{}:{}/size", ::major(device_number_), ::minor(device_number_));
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  char text[32] = {};
  const ssize_t got = fd < 0 ? -1 : ::read(fd, text, sizeof text - 1);
  if (fd >= 0) ::close(fd);
  const std::uint64_t bytes = got > 0 ? std::strtoull(text, nullptr, 10) : 0;
  if (bytes == 0) {
    return error(Code::invalid_argument,
                 "{} is a device without a size: a memory device is a file or a device DAX node",
                 path_);
  }
  return bytes;
}

Status LinuxFile::no_room(std::uint64_t need, std::uint64_t free, std::uint64_t total) const {
  const bool shm = path_.rfind("/dev/shm/", 0) == 0;
  return error(Code::no_space, "{}: needs {}, but its file system has {} free of {}; {}", path_,
               readable(need), readable(free), readable(total),
               shm ? "make the pool smaller, or /dev/shm larger (mount -o remount,size=SIZE "
                     "/dev/shm; for a container --shm-size=SIZE)"
                   : "make the pool smaller, or free space there");
}

Status LinuxFile::check_room(std::uint64_t bytes, const struct stat& info) const {
  // Growing past the limit would raise SIGXFSZ.
  struct rlimit limit;
  if (::getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
      bytes > limit.rlim_cur) {
    return error(Code::no_space,
                 "{}: needs {}, but this process may write files of {} only "
                 "(ulimit -f)",
                 path_, readable(bytes), readable(limit.rlim_cur));
  }
  struct statvfs room;
  if (::fstatvfs(fd_, &room) != 0) return Status();  // the reservation itself will tell
  const std::uint64_t block = room.f_frsize;
  const std::uint64_t total = room.f_blocks * block;
  const std::uint64_t free = room.f_bavail * block;
  const std::uint64_t held = static_cast<std::uint64_t>(info.st_blocks) * 512;
  // A tmpfs without a limit says that it has no blocks at all.
  if (total > 0 && bytes > held && bytes - held > free) return no_room(bytes - held, free, total);
  return Status();
}

Status LinuxFile::reserve(std::uint64_t bytes) {
  if (is_device_) {
    PENSTOCK_ASSIGN(const std::uint64_t has, device_size());
    if (bytes <= has) return Status();
    return error(Code::no_space, "{}: needs {}, but the device has {}", path_, readable(bytes),
                 readable(has));
  }
  struct stat info;
  if (::fstat(fd_, &info) != 0) return errno_status(path_, "fstat", errno);
  const auto size = static_cast<std::uint64_t>(info.st_size);
  if (size == bytes && static_cast<std::uint64_t>(info.st_blocks) * 512 >= bytes) return Status();
  if (bytes > 0) {
    PENSTOCK_TRY(check_room(bytes, info));
    if (size == 0 && huge_pages_ == "advise") populate_with_huge_pages(bytes);
    int failure = 0;
    do {
      failure = ::fallocate(fd_, 0, 0, static_cast<off_t>(bytes)) == 0 ? 0 : errno;
    } while (failure == EINTR);
    // The emulation writes into each block, so it must not run where others may write, too.
    if (failure == EOPNOTSUPP && size == 0) {
      failure = ::posix_fallocate(fd_, 0, static_cast<off_t>(bytes));
    }
    if (failure == ENOSPC || failure == EDQUOT) {
      struct statvfs room {};
      ::fstatvfs(fd_, &room);
      if (size == 0 && ::ftruncate(fd_, 0) != 0) return errno_status(path_, "ftruncate", errno);
      return no_room(bytes, room.f_bavail * room.f_frsize, room.f_blocks * room.f_frsize);
    }
    if (failure != 0) {
      return errno_status(path_, fmt::format("reserving {}", readable(bytes)).c_str(), failure);
    }
  }
  if (size > bytes && ::ftruncate(fd_, static_cast<off_t>(bytes)) != 0) {
    return errno_status(path_, "ftruncate", errno);
  }
  return Status();
}

// Where huge pages have to be asked for, fallocate gives small ones: they are made through a
// mapping that asks. Pages that this cannot make are left to fallocate, which says what is wrong.
void LinuxFile::populate_with_huge_pages(std::uint64_t bytes) {
#ifdef MADV_POPULATE_WRITE
  if (::ftruncate(fd_, static_cast<off_t>(bytes)) != 0) return;
  void* const address = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
  if (address == MAP_FAILED) return;
  if (::madvise(address, bytes, MADV_HUGEPAGE) == 0) ::madvise(address, bytes, MADV_POPULATE_WRITE);
  ::munmap(address, bytes);
#endif
}

Result<std::byte*> LinuxFile::window() const {
  PENSTOCK_ASSIGN(const std::uint64_t bytes, size());
  if (window_ != nullptr && window_bytes_ != bytes) {
    ::munmap(window_, window_bytes_);
    window_ = nullptr;
    window_bytes_ = 0;
  }
  if (window_ == nullptr && bytes > 0) {
    // A node that was opened for reading only can still be looked at.
    void* address = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
    if (address == MAP_FAILED) address = ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, fd_, 0);
    if (address == MAP_FAILED) return errno_status(path_, "mapping it", errno);
    window_ = static_cast<std::byte*>(address);
    window_bytes_ = bytes;
  }
  return window_;
}

Result<std::size_t> LinuxFile::read_at(std::uint64_t offset, void* data, std::size_t bytes) const {
  if (is_mapped_only()) {
    PENSTOCK_ASSIGN(const std::byte* memory, window());
    if (offset >= window_bytes_) return std::size_t{0};
    const std::size_t length = std::min<std::uint64_t>(bytes, window_bytes_ - offset);
    platform_.invalidate(memory + offset, length);
    platform_.full_fence();
    std::memcpy(data, memory + offset, length);
    return length;
  }
  std::size_t done = 0;
  while (done < bytes) {
    const ssize_t got = ::pread(fd_, static_cast<char*>(data) + done, bytes - done,
                                static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno_status(path_, "reading", errno);
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  return done;
}

Status LinuxFile::write_at(std::uint64_t offset, const void* data, std::size_t bytes) {
  if (is_mapped_only()) {
    PENSTOCK_ASSIGN(std::byte * memory, window());
    if (offset > window_bytes_ || bytes > window_bytes_ - offset) {
      return error(Code::out_of_range, "{}: writing {} bytes at {} passes the end at {}", path_,
                   bytes, offset, window_bytes_);
    }
    std::memcpy(memory + offset, data, bytes);
    platform_.write_back(memory + offset, bytes);
    platform_.store_fence();
    return Status();
  }
  std::size_t done = 0;
  while (done < bytes) {
    const ssize_t put = ::pwrite(fd_, static_cast<const char*>(data) + done, bytes - done,
                                 static_cast<off_t>(offset + done));
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return errno_status(path_, "writing", errno);
    done += static_cast<std::size_t>(put);
  }
  return Status();
}

Status LinuxFile::lock(std::uint64_t offset, std::uint64_t bytes, std::uint32_t timeout_ms) {
  // The blocking form of the call has no deadline, so this one polls: holders are brief.
  const std::uint64_t deadline_ns = platform_.now_ns() + std::uint64_t{timeout_ms} * 1'000'000;
  std::uint64_t sleep_ns = 2'000;
  while (true) {
    Status status = try_lock(offset, bytes);
    if (status.code() != Code::busy) return status;
    if (platform_.now_ns() >= deadline_ns) {
      return error(Code::deadline_exceeded,
                   "{}: the lock at {:#x} was held by another process for {} ms", path_, offset,
                   timeout_ms);
    }
    platform_.sleep_ns(sleep_ns);
    sleep_ns = std::min<std::uint64_t>(sleep_ns * 2, 500'000);
  }
}

}  // namespace

Code code_of_errno(int number) {
  switch (number) {
    case 0:
      return Code::ok;
    case ENOENT:
    case ENOTDIR:
    case ENXIO:
    case ENODEV:
      return Code::not_found;
    case EEXIST:
      return Code::already_exists;
    case EACCES:
    case EPERM:
    case EROFS:
      return Code::permission_denied;
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
    case ENOMEM:
      return Code::no_space;
    case EINVAL:
    case EISDIR:
    case ENAMETOOLONG:
    case ELOOP:
      return Code::invalid_argument;
    case EBUSY:
    case ETXTBSY:
    case EAGAIN:
      return Code::busy;
    case EOPNOTSUPP:
    case ENOSYS:
      return Code::unsupported;
    default:
      return Code::io_error;
  }
}

Result<std::unique_ptr<File>> open_file(Platform& platform, const std::string& path, OpenMode mode,
                                        unsigned permissions) {
  // O_NONBLOCK, so that a named pipe does not hold up the call; it changes nothing for files.
  int flags = O_CLOEXEC | O_NOCTTY | O_NONBLOCK;
  flags |= mode == OpenMode::read_only ? O_RDONLY : O_RDWR;
  if (mode == OpenMode::create_new) flags |= O_CREAT | O_EXCL;
  int fd;
  do {
    fd = ::open(path.c_str(), flags, permissions);
  } while (fd < 0 && errno == EINTR);
  if (fd < 0) {
    return errno_status(path, mode == OpenMode::create_new ? "creating" : "opening", errno);
  }
  struct stat info;
  if (::fstat(fd, &info) != 0) {
    const int number = errno;
    ::close(fd);
    return errno_status(path, "fstat", number);
  }
  if (!S_ISREG(info.st_mode) && !S_ISCHR(info.st_mode)) {
    ::close(fd);
    return error(Code::invalid_argument, "{} is neither a file nor a device DAX node", path);
  }
  return std::unique_ptr<File>(std::make_unique<LinuxFile>(platform, path, fd, info));
}

Status remove_file(const std::string& path) {
  if (::unlink(path.c_str()) == 0) return Status();
  return errno_status(path, "removing", errno);
}

std::uint64_t identity_of_path(const std::string& path) {
  struct stat info;
  return ::stat(path.c_str(), &info) == 0 ? identity_of(info) : 0;
}

Status unmap_memory(void* address, std::uint64_t bytes) {
  if (::munmap(address, bytes) == 0) return Status();
  return error(Code::invalid_argument, "unmapping {} bytes at {} failed: {}", bytes, address,
               errno_text(errno));
}

}  // namespace penstock
