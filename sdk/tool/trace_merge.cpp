#include "trace_merge.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "penstock/comm/plan.h"

namespace penstock::tool {
namespace {

constexpr char kEnd[] = "]}";

struct Part {
  std::string path;
  std::uint32_t rank;  // by its name
};

// The files FILE.<rank>, by rank. What could not be a rank's, such as FILE.2024, is somebody
// else's.
std::vector<Part> find_parts(const std::string& file) {
  const std::filesystem::path base(file);
  const std::string prefix = base.filename().string() + ".";
  std::filesystem::path folder = base.parent_path();
  if (folder.empty()) folder = ".";
  std::vector<Part> parts;
  std::error_code failure;
  for (auto it = std::filesystem::directory_iterator(folder, failure);
       !failure && it != std::filesystem::directory_iterator(); it.increment(failure)) {
    const std::string name = it->path().filename().string();
    if (name.rfind(prefix, 0) != 0) continue;
    std::uint32_t rank = 0;
    const char* const end = name.data() + name.size();
    const auto [stop, problem] = std::from_chars(name.data() + prefix.size(), end, rank);
    if (problem != std::errc() || stop != end || rank >= kMaxRanks) continue;
    parts.push_back({it->path().string(), rank});
  }
  std::sort(parts.begin(), parts.end(),
            [](const Part& a, const Part& b) { return a.rank < b.rank; });
  return parts;
}

struct Header {
  std::uint32_t size = 0;
  std::uint64_t events = 0;
  std::uint64_t dropped = 0;
};

// The first line of a part is JSON that is left open.
Result<Header> read_header(const std::string& path, std::ifstream& in) {
  std::string line;
  std::getline(in, line);
  const auto json = nlohmann::json::parse(line + kEnd, nullptr, false);
  const auto no_part = [&] {
    return error(Code::corrupt, "{} is no part of a timeline: PENSTOCK_TRACE makes them", path);
  };
  if (!json.is_object() || !json.contains("otherData")) return no_part();
  const auto& data = json["otherData"];
  if (!data.is_object() || data.value("format", "") != "penstock-trace-1") return no_part();
  for (const char* field : {"size", "events", "dropped"}) {
    if (!data.contains(field) || !data[field].is_number_unsigned()) return no_part();
  }
  return Header{data["size"].get<std::uint32_t>(), data["events"].get<std::uint64_t>(),
                data["dropped"].get<std::uint64_t>()};
}

// Appends the events of one part; false if its end is missing. A line that is no event, as the last
// of a part that was cut, is left out.
bool append_events(std::ifstream& in, std::ofstream& out, bool* first) {
  for (std::string line; std::getline(in, line);) {
    if (line == kEnd) return true;
    if (!line.empty() && line.back() == ',') line.pop_back();
    if (!nlohmann::json::accept(line)) continue;
    out << (*first ? "" : ",\n") << line;
    *first = false;
  }
  return false;
}

Status merge_part(const Part& part, std::ofstream& out, bool* first, MergedTrace* merged,
                  std::uint32_t* size) {
  std::ifstream in(part.path);
  if (!in) {
    return error(Code::io_error, "cannot read {}: {}", part.path, std::strerror(errno));
  }
  PENSTOCK_ASSIGN(const Header header, read_header(part.path, in));
  ++merged->parts;
  merged->slices += header.events;
  merged->dropped += header.dropped;
  *size = std::max(*size, header.size);
  if (!append_events(in, out, first)) {
    merged->findings.push_back(fmt::format("{} was cut: its end is missing", part.path));
  }
  return {};
}

}  // namespace

Result<MergedTrace> merge_trace(const std::string& file, const std::string& out) {
  std::vector<Part> parts = find_parts(file);
  const bool alone = parts.empty();
  if (alone && !std::filesystem::exists(file)) {
    return error(Code::not_found,
                 "there is neither {0}.0 nor {0}: ranks that ran with PENSTOCK_TRACE={0} write "
                 "them when they end",
                 file);
  }
  if (alone) parts.push_back({file, 0});
  // Beside the result, so that it can take its place in one step, whatever was there before.
  const std::string unfinished = out + ".merging";
  std::ofstream sink(unfinished, std::ios::trunc);
  if (!sink) return error(Code::io_error, "cannot write {}: {}", unfinished, std::strerror(errno));
  MergedTrace merged;
  std::uint32_t size = 1;
  bool first = true;
  std::set<std::uint32_t> ranks;
  sink << "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n";
  for (const Part& part : parts) {
    ranks.insert(part.rank);
    if (Status status = merge_part(part, sink, &first, &merged, &size); !status.ok()) {
      sink.close();
      std::filesystem::remove(unfinished);
      return status;
    }
  }
  for (std::uint32_t rank = 0; rank < size; ++rank) {
    if (ranks.count(rank) > 0) continue;
    merged.findings.push_back(
        fmt::format("rank {} left no part: it was killed, or has not ended", rank));
  }
  sink << "\n],\"otherData\":{\"slices\":" << merged.slices << ",\"dropped\":" << merged.dropped
       << "}}\n";
  sink.close();
  std::error_code failure;
  if (sink) std::filesystem::rename(unfinished, out, failure);
  if (!sink || failure) {
    std::filesystem::remove(unfinished, failure);
    return error(Code::io_error, "{} could not be written to its end", out);
  }
  return merged;
}

void remove_parts(const std::string& file) {
  std::error_code failure;
  for (const Part& part : find_parts(file)) {
    std::ifstream in(part.path);
    if (read_header(part.path, in).ok()) std::filesystem::remove(part.path, failure);
  }
}

}  // namespace penstock::tool
