#include "penstock/sched/shared_table.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "penstock/engine/scalar_select.h"
#include "penstock/memory/agreement_role.h"

namespace penstock {
namespace {

constexpr std::size_t kMaxSharedName = 24;
constexpr std::uint64_t kRoleReadNs = 1'000'000'000;

std::uint64_t lines(std::uint64_t bytes) { return (bytes + 63) / 64 * 64; }

std::string board_name(const std::string& name) { return name + ".board"; }

Status check_config(const SharedTableConfig& config) {
  const auto wrong = [&](const char* what, std::uint64_t found, std::uint64_t least,
                         std::uint64_t most) {
    return error(Code::invalid_argument, "shared table '{}': {} is {}, expected {} to {}",
                 config.name, what, found, least, most);
  };
  if (config.name.empty() || config.name.size() > kMaxSharedName ||
      config.name.find('/') != std::string::npos) {
    return error(Code::invalid_argument,
                 "'{}' is no name for a shared table, expected 1 to {} bytes without '/'",
                 config.name, kMaxSharedName);
  }
  if (config.schedulers < 1 || config.schedulers > 64) {
    return wrong("schedulers", config.schedulers, 1, 64);
  }
  if (config.binders < 1 || config.binders > 16) return wrong("binders", config.binders, 1, 16);
  if (config.ring < 8 || config.ring > 4096) return wrong("ring", config.ring, 8, 4096);
  if (config.log < 64 || config.log > 65536) return wrong("log", config.log, 64, 65536);
  if (config.role_ms < kMinRoleDurationMs || config.role_ms > 60000) {
    return wrong("role_ms", config.role_ms, kMinRoleDurationMs, 60000);
  }
  return {};
}

AgreementSpace agreement_space(std::byte* board, const BoardLayout& layout,
                               const BoardHeader& header) {
  return {board + layout.agreement, header.binders, kBinderAgreementDepth};
}

}  // namespace

TableCopy::TableCopy(std::uint64_t bytes) : lines_((bytes + sizeof(Line) - 1) / sizeof(Line)) {}

BoardLayout::BoardLayout(const BoardHeader& header) {
  ring = header.ring;
  program = kSharedHeaderBytes;
  agreement = program + lines(sizeof(penstock_program));
  fences = agreement + lines(agreement_bytes(header.binders, kBinderAgreementDepth));
  requests = fences + header.schedulers * 64;
  bytes = requests + std::uint64_t{header.schedulers} * ring * sizeof(SharedRequest);
}

ReignLayout::ReignLayout(const BoardHeader& header) {
  log_records = header.log;
  log_fence = kSharedHeaderBytes;
  checkpoint_fence = log_fence + 64;
  log = checkpoint_fence + 64;
  checkpoints = log + log_records * kLogRecordBytes;
  const std::uint64_t per_scheduler = 8 + header.ring * sizeof(SharedOutcome);
  checkpoint_bytes =
      lines(sizeof(CheckpointHeader) + header.schedulers * per_scheduler + header.table_bytes);
  bytes = checkpoints + 2 * checkpoint_bytes;
}

// ---- the board ----

SharedTable::SharedTable(Pool& pool, const std::string& name)
    : pool_(&pool),
      name_(name),
      memory_(pool.platform(), pool.coherence()),
      layout_(BoardHeader{}) {}

Status SharedTable::create(Pool& pool, const std::string& table_name,
                           const penstock_program& program, const SharedTableConfig& config) {
  PENSTOCK_TRY(check_config(config));
  PENSTOCK_ASSIGN(const Region table, pool.find(RegionKind::table, table_name));
  BoardHeader header;
  header.schedulers = config.schedulers;
  header.binders = config.binders;
  header.ring = config.ring;
  header.log = config.log;
  header.role_ms = config.role_ms;
  PENSTOCK_CHECK(table_name.size() < sizeof header.table_name);
  std::copy(table_name.begin(), table_name.end(), header.table_name);

  const SharedMemory memory(pool.platform(), pool.coherence());
  penstock_node_table node_table;
  const std::byte* cells = pool.resolve(table.address, table.bytes);
  if (cells == nullptr) return error(Code::corrupt, "the region '{}' lies outside", table_name);
  memory.load(&node_table, cells, sizeof node_table);
  if (penstock_node_table_check(&node_table, table.bytes) != PENSTOCK_OK) {
    return error(Code::corrupt, "the region '{}' holds no node table", table_name);
  }
  std::uint64_t detail = 0;
  if (penstock_program_check(&program, &node_table, &detail) != PENSTOCK_OK) {
    return error(Code::invalid_argument, "operation {} of the program does not fit the table '{}'",
                 detail, table_name);
  }
  header.table_bytes = lines(node_table.bytes);
  const BoardLayout layout(header);
  header.bytes = layout.bytes;
  header.checksum = checksum_of(header);

  RegionRequest request;
  request.name = board_name(config.name);
  request.kind = RegionKind::table;
  request.bytes = layout.bytes;
  request.persistent = true;
  PENSTOCK_ASSIGN(const Region region, pool.allocate(request));
  std::byte* board = pool.resolve(region.address, layout.bytes);
  PENSTOCK_CHECK(board != nullptr);
  const std::vector<std::byte> zeros(layout.bytes - kSharedHeaderBytes);
  memory.store(board + kSharedHeaderBytes, zeros.data(), zeros.size());
  memory.store(board + layout.program, &program, sizeof program);
  format_agreement(pool.platform(), pool.coherence(), agreement_space(board, layout, header));
  memory.store(board, &header, sizeof header);  // the magic last
  return {};
}

Result<SharedTable> SharedTable::open(Pool& pool, const std::string& name) {
  PENSTOCK_ASSIGN(const Region region, pool.find(RegionKind::table, board_name(name)));
  SharedTable shared(pool, name);
  shared.board_ = pool.resolve(region.address, region.bytes);
  if (shared.board_ == nullptr || region.bytes < kSharedHeaderBytes) {
    return error(Code::corrupt, "the board of the shared table '{}' lies outside of the pool",
                 name);
  }
  shared.memory_.load(&shared.header_, shared.board_, sizeof shared.header_);
  const BoardHeader& header = shared.header_;
  if (header.magic != kBoardMagic || header.checksum != checksum_of(header)) {
    return error(Code::corrupt, "the region '{}' holds no board of a shared table",
                 board_name(name));
  }
  SharedTableConfig config;
  config.name = name;
  config.schedulers = header.schedulers;
  config.binders = header.binders;
  config.ring = header.ring;
  config.log = header.log;
  config.role_ms = header.role_ms;
  PENSTOCK_TRY(check_config(config));
  shared.layout_ = BoardLayout(header);
  if (shared.layout_.bytes != header.bytes || header.bytes > region.bytes) {
    return error(Code::corrupt, "the board of the shared table '{}' is shorter than it says", name);
  }
  auto program = std::make_shared<penstock_program>();
  shared.memory_.load(program.get(), shared.board_ + shared.layout_.program, sizeof *program);
  PENSTOCK_ASSIGN(SharedState first, shared.first_state());
  std::uint64_t detail = 0;
  if (penstock_program_check(program.get(), first.table.view().header, &detail) != PENSTOCK_OK) {
    return error(Code::corrupt, "the program of the shared table '{}' is damaged", name);
  }
  shared.program_ = std::move(program);
  return shared;
}

Result<Agreement> SharedTable::agreement(std::uint32_t binder) const {
  return Agreement::open(pool_->platform(), pool_->coherence(),
                         agreement_space(board_, layout_, header_), binder);
}

Result<Region> SharedTable::claim(const char* what, std::uint32_t index) const {
  RegionRequest request;
  request.name = fmt::format("{}.{}{}", name_, what, index);
  request.kind = RegionKind::table;
  request.bytes = 1;
  auto region = pool_->allocate(request);
  if (region.ok() || region.status().code() != Code::already_exists) return region;
  return error(Code::busy, "{} {} of the shared table '{}' is taken: {}", what, index, name_,
               region.status().message());
}

Result<SharedState> SharedTable::first_state() const {
  PENSTOCK_ASSIGN(const Region region, pool_->find(RegionKind::table, header_.table_name));
  SharedState state;
  state.table = TableCopy(header_.table_bytes);
  const std::byte* cells = pool_->resolve(region.address, region.bytes);
  if (cells == nullptr || region.bytes < header_.table_bytes) {
    return error(Code::corrupt, "the node table '{}' is not the one that was shared as '{}'",
                 header_.table_name, name_);
  }
  memory_.load(state.table.data(), cells, header_.table_bytes);
  if (penstock_node_table_check(reinterpret_cast<penstock_node_table*>(state.table.data()),
                                header_.table_bytes) != PENSTOCK_OK) {
    return error(Code::corrupt, "the node table '{}' is damaged", header_.table_name);
  }
  state.schedulers.resize(header_.schedulers);
  for (SchedulerState& scheduler : state.schedulers) scheduler.outcomes.resize(header_.ring);
  return state;
}

// ---- reigns ----

std::string SharedTable::reign_name(std::uint64_t epoch) const {
  return fmt::format("{}.reign{}", name_, epoch);
}

Result<std::uint64_t> SharedTable::role_epoch(Agreement* agreement) {
  PENSTOCK_ASSIGN(const Decision decision,
                  agreement->latest(agreement->platform().now_ns() + kRoleReadNs));
  return from_agreement_value<RoleState>(decision.value).epoch;
}

std::optional<Region> SharedTable::find_reign(std::uint64_t epoch, ReignHeader* out) const {
  auto region = pool_->find(RegionKind::table, reign_name(epoch));
  if (!region.ok() || region->bytes < ReignLayout(header_).bytes) return std::nullopt;
  const std::byte* base = pool_->resolve(region->address, region->bytes);
  if (base == nullptr) return std::nullopt;
  ReignHeader header;
  memory_.load(&header, base, sizeof header);
  if (header.magic != kReignMagic || header.epoch != epoch ||
      header.generation != region->generation || header.checksum != checksum_of(header)) {
    return std::nullopt;
  }
  if (out != nullptr) *out = header;
  return *region;
}

Result<SharedState> SharedTable::newest_state(std::uint64_t epoch) const {
  for (std::uint64_t before = epoch; before-- > 1;) {
    const auto region = find_reign(before);
    if (!region) continue;
    const ReignReader reader(*this, *region, before);
    // Its binder may still write, after it lost the role; what counts stood there before.
    for (std::uint32_t attempt = 0; attempt < 1000; ++attempt) {
      PENSTOCK_ASSIGN(SharedState state, reader.checkpoint());
      bool complete = true;
      for (const std::uint64_t newest = reader.newest(); state.position < newest && complete;) {
        auto record = reader.record(state.position + 1);
        complete = record.ok();
        if (complete) PENSTOCK_TRY(apply_record(*record, &state));
      }
      if (complete) return state;
    }
    return error(Code::corrupt, "the log of reign {} of the shared table '{}' cannot be read",
                 before, name_);
  }
  return first_state();
}

Status SharedTable::end(Pool& pool, const std::string& name) {
  PENSTOCK_ASSIGN(const SharedTable shared, open(pool, name));
  // Whoever else wants to take part is kept away by these, or keeps this away.
  std::vector<Region> claims;
  const auto give_back = [&] {
    for (const Region& claim : claims) static_cast<void>(pool.free(claim));
  };
  for (std::uint32_t i = 0; i < shared.header_.schedulers + shared.header_.binders; ++i) {
    const bool is_binder = i >= shared.header_.schedulers;
    auto claim = is_binder ? shared.claim("binder", i - shared.header_.schedulers)
                           : shared.claim("scheduler", i);
    if (!claim.ok()) {
      give_back();
      return claim.status();
    }
    claims.push_back(*claim);
  }
  PENSTOCK_ASSIGN(Agreement agreement, shared.agreement(0));
  PENSTOCK_ASSIGN(const std::uint64_t epoch, role_epoch(&agreement));
  PENSTOCK_ASSIGN(SharedState state, shared.newest_state(epoch + 1));
  PENSTOCK_ASSIGN(const Region table, pool.find(RegionKind::table, shared.header_.table_name));
  std::byte* cells = pool.resolve(table.address, table.bytes);
  PENSTOCK_CHECK(cells != nullptr);
  shared.memory_.store(cells, state.table.data(), state.table.bytes());
  for (std::uint64_t before = epoch + 1; before-- > 1;) {
    auto region = pool.find(RegionKind::table, shared.reign_name(before));
    if (region.ok()) PENSTOCK_TRY(pool.free(*region));
  }
  give_back();
  PENSTOCK_ASSIGN(const Region board, pool.find(RegionKind::table, board_name(name)));
  return pool.free(board);
}

// ---- reading a reign ----

ReignReader::ReignReader(const SharedTable& shared, const Region& region, std::uint64_t epoch)
    : shared_(&shared),
      layout_(shared.header()),
      base_(shared.pool().resolve(region.address, region.bytes)),
      epoch_(epoch),
      log_fence_(shared.pool(), base_ + layout_.log_fence),
      checkpoint_fence_(shared.pool(), base_ + layout_.checkpoint_fence) {}

Result<SharedState> ReignReader::checkpoint() const {
  const BoardHeader& board = shared_->header();
  std::vector<std::byte> bytes(layout_.checkpoint_bytes);
  for (std::uint32_t attempt = 0; attempt < 100; ++attempt) {
    const std::uint64_t number = checkpoint_fence_.load();
    shared_->memory().load(bytes.data(), base_ + layout_.checkpoint(number), bytes.size());
    CheckpointHeader header;
    std::memcpy(&header, bytes.data(), sizeof header);
    const std::uint32_t checksum = std::exchange(header.checksum, 0);
    std::memcpy(bytes.data(), &header, sizeof header);
    if (header.number != number || header.epoch != epoch_ ||
        crc32c(bytes.data(), bytes.size()) != checksum) {
      continue;  // overwritten meanwhile
    }
    SharedState state;
    state.position = header.position;
    state.epoch = epoch_;
    const std::byte* at = bytes.data() + sizeof header;
    for (std::uint32_t i = 0; i < board.schedulers; ++i) {
      SchedulerState& scheduler = state.schedulers.emplace_back();
      std::memcpy(&scheduler.done, at, sizeof scheduler.done);
      scheduler.outcomes.resize(board.ring);
      std::memcpy(scheduler.outcomes.data(), at + 8, board.ring * sizeof(SharedOutcome));
      at += 8 + board.ring * sizeof(SharedOutcome);
    }
    state.table = TableCopy(board.table_bytes);
    std::memcpy(state.table.data(), at, board.table_bytes);
    if (penstock_node_table_check(reinterpret_cast<penstock_node_table*>(state.table.data()),
                                  board.table_bytes) != PENSTOCK_OK) {
      break;
    }
    return state;
  }
  return error(Code::corrupt, "no checkpoint of reign {} of the shared table '{}' can be read",
               epoch_, shared_->name());
}

Result<LogRecord> ReignReader::record(std::uint64_t position) const {
  LogRecord record;
  shared_->memory().load(&record, base_ + layout_.record(position), sizeof record);
  if (record.position == position && record.epoch == epoch_ &&
      record.scheduler < shared_->header().schedulers && record.checksum == checksum_of(record)) {
    return record;
  }
  return error(Code::out_of_range, "record {} of reign {} is not there any more", position, epoch_);
}

Status apply_record(const LogRecord& record, SharedState* state) {
  const SharedOutcome& outcome = record.outcome;
  const TableView view = state->table.view();
  if (outcome.status == OutcomeStatus::done) {
    const bool fits =
        outcome.row >= 0 && static_cast<std::uint32_t>(outcome.row) < view.header->capacity;
    const auto change = outcome.kind == RequestKind::place ? scalar_commit : scalar_release;
    if (!fits || change(view, record.task, static_cast<std::uint32_t>(outcome.row),
                        outcome.gpu_mask) != PENSTOCK_OK) {
      return error(Code::internal, "record {} of the log does not fit the table that precedes it",
                   record.position);
    }
  }
  SchedulerState& scheduler = state->schedulers[record.scheduler];
  scheduler.done = outcome.sequence;
  scheduler.outcomes[outcome.sequence % scheduler.outcomes.size()] = outcome;
  state->position = record.position;
  return {};
}

}  // namespace penstock
