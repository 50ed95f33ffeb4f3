#include "perf_report.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>

namespace penstock::tool {
namespace {

using nlohmann::ordered_json;

std::string speed(double value) {
  return value >= 100 ? fmt::format("{:.1f}", value) : fmt::format("{:.2f}", value);
}

std::string time_text(const PerfTime& time, bool checked) {
  if (!time.measured) return fmt::format("{:>9}{:>8}{:>8}{:>8}", "-", "-", "-", "N/A");
  const std::string us = time.time_us >= 1000 ? fmt::format("{:.0f}", time.time_us)
                                              : fmt::format("{:.2f}", time.time_us);
  return fmt::format("{:>9}{:>8}{:>8}{:>8}", us, speed(time.algbw), speed(time.busbw),
                     checked ? fmt::format("{}", time.wrong) : "N/A");
}

ordered_json time_json(const PerfTime& time, bool checked) {
  if (!time.measured) return nullptr;
  ordered_json out = {{"time_us", time.time_us},
                      {"algbw", time.algbw},
                      {"busbw", time.busbw},
                      {"iterations", time.iterations}};
  out["wrong"] = checked ? ordered_json(time.wrong) : ordered_json(nullptr);
  return out;
}

}  // namespace

PerfSummary summarise(const std::vector<PerfRow>& rows) {
  PerfSummary summary;
  std::uint64_t measured = 0;
  for (const PerfRow& row : rows) {
    for (const PerfTime* time : {&row.out_of_place, &row.in_place}) {
      if (!time->measured) continue;
      ++measured;
      summary.wrong += time->wrong;
      summary.mean_busbw += time->busbw;
    }
  }
  if (measured > 0) summary.mean_busbw /= static_cast<double>(measured);
  return summary;
}

std::string header_text(const PerfHeader& header) {
  std::string text =
      fmt::format("# penstock perf {}: {} rank{}, pool {} of {} memory device{}, engine {}\n",
                  header.collective, header.ranks.size(), header.ranks.size() == 1 ? "" : "s",
                  header.pool, header.devices, header.devices == 1 ? "" : "s", header.engine);
  for (std::size_t rank = 0; rank < header.ranks.size(); ++rank) {
    text += fmt::format("#   rank {:2} {}\n", rank, header.ranks[rank]);
  }
  text += fmt::format("# warmup {}, iterations {}{}, check {}, {}{}\n#\n", header.warmup,
                      header.iterations, header.fixed_iterations ? "" : " (fewer of long calls)",
                      header.checks, header.blocking ? "blocking" : "non-blocking",
                      header.fresh ? ", fresh inputs before every call" : "");
  text += fmt::format("#{:>48}{:>33}{:>33}\n", "", "out-of-place", "in-place");
  text += fmt::format("#{:>11}{:>12}{:>8}{:>11}{:>6}", "size", "count", "type", "redop", "root");
  for (int i = 0; i < 2; ++i) {
    text += fmt::format("{:>9}{:>8}{:>8}{:>8}", "time", "algbw", "busbw", "#wrong");
  }
  text += fmt::format("{:>12}\n#{:>11}{:>12}{:>8}{:>11}{:>6}", "pool B", "(B)", "(elements)", "",
                      "", "");
  for (int i = 0; i < 2; ++i) {
    text += fmt::format("{:>9}{:>8}{:>8}{:>8}", "(us)", "(GB/s)", "(GB/s)", "");
  }
  return text + fmt::format("{:>12}\n", "per call");
}

std::string row_text(const PerfRow& row, bool checked) {
  return fmt::format("{:>12}{:>12}{:>8}{:>11}{:>6}{}{}{:>12}\n", row.size, row.count, row.type,
                     row.redop, row.root, time_text(row.out_of_place, checked),
                     time_text(row.in_place, checked), row.pool_written + row.pool_read);
}

std::string footer_text(const std::vector<PerfRow>& rows, bool checked) {
  const PerfSummary summary = summarise(rows);
  const std::string verdict =
      checked ? fmt::format("{} {}", summary.wrong, summary.wrong == 0 ? "OK" : "FAILED")
              : std::string("not checked");
  return fmt::format("# Out of bounds values : {}\n# Avg bus bandwidth    : {:.4f}\n", verdict,
                     summary.mean_busbw);
}

std::string perf_json(const PerfHeader& header, const std::vector<PerfRow>& rows) {
  const bool checked = header.checks > 0;
  ordered_json out = {{"version", PENSTOCK_VERSION},  {"collective", header.collective},
                      {"ranks", header.ranks.size()}, {"processes", header.ranks},
                      {"pool", header.pool},          {"devices", header.devices},
                      {"engine", header.engine},      {"warmup", header.warmup},
                      {"blocking", header.blocking},  {"fresh", header.fresh}};
  out["results"] = ordered_json::array();
  for (const PerfRow& row : rows) {
    out["results"].push_back({{"size", row.size},
                              {"count", row.count},
                              {"type", row.type},
                              {"redop", row.redop},
                              {"root", row.root},
                              {"out_of_place", time_json(row.out_of_place, checked)},
                              {"in_place", time_json(row.in_place, checked)},
                              {"pool_written", row.pool_written},
                              {"pool_read", row.pool_read}});
  }
  const PerfSummary summary = summarise(rows);
  out["wrong"] = checked ? ordered_json(summary.wrong) : ordered_json(nullptr);
  out["mean_busbw"] = summary.mean_busbw;
  return out.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace penstock::tool
