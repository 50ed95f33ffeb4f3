// penstock-sim: runs scenarios of the incoherent pool over many seeds, or one of them with a trace.
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "penstock/sim/incoherent/scenario.h"

namespace penstock::sim {
namespace {

constexpr const char* kHelp = R"(usage: penstock-sim [OPTION...]

Runs production code of pools, fences and comms on simulated hosts whose caches know nothing of each
other. Everything follows from the seed; a failure prints the line that brings it back.

  --list            the scenarios, one a line
  --scenario NAME   one of them, several joined by ',', or all (the default)
  --seed N          the first seed (1)
  --seeds N         how many seeds from there on (100; 1 if --seed is given)
  --ranks N         ranks, 1..16, instead of what the seed says
  --devices N       memory devices, 1..16, instead of what the seed says
  --machines M      one (hosts share locks and pids, only their caches differ) or each (every host
                    is a machine), instead of what the seed says
  --trace           every event of the simulated platforms, to standard error
  --keep-going      runs all seeds of a scenario that has failed; else it ends with the first one
  --json            the result as JSON
  --sites           records where cache control was asked for, and gives it in the JSON
  --drop SITES      acts as if those calls were not there: PRIMITIVE@ADDRESS, joined by ',', where
                    PRIMITIVE is write_back, invalidate, store_fence, full_fence or any, and ADDRESS
                    is a return address above the call, in hex, as --sites gives it
  --help            this

Exit status: 0 all was as it must be, 1 a scenario failed, 2 the options make no sense.
)";

struct Arguments {
  std::vector<Scenario> chosen;
  std::uint64_t first_seed = 1;
  std::optional<std::uint64_t> seeds;
  std::uint32_t ranks = 0;
  std::uint32_t devices = 0;
  Machines machines = Machines::by_seed;
  bool trace = false;
  bool keep_going = false;
  bool json = false;
  bool sites = false;
  bool list = false;
  bool help = false;
  std::vector<Drop> drops;
};

Result<std::uint64_t> parse_number(const std::string& option, const std::string& text,
                                   std::uint64_t least, std::uint64_t most) {
  std::uint64_t value = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
  if (parsed.ec != std::errc() || parsed.ptr != text.data() + text.size() || value < least ||
      value > most) {
    return error(Code::invalid_argument, "{} {}: it must be a number, {} to {}", option, text,
                 least, most);
  }
  return value;
}

Result<std::vector<Scenario>> choose(const std::string& names) {
  const std::vector<Scenario> all = scenarios();
  if (names == "all") return all;
  std::vector<Scenario> chosen;
  std::string known;
  for (const Scenario& each : all) known += (known.empty() ? "" : ", ") + std::string(each.name);
  std::size_t begin = 0;
  while (begin <= names.size()) {
    const std::size_t end = std::min(names.find(',', begin), names.size());
    const std::string name = names.substr(begin, end - begin);
    const auto found = std::find_if(all.begin(), all.end(),
                                    [&](const Scenario& each) { return each.name == name; });
    if (found == all.end()) {
      return error(Code::not_found, "there is no scenario '{}'; there are {}", name, known);
    }
    chosen.push_back(*found);
    begin = end + 1;
  }
  return chosen;
}

Result<Arguments> parse(int count, char** words) {
  Arguments arguments;
  arguments.chosen = scenarios();
  bool one_seed = false;
  for (int at = 1; at < count; ++at) {
    const std::string option = words[at];
    bool* const flag = option == "--trace"        ? &arguments.trace
                       : option == "--keep-going" ? &arguments.keep_going
                       : option == "--json"       ? &arguments.json
                       : option == "--sites"      ? &arguments.sites
                       : option == "--list"       ? &arguments.list
                       : option == "--help"       ? &arguments.help
                                                  : nullptr;
    if (flag != nullptr) {
      *flag = true;
      continue;
    }
    static const char* const kValued[] = {"--scenario", "--seed",     "--seeds", "--ranks",
                                          "--devices",  "--machines", "--drop"};
    const bool known = std::any_of(std::begin(kValued), std::end(kValued),
                                   [&](const char* each) { return option == each; });
    if (!known) return error(Code::invalid_argument, "unknown option {}; see --help", option);
    if (++at == count) return error(Code::invalid_argument, "{} needs a value", option);
    const std::string value = words[at];
    if (option == "--scenario") {
      PENSTOCK_ASSIGN(arguments.chosen, choose(value));
    } else if (option == "--drop") {
      PENSTOCK_ASSIGN(arguments.drops, parse_drops(value));
    } else if (option == "--machines") {
      if (value != "one" && value != "each") {
        return error(Code::invalid_argument, "--machines {}: it must be one or each", value);
      }
      arguments.machines = value == "one" ? Machines::one : Machines::each;
    } else if (option == "--ranks" || option == "--devices") {
      PENSTOCK_ASSIGN(const std::uint64_t number, parse_number(option, value, 1, 16));
      (option == "--ranks" ? arguments.ranks : arguments.devices) =
          static_cast<std::uint32_t>(number);
    } else if (option == "--seed") {
      PENSTOCK_ASSIGN(arguments.first_seed, parse_number(option, value, 0, UINT64_MAX));
      one_seed = true;
    } else {
      PENSTOCK_ASSIGN(arguments.seeds, parse_number(option, value, 1, UINT32_MAX));
    }
  }
  if (!arguments.seeds) arguments.seeds = one_seed ? 1 : 100;
  return arguments;
}

// What is running, for the case that a check of the code under test aborts.
char running_now[256];

extern "C" void say_what_ran(int signal) {
  const auto say = [](const char* text) { (void)!::write(2, text, std::strlen(text)); };
  say("FAILED (a signal ended it): penstock-sim ");
  say(running_now);
  say("\n");
  std::signal(signal, SIG_DFL);
  ::raise(signal);
}

struct Tally {
  std::uint64_t seeds = 0;
  std::uint64_t failed = 0;
  std::uint64_t steps = 0;
  std::uint64_t hash = 0;
  double seconds = 0;
  nlohmann::json failures = nlohmann::json::array();
};

Tally run_scenario(const Scenario& scenario, const Arguments& arguments, SiteWatch* sites) {
  Platform& platform = Platform::host();
  const std::uint64_t began_ns = platform.now_ns();
  std::uint64_t said_ns = began_ns;
  Tally tally;
  for (std::uint64_t index = 0; index < *arguments.seeds; ++index) {
    Options options;
    options.seed = arguments.first_seed + index;
    options.ranks = arguments.ranks;
    options.devices = arguments.devices;
    options.machines = arguments.machines;
    options.sites = sites;
    if (arguments.trace) {
      options.trace = [](const std::string& line) { fmt::print(stderr, "{}\n", line); };
    }
    std::snprintf(running_now, sizeof running_now,
                  "--scenario %s --seed %llu --ranks %u --devices %u", scenario.name,
                  static_cast<unsigned long long>(options.seed), options.ranks, options.devices);
    const Outcome outcome = scenario.run(options);
    ++tally.seeds;
    tally.steps += outcome.steps;
    tally.hash = (tally.hash ^ outcome.trace_hash) * 0x100000001b3;
    const std::uint64_t now_ns = platform.now_ns();
    if (!outcome.failure.empty()) {
      ++tally.failed;
      tally.failures.push_back({{"replay", outcome.replay}, {"failure", outcome.failure}});
      if (!arguments.json) {
        fmt::print("FAILED penstock-sim {}: {}\n", outcome.replay, outcome.failure);
      }
      if (!arguments.keep_going) break;
    }
    if (now_ns - said_ns > 10'000'000'000) {
      said_ns = now_ns;
      fmt::print(stderr, "{}: {} of {} seeds\n", scenario.name, tally.seeds, *arguments.seeds);
    }
  }
  tally.seconds = static_cast<double>(platform.now_ns() - began_ns) * 1e-9;
  return tally;
}

nlohmann::json sites_json(const SiteWatch& watch) {
  nlohmann::json all = nlohmann::json::array();
  for (const auto& [site, times] : watch.sites()) {
    nlohmann::json callers = nlohmann::json::array();
    for (const std::uint64_t address : site.callers) {
      if (address != 0) callers.push_back(fmt::format("{:x}", address));
    }
    all.push_back(
        {{"primitive", primitive_name(site.primitive)}, {"callers", callers}, {"times", times}});
  }
  return all;
}

int run_all(const Arguments& arguments) {
  std::signal(SIGABRT, say_what_ran);
  SiteWatch watch(arguments.drops, arguments.sites);
  SiteWatch* const sites = arguments.sites || !arguments.drops.empty() ? &watch : nullptr;
  nlohmann::json results = nlohmann::json::array();
  std::uint64_t failed = 0;
  for (const Scenario& scenario : arguments.chosen) {
    const Tally tally = run_scenario(scenario, arguments, sites);
    failed += tally.failed;
    results.push_back({{"scenario", scenario.name},
                       {"seeds", tally.seeds},
                       {"failed", tally.failed},
                       {"calls", tally.steps},
                       {"trace_hash", fmt::format("{:016x}", tally.hash)},
                       {"seconds", tally.seconds},
                       {"failures", tally.failures}});
    if (!arguments.json) {
      fmt::print("{:<20} {:>6} seeds {:>11} calls {:>8.2f} s  trace {:016x}  {}\n", scenario.name,
                 tally.seeds, tally.steps, tally.seconds, tally.hash,
                 tally.failed == 0 ? "ok" : fmt::format("{} FAILED", tally.failed));
      std::fflush(stdout);
    }
    if (failed > 0 && !arguments.keep_going) break;
  }
  if (arguments.json) {
    nlohmann::json report = {{"results", results}, {"dropped", watch.dropped()}};
    if (arguments.sites) report["sites"] = sites_json(watch);
    fmt::print("{}\n", report.dump(1));
  }
  return failed == 0 ? 0 : 1;
}

}  // namespace
}  // namespace penstock::sim

int main(int count, char** words) {
  using namespace penstock::sim;
  const auto arguments = parse(count, words);
  if (!arguments.ok()) {
    fmt::print(stderr, "penstock-sim: {}\n", arguments.status().message());
    return 2;
  }
  if (arguments.value().help) {
    fmt::print("{}", kHelp);
    return 0;
  }
  if (arguments.value().list) {
    for (const Scenario& each : arguments.value().chosen) {
      fmt::print("{:<20} {}\n", each.name, each.summary);
    }
    return 0;
  }
  return run_all(arguments.value());
}
