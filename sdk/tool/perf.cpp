// penstock perf: speed and correctness of collectives, with the flags and columns of nccl-tests.
#include <CLI/CLI.hpp>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <memory>

#include "command.h"
#include "options.h"
#include "penstock/comm/world.h"
#include "penstock/descriptor/descriptor.h"
#include "perf_measure.h"
#include "sizes.h"

namespace penstock::tool {
namespace {

constexpr std::uint64_t kMaxSize = std::uint64_t{1} << 40;

struct PerfOptions {
  std::string collective;
  std::uint64_t min_bytes = 1 << 10;
  std::uint64_t max_bytes = 16 << 20;
  std::uint64_t step_bytes = 0;
  double factor = 2;
  bool max_given = false;
  MeasureOptions measure;
  std::string type = "f32";
  std::string redop = "sum";
  std::string root = "0";
  std::string json_file;
  bool json = false;
};

// Set by SIGINT and SIGTERM, so that the comm and a pool of one's own are left in order.
std::atomic<int> stop_signal{0};
void remember_signal(int signal) { stop_signal.store(signal); }

// What is swept: for each type and operation and root, all sizes.
struct Sweep {
  Collective collective;
  std::vector<std::uint32_t> types;
  std::vector<std::uint32_t> redops;
  std::vector<std::uint32_t> roots;
  std::vector<std::uint64_t> sizes;
};

Result<std::vector<std::uint64_t>> sizes_of(const PerfOptions& options) {
  const std::uint64_t last =
      options.max_given ? options.max_bytes : std::max(options.max_bytes, options.min_bytes);
  if (last < options.min_bytes) {
    return error(Code::invalid_argument,
                 "-e {} is smaller than -b {}; give a largest size that is at least the smallest",
                 options.max_bytes, options.min_bytes);
  }
  std::vector<std::uint64_t> sizes;
  for (std::uint64_t size = options.min_bytes; size <= last;) {
    sizes.push_back(size);
    if (sizes.size() > 100000) {
      return error(Code::invalid_argument,
                   "more than 100000 sizes between -b and -e; use a larger -i or -f");
    }
    if (options.step_bytes > 0) {
      size += options.step_bytes;
    } else {
      const auto next = static_cast<std::uint64_t>(static_cast<double>(size) * options.factor);
      size = std::max(size + 1, next);
    }
  }
  return sizes;
}

Result<Sweep> make_sweep(const PerfOptions& options, std::uint32_t ranks) {
  Sweep sweep;
  PENSTOCK_ASSIGN(sweep.collective, parse_collective(options.collective));
  if (sweep.collective == Collective::send_recv && ranks < 2) {
    return error(Code::invalid_argument,
                 "send_recv needs two ranks or more; use `penstock run -n 2 -- penstock perf "
                 "send_recv`");
  }
  if (options.type == "all") {
    for (std::uint32_t type = 0; type < PENSTOCK_TYPE_COUNT; ++type) sweep.types.push_back(type);
  } else {
    PENSTOCK_ASSIGN(const std::uint32_t type, parse_type(options.type));
    sweep.types = {type};
  }
  if (options.redop == "all") {
    for (std::uint32_t op = 0; op < PENSTOCK_REDOP_COUNT; ++op) sweep.redops.push_back(op);
  } else {
    PENSTOCK_ASSIGN(const std::uint32_t redop, parse_redop(options.redop));
    sweep.redops = {redop};
  }
  if (!reduces(sweep.collective)) sweep.redops = {PENSTOCK_SUM};
  if (options.root == "all") {
    for (std::uint32_t root = 0; root < ranks; ++root) sweep.roots.push_back(root);
  } else {
    const std::uint64_t root = parse_number("-r", options.root, 0, kMaxRanks - 1);
    if (root >= ranks) {
      return error(Code::invalid_argument, "-r {} is out of range; the ranks are 0..{}", root,
                   ranks - 1);
    }
    sweep.roots = {static_cast<std::uint32_t>(root)};
  }
  if (!has_root(sweep.collective)) sweep.roots = {0};
  if (sweep.collective == Collective::barrier) {
    sweep.types = {PENSTOCK_UINT8};
    sweep.sizes = {0};
  } else {
    PENSTOCK_ASSIGN(sweep.sizes, sizes_of(options));
  }
  return sweep;
}

Result<PerfRow> measure_row(Measure& measure, Scenario scenario) {
  PerfRow row;
  row.size = size_of_count(scenario.collective, scenario.count, scenario.ranks, scenario.type);
  row.count = scenario.count;
  row.type = penstock_type_name(scenario.type);
  row.redop = reduces(scenario.collective) ? penstock_redop_name(scenario.redop) : "none";
  row.root = has_root(scenario.collective) ? std::int64_t{scenario.root} : -1;
  Measure::Traffic traffic;
  scenario.in_place = false;
  PENSTOCK_ASSIGN(row.out_of_place, measure.run(scenario, &traffic));
  row.pool_written = traffic.written;
  row.pool_read = traffic.read;
  if (!has_in_place(scenario.collective)) return row;
  scenario.in_place = true;
  PENSTOCK_ASSIGN(row.in_place, measure.run(scenario, nullptr));
  return row;
}

Status write_file(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::trunc);
  file << text;
  file.close();
  if (file) return {};
  return error(Code::io_error, "-J {}: cannot be written; name a file in a folder that is there",
               path);
}

// All rows; rank 0 prints them as they come.
Status measure_all(const PerfOptions& options, const Sweep& sweep, World& world, Comm& comm,
                   std::uint64_t* wrong) {
  Measure measure(comm, world.pool().platform(), options.measure);
  const bool prints = comm.rank() == 0;
  const bool checked = options.measure.checks > 0 && sweep.collective != Collective::barrier;
  PerfHeader header;
  header.collective = collective_name(sweep.collective);
  header.pool = world.pool().spec();
  header.devices = world.pool().device_count();
  header.engine = comm.engine().name;
  PENSTOCK_ASSIGN(header.ranks, measure.processes());
  header.warmup = options.measure.warmup;
  header.iterations = options.measure.iterations;
  header.fixed_iterations = options.measure.fixed_iterations;
  header.checks = checked ? options.measure.checks : 0;
  header.blocking = options.measure.blocking;
  header.fresh = options.measure.fresh;
  const bool table = prints && !options.json;
  if (table) std::fputs(header_text(header).c_str(), stdout);
  if (table) std::fflush(stdout);

  std::vector<PerfRow> rows;
  Scenario scenario;
  scenario.collective = sweep.collective;
  scenario.ranks = comm.size();
  for (const std::uint32_t type : sweep.types) {
    for (const std::uint32_t redop : sweep.redops) {
      for (const std::uint32_t root : sweep.roots) {
        for (const std::uint64_t size : sweep.sizes) {
          if (stop_signal.load() != 0) return error(Code::cancelled, "interrupted");
          scenario.type = type;
          scenario.redop = redop;
          scenario.root = root;
          scenario.count = count_of_size(sweep.collective, size, comm.size(), type);
          scenario.seed = rows.size() * 10000 + 1;
          PENSTOCK_ASSIGN(PerfRow row, measure_row(measure, scenario));
          if (table) std::fputs(row_text(row, checked).c_str(), stdout);
          if (table) std::fflush(stdout);
          rows.push_back(std::move(row));
        }
      }
    }
  }
  *wrong = summarise(rows).wrong;
  if (table) std::fputs(footer_text(rows, checked).c_str(), stdout);
  if (prints && options.json) std::fputs(perf_json(header, rows).c_str(), stdout);
  if (prints && !options.json_file.empty()) {
    PENSTOCK_TRY(write_file(options.json_file, perf_json(header, rows)));
  }
  return {};
}

int run_perf(const PerfOptions& options) {
  const auto launch = detect_launch();
  if (!launch.ok()) return fail("perf", launch.status());
  const auto sweep = make_sweep(options, launch.value().size);
  if (!sweep.ok()) return fail_usage("perf", sweep.status().message());
  std::signal(SIGINT, remember_signal);
  std::signal(SIGTERM, remember_signal);
  auto world = World::open(Platform::host());
  if (!world.ok()) return fail("perf", world.status());
  const auto config = world->comm_config();
  if (!config.ok()) return fail("perf", config.status());
  auto comm = Comm::join(world->pool(), config.value());
  if (!comm.ok()) return fail("perf", comm.status());
  std::uint64_t wrong = 0;
  const Status status = measure_all(options, sweep.value(), *world, **comm, &wrong);
  if (stop_signal.load() != 0) return 128 + stop_signal.load();
  if (!status.ok()) return fail("perf", status);
  return wrong == 0 ? kExitOk : kExitWrong;
}

void add_sizes(CLI::App* command, const std::shared_ptr<PerfOptions>& options) {
  add_size(*command, "-b,--minbytes", options->min_bytes, 0, kMaxSize, "Smallest size", "1K");
  add_size(*command, "-e,--maxbytes", options->max_bytes, 0, kMaxSize, "Largest size", "16M")
      ->each([options](const std::string&) { options->max_given = true; });
  add_size(*command, "-i,--stepbytes", options->step_bytes, 1, kMaxSize,
           "Add this to get the next size, instead of -f", "");
  add_real(*command, "-f,--stepfactor", options->factor, 1.001, 1e6,
           "Multiply by this to get the next size");
}

void add_calls(CLI::App* command, const std::shared_ptr<PerfOptions>& options) {
  add_number(*command, "-n,--iters", options->measure.iterations, 1, 1u << 30,
             "Timed calls of each size; unless given, fewer where they take long")
      ->each([options](const std::string&) { options->measure.fixed_iterations = true; });
  add_number(*command, "-w,--warmup_iters,--warmup", options->measure.warmup, 0, 1u << 30,
             "Calls before those that are timed");
  add_number(*command, "-c,--check", options->measure.checks, 0, 1000,
             "Calls whose results are checked byte by byte; 0 for none");
  command
      ->add_option("-d,--datatype,--type", options->type,
                   "Element type (nccl-tests' names, too), or all")
      ->type_name("NAME")
      ->default_str("f32");
  command
      ->add_option("-o,--op,--redop", options->redop, "sum, prod, min, max, avg, premulsum, or all")
      ->type_name("NAME")
      ->default_str("sum");
  command->add_option("-r,--root", options->root, "Root of a rooted collective, or all")
      ->type_name("N")
      ->default_str("0");
  command->add_flag("-z,--blocking", options->measure.blocking,
                    "Wait for each call before the next one starts");
  command->add_flag("--fresh", options->measure.fresh,
                    "Write the inputs anew before every call (not timed), and start together");
}

}  // namespace

void add_perf(CLI::App& app, Context& context) {
  CLI::App* command = app.add_subcommand("perf", "Measure and check a collective");
  command->footer(
      "A size counts all ranks' parts where there are such (all_gather, reduce_scatter, "
      "all_to_all,\n"
      "gather, scatter). #wrong counts wrong elements over all ranks, against an expectation that\n"
      "no engine computed. Exit status 1 if there are any. Runs under penstock run, torchrun,\n"
      "mpirun or srun, or alone as one rank.\n"
      "Example: penstock run -n 4 -- penstock perf all_reduce -b 1K -e 64M -f 4 -d bf16");
  auto options = std::make_shared<PerfOptions>();
  command
      ->add_option("COLLECTIVE", options->collective,
                   "all_reduce, broadcast, reduce, all_gather, reduce_scatter, all_to_all, gather, "
                   "scatter, send_recv or barrier")
      ->required()
      ->type_name("");
  add_sizes(command, options);
  add_calls(command, options);
  command->add_option("-J,--output_file", options->json_file, "Write the results there as JSON")
      ->type_name("FILE");
  command->add_flag("--json", options->json, "Print JSON instead of the table");
  command->callback([&context, options] {
    // Inside the parsing, so that a bad number is reported like the others.
    if (options->root != "all") parse_number("--root", options->root, 0, kMaxRanks - 1);
    context.action = [options] { return run_perf(*options); };
  });
}

}  // namespace penstock::tool
