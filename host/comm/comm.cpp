#include "penstock/comm/comm.h"

#include <utility>

#include "penstock/base/trace.h"
#include "penstock/comm/call_check.h"
#include "penstock/comm/pool_comm.h"

namespace penstock {
namespace {

constexpr std::uint64_t kSurveyNs = 5'000'000;  // how often a waiting rank looks after the others

class FinishedRequest : public Request {
 public:
  bool done() const override { return true; }
  Status status() const override { return {}; }
};

}  // namespace

Status PoolComm::open() {
  const ControlHeader& header = membership_->header();
  const ControlLayout layout = membership_->layout();
  LaneConfig lane = lane_config();
  lane.self = rank();
  for (std::uint32_t r = 0; r < header.size; ++r) {
    lane.ranks.push_back(r);
    lane.fences.push_back(membership_->control(layout.fence(r)));
    lane.inlined.push_back(membership_->control(layout.inlined(r)));
    may_expose_ = may_expose_ && (membership_->flags_of(r) & kMemberDirect) != 0;
  }
  for (std::uint32_t d = 0; d < header.payload_devices; ++d) {
    lane.scratch.push_back(membership_->scratch(d));
  }
  lane.inline_lines = membership_->tuning().inline_lines;
  lane.group = membership_->tuning().group;
  lane.half_bytes = header.half_bytes;
  lane.rank_bytes = header.rank_bytes;
  lane.may_expose = may_expose_;
  PENSTOCK_ASSIGN(collectives_, Lane::make(pool_, engine_, plans_, counters_, std::move(lane)));
  return {};
}

LaneConfig PoolComm::lane_config() {
  LaneConfig lane;
  lane.tuning = membership_->tuning().tuning;
  lane.local = config_.local;
  lane.first_sequence = membership_->first_sequence();
  lane.may_expose = may_expose_;
  lane.confirm = [this](std::uint64_t bytes) { return confirm(bytes); };
  lane.queue.default_timeout_ms = config_.timeout_ms;
  lane.queue.oversubscribed = oversubscribed_;
  lane.replace = [this](const Engine& lost, const Status& why) {
    return replace_engine(lost, why);
  };
  return lane;
}

// Each lane comes by itself when its queue fails.
Result<std::shared_ptr<Engine>> PoolComm::replace_engine(const Engine& lost, const Status& why) {
  if (engine_.get() != &lost) return engine_;
  if (!source_.more()) return why;
  PENSTOCK_ASSIGN(engine_, source_.next());
  capabilities_ = engine_->capabilities();
  return engine_;
}

LaneFailure PoolComm::confirm(std::uint64_t bytes) const {
  // Asking after the living costs system calls: where a call takes long enough for another process
  // to be given the memory of a rank that died in the middle of it.
  constexpr std::uint64_t kLongCall = 256 * 1024;
  Status reason;
  const std::uint32_t aborted = membership_->find_aborted(&reason);
  if (aborted != kNoRank) return {reason, aborted};
  const std::uint32_t dead = bytes >= kLongCall ? membership_->find_dead() : kNoRank;
  if (dead == kNoRank) return {Status(), kNoRank};
  return {error(Code::peer_dead, "comm '{}': {} died", config_.name, membership_->describe(dead)),
          dead};
}

// The lane from one rank to another: participant 0 sends, participant 1 receives.
Result<std::unique_ptr<Lane>> PoolComm::make_pair_lane(std::uint32_t from, std::uint32_t to) {
  const ControlHeader& header = membership_->header();
  const ControlLayout layout = membership_->layout();
  const std::uint64_t pair = std::uint64_t{from} * header.size + to;
  const auto device = static_cast<std::uint32_t>(pair % header.payload_devices);
  const std::uint64_t place = pair / header.payload_devices;
  LaneConfig lane = lane_config();
  lane.ranks = {from, to};
  lane.self = rank() == from ? 0 : 1;
  lane.fences = {membership_->control(layout.pair_fence(from, to, 0)),
                 membership_->control(layout.pair_fence(from, to, 1))};
  lane.inlined = {membership_->control(layout.pair_inlined(from, to)), 0};
  lane.inline_lines = membership_->tuning().pair_inline_lines;
  lane.scratch = {membership_->scratch(device) + 2 * header.half_bytes +
                  2 * place * header.pair_bytes};
  lane.half_bytes = header.pair_bytes;
  lane.rank_bytes = header.pair_bytes;
  return Lane::make(pool_, engine_, plans_, counters_, std::move(lane));
}

Result<Lane*> PoolComm::lane_of(const Call& call, Call* lane_call) {
  *lane_call = call;
  if (call.collective != Collective::send_recv) return collectives_.get();
  const std::uint32_t from = call.sender ? rank() : call.root;
  const std::uint32_t to = call.sender ? call.root : rank();
  if (from == to) {
    return error(Code::invalid_argument,
                 "send_recv: rank {} is its own peer; copy the bytes instead", rank());
  }
  lane_call->root = 0;
  auto& lane = pairs_[{from, to}];
  if (!lane) {
    PENSTOCK_ASSIGN(lane, make_pair_lane(from, to));
  }
  return lane.get();
}

// The lane of a call, if there is one already.
Lane* PoolComm::open_lane_of(const Call& call, Call* lane_call) const {
  *lane_call = call;
  if (call.collective != Collective::send_recv) return collectives_.get();
  lane_call->root = 0;
  const auto found =
      pairs_.find(call.sender ? std::pair(rank(), call.root) : std::pair(call.root, rank()));
  return found == pairs_.end() ? nullptr : found->second.get();
}

Result<std::shared_ptr<const Plan>> PoolComm::plan(const Call& call) {
  PENSTOCK_TRY(check_call(call, rank(), size()));
  Call lane_call;
  PENSTOCK_ASSIGN(Lane * lane, lane_of(call, &lane_call));
  PlanKey key = lane->key_of(lane_call);
  PENSTOCK_ASSIGN(key.part_bytes, lane->bytes_per_pass(lane_call));
  return plans_.get(key);
}

Result<std::shared_ptr<Request>> PoolComm::start(const Call& call) {
  const CallRecord record(statistics_, call, false);
  return begin(call);
}

Result<std::shared_ptr<Request>> PoolComm::begin(const Call& call) {
  PENSTOCK_TRY(usable());
  PENSTOCK_TRY(check_call(call, rank(), size()));
  if (call.collective != Collective::barrier && call.count == 0) {
    return std::shared_ptr<Request>(std::make_shared<FinishedRequest>());
  }
  find_device_memory();
  Call lane_call;
  PENSTOCK_ASSIGN(Lane * lane, lane_of(call, &lane_call));
  PENSTOCK_ASSIGN(std::shared_ptr<Request> request, lane->start(lane_call));
  progress();
  return request;
}

bool PoolComm::progress() {
  bool moved = collectives_->progress();
  bool failed = collectives_->failed();
  for (auto& [pair, lane] : pairs_) {
    moved |= lane->progress();
    failed |= lane->failed();
  }
  if (failed) note_failures();
  return moved;
}

// What fails one lane ends the comm.
void PoolComm::note_failures() {
  if (!revoked_.ok()) return;
  const Lane* failed = collectives_->failed() ? collectives_.get() : nullptr;
  for (auto& [pair, lane] : pairs_) {
    if (lane->failed()) failed = lane.get();
  }
  if (failed == nullptr) return;
  const LaneFailure failure = failed->failure();
  const bool silence =
      failure.status.code() == Code::deadline_exceeded && failure.culprit != kNoRank;
  if (silence && !look_once_more(failure.culprit).ok()) return;
  // Revoked: it was another rank that said so.
  revoke(describe_failure(failure), failure.culprit, failure.status.code() == Code::revoked);
}

Result<bool> PoolComm::test(Request& request) {
  if (request.done()) {
    PENSTOCK_TRY(request.status());
    return true;
  }
  PENSTOCK_TRY(usable());
  if (!progress()) {
    const std::uint64_t now = platform_.now_ns();
    look_around(now);
    PENSTOCK_TRY(survey_now_and_then(now));
  }
  if (request.done()) {
    PENSTOCK_TRY(revoked_.ok() ? request.status() : revoked_);
    return true;
  }
  return false;
}

Status PoolComm::wait(Request& request) {
  if (request.done()) return request.status();
  PENSTOCK_TRY(usable());
  while (!request.done()) {
    if (progress()) continue;
    if (request.done()) break;
    const trace::Scope scope(trace::Kind::wait, "wait", trace::enabled() ? awaited() : kNoRank);
    PENSTOCK_TRY(wait_for_progress(request));
  }
  return revoked_.ok() ? request.status() : revoked_;
}

// Until something moves. Looks after the others now and then.
Status PoolComm::wait_for_progress(const Request& request) {
  Backoff backoff(platform_, oversubscribed_);
  std::uint64_t next_survey = 0;
  for (std::uint32_t turns = 1; !progress() && !request.done(); ++turns) {
    backoff.turn();
    if (turns % 64 != 0) continue;
    const std::uint64_t now = platform_.now_ns();
    if (next_survey == 0) next_survey = now + kSurveyNs;
    if (now < next_survey) continue;
    next_survey = now + kSurveyNs;
    look_around(now);
    PENSTOCK_TRY(survey());
  }
  return {};
}

void PoolComm::look_around(std::uint64_t now_ns) {
  collectives_->look_around(now_ns);
  for (auto& [pair, lane] : pairs_) lane->look_around(now_ns);
  note_failures();
}

Status PoolComm::run(const Call& call) {
  const CallRecord record(statistics_, call);
  std::shared_ptr<Request> request;
  Call lane_call;
  Lane* lane = open_lane_of(call, &lane_call);
  // The same calls into the platform whether the call was made before or not, so that a simulated
  // run does not depend on where buffers are.
  if (lane != nullptr && lane->is_idle_and_direct() && !trace::enabled()) {
    PENSTOCK_TRY(usable());
    if (!lane->is_ready(lane_call)) {
      find_device_memory();
      PENSTOCK_TRY(check_call(call, rank(), size()));
      if (call.collective != Collective::barrier && call.count == 0) return {};
      PENSTOCK_TRY(lane->get_ready(lane_call));
    }
    request = lane->repeat(lane_call, !oversubscribed_);
    if (request == nullptr) return {};
    note_failures();
  } else {
    PENSTOCK_ASSIGN(request, begin(call));
  }
  return wait(*request);
}

Result<std::unique_ptr<Comm>> Comm::join(Pool& pool, const CommConfig& config) {
  PENSTOCK_ASSIGN(EngineSource source, EngineSource::parse(config.engine, needs_of_collectives()));
  PENSTOCK_ASSIGN(std::shared_ptr<Engine> engine, source.next());
  const std::uint64_t flags = engine->direct_kernels() != nullptr ? kMemberDirect : 0;
  PENSTOCK_ASSIGN(std::unique_ptr<Membership> membership, Membership::join(pool, config, flags));
  const std::uint32_t group = membership->tuning().group;
  if (!config.newcomer && group != Membership::group_of(config, membership->size())) {
    return error(Code::mismatch, "comm '{}' has groups of {} ranks, but rank {} joined it with {}",
                 config.name, group, config.rank, config.group);
  }
  auto comm = std::make_unique<PoolComm>(pool, config, std::move(membership), std::move(source),
                                         std::move(engine));
  PENSTOCK_TRY(comm->open());
  return std::unique_ptr<Comm>(std::move(comm));
}

}  // namespace penstock
