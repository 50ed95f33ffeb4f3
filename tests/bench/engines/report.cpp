#include "report.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace penstock::bench {
namespace {

using Row = std::vector<std::string>;

std::string size_of(const Figure& figure) {
  if (figure.operation == "SELECT") return fmt::format("{} nodes", figure.size);
  if (figure.size == 0) return "";
  return figure.size >= (1u << 20) ? fmt::format("{} MiB", figure.size >> 20)
                                   : fmt::format("{} KiB", figure.size >> 10);
}

std::string rate_of(const Figure& figure) {
  if (!figure.unsupported.empty()) return "-";
  return figure.operation == "SELECT" ? fmt::format("{:.0f} decisions/s", figure.rate())
                                      : fmt::format("{:.3f} GB/s", figure.rate() * 1e-9);
}

// Times of a simulation say nothing about memory.
std::string ratio_of(const Figure& figure) {
  if (figure.seconds == 0 || figure.limit_seconds == 0 || figure.simulated) return "-";
  return fmt::format("{:.2f}", figure.limit_seconds / figure.seconds);
}

std::string cycles_of(const Figure& figure) {
  if (figure.cycles == 0) return "-";
  return figure.operation == "SELECT"
             ? fmt::format("{:.0f} cycles", figure.cycles)
             : fmt::format("{:.1f} B/cycle", figure.amount / figure.cycles);
}

std::vector<Row> rows_of(const std::vector<Figure>& figures) {
  std::vector<Row> rows = {{"engine", "operation", "sources", "operand", "median us", "rate",
                            "of limit", "own clock", ""}};
  for (const Figure& f : figures) {
    std::string note = f.unsupported;
    if (note.empty() && f.simulated) note = "simulated";
    rows.push_back({f.engine, f.operation, f.sources > 0 ? std::to_string(f.sources) : "",
                    size_of(f), f.seconds > 0 ? fmt::format("{:.2f}", f.seconds * 1e6) : "-",
                    rate_of(f), ratio_of(f), cycles_of(f), note});
  }
  return rows;
}

}  // namespace

std::string as_text(const std::vector<Figure>& figures) {
  const std::vector<Row> rows = rows_of(figures);
  std::vector<std::size_t> widths(rows[0].size(), 0);
  for (const Row& row : rows)
    for (std::size_t i = 0; i + 1 < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  std::string text;
  for (const Row& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i)
      line += i < 2 || i + 1 == row.size() ? fmt::format("{:<{}}  ", row[i], widths[i])
                                           : fmt::format("{:>{}}  ", row[i], widths[i]);
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return text;
}

std::string as_markdown(const std::vector<Figure>& figures) {
  std::string text;
  const std::vector<Row> rows = rows_of(figures);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    text += fmt::format("| {} |\n", fmt::join(rows[i], " | "));
    if (i == 0) text += "|---|---|---:|---:|---:|---:|---:|---:|---|\n";
  }
  return text;
}

std::string as_json(const std::vector<Figure>& figures) {
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (const Figure& f : figures) {
    all.push_back({{"engine", f.engine},
                   {"simulated", f.simulated},
                   {"operation", f.operation},
                   {"sources", f.sources},
                   {"size", f.size},
                   {"seconds", f.seconds},
                   {"rate", f.rate()},
                   {"limit_seconds", f.limit_seconds},
                   {"cycles", f.cycles},
                   {"unsupported", f.unsupported}});
  }
  return all.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace penstock::bench
