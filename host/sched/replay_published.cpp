#include "penstock/sched/replay_published.h"

#include <fmt/format.h>

#include <cctype>
#include <charconv>
#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>

#include "penstock/sched/csv.h"

namespace penstock {
namespace {

enum : std::size_t { kWorkload, kPolicy, kArrived, kSeeds, kMean, kMin, kMax };

// "03-GpuClustering" is gpu-clustering.
std::string policy_name(const std::string& text) {
  std::string letters;
  for (const char c : text) {
    if (std::isalpha(static_cast<unsigned char>(c)) != 0) {
      letters += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    }
  }
  constexpr std::pair<const char*, const char*> kNames[] = {
      {"random", "random"},
      {"dotprod", "dot-product"},
      {"dotproduct", "dot-product"},
      {"gpuclustering", "gpu-clustering"},
      {"gpupacking", "gpu-packing"},
      {"bestfit", "best-fit"},
      {"fgd", "fgd"},
  };
  for (const auto& [written, name] : kNames) {
    if (letters == written) return name;
  }
  return text;
}

Result<double> percent(const CsvReader& csv, std::size_t column) {
  const std::string& text = csv.field(column);
  double value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure != std::errc() || end != text.data() + text.size() ||
      !(value >= 0 && value <= 10000)) {
    return csv.bad(column, "a percentage from 0 to 10000");
  }
  return value;
}

Result<PublishedRow> row_of(const CsvReader& csv) {
  PublishedRow row;
  row.workload = csv.field(kWorkload);
  row.policy = policy_name(csv.field(kPolicy));
  PENSTOCK_ASSIGN(row.arrived_pct, percent(csv, kArrived));
  PENSTOCK_ASSIGN(const std::int64_t seeds, csv.integer(kSeeds, 1, 1'000'000));
  row.seeds = static_cast<std::uint32_t>(seeds);
  PENSTOCK_ASSIGN(row.mean, percent(csv, kMean));
  PENSTOCK_ASSIGN(row.min, percent(csv, kMin));
  PENSTOCK_ASSIGN(row.max, percent(csv, kMax));
  if (row.min > row.mean) return csv.bad(kMin, "at most the mean");
  if (row.max < row.mean) return csv.bad(kMax, "at least the mean");
  return row;
}

}  // namespace

Result<std::vector<PublishedRow>> parse_published(std::string_view bytes, const std::string& name) {
  CsvReader csv(bytes, name);
  PENSTOCK_TRY(csv.open(
      {"workload", "policy", "arrived_pct", "n_seeds", "mean_gpu_alloc_pct", "min", "max"}));
  std::vector<PublishedRow> rows;
  for (;;) {
    PENSTOCK_ASSIGN(const bool more, csv.next());
    if (!more) break;
    PENSTOCK_ASSIGN(PublishedRow row, row_of(csv));
    rows.push_back(std::move(row));
  }
  return rows;
}

Result<std::vector<PublishedRow>> read_published(const std::string& path) {
  PENSTOCK_ASSIGN(const std::string bytes, read_file(path, kMaxTraceBytes));
  return parse_published(bytes, path);
}

const char* published_verdict_name(PublishedVerdict verdict) {
  switch (verdict) {
    case PublishedVerdict::within:
      return "within";
    case PublishedVerdict::in_band:
      return "in band";
    case PublishedVerdict::apart:
      break;
  }
  return "apart";
}

Result<std::vector<PublishedComparison>> compare_published(
    const std::vector<PublishedRow>& published, const std::string& workload,
    const std::vector<ReplayResult>& results, double tolerance) {
  const std::vector<ReplayMean> means = replay_means(results);
  std::vector<PublishedComparison> comparisons;
  std::set<std::string> workloads;
  for (const PublishedRow& row : published) {
    workloads.insert(row.workload);
    if (row.workload != workload) continue;
    for (const ReplayMean& mean : means) {
      if (mean.policy != row.policy) continue;
      const bool at_full = row.arrived_pct == 100 && mean.full_mean >= 0;
      const bool at_end = std::fabs(row.arrived_pct - 100 * results[0].inflate) < 0.5;
      if (!at_full && !at_end) continue;
      PublishedComparison& made = comparisons.emplace_back();
      made.published = row;
      made.mean = at_full ? mean.full_mean : mean.mean;
      made.difference = made.mean - row.mean;
      if (std::fabs(made.difference) <= tolerance) {
        made.verdict = PublishedVerdict::within;
      } else if (made.mean >= row.min && made.mean <= row.max) {
        made.verdict = PublishedVerdict::in_band;
      }
    }
  }
  if (!comparisons.empty()) return comparisons;
  return error(Code::not_found,
               "nothing was published of the workload '{}' and these policies at 100 % or at the "
               "end; there are the workloads {}",
               workload, fmt::join(workloads, ", "));
}

std::string published_text(const std::vector<PublishedComparison>& comparisons) {
  std::string out =
      fmt::format("{:<15} {:>9} {:>9} {:>10} {:>9} {:>9} {:>11}  {}\n", "policy", "arrived %",
                  "mean", "published", "min", "max", "difference", "verdict");
  for (const PublishedComparison& c : comparisons) {
    fmt::format_to(std::back_inserter(out),
                   "{:<15} {:>9g} {:>9.3f} {:>10.3f} {:>9.3f} {:>9.3f} {:>+11.3f}  {}\n",
                   c.published.policy, c.published.arrived_pct, c.mean, c.published.mean,
                   c.published.min, c.published.max, c.difference,
                   published_verdict_name(c.verdict));
  }
  return out;
}

std::string published_json(const std::vector<PublishedComparison>& comparisons) {
  using Json = nlohmann::ordered_json;
  const auto rounded = [](double value) { return std::round(value * 1000) / 1000; };
  Json list = Json::array();
  for (const PublishedComparison& c : comparisons) {
    list.push_back({{"policy", c.published.policy},
                    {"arrived_pct", c.published.arrived_pct},
                    {"mean", rounded(c.mean)},
                    {"published",
                     {{"mean", c.published.mean},
                      {"min", c.published.min},
                      {"max", c.published.max},
                      {"seeds", c.published.seeds}}},
                    {"difference", rounded(c.difference)},
                    {"verdict", published_verdict_name(c.verdict)}});
  }
  return list.dump(2, ' ', false, Json::error_handler_t::replace);
}

}  // namespace penstock
