// WAIT, SIGNAL and BARRIER. Each queue has at most one of them under way, and none holds back
// another queue.
#include <algorithm>
#include <cstring>

#include "penstock/sim/systemc/card.h"

namespace penstock::systemc {
namespace {

constexpr std::uint64_t kLine = PENSTOCK_CACHE_LINE;
constexpr std::uint32_t kLinesOfBurst = 16;

}  // namespace

void Card::begin_sync(std::uint32_t index, const penstock_descriptor& d) {
  Queue& queue = queues_[index];
  const bool signals = d.opcode != PENSTOCK_OP_WAIT;
  const bool waits = d.opcode != PENSTOCK_OP_SIGNAL;
  const std::uint32_t lines =
      d.opcode == PENSTOCK_OP_BARRIER ? static_cast<std::uint32_t>(d.count) : 1;
  std::uint64_t fence = 0;
  std::uint64_t line = 0;
  Answer answer;
  if (signals) {
    pause(timing_.window);
    answer = resolve(index, d.dst[0], kLine, true, PENSTOCK_FIELD_DST, &fence);
  }
  if (answer.ok() && waits) {
    pause(timing_.window);
    answer = resolve(index, d.src[0], lines * kLine, false, PENSTOCK_FIELD_SRC, &line);
  }
  if (!answer.ok()) return complete(index, d.cookie, answer, d);

  pause(timing_.dispatch);
  queue.kind = Kind::sync;
  ++queue.jobs;
  const std::uint64_t serial = ++wait_serial_;
  Waiter& waiter = waiters_[index];
  waiter = {};
  waiter.record = d;
  waiter.line = line;
  waiter.remaining = lines;
  waiter.value = d.opcode == PENSTOCK_OP_SIGNAL ? d.src[0] : d.src[1];
  waiter.serial = serial;
  waiter.active = waits;
  const std::uint64_t timeout_ms = d.timeout_ms != 0 ? d.timeout_ms : queue.timeout_ms;
  waiter.deadline =
      sc_core::sc_time_stamp() + static_cast<double>(timeout_ms) * clock_khz_ * cycle_;
  if (!signals) return poll(index, serial);
  signal(index, fence, waiter.value, [=, this](const Answer& signalled) {
    if (waiters_[index].serial != serial) return;  // cancelled
    if (!waits || !signalled.ok()) return end_wait(index, signalled);
    poll(index, serial);
  });
}

// Raises a fence: reads it first, because fences never go back.
void Card::signal(std::uint32_t index, std::uint64_t fence, std::uint64_t value,
                  std::function<void(const Answer&)> done) {
  std::uint64_t present = 0;
  sc_core::sc_time delay = sc_core::SC_ZERO_TIME;
  const bool read = transport(false, false, fence, &present, sizeof(present), &delay);
  const auto failed = [=, this] {
    report_error(CardError::operand, index, queues_[index].head, fence, waiters_[index].record);
    return Answer{PENSTOCK_IO_ERROR, PENSTOCK_FIELD_DST, fence};
  };
  later(delay + cycles(timing_.sync_step), [=, this] {
    if (!read) return done(failed());
    if (present >= value) return done(Answer{});
    std::uint64_t raised = value;
    sc_core::sc_time latency = sc_core::SC_ZERO_TIME;
    const bool written = transport(false, true, fence, &raised, sizeof(raised), &latency);
    later(latency + cycles(timing_.sync_step), [=] { done(written ? Answer{} : failed()); });
  });
}

// Reads the fences that are still to be seen, in one burst.
void Card::poll(std::uint32_t index, std::uint64_t serial) {
  const Waiter& waiter = waiters_[index];
  if (!waiter.active || waiter.serial != serial) return;
  const std::uint32_t lines = std::min(waiter.remaining, kLinesOfBurst);
  std::vector<std::uint64_t> seen(lines);
  std::uint64_t failed = 0;
  sc_core::sc_time delay = sc_core::SC_ZERO_TIME;
  for (std::uint32_t i = 0; i < lines; ++i) {
    sc_core::sc_time latency = sc_core::SC_ZERO_TIME;
    const std::uint64_t line = waiter.line + i * kLine;
    if (!transport(false, false, line, &seen[i], sizeof(seen[i]), &latency) && failed == 0)
      failed = line;
    delay = std::max(delay, latency);
  }
  counters_[kPolls] += lines;
  later(delay + cycles(timing_.sync_step + lines), [=, this] {
    Waiter& w = waiters_[index];
    if (!w.active || w.serial != serial) return;
    if (failed != 0) {
      report_error(CardError::operand, index, queues_[index].head, failed, w.record);
      return end_wait(index, {PENSTOCK_IO_ERROR, PENSTOCK_FIELD_SRC, failed});
    }
    std::uint32_t reached = 0;
    while (reached < lines && seen[reached] >= w.value) ++reached;
    w.line += reached * kLine;
    w.remaining -= reached;
    w.seen += reached;
    const bool barrier = w.record.opcode == PENSTOCK_OP_BARRIER;
    if (w.remaining == 0) return end_wait(index, {PENSTOCK_OK, 0, barrier ? 0 : seen.back()});
    if (reached < lines && sc_core::sc_time_stamp() >= w.deadline)
      return end_wait(index, {PENSTOCK_DEADLINE_EXCEEDED, 0, barrier ? w.seen : seen[reached]});
    later(cycles(timing_.poll_every), [=, this] { poll(index, serial); });
  });
}

void Card::end_wait(std::uint32_t index, const Answer& answer) {
  Waiter& waiter = waiters_[index];
  waiter.active = false;
  const penstock_descriptor record = waiter.record;
  job_done(index, record.cookie, answer, record);
}

void Card::cancel_wait(std::uint32_t index) {
  Waiter& waiter = waiters_[index];
  if (waiter.active) end_wait(index, {PENSTOCK_CANCELLED, 0, 0});
}

}  // namespace penstock::systemc
