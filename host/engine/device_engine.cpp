#include "penstock/engine/device_engine.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <deque>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#include "penstock/base/log.h"
#include "penstock/engine/accept.h"
#include "penstock/engine/execute.h"
#include "penstock/engine/float_environment.h"
#include "penstock/engine/update.h"

namespace penstock {
namespace {

// What the queues of an engine share.
class Shared {
 public:
  Shared(Capabilities capabilities, std::shared_ptr<Device> device)
      : capabilities_(std::move(capabilities)), device_(std::move(device)) {}

  const Capabilities& capabilities() const { return capabilities_; }
  Device& device() const { return *device_; }
  bool lost() const { return lost_.load(std::memory_order_acquire); }
  Status loss() const {
    const std::lock_guard lock(mutex_);
    return loss_;
  }
  void lose(const Status& why) {
    const std::lock_guard lock(mutex_);
    if (lost()) return;
    loss_ = error(Code::io_error, "the device is lost: {}", why.message());
    log::warn("{}: {}", capabilities_.name, loss_.message());
    lost_.store(true, std::memory_order_release);
  }

 private:
  const Capabilities capabilities_;
  const std::shared_ptr<Device> device_;
  mutable std::mutex mutex_;
  Status loss_;
  std::atomic<bool> lost_{false};
};

// A SELECT goes to the stream in pieces of so many tasks, one after the other.
constexpr std::uint64_t kTasksAtOnce = 1024;

// What a SELECT keeps until it is over.
struct SelectWork {
  PreparedSelect prepared;
  std::uint64_t done = 0;            // tasks before those of the present piece
  std::vector<penstock_task> tasks;  // of the present piece, copied and checked
  std::uint32_t status = PENSTOCK_OK, field = PENSTOCK_FIELD_NONE;  // the stream's refusal
  std::uint64_t detail = 0;
  std::uint64_t left() const { return prepared.n - done; }
};
struct UpdateWork {
  PreparedUpdate prepared;
  std::vector<penstock_update> updates;
  std::uint32_t status = PENSTOCK_INTERNAL;
  std::uint64_t bad_index = 0;
};

// A descriptor that was looked at and has no completion yet.
struct Entry {
  Outcome outcome;  // how it ends if the device does its part
  bool on_device = false;
  std::uint64_t mark = 0;  // the first after it; 0 while there is none
  // What the device writes: `n` ranges.
  std::uint32_t n = 0;
  std::byte* range[PENSTOCK_MAX_DESTINATIONS] = {};
  std::uint64_t bytes[PENSTOCK_MAX_DESTINATIONS] = {};
  std::unique_ptr<SelectWork> select;
  std::unique_ptr<UpdateWork> update;

  void writes(void* data, std::uint64_t count) {
    range[n] = static_cast<std::byte*>(data);
    bytes[n++] = count;
  }
  // The host's part of it comes when the device's is over: until then nothing may follow.
  bool stands_alone() const {
    return update != nullptr ||
           (select != nullptr && (select->prepared.commit || select->prepared.n > kTasksAtOnce));
  }
};

class Side final : public EngineSide, public Unfinished {
 public:
  Side(std::shared_ptr<Shared> shared, const Queue& queue, std::unique_ptr<DeviceStream> stream)
      : shared_(std::move(shared)), pool_(queue.pool()), stream_(std::move(stream)) {}
  ~Side() override;

  const Shared* shared() const { return shared_.get(); }
  std::uint32_t advance(Queue& queue);
  bool writes(const void* data, std::uint64_t bytes) const override;

 private:
  enum class Step { taken, held };

  std::uint32_t start(Queue& queue);
  std::uint32_t collect(Queue& queue);
  std::uint32_t lose(Queue& queue, const Status& why);
  Step look(Queue& queue, const penstock_descriptor& d, Entry* entry);
  Step begin(const Queue& queue, const penstock_descriptor& d, Entry* entry);
  Status begin_select(const Access& access, const penstock_descriptor& d, Entry* entry);
  Status begin_piece(Entry* entry);
  bool begin_next_piece(Entry* entry);
  Status begin_update(const Access& access, const penstock_descriptor& d, Entry* entry);
  void write_back(const Entry& entry) const;
  void finish(const Queue& queue, Entry& entry) const;
  void finish_select(const Access& access, SelectWork& work) const;
  void finish_update(const Access& access, UpdateWork& work) const;

  const std::shared_ptr<Shared> shared_;
  const Pool* const pool_;
  std::unique_ptr<DeviceStream> stream_;
  std::deque<Entry> entries_;  // oldest first
  bool unmarked_ = false;      // something was started after the last mark
  std::uint64_t reached_ = 0;  // the highest mark known to be reached
};

// What the device wrote before it failed or was interrupted may not stay in this host's caches: it
// would be written over what another host puts there later.
void Side::write_back(const Entry& entry) const {
  if (pool_ == nullptr || pool_->coherence() != Coherence::software) return;
  penstock_address ignored = 0;
  for (std::uint32_t i = 0; i < entry.n; ++i)
    if (pool_->address_of(entry.range[i], entry.bytes[i], &ignored))
      pool_->publish(entry.range[i], entry.bytes[i]);
}

Side::~Side() {
  stream_.reset();
  for (const Entry& entry : entries_) write_back(entry);
}

bool Side::writes(const void* data, std::uint64_t bytes) const {
  for (const Entry& entry : entries_)
    for (std::uint32_t i = 0; i < entry.n; ++i)
      if (overlaps(entry.range[i], entry.bytes[i], data, bytes)) return true;
  return false;
}

std::uint32_t Side::advance(Queue& queue) {
  std::uint32_t completions = collect(queue);
  // What is over at once makes room for what waited for it.
  for (std::uint32_t more = 1; more != 0 || unmarked_; completions += more) {
    more = start(queue);
    more += collect(queue);
  }
  return completions;
}

std::uint32_t Side::start(Queue& queue) {
  std::uint32_t completions = 0;
  while (entries_.empty() || !entries_.back().stands_alone()) {
    const penstock_descriptor* next = queue.front(static_cast<std::uint32_t>(entries_.size()));
    if (next == nullptr) break;
    Entry entry;
    if (queue.cancelled()) {
      if (!entries_.empty()) break;
      queue.wait_began_ns = 0;
      entry.outcome.status = PENSTOCK_CANCELLED;
    } else if (look(queue, *next, &entry) == Step::held) {
      break;
    }
    if (entries_.empty() && !entry.on_device) {
      queue.complete(entry.outcome.status, entry.outcome.field, entry.outcome.detail);
      ++completions;
      continue;
    }
    unmarked_ = unmarked_ || entry.on_device;
    entries_.push_back(std::move(entry));
  }
  if (!unmarked_) return completions;
  const Result<std::uint64_t> mark = stream_->mark();
  if (!mark.ok()) return completions + lose(queue, mark.status());
  unmarked_ = false;
  for (auto entry = entries_.rbegin(); entry != entries_.rend() && entry->mark == 0; ++entry)
    entry->mark = mark.value();
  return completions;
}

Side::Step Side::look(Queue& queue, const penstock_descriptor& d, Entry* entry) {
  Outcome& outcome = entry->outcome;
  outcome.status = check_descriptor(shared_->capabilities(), d, &outcome.field, &outcome.detail);
  if (!outcome.ok()) return Step::taken;
  if (shared_->lost()) {
    outcome.status = PENSTOCK_IO_ERROR;
    return Step::taken;
  }
  switch (d.opcode) {
    case PENSTOCK_OP_NOP:
      return Step::taken;
    case PENSTOCK_OP_WAIT:
    case PENSTOCK_OP_BARRIER:
      if (!entries_.empty() || !wait_is_over(queue, d, &outcome)) return Step::held;
      return Step::taken;
    case PENSTOCK_OP_SIGNAL:
      if (!entries_.empty()) return Step::held;
      outcome = execute_signal(Access(queue), queue, d);
      return Step::taken;
    default:
      return begin(queue, d, entry);
  }
}

Side::Step Side::begin(const Queue& queue, const penstock_descriptor& d, Entry* entry) {
  const Access access(queue, this, &shared_->device());
  Status started;
  Outcome& outcome = entry->outcome;
  if (d.opcode == PENSTOCK_OP_SELECT) {
    started = begin_select(access, d, entry);
  } else if (d.opcode == PENSTOCK_OP_UPDATE) {
    started = begin_update(access, d, entry);
  } else if (d.count == 0) {
    return Step::taken;
  } else if (d.opcode == PENSTOCK_OP_COPY) {
    Operands operands;
    outcome = prepare_copy(access, d, &operands);
    if (outcome.ok() && !access.held()) {
      started = stream_->copy(operands.dst, d.n_dst, operands.src[0], d.count);
      for (std::uint32_t i = 0; i < d.n_dst; ++i) entry->writes(operands.dst[i], d.count);
      entry->on_device = true;
    }
  } else if (d.opcode == PENSTOCK_OP_REDUCE) {
    PreparedReduce prepared;
    outcome = prepare_reduce(access, d, &prepared);
    if (outcome.ok() && !access.held()) {
      started = stream_->reduce(prepared.arguments);
      for (std::uint32_t i = 0; i < d.n_dst; ++i)
        entry->writes(prepared.operands.dst[i], prepared.dst_bytes);
      entry->on_device = true;
    }
  } else {
    PreparedOuterStep prepared;
    outcome = prepare_outer_step(access, d, &prepared);
    if (outcome.ok() && !access.held()) {
      started = stream_->outer_step(prepared.arguments);
      for (std::uint32_t i = 0; i < d.n_dst; ++i)
        entry->writes(prepared.operands.dst[i], prepared.dst_bytes);
      entry->on_device = true;
    }
  }
  if (access.held()) return Step::held;
  if (started.ok()) return Step::taken;
  const bool later = started.code() == Code::no_space || started.code() == Code::busy;
  if (later && !entries_.empty()) return Step::held;
  log::warn("{}: {}", shared_->capabilities().name, started.message());
  *entry = Entry();
  entry->outcome.status = static_cast<std::uint32_t>(started.code());
  return Step::taken;
}

// Fills entry->outcome; what it returns is the stream's.
Status Side::begin_select(const Access& access, const penstock_descriptor& d, Entry* entry) {
  auto work = std::make_unique<SelectWork>();
  PreparedSelect& prepared = work->prepared;
  Outcome& outcome = entry->outcome;
  outcome = prepare_select(access, d, &prepared);
  if (!outcome.ok() || access.held()) return {};
  const Capabilities& can = shared_->capabilities();
  outcome.status = check_table_width(can, prepared.table.header);
  if (!outcome.ok()) {
    outcome = {outcome.status, PENSTOCK_FIELD_TABLE, d.src[0]};
    return {};
  }
  outcome.status = check_program_operations(can.select, prepared.program, &outcome.detail);
  if (!outcome.ok()) {
    outcome.field = PENSTOCK_FIELD_PROGRAM;
    return {};
  }
  if (prepared.n == 0) return {};
  penstock_task task;
  for (std::uint64_t i = 0; i < prepared.n; ++i) {
    std::memcpy(&task, prepared.tasks + i * sizeof(task), sizeof(task));
    outcome = {check_task_demands(can.select, task), PENSTOCK_FIELD_TASK, i};
    if (!outcome.ok()) return {};
  }
  outcome = {};
  entry->select = std::move(work);
  entry->writes(prepared.results, prepared.n * sizeof(penstock_result));
  if (prepared.commit) entry->writes(prepared.table.data, prepared.table.header.bytes);
  return begin_piece(entry);
}

// The tasks were sound a moment ago, but their memory may be another process's.
Status Side::begin_piece(Entry* entry) {
  SelectWork& work = *entry->select;
  const PreparedSelect& prepared = work.prepared;
  const OpenTable& table = prepared.table;
  entry->on_device = false;
  work.tasks.resize(std::min(work.left(), kTasksAtOnce));
  std::memcpy(work.tasks.data(), prepared.tasks + work.done * sizeof(penstock_task),
              work.tasks.size() * sizeof(penstock_task));
  for (std::size_t i = 0; i < work.tasks.size(); ++i) {
    const penstock_task& task = work.tasks[i];
    if (penstock_task_check(&task, &prepared.program, &table.header) == PENSTOCK_OK &&
        check_task_demands(shared_->capabilities().select, task) == PENSTOCK_OK)
      continue;
    entry->outcome = {PENSTOCK_CORRUPT, PENSTOCK_FIELD_TASK, work.done + i};
    return {};
  }
  PENSTOCK_TRY(stream_->select({table.view, table.data, &prepared.program, work.tasks.data(),
                                work.tasks.size(), prepared.commit,
                                prepared.results + work.done * sizeof(penstock_result),
                                &work.status, &work.field, &work.detail}));
  entry->on_device = true;
  entry->mark = 0;
  unmarked_ = true;
  return {};
}

// Whether it is on the stream now; otherwise the SELECT is over, however it ended.
bool Side::begin_next_piece(Entry* entry) {
  SelectWork& work = *entry->select;
  work.done += work.tasks.size();
  if (work.left() == 0) return false;
  if (const Status started = begin_piece(entry); !started.ok()) {
    log::warn("{}: {}", shared_->capabilities().name, started.message());
    entry->outcome = {static_cast<std::uint32_t>(started.code()), PENSTOCK_FIELD_NONE, 0};
  }
  return entry->on_device;
}

Status Side::begin_update(const Access& access, const penstock_descriptor& d, Entry* entry) {
  auto work = std::make_unique<UpdateWork>();
  PreparedUpdate& prepared = work->prepared;
  Outcome& outcome = entry->outcome;
  outcome = prepare_update(access, d, &prepared);
  if (!outcome.ok() || access.held()) return {};
  outcome.status = check_table_width(shared_->capabilities(), prepared.table.header);
  if (!outcome.ok()) {
    outcome = {outcome.status, PENSTOCK_FIELD_TABLE, d.src[0]};
    return {};
  }
  if (prepared.n == 0) return {};
  try {
    work->updates.resize(prepared.n);
  } catch (const std::bad_alloc&) {
    return error(Code::no_space, "no memory for a copy of {} updates", prepared.n);
  }
  std::memcpy(work->updates.data(), prepared.updates, prepared.n * sizeof(penstock_update));
  for (std::uint64_t i = 0; i < prepared.n; ++i) {
    outcome.status = check_update(prepared.table.header, work->updates[i]);
    if (outcome.ok()) continue;
    outcome = {outcome.status, PENSTOCK_FIELD_UPDATE, i};
    return {};
  }
  const OpenTable& table = prepared.table;
  PENSTOCK_TRY(stream_->update(
      {table.view, table.data, work->updates.data(), prepared.n, &work->status, &work->bad_index}));
  entry->on_device = true;
  entry->writes(table.data, table.header.bytes);
  entry->update = std::move(work);
  return {};
}

std::uint32_t Side::collect(Queue& queue) {
  std::uint32_t completions = 0;
  while (!entries_.empty()) {
    Entry& entry = entries_.front();
    if (entry.on_device && entry.mark > reached_) {
      const Result<bool> over = stream_->reached(entry.mark);
      if (!over.ok()) return completions + lose(queue, over.status());
      if (!over.value()) break;
      reached_ = entry.mark;
    }
    if (entry.on_device) finish(queue, entry);
    if (entry.on_device && entry.select != nullptr && entry.outcome.ok() && !queue.cancelled() &&
        begin_next_piece(&entry))
      break;
    if (queue.cancelled()) entry.outcome = {PENSTOCK_CANCELLED, PENSTOCK_FIELD_NONE, 0};
    // What completes is no longer looked at.
    const Outcome outcome = entry.outcome;
    entries_.pop_front();
    queue.complete(outcome.status, outcome.field, outcome.detail);
    ++completions;
  }
  return completions;
}

std::uint32_t Side::lose(Queue& queue, const Status& why) {
  shared_->lose(why);
  std::uint32_t completions = 0;
  for (; !entries_.empty(); ++completions) {
    Entry& entry = entries_.front();
    if (entry.on_device) {
      write_back(entry);
      entry.outcome = {PENSTOCK_IO_ERROR, PENSTOCK_FIELD_NONE, 0};
    }
    const Outcome outcome = entry.outcome;
    entries_.pop_front();
    queue.complete(outcome.status, outcome.field, outcome.detail);
  }
  unmarked_ = false;
  return completions;
}

void Side::finish(const Queue& queue, Entry& entry) const {
  const Access access(queue);
  if (entry.update != nullptr) {
    UpdateWork& work = *entry.update;
    if (work.status == PENSTOCK_OK)
      finish_update(access, work);
    else
      entry.outcome = {work.status, PENSTOCK_FIELD_UPDATE, work.bad_index};
    return;
  }
  if (entry.select != nullptr) {
    SelectWork& work = *entry.select;
    if (work.status == PENSTOCK_OK)
      finish_select(access, work);
    else
      entry.outcome = {work.status, work.field, work.detail};
    return;
  }
  for (std::uint32_t i = 0; i < entry.n; ++i) access.publish(entry.range[i], entry.bytes[i]);
}

void Side::finish_select(const Access& access, SelectWork& work) const {
  PreparedSelect& prepared = work.prepared;
  OpenTable& table = prepared.table;
  const std::byte* const results = prepared.results + work.done * sizeof(penstock_result);
  access.publish(results, work.tasks.size() * sizeof(penstock_result));
  if (!prepared.commit) return;
  for (std::size_t i = 0; i < work.tasks.size(); ++i) {
    penstock_result result;
    std::memcpy(&result, results + i * sizeof(result), sizeof(result));
    const auto row = static_cast<std::uint32_t>(result.row);
    // Results may stand in memory that somebody else writes.
    if (result.status != PENSTOCK_OK || row >= table.header.capacity) continue;
    publish_commit(access, table.view, work.tasks[i], row);
    ++table.header.generation;
  }
  close_table(access, table);
}

void Side::finish_update(const Access& access, UpdateWork& work) const {
  OpenTable& table = work.prepared.table;
  for (const penstock_update& update : work.updates) {
    if (update.field == PENSTOCK_UPDATE_ROWS)
      table.header.rows = static_cast<std::uint32_t>(update.value);
    publish_update(access, table.view, update);
  }
  ++table.header.generation;
  close_table(access, table);
}

class DeviceEngine final : public Engine {
 public:
  DeviceEngine(Capabilities capabilities, std::shared_ptr<Device> device)
      : shared_(std::make_shared<Shared>(std::move(capabilities), std::move(device))) {}

  const Capabilities& capabilities() const override { return shared_->capabilities(); }
  Status accepts(const penstock_descriptor& descriptor) const override {
    if (shared_->lost()) return shared_->loss().with_context(capabilities().name);
    return accept_descriptor(capabilities(), descriptor);
  }
  std::uint32_t advance(Queue& queue) override;
  bool reaches_device_memory(const void* data) const override {
    return shared_->device().reaches_device_memory(data);
  }

 private:
  const std::shared_ptr<Shared> shared_;
};

std::uint32_t DeviceEngine::advance(Queue& queue) {
  const FloatEnvironment environment;  // streams compute factors of averages
  auto* side = dynamic_cast<Side*>(queue.engine_side.get());
  if (side == nullptr || side->shared() != shared_.get()) {
    if (queue.front() == nullptr) return 0;
    // Another engine's side is given up before: it may hold what this one needs.
    queue.engine_side.reset();
    Status why = shared_->loss();
    if (why.ok()) {
      Result<std::unique_ptr<DeviceStream>> stream = shared_->device().open(queue);
      if (stream.ok()) {
        auto made = std::make_unique<Side>(shared_, queue, std::move(stream).value());
        side = made.get();
        queue.engine_side = std::move(made);
        return side->advance(queue);
      }
      why = stream.status();
      log::warn("{}: {}", capabilities().name, why.message());
    }
    const Code code = queue.cancelled() ? Code::cancelled : why.code();
    std::uint32_t completions = 0;
    for (; queue.front() != nullptr; ++completions)
      queue.complete(static_cast<std::uint32_t>(code));
    return completions;
  }
  return side->advance(queue);
}

}  // namespace

bool Device::host_reads(const void*, std::uint64_t) const { return true; }

bool Device::reaches_device_memory(const void*) const { return false; }

Status DeviceStream::outer_step(const OuterStepArguments&) {
  return error(Code::unsupported, "the device has no OUTER_STEP");
}
Status DeviceStream::select(const SelectArguments&) {
  return error(Code::unsupported, "the device has no SELECT");
}
Status DeviceStream::update(const UpdateArguments&) {
  return error(Code::unsupported, "the device has no UPDATE");
}

std::unique_ptr<Engine> make_device_engine(Capabilities capabilities,
                                           std::shared_ptr<Device> device) {
  return std::make_unique<DeviceEngine>(std::move(capabilities), std::move(device));
}

}  // namespace penstock
