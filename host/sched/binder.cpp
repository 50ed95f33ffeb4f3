#include "penstock/sched/binder.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "penstock/base/log.h"
#include "penstock/engine/scalar_select.h"

namespace penstock {
namespace {

constexpr std::uint64_t kMillisecond = 1'000'000;
// Of one turn, so that a scheduler with much to do does not keep the others waiting.
constexpr std::uint32_t kMostOfOneScheduler = 32;

bool passes_filters(const TableView& table, const penstock_program& program,
                    const penstock_task& task, std::uint32_t row) {
  if (row >= table.header->rows) return false;
  if (((table.bit_column(PENSTOCK_BIT_NODE)[row / 64] >> (row % 64)) & 1) == 0) return false;
  const DecisionContext context(table, program, task);
  for (std::uint32_t i = 0; i < program.n_ops; ++i) {
    const penstock_column_op& op = program.ops[i];
    if (!PENSTOCK_COLUMN_OP_IS_SCORE(op.op) && !scalar_filter(context, op, row)) return false;
  }
  return true;
}

}  // namespace

// The region that this binder writes, and the state that it describes. The state runs ahead of the
// log only within a turn.
class Binder::Reign {
 public:
  Reign(const SharedTable& shared, const Region& region, std::uint64_t epoch, SharedState state,
        const Kernels& kernels)
      : shared_(shared),
        kernels_(kernels),
        region_(region),
        layout_(shared.header()),
        base_(shared.pool().resolve(region.address, region.bytes)),
        epoch_(epoch),
        state_(std::move(state)),
        log_fence_(shared.pool(), base_ + layout_.log_fence),
        checkpoint_fence_(shared.pool(), base_ + layout_.checkpoint_fence) {}

  // Makes the region readable: everything else first, then the header.
  void begin() {
    ReignHeader header;
    header.epoch = epoch_;
    header.generation = region_.generation;
    header.from_epoch = std::exchange(state_.epoch, epoch_);
    header.from_position = state_.position;
    header.checksum = checksum_of(header);
    const std::uint64_t nothing[16] = {};  // both fences
    shared_.memory().store(base_ + layout_.log_fence, nothing, sizeof nothing);
    write_checkpoint();
    log_fence_.signal(state_.position);
    shared_.memory().store(base_, &header, sizeof header);
  }

  // Handles what waits; how much that was. Nothing of it is visible before publish().
  std::uint32_t take_requests(BinderStatistics* statistics) {
    // So few that whoever reads from the last checkpoint on finds every record.
    const std::uint64_t most = layout_.log_records / 4;
    const auto n = static_cast<std::uint32_t>(state_.schedulers.size());
    std::uint32_t taken = 0;
    first_ = (first_ + 1) % n;
    for (std::uint32_t at = 0; at < n; ++at) {
      const std::uint32_t scheduler = (first_ + at) % n;
      const std::uint64_t sent = shared_.requests_fence(scheduler).load();
      for (std::uint32_t i = 0; i < kMostOfOneScheduler && taken < most; ++i) {
        if (state_.schedulers[scheduler].done >= sent) break;
        handle(scheduler, state_.schedulers[scheduler].done + 1, statistics);
        ++taken;
      }
    }
    return taken;
  }

  void publish() {
    log_fence_.signal(state_.position);
    // In time for who reads the log from the checkpoint before.
    if (state_.position - checkpoint_position_ >= layout_.log_records / 2) write_checkpoint();
  }

 private:
  void handle(std::uint32_t scheduler, std::uint64_t sequence, BinderStatistics* statistics) {
    SharedRequest request;
    shared_.memory().load(&request, shared_.board() + shared_.layout().request(scheduler, sequence),
                          sizeof request);
    LogRecord record;
    record.position = state_.position + 1;
    record.epoch = epoch_;
    record.scheduler = scheduler;
    record.outcome.sequence = sequence;
    record.outcome.cookie = request.cookie;
    record.outcome.kind = request.kind;
    record.outcome.row = request.row;
    record.outcome.status = apply(request, sequence, &record);
    if (record.outcome.status == OutcomeStatus::done) record.task = request.task;
    record.checksum = checksum_of(record);
    SchedulerState& state = state_.schedulers[scheduler];
    state.done = sequence;
    state.outcomes[sequence % state.outcomes.size()] = record.outcome;
    state_.position = record.position;
    shared_.memory().store(base_ + layout_.record(record.position), &record, sizeof record);
    ++statistics->handled;
    statistics->done += record.outcome.status == OutcomeStatus::done;
    statistics->conflicts += record.outcome.status == OutcomeStatus::conflict;
    statistics->refused += record.outcome.status == OutcomeStatus::refused;
  }

  OutcomeStatus apply(const SharedRequest& request, std::uint64_t sequence, LogRecord* record) {
    const TableView table = state_.table.view();
    const penstock_program& program = shared_.program();
    if (request.sequence != sequence || request.checksum != checksum_of(request) ||
        penstock_task_check(&request.task, &program, table.header) != PENSTOCK_OK ||
        request.row < -1 || request.row >= static_cast<std::int64_t>(table.header->rows)) {
      return OutcomeStatus::refused;
    }
    if (request.row == -1 && request.kind == RequestKind::place) return choose(request, record);
    if (request.row == -1) return OutcomeStatus::refused;
    const auto row = static_cast<std::uint32_t>(request.row);
    std::uint32_t status = PENSTOCK_OUT_OF_RANGE;
    if (request.kind == RequestKind::place) {
      if (!passes_filters(table, program, request.task, row)) return OutcomeStatus::conflict;
      record->outcome.gpu_mask = scalar_pick_gpus(table, program, request.task, row);
      status = scalar_commit(table, request.task, row, record->outcome.gpu_mask);
    } else if (request.kind == RequestKind::release) {
      record->outcome.gpu_mask = request.gpu_mask;
      status = scalar_release(table, request.task, row, request.gpu_mask);
    }
    return status == PENSTOCK_OK ? OutcomeStatus::done : OutcomeStatus::refused;
  }

  OutcomeStatus choose(const SharedRequest& request, LogRecord* record) {
    penstock_result result;
    kernels_.select(state_.table.view(), shared_.program(), request.task, true, &result);
    record->outcome.row = result.row;
    record->outcome.gpu_mask = result.status == PENSTOCK_OK ? result.gpu_mask : 0;
    if (result.status == PENSTOCK_NOT_FOUND) return OutcomeStatus::no_node;
    return result.status == PENSTOCK_OK ? OutcomeStatus::done : OutcomeStatus::refused;
  }

  void write_checkpoint() {
    std::vector<std::byte> bytes(layout_.checkpoint_bytes);
    CheckpointHeader header;
    header.number = checkpoint_fence_.load() + 1;
    header.position = state_.position;
    header.epoch = epoch_;
    std::byte* at = bytes.data() + sizeof header;
    for (const SchedulerState& scheduler : state_.schedulers) {
      std::memcpy(at, &scheduler.done, sizeof scheduler.done);
      std::memcpy(at + 8, scheduler.outcomes.data(),
                  scheduler.outcomes.size() * sizeof(SharedOutcome));
      at += 8 + scheduler.outcomes.size() * sizeof(SharedOutcome);
    }
    std::memcpy(at, state_.table.data(), state_.table.bytes());
    std::memcpy(bytes.data(), &header, sizeof header);
    header.checksum = crc32c(bytes.data(), bytes.size());
    std::memcpy(bytes.data(), &header, sizeof header);
    shared_.memory().store(base_ + layout_.checkpoint(header.number), bytes.data(), bytes.size());
    checkpoint_fence_.signal(header.number);
    checkpoint_position_ = state_.position;
  }

  const SharedTable& shared_;
  const Kernels& kernels_;
  const Region region_;
  const ReignLayout layout_;
  std::byte* const base_;
  const std::uint64_t epoch_;
  SharedState state_;
  std::uint64_t checkpoint_position_ = 0;
  std::uint32_t first_ = 0;  // the scheduler with which the turn begins
  Fence log_fence_;
  Fence checkpoint_fence_;
};

Binder::Binder(SharedTable shared, const Region& claim, std::uint32_t index,
               std::shared_ptr<Engine> engine)
    : shared_(std::move(shared)), claim_(claim), index_(index), engine_(std::move(engine)) {}

Result<std::unique_ptr<Binder>> Binder::open(Pool& pool, const std::string& name,
                                             std::uint32_t index) {
  PENSTOCK_ASSIGN(SharedTable shared, SharedTable::open(pool, name));
  if (index >= shared.header().binders) {
    return error(Code::invalid_argument, "binder {} of the shared table '{}': it has 0 to {}",
                 index, name, shared.header().binders - 1);
  }
  PENSTOCK_ASSIGN(auto engine, make_engine("simd,scalar"));
  PENSTOCK_ASSIGN(const Region claim, shared.claim("binder", index));
  return std::unique_ptr<Binder>(new Binder(std::move(shared), claim, index, std::move(engine)));
}

Binder::~Binder() {
  if (role_) {
    static_cast<void>(role_->release(shared_.pool().platform().now_ns() + 100 * kMillisecond));
  }
  static_cast<void>(shared_.pool().free(claim_));
}

Status Binder::take_role(const std::function<bool()>& go_on) {
  Platform& platform = shared_.pool().platform();
  RoleConfig config;
  config.duration_ms = shared_.header().role_ms;
  config.owner = shared_.pool().lease();
  config.is_dead = [this](const Lease& holder) {
    return shared_.pool().liveness(holder) == Liveness::dead;
  };
  while (!role_ && go_on()) {
    PENSTOCK_ASSIGN(Agreement agreement, shared_.agreement(index_));
    // A holder's time is counted from when an attempt first saw it, so that one has to last longer.
    const std::uint64_t patience_ns = 2 * kMillisecond * shared_.header().role_ms;
    auto role = RoleLease::acquire(std::move(agreement), config, platform.now_ns() + patience_ns);
    if (role.ok()) {
      role_.emplace(std::move(role).value());
      renew_at_ns_ = platform.now_ns() + kMillisecond * shared_.header().role_ms / 4;
    } else if (role.status().code() != Code::deadline_exceeded) {
      return role.status();
    }
  }
  return {};
}

Status Binder::keep_role() {
  Platform& platform = shared_.pool().platform();
  const std::uint64_t now_ns = platform.now_ns();
  if (now_ns < renew_at_ns_) return {};
  const std::uint64_t quarter_ns = kMillisecond * shared_.header().role_ms / 4;
  const Status status = role_->renew(now_ns + quarter_ns);
  renew_at_ns_ = platform.now_ns() + quarter_ns;
  return status.code() == Code::deadline_exceeded ? Status() : status;
}

Status Binder::begin_reign() {
  Pool& pool = shared_.pool();
  PENSTOCK_ASSIGN(SharedState state, shared_.newest_state(role_->epoch()));
  free_old_reigns();
  RegionRequest request;
  request.name = shared_.reign_name(role_->epoch());
  request.kind = RegionKind::table;
  request.bytes = ReignLayout(shared_.header()).bytes;
  request.persistent = true;
  PENSTOCK_ASSIGN(const Region region, pool.allocate(request));
  reign_ = std::make_unique<Reign>(shared_, region, role_->epoch(), std::move(state),
                                   *engine_->direct_kernels());
  reign_->begin();
  begun_.insert(role_->epoch());
  ++statistics_.reigns;
  return {};
}

// All but the two newest that are ready (somebody may be reading them), unless another binder that
// lives began them: it may be asleep in the middle of a store.
void Binder::free_old_reigns() {
  Pool& pool = shared_.pool();
  std::uint64_t oldest = role_->epoch();
  for (int kept = 0; oldest > 1 && kept < 2;) kept += shared_.find_reign(--oldest).has_value();
  const std::string prefix = shared_.name() + ".reign";
  for (const RegionInfo& info : pool.regions()) {
    if (info.kind != RegionKind::table || !info.name.starts_with(prefix)) continue;
    const std::uint64_t epoch = std::strtoull(info.name.c_str() + prefix.size(), nullptr, 10);
    if (epoch >= oldest) continue;
    if (!begun_.contains(epoch) && pool.liveness(info.lease) != Liveness::dead) continue;
    if (const Status status = pool.free(info.region); !status.ok()) {
      log::warn("shared table '{}': reign {} stays: {}", shared_.name(), epoch, status.to_string());
    }
  }
}

Status Binder::serve(const std::function<bool()>& go_on) {
  Platform& platform = shared_.pool().platform();
  std::uint64_t ask_at_ns = 0;
  bool was_told_to = true;
  const auto goes_on = [&] {
    const std::uint64_t now_ns = platform.now_ns();
    if (!was_told_to || now_ns < ask_at_ns) return was_told_to;
    ask_at_ns = now_ns + kMillisecond;
    return was_told_to = go_on();
  };
  while (goes_on()) {
    PENSTOCK_TRY(take_role(go_on));
    if (!role_) return {};
    if (!reign_) PENSTOCK_TRY(begin_reign());
    Backoff backoff(platform, true);
    Status status;
    while (goes_on()) {
      status = keep_role();
      if (!status.ok()) break;
      if (!role_->is_valid()) {
        backoff.turn();
        continue;
      }
      const std::uint32_t taken = reign_->take_requests(&statistics_);
      if (taken == 0) {
        backoff.turn();
        continue;
      }
      backoff = Backoff(platform, true);
      // Past its time another may hold the role, and what was taken may be handled there.
      if (!role_->is_valid()) {
        status = error(Code::revoked, "the role was held for too long");
        break;
      }
      reign_->publish();
    }
    if (status.ok()) continue;
    if (status.code() != Code::revoked) return status;
    // The state may be ahead of the log, and the log no longer counts.
    log::warn("shared table '{}': binder {}: {}", shared_.name(), index_, status.to_string());
    reign_.reset();
    role_.reset();
  }
  return {};
}

}  // namespace penstock
