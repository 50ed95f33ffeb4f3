// Buffers in a device's memory: what works on a pass reaches them, or works on copies.
//
//   an engine of that device, on the queue   the buffers themselves, by their addresses
//   this thread (direct, inlined)            copies of what the pass needs; those of the next pass
//                                            come in, and the last ones go out, meanwhile
//   another engine, on the queue             a copy of each buffer as a whole
//
// A copy is made when all that was started before is over, because an earlier call may have written
// the buffer.
#include <algorithm>

#include "penstock/comm/call_check.h"
#include "penstock/comm/control.h"
#include "penstock/comm/lane_pending.h"

namespace penstock {

// What a call is like before its first step, as rewind() has it.
void Lane::look_for_devices(Pending& pending) {
  pending.send_memory = device_memory_of(pending.call.send);
  pending.recv_memory = device_memory_of(pending.call.recv);
  pending.stage = nullptr;
  pending.whole.reset();
  pending.stage_began = false;
}

bool Lane::engine_reaches(const Pending& pending) const {
  return (pending.send_memory == nullptr || engine_->reaches_device_memory(pending.call.send)) &&
         (pending.recv_memory == nullptr || engine_->reaches_device_memory(pending.call.recv));
}

// Before the first step of a pass. False: not yet, or the lane has failed.
bool Lane::stage_pass(Pending& pending) {
  if (pending.staged) return true;
  Status status;
  if (!is_direct(pending) && engine_reaches(pending)) {
    pending.stage = nullptr;
  } else {
    if (queue_ != nullptr && queue_->in_flight() > 0) return false;
    for (const auto& earlier : pending_) {
      if (earlier.get() == &pending) break;
      if (earlier->whole != nullptr) return false;
    }
    status = is_direct(pending) && pending.whole == nullptr ? stage_parts(pending)
                                                            : stage_whole(pending);
  }
  if (!status.ok()) {
    fail(status.with_context("a buffer in a device's memory"), kNoRank);
    return false;
  }
  pending.staged = true;
  return true;
}

Status Lane::stage_parts(Pending& pending) {
  const Prepared& prepared = *pending.prepared;
  if (stage_ == nullptr) stage_ = std::make_unique<DeviceStage>();
  pending.stage = stage_.get();
  if (!pending.stage_began) {
    PENSTOCK_TRY(stage_->begin_call(pending.call, pending.send_memory, pending.recv_memory,
                                    config_.self, prepared.total_bytes));
    pending.stage_began = true;
  }
  const DeviceStage::Pass pass{pending.plan, pending.done_bytes, pending.pass_bytes};
  DeviceStage::Pass next{prepared.first.get(), pending.done_bytes + pending.pass_bytes,
                         prepared.pass_bytes};
  if (next.done + next.bytes > prepared.total_bytes) {
    next.bytes = prepared.total_bytes - std::min(next.done, prepared.total_bytes);
    next.plan = prepared.last.get();
  }
  const bool goes_on = next.bytes > 0 && (direct_ != nullptr || next.plan->is_inlined());
  return stage_->begin_pass(pass, goes_on ? &next : nullptr);
}

Status Lane::stage_whole(Pending& pending) {
  if (pending.whole == nullptr) {
    auto whole = std::make_unique<DeviceStage>();
    const std::uint64_t total = pending.prepared->total_bytes;
    PENSTOCK_TRY(whole->begin_call(pending.call, pending.send_memory, pending.recv_memory,
                                   config_.self, total));
    const auto ranks = static_cast<std::uint32_t>(config_.ranks.size());
    BufferBytes bytes = buffer_bytes(pending.call, config_.self, ranks);
    if (pending.call.collective == Collective::send_recv)
      bytes = config_.self == 0 ? BufferBytes{total, 0} : BufferBytes{0, total};
    PENSTOCK_TRY(whole->begin_whole(bytes.send, bytes.recv));
    pending.whole = std::move(whole);
  }
  pending.stage = pending.whole.get();
  return {};
}

// In the middle of a pass that an engine works on in place, while its queue is empty: the rest of
// the call works on copies. False: the lane has failed.
bool Lane::stage_for_host(Pending& pending) {
  const Status status = stage_whole(pending);
  if (!status.ok()) fail(status.with_context("a buffer in a device's memory"), kNoRank);
  return status.ok();
}

// After the last step of a pass of this thread. The lane fails if the device does.
void Lane::end_staged_pass(Pending& pending) {
  if (pending.stage == nullptr || pending.stage == pending.whole.get()) return;
  Status status = stage_->end_pass();
  if (status.ok() && pending.submitted) status = stage_->end_call();
  pending.stage = nullptr;
  if (!status.ok()) fail(status.with_context("a buffer in a device's memory"), kNoRank);
}

// When everything of a call is over. False: the lane has failed.
bool Lane::end_whole(Pending& pending) {
  if (pending.whole == nullptr) return true;
  Status status = pending.whole->end_pass();
  if (status.ok()) status = pending.whole->end_call();
  pending.stage = nullptr;
  pending.whole.reset();
  if (!status.ok()) fail(status.with_context("a buffer in a device's memory"), kNoRank);
  return status.ok();
}

}  // namespace penstock
