// penstock tune: measures from which sizes on a comm does what on this machine, and keeps the
// table.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "command.h"
#include "launcher.h"
#include "options.h"
#include "penstock/base/env.h"
#include "penstock/comm/tuning_file.h"
#include "penstock/comm/world.h"
#include "pinning.h"
#include "tune_measure.h"

namespace penstock::tool {
namespace {

using nlohmann::ordered_json;

struct TuneOptions {
  std::uint32_t ranks = 2;
  std::string pool;
  std::string file;  // "": tuning_path()
  std::string
      measure;  // set by the launcher: this process is a rank, rank 0 writes its entry there
  std::uint32_t samples = 7;
  bool show = false;
  bool json = false;
  bool keep = true;
};

// A file that goes with the object.
class ScratchFile {
 public:
  explicit ScratchFile(std::string path) : path_(std::move(path)) {}
  ~ScratchFile() {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }
  ScratchFile(const ScratchFile&) = delete;
  ScratchFile& operator=(const ScratchFile&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

Status write_file(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::trunc);
  file << text;
  file.close();
  return file ? Status() : error(Code::io_error, "{} cannot be written", path);
}

// Whoever reads it meanwhile sees the old file or the new one.
Status save(const std::string& path, const TuningTable& table) {
  std::error_code failure;
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  if (!folder.empty()) std::filesystem::create_directories(folder, failure);
  if (failure) {
    return error(Code::io_error, "{} cannot be made: {}", folder.string(), failure.message());
  }
  const ScratchFile next(fmt::format("{}.{}", path, Platform::host().self().pid));
  PENSTOCK_TRY(write_file(next.path(), tuning_table_text(table)));
  std::filesystem::rename(next.path(), path, failure);
  if (failure) return error(Code::io_error, "{} cannot be written: {}", path, failure.message());
  return {};
}

std::string file_of(const TuneOptions& options) {
  return options.file.empty() ? tuning_path() : options.file;
}

// ---- one rank of the measurement ----

int run_rank(const TuneOptions& options) {
  auto world = World::open(Platform::host());
  if (!world.ok()) return fail("tune", world.status());
  auto config = world->comm_config();
  if (!config.ok()) return fail("tune", config.status());
  const bool speaks = config->rank == 0;
  const auto report = [speaks](const TuneFinding& finding) {
    if (!speaks) return;
    const std::string found = finding.value == finding.built_in
                                  ? fmt::format("stays {}", finding.value)
                                  : fmt::format("{} instead of {}, {:.0f} % faster", finding.value,
                                                finding.built_in, finding.gain * 100);
    std::fprintf(stderr, "penstock: tune: %s %s\n", finding.field.c_str(), found.c_str());
  };
  TuneMeasure measure(*world, *config, options.samples);
  auto entry = measure.measure(report);
  if (!entry.ok()) return fail("tune", entry.status());
  if (!speaks) return kExitOk;
  TuningTable table;
  table.put(*entry);
  const Status written = write_file(options.measure, tuning_table_text(table));
  return written.ok() ? kExitOk : fail("tune", written);
}

// ---- the launcher ----

Result<TuningTable> measure_here(const TuneOptions& options, int* status) {
  Launcher launcher;
  Platform& platform = Platform::host();
  sweep_temporary_pools(platform);
  std::optional<TemporaryPool> temporary;
  std::string spec = options.pool;
  if (spec.empty()) {
    const std::uint64_t bytes =
        (std::uint64_t{256} << 20) + options.ranks * (std::uint64_t{8} << 20);
    PENSTOCK_ASSIGN(TemporaryPool made, TemporaryPool::make(platform, "", 1, bytes));
    temporary.emplace(std::move(made));
    spec = temporary->pool().spec();
  } else {
    PENSTOCK_TRY(Pool::map(platform, spec).status());
  }
  std::error_code failure;
  const std::filesystem::path folder = std::filesystem::temp_directory_path(failure);
  if (failure) return error(Code::io_error, "no folder for temporary files: TMPDIR names one");
  const ScratchFile result(
      (folder / fmt::format("penstock-tune-{}-{:08x}.json", platform.self().pid,
                            static_cast<std::uint32_t>(platform.random())))
          .string());
  LaunchConfig launch;
  launch.command = {"penstock",    "tune",      "--measure-into",
                    result.path(), "--samples", std::to_string(options.samples)};
  launch.ranks = options.ranks;
  const std::vector<Cpu> cpus = cores_first(allowed_cpus());
  for (const Cpu& cpu : cpus) launch.cpus.push_back(cpu.number);
  launch.environment = {{"PENSTOCK_POOL", spec},
                        {"PENSTOCK_SIZE", std::to_string(options.ranks)},
                        {"PENSTOCK_COMM", fmt::format("tune-{}", platform.self().pid)},
                        {"PENSTOCK_TUNING", "none"},
                        {"PENSTOCK_TUNING_SET", ""}};
  if (!env::is_set(env::Id::wait) && has_own_cpus(cpus, options.ranks)) {
    launch.environment.emplace_back("PENSTOCK_WAIT", "spin");
  }
  *status = launcher.run(launch);
  if (*status != 0) return TuningTable();
  return load_tuning_table(platform, result.path());
}

ordered_json entry_json(const TuningEntry& entry) {
  TuningTable one;
  one.put(entry);
  return ordered_json::parse(tuning_table_text(one))["entries"][0];
}

void print_fields(const Tuning& tuning, const LocalTuning& local) {
  const std::vector<FieldValue> built_in = tuning_fields({}, {});
  const std::vector<FieldValue> values = tuning_fields(tuning, local);
  for (std::size_t i = 0; i < values.size(); ++i) {
    std::printf("  %-15s %12llu%s\n", values[i].name.c_str(),
                static_cast<unsigned long long>(values[i].value),
                values[i].value == built_in[i].value
                    ? ""
                    : fmt::format("  (built in: {})", built_in[i].value).c_str());
  }
}

int measure_and_keep(const TuneOptions& options) {
  const std::string path = file_of(options);
  if (options.keep && path.empty()) {
    return fail_usage("tune",
                      "there is no place for the table: give --file, or unset "
                      "PENSTOCK_TUNING");
  }
  Platform& platform = Platform::host();
  TuningTable table;
  if (options.keep && platform.exists(path)) {
    auto old = load_tuning_table(platform, path);  // better told now than after the measurement
    if (!old.ok()) return fail("tune", old.status());
    table = std::move(*old);
  }
  int status = kExitOk;
  auto measured = measure_here(options, &status);
  if (!measured.ok()) return fail("tune", measured.status());
  if (status != 0) return status;
  const TuningEntry& entry = measured->entries.front();
  table.put(entry);
  if (options.keep) {
    const Status saved = save(path, table);
    if (!saved.ok()) return fail("tune", saved);
  }
  if (options.json) {
    std::puts(entry_json(entry).dump(2).c_str());
    return kExitOk;
  }
  std::printf("%s, %u CPUs, coherence %s, %u ranks\n", entry.machine.cpu.c_str(),
              entry.machine.cpus, coherence_name(entry.machine.coherence), entry.ranks);
  print_fields(entry.tuning, entry.local);
  if (options.keep) std::printf("kept in %s\n", path.c_str());
  return kExitOk;
}

// ---- what is in force ----

int show(const TuneOptions& options) {
  if (!options.file.empty()) ::setenv("PENSTOCK_TUNING", options.file.c_str(), 1);
  Platform& platform = Platform::host();
  auto coherence = parse_coherence(env::text(env::Id::coherence));
  if (!coherence.ok()) return fail("tune", coherence.status().with_context("PENSTOCK_COHERENCE"));
  auto force = tuning_in_force(platform, *coherence, options.ranks);
  if (!force.ok()) return fail("tune", force.status());
  const std::string path = tuning_path();
  const TuningMachine machine = this_machine(platform, *coherence);
  TuningTable table;
  const bool exists = !path.empty() && platform.exists(path);
  if (exists) {
    auto loaded = load_tuning_table(platform, path);
    if (!loaded.ok()) return fail("tune", loaded.status());
    table = std::move(*loaded);
  }
  TuningEntry entry;
  entry.machine = machine;
  entry.ranks = options.ranks;
  entry.tuning = force->tuning;
  entry.local = force->local;
  entry.note = force->origin;
  if (options.json) {
    ordered_json out = {{"file", exists ? ordered_json(path) : ordered_json(nullptr)},
                        {"in_force", entry_json(entry)}};
    out["entries"] = ordered_json::array();
    for (const TuningEntry& each : table.entries) out["entries"].push_back(entry_json(each));
    std::puts(out.dump(2).c_str());
    return kExitOk;
  }
  std::printf("%s, %u CPUs, coherence %s, %u ranks: %s\n", machine.cpu.c_str(), machine.cpus,
              coherence_name(machine.coherence), options.ranks, force->origin.c_str());
  print_fields(force->tuning, force->local);
  for (const TuningEntry& each : table.entries) {
    std::printf("%s: %s, %u CPUs, coherence %s, %u ranks%s\n", path.c_str(),
                each.machine.cpu.c_str(), each.machine.cpus, coherence_name(each.machine.coherence),
                each.ranks, each.machine == machine ? "" : " (another machine)");
  }
  return kExitOk;
}

}  // namespace

void add_tune(CLI::App& app, Context& context) {
  CLI::App* command = app.add_subcommand(
      "tune", "Measure from which sizes on a comm does what on this machine, and keep the table");
  command->footer(
      "Starts the ranks on this machine, bound to CPUs; takes about half a minute. Every comm "
      "that\n"
      "is made afterwards uses the table's entry for its machine, coherence and number of ranks.\n"
      "Example: penstock tune --ranks 4 && penstock tune --show --ranks 4");
  auto options = std::make_shared<TuneOptions>();
  add_number(*command, "-n,--ranks", options->ranks, 2, kMaxRanks, "Ranks to measure with");
  command->add_option("--pool", options->pool, "Use this pool instead of making one")
      ->type_name("SPEC");
  command
      ->add_option("--file", options->file,
                   "The table's file; default PENSTOCK_TUNING, else penstock/tuning.json in "
                   "$XDG_CONFIG_HOME or ~/.config")
      ->type_name("FILE");
  add_number(*command, "--samples", options->samples, 1, 1000,
             "Samples of each size and way; the median counts");
  command->add_flag("--show", options->show,
                    "Show what is in force for these ranks, and from where");
  command->add_flag("!--no-keep", options->keep, "Measure and print only");
  command->add_flag("--json", options->json, "Print the entry as JSON");
  command->add_option("--measure-into", options->measure)->group("");  // for the ranks it starts
  command->callback([&context, options] {
    context.action = [options] {
      if (!options->measure.empty()) return run_rank(*options);
      return options->show ? show(*options) : measure_and_keep(*options);
    };
  });
}

}  // namespace penstock::tool
