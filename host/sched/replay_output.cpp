#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>

#include "penstock/sched/plot.h"
#include "penstock/sched/replay.h"

namespace penstock {
namespace {

using Json = nlohmann::ordered_json;

double three_decimals(double value) { return std::round(value * 1000) / 1000; }

Json percent_or_null(double value) { return value < 0 ? Json() : Json(three_decimals(value)); }

Json json_of(const ReplayResult& result) {
  Json curve = Json::array();
  for (const CurvePoint& point : result.curve) {
    curve.push_back({three_decimals(point.arrived_pct), three_decimals(point.gpu_alloc_pct)});
  }
  Json out = {
      {"policy", result.policy},
      {"engine", result.engine},
      {"seed", result.seed},
      {"inflate", result.inflate},
      {"nodes", result.nodes},
      {"gpus", result.gpus},
      {"arrived", result.arrived},
      {"placed", result.placed},
      {"dropped", result.dropped},
      {"arrived_pct", three_decimals(result.arrived_pct)},
      {"gpu_alloc_pct", three_decimals(result.gpu_alloc_pct)},
      {"gpu_alloc_at_full_pct", percent_or_null(result.gpu_alloc_at_full_pct)},
      {"seconds", result.seconds},
      {"decisions_per_second", std::round(result.decisions_per_second)},
      {"curve", std::move(curve)},
  };
  if (!result.warnings.empty()) out["warnings"] = result.warnings;
  return out;
}

// From where on something was dropped, so that the plot need not show how all curves climb alike:
// the start of that decade, or 0 when little of the plot would be left.
double where_curves_part(const std::vector<ReplayResult>& results, double x_max) {
  double start = x_max;
  for (const ReplayResult& result : results) {
    double last = 0;
    for (const CurvePoint& point : result.curve) {
      if (point.arrived_pct - point.gpu_alloc_pct > 1) break;
      last = point.arrived_pct;
    }
    start = std::min(start, last);
  }
  start = std::floor(start / 10) * 10;
  return start > 80 ? 0 : start;
}

std::string dump(const Json& json) {
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace

std::string replay_text(const std::vector<ReplayResult>& results) {
  const auto percent = [](double value) {
    return value < 0 ? std::string("-") : fmt::format("{:.3f}", value);
  };
  std::string out = fmt::format("{:<15} {:<8} {:>5} {:>8} {:>8} {:>8} {:>10} {:>9} {:>12} {:>12}\n",
                                "policy", "engine", "seed", "arrived", "placed", "dropped",
                                "arrived %", "at 100 %", "GPU alloc %", "decisions/s");
  for (const ReplayResult& result : results) {
    fmt::format_to(std::back_inserter(out),
                   "{:<15} {:<8} {:>5} {:>8} {:>8} {:>8} {:>10.3f} {:>9} {:>12.3f} {:>12.0f}\n",
                   result.policy, result.engine, result.seed, result.arrived, result.placed,
                   result.dropped, result.arrived_pct, percent(result.gpu_alloc_at_full_pct),
                   result.gpu_alloc_pct, result.decisions_per_second);
  }
  const std::vector<ReplayMean> means = replay_means(results);
  if (means.size() != results.size()) {
    fmt::format_to(std::back_inserter(out), "\n{:<15} {:>5} {:>9} {:>9} {:>9} {:>12} {:>9} {:>9}\n",
                   "policy", "seeds", "at 100 %", "min", "max", "GPU alloc %", "min", "max");
    for (const ReplayMean& mean : means) {
      fmt::format_to(std::back_inserter(out),
                     "{:<15} {:>5} {:>9} {:>9} {:>9} {:>12.3f} {:>9.3f} {:>9.3f}\n", mean.policy,
                     mean.seeds, percent(mean.full_mean), percent(mean.full_min),
                     percent(mean.full_max), mean.mean, mean.min, mean.max);
    }
  }
  for (const ReplayResult& result : results) {
    for (const std::string& warning : result.warnings) out += "warning: " + warning + "\n";
  }
  return out;
}

std::string replay_csv(const std::vector<ReplayResult>& results) {
  std::string out = "policy,seed,arrived_pct,gpu_alloc_pct\n";
  for (const ReplayResult& result : results) {
    for (const CurvePoint& point : result.curve) {
      fmt::format_to(std::back_inserter(out), "{},{},{:.3f},{:.3f}\n", result.policy, result.seed,
                     point.arrived_pct, point.gpu_alloc_pct);
    }
  }
  return out;
}

std::string replay_json(const std::vector<ReplayResult>& results) {
  if (results.size() == 1) return dump(json_of(results[0]));
  Json list = Json::array(), means = Json::array();
  for (const ReplayResult& result : results) list.push_back(json_of(result));
  for (const ReplayMean& mean : replay_means(results)) {
    means.push_back({{"policy", mean.policy},
                     {"seeds", mean.seeds},
                     {"mean", three_decimals(mean.mean)},
                     {"min", three_decimals(mean.min)},
                     {"max", three_decimals(mean.max)},
                     {"at_full",
                      {{"mean", percent_or_null(mean.full_mean)},
                       {"min", percent_or_null(mean.full_min)},
                       {"max", percent_or_null(mean.full_max)}}}});
  }
  return dump({{"results", std::move(list)}, {"means", std::move(means)}});
}

std::string replay_svg(const std::vector<ReplayResult>& results) {
  Plot plot;
  plot.title = "GPU allocation while a trace arrives";
  plot.x_label = "GPU demand that arrived (% of the cluster's GPUs)";
  plot.y_label = "GPUs allocated (%)";
  plot.x_max = 100;
  plot.y_max = 100;
  plot.diagonal = true;
  plot.diagonal_label = "everything placed";
  for (const ReplayResult& result : results) plot.x_max = std::max(plot.x_max, result.arrived_pct);
  plot.x_min = plot.y_min = where_curves_part(results, plot.x_max);
  for (const ReplayResult& result : results) {
    PlotLine& line = plot.lines.emplace_back();
    line.group = result.policy;
    for (const CurvePoint& point : result.curve) {
      if (point.arrived_pct < plot.x_min || point.gpu_alloc_pct < plot.y_min) continue;
      line.points.emplace_back(point.arrived_pct, point.gpu_alloc_pct);
    }
  }
  std::vector<ReplayMean> means = replay_means(results);
  std::stable_sort(means.begin(), means.end(),
                   [](const ReplayMean& a, const ReplayMean& b) { return a.mean > b.mean; });
  for (const ReplayMean& mean : means) {
    std::string words = fmt::format("{} {:.2f} %", mean.policy, mean.mean);
    if (mean.seeds > 1) words += fmt::format(" (mean of {} seeds)", mean.seeds);
    plot.legend.emplace_back(mean.policy, std::move(words));
  }
  return plot_svg(plot);
}

}  // namespace penstock
