#include "workload.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cstring>

namespace penstock::bench {
namespace {

constexpr std::uint64_t kBeat = 64;
constexpr std::uint64_t kArena = 24u << 20;
constexpr std::uint64_t kDestinations = 16u << 20;  // where results lie in the arena

penstock_descriptor record(std::uint32_t opcode, std::uint32_t n_src, std::uint32_t n_dst) {
  penstock_descriptor d{};
  d.opcode = static_cast<std::uint8_t>(opcode);
  d.version = PENSTOCK_DESCRIPTOR_VERSION;
  d.n_src = static_cast<std::uint8_t>(n_src);
  d.n_dst = static_cast<std::uint8_t>(n_dst);
  return d;
}

std::string size_text(std::uint64_t bytes) {
  return bytes >= 1u << 20   ? fmt::format("{} MiB", bytes >> 20)
         : bytes >= 1u << 10 ? fmt::format("{} KiB", bytes >> 10)
                             : fmt::format("{} B", bytes);
}

class Report {
 public:
  Report(const std::string& machine, const Options& options, bool progress)
      : bench_(machine, options.latency, kArena),
        machine_(machine),
        options_(options),
        progress_(progress) {}

  bool wanted(const std::string& name) const {
    return options_.only.empty() ||
           std::any_of(options_.only.begin(), options_.only.end(), [&](const std::string& part) {
             return name.find(part) != std::string::npos;
           });
  }
  void add(Figure figure) {
    if (progress_)
      fmt::print(stderr, "{}: {}: {:.1f} cycles{}\n", machine_, figure.name, figure.cycles,
                 figure.limit > 0
                     ? fmt::format(", {:.1f} % of the limit", 100 * figure.limit / figure.cycles)
                     : "");
    figures_.push_back(std::move(figure));
  }

  void throughput(std::uint32_t opcode, std::uint32_t type, std::uint32_t sources,
                  std::uint64_t bytes);
  void latency(const std::string& name, const penstock_descriptor& d);
  void select(std::uint32_t rows, bool normalised, bool balanced);

  void all();
  std::vector<Figure> take() { return std::move(figures_); }

 private:
  Bench bench_;
  const std::string machine_;
  const Options options_;
  const bool progress_;
  std::vector<Figure> figures_;
};

// Records back to back, with operands of their own, aligned. The cycles between the completions of
// the first and the last, over the number of steps.
void Report::throughput(std::uint32_t opcode, std::uint32_t type, std::uint32_t sources,
                        std::uint64_t bytes) {
  Figure figure;
  figure.group = "throughput";
  figure.type = penstock_type_name(type);
  figure.sources = sources;
  figure.bytes = bytes;
  figure.name =
      opcode == PENSTOCK_OP_COPY
          ? fmt::format("COPY {}", size_text(bytes))
          : fmt::format("REDUCE {} {}, {} sources of {}", type == PENSTOCK_UINT64 ? "max" : "sum",
                        penstock_type_name(type), sources, size_text(bytes));
  if (opcode == PENSTOCK_OP_COPY) figure.type = "";
  if (!wanted(figure.name)) return;
  const std::uint64_t steps = std::clamp<std::uint64_t>((256u << 10) / (bytes * sources), 4, 24);
  std::vector<penstock_descriptor> records;
  for (std::uint64_t i = 0; i <= steps; ++i) {
    const bool listed = sources > PENSTOCK_INLINE_SOURCES;
    penstock_descriptor d = record(opcode, sources, 1);
    d.count = bytes;
    if (opcode == PENSTOCK_OP_REDUCE) {
      d.type = d.out_type = static_cast<std::uint8_t>(type);
      d.redop = type == PENSTOCK_UINT64 ? PENSTOCK_MAX : PENSTOCK_SUM;
      d.count = bytes / penstock_type_size(type);
    }
    std::uint64_t at = i % 4 * bytes;
    std::uint64_t list[PENSTOCK_MAX_SOURCES];
    for (std::uint32_t s = 0; s < sources; ++s) {
      const std::uint64_t source = at % (kDestinations - bytes) / kBeat * kBeat;
      (listed ? list[s] : d.src[s]) = source;
      at += bytes + 4096;
    }
    if (listed) {
      d.flags = PENSTOCK_FLAG_SRC_LIST;
      d.src[0] = kArena - (i + 1) * sizeof(list);
      std::memcpy(bench_.arena() + d.src[0], list, sizeof(list));
    }
    d.dst[0] = kDestinations + i % 4 * bytes;
    records.push_back(d);
  }
  const std::vector<std::uint64_t> seen = bench_.run(records, 4);
  figure.cycles = static_cast<double>(seen.back() - seen.front()) / static_cast<double>(steps);
  figure.limit = static_cast<double>(sources * bytes / kBeat);
  add(figure);
}

// The median of a few, from the doorbell until the completion is in memory.
void Report::latency(const std::string& name, const penstock_descriptor& d) {
  Figure figure;
  figure.group = "latency";
  figure.name = name;
  if (!wanted(name)) return;
  std::vector<std::uint64_t> cycles;
  for (int i = 0; i < 5; ++i) {
    bench_.machine().run(200);  // so that nothing of the last one is under way
    penstock_descriptor one = d;
    if (one.opcode == PENSTOCK_OP_SIGNAL) one.src[0] += static_cast<std::uint64_t>(i) + 1;
    cycles.push_back(bench_.run({one}, 1).front());
  }
  std::sort(cycles.begin(), cycles.end());
  figure.cycles = static_cast<double>(cycles[cycles.size() / 2]);
  add(figure);
}

// ---- decisions ----

constexpr std::uint64_t kProgram = 20u << 20;
constexpr std::uint64_t kTasks = 21u << 20;
constexpr std::uint64_t kResults = 22u << 20;
constexpr std::uint32_t kBatch = 9;

// cpu, memory, ephemeral storage and pods, a quarter of each taken; a bit column of preferred
// nodes.
void lay_table(std::byte* at, std::uint32_t rows) {
  auto* header = reinterpret_cast<penstock_node_table*>(at);
  const std::uint64_t generation = header->generation;
  const std::uint64_t bytes = penstock_node_table_init(header, rows, 4, 0, 4, 0, 0, 0);
  std::memset(at + sizeof(*header), 0, bytes - sizeof(*header));
  header->rows = rows;
  header->generation = generation + 1000;
  auto* cells = reinterpret_cast<std::int64_t*>(at + header->allocatable);
  auto* requested = reinterpret_cast<std::int64_t*>(at + header->requested);
  auto* scored = reinterpret_cast<std::int64_t*>(at + header->scored);
  auto* bits = reinterpret_cast<std::uint64_t*>(at + header->bits);
  constexpr std::int64_t kOffers[] = {64000, std::int64_t{256} << 30, std::int64_t{1} << 40, 110};
  for (std::uint32_t r = 0; r < 4; ++r) {
    for (std::uint32_t row = 0; row < header->capacity; ++row) {
      const std::size_t cell = std::size_t{r} * header->capacity + row;
      cells[cell] = kOffers[r];
      requested[cell] = scored[cell] = kOffers[r] / 4 + (row * 37 + r * 11) % 29 * kOffers[r] / 200;
    }
  }
  for (std::uint32_t row = 0; row < rows; ++row) {
    bits[row / 64] |= std::uint64_t{1} << (row % 64);
    if (row % 3 == 0) bits[2 * header->capacity / 64 + row / 64] |= std::uint64_t{1} << (row % 64);
  }
}

penstock_program program_of(bool normalised, bool balanced) {
  penstock_program program{};
  program.magic = PENSTOCK_PROGRAM_MAGIC;
  program.version = PENSTOCK_PROGRAM_VERSION;
  program.best = 1;
  const auto op = [&program](std::uint32_t code, std::int32_t weight) -> penstock_column_op& {
    penstock_column_op& added = program.ops[program.n_ops++];
    added.op = static_cast<std::uint8_t>(code);
    added.weight = weight;
    return added;
  };
  penstock_column_op& fit = op(PENSTOCK_FILTER_FIT, 0);
  fit.n = 4;
  for (std::uint16_t r = 0; r < 4; ++r) fit.column[r] = r;
  penstock_column_op& least = op(PENSTOCK_SCORE_LEAST_ALLOCATED, 1);
  least.n = 2;
  least.column[1] = 1;
  least.list_weight[0] = least.list_weight[1] = 1;
  if (balanced) {
    penstock_column_op& balance = op(PENSTOCK_SCORE_BALANCED, 1);
    balance.n = 2;
    balance.column[1] = 1;
  }
  if (normalised) {
    penstock_column_op& preferred = op(PENSTOCK_SCORE_BITS, 2);
    preferred.group = 1;
    preferred.normalise = PENSTOCK_NORMALISE_DEFAULT;
  }
  return program;
}

// The cycles of a batch of kBatch + 1 over those of one of 1: loading and checking once, and what a
// task costs by itself.
void Report::select(std::uint32_t rows, bool normalised, bool balanced) {
  Figure figure;
  figure.group = "select";
  figure.rows = rows;
  figure.name = fmt::format("SELECT of {} nodes{}{}", rows, normalised ? ", normalised" : "",
                            balanced ? ", balanced" : "");
  if (!wanted(figure.name)) return;
  lay_table(bench_.arena(), rows);
  const penstock_program program = program_of(normalised, balanced);
  std::memcpy(bench_.arena() + kProgram, &program, sizeof(program));
  penstock_task task{};
  task.row = -1;
  task.request[0] = task.scored_request[0] = 500;
  task.request[1] = task.scored_request[1] = std::int64_t{1} << 30;
  task.request[3] = 1;
  task.n_terms = 1;
  task.terms[0].column = 2;
  task.terms[0].group = 1;
  task.terms[0].weight = 10;
  for (std::uint32_t i = 0; i <= kBatch; ++i)
    std::memcpy(bench_.arena() + kTasks + i * sizeof(task), &task, sizeof(task));
  penstock_descriptor d = record(PENSTOCK_OP_SELECT, 3, 1);
  d.flags = PENSTOCK_FLAG_COMMIT;
  d.src[0] = 0;
  d.src[1] = kProgram;
  d.src[2] = kTasks;
  d.dst[0] = kResults;
  d.count = 1;
  static_cast<void>(bench_.run({d}, 64));  // loads the table
  const std::uint64_t one = bench_.run({d}, 4).front();
  d.count = kBatch + 1;
  const std::uint64_t many = bench_.run({d}, 4).front();
  figure.cycles = static_cast<double>(many - one) / kBatch;
  constexpr double kLanes = 8;
  constexpr double kBalancedInterval = 4;
  figure.limit = rows / kLanes * ((balanced ? kBalancedInterval : 1) + (normalised ? 1 : 0));
  add(figure);
}

void Report::all() {
  constexpr std::uint32_t kTypes[] = {PENSTOCK_INT8,   PENSTOCK_UINT8, PENSTOCK_INT32,
                                      PENSTOCK_UINT32, PENSTOCK_INT64, PENSTOCK_UINT64,
                                      PENSTOCK_F16,    PENSTOCK_F32,   PENSTOCK_BF16,
                                      PENSTOCK_F8E4M3, PENSTOCK_F8E5M2};
  latency("NOP", record(PENSTOCK_OP_NOP, 0, 0));
  penstock_descriptor signal = record(PENSTOCK_OP_SIGNAL, 1, 1);
  signal.dst[0] = 23u << 20;
  latency("SIGNAL", signal);
  penstock_descriptor small = record(PENSTOCK_OP_REDUCE, 2, 1);
  small.type = small.out_type = PENSTOCK_F32;
  small.count = 16;
  small.src[1] = 4096;
  small.dst[0] = kDestinations;
  latency("REDUCE of 64 bytes", small);
  penstock_descriptor barrier = record(PENSTOCK_OP_BARRIER, 2, 1);
  barrier.count = 64;
  barrier.src[0] = 22u << 20;
  barrier.dst[0] = 22u << 20;
  latency("BARRIER of 64 ranks that are there", barrier);

  for (const std::uint64_t bytes : {std::uint64_t{4} << 10, std::uint64_t{64} << 10}) {
    throughput(PENSTOCK_OP_COPY, PENSTOCK_UINT8, 1, bytes);
    for (const std::uint32_t type : kTypes) {
      if (options_.quick && type != PENSTOCK_F32 && type != PENSTOCK_BF16 &&
          type != PENSTOCK_F8E4M3)
        continue;
      for (const std::uint32_t sources : {2u, 4u, 8u, 16u}) {
        if (options_.quick && sources > 4) continue;
        throughput(PENSTOCK_OP_REDUCE, type, sources, bytes);
      }
    }
  }
  for (const std::uint32_t rows : {1000u, 10000u, 100000u}) {
    if (options_.quick && rows > 10000) continue;
    select(rows, false, false);
    select(rows, true, false);
    select(rows, true, true);
  }
}

}  // namespace

std::vector<Figure> measure(const std::string& machine, const Options& options, bool progress) {
  Report report(machine, options, progress);
  report.all();
  return report.take();
}

double source_bytes_per_second(const std::string& machine, const Latency& latency) {
  constexpr std::uint64_t kBytes = 16u << 20;
  constexpr std::size_t kTimes = 5;
  Bench bench(machine, latency, 3 * kBytes);
  penstock_descriptor d = record(PENSTOCK_OP_REDUCE, 2, 1);
  d.type = d.out_type = PENSTOCK_F32;
  d.count = kBytes / sizeof(float);
  d.src[1] = kBytes;
  d.dst[0] = 2 * kBytes;
  std::vector<double> seconds;
  for (std::size_t i = 0; i < kTimes; ++i) {
    const auto began = std::chrono::steady_clock::now();
    static_cast<void>(bench.run({d}, 4096));
    seconds.push_back(
        std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count());
  }
  std::sort(seconds.begin(), seconds.end());
  return 2 * kBytes / seconds[kTimes / 2];
}

}  // namespace penstock::bench
