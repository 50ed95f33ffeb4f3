// How the ranks of a comm meet.
#include "penstock/comm/rendezvous.h"

#include <algorithm>
#include <cstring>

#include "penstock/comm/rendezvous_internal.h"

namespace penstock {
namespace {

constexpr std::uint64_t kPollNs = 50'000;
constexpr std::uint64_t kSurveyNs = 10'000'000;
// Whoever is missing may have reached the same deadline a moment ago, waiting for a third: what it
// announces then names the culprit, which this rank cannot know.
constexpr std::uint64_t kLastLookNs = 100'000'000;

Status check_config(const CommConfig& config) {
  if (config.name.empty() || config.name.size() > 31) {
    return error(Code::invalid_argument, "comm name '{}' has {} bytes; 1 to 31 are allowed",
                 config.name, config.name.size());
  }
  if (config.timeout_ms == 0) {
    return error(Code::invalid_argument, "comm '{}': timeout of 0 ms; at least 1", config.name);
  }
  if (config.newcomer) return {};  // the comm that grows tells rank and size
  if (config.size < 1 || config.size > kMaxRanks) {
    return error(Code::invalid_argument, "comm '{}' of {} ranks; 1 to {} are supported",
                 config.name, config.size, kMaxRanks);
  }
  if (config.rank >= config.size) {
    return error(Code::invalid_argument, "rank {} of comm '{}', which has {} ranks (0 to {})",
                 config.rank, config.name, config.size, config.size - 1);
  }
  if (config.group > 1 && config.size % config.group != 0) {
    return error(Code::invalid_argument,
                 "comm '{}' of {} ranks in groups of {}: the group must divide the ranks",
                 config.name, config.size, config.group);
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<Membership>> Membership::join(Pool& pool, const CommConfig& config,
                                                     std::uint64_t flags) {
  PENSTOCK_TRY(check_config(config));
  Meeting meeting;
  meeting.region = config.name;
  meeting.rank = config.rank;
  meeting.size = config.size;
  return meet(pool, config, flags, std::move(meeting));
}

Result<std::unique_ptr<Membership>> Membership::meet(Pool& pool, const CommConfig& config,
                                                     std::uint64_t flags, Meeting meeting) {
  Platform& platform = pool.platform();
  const std::uint64_t deadline_ns =
      platform.now_ns() + std::uint64_t{config.timeout_ms} * 1'000'000;
  std::unique_ptr<Membership> membership(new Membership(pool, config, flags, std::move(meeting)));
  std::uint64_t next_look = platform.now_ns() + kSurveyNs;
  for (;;) {
    PENSTOCK_ASSIGN(const Attempt attempt, membership->try_meet(config, deadline_ns));
    if (attempt == Attempt::met) {
      membership->forget_meeting();
      return membership;
    }
    const std::uint64_t now = platform.now_ns();
    if (now > deadline_ns) return membership->still_in_use(config.timeout_ms);
    if (now > next_look) {
      next_look = now + kSurveyNs;
      if (membership->meeting_.watch) PENSTOCK_TRY(membership->meeting_.watch());
    }
    platform.sleep_ns(kPollNs);
  }
}

Status Membership::still_in_use(std::uint32_t timeout_ms) const {
  if (newcomer_) {
    return error(Code::deadline_exceeded,
                 "no comm '{}' of pool {} took in a newcomer within {} ms; its members have to "
                 "call grow",
                 name_, pool_.spec(), timeout_ms);
  }
  return error(Code::deadline_exceeded,
               "comm '{}': an earlier comm of this name was still in use after {} ms{}", name_,
               timeout_ms, blocker_);
}

// Takes a place, then waits for the others outside of the lock.
Result<Membership::Attempt> Membership::try_meet(const CommConfig& config,
                                                 std::uint64_t deadline_ns) {
  PENSTOCK_ASSIGN(const Attempt placed, take_place(config));
  if (placed == Attempt::retry) return placed;
  auto attempt = wait_for_all(deadline_ns);
  if (attempt.ok() && *attempt == Attempt::met) return attempt;
  if (withdraw()) return attempt;
  met_ = true;  // the last came before this rank had withdrawn
  return Attempt::met;
}

// Enters the record of this name, or makes it. On `met` this rank is joined.
Result<Membership::Attempt> Membership::take_place(const CommConfig& config) {
  PENSTOCK_ASSIGN(auto lock, pool_.lock(kCommsLock, config.timeout_ms));
  if (newcomer_) {
    PENSTOCK_ASSIGN(const Attempt found, find_growing());
    return found == Attempt::retry ? found : enter_or_retry();
  }
  auto found = pool_.find(RegionKind::comm, meeting_.region);
  if (!found.ok() && found.status().code() != Code::not_found) return found.status();
  bool usable = false;
  if (found.ok()) {
    control_ = *found;
    auto adopted = adopt_existing();
    if (!adopted.ok()) {
      if (adopted.status().code() == Code::busy) return Attempt::retry;
      return adopted.status();
    }
    usable = *adopted;
    if (!usable) free_regions();
  }
  if (!usable) {
    if (Status made = make_regions(config); !made.ok()) {
      // A rank of another host made them at the same time.
      if (made.code() == Code::already_exists && pool_hosts() > 1) return Attempt::retry;
      return made;
    }
  }
  return enter_or_retry();
}

// On other hosts no lock keeps others from freeing what was just found.
Result<Membership::Attempt> Membership::enter_or_retry() {
  const bool alone = pool_hosts() == 1;
  if (Status entered = enter(); !entered.ok()) {
    if (!alone && entered.code() == Code::not_found) return Attempt::retry;
    return entered;
  }
  if (alone) return Attempt::met;
  const auto found = pool_.find(RegionKind::comm, meeting_.region);
  if (found.ok() && found.value().generation == control_.generation) return Attempt::met;
  joined_ = false;
  return Attempt::retry;
}

// A comm of this name that grows and has a place: region, rank and size come from it.
Result<Membership::Attempt> Membership::find_growing() {
  for (const RegionInfo& info : pool_.regions()) {
    if (info.kind != RegionKind::comm || info.name.rfind(name_ + "+", 0) != 0 ||
        is_scratch(info.name)) {
      continue;
    }
    control_ = info.region;
    meeting_.region = info.name;
    if (!read_header() || header_.version != kControlVersion) continue;
    const Presence presence = survey_members();
    if (presence.living == 0 || presence.lost) continue;
    for (std::uint32_t rank = life_header().settled; rank < header_.size; ++rank) {
      if (read_member(rank).state != MemberState::absent) continue;
      meeting_.rank = rank;
      meeting_.size = header_.size;
      return Attempt::met;
    }
  }
  return Attempt::retry;
}

// Reads the record at control_, with its scratch regions. False: it is none.
bool Membership::read_header() {
  const std::byte* line = pool_.resolve(control_.address, sizeof(ControlHeader));
  if (line == nullptr || control_.bytes < ControlLayout(1).bytes()) return false;
  pool_.observe(line, ControlLayout(1).member(0));
  std::memcpy(&header_, line, sizeof(header_));
  std::memcpy(&scratch_, line + ControlLayout(1).scratch(), sizeof(scratch_));
  std::memcpy(&tuning_, line + ControlLayout(1).tuning(), sizeof(tuning_));
  if (header_.magic != kControlMagic || header_.ready != 1) return false;
  if (header_.version != kControlVersion) return true;  // for the caller to refuse
  if (header_.size < 1 || header_.size > kMaxRanks || header_.payload_devices < 1 ||
      header_.payload_devices > PENSTOCK_MAX_DEVICES || tuning_.inline_lines > kMaxInlineLines ||
      tuning_.pair_inline_lines > kMaxInlineLines || control_.bytes < life().bytes() ||
      !check_tuning(tuning_.tuning).ok()) {
    return false;
  }
  scratch_regions_.clear();
  for (std::uint32_t d = 0; d < header_.payload_devices; ++d) {
    auto region = pool_.find(RegionKind::comm, scratch_name(d));
    if (!region.ok() || region->address != scratch_.address[d] ||
        region->bytes < header_.scratch_bytes) {
      return false;
    }
    scratch_regions_.push_back(*region);
  }
  return true;
}

// False: a leftover, to be freed. busy: a comm that is still being used; the caller comes back
// later.
Result<bool> Membership::adopt_existing() {
  if (!read_header()) {
    // On another host no lock tells whether its maker is still at it.
    for (const RegionInfo& info : pool_.regions()) {
      if (info.region.generation == control_.generation && info.lease.host != pool_.host_id()) {
        return error(Code::busy, "comm '{}' is being made", name_);
      }
    }
    return false;
  }
  if (header_.version != kControlVersion) {
    return error(Code::unsupported, "comm '{}' was made by version {}; this is version {}", name_,
                 header_.version, kControlVersion);
  }
  const Presence presence = survey_members();
  if (presence.living == 0) {
    if (life_header().maker_host == pool_.host_id()) return false;
    return error(Code::busy, "comm '{}' is freed by host {}", name_, life_header().maker_host);
  }
  // Whoever still lives in a comm that lost a rank notices it and leaves; until the last has left,
  // its memory is nobody else's.
  if (presence.lost || presence.left) return error(Code::busy, "comm '{}' is being left", name_);
  if (header_.size != meeting_.size) {
    return error(Code::mismatch, "comm '{}' has {} ranks, but rank {} joined it as one of {}",
                 name_, header_.size, rank(), meeting_.size);
  }
  const ControlMember mine = read_member(rank());
  if (mine.state == MemberState::joined) {
    return error(Code::already_exists, "rank {} of comm '{}' is held by pid {}, which is alive",
                 rank(), name_, mine.pid);
  }
  if (presence.present == header_.size) return error(Code::busy, "comm '{}' is full", name_);
  return true;
}

// Who of the record's ranks is there.
Membership::Presence Membership::survey_members() {
  Presence presence;
  blocker_.clear();
  for (std::uint32_t rank = 0; rank < header_.size; ++rank) {
    const ControlMember member = read_member(rank);
    if (member.state == MemberState::absent) continue;
    ++presence.present;
    if (member.state == MemberState::left) {
      presence.left = true;
      continue;
    }
    if (member.state == MemberState::withdrew || is_dead(rank, member)) {
      presence.lost = true;
      continue;
    }
    if (presence.living++ > 0) continue;
    const char state = pool_.platform().process_state(process_of(member));
    blocker_ = fmt::format(" by rank {} (pid {}){}", rank, member.pid,
                           is_stopped(state) ? ", which is stopped (state T)" : "");
  }
  return presence;
}

// Takes this rank's member line. Under the comms lock.
Status Membership::enter() {
  PENSTOCK_TRY(pool_.hold(control_));
  for (const Region& region : scratch_regions_) PENSTOCK_TRY(pool_.hold(region));
  const Lease lease = pool_.lease();
  ControlMember member{};
  member.boot_id = lease.process.boot_id;
  member.start_time = lease.process.start_time;
  member.pid_namespace = lease.process.pid_namespace;
  member.pid = lease.process.pid;
  member.host = lease.host;
  member.lock_slot = lease.lock_slot;
  member.state = MemberState::joined;
  member.flags = flags_;
  std::byte* line = at(layout().member(rank()), sizeof(member));
  std::memcpy(line, &member, sizeof(member));
  pool_.publish(line, sizeof(member));
  pool_.platform().store_fence();
  known_.assign(header_.size, ControlMember{});
  joined_ = true;
  met_ = false;
  return {};
}

bool Membership::all_came() const {
  for (std::uint32_t rank = 0; rank < size(); ++rank) {
    const MemberState state = read_member(rank).state;
    if (state == MemberState::absent || state == MemberState::withdrew) return false;
  }
  return true;
}

Result<Membership::Attempt> Membership::wait_for_all(std::uint64_t deadline_ns) {
  Platform& platform = pool_.platform();
  std::uint64_t next_look = platform.now_ns() + kSurveyNs;
  std::uint32_t arrived = 0;  // ranks below have been seen
  for (;;) {
    while (arrived < size()) {
      const ControlMember member = read_member(arrived);
      if (member.state == MemberState::withdrew) {
        if (!meeting_.fixed) return Attempt::retry;
        PENSTOCK_ASSIGN(const Attempt attempt, look_after());  // why it did
        if (attempt == Attempt::retry) return attempt;
        return error(Code::revoked, "comm '{}': {} gave up the meeting{}", name_, describe(arrived),
                     absent(""));
      }
      if (member.state == MemberState::absent) break;
      known_[arrived] = member;
      ++arrived;
    }
    if (arrived == size()) {
      const ControlMember& mine = known_[rank()];
      const Lease lease = pool_.lease();
      if (mine.pid != lease.process.pid || mine.lock_slot != lease.lock_slot ||
          mine.host != lease.host) {
        release();  // two of different hosts took the same place at once; the other's line stands
        return error(Code::already_exists, "rank {} of comm '{}' is held by pid {} of host {}",
                     rank(), name_, mine.pid, mine.host);
      }
      met_ = true;
      return Attempt::met;
    }
    const std::uint64_t now = platform.now_ns();
    if (now > deadline_ns && (!meeting_.watch || now > deadline_ns + kLastLookNs)) {
      return timed_out();
    }
    if (now > next_look) {
      next_look = now + kSurveyNs;
      PENSTOCK_ASSIGN(const Attempt attempt, look_after());
      if (attempt == Attempt::retry) return attempt;
    }
    platform.sleep_ns(kPollNs);
  }
}

// `met` while nothing speaks against waiting on.
Result<Membership::Attempt> Membership::look_after() {
  if (meeting_.watch) PENSTOCK_TRY(meeting_.watch());
  const std::uint32_t dead = find_dead();
  if (dead == kNoRank) return Attempt::met;
  if (!meeting_.fixed) return Attempt::retry;
  return error(Code::peer_dead, "comm '{}': {} died while the ranks met", name_, describe(dead));
}

// ": no sign of rank 2, ...": those who have not come, and of the others those who are stopped.
std::string Membership::absent(const char* when) const {
  std::string missing;
  std::string stopped;
  for (std::uint32_t rank = 0; rank < size(); ++rank) {
    const MemberState state = read_member(rank).state;
    if (state == MemberState::joined && rank != this->rank()) {
      const char process = process_state(rank);
      if (!is_stopped(process)) continue;
      stopped += fmt::format(
          "; {}, which has come, is stopped (state {}), and may hold a lock that "
          "others wait for",
          describe(rank), process);
    }
    if (state != MemberState::absent) continue;
    const std::string who = meeting_.describe ? meeting_.describe(rank) : fmt::format("{}", rank);
    missing += missing.empty() ? who : ", " + who;
  }
  if (missing.empty()) return stopped;
  return fmt::format(": no sign of {}{} in pool {}{}{}", meeting_.describe ? "" : "rank ", missing,
                     pool_.spec(), when, stopped);
}

Status Membership::timed_out() const {
  return error(Code::deadline_exceeded, "comm '{}' of {} ranks{}", name_, size(),
               absent(" before the deadline"));
}

// False if all have come after all. Under the lock under which they come, so that nobody has met
// those who withdraw.
bool Membership::withdraw() {
  if (!joined_) return true;
  auto lock = pool_.lock(kCommsLock, kLeaveTimeoutMs);
  if (lock.ok() && all_came()) return false;
  joined_ = false;
  if (!lock.ok()) return true;  // the lease tells others when this process is gone
  mark(MemberState::withdrew);
  give_back();
  return true;
}

}  // namespace penstock
