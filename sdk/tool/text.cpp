#include "text.h"

#include <fmt/core.h>

#include <filesystem>
#include <fstream>
#include <set>

namespace penstock::tool {

std::string readable_bytes(std::uint64_t bytes) {
  static const char* const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  std::size_t unit = 0;
  double value = static_cast<double>(bytes);
  while (value >= 1024 && unit + 1 < std::size(units)) {
    value /= 1024;
    ++unit;
  }
  const bool whole = value == static_cast<double>(static_cast<std::uint64_t>(value));
  return fmt::format("{:.{}f} {}", value, whole ? 0 : 1, units[unit]);
}

const char* liveness_name(Liveness liveness) {
  switch (liveness) {
    case Liveness::alive:
      return "alive";
    case Liveness::dead:
      return "dead";
    case Liveness::unknown:
      break;
  }
  return "unknown";
}

std::vector<std::uint32_t> mapping_processes(const std::string& path) {
  std::set<std::uint32_t> pids;
  const std::uint32_t self = Platform::host().self().pid;
  std::error_code failure;
  for (auto it = std::filesystem::directory_iterator("/proc", failure);
       !failure && it != std::filesystem::directory_iterator(); it.increment(failure)) {
    const std::string name = it->path().filename().string();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    const auto pid = static_cast<std::uint32_t>(std::stoul(name));
    if (pid == self) continue;
    std::ifstream maps(it->path() / "maps");
    for (std::string line; std::getline(maps, line);) {
      if (line.size() > path.size() && line.ends_with(" " + path)) {
        pids.insert(pid);
        break;
      }
    }
  }
  return {pids.begin(), pids.end()};
}

}  // namespace penstock::tool
