// Cycles of the card on each simulated machine of this build, as JSON: the measuring half of
// `./run card-report`.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <nlohmann/json.hpp>

#include "workload.h"

int main(int argc, char** argv) {
  using namespace penstock::bench;
  Options options;
  std::vector<std::string> machines;
  bool silent = false;
  CLI::App app(
      "Cycles of the simulated card: records back to back, latencies, decisions, as JSON. Memory "
      "answers after a fixed number of cycles.");
  app.add_option("--machine", machines, "rtl, systemc (all that this build has)");
  app.add_flag("--quick", options.quick, "three types, up to 4 sources, up to 10,000 nodes");
  app.add_option("--only", options.only, "figures whose name contains this text");
  app.add_option("--read-latency", options.latency.read, "cycles to the first beat (40)")
      ->check(CLI::Range(1, 10000));
  app.add_option("--write-latency", options.latency.write, "cycles to the acknowledgement (20)")
      ->check(CLI::Range(1, 10000));
  app.add_flag("--silent", silent, "no progress on the standard error");
  CLI11_PARSE(app, argc, argv);
  if (machines.empty()) machines = machine_names();
  nlohmann::json report;
  if (std::find(machines.begin(), machines.end(), "systemc") != machines.end()) {
    const double speed = source_bytes_per_second("systemc", options.latency);
    report["systemc_source_bytes_per_second"] = speed;
    if (!silent) fmt::print(stderr, "systemc: reduces {:.2f} GB/s of source bytes\n", speed / 1e9);
  }
  report["latency"] = {{"read", options.latency.read}, {"write", options.latency.write}};
  for (const std::string& name : machines) {
    const std::vector<std::string> known = machine_names();
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      fmt::print(stderr, "card report: there is no machine {} in this build; there are {}\n", name,
                 fmt::join(known, ", "));
      return 2;
    }
    nlohmann::json& figures = report["machines"][name] = nlohmann::json::array();
    for (const Figure& figure : measure(name, options, !silent))
      figures.push_back({{"group", figure.group},
                         {"name", figure.name},
                         {"type", figure.type},
                         {"sources", figure.sources},
                         {"bytes", figure.bytes},
                         {"rows", figure.rows},
                         {"cycles", figure.cycles},
                         {"limit", figure.limit}});
  }
  fmt::print("{}\n", report.dump(2));
  return 0;
}
