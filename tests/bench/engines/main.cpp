// Bytes per second and decisions per second of every engine that is here, beside the memory limit
// measured in the same run: bench engines [--quick] [--json] [--markdown FILE] (see --help).
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <fstream>

#include "penstock/comm/world.h"
#include "report.h"

namespace penstock::bench {
namespace {

struct Way {
  std::string name;
  bool simulated;
};

std::vector<Way> ways(const Options& options) {
  std::vector<Way> all;
  const auto wanted = [&](const std::string& name) {
    return options.only.empty() ||
           std::any_of(options.only.begin(), options.only.end(),
                       [&](const std::string& begin) { return name.rfind(begin, 0) == 0; });
  };
  const auto add = [&](const std::string& name, bool available, bool simulated) {
    if (available && wanted(name)) all.push_back({name, simulated});
  };
  for (const EngineInfo& engine : list_engines()) {
    if (engine.name == "fault") continue;  // wraps another
    if (engine.variants.empty()) add(engine.name, engine.available, engine.simulated);
    for (const EngineVariant& variant : engine.variants)
      add(variant.name, variant.available, variant.simulated);
  }
  return all;
}

int run(const Options& options, bool json, const std::string& markdown) {
  const std::vector<Way> all = ways(options);
  if (all.empty()) {
    fmt::print(stderr, "bench engines: none of these is here; see penstock info\n");
    return 2;
  }
  constexpr std::uint64_t kPoolBytes = std::uint64_t{192} << 20;
  auto pool = TemporaryPool::make(Platform::host(), "", 1, kPoolBytes);
  if (!pool.ok()) {
    fmt::print(stderr, "bench engines: {}\n", pool.status().message());
    return 2;
  }
  std::vector<Figure> figures;
  for (const Way& way : all) {
    const std::uint64_t began = Platform::host().now_ns();
    const std::vector<Figure> more = measure_engine(way.name, way.simulated, pool->pool(), options);
    figures.insert(figures.end(), more.begin(), more.end());
    fmt::print(stderr, "{}: {:.1f} s\n", way.name,
               static_cast<double>(Platform::host().now_ns() - began) * 1e-9);
  }
  fmt::print("{}", json ? as_json(figures) : as_text(figures));
  if (!markdown.empty() && !(std::ofstream(markdown) << as_markdown(figures))) {
    fmt::print(stderr, "{} cannot be written\n", markdown);
    return 2;
  }
  return 0;
}

}  // namespace
}  // namespace penstock::bench

int main(int argc, char** argv) {
  penstock::bench::Options options;
  bool json = false;
  std::string markdown;
  CLI::App app(
      "COPY and REDUCE in bytes per second (all that are read or written once) and SELECT in "
      "decisions per second, of every engine that is here. `of limit` is the time in which the C "
      "library reads the same sources and writes the same destination on one core, or reads the "
      "columns of a decision, over the engine's. Simulated engines are marked: their rate is the "
      "simulation's, and `own clock` says what the device itself would need.");
  app.add_flag("--quick", options.quick, "fewer sizes, about a minute");
  app.add_option("--only", options.only, "engines whose names begin with this text");
  app.add_option("--repeat", options.repeat, "repetitions, of which the median is shown (7)")
      ->check(CLI::Range(1, 1000));
  app.add_flag("--json", json, "JSON instead of a table");
  app.add_option("--markdown", markdown, "writes a table for a document to this file, too");
  CLI11_PARSE(app, argc, argv);
  if (options.quick && app.count("--repeat") == 0) options.repeat = 3;
  // The plugins stand beside the tool, and this binary in another folder of the same build.
  setenv("PENSTOCK_PLUGINS", PENSTOCK_BENCH_PLUGINS, 0);
  return penstock::bench::run(options, json, markdown);
}
