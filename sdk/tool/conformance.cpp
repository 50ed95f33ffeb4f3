// penstock conformance: holds an engine against the numeric contract.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "command.h"
#include "options.h"
#include "penstock/comm/world.h"
#include "penstock/engine/conformance.h"

namespace penstock::tool {
namespace {

using nlohmann::ordered_json;

constexpr std::uint64_t kPoolBytes = std::uint64_t{16} << 20;
constexpr std::uint32_t kSlowTimeoutMs = 300000;  // of a simulated card

struct ConformanceChoice {
  std::string engine = "all";
  std::string bus;
  std::string trace;
  std::uint64_t seed = 1;
  bool quick = false;
  bool json = false;
};

// "card", or what the options make of it: "card:verilator;seed=3;trace=FILE".
Result<std::string> engine_text(const ConformanceChoice& choice) {
  if (choice.bus.empty() && choice.trace.empty()) return choice.engine;
  if (choice.engine != "card")
    return error(Code::invalid_argument,
                 "--bus and --trace are about the engine card, not about {}", choice.engine);
  std::string text = "card:" + choice.bus;
  // A device that XRT knows leaves nothing to chance.
  const bool seeded = choice.bus != "xrt" && choice.bus.rfind("xrt;", 0) != 0;
  if (seeded && choice.bus.find(";seed=") == std::string::npos)
    text += fmt::format(";seed={}", choice.seed);
  if (!choice.trace.empty()) text += ";trace=" + choice.trace;
  return text;
}

int run_engines(const ConformanceChoice& choice) {
  const auto text = engine_text(choice);
  if (!text.ok()) return fail("conformance", text.status());
  std::vector<std::string> names = {text.value()};
  if (choice.engine == "all") {
    names.clear();
    for (const EngineInfo& engine : list_engines()) {
      // One that does nothing by itself wraps another.
      if (engine.available && engine.capabilities.opcodes != 0) names.push_back(engine.name);
    }
  }
  auto pool = TemporaryPool::make(Platform::host(), "", 1, kPoolBytes);
  if (!pool.ok()) return fail("conformance", pool.status());
  ConformanceOptions options;
  options.pool = &pool->pool();
  options.seed = choice.seed;
  options.quick = choice.quick;
  bool passed = true;
  ordered_json all = ordered_json::array();
  for (const std::string& name : names) {
    auto engine = make_engine(name);
    if (!engine.ok()) return fail("conformance", engine.status());
    if (!(*engine)->capabilities().synchronous) options.timeout_ms = kSlowTimeoutMs;
    const auto report = run_conformance(**engine, options);
    if (!report.ok()) return fail("conformance", report.status());
    passed = passed && report.value().passed();
    if (choice.json) {
      all.push_back(ordered_json::parse(report.value().to_json()));
    } else {
      std::fputs(report.value().to_table().c_str(), stdout);
      std::fflush(stdout);
    }
  }
  if (choice.json) std::puts(all.dump(2).c_str());
  return passed ? kExitOk : kExitWrong;
}

}  // namespace

void add_conformance(CLI::App& app, Context& context) {
  CLI::App* command = app.add_subcommand(
      "conformance", "Check an engine's results bit by bit; exit status 1 if one is wrong");
  command->footer(
      "Example: penstock conformance --engine simd --quick\n"
      "         penstock conformance --engine card --bus verilator --quick");
  auto choice = std::make_shared<ConformanceChoice>();
  command->add_option("--engine", choice->engine, "Engine, by name, or all")
      ->type_name("NAME")
      ->default_str("all");
  command->add_option("--bus", choice->bus, "Bus of the engine card, with its options after ';'")
      ->type_name("NAME");
  command->add_option("--trace", choice->trace, "Waveforms of the card's RTL, as FST")
      ->type_name("FILE");
  add_number(*command, "--seed", choice->seed, 0, UINT64_MAX, "Seed of the inputs");
  command->add_flag("--quick", choice->quick, "Fewer lengths and numbers of sources");
  command->add_flag("--json", choice->json, "Print JSON");
  command->callback(
      [&context, choice] { context.action = [choice] { return run_engines(*choice); }; });
}

}  // namespace penstock::tool
