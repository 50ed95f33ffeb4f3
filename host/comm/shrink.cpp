// How those who are left of a comm agree on who they are.
//
// Each survivor says that it has come (LifeLine::shrinks) and waits for the others: until each has
// come, or is proven dead, or has left. A rank that others named because it passed a deadline is
// waited for a moment only, a little longer if it is not stopped: it may have been kept from
// running and come as soon as it hears of it. Any other, until the deadline passes here, too. Then
// they agree, with the agreement that lies in the comm's own region, and go on in attempts:
//
//   members  who is to meet: the first proposal that is decided
//            those meet in regions of their own, as dense ranks in the old order
//   met      all of them have come, and whoever sees that proposes it: the new comm stands
//   voided   one of them died or did not come in time, and whoever sees that proposes it: the next
//            attempt begins without that one
//
// Of met and voided only one is decided, so that nobody uses a comm that another gave up. A rank
// that comes late finds a decision without itself, and leaves. Nothing here needs a lock that a
// stopped rank could hold, except for the making of regions on its own host.
#include <bit>
#include <cstring>

#include "penstock/base/log.h"
#include "penstock/comm/rendezvous.h"
#include "penstock/comm/rendezvous_internal.h"

namespace penstock {
namespace {

constexpr std::uint64_t kPollNs = 50'000;
constexpr std::uint64_t kLookNs = 10'000'000;
// For a rank that passed a deadline before, and is stopped.
constexpr std::uint64_t kOverdueNs = 50'000'000;

RegroupRecord record_of(const Decision& decision) {
  return decision.number == 0 ? RegroupRecord{}
                              : from_agreement_value<RegroupRecord>(decision.value);
}

bool contains(std::uint64_t members, std::uint32_t rank) { return ((members >> rank) & 1) != 0; }

// Who is to meet in this attempt, or what a later one has come to.
Result<RegroupRecord> agree_on_members(Agreement& agreement, std::uint32_t attempt,
                                       std::uint64_t proposal, std::uint64_t deadline_ns) {
  const auto next = [&](const Decision& newest) -> std::optional<AgreementValue> {
    const RegroupRecord record = record_of(newest);
    if (record.phase != RegroupPhase::none && record.attempt >= attempt) return std::nullopt;
    return to_agreement_value(RegroupRecord{proposal, attempt, RegroupPhase::members});
  };
  PENSTOCK_ASSIGN(const Decision decision, agreement.update(next, deadline_ns));
  return record_of(decision);
}

// Whether the members of this attempt have met.
Result<bool> agree_on_verdict(Agreement& agreement, const RegroupRecord& members, bool met,
                              std::uint64_t deadline_ns) {
  const auto next = [&](const Decision& newest) -> std::optional<AgreementValue> {
    RegroupRecord record = record_of(newest);
    if (record.attempt != members.attempt || record.phase != RegroupPhase::members) {
      return std::nullopt;
    }
    record.phase = met ? RegroupPhase::met : RegroupPhase::voided;
    return to_agreement_value(record);
  };
  PENSTOCK_ASSIGN(const Decision decision, agreement.update(next, deadline_ns));
  const RegroupRecord record = record_of(decision);
  return record.attempt == members.attempt && record.phase == RegroupPhase::met;
}

}  // namespace

Result<Agreement> Membership::regroup() const {
  const AgreementSpace space{at(life().agreement(), agreement_bytes(size(), kRegroupDepth)), size(),
                             kRegroupDepth};
  return Agreement::open(pool_.platform(), pool_.coherence(), space, rank());
}

std::uint64_t Membership::offspring(char kind, std::uint64_t which, std::uint64_t detail) const {
  // FNV-1a over what tells one from another; the generation is random.
  std::uint64_t hash = 0xcbf29ce484222325;
  for (std::uint64_t word :
       {control_.generation, static_cast<std::uint64_t>(kind), which, detail}) {
    for (int byte = 0; byte < 8; ++byte, word >>= 8) {
      hash = (hash ^ (word & 0xff)) * 0x100000001b3;
    }
  }
  return hash;
}

bool Membership::gone(std::uint32_t rank) const {
  if (rank == this->rank()) return false;
  const ControlMember member = read_member(rank);
  return member.state != MemberState::joined || is_dead(rank, member);
}

// The ranks that are waited for no more after this time, because somebody named them for passing a
// deadline.
std::uint64_t Membership::overdue(std::uint64_t waited_ns) const {
  if (waited_ns < kOverdueNs) return 0;
  const bool all = waited_ns >= sign_counts_for_ns(timeout_ms_);
  std::uint64_t ranks = 0;
  for (std::uint32_t rank = 0; rank < size(); ++rank) {
    const std::byte* line = at(layout().abort(rank), sizeof(ControlAbort));
    pool_.observe(line, sizeof(ControlAbort));
    ControlAbort abort;
    std::memcpy(&abort, line, sizeof(abort));
    if (abort.code == static_cast<std::uint32_t>(Code::deadline_exceeded) &&
        abort.culprit < size() && (all || is_stopped(process_state(abort.culprit)))) {
      ranks |= std::uint64_t{1} << abort.culprit;
    }
  }
  return ranks;
}

// The ranks that have come, once nobody is waited for any more.
std::uint64_t Membership::wait_for_survivors(Agreement& agreement, std::uint64_t deadline_ns) {
  Platform& platform = pool_.platform();
  const std::uint64_t began_ns = platform.now_ns();
  std::uint64_t next_look = began_ns;
  std::uint64_t out = 0;  // dead, or left
  std::uint64_t late = 0;
  for (;;) {
    const std::uint64_t now = platform.now_ns();
    if (now >= next_look) {
      next_look = now + kLookNs;
      late = overdue(now - began_ns);
      for (std::uint32_t rank = 0; rank < size(); ++rank) {
        if (gone(rank)) out |= std::uint64_t{1} << rank;
      }
      auto decided = agreement.latest(deadline_ns);
      if (decided.ok() && decided->number > 0) late = ~std::uint64_t{0};  // without waiting
    }
    std::uint64_t come = std::uint64_t{1} << rank();
    bool waiting = false;
    for (std::uint32_t rank = 0; rank < size(); ++rank) {
      if (rank == this->rank() || contains(out, rank)) continue;
      if (read_life(rank).shrinks != 0) {
        come |= std::uint64_t{1} << rank;
      } else if (!contains(late, rank)) {
        waiting = true;
      }
    }
    if (!waiting || now > deadline_ns) return come;
    platform.sleep_ns(kPollNs);
  }
}

// Takes this rank's place in a meeting and waits for all; the place is kept also when it fails.
Status Membership::come_together(const CommConfig& config, std::uint64_t deadline_ns) {
  Platform& platform = pool_.platform();
  std::uint64_t next_look = platform.now_ns() + kLookNs;
  for (;;) {
    PENSTOCK_ASSIGN(const Attempt placed, take_place(config));
    if (placed == Attempt::met) break;
    const std::uint64_t now = platform.now_ns();
    if (now > deadline_ns) return still_in_use(config.timeout_ms);
    if (now > next_look) {
      next_look = now + kLookNs;
      PENSTOCK_TRY(meeting_.watch());
    }
    platform.sleep_ns(kPollNs);
  }
  return wait_for_all(deadline_ns).status();
}

// Who of an attempt's members can be in the next one.
std::uint64_t Membership::survivors_of(const Membership& next, const Status& came,
                                       std::uint64_t members) const {
  std::uint64_t left = members;
  std::uint32_t place = 0;
  for (std::uint32_t rank = 0; rank < size(); ++rank) {
    if (!contains(members, rank)) continue;
    const std::uint32_t there = place++;
    const bool absent = came.code() == Code::deadline_exceeded && next.joined_ &&
                        there != next.rank() &&
                        next.read_member(there).state == MemberState::absent;
    if (absent || gone(rank)) left &= ~(std::uint64_t{1} << rank);
  }
  return left;
}

Status Membership::without_me(std::uint64_t members) const {
  std::string who;
  for (std::uint32_t rank = 0; rank < size(); ++rank) {
    if (contains(members, rank)) who += fmt::format("{}{}", who.empty() ? "" : ", ", rank);
  }
  return error(Code::revoked,
               "comm '{}': ranks {} went on without rank {}, which did not come in time to shrink "
               "it; it can join as a newcomer when they grow",
               name_, who, rank());
}

Status Membership::voted_out() const {
  if (!joined_) return {};
  PENSTOCK_ASSIGN(Agreement agreement, regroup());
  PENSTOCK_ASSIGN(const Decision newest, agreement.latest(pool_.platform().now_ns() + kLookNs));
  const RegroupRecord record = record_of(newest);
  if (record.phase == RegroupPhase::none || contains(record.members, rank())) return {};
  return without_me(record.members);
}

Result<std::unique_ptr<Membership>> Membership::shrink(const CommConfig& config) {
  Platform& platform = pool_.platform();
  const std::uint64_t wait_ns = std::uint64_t{config.timeout_ms} * 1'000'000;
  std::byte* line = at(life().line(rank()), sizeof(LifeLine));
  LifeLine own = read_life(rank());
  own.shrinks = 1;
  std::memcpy(line, &own, sizeof(own));
  pool_.publish(line, sizeof(own));
  platform.store_fence();

  PENSTOCK_ASSIGN(Agreement agreement, regroup());
  std::uint64_t proposal = wait_for_survivors(agreement, platform.now_ns() + wait_ns);
  // Each attempt that fails loses a rank, or was voided by one that saw what this one did not.
  for (std::uint32_t attempt = 0; attempt < 2 * size() + 2;) {
    const std::uint64_t deadline_ns = platform.now_ns() + wait_ns;
    PENSTOCK_ASSIGN(const RegroupRecord record,
                    agree_on_members(agreement, attempt, proposal, deadline_ns));
    if (!contains(record.members, rank())) {
      leave();
      return without_me(record.members);
    }
    attempt = record.attempt + 1;
    Meeting meeting;
    meeting.region = fmt::format("~{:016x}", offspring('s', record.attempt, 0));
    meeting.rank = static_cast<std::uint32_t>(
        std::popcount(record.members & ((std::uint64_t{1} << rank()) - 1)));
    meeting.size = static_cast<std::uint32_t>(std::popcount(record.members));
    meeting.epoch = header_.epoch + 1;
    meeting.fixed = true;
    meeting.watch = [&]() -> Status {
      for (std::uint32_t rank = 0; rank < size(); ++rank) {
        if (contains(record.members, rank) && gone(rank)) {
          return error(Code::peer_dead, "comm '{}': {} died", name_, describe(rank));
        }
      }
      PENSTOCK_ASSIGN(const Decision newest, agreement.latest(deadline_ns));
      const RegroupRecord now = record_of(newest);
      if (now.attempt == record.attempt && now.phase == RegroupPhase::members) return {};
      return error(Code::revoked, "comm '{}': this attempt to shrink is over", name_);
    };
    meeting.describe = [&](std::uint32_t place) {
      std::uint64_t members = record.members;
      for (; place > 0; --place) members &= members - 1;
      return describe_with_state(static_cast<std::uint32_t>(std::countr_zero(members)));
    };
    std::unique_ptr<Membership> next(new Membership(pool_, config, flags_, std::move(meeting)));
    const Status came = record.phase == RegroupPhase::voided
                            ? error(Code::revoked, "comm '{}': voided before", name_)
                            : next->come_together(config, deadline_ns);
    PENSTOCK_ASSIGN(const bool met,
                    agree_on_verdict(agreement, record, came.ok(), platform.now_ns() + wait_ns));
    next->forget_meeting();
    if (met && next->joined_) {
      next->met_ = true;
      return next;
    }
    if (met) {
      return error(Code::internal, "comm '{}': its ranks met without rank {}, which they wait for",
                   name_, rank());
    }
    log::info("comm '{}': shrinking to {} ranks failed: {}", name_, next->meeting_.size,
              came.message());
    proposal = survivors_of(*next, came, record.members);
    next->leave();
    if (came.code() == Code::no_space) {
      leave();  // the others need not wait for it
      return came;
    }
  }
  return error(Code::deadline_exceeded,
               "comm '{}': its ranks could not agree on who is left, in {} attempts", name_,
               2 * size() + 2);
}

}  // namespace penstock
