#include "penstock/base/memory_linux.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>

namespace penstock {
namespace {

// From the kernel's interface; libnuma has them, too.
constexpr int kPolicyDefault = 0;
constexpr int kPolicyBind = 2;
constexpr std::size_t kMaxNodes = 1024;

std::string read_text(const char* path) {
  std::array<char, 256> text{};
  const int fd = ::open(path, O_RDONLY | O_CLOEXEC);
  const ssize_t got = fd < 0 ? -1 : ::read(fd, text.data(), text.size() - 1);
  if (fd >= 0) ::close(fd);
  return {text.data(), static_cast<std::size_t>(std::max<ssize_t>(got, 0))};
}

// What stands in [] is in force.
std::string bracketed(const std::string& text) {
  const std::size_t begin = text.find('[');
  const std::size_t end = text.find(']', begin);
  if (begin == std::string::npos || end == std::string::npos) return "";
  return text.substr(begin + 1, end - begin - 1);
}

struct Mount {
  std::string point;
  std::string type;
  std::string options;  // of the file system
};

// A line: id parent major:minor root point options [optional...] - type source super-options
std::vector<Mount> mounts() {
  std::vector<Mount> found;
  std::ifstream file("/proc/self/mountinfo");
  for (std::string line; std::getline(file, line);) {
    const std::size_t dash = line.find(" - ");
    if (dash == std::string::npos) continue;
    Mount mount;
    std::string ignored;
    std::istringstream before(line.substr(0, dash));
    before >> ignored >> ignored >> ignored >> ignored >> mount.point;
    std::istringstream after(line.substr(dash + 3));
    after >> mount.type >> ignored >> mount.options;
    found.push_back(std::move(mount));
  }
  return found;
}

}  // namespace

std::vector<int> parse_kernel_list(const std::string& text) {
  std::vector<int> numbers;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at < end) {
    int first = 0;
    auto [stop, failure] = std::from_chars(at, end, first);
    if (failure != std::errc() || first < 0) break;
    int last = first;
    if (stop < end && *stop == '-') {
      const auto range = std::from_chars(stop + 1, end, last);
      if (range.ec != std::errc() || last < first || last - first > 65536) break;
      stop = range.ptr;
    }
    for (int number = first; number <= last; ++number) numbers.push_back(number);
    if (stop == end || *stop != ',') break;
    at = stop + 1;
  }
  return numbers;
}

std::vector<int> memory_nodes() {
  std::vector<int> nodes = parse_kernel_list(read_text("/sys/devices/system/node/has_memory"));
  if (nodes.empty()) nodes.push_back(0);
  return nodes;
}

Status bind_memory(int node) {
  if (node < 0) {
    ::syscall(SYS_set_mempolicy, kPolicyDefault, nullptr, 0UL);
    return {};
  }
  const std::vector<int> nodes = memory_nodes();
  if (nodes.size() < 2) {
    return error(Code::unsupported,
                 "memory node {}: this machine has one memory node ({}), so that there is nothing "
                 "to choose",
                 node, nodes[0]);
  }
  if (std::find(nodes.begin(), nodes.end(), node) == nodes.end()) {
    std::string known;
    for (const int each : nodes) known += (known.empty() ? "" : ", ") + std::to_string(each);
    return error(Code::invalid_argument, "memory node {} does not exist; there are {}", node,
                 known);
  }
  constexpr std::size_t kBits = 8 * sizeof(unsigned long);
  std::array<unsigned long, kMaxNodes / kBits> mask{};
  if (static_cast<std::size_t>(node) >= kMaxNodes) {
    return error(Code::unsupported, "memory node {}: only the first {} can be chosen", node,
                 kMaxNodes);
  }
  mask[static_cast<std::size_t>(node) / kBits] = 1UL << (static_cast<std::size_t>(node) % kBits);
  // The kernel leaves out the last bit of the count that it is given.
  if (::syscall(SYS_set_mempolicy, kPolicyBind, mask.data(), kMaxNodes + 1) != 0) {
    char reason[128];
    return error(Code::permission_denied, "memory node {} cannot be chosen: {}", node,
                 ::strerror_r(errno, reason, sizeof reason));
  }
  return {};
}

std::vector<std::string> mount_points(const std::string& type) {
  std::vector<std::string> points;
  for (const Mount& mount : mounts()) {
    if (mount.type == type) points.push_back(mount.point);
  }
  return points;
}

std::string huge_pages_of(const std::string& path) {
  struct statfs info;
  if (::statfs(path.c_str(), &info) != 0) return "never";
  if (static_cast<std::uint32_t>(info.f_type) == HUGETLBFS_MAGIC) return "hugetlbfs";
  if (static_cast<std::uint32_t>(info.f_type) != TMPFS_MAGIC) return "never";
  const std::string kernel =
      bracketed(read_text("/sys/kernel/mm/transparent_hugepage/shmem_enabled"));
  if (kernel.empty() || kernel == "deny") return "never";
  if (kernel == "force") return "always";
  char* const real = ::realpath(path.c_str(), nullptr);
  const std::string at = real == nullptr ? path : real;
  std::free(real);
  const Mount* holder = nullptr;
  const std::vector<Mount> all = mounts();
  for (const Mount& mount : all) {
    const bool holds =
        mount.point == "/" || at == mount.point || at.rfind(mount.point + "/", 0) == 0;
    // A later mount hides an earlier one at the same place.
    if (holds && (holder == nullptr || mount.point.size() >= holder->point.size())) {
      holder = &mount;
    }
  }
  if (holder == nullptr) return "never";
  const std::size_t option = ("," + holder->options).find(",huge=");
  if (option == std::string::npos) return "never";
  const std::size_t begin = option + std::strlen("huge=");
  return holder->options.substr(begin, holder->options.find(',', begin) - begin);
}

}  // namespace penstock
