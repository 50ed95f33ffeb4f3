// Queues: doorbells, fetches, what happens to a record before a part of the card executes it, and
// completions.
#include <algorithm>
#include <cstring>

#include "penstock/sim/systemc/card.h"
#include "penstock/sim/systemc/memory.h"
#include "penstock/sim/systemc/register_offsets.h"
#include "penstock/sim/systemc/selector.h"

namespace penstock::systemc {
namespace {

// Records that are fetched ahead, per queue: PREFETCH of rtl/command.
constexpr std::uint32_t kAhead = 8;

}  // namespace

// ---- registers of queues and windows ----

bool Card::read_queue(std::uint32_t offset, std::uint32_t* value) {
  const std::uint32_t index = offset / kQueueBytes;
  if (index >= CardLimits::kQueues) return false;
  const Queue& queue = queues_[index];
  switch (offset % kQueueBytes) {
    case PENSTOCK_REGISTER_QUEUE_RING_LO:
    case PENSTOCK_REGISTER_QUEUE_RING_HI:
      *value = half(queue.ring, offset);
      return true;
    case PENSTOCK_REGISTER_QUEUE_COMPLETIONS_LO:
    case PENSTOCK_REGISTER_QUEUE_COMPLETIONS_HI:
      *value = half(queue.completions, offset);
      return true;
    case PENSTOCK_REGISTER_QUEUE_CONFIG:
      *value = queue.depth_log2;
      return true;
    case PENSTOCK_REGISTER_QUEUE_TIMEOUT_MS:
      *value = queue.timeout_ms;
      return true;
    case PENSTOCK_REGISTER_QUEUE_CONTROL:
      *value = (queue.enabled ? 1u : 0) | (queue.cancelled ? 2u : 0);
      return true;
    case PENSTOCK_REGISTER_QUEUE_TAIL:
      *value = queue.tail;
      return true;
    case PENSTOCK_REGISTER_QUEUE_HEAD:
      *value = queue.head;
      return true;
    case PENSTOCK_REGISTER_QUEUE_COMPLETED:
      *value = queue.completed;
      return true;
    case PENSTOCK_REGISTER_QUEUE_STATE:
      *value = (queue.enabled ? 1u : 0) | (queue.idle() ? 2u : 0) | (queue.stopped ? 4u : 0) |
               (waiters_[index].active ? 8u : 0) | static_cast<std::uint32_t>(queue.error) << 8;
      return true;
    case PENSTOCK_REGISTER_QUEUE_WINDOWS:
      *value = queue.windows;
      return true;
    default:
      return false;
  }
}

bool Card::write_queue(std::uint32_t offset, std::uint32_t value) {
  const std::uint32_t index = offset / kQueueBytes;
  if (index >= CardLimits::kQueues) return false;
  Queue& queue = queues_[index];
  switch (offset % kQueueBytes) {
    case PENSTOCK_REGISTER_QUEUE_RING_LO:
    case PENSTOCK_REGISTER_QUEUE_RING_HI:
      set_half(&queue.ring, offset, value);
      return true;
    case PENSTOCK_REGISTER_QUEUE_COMPLETIONS_LO:
    case PENSTOCK_REGISTER_QUEUE_COMPLETIONS_HI:
      set_half(&queue.completions, offset, value);
      return true;
    case PENSTOCK_REGISTER_QUEUE_CONFIG:
      queue.depth_log2 = value & 0x1f;
      return true;
    case PENSTOCK_REGISTER_QUEUE_TIMEOUT_MS:
      queue.timeout_ms = value;
      return true;
    case PENSTOCK_REGISTER_QUEUE_CONTROL: {
      const bool enable = (value & 1) != 0;
      if (enable && !queue.enabled) {
        queue.tail = queue.fetched = queue.head = queue.completed = 0;
        queue.sequence = 0;
        queue.stopped = false;
        queue.error = CardError::none;
        queue.ahead.clear();
        // A new table, of a new queue, may lie where an old one was and look like it.
        selector_->forget();
      }
      queue.enabled = enable;
      queue.cancelled = (value & 2) != 0;
      if (queue.cancelled) cancel_wait(index);
      command_event_.notify(sc_core::SC_ZERO_TIME);
      return true;
    }
    case PENSTOCK_REGISTER_QUEUE_TAIL:
      ring_doorbell(index, value);
      return true;
    case PENSTOCK_REGISTER_QUEUE_WINDOWS:
      queue.windows = std::min(value, CardLimits::kWindows);
      return true;
    default:
      return false;
  }
}

bool Card::read_window(std::uint32_t offset, std::uint32_t* value) {
  const Window& window = windows_[offset / (CardLimits::kWindows * kWindowBytes)]
                                 [offset / kWindowBytes % CardLimits::kWindows];
  switch (offset % kWindowBytes / 8 * 8) {
    case PENSTOCK_REGISTER_WINDOW_BASE_LO:
      *value = half(window.base, offset);
      return true;
    case PENSTOCK_REGISTER_WINDOW_BYTES_LO:
      *value = half(window.bytes, offset);
      return true;
    case PENSTOCK_REGISTER_WINDOW_BUS_LO:
      *value = half(window.bus, offset);
      return true;
    default:
      *value = window.rights;
      return offset % kWindowBytes == PENSTOCK_REGISTER_WINDOW_RIGHTS;
  }
}

bool Card::write_window(std::uint32_t offset, std::uint32_t value) {
  Window& window = windows_[offset / (CardLimits::kWindows * kWindowBytes)]
                           [offset / kWindowBytes % CardLimits::kWindows];
  switch (offset % kWindowBytes / 8 * 8) {
    case PENSTOCK_REGISTER_WINDOW_BASE_LO:
      set_half(&window.base, offset, value);
      return true;
    case PENSTOCK_REGISTER_WINDOW_BYTES_LO:
      set_half(&window.bytes, offset, value);
      return true;
    case PENSTOCK_REGISTER_WINDOW_BUS_LO:
      set_half(&window.bus, offset, value);
      return true;
    default:
      window.rights = value & 3;
      return offset % kWindowBytes == PENSTOCK_REGISTER_WINDOW_RIGHTS;
  }
}

void Card::ring_doorbell(std::uint32_t index, std::uint32_t tail) {
  Queue& queue = queues_[index];
  if (!queue.enabled || queue.stopped) return;
  if (!queue.depth_holds(tail)) {
    queue.stopped = true;
    queue.error = CardError::doorbell;
    report_error(CardError::doorbell, index, tail, 0, penstock_descriptor{});
    return;
  }
  queue.tail = tail;
  fetch_event_.notify(cycles(timing_.doorbell));
}

// ---- fetching ----

void Card::fetch_process() {
  process([this] {
    bool any = false;
    for (std::uint32_t i = 0; i < CardLimits::kQueues && enabled_; ++i) {
      const std::uint32_t index = (next_fetch_ + i) % CardLimits::kQueues;
      if (!fetch_one(index)) continue;
      next_fetch_ = index + 1;
      any = true;
      pause(timing_.fetch);
      break;
    }
    if (!any) pause_for(fetch_event_);
  });
}

// Asks for the next record of a queue, if there is one and room for it.
bool Card::fetch_one(std::uint32_t index) {
  Queue& queue = queues_[index];
  if (!queue.enabled || queue.stopped || queue.fetched == queue.tail ||
      queue.ahead.size() >= kAhead)
    return false;
  const std::uint32_t slot = queue.fetched & ((1u << queue.depth_log2) - 1);
  Fetched fetched;
  fetched.bus = queue.ring + std::uint64_t{slot} * sizeof(penstock_descriptor);
  sc_core::sc_time delay = sc_core::SC_ZERO_TIME;
  fetched.failed =
      !transport(false, false, fetched.bus, &fetched.record, sizeof(fetched.record), &delay);
  fetched.at = sc_core::sc_time_stamp() + delay + cycles(beats(0, sizeof(fetched.record)));
  queue.ahead.push_back(fetched);
  ++queue.fetched;
  command_event_.notify(fetched.at - sc_core::sc_time_stamp());
  return true;
}

// ---- the command processor ----

void Card::command_process() {
  process([this] {
    for (std::uint32_t i = 0; i < CardLimits::kQueues; ++i) {
      const std::uint32_t index = (next_queue_ + i) % CardLimits::kQueues;
      if (!is_ready(index)) continue;
      next_queue_ = index + 1;
      take(index);
      fetch_event_.notify(sc_core::SC_ZERO_TIME);
      return;
    }
    // Nothing that can begin now; something may arrive.
    sc_core::sc_time next = sc_core::sc_max_time();
    for (const Queue& queue : queues_)
      if (!queue.ahead.empty() && queue.ahead.front().at > sc_core::sc_time_stamp())
        next = std::min(next, queue.ahead.front().at);
    if (next < sc_core::sc_max_time()) command_event_.notify(next - sc_core::sc_time_stamp());
    pause_for(command_event_);
  });
}

void Card::decode(std::uint32_t index, Fetched* fetched) {
  fetched->decoded = true;
  fetched->kind = Kind::none;
  if (fetched->failed || queues_[index].cancelled) return;
  const penstock_descriptor& d = fetched->record;
  fetched->answer = check_record(d);
  if (!fetched->answer.ok()) return;
  switch (d.opcode) {
    case PENSTOCK_OP_COPY:
    case PENSTOCK_OP_REDUCE:
      fetched->kind = d.count == 0 ? Kind::none : Kind::reduce;
      return;
    case PENSTOCK_OP_SELECT:
      fetched->kind = Kind::select;
      return;
    case PENSTOCK_OP_SIGNAL:
    case PENSTOCK_OP_WAIT:
    case PENSTOCK_OP_BARRIER:
      fetched->kind = Kind::sync;
      return;
    default:
      return;
  }
}

// Whether the queue's next record is here and may begin: jobs of one kind at a time, and what is to
// be seen before a fence is acknowledged by memory.
bool Card::is_ready(std::uint32_t index) {
  Queue& queue = queues_[index];
  if (!queue.enabled || queue.stopped || queue.ahead.empty()) return false;
  Fetched& front = queue.ahead.front();
  if (front.at > sc_core::sc_time_stamp()) return false;
  if (!front.decoded || queue.cancelled) decode(index, &front);
  if (queue.jobs == 0) {
    const bool follows = front.kind == queue.kind && front.kind != Kind::sync;
    return front.kind == Kind::none || follows || queue.unacknowledged == 0;
  }
  if (front.kind != queue.kind || front.kind == Kind::sync) return false;
  constexpr std::size_t kSlots = 2;  // operands of so many jobs
  return front.kind != Kind::reduce || jobs_.size() < kSlots;
}

void Card::take(std::uint32_t index) {
  Queue& queue = queues_[index];
  const Fetched fetched = queue.ahead.front();
  const penstock_descriptor& d = fetched.record;
  pause(timing_.decode);
  queue.ahead.pop_front();
  ++queue.head;
  ++counters_[kDescriptors];
  if (fetched.failed) {
    queue.stopped = true;
    queue.error = CardError::fetch;
    report_error(CardError::fetch, index, queue.head, fetched.bus, penstock_descriptor{});
    return complete(index, 0, {PENSTOCK_IO_ERROR, 0, fetched.bus}, d);
  }
  if (queue.cancelled) return complete(index, d.cookie, {PENSTOCK_CANCELLED, 0, 0}, d);
  switch (fetched.kind) {
    case Kind::none:
      return complete(index, d.cookie, fetched.answer, d);
    case Kind::sync:
      return begin_sync(index, d);
    case Kind::select:
      queue.kind = Kind::select;
      ++queue.jobs;
      pause(timing_.dispatch);
      selects_.push_back({index, d});
      select_event_.notify(sc_core::SC_ZERO_TIME);
      return;
    case Kind::reduce:
      break;
  }
  const auto job = std::make_shared<Job>();
  const Answer answer = walk(index, d, job.get());
  if (!answer.ok()) {
    // It keeps its place behind the jobs in flight.
    while (queue.jobs > 0) pause_for(job_done_event_);
    return complete(index, d.cookie, answer, d);
  }
  job->sequence = queue.head;
  pause(timing_.dispatch);
  queue.kind = Kind::reduce;
  ++queue.jobs;
  jobs_.push_back(job);
  in_flight_.push_back(job);
  job_event_.notify(sc_core::SC_ZERO_TIME);
}

// ---- windows, lists and overlaps, in the order in which engines name them ----

bool Card::find_window(std::uint32_t index, penstock_address address, std::uint64_t bytes,
                       bool write, std::uint64_t* bus) const {
  for (std::uint32_t w = 0; w < queues_[index].windows; ++w) {
    const Window& window = windows_[index][w];
    if ((window.rights >> (write ? 1 : 0) & 1) == 0 || address < window.base) continue;
    const std::uint64_t into = address - window.base;
    if (into > window.bytes || window.bytes - into < bytes) continue;
    *bus = window.bus + into;
    return true;
  }
  return false;
}

Answer Card::resolve(std::uint32_t index, penstock_address address, std::uint64_t bytes, bool write,
                     std::uint32_t field, std::uint64_t* bus) {
  if (!find_window(index, address, bytes, write, bus))
    return {PENSTOCK_OUT_OF_RANGE, field, address};
  return {};
}

Answer Card::read_list(std::uint32_t index, const penstock_descriptor& d,
                       std::vector<penstock_address>* sources) {
  if ((d.flags & PENSTOCK_FLAG_SRC_LIST) == 0) {
    sources->assign(d.src, d.src + d.n_src);
    return {};
  }
  std::uint64_t bus = 0;
  sources->resize(d.n_src);
  const std::uint64_t bytes = d.n_src * sizeof(penstock_address);
  pause(timing_.window);
  const Answer answer = resolve(index, d.src[0], bytes, false, PENSTOCK_FIELD_SRC, &bus);
  if (!answer.ok()) return answer;
  await_hazards({bus, bytes});
  sc_core::sc_time delay = sc_core::SC_ZERO_TIME;
  const Transfer read = transfer(false, false, bus, sources->data(), bytes, &delay);
  pause(delay + cycles(beats(bus, bytes)));
  if (!read.ok) {
    report_error(CardError::operand, index, queues_[index].head, read.bus, d);
    return {PENSTOCK_IO_ERROR, PENSTOCK_FIELD_SRC, read.bus};
  }
  return {};
}

// A destination is a source exactly, where their elements have one size, or overlaps nothing.
Answer Card::overlap(const penstock_descriptor& d, const Job& job, const Span& source) {
  const bool one_size = d.opcode == PENSTOCK_OP_COPY ||
                        Fold::element_bytes(d.type) == Fold::element_bytes(d.out_type);
  for (std::uint32_t i = 0; i < d.n_dst; ++i) {
    const Span& to = job.destination[i];
    if (one_size && to.base == source.base) continue;
    if (touch(to.base, to.bytes, source.base, source.bytes))
      return {PENSTOCK_INVALID_ARGUMENT, PENSTOCK_FIELD_DST, d.dst[i]};
  }
  return {};
}

// What an earlier job still writes is not read.
void Card::await_hazards(const Span& source) {
  const auto hazard = [&] {
    return std::any_of(in_flight_.begin(), in_flight_.end(), [&](const auto& job) {
      return std::any_of(
          job->destination.begin(), job->destination.begin() + job->destinations,
          [&](const Span& to) { return touch(to.base, to.bytes, source.base, source.bytes); });
    });
  };
  while (hazard()) pause_for(job_done_event_);
}

Answer Card::walk(std::uint32_t index, const penstock_descriptor& d, Job* job) {
  const bool copy = d.opcode == PENSTOCK_OP_COPY;
  job->queue = index;
  job->cookie = d.cookie;
  job->record = d;
  job->elements = d.count;
  job->destinations = d.n_dst;
  job->fold = copy ? FoldSetup{PENSTOCK_UINT8, PENSTOCK_SUM, PENSTOCK_UINT8, 1, 0}
                   : FoldSetup{d.type, d.redop, d.out_type, d.n_src, d.scale};
  const std::uint64_t from = d.count * Fold::element_bytes(job->fold.type);
  const std::uint64_t to = d.count * Fold::element_bytes(job->fold.out_type);
  std::vector<penstock_address> sources;
  Answer answer = read_list(index, d, &sources);
  for (std::uint32_t i = 0; i < d.n_dst && answer.ok(); ++i) {
    pause(timing_.window);
    job->destination[i].bytes = to;
    answer = resolve(index, d.dst[i], to, true, PENSTOCK_FIELD_DST, &job->destination[i].base);
  }
  for (std::size_t s = 0; s < sources.size() && answer.ok(); ++s) {
    std::uint64_t bus = 0;
    pause(timing_.window);
    answer = resolve(index, sources[s], from, false, PENSTOCK_FIELD_SRC, &bus);
    job->sources.push_back(bus);
  }
  if (!answer.ok()) return answer;
  // The first destination that overlaps anything is the one that is named.
  for (std::uint32_t i = 0; i < d.n_dst; ++i) {
    penstock_descriptor one = d;
    one.n_dst = 1;
    one.dst[0] = d.dst[i];
    Job only;
    only.destination[0] = job->destination[i];
    for (const std::uint64_t source : job->sources)
      if (answer = overlap(one, only, {source, from}); !answer.ok()) return answer;
    for (std::uint32_t j = 0; j < i; ++j)
      if (touch(job->destination[i].base, to, job->destination[j].base, to))
        return {PENSTOCK_INVALID_ARGUMENT, PENSTOCK_FIELD_DST, d.dst[i]};
  }
  for (const std::uint64_t source : job->sources) await_hazards({source, from});
  return {};
}

// ---- completions ----

void Card::complete(std::uint32_t index, std::uint64_t cookie, const Answer& answer,
                    const penstock_descriptor& record) {
  Queue& queue = queues_[index];
  const penstock_completion completion{cookie, answer.status, answer.field, answer.detail,
                                       ++queue.sequence};
  ++queue.unacknowledged;
  // One after another, in order.
  const sc_core::sc_time now = sc_core::sc_time_stamp();
  completion_free_ = std::max(now + cycles(timing_.completion),
                              completion_free_ + cycles(timing_.completion_every));
  later(completion_free_ - now, [=, this] { write_completion(index, completion, record); });
}

void Card::write_completion(std::uint32_t index, const penstock_completion& completion,
                            const penstock_descriptor& record) {
  const Queue& queue = queues_[index];
  const std::uint64_t slot = (completion.sequence - 1) & ((1u << queue.depth_log2) - 1);
  const std::uint64_t bus = queue.completions + slot * sizeof(completion);
  penstock_completion copy = completion;
  sc_core::sc_time delay = sc_core::SC_ZERO_TIME;
  const bool ok = transport(false, true, bus, &copy, sizeof(copy), &delay);
  later(delay, [=, this] {
    Queue& q = queues_[index];
    --q.unacknowledged;
    if (ok) {
      ++q.completed;
      ++counters_[kCompletions];
      cause_ |= std::uint64_t{1} << index;
    } else {
      q.stopped = true;
      q.error = CardError::completion;
      report_error(CardError::completion, index, static_cast<std::uint32_t>(completion.sequence),
                   bus, record);
    }
    command_event_.notify(sc_core::SC_ZERO_TIME);
  });
}

void Card::job_done(std::uint32_t index, std::uint64_t cookie, const Answer& answer,
                    const penstock_descriptor& record) {
  --queues_[index].jobs;
  complete(index, cookie, answer, record);
  job_done_event_.notify(sc_core::SC_ZERO_TIME);
  command_event_.notify(sc_core::SC_ZERO_TIME);
}

}  // namespace penstock::systemc
