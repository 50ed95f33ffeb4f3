// penstock conformance: holds an engine against the numeric contract.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "command.h"
#include "conformance_table.h"
#include "engine_list.h"
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

// Where nothing says what a simulated card does by chance, the seed does.
std::string with_seed(const std::string& name, std::uint64_t seed) {
  const bool card = name == "card:verilator" || name == "card:systemc";
  return card ? fmt::format("{};seed={}", name, seed) : name;
}

ConformanceColumn run_one(const std::string& name, const ConformanceChoice& choice, Pool& pool,
                          Status* failure) {
  ConformanceColumn column;
  column.name = name;
  const std::uint64_t began = Platform::host().now_ns();
  auto engine = make_engine(choice.engine == "all" ? with_seed(name, choice.seed) : name);
  const auto failed = [&](const Status& status) {
    *failure = status;
    column.state = "failed to start";
    column.reason = status.message();
    return column;
  };
  if (!engine.ok()) return failed(engine.status());
  ConformanceOptions options;
  options.pool = &pool;
  options.seed = choice.seed;
  options.quick = choice.quick;
  if (!(*engine)->capabilities().synchronous) options.timeout_ms = kSlowTimeoutMs;
  auto report = run_conformance(**engine, options);
  column.seconds = static_cast<double>(Platform::host().now_ns() - began) * 1e-9;
  if (!report.ok()) return failed(report.status());
  column.state = "ran";
  column.report = std::move(report).value();
  return column;
}

// Each engine in each way that this machine has, and the others by name.
std::vector<ConformanceColumn> run_all(const ConformanceChoice& choice, Pool& pool) {
  std::vector<ConformanceColumn> columns;
  for (const ListedVariant& way : listed_ways()) {
    if (way.state != EngineState::available) {
      columns.push_back({way.name, engine_state_name(way.state), way.reason, 0, {}});
      continue;
    }
    std::fprintf(stderr, "penstock: conformance: %s\n", way.name.c_str());
    Status failure;  // stands in the table
    columns.push_back(run_one(way.name, choice, pool, &failure));
    const ConformanceColumn& done = columns.back();
    std::fprintf(stderr, "penstock: conformance: %s %s after %.1f s\n", way.name.c_str(),
                 done.failed() ? "FAILED" : "conforms", done.seconds);
  }
  return columns;
}

int run_engines(const ConformanceChoice& choice) {
  const auto text = engine_text(choice);
  if (!text.ok()) return fail("conformance", text.status());
  auto pool = TemporaryPool::make(Platform::host(), "", 1, kPoolBytes);
  if (!pool.ok()) return fail("conformance", pool.status());
  std::vector<ConformanceColumn> columns;
  if (choice.engine == "all") {
    columns = run_all(choice, pool->pool());
  } else {
    Status failure;
    columns.push_back(run_one(text.value(), choice, pool->pool(), &failure));
    if (!failure.ok()) return fail("conformance", failure);
  }
  if (choice.json) {
    ordered_json all = ordered_json::array();
    for (const ConformanceColumn& column : columns) all.push_back(conformance_json(column));
    std::puts(all.dump(2, ' ', false, ordered_json::error_handler_t::replace).c_str());
  } else if (choice.engine == "all") {
    std::fputs(conformance_table(columns).c_str(), stdout);
  } else {
    std::fputs(columns[0].report->to_table().c_str(), stdout);
  }
  return all_conform(columns) ? kExitOk : kExitWrong;
}

}  // namespace

void add_conformance(CLI::App& app, Context& context) {
  CLI::App* command = app.add_subcommand(
      "conformance", "Check an engine's results bit by bit; exit status 1 if one is wrong");
  command->footer(
      "Example: penstock conformance --engine all --quick\n"
      "         penstock conformance --engine simd\n"
      "         penstock conformance --engine card --bus verilator --quick");
  auto choice = std::make_shared<ConformanceChoice>();
  command
      ->add_option("--engine", choice->engine,
                   "Engine, by name, or all: every one in every way that is here, as one table")
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
