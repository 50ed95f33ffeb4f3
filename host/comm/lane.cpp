#include "penstock/comm/lane.h"

#include <algorithm>
#include <utility>

#include "penstock/comm/call_note.h"
#include "penstock/comm/control.h"
#include "penstock/comm/lane_pending.h"
#include "penstock/memory/inline_block.h"

namespace penstock {

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
  auto found = plans_.find(key);
  if (found == plans_.end()) {
    PENSTOCK_ASSIGN(std::shared_ptr<const Plan> plan, make_plan(key));
    if (plans_.size() >= kMaxPlans) plans_.clear();
    found = plans_.emplace(key, std::move(plan)).first;
  }
  return found->second;
}

Lane::Lane(Pool& pool, std::shared_ptr<Engine> engine, PlanCache& plans, CommCounters& counters,
           LaneConfig config)
    : pool_(pool),
      engine_(std::move(engine)),
      plans_(plans),
      counters_(counters),
      config_(std::move(config)),
      software_(pool.coherence() == Coherence::software),
      may_push_(!software_ && config_.tuning.push != 0),
      direct_(engine_->direct_kernels()),
      blocked_on_(kNoRank) {}

Lane::~Lane() {
  if (queue_ == nullptr) return;
  if (queue_->in_flight() > 0) empty_queue();
  queue_.reset();  // the engine is done with the memory
  if (staging_region_.bytes > 0) static_cast<void>(pool_.free(staging_region_));
}

Result<std::unique_ptr<Lane>> Lane::make(Pool& pool, std::shared_ptr<Engine> engine,
                                         PlanCache& plans, CommCounters& counters,
                                         LaneConfig config) {
  std::unique_ptr<Lane> lane(new Lane(pool, std::move(engine), plans, counters, std::move(config)));
  PENSTOCK_TRY(lane->open());
  return lane;
}

// Both ends of a lane count its passes from zero, whenever they open it: fences are "at least", so
// that what the other end has already signalled is not lost.
Status Lane::open() {
  const std::size_t ranks = config_.ranks.size();
  const auto locate = [this](penstock_address address, std::uint64_t bytes) {
    std::byte* place = pool_.resolve(address, bytes);
    PENSTOCK_CHECK(place != nullptr, "memory of a lane at {:#x} lies outside the pool", address);
    return place;
  };
  for (std::size_t r = 0; r < ranks; ++r) {
    std::byte* line = locate(config_.fences[r], 2 * PENSTOCK_CACHE_LINE);
    fences_.emplace_back(pool_, line);
    offers_.push_back(line + PENSTOCK_CACHE_LINE);
    const std::uint64_t inline_bytes =
        std::uint64_t{kInlineSlots} * config_.inline_lines * PENSTOCK_CACHE_LINE;
    inlined_.push_back(config_.inlined[r] == 0 || inline_bytes == 0
                           ? nullptr
                           : locate(config_.inlined[r], inline_bytes));
  }
  // This memory may have been another comm's: what this host still caches of its own lines would be
  // written back with them.
  pool_.observe(offers_[config_.self] - PENSTOCK_CACHE_LINE, 2 * PENSTOCK_CACHE_LINE);
  for (const penstock_address address : config_.scratch) {
    scratch_.push_back(locate(address, 2 * config_.half_bytes));
  }
  base_.assign(ranks, 0);
  reuse_.assign(ranks, 0);
  static_assert(std::tuple_size_v<decltype(ends_)> == kInlineSlots);
  for (auto& ends : ends_) ends.assign(ranks, 0);
  bulk_end_.assign(ranks, 0);
  drained_at_.assign(ranks, 0);
  older_bulk_end_.assign(ranks, 0);
  promised_.assign(ranks, 0);
  noted_.assign(ranks, 0);
  offered_send_.assign(ranks, nullptr);
  offered_recv_.assign(ranks, nullptr);
  taken_.assign(std::max<std::size_t>(ranks, 1), 0);
  if (direct_ == nullptr) {
    PENSTOCK_ASSIGN(queue_, Queue::create(&pool_, config_.queue));
    own_kernels_ = simd_kernels();
    if (ranks > PENSTOCK_INLINE_SOURCES) lists_.resize(queue_->depth());
  }
  return {};
}

std::uint64_t Lane::part_bytes(const Call& call) {
  return call.count * penstock_type_size(call.type);
}

namespace {

bool is_in_place(const Call& call, std::uint32_t self) {
  const auto* send = static_cast<const std::byte*>(call.send);
  const auto* recv = static_cast<const std::byte*>(call.recv);
  const std::uint64_t own = Lane::part_bytes(call) * self;
  switch (call.collective) {
    case Collective::all_gather:
    case Collective::gather:
      return recv != nullptr && send == recv + own;
    case Collective::reduce_scatter:
    case Collective::scatter:
      return send != nullptr && recv == send + own;
    case Collective::send_recv:
    case Collective::barrier:
      return false;
    default:
      return send == recv && send != nullptr;
  }
}

}  // namespace

PlanKey Lane::key_of(const Call& call) const {
  PlanKey key;
  key.collective = call.collective;
  key.topology.ranks = static_cast<std::uint32_t>(config_.ranks.size());
  key.topology.payload_devices = static_cast<std::uint32_t>(config_.scratch.size());
  key.topology.group = config_.group;
  key.root = has_root(call.collective) ? call.root : 0;
  key.element_bytes = penstock_type_size(call.type);
  key.in_place = is_in_place(call, config_.self);
  key.inline_lines = config_.inline_lines;
  key.tuning = config_.tuning;
  return key;
}

Result<std::uint64_t> Lane::bytes_per_pass(const Call& call) {
  PlanKey key = key_of(call);
  key.part_bytes = part_bytes(call);
  if (key.topology.ranks == 1) return key.part_bytes;  // no scratch involved
  PENSTOCK_ASSIGN(std::uint64_t most, pass_part_bytes(key, config_.half_bytes, config_.rank_bytes));
  return std::min(most, key.part_bytes);
}

bool Lane::may_be_pushed(const Block& block) {
  return block.pushable ||
         (!block.inlined && block.mirror.bytes > 0 && block.mirror.space == Space::recv);
}

// What the others copy from blocks of this rank and could be given instead.
std::vector<Lane::Push> Lane::pushes_of(const Plan& plan, std::uint32_t self) {
  std::vector<Push> pushes;
  for (std::uint32_t q = 0; q < plan.ranks.size(); ++q) {
    for (const Step& step : plan.ranks[q]) {
      if (step.kind != StepKind::copy || step.src[0].space != Space::block) continue;
      const Block& block = plan.blocks[step.src[0].index];
      if (block.writer != self || !may_be_pushed(block) || step.src[0].bytes != block.bytes ||
          step.dst[0].space != Space::recv) {
        continue;
      }
      pushes.push_back({step.src[0].index, q, step.dst[0]});
    }
  }
  return pushes;
}

// Whether the plan is inlined and every rank reads something of every other.
static bool is_symmetric(const Plan& plan) {
  if (!plan.is_inlined()) return false;
  const std::size_t n = plan.ranks.size();
  for (std::size_t r = 0; r < n; ++r) {
    std::vector<bool> heard(n, false);
    heard[r] = true;
    for (const Step& step : plan.ranks[r]) {
      for (const Slice& slice : step.src) {
        if (slice.space == Space::block) heard[plan.blocks[slice.index].writer] = true;
      }
    }
    if (std::find(heard.begin(), heard.end(), false) != heard.end()) return false;
  }
  return true;
}

// Repeated calls find here what they need without making it again.
Result<std::shared_ptr<const Lane::Prepared>*> Lane::prepare(const Call& call) {
  const bool in_place = is_in_place(call, config_.self);
  const std::uint64_t hash = (call.count * 16 + static_cast<std::uint64_t>(call.collective) +
                              call.type * 0x51ull + call.root * 0x1001ull + call.redop * 0x77ull) *
                             0x9e3779b97f4a7c15ull;
  std::shared_ptr<const Prepared>& slot = prepared_[hash >> 58];
  if (slot && slot->call.count == call.count && slot->call.collective == call.collective &&
      slot->call.type == call.type && slot->call.redop == call.redop &&
      slot->call.root == call.root && slot->in_place == in_place) {
    return &slot;
  }
  auto made = std::make_shared<Prepared>();
  made->call = call;
  made->in_place = in_place;
  made->note = call_note(call);
  PlanKey key = key_of(call);
  if (call.collective != Collective::barrier) {
    made->total_bytes = part_bytes(call);
    PENSTOCK_ASSIGN(made->pass_bytes, bytes_per_pass(call));
  }
  key.part_bytes = made->pass_bytes;
  PENSTOCK_ASSIGN(made->first, plans_.get(key));
  made->last = made->first;
  const std::uint64_t rest = made->pass_bytes == 0 ? 0 : made->total_bytes % made->pass_bytes;
  if (rest != 0) {
    key.part_bytes = rest;
    PENSTOCK_ASSIGN(made->last, plans_.get(key));
  }
  for (std::size_t d = 0; d < made->first->half_bytes.size(); ++d) {
    if (made->first->half_bytes[d] > config_.half_bytes) {
      return error(Code::internal, "a pass of {} needs {} bytes of scratch, a half has {}",
                   collective_name(call.collective), made->first->half_bytes[d],
                   config_.half_bytes);
    }
  }
  made->readers.assign(config_.ranks.size(), false);
  for (std::size_t q = 0; q < made->readers.size(); ++q) {
    for (const Step& step : made->first->ranks[q]) {
      for (const Slice& slice : step.src) {
        if (slice.space == Space::block &&
            made->first->blocks[slice.index].writer == config_.self && q != config_.self) {
          made->readers[q] = true;
        }
      }
    }
  }
  for (const Block& block : made->first->blocks) {
    if (block.inlined && block.writer == config_.self) {
      made->own_lines = std::min<std::uint64_t>(made->own_lines + inline_lines(block.bytes), 256);
    }
  }
  made->symmetric = is_symmetric(*made->first);
  made->first_pushes = pushes_of(*made->first, config_.self);
  made->last_pushes = pushes_of(*made->last, config_.self);
  slot = std::move(made);
  return &slot;
}

// Afterwards the call can be made by `repeat`, or by `start`.
Status Lane::get_ready(const Call& call) {
  if (failed()) return failure_.status;
  if (reduces(call.collective) && direct_ != nullptr) {
    const Capabilities& can = engine_->capabilities();
    if ((can.redops[call.type] >> call.redop & 1) == 0) {
      return error(Code::unsupported, "{} cannot do {} of {}", can.name,
                   penstock_redop_name(call.redop), penstock_type_name(call.type));
    }
  }
  PENSTOCK_ASSIGN(std::shared_ptr<const Prepared> * prepared, prepare(call));
  std::shared_ptr<Pending>& pending = done_[done_slot(call)];
  if (!pending || pending.use_count() > 1) pending = std::make_shared<Pending>();
  pending->call = call;
  if (pending->prepared != *prepared) pending->prepared = *prepared;
  pending->stream = pending->prepared->total_bytes >= config_.local.stream_bytes;
  return {};
}

// What a call is like before its first step.
void Lane::rewind(Pending& pending) {
  pending.done_bytes = 0;
  pending.plan = nullptr;
  pending.offer_send = pending.offer_recv = 0;
  pending.next_step = 0;
  pending.in_flight = 0;
  pending.submitted = pending.finished = pending.exposed = pending.read_offered = false;
  pending.result = Status();
  look_for_devices(pending);
  if (is_worth_exposing(*pending.prepared)) offer_buffers(pending);
  ++counters_.calls;
}

Result<std::shared_ptr<Request>> Lane::start(const Call& call) {
  PENSTOCK_TRY(get_ready(call));
  std::shared_ptr<Pending> pending = std::move(done_[done_slot(call)]);
  rewind(*pending);
  pending_.push_back(pending);
  return std::shared_ptr<Request>(std::move(pending));
}

// A send whose buffer is exposed waits for its receiver, so that it is large before that happens.
bool Lane::is_worth_exposing(const Prepared& prepared) const {
  constexpr std::uint64_t kEagerSend = 4 * 1024;
  if (!config_.may_expose) return false;
  const bool send = prepared.call.collective == Collective::send_recv;
  return prepared.total_bytes >=
         (send ? std::max(config_.local.expose_bytes, kEagerSend) : config_.local.expose_bytes);
}

Status Lane::begin_pass(Pending& pending) {
  const Prepared& prepared = *pending.prepared;
  pending.pass_bytes = std::min(prepared.pass_bytes, prepared.total_bytes - pending.done_bytes);
  pending.plan =
      pending.pass_bytes == prepared.pass_bytes ? prepared.first.get() : prepared.last.get();
  pending.pushes =
      pending.plan == prepared.first.get() ? &prepared.first_pushes : &prepared.last_pushes;
  pending.next_step = 0;
  pending.staged = false;
  pending.exposes = 0;
  if (!pending.plan->is_inlined()) {
    if (pending.offer_send != 0 && pending.plan->may_expose_send) {
      pending.exposes |= kNoteOffersSend;
    }
    if (pending.offer_recv != 0) pending.exposes |= kNoteOffersRecv;
  }
  if (signal_due_ && !prepared.symmetric) give_due_signal();
  if (pending.exposes != 0) {
    auto* line = reinterpret_cast<OfferLine*>(offers_[config_.self]);
    line->offer[pass_ % kOfferSlots] = {pending.offer_send, pending.offer_recv};
    pool_.publish(line, sizeof(*line));
  }
  ++counters_.passes;
  return {};
}

void Lane::end_pass(Pending& pending) {
  const Plan& plan = *pending.plan;
  for (std::size_t rank = 0; rank < base_.size(); ++rank) {
    reuse_[rank] = base_[rank];
    base_[rank] += plan.signals[rank];
  }
  ends_[pass_ % kInlineSlots] = base_;
  if (!plan.is_inlined()) {
    older_bulk_end_.swap(bulk_end_);
    bulk_end_ = base_;
    bulk_pass_ = pass_ + 1;
  }
  ++pass_;
  pending.done_bytes += pending.pass_bytes;
  pending.plan = nullptr;
  if (pending.done_bytes >= pending.prepared->total_bytes) pending.submitted = true;
}

std::uint64_t Lane::note(const Pending& pending) const {
  return note_of_pass(pending.prepared->note, pass_) | pending.exposes;
}

void Lane::disagree(std::uint32_t participant, std::uint64_t mine, std::uint64_t theirs) {
  const std::uint32_t culprit = config_.ranks[participant];
  fail(error(Code::mismatch, "rank {} calls {}, but rank {} calls {}", config_.ranks[config_.self],
             describe_note(mine), culprit, describe_note(theirs)),
       culprit);
}

bool Lane::is_direct(const Pending& pending) const {
  return direct_ != nullptr || pending.plan->is_inlined();
}

// Runs the calls in turn, oldest first. Queued ones are submitted ahead of their completion; a
// direct one beside a queued engine waits until the queue is empty.
bool Lane::progress() {
  if (failed()) return false;
  bool moved = false;
  while (filling_ < pending_.size() && !failed()) {
    Pending& pending = *pending_[filling_];
    const std::size_t step = pending.next_step;
    const std::uint64_t pass = pass_;
    if (pending.plan == nullptr) {
      if (Status status = begin_pass(pending); !status.ok()) {
        fail(status, kNoRank);
        return true;
      }
    }
    if (is_direct(pending)) {
      if (queue_ != nullptr && queue_->in_flight() > 0) break;
      run_direct(pending);
    } else {
      run_queued(pending);
    }
    moved |= failed() || pass_ != pass || pending.next_step != step;
    if (failed() || !pending.submitted) break;
    ++filling_;
  }
  if (failed()) return true;
  if (queue_ != nullptr) {
    moved |= engine_->advance(*queue_) > 0;
    moved |= collect();
    if (failed()) return true;
  }
  retire();
  if (moved) blocked_since_ns_ = 0;
  return moved;
}

void Lane::retire() {
  while (!pending_.empty() && pending_.front()->submitted && pending_.front()->in_flight == 0) {
    if (!end_whole(*pending_.front())) return;
    pending_.front()->finished = true;
    done_[done_slot(pending_.front()->call)] = std::move(pending_.front());
    pending_.erase(pending_.begin());
    --filling_;
  }
}

void Lane::fail(const Status& status, std::uint32_t culprit) {
  if (failed()) return;
  failure_ = {status, culprit};
  if (queue_ != nullptr) empty_queue();
  in_flight_.clear();
  // Nothing goes on with a buffer that is its caller's again.
  if (stage_ != nullptr) static_cast<void>(stage_->end_call());
  for (auto& pending : pending_) {
    pending->stage = nullptr;
    pending->whole.reset();
    pending->finished = true;
    pending->result = status;
  }
  pending_.clear();
  filling_ = 0;
}

std::uint32_t Lane::waiting_for() const {
  if (pending_.empty()) return kNoRank;
  if (queue_ != nullptr && queue_->in_flight() > 0) {
    const penstock_descriptor* front = queue_->front();
    if (front == nullptr || front->opcode != PENSTOCK_OP_WAIT || front->cookie == 0) {
      return kNoRank;
    }
    return config_.ranks[front->cookie - 1];
  }
  return blocked_on_ == kNoRank ? kNoRank : config_.ranks[blocked_on_];
}

void Lane::look_around(std::uint64_t now_ns) {
  if (failed() || filling_ >= pending_.size() || pending_[filling_]->plan == nullptr) return;
  const Pending& pending = *pending_[filling_];
  if (signal_due_) give_due_signal();
  if (direct_ != nullptr && !find_disagreement(pending)) return;
  look_at_deadline(pending, now_ns);
}

// False: found, and the lane has failed.
bool Lane::find_disagreement(const Pending& pending) {
  // Where everybody waits, nobody has signalled: so this rank says what it is in.
  const std::uint64_t mine = note(pending);
  const auto slot = static_cast<std::uint32_t>(pass_ % kNoteSlots);
  Fence& own = fences_[config_.self];
  own.load();
  if (own.note(slot) != mine) own.leave_note(slot, mine);
  for (std::uint32_t q = 0; q < fences_.size(); ++q) {
    if (q == config_.self) continue;
    fences_[q].load();
    const std::uint64_t theirs = fences_[q].note(slot);
    // The note of an earlier pass in this slot is four passes old, and has other low bits.
    if (theirs == 0 || (theirs & kNotePass) != (mine & kNotePass)) continue;
    if (((theirs ^ mine) & ~kNoteOffers) != 0) {
      disagree(q, mine, theirs);
      return false;
    }
  }
  return true;
}

void Lane::look_at_deadline(const Pending& pending, std::uint64_t now_ns) {
  if (!is_direct(pending) || blocked_on_ == kNoRank) return;
  if (blocked_since_ns_ == 0) {
    blocked_since_ns_ = now_ns == 0 ? 1 : now_ns;
    return;
  }
  const std::uint64_t timeout_ns = std::uint64_t{config_.queue.default_timeout_ms} * 1'000'000;
  if (now_ns > blocked_since_ns_ && now_ns - blocked_since_ns_ >= timeout_ns) {
    fail(error(Code::deadline_exceeded, "rank {} did not come to the pass within {} ms",
               config_.ranks[blocked_on_], config_.queue.default_timeout_ms),
         config_.ranks[blocked_on_]);
  }
}

}  // namespace penstock
