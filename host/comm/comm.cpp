#include "penstock/comm/comm.h"

#include <utility>

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

QueueConfig PoolComm::queue_config() const {
  QueueConfig config;
  config.default_timeout_ms = config_.timeout_ms;
  config.oversubscribed = oversubscribed_;
  return config;
}

Status PoolComm::open() {
  const ControlHeader& header = membership_->header();
  const ControlLayout layout(header.size);
  LaneConfig lane;
  lane.self = rank();
  for (std::uint32_t r = 0; r < header.size; ++r) {
    lane.ranks.push_back(r);
    lane.fences.push_back(membership_->control(layout.fence(r)));
  }
  for (std::uint32_t d = 0; d < header.payload_devices; ++d) {
    lane.scratch.push_back(membership_->scratch(d));
  }
  lane.half_bytes = header.half_bytes;
  lane.rank_bytes = header.rank_bytes;
  lane.queue = queue_config();
  PENSTOCK_ASSIGN(collectives_, Lane::make(pool_, *engine_, plans_, counters_, std::move(lane)));
  return {};
}

// The lane from one rank to another: participant 0 sends, participant 1 receives.
Result<std::unique_ptr<Lane>> PoolComm::make_pair_lane(std::uint32_t from, std::uint32_t to) {
  const ControlHeader& header = membership_->header();
  const ControlLayout layout(header.size);
  const std::uint64_t pair = std::uint64_t{from} * header.size + to;
  const auto device = static_cast<std::uint32_t>(pair % header.payload_devices);
  const std::uint64_t place = pair / header.payload_devices;
  LaneConfig lane;
  lane.ranks = {from, to};
  lane.self = rank() == from ? 0 : 1;
  lane.fences = {membership_->control(layout.pair_fence(from, to, 0)),
                 membership_->control(layout.pair_fence(from, to, 1))};
  lane.scratch = {membership_->scratch(device) + 2 * header.half_bytes +
                  2 * place * header.pair_bytes};
  lane.half_bytes = header.pair_bytes;
  lane.rank_bytes = header.pair_bytes;
  lane.queue = queue_config();
  return Lane::make(pool_, *engine_, plans_, counters_, std::move(lane));
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

Result<std::shared_ptr<const Plan>> PoolComm::plan(const Call& call) {
  PENSTOCK_TRY(check_call(call, rank(), size()));
  Call lane_call;
  PENSTOCK_ASSIGN(Lane * lane, lane_of(call, &lane_call));
  PlanKey key = lane->key_of(lane_call);
  PENSTOCK_ASSIGN(key.part_bytes, lane->bytes_per_pass(lane_call));
  return plans_.get(key);
}

Result<std::shared_ptr<Request>> PoolComm::start(const Call& call) {
  PENSTOCK_TRY(usable());
  PENSTOCK_TRY(check_call(call, rank(), size()));
  if (call.collective != Collective::barrier && call.count == 0) {
    return std::shared_ptr<Request>(std::make_shared<FinishedRequest>());
  }
  Call lane_call;
  PENSTOCK_ASSIGN(Lane * lane, lane_of(call, &lane_call));
  PENSTOCK_ASSIGN(std::shared_ptr<Request> request, lane->start(lane_call));
  progress();
  return request;
}

bool PoolComm::progress() {
  bool moved = collectives_->progress();
  const Lane* failed = collectives_->failed() ? collectives_.get() : nullptr;
  for (auto& [pair, lane] : pairs_) {
    moved |= lane->progress();
    if (lane->failed()) failed = lane.get();
  }
  if (failed != nullptr && revoked_.ok()) {
    const LaneFailure failure = failed->failure();
    revoke(describe_failure(failure), failure.culprit);
  }
  return moved;
}

Result<bool> PoolComm::test(Request& request) {
  if (request.done()) {
    PENSTOCK_TRY(request.status());
    return true;
  }
  PENSTOCK_TRY(usable());
  progress();
  if (request.done()) {
    PENSTOCK_TRY(revoked_.ok() ? request.status() : revoked_);
    return true;
  }
  return false;
}

Status PoolComm::wait(Request& request) {
  if (request.done()) return request.status();
  PENSTOCK_TRY(usable());
  Backoff backoff(platform_, oversubscribed_);
  std::uint64_t next_survey = 0;
  std::uint32_t turns = 0;
  while (!request.done()) {
    if (progress()) {
      backoff = Backoff(platform_, oversubscribed_);
      continue;
    }
    if (request.done()) break;
    backoff.turn();
    if (++turns % 64 != 0) continue;
    const std::uint64_t now = platform_.now_ns();
    if (next_survey == 0) next_survey = now + kSurveyNs;
    if (now < next_survey) continue;
    next_survey = now + kSurveyNs;
    if (Status status = survey(); !status.ok()) return status;
  }
  return revoked_.ok() ? request.status() : revoked_;
}

Status PoolComm::run(const Call& call) {
  PENSTOCK_ASSIGN(std::shared_ptr<Request> request, start(call));
  return wait(*request);
}

Result<std::unique_ptr<Comm>> Comm::join(Pool& pool, const CommConfig& config) {
  PENSTOCK_ASSIGN(std::shared_ptr<Engine> engine, make_engine(config.engine));
  PENSTOCK_ASSIGN(std::unique_ptr<Membership> membership, Membership::join(pool, config));
  auto comm = std::make_unique<PoolComm>(pool, config, std::move(membership), std::move(engine));
  PENSTOCK_TRY(comm->open());
  return std::unique_ptr<Comm>(std::move(comm));
}

}  // namespace penstock
