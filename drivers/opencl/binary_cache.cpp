#include "penstock/drivers/opencl/binary_cache.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "penstock/base/checksum.h"
#include "penstock/base/env.h"
#include "penstock/base/log.h"

namespace penstock::opencl {
namespace {

constexpr char kMagic[8] = {'P', 's', 't', 'k', 'C', 'L', 'b', '1'};
constexpr std::uint64_t kMostBytes = std::uint64_t{256} << 20;

struct Header {
  char magic[8];
  std::uint32_t checksum;
  std::uint32_t identity_bytes;
  std::uint64_t binary_bytes;
};
static_assert(sizeof(Header) == 24);

std::uint32_t checksum(const Header& header, const std::string& identity, const void* binary) {
  std::uint32_t sum = crc32c(&header.identity_bytes, sizeof(header.identity_bytes));
  sum = crc32c(&header.binary_bytes, sizeof(header.binary_bytes), sum);
  sum = crc32c(identity.data(), identity.size(), sum);
  return crc32c(binary, header.binary_bytes, sum);
}

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  const int fd_;
};

bool read_all(int fd, void* data, std::size_t bytes) {
  auto* at = static_cast<char*>(data);
  while (bytes > 0) {
    const ssize_t got = ::read(fd, at, bytes);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    at += got;
    bytes -= static_cast<std::size_t>(got);
  }
  return true;
}

bool write_all(int fd, const void* data, std::size_t bytes) {
  const auto* at = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t put = ::write(fd, at, bytes);
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return false;
    at += put;
    bytes -= static_cast<std::size_t>(put);
  }
  return true;
}

Status cannot(const std::string& what, const std::string& path, int number) {
  const Code code = number == EACCES || number == EPERM || number == EROFS ? Code::permission_denied
                    : number == ENOSPC || number == EDQUOT                 ? Code::no_space
                                                                           : Code::io_error;
  return error(code, "cannot {} {}: {}", what, path,
               std::error_code(number, std::generic_category()).message());
}

}  // namespace

std::uint64_t fnv1a(const std::string& text) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

std::string BinaryCache::users_folder() {
  if (const auto xdg = env::foreign("XDG_CACHE_HOME"); xdg && xdg->starts_with('/'))
    return *xdg + "/penstock/opencl";
  if (const auto home = env::foreign("HOME"); home && home->starts_with('/'))
    return *home + "/.cache/penstock/opencl";
  return {};
}

std::string BinaryCache::path_of(const std::string& identity) const {
  return fmt::format("{}/{:016x}.clbin", folder_, fnv1a(identity));
}

std::optional<std::vector<unsigned char>> BinaryCache::load(const std::string& identity) const {
  if (folder_.empty()) return std::nullopt;
  const std::string path = path_of(identity);
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (file.get() < 0) return std::nullopt;
  const auto ignored = [&](const char* why) {
    log::info("opencl: {} is not used: {}", path, why);
    return std::nullopt;
  };
  struct stat found {};
  if (::fstat(file.get(), &found) != 0 || !S_ISREG(found.st_mode)) return ignored("it is no file");
  // What it holds is run as code.
  if (found.st_uid != ::geteuid() || (found.st_mode & (S_IWGRP | S_IWOTH)) != 0)
    return ignored("others may have written it");
  const auto bytes = static_cast<std::uint64_t>(found.st_size);
  Header header{};
  if (bytes < sizeof(header) || bytes > kMostBytes ||
      !read_all(file.get(), &header, sizeof(header)) ||
      std::memcmp(header.magic, kMagic, sizeof(kMagic)) != 0 ||
      header.identity_bytes > bytes - sizeof(header) ||
      header.binary_bytes != bytes - sizeof(header) - header.identity_bytes)
    return ignored("it is damaged");
  std::string kept(header.identity_bytes, '\0');
  std::vector<unsigned char> binary(header.binary_bytes);
  if (!read_all(file.get(), kept.data(), kept.size()) ||
      !read_all(file.get(), binary.data(), binary.size()) ||
      checksum(header, kept, binary.data()) != header.checksum)
    return ignored("it is damaged");
  if (kept != identity) return ignored("it is another program's");
  return binary;
}

Status BinaryCache::store(const std::string& identity,
                          const std::vector<unsigned char>& binary) const {
  if (folder_.empty()) return {};
  std::error_code failure;
  // Of the folders that are missing, the last is this user's alone.
  std::filesystem::create_directories(std::filesystem::path(folder_).parent_path(), failure);
  if (failure) return cannot("make the folder", folder_, failure.value());
  if (::mkdir(folder_.c_str(), 0700) != 0 && errno != EEXIST)
    return cannot("make the folder", folder_, errno);
  Header header{};
  std::memcpy(header.magic, kMagic, sizeof(kMagic));
  header.identity_bytes = static_cast<std::uint32_t>(identity.size());
  header.binary_bytes = binary.size();
  header.checksum = checksum(header, identity, binary.data());
  std::string path = folder_ + "/.new-XXXXXX";
  const Descriptor file(::mkostemp(path.data(), O_CLOEXEC));
  if (file.get() < 0) return cannot("write in", folder_, errno);
  const bool written = write_all(file.get(), &header, sizeof(header)) &&
                       write_all(file.get(), identity.data(), identity.size()) &&
                       write_all(file.get(), binary.data(), binary.size());
  if (written && ::rename(path.c_str(), path_of(identity).c_str()) == 0) return {};
  const Status why = cannot("write", path_of(identity), errno);
  ::unlink(path.c_str());
  return why;
}

}  // namespace penstock::opencl
