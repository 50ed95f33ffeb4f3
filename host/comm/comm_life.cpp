// How a comm ends: failure, abort, and the watch over its ranks.
#include "penstock/base/log.h"
#include "penstock/comm/pool_comm.h"

namespace penstock {

Status PoolComm::describe_failure(const LaneFailure& failure) const {
  if (failure.status.code() != Code::deadline_exceeded || failure.culprit == kNoRank) {
    return failure.status;
  }
  return error(Code::deadline_exceeded, "comm '{}': {} did not respond within {} ms", config_.name,
               membership_->describe(failure.culprit), config_.timeout_ms);
}

void PoolComm::revoke(const Status& status, std::uint32_t culprit, bool heard) {
  if (!revoked_.ok()) return;
  revoked_ = status;
  log::info("comm '{}' revoked: {}", config_.name, status.message());
  // What another rank announced needs no echo: everybody can read the first account.
  if (!heard) membership_->announce_abort(status, culprit);
  collectives_->fail(status, culprit);
  for (auto& [pair, lane] : pairs_) lane->fail(status, culprit);
}

// Looks whether the others still live and want to go on.
Status PoolComm::survey() {
  Status reason;
  const std::uint32_t aborted = membership_->find_aborted(&reason);
  if (aborted != kNoRank) {
    revoke(reason, aborted, true);
    return revoked_;
  }
  const std::uint32_t dead = membership_->find_dead();
  if (dead != kNoRank) {
    revoke(error(Code::peer_dead, "comm '{}': {} died", config_.name, membership_->describe(dead)),
           dead);
    return revoked_;
  }
  return {};
}

void PoolComm::abort(const std::string& reason) {
  if (process_ != platform_.process_generation()) return;
  revoke(error(Code::revoked, "comm '{}' was aborted: {}", config_.name, reason), kNoRank);
}

Status PoolComm::health() {
  PENSTOCK_TRY(usable());
  return survey();
}

Status PoolComm::usable() const {
  if (process_ != platform_.process_generation()) {
    return error(Code::invalid_argument,
                 "comm '{}' belongs to the parent of this process; a forked child joins a comm of "
                 "its own",
                 config_.name);
  }
  if (!revoked_.ok()) return revoked_;
  return {};
}

}  // namespace penstock
