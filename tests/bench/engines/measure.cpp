#include "measure.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "penstock/engine/select_conformance.h"
#include "penstock/sched/node_table.h"
#include "penstock/sched/policy.h"

namespace penstock::bench {
namespace {

constexpr std::uint32_t kMostSources = 8;
constexpr std::uint64_t kTimeoutNs = 60'000'000'000;
constexpr std::uint64_t kShortNs = 2'000'000;  // what a repetition takes at least, on a real engine

std::uint64_t now_ns() { return Platform::host().now_ns(); }

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// Seconds in which one core reads the sources and writes the destination with the C library, which
// is as fast as memory lets it.
double limit_of(std::byte* memory, std::uint64_t size, std::uint32_t sources) {
  std::vector<double> times;
  for (int i = 0; i < 7; ++i) {
    const std::uint64_t began = now_ns();
    int rounds = 0;
    for (; rounds == 0 || now_ns() - began < kShortNs; ++rounds) {
      // A byte that is not there: every source holds 1.0 or its like, which has none of 0xee.
      std::byte* volatile source = memory + size;
      PENSTOCK_CHECK(std::memchr(source, 0xee, sources * size) == nullptr);
      std::memset(memory, 0, size);
    }
    times.push_back(static_cast<double>(now_ns() - began) * 1e-9 / rounds);
  }
  return median(times);
}

class Meter {
 public:
  Meter(Engine& engine, Pool& pool, bool simulated, const Options& options)
      : engine_(engine), pool_(pool), simulated_(simulated), options_(options) {}
  ~Meter() {
    if (queue_ == nullptr) return;
    queue_->cancel();
    penstock_completion completion;
    while (queue_->in_flight() > 0) {
      engine_.advance(*queue_);
      while (queue_->poll(&completion)) continue;
    }
  }

  Status open() {
    QueueConfig config;
    config.depth = 16;
    PENSTOCK_ASSIGN(queue_, Queue::create(&pool_, config));
    return {};
  }

  // Back to back, up to 16 at a time, and long enough to be timed.
  Status measure(const penstock_descriptor& descriptor, Figure* figure) {
    PENSTOCK_TRY(run(descriptor, 1));  // pages, caches, programs
    std::uint32_t n = 1;
    if (!simulated_) {
      std::uint64_t began = now_ns();
      PENSTOCK_TRY(run(descriptor, 1));
      const std::uint64_t one = std::max<std::uint64_t>(now_ns() - began, 1);
      n = static_cast<std::uint32_t>(std::clamp<std::uint64_t>(kShortNs / one, 1, 2000));
    }
    std::vector<double> times;
    const std::uint64_t cycles = engine_.busy_cycles();
    for (int i = 0; i < options_.repeat; ++i) {
      const std::uint64_t began = now_ns();
      PENSTOCK_TRY(run(descriptor, n));
      times.push_back(static_cast<double>(now_ns() - began) * 1e-9 / n);
    }
    figure->seconds = median(times);
    figure->cycles = static_cast<double>(engine_.busy_cycles() - cycles) /
                     (n * static_cast<double>(times.size()));
    return {};
  }

 private:
  Status run(const penstock_descriptor& descriptor, std::uint32_t n) {
    const std::uint64_t deadline = now_ns() + kTimeoutNs;
    std::uint32_t submitted = 0;
    for (std::uint32_t done = 0; done < n;) {
      while (submitted < n && queue_->submit(descriptor)) ++submitted;
      engine_.advance(*queue_);
      penstock_completion completion;
      while (queue_->poll(&completion)) {
        ++done;
        if (completion.status != PENSTOCK_OK)
          return error(static_cast<Code>(completion.status), "{} (field {})",
                       penstock_status_name(completion.status),
                       penstock_field_name(completion.field));
      }
      if (now_ns() > deadline) return error(Code::deadline_exceeded, "no completion in time");
    }
    return {};
  }

  Engine& engine_;
  Pool& pool_;
  const bool simulated_;
  const Options& options_;
  std::unique_ptr<Queue> queue_;
};

// The destination first, then the sources.
penstock_descriptor moving(std::uint32_t opcode, std::uint32_t type, std::uint32_t sources,
                           std::uint64_t size, penstock_address base) {
  penstock_descriptor d{};
  d.version = PENSTOCK_DESCRIPTOR_VERSION;
  d.opcode = static_cast<std::uint8_t>(opcode);
  d.n_src = static_cast<std::uint8_t>(sources);
  d.n_dst = 1;
  d.dst[0] = base;
  for (std::uint32_t i = 0; i < sources; ++i) d.src[i] = base + (i + 1) * size;
  d.count = size;
  if (opcode != PENSTOCK_OP_REDUCE) return d;
  d.type = d.out_type = static_cast<std::uint8_t>(type);
  d.redop = PENSTOCK_SUM;
  d.count = size / penstock_type_size(type);
  return d;
}

void measure_moving(Engine& engine, Pool& pool, bool simulated, const Options& options,
                    std::vector<Figure>* figures) {
  std::vector<std::uint64_t> sizes = {64u << 10, 256u << 10, 1u << 20, 4u << 20, 16u << 20};
  if (options.quick) sizes = {64u << 10, 1u << 20, 16u << 20};
  if (simulated)
    sizes = options.quick ? std::vector<std::uint64_t>{64u << 10}
                          : std::vector<std::uint64_t>{64u << 10, 256u << 10};
  RegionRequest request;
  request.bytes = (kMostSources + 1) * sizes.back();
  Result<Region> region = pool.allocate(request);
  PENSTOCK_CHECK(region.ok(), "{}", region.status().to_string());
  std::byte* memory = pool.resolve(region->address, request.bytes);
  for (const std::uint32_t type : {PENSTOCK_UINT8, PENSTOCK_F32, PENSTOCK_BF16}) {
    const bool copies = type == PENSTOCK_UINT8;
    // 1.0 in either type, with nothing else in the low half of an f32.
    for (std::uint64_t i = 0; i < request.bytes; i += 4)
      std::memcpy(memory + i, type == PENSTOCK_BF16 ? "\x80\x3f\x80\x3f" : "\0\0\x80\x3f", 4);
    pool.publish(memory, request.bytes);
    for (const std::uint32_t sources :
         copies ? std::vector<std::uint32_t>{1} : std::vector<std::uint32_t>{2, 4, 8}) {
      for (const std::uint64_t size : sizes) {
        Figure figure;
        figure.operation = copies ? "COPY" : fmt::format("REDUCE sum {}", penstock_type_name(type));
        figure.sources = sources;
        figure.size = size;
        figure.amount = static_cast<double>((sources + 1) * size);
        const penstock_descriptor d = moving(copies ? PENSTOCK_OP_COPY : PENSTOCK_OP_REDUCE, type,
                                             sources, size, region->address);
        Status status = engine.accepts(d);
        if (status.ok()) {
          Meter meter(engine, pool, simulated, options);
          status = meter.open();
          if (status.ok()) status = meter.measure(d, &figure);
          figure.limit_seconds = limit_of(memory, size, sources);
        }
        if (!status.ok()) figure.unsupported = status.message();
        figures->push_back(std::move(figure));
      }
    }
  }
  PENSTOCK_CHECK(pool.free(*region).ok());
}

// Nodes of three sizes, and tasks that are so small that they do not fill them.
Result<std::unique_ptr<NodeTable>> make_table(Pool& pool, std::shared_ptr<Engine> engine,
                                              std::uint32_t nodes) {
  constexpr std::int64_t kGiB = std::int64_t{1} << 30;
  NodeTableConfig config;
  config.capacity = nodes;
  config.resources = {
      {"cpu", "milli"}, {"memory", "bytes"}, {"ephemeral-storage", "bytes"}, {"pods", ""}};
  config.bit_columns = 64;
  PENSTOCK_ASSIGN(auto table, NodeTable::create(&pool, std::move(engine), config));
  SeededRandom random(1);
  std::vector<NodeSpec> specs(nodes);
  for (std::uint32_t i = 0; i < nodes; ++i) {
    const std::int64_t cores = 32 * random.between(1, 3);
    specs[i].facts.name = fmt::format("node-{}", i);
    specs[i].allocatable = {cores * 1000, cores * 4 * kGiB, 500 * kGiB, 250};
  }
  PENSTOCK_TRY(table->add_nodes(specs));
  table->set_incremental(false);
  return table;
}

penstock_task make_task(std::uint64_t number) {
  penstock_task task = {};
  const std::int64_t request[] = {static_cast<std::int64_t>(100 + 50 * (number % 8)), 1 << 20, 0,
                                  1};
  std::copy_n(request, 4, task.request);
  std::copy_n(request, 4, task.scored_request);
  task.row = -1;
  task.tie = number * 7919;
  task.n_terms = 1;
  task.terms[0] = {PENSTOCK_BIT_UNSCHEDULABLE, static_cast<std::uint8_t>(TermGroup::unschedulable),
                   1, 0};
  return task;
}

Status measure_decisions(const std::shared_ptr<Engine>& engine, Pool& pool, bool simulated,
                         const Options& options, std::uint32_t nodes, Figure* figure) {
  PENSTOCK_ASSIGN(const auto table, make_table(pool, engine, nodes));
  const Capabilities& can = engine->capabilities();
  if (table->engine_name() != can.name)
    return error(Code::unsupported, "it has no SELECT on such a table");
  PENSTOCK_ASSIGN(const Policy policy, find_policy("default"));
  PENSTOCK_ASSIGN(const Program program, compile_policy(policy, *table, {}));
  for (std::uint32_t i = 0; i < program.record.n_ops; ++i)
    if ((can.select.operations >> program.record.ops[i].op & 1) == 0)
      return error(Code::unsupported, "SELECT has no {}",
                   penstock_column_opcode_name(program.record.ops[i].op));
  const std::size_t batch = simulated ? 4 : options.quick ? 64 : 256;
  std::vector<penstock_task> tasks;
  for (std::size_t i = 0; i < batch; ++i) tasks.push_back(make_task(i));
  std::vector<penstock_result> results(batch);
  PENSTOCK_TRY(table->select(program.record, tasks, false, results.data()));
  std::vector<double> times;
  const std::uint64_t cycles = engine->busy_cycles();
  for (int i = 0; i < options.repeat; ++i) {
    const std::uint64_t began = now_ns();
    PENSTOCK_TRY(table->select(program.record, tasks, false, results.data()));
    times.push_back(static_cast<double>(now_ns() - began) * 1e-9 / static_cast<double>(batch));
  }
  figure->seconds = median(times);
  figure->cycles = static_cast<double>(engine->busy_cycles() - cycles) /
                   (static_cast<double>(batch) * static_cast<double>(times.size()));
  // The columns that such a decision has to look at: allocatable and requested of three resources
  // and scored of two, 8 bytes each.
  const std::vector<std::byte> columns(std::size_t{nodes} * 64, std::byte{1});
  std::vector<double> reads;
  for (int i = 0; i < 101; ++i) {
    const std::byte* volatile begin = columns.data();
    const std::uint64_t began = now_ns();
    PENSTOCK_CHECK(std::memchr(begin, 0, columns.size()) == nullptr);
    reads.push_back(static_cast<double>(now_ns() - began) * 1e-9);
  }
  figure->limit_seconds = median(reads);
  return {};
}

}  // namespace

std::vector<Figure> measure_engine(const std::string& name, bool simulated, Pool& pool,
                                   const Options& options) {
  std::vector<Figure> figures;
  const auto named = [&] {
    for (Figure& figure : figures) {
      figure.engine = name;
      figure.simulated = simulated;
    }
  };
  Result<std::shared_ptr<Engine>> engine = make_engine(name);
  if (!engine.ok()) {
    figures.emplace_back().unsupported = engine.status().message();
    figures.back().operation = "start";
    named();
    return figures;
  }
  measure_moving(**engine, pool, simulated, options, &figures);
  for (const std::uint32_t nodes : {1000u, 10000u}) {
    if (simulated && options.quick && nodes > 1000) continue;
    Figure figure;
    figure.operation = "SELECT";
    figure.size = nodes;
    figure.amount = 1;
    const Status status = measure_decisions(*engine, pool, simulated, options, nodes, &figure);
    if (!status.ok()) figure.unsupported = status.message();
    figures.push_back(std::move(figure));
  }
  named();
  return figures;
}

}  // namespace penstock::bench
