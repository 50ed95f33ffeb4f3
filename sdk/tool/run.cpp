// penstock run: a pool and the ranks of a job on this machine.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <optional>

#include "command.h"
#include "launcher.h"
#include "options.h"
#include "penstock/base/env.h"
#include "penstock/comm/plan.h"
#include "penstock/comm/world.h"
#include "pinning.h"
#include "run_reports.h"

namespace penstock::tool {
namespace {

struct RunOptions {
  LaunchConfig launch;
  std::uint32_t devices = 0;    // 0: PENSTOCK_POOL_DEVICES
  std::uint64_t pool_size = 0;  // 0: PENSTOCK_POOL_BYTES
  std::string pool;
  std::string pin;  // see choose_cpus; "": not
  bool verbose = false;
  bool spin = false;  // a pinned rank sees one CPU, and would yield to ranks that are not there
  RunReports reports;
};

Result<TemporaryPool> make_pool(const RunOptions& options) {
  std::uint64_t devices = options.devices;
  if (devices == 0) {
    PENSTOCK_ASSIGN(devices, env::number(env::Id::pool_devices, 1, PENSTOCK_MAX_DEVICES));
  }
  std::uint64_t bytes = options.pool_size;
  if (bytes == 0) {
    PENSTOCK_ASSIGN(bytes,
                    env::bytes(env::Id::pool_bytes, kMinDeviceBytes, std::uint64_t{1} << 55));
  }
  return TemporaryPool::make(Platform::host(), "", static_cast<std::uint32_t>(devices), bytes);
}

// Which CPU each rank gets, and with --verbose says so.
Status pin_ranks(RunOptions& options) {
  if (options.pin.empty()) return {};
  PENSTOCK_ASSIGN(const std::vector<Cpu> cpus, choose_cpus(options.pin, allowed_cpus()));
  for (const Cpu& cpu : cpus) options.launch.cpus.push_back(cpu.number);
  options.spin = !env::is_set(env::Id::wait) && has_own_cpus(cpus, options.launch.ranks);
  if (!options.verbose) return {};
  for (std::uint32_t rank = 0; rank < options.launch.ranks; ++rank) {
    const Cpu& cpu = cpus[rank % cpus.size()];
    std::fprintf(stderr,
                 "penstock: run: rank %u on CPU %d (processor %d, core %d, memory node %d)\n", rank,
                 cpu.number, cpu.package, cpu.core, cpu.node);
  }
  return {};
}

int run_ranks(RunOptions& options) {
  if (options.launch.command.empty()) {
    return fail_usage("run", "no command given; use `penstock run -n 4 -- COMMAND ARGUMENT...`");
  }
  const Status pinned = pin_ranks(options);
  if (!pinned.ok()) return fail("run", pinned.with_context("--pin"));
  Launcher launcher;
  Platform& platform = Platform::host();
  sweep_temporary_pools(platform);
  std::optional<TemporaryPool> temporary;
  std::string spec = options.pool.empty() ? env::text(env::Id::pool) : options.pool;
  if (!spec.empty()) {
    // Better told once, here, than by every rank.
    const auto pool = Pool::map(platform, spec);
    if (!pool.ok()) return fail("run", pool.status());
  } else {
    auto made = make_pool(options);
    if (!made.ok()) return fail("run", made.status());
    temporary.emplace(std::move(made).value());
    spec = temporary->pool().spec();
  }
  options.launch.environment = {
      {"PENSTOCK_POOL", spec},
      {"PENSTOCK_SIZE", std::to_string(options.launch.ranks)},
      {"PENSTOCK_COMM", fmt::format("run-{}-{:08x}", platform.self().pid,
                                    static_cast<std::uint32_t>(platform.random()))}};
  if (options.spin) options.launch.environment.emplace_back("PENSTOCK_WAIT", "spin");
  const Status prepared = options.reports.prepare(&options.launch);
  if (!prepared.ok()) return fail("run", prepared);
  const int status = launcher.run(options.launch);
  options.reports.finish(options.launch.ranks);
  return status;
}

}  // namespace

void add_run(CLI::App& app, Context& context) {
  CLI::App* command = app.add_subcommand("run", "Start the ranks of a job on this machine");
  command->footer(
      "Usage: penstock run [OPTIONS] -- COMMAND [ARGUMENT...]\n"
      "Makes a pool for the run and removes it afterwards. The exit status is that of the first\n"
      "rank that fails (128 + signal), or 124 after --timeout.\n"
      "Example: penstock run -n 4 --devices 2 -- penstock perf all_reduce -b 1K -e 1M -f 2");
  command->prefix_command();
  auto options = std::make_shared<RunOptions>();
  add_number(*command, "-n,--ranks", options->launch.ranks, 1, kMaxRanks, "Ranks to start");
  add_number(*command, "--devices", options->devices, 1, PENSTOCK_MAX_DEVICES,
             "Memory devices of the run's pool")
      ->default_str("PENSTOCK_POOL_DEVICES");
  add_size(*command, "--pool-size", options->pool_size, kMinDeviceBytes, std::uint64_t{1} << 55,
           "Bytes of each memory device of the run's pool", "PENSTOCK_POOL_BYTES");
  command->add_option("--pool", options->pool, "Use this pool instead of making one")
      ->type_name("SPEC")
      ->default_str("PENSTOCK_POOL");
  add_number(*command, "--timeout", options->launch.timeout_s, 1, 1000000,
             "Seconds after which the ranks are terminated")
      ->default_str("none");
  add_number(*command, "--grace", options->launch.grace_s, 0, 100000,
             "Seconds that the others get when one rank fails");
  command
      ->add_option_function<std::string>(
          "--pin",
          [options](const std::string& text) { options->pin = text.empty() ? "cores" : text; },
          "Pin ranks to CPUs: cores (the default; ranks share a core only when there are more of "
          "them), cpus (in order), or a list such as 0,2-3")
      ->type_name("[LIST]")
      ->expected(0, 1)
      ->default_str("");
  command->add_flag_function(
      "--bind", [options](std::int64_t) { options->pin = "cpus"; }, "The same as --pin cpus");
  command->add_flag("-v,--verbose", options->verbose, "Say where the ranks are pinned");
  command->add_flag("--tag-output", options->launch.tag_output, "Begin each line with [rank]");
  command->add_flag("--stats", options->reports.stats,
                    "Print the statistics of the comms when the ranks have ended");
  command
      ->add_option("--trace", options->reports.trace,
                   "Write a timeline of all ranks, which ui.perfetto.dev opens")
      ->type_name("FILE");
  command->callback([&context, options, command] {
    options->launch.command =
        context.rank_command.empty() ? command->remaining() : context.rank_command;
    context.action = [options] { return run_ranks(*options); };
  });
}

}  // namespace penstock::tool
