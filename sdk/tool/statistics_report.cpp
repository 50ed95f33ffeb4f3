#include "statistics_report.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <vector>

#include "penstock/base/trace.h"
#include "penstock/comm/statistics.h"

namespace penstock::tool {
namespace {

using nlohmann::json;

struct Rank {
  std::uint64_t ns = 0;  // inside calls
  std::uint64_t wait_ns = 0;
  std::uint64_t was_waited_for_ns = 0;
};

struct CommTable {
  std::map<std::string, CollectiveStatistics> collectives;
  std::map<std::uint32_t, Rank> ranks;
};

// Throws json::exception where a field is missing or of another type.
void add_collective(const json& numbers, CollectiveStatistics* sum, Rank* rank) {
  const auto number = [&](const char* field) { return numbers.at(field).get<std::uint64_t>(); };
  sum->calls += number("calls");
  sum->bytes += number("bytes");
  sum->ns += number("ns");
  sum->max_ns = std::max(sum->max_ns, number("max_ns"));
  sum->waits += number("waits");
  sum->wait_ns += number("wait_ns");
  sum->copy_ns += number("copy_ns");
  sum->reduce_ns += number("reduce_ns");
  sum->signal_ns += number("signal_ns");
  for (const auto& [bucket, calls] : numbers.at("latency_log2_ns").items()) {
    const std::size_t index = std::min<std::size_t>(std::stoul(bucket), kLatencyBuckets - 1);
    sum->latency[index] += calls.get<std::uint64_t>();
  }
  rank->ns += number("ns");
  rank->wait_ns += number("wait_ns");
}

void add_report(const json& report, std::map<std::string, CommTable>* comms) {
  CommTable& comm = (*comms)[report.at("comm").get<std::string>()];
  Rank& rank = comm.ranks[report.at("rank").get<std::uint32_t>()];
  for (const auto& [name, numbers] : report.at("collectives").items()) {
    add_collective(numbers, &comm.collectives[name], &rank);
  }
  std::uint32_t whom = 0;
  for (const json& ns : report.at("waited_for_ns")) {
    comm.ranks[whom++].was_waited_for_ns += ns.get<std::uint64_t>();
  }
}

double us(std::uint64_t ns) { return static_cast<double>(ns) / 1000; }

double percent(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? 0 : 100.0 * static_cast<double>(part) / static_cast<double>(whole);
}

std::string render(const std::string& name, const CommTable& comm) {
  std::string text = fmt::format(
      "comm '{}'\n{:<15}{:>10}{:>14}{:>11}{:>11}{:>11}{:>11}{:>7}{:>7}"
      "{:>8}{:>7}\n",
      name, "collective", "calls", "bytes", "avg us", "p50 us <", "p99 us <", "max us", "wait%",
      "copy%", "reduce%", "rest%");
  for (const auto& [collective, c] : comm.collectives) {
    std::uint64_t timed = 0;
    for (const std::uint64_t calls : c.latency) timed += calls;
    const double average = c.calls == 0 ? 0 : us(c.ns) / static_cast<double>(c.calls);
    const double wait = percent(c.wait_ns, c.ns);
    const double copy = percent(c.copy_ns, c.ns);
    const double reduce = percent(c.reduce_ns, c.ns);
    text += fmt::format("{:<15}{:>10}{:>14}{:>11.1f}", collective, c.calls, c.bytes, average);
    if (timed == 0) {
      text += fmt::format("{:>11}{:>11}{:>11}", "-", "-", "-");
    } else {
      text += fmt::format("{:>11.1f}{:>11.1f}{:>11.1f}", us(latency_quantile(c.latency, 0.5) + 1),
                          us(latency_quantile(c.latency, 0.99) + 1), us(c.max_ns));
    }
    text += fmt::format("{:>7.1f}{:>7.1f}{:>8.1f}{:>7.1f}\n", wait, copy, reduce,
                        std::max(0.0, 100.0 - wait - copy - reduce));
  }
  if (comm.ranks.size() < 2) return text;
  text += fmt::format("{:<15}{:>14}{:>14}{:>21}\n", "rank", "in calls ms", "waiting ms",
                      "was waited for ms");
  for (const auto& [rank, r] : comm.ranks) {
    text += fmt::format("{:<15}{:>14.2f}{:>14.2f}{:>21.2f}\n", rank, us(r.ns) / 1000,
                        us(r.wait_ns) / 1000, us(r.was_waited_for_ns) / 1000);
  }
  return text;
}

}  // namespace

Result<std::string> render_statistics(const std::string& file, std::uint32_t ranks) {
  std::map<std::string, CommTable> comms;
  std::string silent;
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    const std::string name = trace::part_name(file, rank, ranks);
    std::ifstream in(name);
    if (!in) {
      silent += fmt::format("{}{}", silent.empty() ? "" : ", ", rank);
      continue;
    }
    try {
      const json part = json::parse(in);
      for (const json& report : part.at("reports")) add_report(report, &comms);
    } catch (const std::exception& problem) {
      return error(Code::corrupt, "{} is no report of a rank: {}", name, problem.what());
    }
  }
  std::string text;
  for (const auto& [name, comm] : comms) text += render(name, comm);
  if (!silent.empty()) {
    text += fmt::format("no statistics of rank {}: no call, or it was killed\n", silent);
  }
  return text;
}

}  // namespace penstock::tool
