#include "penstock/engine/speed.h"

#include <algorithm>
#include <cstring>
#include <memory>

#include "penstock/engine/select_conformance.h"
#include "penstock/memory/pool.h"

namespace penstock {
namespace {

constexpr std::uint64_t kOperandBytes = std::uint64_t{2} << 20;
constexpr std::uint64_t kPoolBytes = std::uint64_t{16} << 20;
constexpr std::uint32_t kRows = 1024;
constexpr int kRepetitions = 3;  // the best counts; one before them makes an engine ready
constexpr std::uint64_t kNsPerMs = 1'000'000;

// A pool that goes with this object.
class ProbePool {
 public:
  static Result<std::unique_ptr<ProbePool>> make() {
    Platform& platform = Platform::host();
    PoolConfig config;
    config.spec =
        fmt::format("/dev/shm/penstock-speed-{}-{:016x}", platform.self().pid, platform.random());
    config.bytes_per_device = kPoolBytes;
    PENSTOCK_TRY(Pool::create(platform, config));
    auto made = std::make_unique<ProbePool>(config.spec);
    PENSTOCK_ASSIGN(made->pool_, Pool::map(platform, config.spec));
    RegionRequest request;
    request.bytes = 3 * kOperandBytes + (std::uint64_t{1} << 20);
    PENSTOCK_ASSIGN(made->region_, made->pool_->allocate(request));
    return made;
  }
  explicit ProbePool(std::string spec) : spec_(std::move(spec)) {}
  ~ProbePool() {
    pool_.reset();
    static_cast<void>(Pool::destroy(Platform::host(), spec_, true));
  }
  ProbePool(const ProbePool&) = delete;
  ProbePool& operator=(const ProbePool&) = delete;

  Pool& pool() { return *pool_; }
  penstock_address address(std::uint64_t offset) const { return region_.address + offset; }
  std::byte* at(std::uint64_t offset, std::uint64_t bytes) {
    std::byte* place = pool_->resolve(address(offset), bytes);
    PENSTOCK_CHECK(place != nullptr);
    return place;
  }

 private:
  std::string spec_;
  std::unique_ptr<Pool> pool_;
  Region region_;
};

class Probe {
 public:
  Probe(Engine& engine, ProbePool& memory, std::uint32_t timeout_ms)
      : engine_(engine),
        memory_(memory),
        deadline_ns_(Platform::host().now_ns() + timeout_ms * kNsPerMs) {}
  ~Probe() {
    if (queue_ == nullptr) return;
    // Nobody may touch the memory afterwards.
    queue_->cancel();
    penstock_completion completion;
    for (int turn = 0; turn < 1'000'000 && queue_->in_flight() != 0; ++turn) {
      engine_.advance(*queue_);
      while (queue_->poll(&completion)) continue;
    }
  }
  Probe(const Probe&) = delete;
  Probe& operator=(const Probe&) = delete;

  Status open() {
    QueueConfig config;
    config.depth = 16;
    PENSTOCK_ASSIGN(queue_, Queue::create(&memory_.pool(), config));
    return {};
  }

  // Seconds of one, at its best; 0 if the engine does not do it.
  Result<double> seconds(const penstock_descriptor& descriptor) {
    if (!engine_.accepts(descriptor).ok()) return 0.0;
    double best = 0;
    for (int i = 0; i <= kRepetitions; ++i) {
      const std::uint64_t began = Platform::host().now_ns();
      PENSTOCK_TRY(run(descriptor));
      const double took = static_cast<double>(Platform::host().now_ns() - began) * 1e-9;
      if (i > 0 && (best == 0 || took < best)) best = std::max(took, 1e-9);
    }
    return best;
  }

 private:
  Status run(const penstock_descriptor& descriptor) {
    PENSTOCK_CHECK(queue_->submit(descriptor));
    penstock_completion completion;
    for (engine_.advance(*queue_); !queue_->poll(&completion); engine_.advance(*queue_)) {
      if (Platform::host().now_ns() > deadline_ns_)
        return error(Code::deadline_exceeded, "engine {}: {} did not end in time",
                     engine_.capabilities().name, penstock_opcode_name(descriptor.opcode));
      Platform::host().pause();
    }
    if (completion.status == PENSTOCK_OK) return {};
    return error(static_cast<Code>(completion.status), "engine {}: {}: {}",
                 engine_.capabilities().name, penstock_opcode_name(descriptor.opcode),
                 penstock_status_name(completion.status));
  }

  Engine& engine_;
  ProbePool& memory_;
  const std::uint64_t deadline_ns_;
  std::unique_ptr<Queue> queue_;
};

penstock_descriptor descriptor_of(std::uint32_t opcode, std::uint8_t n_src, std::uint8_t n_dst) {
  penstock_descriptor d{};
  d.version = PENSTOCK_DESCRIPTOR_VERSION;
  d.opcode = static_cast<std::uint8_t>(opcode);
  d.n_src = n_src;
  d.n_dst = n_dst;
  return d;
}

// A table of nodes that all fit, a program that filters and scores by resources, and one task.
struct SelectInput {
  HostTable table{kRows, kRows, 2, 0, 2, 0};
  penstock_program program{};
  penstock_task task{};

  SelectInput() {
    const TableView view = table.view();
    for (std::uint32_t row = 0; row < kRows; ++row) {
      for (std::uint32_t r = 0; r < 2; ++r) {
        view.column(view.allocatable, r)[row] = 64000;
        view.column(view.requested, r)[row] = view.column(view.scored, r)[row] =
            (row * 7919 + r * 104729) % 50000;
      }
      table.set_bit(PENSTOCK_BIT_NODE, row);
    }
    program.magic = PENSTOCK_PROGRAM_MAGIC;
    program.version = PENSTOCK_PROGRAM_VERSION;
    program.best = 1;
    program.n_ops = 2;
    program.ops[0].op = PENSTOCK_FILTER_FIT;
    program.ops[1].op = PENSTOCK_SCORE_LEAST_ALLOCATED;
    program.ops[1].weight = 1;
    for (int i = 0; i < 2; ++i) {
      program.ops[i].n = 2;
      program.ops[i].column[1] = 1;
    }
    program.ops[1].list_weight[0] = program.ops[1].list_weight[1] = 1;
    task.row = -1;
    task.request[0] = task.scored_request[0] = task.request[1] = task.scored_request[1] = 1000;
  }
};

Result<double> select_seconds(Probe& probe, ProbePool& memory) {
  SelectInput input;
  const std::uint64_t table_bytes = input.table.bytes();
  constexpr std::uint64_t kPage = 4096;
  const std::uint64_t program_at = (table_bytes + kPage - 1) / kPage * kPage;
  const std::uint64_t task_at = program_at + (sizeof(penstock_program) + kPage - 1) / kPage * kPage;
  const std::uint64_t result_at = task_at + (sizeof(penstock_task) + kPage - 1) / kPage * kPage;
  const std::uint64_t end = result_at + sizeof(penstock_result);
  std::byte* place = memory.at(0, end);
  std::memset(place, 0, end);
  std::memcpy(place, input.table.header(), table_bytes);
  std::memcpy(place + program_at, &input.program, sizeof input.program);
  std::memcpy(place + task_at, &input.task, sizeof input.task);
  memory.pool().publish(place, end);
  penstock_descriptor d = descriptor_of(PENSTOCK_OP_SELECT, 3, 1);
  d.src[0] = memory.address(0);
  d.src[1] = memory.address(program_at);
  d.src[2] = memory.address(task_at);
  d.dst[0] = memory.address(result_at);
  d.count = 1;
  return probe.seconds(d);
}

}  // namespace

Result<EngineSpeed> measure_speed(Engine& engine, std::uint32_t timeout_ms) {
  PENSTOCK_ASSIGN(const std::unique_ptr<ProbePool> memory, ProbePool::make());
  constexpr std::uint64_t kFloats = kOperandBytes / sizeof(float);
  const std::vector<float> ones(2 * kFloats, 1.0f);
  std::byte* place = memory->at(0, 3 * kOperandBytes);
  std::memcpy(place, ones.data(), 2 * kOperandBytes);
  std::memset(place + 2 * kOperandBytes, 0, kOperandBytes);
  memory->pool().publish(place, 3 * kOperandBytes);
  Probe probe(engine, *memory, timeout_ms);
  PENSTOCK_TRY(probe.open());
  EngineSpeed speed;
  const auto rate = [](double amount, double seconds) {
    return seconds > 0 ? amount / seconds : 0;
  };

  penstock_descriptor copy = descriptor_of(PENSTOCK_OP_COPY, 1, 1);
  copy.count = kOperandBytes;
  copy.src[0] = memory->address(0);
  copy.dst[0] = memory->address(2 * kOperandBytes);
  PENSTOCK_ASSIGN(const double copy_seconds, probe.seconds(copy));
  speed.copy = rate(static_cast<double>(kOperandBytes), copy_seconds);

  penstock_descriptor reduce = descriptor_of(PENSTOCK_OP_REDUCE, 2, 1);
  reduce.type = reduce.out_type = PENSTOCK_F32;
  reduce.redop = PENSTOCK_SUM;
  reduce.count = kFloats;
  reduce.src[0] = memory->address(0);
  reduce.src[1] = memory->address(kOperandBytes);
  reduce.dst[0] = memory->address(2 * kOperandBytes);
  PENSTOCK_ASSIGN(const double reduce_seconds, probe.seconds(reduce));
  speed.reduce = rate(static_cast<double>(kOperandBytes), reduce_seconds);
  if (speed.reduce > 0) {
    std::byte* sums = memory->at(2 * kOperandBytes, kOperandBytes);
    memory->pool().observe(sums, kOperandBytes);
    const std::vector<float> twos(kFloats, 2.0f);
    if (std::memcmp(sums, twos.data(), kOperandBytes) != 0)
      return error(Code::internal, "engine {}: 1 + 1 is not 2", engine.capabilities().name);
  }
  PENSTOCK_ASSIGN(const double seconds, select_seconds(probe, *memory));
  speed.select = rate(1, seconds);
  return speed;
}

std::uint32_t full_types(const Capabilities& capabilities) {
  std::uint32_t types = 0;
  for (std::uint32_t type = 0; type < PENSTOCK_TYPE_COUNT; ++type)
    if (capabilities.redops[type] == (1u << PENSTOCK_REDOP_COUNT) - 1) types |= 1u << type;
  return types;
}

}  // namespace penstock
