// Decisions per second at 1,000 to 100,000 nodes with all of kube-scheduler's default plugins and
// all nodes considered: bench sched [--quick] [--json] [--markdown FILE] (see --help).
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <fstream>

#include "scenarios.h"

int main(int argc, char** argv) {
  using namespace penstock::bench;
  Options options;
  bool quick = false;
  bool json = false;
  int cpu = -1;
  std::string markdown;
  CLI::App app(
      "Decisions per second with all of kube-scheduler's default plugins and all nodes considered, "
      "on one core. `of limit` is the ratio to what a scan would reach if it only had to read the "
      "columns that the decision looks at, measured in the same run.");
  app.add_flag("--quick", quick, "about a minute: three sizes, fewer repetitions");
  app.add_option("--nodes", options.nodes, "sizes of the cluster (1000 5000 10000 50000 100000)");
  app.add_option("--only", options.only, "scenarios whose name contains this text");
  app.add_option("--tasks", options.tasks, "tasks of a surge (100000)");
  app.add_option("--repeat", options.repeat, "repetitions, of which the median is shown (5)");
  app.add_option("--cpu", cpu, "processor to stay on");
  app.add_flag("--json", json, "JSON instead of a table");
  app.add_option("--markdown", markdown, "writes a table for a document to this file, too");
  CLI11_PARSE(app, argc, argv);
  if (quick) {
    if (app.count("--nodes") == 0) options.nodes = {1000, 10000, 100000};
    if (app.count("--repeat") == 0) options.repeat = 3;
    options.scan_seconds = 0.2;
  }
  if (cpu >= 0 && !pin_to_cpu(cpu)) {
    fmt::print(stderr, "processor {} is not one that this process may use\n", cpu);
    return 2;
  }
  const std::vector<Line> lines = run_scenarios(options);
  fmt::print("{}", json ? as_json(lines) : as_text(lines));
  if (!markdown.empty() && !(std::ofstream(markdown) << as_markdown(lines))) {
    fmt::print(stderr, "{} cannot be written\n", markdown);
    return 2;
  }
  return lines.empty() ? 2 : 0;
}
