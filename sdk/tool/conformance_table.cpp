#include "conformance_table.h"

#include <algorithm>
#include <map>

namespace penstock::tool {
namespace {

struct Cell {
  std::uint32_t passed = 0;
  std::uint32_t unsupported = 0;
  std::uint32_t failed = 0;

  std::string text() const {
    if (failed > 0) return "FAIL";
    if (passed == 0) return unsupported > 0 ? "unsupported" : "-";
    if (unsupported == 0) return "pass";
    return fmt::format("pass {}/{}", passed, passed + unsupported);
  }
};

// A reason, and where it holds.
struct Note {
  std::string verdict;
  std::string reason;
  std::vector<std::string> engines;
  std::vector<std::string> operations;  // with their types
};

void add_once(std::vector<std::string>& names, const std::string& name) {
  if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
}

std::string joined(const std::vector<std::string>& names, const char* between) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : between) + name;
  return text;
}

// Operations in the order in which the first engine that knows them has them.
std::vector<std::string> operations_of(const std::vector<ConformanceColumn>& columns) {
  std::vector<std::string> operations;
  for (const ConformanceColumn& column : columns) {
    if (!column.report) continue;
    for (const ConformanceRow& row : column.report->rows) add_once(operations, row.operation);
  }
  return operations;
}

Cell cell_of(const ConformanceColumn& column, const std::string& operation) {
  Cell cell;
  if (!column.report) return cell;
  for (const ConformanceRow& row : column.report->rows) {
    if (row.operation != operation) continue;
    ++(row.verdict == Verdict::pass   ? cell.passed
       : row.verdict == Verdict::fail ? cell.failed
                                      : cell.unsupported);
  }
  return cell;
}

// The engine's own name before a reason says nothing that the column does not.
std::string without_name(const std::string& reason, const std::string& engine) {
  const std::string prefix = engine + ": ";
  return reason.rfind(prefix, 0) == 0 ? reason.substr(prefix.size()) : reason;
}

std::vector<Note> notes_of(const std::vector<ConformanceColumn>& columns) {
  std::vector<Note> notes;
  const auto add = [&](const std::string& verdict, const std::string& reason,
                       const std::string& engine, const std::string& operation) {
    auto found = std::find_if(notes.begin(), notes.end(), [&](const Note& note) {
      return note.verdict == verdict && note.reason == reason;
    });
    if (found == notes.end()) found = notes.insert(notes.end(), {verdict, reason, {}, {}});
    add_once(found->engines, engine);
    if (!operation.empty()) add_once(found->operations, operation);
  };
  for (const ConformanceColumn& column : columns) {
    if (!column.report) {
      add(column.state, column.reason, column.name, "");
      continue;
    }
    for (const ConformanceRow& row : column.report->rows) {
      if (row.verdict == Verdict::pass) continue;
      add(row.verdict == Verdict::fail ? "FAIL" : "unsupported",
          without_name(row.reason, column.report->engine), column.name,
          row.operation + (row.type.empty() ? "" : " " + row.type));
    }
  }
  return notes;
}

}  // namespace

bool ConformanceColumn::failed() const {
  return state == "failed to start" || (report && !report->passed());
}

bool all_conform(const std::vector<ConformanceColumn>& columns) {
  return std::none_of(columns.begin(), columns.end(),
                      [](const auto& one) { return one.failed(); }) &&
         std::any_of(columns.begin(), columns.end(), [](const auto& one) { return one.report; });
}

std::string conformance_table(const std::vector<ConformanceColumn>& columns) {
  std::vector<std::vector<std::string>> lines(1);
  lines[0].push_back("operation");
  for (const ConformanceColumn& column : columns) lines[0].push_back(column.name);
  lines.push_back({""});
  for (const ConformanceColumn& column : columns) {
    lines[1].push_back(column.report ? fmt::format("{:.1f} s", column.seconds) : column.state);
  }
  for (const std::string& operation : operations_of(columns)) {
    lines.push_back({operation});
    for (const ConformanceColumn& column : columns) {
      lines.back().push_back(cell_of(column, operation).text());
    }
  }
  std::vector<std::size_t> widths(columns.size() + 1, 0);
  for (const auto& line : lines) {
    for (std::size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], line[i].size());
  }
  std::string out;
  for (const auto& line : lines) {
    std::string text;
    for (std::size_t i = 0; i < line.size(); ++i)
      text += fmt::format("{:<{}}", line[i], widths[i] + 2);
    out += text.substr(0, text.find_last_not_of(' ') + 1) + "\n";
  }
  for (const Note& note : notes_of(columns)) {
    out += fmt::format("\n{} on {}: {}\n", note.verdict, joined(note.engines, ", "), note.reason);
    if (!note.operations.empty()) out += fmt::format("    {}\n", joined(note.operations, "; "));
  }
  std::uint64_t comparisons = 0;
  std::vector<std::string> ran;
  for (const ConformanceColumn& column : columns) {
    if (!column.report) continue;
    comparisons += column.report->comparisons();
    ran.push_back(column.name);
  }
  out += fmt::format("\n{}: {} comparisons on {}\n",
                     all_conform(columns) ? "all conform" : "NOT ALL CONFORM", comparisons,
                     joined(ran, ", "));
  return out;
}

nlohmann::ordered_json conformance_json(const ConformanceColumn& column) {
  nlohmann::ordered_json out = {{"name", column.name},
                                {"state", column.state},
                                {"reason", column.reason},
                                {"seconds", column.seconds}};
  if (column.report) out.update(nlohmann::ordered_json::parse(column.report->to_json()));
  return out;
}

}  // namespace penstock::tool
