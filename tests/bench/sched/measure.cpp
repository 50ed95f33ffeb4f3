#include "measure.h"

#include <fmt/core.h>
#include <sched.h>
#include <time.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "penstock/base/platform.h"

namespace penstock::bench {

std::uint64_t thread_ns() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(now.tv_nsec);
}

bool pin_to_cpu(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<std::size_t>(cpu), &set);
  return sched_setaffinity(0, sizeof set, &set) == 0;
}

double percentile(const std::vector<std::uint32_t>& sorted, double p) {
  if (sorted.empty()) return 0;
  const double rank = std::ceil(p / 100 * static_cast<double>(sorted.size()));
  return sorted[static_cast<std::size_t>(std::max(rank, 1.0)) - 1];
}

double read_ns(std::uint64_t bytes, double seconds) {
  // The C library's search for a byte that is not there is as fast a reader as there is.
  const std::vector<char> memory(bytes);
  const auto budget = static_cast<std::uint64_t>(seconds * 1e9);
  const std::uint64_t begin = thread_ns();
  std::uint64_t fastest = UINT64_MAX;
  std::uint64_t found = 0;
  const std::uint64_t per_batch = std::max<std::uint64_t>(1, (1 << 22) / bytes);
  for (std::uint64_t now = begin; now - begin < budget;) {
    for (std::uint64_t i = 0; i < per_batch; i++) {
      const char* volatile begin_of_memory = memory.data();  // each time anew
      found += std::memchr(begin_of_memory, 1, memory.size()) != nullptr;
    }
    const std::uint64_t after = thread_ns();
    fastest = std::min(fastest, after - now);
    now = after;
  }
  if (found != 0) fmt::print(stderr, " ");  // not to be optimised away
  return static_cast<double>(fastest) / static_cast<double>(per_batch);
}

namespace {

std::string ratio(const Line& line) {
  if (line.limit_per_second == 0) return "-";
  return fmt::format("{:.2f}", line.per_second / line.limit_per_second);
}

}  // namespace

std::string as_text(const std::vector<Line>& lines) {
  std::string text =
      fmt::format("{:>7}  {:<34} {:<12} {:>12} {:>9} {:>9} {:>9} {:>9}\n", "nodes", "scenario",
                  "how", "decisions/s", "p50 us", "p99 us", "max us", "of limit");
  for (const Line& line : lines) {
    text +=
        fmt::format("{:>7}  {:<34} {:<12} {:>12.0f} {:>9.2f} {:>9.2f} {:>9.1f} {:>9}{}\n",
                    line.nodes, line.scenario, line.how, line.per_second, line.p50_us, line.p99_us,
                    line.max_us, ratio(line), line.note.empty() ? "" : "  " + line.note);
  }
  return text;
}

std::string as_json(const std::vector<Line>& lines) {
  std::string text = "[";
  for (const Line& line : lines) {
    text += fmt::format(
        "{}\n {{\"nodes\": {}, \"scenario\": \"{}\", \"how\": \"{}\", \"decisions\": {}, "
        "\"per_second\": {:.1f}, \"p50_us\": {:.3f}, \"p99_us\": {:.3f}, \"max_us\": {:.3f}, "
        "\"limit_per_second\": {:.1f}, \"note\": \"{}\"}}",
        text.size() == 1 ? "" : ",", line.nodes, line.scenario, line.how, line.decisions,
        line.per_second, line.p50_us, line.p99_us, line.max_us, line.limit_per_second, line.note);
  }
  return text + "\n]\n";
}

std::string as_markdown(const std::vector<Line>& lines) {
  std::string text =
      "| nodes | scenario | how | decisions/s | p50 us | p99 us | of a scan's memory limit | |\n"
      "|---:|---|---|---:|---:|---:|---:|---|\n";
  for (const Line& line : lines) {
    text += fmt::format("| {} | {} | {} | {:.0f} | {:.2f} | {:.2f} | {} | {} |\n", line.nodes,
                        line.scenario, line.how, line.per_second, line.p50_us, line.p99_us,
                        ratio(line), line.note);
  }
  return text;
}

}  // namespace penstock::bench
