#include "scenarios.h"

#include <fmt/core.h>

#include <algorithm>
#include <memory>
#include <span>

#include "cluster.h"
#include "penstock/base/platform.h"
#include "penstock/base/status.h"
#include "penstock/descriptor/descriptor.h"
#include "penstock/sched/rescorer.h"
#include "table_scenarios.h"

namespace penstock::bench {
namespace {

constexpr std::size_t kBatch = 256;

struct Scenario {
  const char* name;
  Shape shape;
  std::uint32_t classes;
  std::uint64_t of_each;  // so many of a class one after another, then of the next one
  double per_node = 0;    // at most so many tasks for each node, which have to find a place; 0: any
};

constexpr Scenario kScenarios[] = {
    {"identical tasks", Shape::plain, 1, 1},
    {"8 classes in turn", Shape::plain, 8, 1},
    {"64 classes in turn", Shape::plain, 64, 1},
    {"owners of 5000 replicas", Shape::replica, 20, 5000},
    {"8 owners in turn", Shape::replica, 8, 1},
    {"zone spread, required", Shape::zone_spread, 1, 1},
    {"host anti-affinity, required", Shape::host_anti, 1, 1, 0.8},
    {"zone affinity, required", Shape::zone_affinity, 1, 1, 15},
    {"zone affinity, preferred", Shape::preferred, 1, 1},
};

// The tasks of a scenario in their order.
class Tasks {
 public:
  Tasks(const penstock_node_table& header, const Scenario& scenario)
      : of_each_(scenario.of_each), classes_(scenario.classes) {
    const std::size_t copies = std::max<std::size_t>(1, kBatch / classes_);
    for (std::size_t i = 0; i < copies * classes_; i++) {
      const std::size_t kind = of_each_ == 1 ? i % classes_ : i / copies;
      list_.push_back(make_task(header, scenario.shape, static_cast<std::uint32_t>(kind)));
    }
    per_class_ = copies;
  }

  // At most `most` that follow `done` others.
  std::span<const penstock_task> after(std::uint64_t done, std::uint64_t most) const {
    if (of_each_ == 1) {
      const std::size_t at = done % list_.size();
      return {list_.data() + at, std::min<std::uint64_t>(most, list_.size() - at)};
    }
    const std::uint64_t left = of_each_ - done % of_each_;
    const std::size_t at = done / of_each_ % classes_ * per_class_;
    return {list_.data() + at, std::min<std::uint64_t>({most, left, per_class_})};
  }

 private:
  std::vector<penstock_task> list_;
  std::uint64_t of_each_;
  std::size_t classes_;
  std::size_t per_class_;
};

std::uint64_t tasks_of(const Options& options, const Scenario& scenario, std::uint32_t nodes) {
  if (scenario.per_node == 0) return options.tasks;
  return std::min(options.tasks, static_cast<std::uint64_t>(nodes * scenario.per_node));
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2),
                   values.end());
  return values[values.size() / 2];
}

// Places the tasks through Rescorer: first in batches for the rate, then one by one for the times.
Line run_incremental(const Options& options, const Scenario& scenario, const HostTable& cluster) {
  const std::unique_ptr<const Kernels> kernels = simd_kernels();
  const penstock_program program = default_program(*cluster.header());
  const Tasks tasks(*cluster.header(), scenario);
  const std::uint64_t total = tasks_of(options, scenario, cluster.header()->rows);
  std::vector<penstock_result> results(kBatch);
  std::vector<double> rates;
  for (std::uint32_t repetition = 0; repetition <= options.repeat; repetition++) {
    HostTable table = cluster;
    Rescorer rescorer(table.view(), *kernels);
    const std::uint64_t begin = thread_ns();
    std::uint64_t placed = 0;
    for (std::uint64_t done = 0; done < total;) {
      const auto batch = tasks.after(done, std::min<std::uint64_t>(kBatch, total - done));
      const std::size_t n = batch.size();
      const Status status = rescorer.select(program, batch, true, results.data());
      PENSTOCK_CHECK(status.ok(), "{}", status.to_string());
      for (std::size_t i = 0; i < n; i++) placed += results[i].status == PENSTOCK_OK;
      done += n;
    }
    const double seconds = static_cast<double>(thread_ns() - begin) / 1e9;
    PENSTOCK_CHECK(placed == total, "{} of {} tasks found a place", placed, total);
    if (repetition > 0)
      rates.push_back(static_cast<double>(total) / seconds);  // the first warms up
  }
  HostTable table = cluster;
  Rescorer rescorer(table.view(), *kernels);
  Platform& platform = Platform::host();
  std::vector<std::uint32_t> times;
  times.reserve(total);
  for (std::uint64_t done = 0; done < total; done++) {
    const std::uint64_t before = platform.now_ns();
    const Status status = rescorer.select(program, tasks.after(done, 1), true, results.data());
    times.push_back(static_cast<std::uint32_t>(platform.now_ns() - before));
    PENSTOCK_CHECK(status.ok(), "{}", status.to_string());
  }
  Line line;
  line.how = "incremental";
  line.decisions = total;
  line.per_second = median(rates);
  take_percentiles(&times, &line);
  return line;
}

Line run_scan(const Options& options, const Scenario& scenario, const HostTable& cluster,
              const Kernels& kernels, const char* how) {
  const penstock_program program = default_program(*cluster.header());
  const Tasks tasks(*cluster.header(), scenario);
  const std::uint64_t total = tasks_of(options, scenario, cluster.header()->rows);
  HostTable table = cluster;
  const TableView view = table.view();
  std::vector<std::uint32_t> times;
  const auto budget = static_cast<std::uint64_t>(options.scan_seconds * 1e9);
  const std::uint64_t begin = thread_ns();
  std::uint64_t done = 0;
  std::uint64_t now = begin;
  for (; done < total && now - begin < budget; done++) {
    penstock_result result;
    kernels.select(view, program, tasks.after(done, 1).front(), true, &result);
    PENSTOCK_CHECK(result.status == PENSTOCK_OK, "a task found no place");
    const std::uint64_t after = thread_ns();
    times.push_back(static_cast<std::uint32_t>(after - now));
    now = after;
  }
  Line line;
  line.how = how;
  line.decisions = done;
  line.per_second = static_cast<double>(done) / (static_cast<double>(now - begin) / 1e9);
  take_percentiles(&times, &line);
  return line;
}

}  // namespace

void take_percentiles(std::vector<std::uint32_t>* times, Line* line) {
  std::sort(times->begin(), times->end());
  line->p50_us = percentile(*times, 50) / 1000;
  line->p99_us = percentile(*times, 99) / 1000;
  line->max_us = times->empty() ? 0 : times->back() / 1000.0;
}

bool wanted(const Options& options, const char* name) {
  return std::string(name).find(options.only) != std::string::npos;
}

std::vector<Line> run_scenarios(const Options& options) {
  std::vector<Line> lines;
  const std::unique_ptr<const Kernels> scalar = scalar_kernels();
  const std::unique_ptr<const Kernels> simd = simd_kernels();
  for (const std::uint32_t nodes : options.nodes) {
    const HostTable cluster = make_cluster(nodes);
    for (const Scenario& scenario : kScenarios) {
      if (!wanted(options, scenario.name)) continue;
      const penstock_task task = make_task(*cluster.header(), scenario.shape, 0);
      const double limit =
          1e9 / read_ns(scanned_bytes(*cluster.header(), task), options.scan_seconds / 2);
      const auto keep = [&](Line line) {
        line.nodes = nodes;
        line.scenario = scenario.name;
        line.limit_per_second = limit;
        lines.push_back(std::move(line));
        fmt::print(stderr, "{}: {:.0f}/s\n", scenario.name, lines.back().per_second);
      };
      if (scenario.classes == 1 || scenario.of_each > 1) {
        keep(run_scan(options, scenario, cluster, *scalar, "scalar scan"));
        keep(run_scan(options, scenario, cluster, *simd, "simd scan"));
      }
      keep(run_incremental(options, scenario, cluster));
    }
    run_table_scenarios(options, nodes, &lines);
    run_cluster_scenarios(options, nodes, &lines);
  }
  return lines;
}

}  // namespace penstock::bench
