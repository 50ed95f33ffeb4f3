// Steps run in place.
#include <algorithm>
#include <cstring>

#include "penstock/base/trace.h"
#include "penstock/comm/call_note.h"
#include "penstock/comm/control.h"
#include "penstock/comm/lane_pending.h"
#include "penstock/engine/float_environment.h"
#include "penstock/memory/inline_block.h"

namespace penstock {
namespace {

bool is_block(const Slice& slice) { return slice.space == Space::block; }

}  // namespace

// Which of the buffers the others can use where they are. A line that is written back whole must
// not hold anybody else's bytes, so that on a pool that is not coherent the buffer starts a line.
void Lane::offer_buffers(Pending& pending) {
  const auto offer = [this](const void* data, std::uint64_t bytes) -> penstock_address {
    penstock_address address = 0;
    if (data == nullptr || !pool_.address_of(data, bytes, &address)) return 0;
    return software_ && address % PENSTOCK_CACHE_LINE != 0 ? 0 : address;
  };
  const std::uint64_t bytes = pending.prepared->total_bytes;
  pending.offer_send = offer(pending.call.send, bytes);
  pending.offer_recv = offer(pending.call.recv, bytes);
}

std::size_t Lane::done_slot(const Call& call) {
  const std::uint64_t mixed = reinterpret_cast<std::uintptr_t>(call.send) +
                              reinterpret_cast<std::uintptr_t>(call.recv) * 3 + call.count * 5 +
                              static_cast<std::uint64_t>(call.collective) * 0x10001 +
                              call.root * 0x801ull + call.type * 0x20003ull;
  return mixed * 0x9e3779b97f4a7c15ull >> 59;
}
static_assert(std::size_t{1} << (64 - 59) == 32);

bool Lane::is_ready(const Call& call) const {
  const std::shared_ptr<Pending>& done = done_[done_slot(call)];
  if (!done || done.use_count() > 1) return false;
  const Call& last = done->call;
  return last.collective == call.collective && last.send == call.send && last.recv == call.recv &&
         last.count == call.count && last.type == call.type && last.redop == call.redop &&
         last.scale == call.scale && last.root == call.root && last.sender == call.sender;
}

// The short way of a call that was made before: no check, no search, no memory, and a poll that
// looks at nothing but what this call waits for.
std::shared_ptr<Request> Lane::repeat(const Call& call, bool spin) {
  std::shared_ptr<Pending>& done = done_[done_slot(call)];
  Pending& pending = *done;
  rewind(pending);
  constexpr std::uint32_t kPolls = 1000;
  constexpr std::uint32_t kEagerPolls = 32;  // a pause takes as long as a line needs to come
  constexpr std::uint32_t kYields = 64;
  Platform& platform = pool_.platform();
  for (std::uint32_t poll = 0; poll < (spin ? kPolls : kYields); ++poll) {
    if (run_direct(pending)) {
      pending.finished = true;
      blocked_since_ns_ = 0;
      return nullptr;
    }
    if (failed()) {
      pending.finished = true;
      pending.result = failure_.status;
      return std::move(done);
    }
    if (!spin) {
      platform.yield();
    } else if (poll >= kEagerPolls) {
      platform.pause();
    }
  }
  blocked_since_ns_ = 0;
  pending_.push_back(std::move(done));
  return pending_.front();
}

// True: the call is finished. False: blocked, or failed.
bool Lane::run_direct(Pending& pending) {
  for (;;) {
    if (pending.plan == nullptr) {
      if (Status status = begin_pass(pending); !status.ok()) {
        fail(status, kNoRank);
        return false;
      }
      if (!is_direct(pending)) return false;
    }
    if (pending.is_on_device() && !stage_pass(pending)) return false;
    const std::vector<Step>& steps = pending.plan->ranks[config_.self];
    while (pending.next_step < steps.size()) {
      if (!run_step(pending, steps[pending.next_step])) return false;
      ++pending.next_step;
    }
    if (!is_drained(pending) || !is_confirmed(pending)) return false;
    blocked_on_ = kNoRank;
    const bool inlined = pending.plan->is_inlined();
    end_pass(pending);
    if (pending.is_on_device()) {
      end_staged_pass(pending);
      if (failed()) return false;
    }
    if (inlined) {
      look_ahead(*pending.prepared);
    } else if (pending.submitted) {
      fences_[config_.self].prepare();
    }
    if (pending.submitted) return true;
  }
}

// What the fence of a participant shows when it is done with what this pass overwrites: the pass
// before the previous one, or for inlined blocks the one that used the slot before. Nobody is ahead
// of a pass with blocks of scratch memory by more than one, because notes and offers stand there.
std::uint64_t Lane::reuse_value(const Pending& pending, std::uint32_t participant) const {
  if (!pending.plan->is_inlined()) return reuse_[participant];
  // The pass after the one that bulk_pass_ names may run before all are done with that.
  const std::uint64_t bulk =
      bulk_pass_ < pass_ ? bulk_end_[participant] : older_bulk_end_[participant];
  return std::max(ends_[pass_ % kInlineSlots][participant], bulk);
}

// What the next inlined pass would have to wait for before it can write, done while nobody waits
// for this rank: how far those are who read from it, and that its lines are in this processor's
// cache.
void Lane::look_ahead(const Prepared& prepared) {
  const std::uint64_t slot = pass_ % kInlineSlots;
  if (inlined_[config_.self] != nullptr) {
    inline_block(config_.self, 0).prepare(prepared.own_lines);
  }
  if (prepared.symmetric) return;
  for (std::uint32_t q = 0; q < fences_.size(); ++q) {
    if (!prepared.readers[q] || promised_[q] >= ends_[slot][q]) continue;
    promised_[q] = std::max(promised_[q], fences_[q].load());
  }
}

bool Lane::run_step(Pending& pending, const Step& step) {
  switch (step.kind) {
    case StepKind::copy:
      return run_copy(pending, step);
    case StepKind::reduce:
      return run_reduce(pending, step);
    case StepKind::signal:
      run_signal(pending, step);
      return true;
    case StepKind::wait:
      return pass_fence(pending, step.rank, base_[step.rank] + step.value, true);
    case StepKind::reuse:
      return pass_fence(pending, step.rank, reuse_value(pending, step.rank), false);
  }
  return true;
}

void Lane::run_signal(Pending& pending, const Step& step) {
  if (pending.prepared->symmetric && direct_ != nullptr) {
    signal_due_ = true;
    return;
  }
  signal_due_ = false;
  Fence& fence = fences_[config_.self];
  const std::uint64_t value = base_[config_.self] + step.value;
  if (direct_ == nullptr) {
    fence.signal(value);
  } else {
    fence.signal(value, static_cast<std::uint32_t>(pass_ % kNoteSlots), note(pending));
  }
}

// base_ counts the signal since its pass is over.
void Lane::give_due_signal() {
  signal_due_ = false;
  fences_[config_.self].signal(base_[config_.self]);
}

// False: the fence is not there yet, or the lane has failed.
bool Lane::pass_fence(Pending& pending, std::uint32_t participant, std::uint64_t value,
                      bool noted) {
  if (promised_[participant] < value) {
    const std::uint64_t seen = fences_[participant].load();
    if (seen < value) {
      blocked_on_ = participant;
      return false;
    }
    promised_[participant] = seen;
  } else if (noted && noted_[participant] != pass_ + 1) {
    fences_[participant].load();
  }
  if (!noted || noted_[participant] == pass_ + 1) return true;
  return check_note(pending, participant,
                    fences_[participant].note(static_cast<std::uint32_t>(pass_ % kNoteSlots)));
}

bool Lane::check_note(Pending& pending, std::uint32_t participant, std::uint64_t theirs) {
  const std::uint64_t mine = note(pending);
  noted_[participant] = pass_ + 1;
  // A rank whose engine works off a queue leaves no notes. And one that has left a barrier, which
  // has its last signal at the start, may be passes ahead before this rank has looked around.
  if (theirs == 0 || ((mine ^ theirs) & kNotePass) != 0) {
    offered_send_[participant] = offered_recv_[participant] = nullptr;
    return true;
  }
  if (((mine ^ theirs) & ~kNoteOffers) != 0) {
    disagree(participant, mine, theirs);
    return false;
  }
  return take_offer(pending, participant, theirs);
}

// Buffers of another rank are checked before anything follows their address.
bool Lane::take_offer(const Pending& pending, std::uint32_t participant, std::uint64_t theirs) {
  offered_send_[participant] = offered_recv_[participant] = nullptr;
  if ((theirs & kNoteOffers) == 0) return true;
  const auto* line = reinterpret_cast<const OfferLine*>(offers_[participant]);
  pool_.observe(line, sizeof(*line));
  const OfferLine::Offer offer = line->offer[pass_ % kOfferSlots];
  // The furthest byte of each buffer that a block mirrors, or that is pushed into.
  std::uint64_t send_bytes = 0;
  std::uint64_t recv_bytes = 0;
  const auto reach = [&pending](const Slice& slice) {
    return slice.index * pending.prepared->total_bytes + pending.done_bytes + slice.offset +
           slice.bytes;
  };
  for (const Block& block : pending.plan->blocks) {
    if (block.writer != participant || block.mirror.bytes == 0) continue;
    std::uint64_t& bytes = block.mirror.space == Space::send ? send_bytes : recv_bytes;
    bytes = std::max(bytes, reach(block.mirror));
  }
  for (const Push& push : *pending.pushes) {
    if (push.participant == participant) recv_bytes = std::max(recv_bytes, reach(push.to));
  }
  const auto locate = [&](std::uint64_t bit, penstock_address address, std::uint64_t bytes,
                          std::byte** out) {
    if ((theirs & bit) == 0 || bytes == 0) return true;
    *out = pool_.resolve(address, bytes);
    return *out != nullptr;
  };
  pending.read_offered = true;
  if (locate(kNoteOffersSend, offer.send, send_bytes, &offered_send_[participant]) &&
      locate(kNoteOffersRecv, offer.recv, recv_bytes, &offered_recv_[participant])) {
    return true;
  }
  fail(error(Code::corrupt,
             "rank {} offers buffers at pool offsets {:#x} and {:#x}, which do not lie in the pool",
             config_.ranks[participant], offer.send, offer.recv),
       config_.ranks[participant]);
  return false;
}

bool Lane::is_own_mirror(const Pending& pending, const Slice& slice) const {
  if (pending.exposes == 0 || !is_block(slice)) return false;
  const Slice& mirror = pending.plan->blocks[slice.index].mirror;
  if (mirror.bytes == 0) return false;
  return (pending.exposes & (mirror.space == Space::send ? kNoteOffersSend : kNoteOffersRecv)) != 0;
}

std::byte* Lane::pointer_of(const Pending& pending, const Slice& slice) const {
  const std::uint64_t total = pending.prepared->total_bytes;
  if (is_block(slice)) {
    const Block& block = pending.plan->blocks[slice.index];
    if (block.mirror.bytes > 0 && block.writer != config_.self) {
      std::byte* buffer = block.mirror.space == Space::send ? offered_send_[block.writer]
                                                            : offered_recv_[block.writer];
      if (buffer != nullptr) {
        return buffer + block.mirror.index * total + pending.done_bytes + block.mirror.offset +
               slice.offset;
      }
    }
    return scratch_[block.device] + (pass_ & 1) * config_.half_bytes + block.offset + slice.offset;
  }
  if (pending.stage != nullptr) {
    if (std::byte* place = pending.stage->place(slice, pending.done_bytes); place != nullptr)
      return place;
  }
  auto* base = slice.space == Space::send
                   ? const_cast<std::byte*>(static_cast<const std::byte*>(pending.call.send))
                   : static_cast<std::byte*>(pending.call.recv);
  return base + slice.index * total + pending.done_bytes + slice.offset;
}

// What crosses between ranks is observed and published: blocks, and buffers that stand for them.
// Everything else in a buffer concerns this rank alone, wherever the buffer lies.
void Lane::observe(const Slice& slice, const void* data) const {
  if (software_ && is_block(slice)) pool_.observe(data, slice.bytes);
}

void Lane::publish(const Slice& slice, const void* data) const {
  if (software_ && is_block(slice)) pool_.publish(data, slice.bytes);
}

void* Lane::staging(std::uint32_t source, std::uint64_t bytes) {
  constexpr std::uint64_t kLine = PENSTOCK_CACHE_LINE;
  const std::uint64_t stride = (bytes + kLine - 1) / kLine * kLine;
  const std::uint64_t need = (taken_.size() + 1) * stride + kLine;
  if (staging_.size() < need) staging_.resize(need);
  const auto start = reinterpret_cast<std::uintptr_t>(staging_.data());
  return reinterpret_cast<void*>((start + kLine - 1) / kLine * kLine + source * stride);
}

// A place among the inlined blocks that a participant writes in this pass.
InlineBlock Lane::inline_block(std::uint32_t writer, std::uint64_t offset) const {
  const std::uint64_t slot = pass_ % kInlineSlots * config_.inline_lines * PENSTOCK_CACHE_LINE;
  return {pool_, inlined_[writer] + slot + offset, software_};
}

// False: not all of it is there yet, or the ranks disagree.
bool Lane::read_inlined(Pending& pending, const Slice& slice, void* out, std::uint64_t* taken) {
  const Block& block = pending.plan->blocks[slice.index];
  const std::uint64_t mine = note(pending);
  std::uint64_t theirs = 0;
  const InlineBlock::Arrival arrival = inline_block(block.writer, block.offset)
                                           .read(config_.first_sequence + pass_, mine, ~kNoteOffers,
                                                 out, block.bytes, taken, &theirs);
  if (arrival == InlineBlock::Arrival::other_tag) {
    disagree(block.writer, mine, theirs);
    return false;
  }
  // Whoever has come to this pass is done with all before it.
  if (*taken > 0 && promised_[block.writer] < base_[block.writer]) {
    promised_[block.writer] = base_[block.writer];
  }
  if (arrival == InlineBlock::Arrival::complete) return true;
  blocked_on_ = block.writer;
  return false;
}

void Lane::write_inlined(const Pending& pending, const Slice& slice, const void* data) {
  const Block& block = pending.plan->blocks[slice.index];
  inline_block(config_.self, block.offset)
      .write(config_.first_sequence + pass_, note(pending), data, block.bytes);
}

// Where a push goes; null if its participant offers no receive buffer in this pass.
std::byte* Lane::place_of(const Pending& pending, const Push& push) const {
  std::byte* buffer = offered_recv_[push.participant];
  if (buffer == nullptr) return nullptr;
  return buffer + push.to.index * pending.prepared->total_bytes + pending.done_bytes +
         push.to.offset;
}

// The result behind this block, into the receive buffers of those who offered them, but for the
// first `done` of them. Who pushes and who is pushed to come to the same answer: whether the buffer
// is offered.
void Lane::push_rest(const Pending& pending, const Slice& block, const void* from,
                     std::uint32_t done) {
  for (const Push& push : *pending.pushes) {
    void* to = place_of(pending, push);
    if (push.block != block.index || to == nullptr) continue;
    if (done > 0) {
      --done;
      continue;
    }
    counters_.pool_bytes_written += push.to.bytes;
    direct_->copy(&to, 1, from, push.to.bytes, pending.stream);
  }
}

// True: every reader of the block has it in its receive buffer, so that the block is not needed.
bool Lane::push_copy(const Pending& pending, const Slice& block, const void* from) {
  if (!may_push_ || !is_block(block) || !pending.plan->blocks[block.index].pushable) return false;
  bool all = true;
  for (const Push& push : *pending.pushes) {
    all &= push.block != block.index || offered_recv_[push.participant] != nullptr;
  }
  push_rest(pending, block, from, 0);
  return all;
}

bool Lane::is_pushed(const Pending& pending, const Step& step) const {
  if (!may_push_ || (pending.exposes & kNoteOffersRecv) == 0) return false;
  const Slice& source = step.src[0];
  if (!is_block(source) || step.dst[0].space != Space::recv) return false;
  const Block& block = pending.plan->blocks[source.index];
  return may_be_pushed(block) && source.bytes == block.bytes;
}

bool Lane::run_copy(Pending& pending, const Step& step) {
  const Slice& source = step.src[0];
  if (source.bytes == 0 || is_pushed(pending, step)) return true;
  const bool inlined = pending.plan->is_inlined();
  if (inlined && is_block(source)) {
    std::byte* to = pointer_of(pending, step.dst[0]);
    if (!read_inlined(pending, source, to, &taken_[0])) return false;
    taken_[0] = 0;
    counters_.pool_bytes_read += source.bytes;
    return true;
  }
  const std::byte* from = pointer_of(pending, source);
  if (!inlined) observe(source, from);
  if (inlined && is_block(step.dst[0])) {
    write_inlined(pending, step.dst[0], from);
    counters_.pool_bytes_written += source.bytes;
    return true;
  }
  const trace::Scope scope(trace::Kind::copy, "copy", source.bytes);
  if (is_block(source)) counters_.pool_bytes_read += source.bytes;
  void* to[PENSTOCK_MAX_DESTINATIONS];
  const Slice* targets[PENSTOCK_MAX_DESTINATIONS];
  std::uint32_t count = 0;
  for (const Slice& slice : step.dst) {
    if (push_copy(pending, slice, from)) continue;
    if (is_own_mirror(pending, slice)) {
      publish(slice, from);
      continue;
    }
    if (is_block(slice)) counters_.pool_bytes_written += slice.bytes;
    targets[count] = &slice;
    to[count++] = pointer_of(pending, slice);
  }
  if (count == 0) return true;
  const bool stream = pending.stream && !is_block(step.dst[0]);
  kernels().copy(to, count, from, source.bytes, stream);
  for (std::uint32_t i = 0; i < count; ++i) publish(*targets[i], to[i]);
  return true;
}

// Where the sources of a fold are; inlined ones are gathered. False: not all are there yet, or the
// lane has failed.
bool Lane::gather_sources(Pending& pending, const Step& step, const void** from) {
  const std::uint64_t bytes = step.src[0].bytes;
  const bool inlined = pending.plan->is_inlined();
  bool arrived = true;
  for (std::uint32_t i = 0; i < step.src.size(); ++i) {
    const Slice& slice = step.src[i];
    if (!inlined || !is_block(slice)) {
      from[i] = pointer_of(pending, slice);
      continue;
    }
    void* place = staging(i, bytes);
    from[i] = place;
    if (taken_[i] >= inline_lines(bytes)) continue;
    arrived &= read_inlined(pending, slice, place, &taken_[i]);
    if (failed()) return false;
  }
  if (!arrived) return false;
  for (std::uint32_t i = 0; i < step.src.size(); ++i) {
    taken_[i] = 0;
    if (is_block(step.src[i])) counters_.pool_bytes_read += bytes;
    if (!inlined) observe(step.src[i], from[i]);
  }
  return true;
}

// The receive buffers that this block's result is pushed into, as far as there is room among the
// destinations of one fold.
void Lane::add_pushes(const Pending& pending, const Slice& block, Destinations* to) {
  for (const Push& push : *pending.pushes) {
    std::byte* place = place_of(pending, push);
    if (push.block != block.index || place == nullptr) continue;
    if (to->count == PENSTOCK_MAX_DESTINATIONS) return;
    counters_.pool_bytes_written += block.bytes;
    to->place[to->count++] = place;
    ++to->pushed;
  }
}

bool Lane::run_reduce(Pending& pending, const Step& step) {
  const std::uint64_t bytes = step.src[0].bytes;
  if (bytes == 0) return true;
  const void* from[PENSTOCK_MAX_SOURCES];
  if (!gather_sources(pending, step, from)) return false;
  const auto n = static_cast<std::uint32_t>(step.src.size());
  const trace::Scope scope(trace::Kind::reduce, "reduce", bytes, n);
  const bool inlined = pending.plan->is_inlined();
  Destinations to;
  const Slice* targets[PENSTOCK_MAX_DESTINATIONS] = {};
  const Slice* inlined_to = nullptr;
  const Slice* result = nullptr;    // the block that others read or want
  const Slice* mirrored = nullptr;  // the same, if it is the receive buffer itself
  for (const Slice& slice : step.dst) {
    if (is_block(slice)) result = &slice;
    if (is_own_mirror(pending, slice)) {
      mirrored = &slice;
      continue;
    }
    if (is_block(slice)) counters_.pool_bytes_written += bytes;
    if (inlined && is_block(slice)) {
      inlined_to = &slice;
      continue;
    }
    targets[to.count] = &slice;
    to.place[to.count++] = pointer_of(pending, slice);
  }
  if (to.count == 0) to.place[to.count++] = staging(n, bytes);
  const std::uint32_t own = to.count;
  const bool pushes = result != nullptr && may_push_ && !inlined && !pending.pushes->empty();
  if (pushes) add_pushes(pending, *result, &to);
  fold(pending.call, step, from, to, pending.stream && (to.pushed > 0 || result == nullptr));
  if (pushes) push_rest(pending, *result, to.place[0], to.pushed);
  for (std::uint32_t i = 0; i < own; ++i) {
    if (targets[i] != nullptr) publish(*targets[i], to.place[i]);
  }
  if (mirrored != nullptr) publish(*mirrored, to.place[0]);
  if (inlined_to != nullptr) write_inlined(pending, *inlined_to, to.place[0]);
  return true;
}

void Lane::fold(const Call& call, const Step& step, const void* const* from, const Destinations& to,
                bool stream) const {
  const FloatEnvironment environment;
  ReduceArguments arguments{};
  arguments.type = call.type;
  // The folds of groups are multiplied already.
  const bool adds = step.combines && call.redop == PENSTOCK_PREMUL_SUM;
  arguments.redop = adds ? std::uint32_t{PENSTOCK_SUM} : call.redop;
  arguments.n_src = static_cast<std::uint32_t>(step.src.size());
  arguments.n_dst = to.count;
  arguments.src = from;
  arguments.dst = to.place;
  arguments.count = step.src[0].bytes / penstock_type_size(call.type);
  arguments.scale = arguments.redop == PENSTOCK_PREMUL_SUM ? call.scale : 0;
  arguments.stream = stream;
  kernels().reduce(arguments);
}

// What was read in the buffer of a rank that gave up meanwhile may be anything: it gives up in
// public before its call returns, and its buffer is its own again after that.
bool Lane::is_confirmed(const Pending& pending) {
  if (!pending.read_offered) return true;
  if (pending.done_bytes + pending.pass_bytes < pending.prepared->total_bytes) return true;
  const LaneFailure failure = config_.confirm(pending.prepared->total_bytes);
  if (failure.status.ok()) return true;
  fail(failure.status, failure.culprit);
  return false;
}

// Whoever exposed a buffer stays until all that read it are done with it, because the caller may
// change it as soon as the call is over. The last pass may be one that exposes nothing.
bool Lane::is_drained(Pending& pending) {
  const Prepared& prepared = *pending.prepared;
  if (pending.exposes != 0) {
    pending.exposed = true;
    for (std::size_t q = 0; q < fences_.size(); ++q) {
      drained_at_[q] = base_[q] + pending.plan->signals[q];
    }
  }
  if (!pending.exposed || pending.done_bytes + pending.pass_bytes < prepared.total_bytes) {
    return true;
  }
  for (std::uint32_t q = 0; q < fences_.size(); ++q) {
    if (prepared.readers[q] && !pass_fence(pending, q, drained_at_[q], false)) return false;
  }
  return true;
}

}  // namespace penstock
