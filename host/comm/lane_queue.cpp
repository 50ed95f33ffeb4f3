// Steps as descriptors on the lane's queue.
#include <algorithm>

#include "penstock/comm/control.h"
#include "penstock/comm/lane_pending.h"

namespace penstock {
namespace {

// A cookie says which participant a WAIT waits for; 0 for everything else.
constexpr std::uint64_t kNoWait = 0;

// Another engine may do what this one failed to do, or refused in spite of what it accepts.
bool is_of_the_engine(Code code) {
  return code == Code::io_error || code == Code::no_space || code == Code::internal ||
         code == Code::unsupported;
}

}  // namespace

// Submits steps until the pass is over or the queue is full.
bool Lane::run_queued(Pending& pending) {
  bool moved = false;
  for (;;) {
    if (pending.plan == nullptr) {
      if (Status status = begin_pass(pending); !status.ok()) {
        fail(status, kNoRank);
        return true;
      }
      if (is_direct(pending)) return moved;
    }
    if (pending.is_on_device() && !stage_pass(pending)) return moved || failed();
    const std::vector<Step>& steps = pending.plan->ranks[config_.self];
    while (pending.next_step < steps.size()) {
      if (!submit_step(pending, steps[pending.next_step])) return moved;
      ++pending.next_step;
      moved = true;
    }
    end_pass(pending);
    moved = true;
    if (pending.submitted) return moved;
  }
}

// False: not now, or the lane has failed.
bool Lane::submit_step(Pending& pending, const Step& step) {
  if (staged_) return finish_staged(pending, step);
  switch (step.kind) {
    case StepKind::copy:
      return submit_copy(pending, step);
    case StepKind::reduce:
      return submit_reduce(pending, step);
    case StepKind::signal:
      return submit_signal(pending, step);
    case StepKind::wait:
    case StepKind::reuse:
      return submit_wait(pending, step);
  }
  return true;
}

bool Lane::submit(Pending& pending, penstock_descriptor& descriptor, std::uint32_t waits_for) {
  descriptor.version = PENSTOCK_DESCRIPTOR_VERSION;
  descriptor.cookie = waits_for == kNoRank ? kNoWait : waits_for + 1;
  if (!queue_->submit(descriptor)) return false;
  in_flight_.push_back(descriptor);
  ++pending.in_flight;
  ++counters_.descriptors;
  return true;
}

bool Lane::submit_wait(Pending& pending, const Step& step) {
  const std::uint64_t value =
      step.kind == StepKind::reuse ? reuse_[step.rank] : base_[step.rank] + step.value;
  // An earlier WAIT of this queue already ensures it: fences never go back.
  if (promised_[step.rank] >= value) return true;
  penstock_descriptor descriptor{};
  descriptor.opcode = PENSTOCK_OP_WAIT;
  descriptor.n_src = 2;
  descriptor.src[0] = config_.fences[step.rank];
  descriptor.src[1] = value;
  if (!submit(pending, descriptor, step.rank)) return false;
  promised_[step.rank] = value;
  return true;
}

// A queue goes on after a descriptor that failed. So a SIGNAL is not submitted before all that it
// tells of is known to be done: the others must not read what an engine failed to write.
bool Lane::submit_signal(Pending& pending, const Step& step) {
  if (queue_->in_flight() > 0) return false;
  penstock_descriptor descriptor{};
  descriptor.opcode = PENSTOCK_OP_SIGNAL;
  descriptor.n_src = 1;
  descriptor.n_dst = 1;
  descriptor.dst[0] = config_.fences[config_.self];
  descriptor.src[0] = base_[config_.self] + step.value;
  return submit(pending, descriptor, kNoRank);
}

penstock_address Lane::address_of(const Pending& pending, const Slice& slice) const {
  if (slice.space == Space::block) {
    const Block& block = pending.plan->blocks[slice.index];
    return config_.scratch[block.device] + (pass_ & 1) * config_.half_bytes + block.offset +
           slice.offset;
  }
  const std::byte* data = pointer_of(pending, slice);
  penstock_address address = 0;
  // A buffer that lives in the pool is named by its pool offset, so that engines reach it and its
  // lines are published and observed.
  if (pool_.address_of(data, slice.bytes, &address)) return address;
  return penstock_address_host(data);
}

bool Lane::submit_copy(Pending& pending, const Step& step) {
  const Slice& source = step.src[0];
  if (source.bytes == 0) return true;
  penstock_descriptor descriptor{};
  descriptor.version = PENSTOCK_DESCRIPTOR_VERSION;
  descriptor.opcode = PENSTOCK_OP_COPY;
  descriptor.count = source.bytes;
  descriptor.n_src = 1;
  descriptor.src[0] = address_of(pending, source);
  descriptor.n_dst = static_cast<std::uint8_t>(step.dst.size());
  for (std::size_t i = 0; i < step.dst.size(); ++i) {
    descriptor.dst[i] = address_of(pending, step.dst[i]);
  }
  if (const auto done = without_engine(pending, step, descriptor)) return *done;
  if (!submit(pending, descriptor, kNoRank)) return false;
  count_traffic(step);
  return true;
}

// But for the addresses.
penstock_descriptor Lane::reduce_of(const Pending& pending, const Step& step) const {
  const Call& call = pending.call;
  penstock_descriptor descriptor{};
  descriptor.version = PENSTOCK_DESCRIPTOR_VERSION;
  descriptor.opcode = PENSTOCK_OP_REDUCE;
  descriptor.type = descriptor.out_type = static_cast<std::uint8_t>(call.type);
  // The folds of groups are multiplied already.
  const bool adds = step.combines && call.redop == PENSTOCK_PREMUL_SUM;
  descriptor.redop = static_cast<std::uint8_t>(adds ? std::uint32_t{PENSTOCK_SUM} : call.redop);
  descriptor.scale = descriptor.redop == PENSTOCK_PREMUL_SUM ? call.scale : 0;
  descriptor.count = step.src[0].bytes / penstock_type_size(call.type);
  descriptor.n_src = static_cast<std::uint8_t>(step.src.size());
  descriptor.n_dst = static_cast<std::uint8_t>(step.dst.size());
  if (step.src.size() > PENSTOCK_INLINE_SOURCES) descriptor.flags = PENSTOCK_FLAG_SRC_LIST;
  return descriptor;
}

bool Lane::submit_reduce(Pending& pending, const Step& step) {
  if (step.src[0].bytes == 0) return true;
  if (needs_staging(pending, step)) return submit_staged(pending, step);
  if (queue_->in_flight() >= queue_->depth()) return false;  // before a list is taken
  penstock_descriptor descriptor = reduce_of(pending, step);
  penstock_address* sources = descriptor.src;
  if ((descriptor.flags & PENSTOCK_FLAG_SRC_LIST) != 0) {
    auto& list = lists_[next_list_++ % lists_.size()];
    sources = list.data();
    descriptor.src[0] = penstock_address_host(list.data());
  }
  for (std::size_t i = 0; i < step.src.size(); ++i) {
    sources[i] = address_of(pending, step.src[i]);
  }
  for (std::size_t i = 0; i < step.dst.size(); ++i) {
    descriptor.dst[i] = address_of(pending, step.dst[i]);
  }
  if (const auto done = without_engine(pending, step, descriptor)) return *done;
  if (!submit(pending, descriptor, kNoRank)) return false;
  count_traffic(step);
  return true;
}

void Lane::count_traffic(const Step& step) {
  for (const Slice& slice : step.src) {
    if (slice.space == Space::block) counters_.pool_bytes_read += slice.bytes;
  }
  for (const Slice& slice : step.dst) {
    if (slice.space == Space::block) counters_.pool_bytes_written += slice.bytes;
  }
}

bool Lane::collect() {
  bool moved = false;
  penstock_completion completion;
  while (queue_->poll(&completion)) {
    moved = true;
    if (completion.status != PENSTOCK_OK) {
      const Status failure =
          error(static_cast<Code>(completion.status), "{} refused a descriptor: {} (field {}, {})",
                engine_->capabilities().name, penstock_status_name(completion.status),
                penstock_field_name(completion.field), completion.detail);
      if (is_of_the_engine(failure.code())) {
        engine_failed(failure);
      } else {
        fail(failure,
             completion.cookie == kNoWait ? kNoRank : config_.ranks[completion.cookie - 1]);
      }
      return true;
    }
    in_flight_.pop_front();
    // Completions come in order, so that they belong to the oldest call that has any in flight.
    for (auto& pending : pending_) {
      if (pending->in_flight == 0) continue;
      --pending->in_flight;
      break;
    }
  }
  return moved;
}

}  // namespace penstock
