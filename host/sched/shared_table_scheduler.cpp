#include "penstock/sched/shared_table_scheduler.h"

#include <algorithm>
#include <utility>

#include "penstock/engine/scalar_select.h"

namespace penstock {
namespace {

constexpr std::uint64_t kMillisecond = 1'000'000;
constexpr std::uint64_t kRecordsAtATime = 512;
constexpr std::size_t kNobody = SIZE_MAX;  // a task whose place() ended without it

bool sets_bits(const penstock_task& task) {
  return std::any_of(std::begin(task.set_bits), std::end(task.set_bits),
                     [](std::uint16_t column) { return column != 0; });
}

}  // namespace

SharedScheduler::SharedScheduler(SharedTable shared, const Region& claim, std::uint32_t index,
                                 Agreement agreement, const std::shared_ptr<Engine>& engine)
    : shared_(std::move(shared)),
      claim_(claim),
      index_(index),
      agreement_(std::move(agreement)),
      engine_(engine),
      kernels_(engine->direct_kernels()),
      fence_(shared_.requests_fence(index)) {}

Result<std::unique_ptr<SharedScheduler>> SharedScheduler::open(
    Pool& pool, const std::string& name, std::uint32_t index, const std::shared_ptr<Engine>& engine,
    std::uint32_t timeout_ms) {
  PENSTOCK_CHECK(engine != nullptr);
  if (engine->direct_kernels() == nullptr) {
    return error(Code::unsupported,
                 "engine {} does not decide in the calling thread; a scheduler of a shared table "
                 "wants one that does: simd or scalar",
                 engine->capabilities().name);
  }
  PENSTOCK_ASSIGN(SharedTable shared, SharedTable::open(pool, name));
  if (index >= shared.header().schedulers) {
    return error(Code::invalid_argument, "scheduler {} of the shared table '{}': it has 0 to {}",
                 index, name, shared.header().schedulers - 1);
  }
  PENSTOCK_ASSIGN(const Region claim, shared.claim("scheduler", index));
  // Participant 0 only reads here.
  auto agreement = shared.agreement(0);
  if (!agreement.ok()) {
    static_cast<void>(pool.free(claim));
    return agreement.status();
  }
  std::unique_ptr<SharedScheduler> scheduler(
      new SharedScheduler(std::move(shared), claim, index, std::move(agreement).value(), engine));
  PENSTOCK_TRY(scheduler->wait_for_reign(pool.platform().now_ns() + timeout_ms * kMillisecond));
  return scheduler;
}

SharedScheduler::~SharedScheduler() { static_cast<void>(shared_.pool().free(claim_)); }

Status SharedScheduler::wait_for_reign(std::uint64_t deadline_ns) {
  Platform& platform = shared_.pool().platform();
  sequence_ = fence_.load();
  for (;;) {
    PENSTOCK_ASSIGN(const bool ready, attach());
    if (ready && state_.schedulers[index_].done >= sequence_) return {};
    if (platform.now_ns() >= deadline_ns) {
      return error(Code::deadline_exceeded, "shared table '{}': {}", shared_.name(),
                   ready ? "the binder has not handled the requests of an earlier scheduler"
                         : "nobody is its binder");
    }
    platform.sleep_ns(200'000);
  }
}

std::vector<SharedOutcome> SharedScheduler::outcomes() const {
  std::vector<SharedOutcome> list;
  for (const SharedOutcome& outcome : state_.schedulers[index_].outcomes) {
    if (outcome.sequence != 0) list.push_back(outcome);
  }
  std::sort(list.begin(), list.end(),
            [](const SharedOutcome& a, const SharedOutcome& b) { return a.sequence < b.sequence; });
  return list;
}

// ---- reading ----

Result<bool> SharedScheduler::is_current() {
  if (!reader_) return false;
  PENSTOCK_ASSIGN(const std::uint64_t epoch, SharedTable::role_epoch(&agreement_));
  return epoch == reader_->epoch();
}

Result<bool> SharedScheduler::attach() {
  const std::uint64_t before = state_.epoch;
  reader_.reset();
  PENSTOCK_ASSIGN(const std::uint64_t epoch, SharedTable::role_epoch(&agreement_));
  const std::optional<Region> region = shared_.find_reign(epoch);
  if (!region) return false;
  const ReignReader reader(shared_, *region, epoch);
  auto state = reader.checkpoint();
  if (!state.ok()) return false;
  for (const std::uint64_t newest = reader.newest(); state->position < newest;) {
    const auto record = reader.record(state->position + 1);
    if (!record.ok() || !apply_record(record.value(), &state.value()).ok()) return false;
  }
  PENSTOCK_ASSIGN(const std::uint64_t now, SharedTable::role_epoch(&agreement_));
  if (now != epoch) return false;
  reader_ = reader;
  state_ = std::move(state).value();
  statistics_.reigns += epoch != before;
  settle_from_state();
  return true;
}

// What was handled is in the state that was read; what was not goes into the copy again.
void SharedScheduler::settle_from_state() {
  const SchedulerState& mine = state_.schedulers[index_];
  while (!pending_.empty() && pending_.front().sequence <= mine.done) {
    settled_.push_back(
        {pending_.front().index, mine.outcomes[pending_.front().sequence % mine.outcomes.size()]});
    pending_.pop_front();
  }
  for (Pending& pending : pending_) {
    if (!pending.in_copy) continue;
    pending.in_copy = scalar_commit(table(), pending.task, static_cast<std::uint32_t>(pending.row),
                                    pending.gpu_mask) == PENSTOCK_OK;
  }
}

Result<bool> SharedScheduler::poll() {
  if (!reader_) return attach();
  const std::uint64_t newest = std::min(reader_->newest(), state_.position + kRecordsAtATime);
  if (newest <= state_.position) return false;
  std::vector<LogRecord> records;
  for (std::uint64_t position = state_.position + 1; position <= newest; ++position) {
    auto record = reader_->record(position);
    if (!record.ok()) return attach();
    records.push_back(std::move(record).value());
  }
  // After they were read: only then do they count.
  PENSTOCK_ASSIGN(const bool current, is_current());
  if (!current) return attach();
  for (const LogRecord& record : records) {
    if (!take(record)) return attach();  // the copy may be half way between two records
  }
  return true;
}

bool SharedScheduler::undo(Pending* pending) {
  pending->in_copy = false;
  if (sets_bits(pending->task)) return false;
  return scalar_release(table(), pending->task, static_cast<std::uint32_t>(pending->row),
                        pending->gpu_mask) == PENSTOCK_OK;
}

bool SharedScheduler::withdraw_row(std::int32_t row) {
  for (Pending& pending : pending_) {
    if (pending.in_copy && pending.row == row && !undo(&pending)) return false;
  }
  return true;
}

bool SharedScheduler::take(const LogRecord& record) {
  const SharedOutcome& outcome = record.outcome;
  LogRecord applied = record;
  if (record.scheduler == index_) {
    if (pending_.empty() || pending_.front().sequence != outcome.sequence) return false;
    Pending& mine = pending_.front();
    if (mine.in_copy) {
      if (outcome.status == OutcomeStatus::done && outcome.gpu_mask == mine.gpu_mask) {
        applied.outcome.status = OutcomeStatus::conflict;  // nothing is left to be done to the copy
      } else if (!undo(&mine)) {
        return false;
      }
    }
  }
  if (!apply_record(applied, &state_).ok()) {
    // In the way is what is under way here; the binder will find a conflict.
    if (!withdraw_row(outcome.row) || !apply_record(applied, &state_).ok()) return false;
  }
  if (record.scheduler == index_) {
    SchedulerState& mine = state_.schedulers[index_];
    mine.outcomes[outcome.sequence % mine.outcomes.size()] = outcome;
    settled_.push_back({pending_.front().index, outcome});
    pending_.pop_front();
  }
  return true;
}

Status SharedScheduler::refresh() {
  for (;;) {
    PENSTOCK_ASSIGN(const bool more, poll());
    if (!more) break;
  }
  PENSTOCK_ASSIGN(const bool current, is_current());
  return current ? Status() : attach().status();
}

// ---- asking ----

void SharedScheduler::send(RequestKind kind, const penstock_task& task, std::uint64_t cookie,
                           std::size_t index, std::int32_t row, std::uint32_t gpu_mask,
                           bool in_copy) {
  SharedRequest request;
  request.sequence = ++sequence_;
  request.cookie = cookie;
  request.seen = state_.position;
  request.row = row;
  request.kind = kind;
  request.gpu_mask = gpu_mask;
  request.task = task;
  request.checksum = checksum_of(request);
  pending_.push_back({request.sequence, index, task, row, gpu_mask, in_copy});
  shared_.memory().store(shared_.board() + shared_.layout().request(index_, request.sequence),
                         &request, sizeof request);
}

Status SharedScheduler::wait_until(std::size_t most, std::uint64_t deadline_ns) {
  Platform& platform = shared_.pool().platform();
  Backoff backoff(platform, true);
  std::uint64_t look_at_ns = platform.now_ns() + kMillisecond;
  while (pending_.size() > most) {
    PENSTOCK_ASSIGN(const bool more, poll());
    if (more) {
      backoff = Backoff(platform, true);
      continue;
    }
    const std::uint64_t now_ns = platform.now_ns();
    if (now_ns >= look_at_ns) {
      look_at_ns = now_ns + kMillisecond;
      PENSTOCK_ASSIGN(const bool current, is_current());
      if (!current) PENSTOCK_TRY(attach().status());
    }
    if (now_ns >= deadline_ns) {
      return error(Code::deadline_exceeded,
                   "shared table '{}': {} requests of scheduler {} were not answered in time",
                   shared_.name(), pending_.size(), index_);
    }
    backoff.turn();
  }
  return {};
}

void SharedScheduler::abandon() {
  for (Pending& pending : pending_) pending.index = kNobody;
  settled_.clear();
}

Result<std::vector<SharedPlacement>> SharedScheduler::place(std::span<const SharedTask> tasks,
                                                            std::uint32_t window,
                                                            std::uint32_t timeout_ms) {
  const std::uint32_t ring = shared_.header().ring;
  if (window < 1 || window > ring) {
    return error(Code::invalid_argument, "a window of {} requests, expected 1 to {}", window, ring);
  }
  for (const SharedTask& task : tasks) {
    if (penstock_task_check(&task.task, &shared_.program(), table().header) != PENSTOCK_OK) {
      return error(Code::invalid_argument, "the task with cookie {} does not fit the table",
                   task.cookie);
    }
  }
  const std::uint64_t deadline_ns = shared_.pool().platform().now_ns() + timeout_ms * kMillisecond;
  std::vector<SharedPlacement> placements(tasks.size());
  std::deque<std::size_t> waiting;
  for (std::size_t i = 0; i < tasks.size(); ++i) waiting.push_back(i);
  abandon();
  while (!waiting.empty() || !pending_.empty()) {
    while (!waiting.empty() && pending_.size() < window) {
      const std::size_t i = waiting.front();
      waiting.pop_front();
      if (placements[i].conflicts >= kConflictsOfATask) {
        send(RequestKind::place, tasks[i].task, tasks[i].cookie, i, -1, 0, false);
        continue;
      }
      penstock_result result;
      kernels_->select(table(), shared_.program(), tasks[i].task, true, &result);
      ++statistics_.decisions;
      if (result.status == PENSTOCK_OK) {
        send(RequestKind::place, tasks[i].task, tasks[i].cookie, i, result.row, result.gpu_mask,
             true);
      } else {
        placements[i].status = result.status == PENSTOCK_NOT_FOUND ? PlacementStatus::no_node
                                                                   : PlacementStatus::refused;
      }
    }
    fence_.signal(sequence_);
    const Status status = wait_until(pending_.empty() ? 0 : pending_.size() - 1, deadline_ns);
    if (!status.ok()) {
      abandon();
      return status;
    }
    for (const Settled& settled : std::exchange(settled_, {})) {
      if (settled.index == kNobody) continue;
      SharedPlacement& placement = placements[settled.index];
      if (settled.outcome.status == OutcomeStatus::done) {
        placement.status = PlacementStatus::placed;
        placement.row = settled.outcome.row;
        placement.gpu_mask = settled.outcome.gpu_mask;
        ++statistics_.placed;
      } else if (settled.outcome.status == OutcomeStatus::refused) {
        placement.status = PlacementStatus::refused;
      } else if (settled.outcome.status == OutcomeStatus::no_node) {
        placement.status = PlacementStatus::no_node;
      } else {
        ++placement.conflicts;
        ++statistics_.conflicts;
        waiting.push_front(settled.index);
      }
    }
  }
  return placements;
}

Status SharedScheduler::release(const SharedTask& task, std::int32_t row, std::uint32_t gpu_mask,
                                std::uint32_t timeout_ms) {
  if (sets_bits(task.task)) {
    return error(Code::unsupported,
                 "the task with cookie {} sets bits, and the table does not count who else did",
                 task.cookie);
  }
  if (row < 0 || static_cast<std::uint32_t>(row) >= table().header->rows) {
    return error(Code::invalid_argument, "row {} is not in the table", row);
  }
  const std::uint64_t deadline_ns = shared_.pool().platform().now_ns() + timeout_ms * kMillisecond;
  abandon();
  PENSTOCK_TRY(wait_until(shared_.header().ring - 1, deadline_ns));
  send(RequestKind::release, task.task, task.cookie, 0, row, gpu_mask, false);
  fence_.signal(sequence_);
  PENSTOCK_TRY(wait_until(0, deadline_ns));
  const SharedOutcome outcome = settled_.back().outcome;
  settled_.clear();
  if (outcome.status == OutcomeStatus::done) return {};
  return error(Code::not_found, "row {} does not hold what the task with cookie {} would give back",
               row, task.cookie);
}

}  // namespace penstock
