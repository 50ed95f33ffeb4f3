#include "penstock/comm/lane.h"

#include <algorithm>

#include "penstock/comm/control.h"

namespace penstock {
namespace {

// A cookie says which participant a WAIT waits for; 0 for everything else.
constexpr std::uint64_t kNoWait = 0;

}  // namespace

std::size_t PlanCache::Hash::operator()(const PlanKey& key) const {
  std::size_t hash = key.part_bytes;
  const auto mix = [&hash](std::uint64_t value) {
    hash = (hash ^ value) * 0x9e3779b97f4a7c15ull;
    hash ^= hash >> 29;
  };
  mix(static_cast<std::uint64_t>(key.collective));
  mix(key.topology.ranks);
  mix(key.topology.payload_devices);
  mix(key.root);
  mix(key.element_bytes);
  mix(key.in_place ? 1 : 0);
  return hash;
}

Result<std::shared_ptr<const Plan>> PlanCache::get(const PlanKey& key) {
  if (last_ && last_key_ == key) return last_;
  auto found = plans_.find(key);
  if (found == plans_.end()) {
    PENSTOCK_ASSIGN(std::shared_ptr<const Plan> plan, make_plan(key));
    if (plans_.size() >= kMaxPlans) plans_.clear();
    found = plans_.emplace(key, std::move(plan)).first;
  }
  last_key_ = key;
  last_ = found->second;
  return last_;
}

// A call on its way through the lane.
struct Lane::Pending : Request {
  Call call;
  PlanKey key;
  std::uint64_t total_bytes = 0;  // of one part
  std::uint64_t pass_bytes = 0;
  std::uint64_t done_bytes = 0;      // of one part, by passes submitted so far
  std::shared_ptr<const Plan> plan;  // of the pass being submitted; null before its first step
  std::size_t next_step = 0;
  std::uint64_t in_flight = 0;
  bool submitted = false;
  bool finished = false;
  Status result;

  bool done() const override { return finished; }
  Status status() const override { return result; }
};

Result<std::unique_ptr<Lane>> Lane::make(Pool& pool, Engine& engine, PlanCache& plans,
                                         CommCounters& counters, LaneConfig config) {
  std::unique_ptr<Lane> lane(new Lane(pool, engine, plans, counters, std::move(config)));
  PENSTOCK_ASSIGN(lane->queue_, Queue::create(&pool, lane->config_.queue));
  const std::size_t ranks = lane->config_.ranks.size();
  lane->base_.assign(ranks, 0);
  lane->reuse_.assign(ranks, 0);
  lane->promised_.assign(ranks, 0);
  if (ranks > PENSTOCK_INLINE_SOURCES) lane->lists_.resize(lane->queue_->depth());
  // Both ends of a lane count its passes from zero, whenever they open it: fences are "at least",
  // so that what the other end has already signalled is not lost.
  return lane;
}

std::uint64_t Lane::part_bytes(const Call& call) {
  return call.count * penstock_type_size(call.type);
}

PlanKey Lane::key_of(const Call& call) const {
  PlanKey key;
  key.collective = call.collective;
  key.topology.ranks = static_cast<std::uint32_t>(config_.ranks.size());
  key.topology.payload_devices = static_cast<std::uint32_t>(config_.scratch.size());
  key.root = has_root(call.collective) ? call.root : 0;
  key.element_bytes = penstock_type_size(call.type);
  const auto* send = static_cast<const std::byte*>(call.send);
  const auto* recv = static_cast<const std::byte*>(call.recv);
  const std::uint64_t own = part_bytes(call) * config_.self;
  switch (call.collective) {
    case Collective::all_gather:
    case Collective::gather:
      key.in_place = recv != nullptr && send == recv + own;
      break;
    case Collective::reduce_scatter:
    case Collective::scatter:
      key.in_place = send != nullptr && recv == send + own;
      break;
    case Collective::send_recv:
    case Collective::barrier:
      break;
    default:
      key.in_place = send == recv && send != nullptr;
      break;
  }
  return key;
}

Result<std::uint64_t> Lane::bytes_per_pass(const Call& call) {
  PlanKey key = key_of(call);
  key.part_bytes = part_bytes(call);
  if (key.topology.ranks == 1) return key.part_bytes;  // no scratch involved
  PENSTOCK_ASSIGN(std::uint64_t most, pass_part_bytes(key, config_.half_bytes, config_.rank_bytes));
  return std::min(most, key.part_bytes);
}

Result<std::shared_ptr<Request>> Lane::start(const Call& call) {
  if (failed()) return failure_.status;
  auto pending = std::make_shared<Pending>();
  pending->call = call;
  pending->key = key_of(call);
  pending->total_bytes = call.collective == Collective::barrier ? 0 : part_bytes(call);
  if (pending->total_bytes > 0) {
    PENSTOCK_ASSIGN(pending->pass_bytes, bytes_per_pass(call));
  }
  pending_.push_back(pending);
  ++counters_.calls;
  return std::shared_ptr<Request>(pending);
}

Status Lane::begin_pass(Pending& pending) {
  pending.key.part_bytes = std::min(pending.pass_bytes, pending.total_bytes - pending.done_bytes);
  PENSTOCK_ASSIGN(pending.plan, plans_.get(pending.key));
  for (std::size_t d = 0; d < pending.plan->half_bytes.size(); ++d) {
    if (pending.plan->half_bytes[d] > config_.half_bytes) {
      return error(Code::internal, "a pass of {} needs {} bytes of scratch, a half has {}",
                   collective_name(pending.call.collective), pending.plan->half_bytes[d],
                   config_.half_bytes);
    }
  }
  pending.next_step = 0;
  ++counters_.passes;
  return {};
}

void Lane::end_pass(Pending& pending) {
  const Plan& plan = *pending.plan;
  for (std::size_t rank = 0; rank < base_.size(); ++rank) {
    reuse_[rank] = base_[rank];
    base_[rank] += plan.signals[rank];
  }
  ++pass_;
  pending.done_bytes += pending.key.part_bytes;
  pending.plan.reset();
  if (pending.done_bytes >= pending.total_bytes) pending.submitted = true;
}

// Submits steps of the pending calls, oldest first, until the queue is full.
bool Lane::fill() {
  bool moved = false;
  while (filling_ < pending_.size()) {
    Pending& pending = *pending_[filling_];
    if (!pending.plan) {
      if (Status status = begin_pass(pending); !status.ok()) {
        fail(status, kNoRank);
        return true;
      }
    }
    const std::vector<Step>& steps = pending.plan->ranks[config_.self];
    while (pending.next_step < steps.size()) {
      const std::uint32_t before = queue_->in_flight();
      if (!submit_step(pending, steps[pending.next_step])) return moved;
      pending.in_flight += queue_->in_flight() - before;
      ++pending.next_step;
      moved = true;
    }
    end_pass(pending);
    moved = true;
    if (pending.submitted) ++filling_;
  }
  return moved;
}

bool Lane::submit_step(Pending& pending, const Step& step) {
  switch (step.kind) {
    case StepKind::copy:
      return submit_copy(pending, step);
    case StepKind::reduce:
      return submit_reduce(pending, step);
    case StepKind::signal:
      return submit_signal(step);
    case StepKind::wait:
    case StepKind::reuse:
      return submit_wait(step);
  }
  return true;
}

bool Lane::submit(penstock_descriptor& descriptor, std::uint32_t waits_for) {
  descriptor.version = PENSTOCK_DESCRIPTOR_VERSION;
  descriptor.cookie = waits_for == kNoRank ? kNoWait : waits_for + 1;
  if (!queue_->submit(descriptor)) return false;
  ++counters_.descriptors;
  return true;
}

bool Lane::submit_wait(const Step& step) {
  const std::uint64_t value =
      step.kind == StepKind::reuse ? reuse_[step.rank] : base_[step.rank] + step.value;
  // An earlier WAIT of this queue already ensures it: fences never go back.
  if (promised_[step.rank] >= value) return true;
  penstock_descriptor descriptor{};
  descriptor.opcode = PENSTOCK_OP_WAIT;
  descriptor.n_src = 2;
  descriptor.src[0] = config_.fences[step.rank];
  descriptor.src[1] = value;
  if (!submit(descriptor, step.rank)) return false;
  promised_[step.rank] = value;
  return true;
}

bool Lane::submit_signal(const Step& step) {
  penstock_descriptor descriptor{};
  descriptor.opcode = PENSTOCK_OP_SIGNAL;
  descriptor.n_src = 1;
  descriptor.n_dst = 1;
  descriptor.dst[0] = config_.fences[config_.self];
  descriptor.src[0] = base_[config_.self] + step.value;
  return submit(descriptor, kNoRank);
}

penstock_address Lane::address_of(const Pending& pending, const Slice& slice) {
  if (slice.space == Space::block) {
    const Block& block = pending.plan->blocks[slice.index];
    return config_.scratch[block.device] + (pass_ & 1) * config_.half_bytes + block.offset +
           slice.offset;
  }
  const auto* base = slice.space == Space::send ? static_cast<const std::byte*>(pending.call.send)
                                                : static_cast<const std::byte*>(pending.call.recv);
  const std::byte* data =
      base + slice.index * pending.total_bytes + pending.done_bytes + slice.offset;
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
  descriptor.opcode = PENSTOCK_OP_COPY;
  descriptor.count = source.bytes;
  descriptor.n_src = 1;
  descriptor.src[0] = address_of(pending, source);
  descriptor.n_dst = static_cast<std::uint8_t>(step.dst.size());
  for (std::size_t i = 0; i < step.dst.size(); ++i) {
    descriptor.dst[i] = address_of(pending, step.dst[i]);
  }
  if (!submit(descriptor, kNoRank)) return false;
  count_traffic(step);
  return true;
}

bool Lane::submit_reduce(Pending& pending, const Step& step) {
  const std::uint64_t bytes = step.src[0].bytes;
  if (bytes == 0) return true;
  if (queue_->in_flight() >= queue_->depth()) return false;  // before a list is taken
  const Call& call = pending.call;
  penstock_descriptor descriptor{};
  descriptor.opcode = PENSTOCK_OP_REDUCE;
  descriptor.type = descriptor.out_type = static_cast<std::uint8_t>(call.type);
  descriptor.redop = static_cast<std::uint8_t>(call.redop);
  descriptor.scale = call.redop == PENSTOCK_PREMUL_SUM ? call.scale : 0;
  descriptor.count = bytes / penstock_type_size(call.type);
  descriptor.n_src = static_cast<std::uint8_t>(step.src.size());
  if (step.src.size() <= PENSTOCK_INLINE_SOURCES) {
    for (std::size_t i = 0; i < step.src.size(); ++i) {
      descriptor.src[i] = address_of(pending, step.src[i]);
    }
  } else {
    auto& list = lists_[next_list_++ % lists_.size()];
    for (std::size_t i = 0; i < step.src.size(); ++i) list[i] = address_of(pending, step.src[i]);
    descriptor.flags = PENSTOCK_FLAG_SRC_LIST;
    descriptor.src[0] = penstock_address_host(list.data());
  }
  descriptor.n_dst = static_cast<std::uint8_t>(step.dst.size());
  for (std::size_t i = 0; i < step.dst.size(); ++i) {
    descriptor.dst[i] = address_of(pending, step.dst[i]);
  }
  if (!submit(descriptor, kNoRank)) return false;
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
      const std::uint32_t culprit =
          completion.cookie == kNoWait ? kNoRank : config_.ranks[completion.cookie - 1];
      fail(error(static_cast<Code>(completion.status), "{} refused a descriptor: {} (field {}, {})",
                 engine_.capabilities().name, penstock_status_name(completion.status),
                 penstock_field_name(completion.field), completion.detail),
           culprit);
      return true;
    }
    // Completions come in order, so that they belong to the oldest call that has any in flight.
    for (auto& pending : pending_) {
      if (pending->in_flight == 0) continue;
      --pending->in_flight;
      break;
    }
  }
  while (!pending_.empty() && pending_.front()->submitted && pending_.front()->in_flight == 0) {
    pending_.front()->finished = true;
    pending_.pop_front();
    --filling_;
    moved = true;
  }
  return moved;
}

bool Lane::progress() {
  if (failed()) return false;
  bool moved = fill();
  if (failed()) return true;
  moved |= engine_.advance(*queue_) > 0;
  moved |= collect();
  return moved;
}

void Lane::fail(const Status& status, std::uint32_t culprit) {
  if (failed()) return;
  failure_ = {status, culprit};
  queue_->cancel();
  penstock_completion completion;
  do {
    engine_.advance(*queue_);
    while (queue_->poll(&completion)) {
    }
  } while (queue_->in_flight() > 0);
  for (auto& pending : pending_) {
    pending->finished = true;
    pending->result = status;
  }
  pending_.clear();
  filling_ = 0;
}

std::uint32_t Lane::waiting_for() const {
  const penstock_descriptor* front = queue_->front();
  if (front == nullptr || front->opcode != PENSTOCK_OP_WAIT || front->cookie == kNoWait) {
    return kNoRank;
  }
  return config_.ranks[front->cookie - 1];
}

}  // namespace penstock
