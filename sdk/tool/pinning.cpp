#include "pinning.h"

#include <fmt/core.h>
#include <sched.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <set>

namespace penstock::tool {
namespace {

int number_in(const std::filesystem::path& path) {
  int number = 0;
  std::ifstream(path) >> number;
  return std::max(0, number);
}

// A CPU's folder holds a link node<N>.
int node_of(const std::filesystem::path& folder) {
  std::error_code failure;
  for (auto it = std::filesystem::directory_iterator(folder, failure);
       !failure && it != std::filesystem::directory_iterator(); it.increment(failure)) {
    const std::string name = it->path().filename().string();
    if (name.rfind("node", 0) != 0) continue;
    int node = 0;
    const char* const end = name.data() + name.size();
    if (std::from_chars(name.data() + 4, end, node).ptr == end) return node;
  }
  return 0;
}

std::optional<int> parse_number(const std::string& text) {
  int number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, failure] = std::from_chars(text.data(), end, number);
  const bool whole = !text.empty() && stop == end && failure == std::errc();
  return whole && number >= 0 ? std::optional(number) : std::nullopt;
}

Result<std::vector<int>> parse_list(const std::string& text) {
  std::vector<int> numbers;
  std::size_t at = 0;
  while (at <= text.size()) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    const std::string word = text.substr(at, end - at);
    at = end + 1;
    const std::size_t dash = word.find('-');
    const auto first = parse_number(word.substr(0, dash));
    const auto last = dash == std::string::npos ? first : parse_number(word.substr(dash + 1));
    if (!first || !last || *last < *first || *last >= CPU_SETSIZE) {
      return error(Code::invalid_argument,
                   "'{}' is no list of CPUs; use cores, cpus, or numbers such as 0,2 or 0-3", text);
    }
    for (int number = *first; number <= *last; ++number) numbers.push_back(number);
  }
  return numbers;
}

}  // namespace

std::vector<Cpu> allowed_cpus(const std::string& sysfs) {
  std::vector<Cpu> cpus;
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (::sched_getaffinity(0, sizeof allowed, &allowed) != 0) return cpus;
  for (int number = 0; number < CPU_SETSIZE; ++number) {
    if (!CPU_ISSET(number, &allowed)) continue;
    const std::filesystem::path folder =
        std::filesystem::path(sysfs) / "cpu" / fmt::format("cpu{}", number);
    const std::filesystem::path topology = folder / "topology";
    std::error_code failure;
    // Without a description every CPU counts as a core.
    const bool described = std::filesystem::exists(topology / "core_id", failure);
    cpus.push_back({number, number_in(topology / "physical_package_id"),
                    described ? number_in(topology / "core_id") : number, node_of(folder)});
  }
  return cpus;
}

std::vector<Cpu> cores_first(const std::vector<Cpu>& cpus) {
  std::map<std::pair<int, int>, int> used;  // by package and core
  std::vector<std::pair<int, Cpu>> turns;   // in which turn the CPU comes
  turns.reserve(cpus.size());
  for (const Cpu& cpu : cpus) turns.emplace_back(used[{cpu.package, cpu.core}]++, cpu);
  std::stable_sort(turns.begin(), turns.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<Cpu> ordered;
  for (const auto& [turn, cpu] : turns) ordered.push_back(cpu);
  return ordered;
}

Result<std::vector<Cpu>> choose_cpus(const std::string& text, const std::vector<Cpu>& allowed) {
  if (allowed.empty()) {
    return error(Code::unsupported, "the system does not tell on which CPUs this process may run");
  }
  if (text == "cores") return cores_first(allowed);
  if (text == "cpus") return allowed;
  PENSTOCK_ASSIGN(const std::vector<int> numbers, parse_list(text));
  std::vector<Cpu> chosen;
  for (const int number : numbers) {
    const auto found = std::find_if(allowed.begin(), allowed.end(),
                                    [number](const Cpu& cpu) { return cpu.number == number; });
    if (found == allowed.end()) {
      std::vector<int> all;
      for (const Cpu& cpu : allowed) all.push_back(cpu.number);
      return error(Code::invalid_argument,
                   "CPU {} is not among those that this process may run on: {}", number,
                   list_text(all));
    }
    chosen.push_back(*found);
  }
  return chosen;
}

bool has_own_cpus(const std::vector<Cpu>& cpus, std::size_t ranks) {
  std::set<int> used;
  for (std::size_t rank = 0; rank < ranks && rank < cpus.size(); ++rank) {
    used.insert(cpus[rank].number);
  }
  return used.size() == ranks;
}

std::string list_text(const std::vector<int>& numbers) {
  std::string text;
  for (std::size_t i = 0; i < numbers.size();) {
    std::size_t last = i;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
    text += text.empty() ? "" : ",";
    text +=
        last == i ? std::to_string(numbers[i]) : fmt::format("{}-{}", numbers[i], numbers[last]);
    i = last + 1;
  }
  return text;
}

}  // namespace penstock::tool
