// How a node table is made and found, and how its descriptors reach the engine.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "penstock/base/checksum.h"
#include "penstock/base/log.h"
#include "penstock/sched/go_log.h"
#include "penstock/sched/node_table.h"
#include "penstock/sched/rescorer.h"

namespace penstock {
namespace {

constexpr std::uint64_t kRunTimeoutNs = 30'000'000'000;
constexpr std::size_t kMaxTableName = 40;
constexpr std::uint64_t kNamesMagic = 0x73656d616e747350;  // "Pstnames"

// Stands before the names in their region.
struct NamesHeader {
  std::uint64_t magic;
  std::uint64_t bytes;
  std::uint32_t checksum;  // CRC-32C of the names
  std::uint32_t reserved;
};

std::string names_region(const std::string& table) { return table + "/names"; }

Status check_name(const std::string& name) {
  if (name.size() <= kMaxTableName && name.find('/') == std::string::npos) return {};
  return error(Code::invalid_argument,
               "'{}' is no name for a node table, expected up to {} bytes without '/'", name,
               kMaxTableName);
}

// Of the sizes of topologies, for SCORE_SPREAD.
void fill_logs(const penstock_node_table& header, std::byte* memory) {
  if (header.n_domains == 0) return;
  auto* logs = reinterpret_cast<double*>(memory + header.logs);
  for (std::uint32_t i = 0; i <= header.capacity; ++i) logs[i] = go_log(i + 2.0);
}

std::uint64_t round_up(std::uint64_t bytes, std::uint64_t to) { return (bytes + to - 1) / to * to; }

// Why an engine cannot run SELECT on a table of this geometry; empty if it can.
std::string unable(const Capabilities& can, const penstock_node_table& header) {
  const struct {
    const char* what;
    std::uint32_t has, most;
  } widths[] = {{"rows", header.capacity, can.max_rows},
                {"resources", header.n_resources, can.select.max_resources},
                {"bit columns", header.n_bits, can.select.max_bits},
                {"free columns", header.n_free, can.select.max_free}};
  if ((can.opcodes >> PENSTOCK_OP_SELECT & 1) == 0) return "it has no SELECT";
  for (const auto& width : widths)
    if (width.has > width.most)
      return fmt::format("its tables end at {} {}, and this one has {}", width.most, width.what,
                         width.has);
  return {};
}

}  // namespace

void NodeTable::FreeDeleter::operator()(void* memory) const { std::free(memory); }

// ---- making and finding ----

Status NodeTable::choose_engine(std::shared_ptr<Engine> engine) {
  PENSTOCK_CHECK(engine != nullptr);
  const Capabilities& can = engine->capabilities();
  std::string why = unable(can, *header_);
  if (why.empty() && !can.host_memory && pool_ == nullptr)
    why = "it does not reach this process's memory, where the table stands";
  const bool updates = (can.opcodes >> PENSTOCK_OP_UPDATE & 1) != 0;
  if (why.empty() && updates && can.host_memory) {
    engine_ = host_engine_ = std::move(engine);
    return {};
  }
  PENSTOCK_ASSIGN(host_engine_, make_engine("simd,scalar"));
  if (why.empty()) {
    engine_ = std::move(engine);
    return {};
  }
  engine_ = host_engine_;
  log::warn("engine {} does not place tasks here: {}; {} does instead", can.name, why,
            engine_name());
  return {};
}

Status NodeTable::make_queue() {
  QueueConfig config;
  config.depth = 16;
  PENSTOCK_ASSIGN(queue_, Queue::create(pool_, config));
  return {};
}

Result<std::unique_ptr<NodeTable>> NodeTable::create(Pool* pool, std::shared_ptr<Engine> engine,
                                                     const NodeTableConfig& config) {
  PENSTOCK_TRY(check_name(config.name));
  penstock_node_table header{};
  const std::uint64_t bytes = penstock_node_table_init(
      &header, config.capacity, static_cast<std::uint32_t>(config.resources.size()), config.n_gpus,
      config.bit_columns, static_cast<std::uint32_t>(config.free_columns.size()),
      config.domain_columns, config.count_columns);
  if (bytes == 0) {
    return error(Code::invalid_argument,
                 "node table: {} rows (1..{}), {} resources (1..{}), {} GPUs of a node (0..{}), {} "
                 "bit columns (2..{}), {} free columns (0..{}), {} domain columns (0..{}), {} "
                 "count columns (0..{}): one is out of its range",
                 config.capacity, PENSTOCK_MAX_ROWS, config.resources.size(),
                 PENSTOCK_MAX_RESOURCES, config.n_gpus, PENSTOCK_MAX_GPUS, config.bit_columns,
                 PENSTOCK_MAX_BIT_COLUMNS, config.free_columns.size(), PENSTOCK_MAX_FREE_COLUMNS,
                 config.domain_columns, PENSTOCK_MAX_DOMAIN_COLUMNS, config.count_columns,
                 PENSTOCK_MAX_COUNT_COLUMNS);
  }
  std::unique_ptr<NodeTable> table(new NodeTable);
  table->pool_ = pool;
  table->name_ = config.name;
  table->catalogue_ = Catalogue(config.resources, config.free_columns, config.bit_columns,
                                config.domain_columns, config.count_columns);
  void* memory = nullptr;
  if (pool != nullptr) {
    RegionRequest request;
    request.name = config.name;
    request.kind = RegionKind::table;
    request.bytes = bytes;
    request.persistent = !config.name.empty();
    PENSTOCK_ASSIGN(table->region_, pool->allocate(request));
    table->owns_regions_ = config.name.empty();
    table->address_ = table->region_.address;
    memory = pool->resolve(table->region_.address, bytes);
    PENSTOCK_CHECK(memory != nullptr);
  } else {
    memory = std::aligned_alloc(4096, round_up(bytes, 4096));
    if (memory == nullptr) {
      return error(Code::no_space, "no memory for a node table of {} bytes", bytes);
    }
    table->memory_.reset(memory);
    table->address_ = penstock_address_host(memory);
  }
  std::memset(memory, 0, bytes);
  std::memcpy(memory, &header, sizeof header);
  fill_logs(header, static_cast<std::byte*>(memory));
  if (pool != nullptr) pool->publish(memory, bytes);
  table->header_ = static_cast<penstock_node_table*>(memory);
  PENSTOCK_TRY(table->choose_engine(std::move(engine)));
  PENSTOCK_TRY(table->make_queue());
  PENSTOCK_TRY(table->save());
  return table;
}

bool NodeTable::adopt_domains(penstock_node_table* header) {
  const TableView cells = table_view(header);
  for (std::uint32_t i = 0; i < header->n_domains; ++i) {
    if (!catalogue_.adopt_domains(i, cells.domain_column(i))) return false;
  }
  return true;
}

Result<std::unique_ptr<NodeTable>> NodeTable::open(Pool& pool, std::shared_ptr<Engine> engine,
                                                   const std::string& name) {
  std::unique_ptr<NodeTable> table(new NodeTable);
  table->pool_ = &pool;
  table->name_ = name;
  PENSTOCK_ASSIGN(table->region_, pool.find(RegionKind::table, name));
  PENSTOCK_ASSIGN(table->names_region_, pool.find(RegionKind::table, names_region(name)));

  std::byte* memory = pool.resolve(table->region_.address, table->region_.bytes);
  std::byte* names = pool.resolve(table->names_region_.address, table->names_region_.bytes);
  if (memory == nullptr || names == nullptr) {
    return error(Code::corrupt, "{}: the regions of the node table '{}' lie outside of the pool",
                 pool.spec(), name);
  }
  pool.observe(memory, table->region_.bytes);
  pool.observe(names, table->names_region_.bytes);
  auto* header = reinterpret_cast<penstock_node_table*>(memory);
  if (penstock_node_table_check(header, table->region_.bytes) != PENSTOCK_OK) {
    return error(Code::corrupt, "{}: the region '{}' holds no node table of version {}",
                 pool.spec(), name, PENSTOCK_TABLE_VERSION);
  }
  NamesHeader saved;
  std::memcpy(&saved, names, sizeof saved);
  if (saved.magic != kNamesMagic ||
      saved.bytes > table->names_region_.bytes - sizeof(NamesHeader) ||
      crc32c(names + sizeof(NamesHeader), saved.bytes) != saved.checksum) {
    return error(Code::corrupt, "{}: the names of the node table '{}' are damaged", pool.spec(),
                 name);
  }
  PENSTOCK_ASSIGN(table->catalogue_,
                  Catalogue::parse({reinterpret_cast<const char*>(names + sizeof(NamesHeader)),
                                    static_cast<std::size_t>(saved.bytes)}));
  const Catalogue& catalogue = table->catalogue_;
  if (catalogue.resources().size() != header->n_resources ||
      catalogue.free_columns().size() != header->n_free ||
      catalogue.bit_columns() != header->n_bits || catalogue.rows() > header->rows ||
      catalogue.domain_columns() != header->n_domains ||
      catalogue.count_columns() != header->n_counts || !table->adopt_domains(header)) {
    return error(Code::corrupt, "{}: the names of the node table '{}' belong to another table",
                 pool.spec(), name);
  }
  table->header_ = header;
  table->address_ = table->region_.address;
  PENSTOCK_TRY(table->choose_engine(std::move(engine)));
  PENSTOCK_TRY(table->make_queue());
  return table;
}

Status NodeTable::destroy(Pool& pool, const std::string& name) {
  PENSTOCK_ASSIGN(const Region region, pool.find(RegionKind::table, name));
  if (const auto names = pool.find(RegionKind::table, names_region(name)); names.ok()) {
    PENSTOCK_TRY(pool.free(names.value()));
  }
  return pool.free(region);
}

NodeTable::~NodeTable() {
  if (pool_ == nullptr) return;
  const auto give_back = [this](const Region& region) {
    if (region.bytes == 0) return;
    if (const Status status = pool_->free(region); !status.ok()) {
      log::warn("node table '{}': {}", name_, status.to_string());
    }
  };
  give_back(staging_);
  if (owns_regions_) give_back(region_);
}

Status NodeTable::save() {
  if (pool_ == nullptr || name_.empty()) return {};
  const std::string text = catalogue_.serialise();
  const std::uint64_t bytes = sizeof(NamesHeader) + text.size();
  if (names_region_.bytes < bytes) {
    if (names_region_.bytes > 0) PENSTOCK_TRY(pool_->free(std::exchange(names_region_, {})));
    RegionRequest request;
    request.name = names_region(name_);
    request.kind = RegionKind::table;
    request.bytes = bytes + bytes / 2;  // room to grow
    request.persistent = true;
    PENSTOCK_ASSIGN(names_region_, pool_->allocate(request));
  }
  std::byte* out = pool_->resolve(names_region_.address, bytes);
  PENSTOCK_CHECK(out != nullptr);
  const NamesHeader saved = {kNamesMagic, text.size(), crc32c(text.data(), text.size()), 0};
  std::memcpy(out, &saved, sizeof saved);
  std::memcpy(out + sizeof saved, text.data(), text.size());
  pool_->publish(out, bytes);
  return {};
}

// ---- descriptors ----

Status NodeTable::refused(const penstock_completion& completion) const {
  const auto code = static_cast<Code>(completion.status);
  return error(code, "engine {} refused: {} in field {} (detail {})", engine_name(),
               penstock_status_name(completion.status), penstock_field_name(completion.field),
               completion.detail);
}

// By the engine, or by the one of the host where the engine has no such operation, or finds
// something in a program or a task that it does not know. Either leaves the queue empty.
Status NodeTable::run(const penstock_descriptor& descriptor) {
  const bool has = (engine_->capabilities().opcodes >> descriptor.opcode & 1) != 0;
  if (!has) return run(*host_engine_, descriptor);
  Status status = run(*engine_, descriptor);
  if (status.code() != Code::unsupported || host_engine_ == engine_) return status;
  if (!told_of_host_)
    log::warn("{}; {} places such tasks instead", status.message(),
              host_engine_->capabilities().name);
  told_of_host_ = true;
  return run(*host_engine_, descriptor);
}

Status NodeTable::run(Engine& engine, penstock_descriptor descriptor) {
  descriptor.version = PENSTOCK_DESCRIPTOR_VERSION;
  PENSTOCK_TRY(engine.accepts(descriptor));
  PENSTOCK_CHECK(queue_->submit(descriptor), "one descriptor at a time");
  Platform& platform = Platform::host();
  const std::uint64_t deadline_ns = platform.now_ns() + kRunTimeoutNs;
  Backoff backoff(platform, false);
  penstock_completion completion{};
  for (;;) {
    engine.advance(*queue_);
    if (queue_->poll(&completion)) break;
    if (platform.now_ns() > deadline_ns) {
      queue_->cancel();
      return error(Code::deadline_exceeded, "engine {} did not answer within {} s",
                   engine.capabilities().name, kRunTimeoutNs / 1'000'000'000);
    }
    backoff.turn();
  }
  return completion.status == PENSTOCK_OK ? Status() : refused(completion);
}

// Copies what a descriptor names to where the engine reaches it: nowhere else, if that is this
// process's memory.
Result<penstock_address> NodeTable::stage(std::uint64_t offset, const void* data,
                                          std::uint64_t bytes) {
  if (engine_->capabilities().host_memory) return penstock_address_host(data);
  PENSTOCK_CHECK(pool_ != nullptr && offset + bytes <= staging_.bytes);
  std::byte* copy = pool_->resolve(staging_.address + offset, bytes);
  PENSTOCK_CHECK(copy != nullptr);
  std::memcpy(copy, data, bytes);
  pool_->publish(copy, bytes);
  return staging_.address + offset;
}

Status NodeTable::reserve_staging(std::uint64_t bytes) {
  if (engine_->capabilities().host_memory || staging_.bytes >= bytes) return {};
  if (staging_.bytes > 0) PENSTOCK_TRY(pool_->free(std::exchange(staging_, {})));
  RegionRequest request;
  request.bytes = bytes;
  PENSTOCK_ASSIGN(staging_, pool_->allocate(request));
  return {};
}

Status NodeTable::update(std::span<const penstock_update> updates) {
  if (updates.empty()) return {};
  if (updates.size() > PENSTOCK_MAX_UPDATES) {
    return error(Code::out_of_range, "{} updates at once, at most {} are taken", updates.size(),
                 PENSTOCK_MAX_UPDATES);
  }
  PENSTOCK_TRY(reserve_staging(updates.size_bytes()));
  penstock_descriptor descriptor{};
  descriptor.opcode = PENSTOCK_OP_UPDATE;
  descriptor.n_src = 2;
  descriptor.count = updates.size();
  descriptor.src[0] = address_;
  PENSTOCK_ASSIGN(descriptor.src[1], stage(0, updates.data(), updates.size_bytes()));
  const bool knew = rescorer_ != nullptr && header_->generation == known_.generation;
  PENSTOCK_TRY(run(descriptor));
  if (knew) {
    known_.rows = std::min(header_->rows, known_.capacity);
    known_.generation = header_->generation;
    rescorer_->updated(updates);
  }
  return {};
}

void NodeTable::set_incremental(bool incremental) {
  incremental_ = incremental;
  if (!incremental) rescorer_.reset();
}

// Null: decisions are the engine's. Knows the cells as they are.
Rescorer* NodeTable::rescorer() {
  if (!incremental_ || engine_->direct_kernels() == nullptr ||
      (pool_ != nullptr && pool_->coherence() != Coherence::hardware))
    return nullptr;
  if (rescorer_ == nullptr) {
    known_ = *header_;
    rescorer_ = std::make_unique<Rescorer>(
        table_view(&known_, reinterpret_cast<std::byte*>(header_)), *engine_->direct_kernels());
  } else if (known_.generation != header_->generation) {
    // Somebody else wrote.
    known_.rows = std::min(header_->rows, known_.capacity);
    known_.generation = header_->generation;
    rescorer_->table_changed();
  }
  return rescorer_.get();
}

Status NodeTable::select(const penstock_program& program, std::span<const penstock_task> tasks,
                         bool commit, penstock_result* results) {
  if (tasks.empty()) return {};
  if (tasks.size() > PENSTOCK_MAX_TASKS) {
    return error(Code::out_of_range, "{} tasks at once, at most {} are taken", tasks.size(),
                 PENSTOCK_MAX_TASKS);
  }
  if (Rescorer* const kept = rescorer(); kept != nullptr) {
    PENSTOCK_TRY(kept->select(program, tasks, commit, results));
    header_->generation = known_.generation;
    if (commit) add_uses(tasks, results);
    return {};
  }
  const std::uint64_t result_bytes = tasks.size() * sizeof(penstock_result);
  const std::uint64_t tasks_at = round_up(sizeof program, 64);
  const std::uint64_t results_at = round_up(tasks_at + tasks.size_bytes(), 64);
  PENSTOCK_TRY(reserve_staging(results_at + result_bytes));
  penstock_descriptor descriptor{};
  descriptor.opcode = PENSTOCK_OP_SELECT;
  descriptor.flags = commit ? PENSTOCK_FLAG_COMMIT : 0;
  descriptor.n_src = 3;
  descriptor.n_dst = 1;
  descriptor.count = tasks.size();
  descriptor.src[0] = address_;
  PENSTOCK_ASSIGN(descriptor.src[1], stage(0, &program, sizeof program));
  PENSTOCK_ASSIGN(descriptor.src[2], stage(tasks_at, tasks.data(), tasks.size_bytes()));
  PENSTOCK_ASSIGN(descriptor.dst[0], stage(results_at, results, result_bytes));
  PENSTOCK_TRY(run(descriptor));
  if (!engine_->capabilities().host_memory) {
    const std::byte* answers = pool_->resolve(descriptor.dst[0], result_bytes);
    pool_->observe(answers, result_bytes);
    std::memcpy(results, answers, result_bytes);
  }
  if (commit) add_uses(tasks, results);
  return {};
}

// Counts the bits that committed tasks set.
void NodeTable::add_uses(std::span<const penstock_task> tasks, const penstock_result* results) {
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    if (results[i].status != PENSTOCK_OK) continue;
    for (const std::uint16_t column : tasks[i].set_bits) {
      if (column != 0) catalogue_.add_use(static_cast<std::uint32_t>(results[i].row), column);
    }
  }
}

Result<std::vector<NodeDecision>> NodeTable::place(const Policy& policy,
                                                   std::span<const Task> tasks, bool commit,
                                                   const CompileOptions& options) {
  PENSTOCK_ASSIGN(const Program program, compile_policy(policy, *this, options));
  std::vector<penstock_task> records;
  records.reserve(tasks.size());
  for (const Task& task : tasks) records.push_back(task.record);
  std::vector<penstock_result> results(tasks.size());
  PENSTOCK_TRY(select(program.record, records, commit, results.data()));
  std::vector<NodeDecision> decisions(tasks.size());
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    const penstock_result& result = results[i];
    NodeDecision& decision = decisions[i];
    decision.feasible = result.feasible;
    decision.best.assign(result.best, result.best + std::min(result.n_best, PENSTOCK_MAX_BEST));
    if (result.status == PENSTOCK_OUT_OF_RANGE) {
      return error(Code::out_of_range,
                   "task '{}': placing it on '{}' would push a cell of the table past its bound",
                   tasks[i].name, catalogue_.node(static_cast<std::uint32_t>(result.row)).name);
    }
    if (result.status != PENSTOCK_OK) continue;
    decision.row = result.row;
    decision.node = catalogue_.node(static_cast<std::uint32_t>(result.row)).name;
    decision.score = result.score;
    decision.gpu_mask = result.gpu_mask;
  }
  return decisions;
}

}  // namespace penstock
