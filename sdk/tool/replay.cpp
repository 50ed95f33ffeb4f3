// penstock replay: replays a cluster trace under one or several policies.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>

#include "command.h"
#include "options.h"
#include "penstock/base/platform.h"
#include "penstock/sched/policy.h"
#include "penstock/sched/replay.h"
#include "penstock/sched/replay_published.h"
#include "penstock/sched/synthetic.h"
#include "penstock/sched/trace.h"
#include "replay_shared.h"

namespace penstock::tool {
namespace {

struct ReplayOptions {
  std::string nodes;
  std::string pods;
  bool synthetic = false;
  SyntheticConfig shape;
  std::vector<std::string> policies = {"best-fit"};
  std::uint64_t seed = 1;
  std::uint32_t seeds = 1;
  double inflate = 1.3;
  std::string engine = "auto";
  std::uint32_t jobs = std::clamp(Platform::host().cpu_count(), 1u, 256u);
  std::string published;
  std::string workload;
  double tolerance = 0.4;
  std::uint32_t schedulers = 0;
  std::uint32_t window = 8;
  std::string csv;
  std::string svg;
  bool json = false;
};

// A line on a terminal, written over and over; nothing elsewhere.
class ProgressBar {
 public:
  explicit ProgressBar(double end_pct) : end_pct_(end_pct) {}
  ~ProgressBar() {
    if (shown_ >= 0) std::fprintf(stderr, "\r\033[K");
  }
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  void show(const std::string& label, const ReplayProgress& progress) {
    constexpr int kWidth = 30;
    const int percent = std::min(100, static_cast<int>(100 * progress.arrived_pct / end_pct_));
    if (!tty_ || percent == shown_) return;
    shown_ = percent;
    const std::string bar(static_cast<std::size_t>(percent * kWidth / 100), '#');
    std::fprintf(stderr, "\r\033[K%s [%-*s] %3d %%, %.1f %% of GPUs allocated ", label.c_str(),
                 kWidth, bar.c_str(), percent, progress.gpu_alloc_pct);
  }

 private:
  const double end_pct_;
  const bool tty_ = ::isatty(STDERR_FILENO) != 0;
  int shown_ = -1;
};

Status read_inputs(const ReplayOptions& options, ReplayConfig* config) {
  const bool files = !options.nodes.empty() || !options.pods.empty();
  if (options.synthetic && files) {
    return error(Code::invalid_argument,
                 "--synthetic makes its own trace; leave out --nodes and --pods");
  }
  if (options.synthetic) {
    PENSTOCK_ASSIGN(SyntheticTrace trace, synthetic_trace(options.shape));
    config->nodes = std::move(trace.nodes);
    config->pods = std::move(trace.pods);
    return {};
  }
  if (options.nodes.empty() || options.pods.empty()) {
    return error(Code::invalid_argument,
                 "no trace given; use --nodes FILE and --pods FILE, or --synthetic");
  }
  PENSTOCK_ASSIGN(config->nodes, read_trace_nodes(options.nodes));
  PENSTOCK_ASSIGN(config->pods, read_trace_pods(options.pods));
  return {};
}

Status write_file(const char* option, const std::string& path, const std::string& text) {
  if (path.empty()) return {};
  std::ofstream file(path, std::ios::trunc);
  file << text;
  file.close();
  if (file) return {};
  return error(Code::io_error, "{} {}: cannot be written; name a file in a folder that is there",
               option, path);
}

// What is printed, and whether everything that was published came out.
struct Report {
  std::string text;
  bool as_published = true;
};

Result<Report> report(const ReplayOptions& options, const std::vector<ReplayResult>& results) {
  Report made{options.json ? replay_json(results) : replay_text(results)};
  if (!options.published.empty()) {
    PENSTOCK_ASSIGN(const auto rows, read_published(options.published));
    const std::string workload = options.workload.empty()
                                     ? std::filesystem::path(options.pods).stem().string()
                                     : options.workload;
    PENSTOCK_ASSIGN(const auto comparisons,
                    compare_published(rows, workload, results, options.tolerance));
    for (const PublishedComparison& comparison : comparisons) {
      if (comparison.verdict == PublishedVerdict::apart) made.as_published = false;
    }
    if (options.json) {
      auto json = nlohmann::ordered_json::parse(made.text);
      json["published"] = nlohmann::ordered_json::parse(published_json(comparisons));
      made.text = json.dump(2);
    } else {
      made.text += "\n" + published_text(comparisons);
    }
  }
  if (made.text.empty() || made.text.back() != '\n') made.text += '\n';
  return made;
}

// Every policy and seed by `schedulers` processes, one run after another.
int run_shared_replays(const ReplayOptions& options, ReplayConfig config, const ReplayRuns& runs) {
  if (!options.csv.empty() || !options.svg.empty() || !options.published.empty()) {
    return fail_usage("replay",
                      "--schedulers has no curves and no published values; leave out "
                      "--csv, --svg and --published");
  }
  std::vector<SharedReplayResult> results;
  SharedReplayConfig shared;
  shared.schedulers = options.schedulers;
  shared.window = options.window;
  for (const std::string& policy : runs.policies) {
    for (std::uint32_t i = 0; i < runs.seeds; ++i) {
      config.policy = policy;
      config.seed = options.seed + i;
      auto result = replay_in_processes(config, shared);
      if (!result.ok()) return fail("replay", result.status());
      results.push_back(std::move(result).value());
    }
  }
  std::fputs((options.json ? shared_replay_json(results) : shared_replay_text(results)).c_str(),
             stdout);
  return kExitOk;
}

int run_replays(const ReplayOptions& options) {
  ReplayConfig config;
  Status status = read_inputs(options, &config);
  if (!status.ok()) return fail("replay", status);
  config.inflate = options.inflate;
  config.engine = options.engine;
  config.seed = options.seed;
  ReplayRuns runs{options.policies, options.seeds, options.jobs};
  if (runs.policies == std::vector<std::string>{"all"}) {
    runs.policies.clear();
    for (const Policy& policy : built_in_policies()) runs.policies.push_back(policy.name);
  }
  for (const std::string& policy : runs.policies) {
    const auto found = find_policy(policy);
    if (!found.ok()) return fail("replay", found.status());
  }
  if (options.schedulers > 0) return run_shared_replays(options, std::move(config), runs);
  auto results = [&] {
    ProgressBar bar(100 * options.inflate);
    return replay_runs(
        config, runs,
        [&bar](const std::string& policy, std::uint64_t seed, const ReplayProgress& progress) {
          bar.show(fmt::format("{} seed {}", policy, seed), progress);
          return true;
        });
  }();
  if (!results.ok()) return fail("replay", results.status());
  status = write_file("--csv", options.csv, replay_csv(results.value()));
  if (status.ok()) status = write_file("--svg", options.svg, replay_svg(results.value()));
  if (!status.ok()) return fail("replay", status);
  const auto made = report(options, results.value());
  if (!made.ok()) return fail("replay", made.status());
  std::fputs(made.value().text.c_str(), stdout);
  return made.value().as_published ? kExitOk : kExitWrong;
}

}  // namespace

void add_replay(CLI::App& app, Context& context) {
  CLI::App* command = app.add_subcommand("replay", "Replay a cluster trace under a policy");
  command->footer(
      "Pods arrive in an order shuffled by the seed, until their GPU demand is --inflate times "
      "the\n"
      "cluster's GPUs; nothing leaves, and what fits nowhere is dropped. With --published the "
      "exit\n"
      "status is 1 if a mean is further from the published one than --tolerance and outside of "
      "its\n"
      "lowest and highest run.\n"
      "Example: penstock replay --nodes nodes.csv --pods pods.csv --policy best-fit,random "
      "--seeds 10\n"
      "         penstock replay --synthetic --policy dot-product --svg curve.svg");
  auto options = std::make_shared<ReplayOptions>();
  command->add_option("--nodes", options->nodes, "CSV: sn, cpu_milli, memory_mib, gpu, model")
      ->type_name("FILE");
  command
      ->add_option("--pods", options->pods,
                   "CSV: name, cpu_milli, memory_mib, num_gpu, gpu_milli, gpu_spec")
      ->type_name("FILE");
  command->add_flag("--synthetic", options->synthetic,
                    "Make a trace of the published one's shape from the seed");
  add_number(*command, "--synthetic-nodes", options->shape.nodes, 1, 1u << 20,
             "Nodes of the synthetic trace");
  add_number(*command, "--synthetic-pods", options->shape.pods, 1, 1u << 24,
             "Pods of the synthetic trace");
  std::string names;
  for (const Policy& policy : built_in_policies()) names += policy.name + ", ";
  command->add_option("--policy", options->policies, names + "or all; several with commas")
      ->delimiter(',')
      ->type_name("NAME")
      ->default_str("best-fit");
  add_number(*command, "--seed", options->seed, 0, UINT64_MAX - (1u << 20),
             "Seed of the first run");
  add_number(*command, "--seeds", options->seeds, 1, 10000, "Runs of each policy, seed by seed");
  add_real(*command, "--inflate", options->inflate, 0.01, 10, "GPU demand that arrives");
  command->add_option("--engine", options->engine, "Engine, by name")
      ->type_name("NAME")
      ->default_str("auto");
  add_number(
      *command, "--schedulers", options->schedulers, 0, 64,
      "Processes that decide at once on one table in a pool, beside one that commits; 0: one "
      "process without a pool");
  add_number(*command, "--window", options->window, 1, 64,
             "Requests of each of them that are under way at a time");
  add_number(*command, "--jobs", options->jobs, 1, 256, "Runs at a time");
  command
      ->add_option(
          "--published", options->published,
          "CSV of published means to compare with: workload, policy, arrived_pct, n_seeds, "
          "mean_gpu_alloc_pct, min, max")
      ->type_name("FILE");
  command
      ->add_option("--workload", options->workload,
                   "Workload in that file; the name of the pods' file without one")
      ->type_name("NAME");
  add_real(*command, "--tolerance", options->tolerance, 0, 100,
           "How far from the published mean, in percentage points");
  command->add_option("--csv", options->csv, "Write the curves as CSV")->type_name("FILE");
  command->add_option("--svg", options->svg, "Draw the curves")->type_name("FILE");
  command->add_flag("--json", options->json, "Print JSON");
  command->callback([&context, options] {
    options->shape.seed = options->seed;
    context.action = [options] { return run_replays(*options); };
  });
}

}  // namespace penstock::tool
