#include "penstock/memory/agreement.h"

#include <algorithm>

#include "penstock/memory/agreement_ballot.h"

namespace penstock {
namespace {

constexpr std::uint64_t kFirstPauseNs = 2'000;
constexpr std::uint64_t kLongestPauseNs = 2'000'000;
// The pool's locks from here on are those of its agreements.
constexpr std::uint32_t kFirstAgreementLock = 8;

// A random time, longer the more attempts were in vain, so that one participant runs alone in the
// end; never past the deadline.
void pause(Platform& platform, std::uint32_t attempts, std::uint64_t deadline_ns) {
  const std::uint64_t longest =
      std::min(kLongestPauseNs, kFirstPauseNs << std::min<std::uint32_t>(attempts, 20));
  const std::uint64_t now_ns = platform.now_ns();
  if (now_ns >= deadline_ns) return;
  platform.sleep_ns(std::min(platform.random() % longest + 1, deadline_ns - now_ns));
}

Status recycled(std::uint64_t number, std::uint32_t depth) {
  return error(Code::out_of_range,
               "decision {} is no longer kept: the last {} are; ask for the latest one", number,
               depth);
}

}  // namespace

Result<Agreement> Agreement::open(Platform& platform, Coherence coherence,
                                  const AgreementSpace& space, std::uint32_t participant) {
  if (space.base == nullptr || reinterpret_cast<std::uintptr_t>(space.base) % 64 != 0) {
    return error(Code::invalid_argument, "an agreement's space must begin on a cache line");
  }
  if (space.participants < 1 || space.participants > kMaxParticipants) {
    return error(Code::invalid_argument, "an agreement of {} participants: it must be 1..{}",
                 space.participants, kMaxParticipants);
  }
  if (space.depth < 2 || space.depth > kMaxAgreementDepth) {
    return error(Code::invalid_argument, "an agreement that keeps {} decisions: it must be 2..{}",
                 space.depth, kMaxAgreementDepth);
  }
  if (participant >= space.participants) {
    return error(Code::invalid_argument, "participant {} of an agreement of {}: it must be 0..{}",
                 participant, space.participants, space.participants - 1);
  }
  return Agreement(platform, coherence, space, participant);
}

Result<Agreement> Agreement::open(Pool& pool, std::uint32_t which) {
  if (which >= kPoolAgreements) {
    return error(Code::invalid_argument, "pool {} has no agreement {}: it must be 0..{}",
                 pool.spec(), which, kPoolAgreements - 1);
  }
  const AgreementSpace space = pool.agreement_space(which);
  if (space.base == nullptr) {
    return error(Code::unsupported, "pool {} keeps no agreements among its hosts", pool.spec());
  }
  PENSTOCK_ASSIGN(Agreement agreement,
                  open(pool.platform(), pool.coherence(), space, pool.host_id()));
  agreement.pool_ = &pool;
  agreement.lock_ = kFirstAgreementLock + which;
  return agreement;
}

Result<std::unique_ptr<Pool::Lock>> Agreement::exclude(std::uint64_t deadline_ns) const {
  if (pool_ == nullptr) return std::unique_ptr<Pool::Lock>();
  const std::uint64_t now_ns = platform_->now_ns();
  const std::uint64_t left_ms = deadline_ns > now_ns ? (deadline_ns - now_ns) / 1'000'000 : 0;
  return pool_->lock(lock_,
                     static_cast<std::uint32_t>(std::min<std::uint64_t>(left_ms, UINT32_MAX)));
}

Result<Decision> Agreement::propose(std::uint64_t number, const AgreementValue& value,
                                    std::uint64_t deadline_ns) {
  if (number == 0) return error(Code::invalid_argument, "decisions are numbered from 1");
  PENSTOCK_ASSIGN(const auto lock, exclude(deadline_ns));
  if (number > known_.number + 1) {
    PENSTOCK_ASSIGN(const Decision newest, latest_excluded(deadline_ns));
    if (number > newest.number + 1) {
      return error(Code::invalid_argument,
                   "decision {} cannot be proposed: the newest one is {}, so that the next is {}",
                   number, newest.number, newest.number + 1);
    }
  }
  return propose_excluded(number, value, deadline_ns);
}

Result<Decision> Agreement::propose_excluded(std::uint64_t number, const AgreementValue& value,
                                             std::uint64_t deadline_ns) {
  if (number + space_.depth <= known_.number) return recycled(number, space_.depth);
  Ballot ballot(*platform_, AgreementBlocks(memory_, space_), participant_, number, value);
  while (true) {
    switch (ballot.step()) {
      case Ballot::State::running:
        break;
      case Ballot::State::decided: {
        const Decision decision{number, ballot.value()};
        if (number > known_.number) known_ = decision;
        return decision;
      }
      case Ballot::State::recycled:
        return recycled(number, space_.depth);
      case Ballot::State::damaged:
        return unreadable_block(ballot.slot(), ballot.block_at_fault());
      case Ballot::State::lost:
        if (platform_->now_ns() >= deadline_ns) {
          return error(Code::deadline_exceeded,
                       "decision {} was not reached: participant {} lost {} ballots to others",
                       number, participant_, ballot.attempts());
        }
        pause(*platform_, ballot.attempts(), deadline_ns);
        break;
    }
  }
}

Result<std::optional<Decision>> Agreement::decided(std::uint64_t number,
                                                   std::uint64_t deadline_ns) {
  if (number == 0) return error(Code::invalid_argument, "decisions are numbered from 1");
  PENSTOCK_ASSIGN(const auto lock, exclude(deadline_ns));
  const AgreementBlocks blocks(memory_, space_);
  const std::uint32_t slot = blocks.slot_of(number);
  for (std::uint32_t participant = 0; participant < space_.participants; ++participant) {
    PENSTOCK_ASSIGN(const AgreementRecord record, blocks.load_settled(slot, participant));
    if (record.number > number) return recycled(number, space_.depth);
    if (record.number == number && record.decided == 1) {
      const Decision decision{number, record.value};
      if (number > known_.number) known_ = decision;
      return std::optional<Decision>(decision);
    }
  }
  return std::optional<Decision>();
}

Result<Decision> Agreement::latest(std::uint64_t deadline_ns) {
  PENSTOCK_ASSIGN(const auto lock, exclude(deadline_ns));
  return latest_excluded(deadline_ns);
}

// Blocks are read one after the other while the history may move on. A block about number n says
// that n - 1 was decided; if the scan has not come across that one, it missed it in passing.
Result<Decision> Agreement::latest_excluded(std::uint64_t deadline_ns) {
  const AgreementBlocks blocks(memory_, space_);
  for (std::uint32_t attempt = 1;; ++attempt) {
    std::uint64_t seen = 0;
    for (std::uint32_t slot = 0; slot < space_.depth; ++slot) {
      for (std::uint32_t participant = 0; participant < space_.participants; ++participant) {
        PENSTOCK_ASSIGN(const AgreementRecord record, blocks.load_settled(slot, participant));
        seen = std::max(seen, record.number);
        if (record.decided == 1 && record.number > known_.number) {
          known_ = {record.number, record.value};
        }
      }
    }
    if (known_.number + 1 >= seen) return known_;
    if (platform_->now_ns() >= deadline_ns) {
      return error(Code::deadline_exceeded,
                   "the newest decision was not found: number {} is under way, but {} is the last "
                   "one that was read",
                   seen, known_.number);
    }
    pause(*platform_, attempt, deadline_ns);
  }
}

Result<Decision> Agreement::update(const Next& next, std::uint64_t deadline_ns) {
  PENSTOCK_ASSIGN(const auto lock, exclude(deadline_ns));
  for (std::uint32_t attempt = 1;; ++attempt) {
    PENSTOCK_ASSIGN(const Decision newest, latest_excluded(deadline_ns));
    const std::optional<AgreementValue> value = next(newest);
    if (!value) return newest;
    Result<Decision> decision = propose_excluded(newest.number + 1, *value, deadline_ns);
    // Recycled: others were faster, twice.
    if (!decision.ok() && decision.status().code() != Code::out_of_range) return decision;
    if (decision.ok() && decision->value == *value) return decision;
    if (platform_->now_ns() >= deadline_ns) {
      return error(Code::deadline_exceeded,
                   "participant {} proposed {} times, and another's value was decided each time",
                   participant_, attempt);
    }
  }
}

}  // namespace penstock
