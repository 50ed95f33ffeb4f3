// How a comm ends: failure, abort, and the watch over its ranks.
#include <bit>

#include "penstock/base/log.h"
#include "penstock/comm/pool_comm.h"

namespace penstock {
namespace {

constexpr std::uint64_t kPolledSurveyNs = 5'000'000;
constexpr std::uint64_t kLookNs = 2'000'000;

}  // namespace

PeerWatch& PoolComm::watch() const {
  if (!watch_) {
    watch_ = std::make_unique<PeerWatch>(platform_, *membership_, config_.timeout_ms);
  }
  return *watch_;
}

Status PoolComm::describe_failure(const LaneFailure& failure) const {
  if (failure.status.code() != Code::deadline_exceeded || failure.culprit == kNoRank) {
    return failure.status;
  }
  const std::uint32_t culprit = watch().blame(failure.culprit);
  return error(Code::deadline_exceeded, "comm '{}': {} did not respond within {} ms{}",
               config_.name, membership_->describe(culprit), config_.timeout_ms,
               watch().condition(culprit));
}

void PoolComm::revoke(const Status& status, std::uint32_t culprit, bool heard) {
  if (!revoked_.ok()) return;
  revoked_ = status;
  log::info("comm '{}' revoked: {}", config_.name, status.message());
  if (status.code() == Code::deadline_exceeded && culprit != kNoRank) {
    culprit = watch().blame(culprit);
  }
  // What another rank announced needs no echo: everybody can read the first account.
  if (!heard) membership_->announce_abort(status, culprit);
  collectives_->fail(status, culprit);
  for (auto& [pair, lane] : pairs_) lane->fail(status, culprit);
  // Nothing of this rank writes to the comm's memory any more. If the others have gone on without
  // it, they need not keep that memory for its sake.
  if (!heard) return;
  if (Status out = membership_->voted_out(); out.code() == Code::revoked) {
    revoked_ = out;
    membership_->leave();
  }
}

std::uint32_t PoolComm::awaited() const {
  const std::uint32_t rank = collectives_->waiting_for();
  if (rank != kNoRank) return rank;
  for (const auto& [pair, lane] : pairs_) {
    const std::uint32_t peer = lane->waiting_for();
    if (peer != kNoRank) return peer;
  }
  return kNoRank;
}

// By all lanes, any of which may be the one whose deadline passes first.
std::uint64_t PoolComm::all_awaited() const {
  std::uint64_t ranks = 0;
  const auto add = [&](std::uint32_t rank) {
    if (rank != kNoRank) ranks |= std::uint64_t{1} << rank;
  };
  add(collectives_->waiting_for());
  for (const auto& [pair, lane] : pairs_) add(lane->waiting_for());
  return ranks;
}

// Looks whether the others still live and want to go on, of those who are waited for before all.
Status PoolComm::survey(std::uint32_t first, std::uint64_t peers) {
  watch().look(first, peers);
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
  for (std::uint64_t rest = peers; rest != 0; rest &= rest - 1) {
    const auto peer = static_cast<std::uint32_t>(std::countr_zero(rest));
    if (!watch().has_left(peer)) continue;
    revoke(error(Code::peer_dead, "comm '{}': {} has left it, and is waited for", config_.name,
                 membership_->describe(peer)),
           peer);
    return revoked_;
  }
  return {};
}

// The deadline of the wait for `culprit` has passed. This rank may not have looked for a while
// itself, or the other may have passed a deadline of its own a moment ago, waiting for a third:
// what it announces then names the one to blame, which this rank cannot know. So an error of
// another rank's comes first, and a silence that nothing explains is listened to for as long as a
// sign of life counts.
Status PoolComm::look_once_more(std::uint32_t culprit) {
  const std::uint64_t end_ns = platform_.now_ns() + sign_counts_for_ns(config_.timeout_ms);
  for (;;) {
    PENSTOCK_TRY(survey(culprit, all_awaited() | std::uint64_t{1} << culprit));
    if (watch().is_explained(watch().blame(culprit)) || platform_.now_ns() >= end_ns) return {};
    platform_.sleep_ns(kLookNs);
  }
}

// For a rank that polls, which may be often.
Status PoolComm::survey_now_and_then(std::uint64_t now_ns) {
  if (now_ns < next_survey_ns_) return {};
  next_survey_ns_ = now_ns + kPolledSurveyNs;
  return survey();
}

void PoolComm::abort(const std::string& reason) {
  if (process_ != platform_.process_generation()) return;
  revoke(error(Code::revoked, "comm '{}' was aborted: {}", config_.name, reason), kNoRank);
}

void PoolComm::revoke() {
  if (process_ != platform_.process_generation()) return;
  revoke(error(Code::revoked, "comm '{}' was revoked by {}", config_.name,
               membership_->describe(rank())),
         kNoRank);
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
