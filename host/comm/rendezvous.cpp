#include "penstock/comm/rendezvous.h"

#include <algorithm>
#include <cstring>

#include "penstock/base/log.h"

namespace penstock {
namespace {

constexpr std::uint32_t kCommsLock = 1;
constexpr std::uint64_t kPollNs = 50'000;
constexpr std::uint64_t kSurveyNs = 10'000'000;
constexpr std::uint32_t kLeaveTimeoutMs = 2000;
constexpr std::uint64_t kMinRankBytes = 4096;
constexpr std::uint32_t kMaxInlineLines = 256;

// Room for 4 KiB from one rank to another, less with many pairs.
std::uint32_t pair_inline_lines(std::uint32_t size) { return size <= 8 ? 76 : size <= 16 ? 16 : 2; }

// Half of a pair lane: a quarter of what a rank moves per pass (256 KiB), less when there are so
// many pairs that all of them together would take more than 16 MiB.
std::uint64_t pair_half_bytes(std::uint64_t size, std::uint64_t rank_bytes) {
  const std::uint64_t share = (std::uint64_t{8} << 20) / (size * size);
  return std::clamp<std::uint64_t>(share / 4096 * 4096, 4096,
                                   std::max<std::uint64_t>(rank_bytes / 4 / 4096 * 4096, 4096));
}

Status check_config(const CommConfig& config) {
  if (config.name.empty() || config.name.size() > 31) {
    return error(Code::invalid_argument, "comm name '{}' has {} bytes; 1 to 31 are allowed",
                 config.name, config.name.size());
  }
  if (config.size < 1 || config.size > kMaxRanks) {
    return error(Code::invalid_argument, "comm '{}' of {} ranks; 1 to {} are supported",
                 config.name, config.size, kMaxRanks);
  }
  if (config.rank >= config.size) {
    return error(Code::invalid_argument, "rank {} of comm '{}', which has {} ranks (0 to {})",
                 config.rank, config.name, config.size, config.size - 1);
  }
  if (config.timeout_ms == 0) {
    return error(Code::invalid_argument, "comm '{}': timeout of 0 ms; at least 1", config.name);
  }
  return {};
}

}  // namespace

std::byte* Membership::at(std::uint64_t offset, std::uint64_t bytes) const {
  std::byte* place = pool_.resolve(control_.address + offset, bytes);
  PENSTOCK_CHECK(place != nullptr, "control region of comm '{}' lies outside the pool", name_);
  return place;
}

std::string Membership::scratch_name(std::uint32_t payload_device) const {
  return fmt::format("{}/scratch.{}", name_, payload_device);
}

ControlMember Membership::read_member(std::uint32_t rank) const {
  const std::byte* line = at(ControlLayout(header_.size).member(rank), sizeof(ControlMember));
  pool_.observe(line, sizeof(ControlMember));
  ControlMember member;
  std::memcpy(&member, line, sizeof(member));
  return member;
}

Liveness Membership::liveness(const ControlMember& member) const {
  Lease lease;
  lease.host = member.host;
  lease.lock_slot = member.lock_slot;
  lease.process = {member.boot_id, member.start_time, member.pid_namespace, member.pid};
  return pool_.liveness(lease);
}

std::string Membership::describe(std::uint32_t rank) const {
  return fmt::format("rank {} (pid {})", rank, read_member(rank).pid);
}

std::uint32_t Membership::find_dead() const {
  for (std::uint32_t rank = 0; rank < size(); ++rank) {
    if (rank == rank_) continue;
    const ControlMember member = read_member(rank);
    if (member.state == MemberState::joined && liveness(member) == Liveness::dead) return rank;
  }
  return kNoRank;
}

std::uint32_t Membership::find_aborted(Status* reason) const {
  for (std::uint32_t rank = 0; rank < size(); ++rank) {
    if (rank == rank_) continue;
    const std::byte* line = at(ControlLayout(header_.size).abort(rank), sizeof(ControlAbort));
    pool_.observe(line, sizeof(ControlAbort));
    ControlAbort abort;
    std::memcpy(&abort, line, sizeof(abort));
    if (abort.code == 0) continue;
    abort.reason[sizeof(abort.reason) - 1] = '\0';
    *reason = error(Code::revoked, "comm '{}' was revoked by {}: {}", name_, describe(rank),
                    abort.reason);
    return rank;
  }
  return kNoRank;
}

void Membership::announce_abort(const Status& reason, std::uint32_t culprit) {
  if (aborted_ || !joined_) return;
  aborted_ = true;
  ControlAbort abort{};
  abort.code = static_cast<std::uint32_t>(reason.code());
  abort.culprit = culprit;
  std::strncpy(abort.reason, reason.message().c_str(), sizeof(abort.reason) - 1);
  std::byte* line = at(ControlLayout(header_.size).abort(rank_), sizeof(abort));
  // The text first: a reader that sees the code sees the reason.
  std::memcpy(line + 4, reinterpret_cast<const char*>(&abort) + 4, sizeof(abort) - 4);
  pool_.publish(line, sizeof(abort));
  pool_.platform().store_fence();
  std::memcpy(line, &abort.code, sizeof(abort.code));
  pool_.publish(line, sizeof(abort.code));
  pool_.platform().store_fence();
}

Result<std::unique_ptr<Membership>> Membership::join(Pool& pool, const CommConfig& config,
                                                     std::uint64_t flags) {
  PENSTOCK_TRY(check_config(config));
  std::unique_ptr<Membership> membership(new Membership(pool, config, flags));
  const std::uint64_t deadline_ns =
      pool.platform().now_ns() + std::uint64_t{config.timeout_ms} * 1'000'000;
  for (;;) {
    PENSTOCK_ASSIGN(const Attempt attempt, membership->try_join(config, deadline_ns));
    if (attempt == Attempt::met) return membership;
    if (pool.platform().now_ns() > deadline_ns) {
      return error(Code::deadline_exceeded,
                   "comm '{}': an earlier comm of this name was still in use after {} ms",
                   config.name, config.timeout_ms);
    }
    pool.platform().sleep_ns(kPollNs);
  }
}

// Enters the record of this name, or makes it; then waits for the others outside of the lock.
Result<Membership::Attempt> Membership::try_join(const CommConfig& config,
                                                 std::uint64_t deadline_ns) {
  {
    PENSTOCK_ASSIGN(auto lock, pool_.lock(kCommsLock, config.timeout_ms));
    auto found = pool_.find(RegionKind::comm, config.name);
    if (!found.ok() && found.status().code() != Code::not_found) return found.status();
    bool usable = false;
    if (found.ok()) {
      control_ = *found;
      auto adopted = adopt_existing(config);
      if (!adopted.ok()) {
        if (adopted.status().code() == Code::busy) return Attempt::retry;
        return adopted.status();
      }
      usable = *adopted;
      if (!usable) free_regions();
    }
    if (!usable) PENSTOCK_TRY(make_regions(config));
    PENSTOCK_TRY(enter());
  }
  auto attempt = wait_for_all(deadline_ns);
  if (!attempt.ok() || *attempt == Attempt::retry) leave();
  return attempt;
}

// Reads the record at control_. False: a leftover, to be freed. busy: a comm that is still being
// used; the caller comes back later.
Result<bool> Membership::adopt_existing(const CommConfig& config) {
  const std::byte* line = pool_.resolve(control_.address, sizeof(ControlHeader));
  if (line == nullptr || control_.bytes < ControlLayout(1).bytes()) return false;
  pool_.observe(line, ControlLayout(1).member(0));
  std::memcpy(&header_, line, sizeof(header_));
  std::memcpy(&scratch_, line + ControlLayout(1).scratch(), sizeof(scratch_));
  std::memcpy(&tuning_, line + ControlLayout(1).tuning(), sizeof(tuning_));
  if (header_.magic != kControlMagic || header_.ready != 1) return false;
  if (header_.version != kControlVersion) {
    return error(Code::unsupported, "comm '{}' was made by version {}; this is version {}", name_,
                 header_.version, kControlVersion);
  }
  if (header_.size < 1 || header_.size > kMaxRanks || header_.payload_devices < 1 ||
      header_.payload_devices > PENSTOCK_MAX_DEVICES ||
      tuning_.inline_lines > kMaxInlineLines || tuning_.pair_inline_lines > kMaxInlineLines ||
      control_.bytes < layout().bytes() || !check_tuning(tuning_.tuning).ok()) {
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
  std::uint32_t present = 0;
  std::uint32_t living = 0;
  std::uint32_t lost = 0;
  for (std::uint32_t rank = 0; rank < header_.size; ++rank) {
    const ControlMember member = read_member(rank);
    if (member.state == MemberState::absent) continue;
    ++present;
    if (member.state == MemberState::left) continue;
    const bool gone = member.state == MemberState::withdrew || liveness(member) == Liveness::dead;
    ++(gone ? lost : living);
  }
  if (living == 0) return false;
  // Whoever still lives in a comm that lost a rank notices it and leaves; until the last has left,
  // its memory is nobody else's.
  if (lost > 0) return error(Code::busy, "comm '{}' is being left", name_);
  if (header_.size != config.size) {
    return error(Code::mismatch, "comm '{}' has {} ranks, but rank {} joined it as one of {}",
                 name_, header_.size, rank_, config.size);
  }
  const ControlMember mine = read_member(rank_);
  if (mine.state == MemberState::joined) {
    return error(Code::already_exists, "rank {} of comm '{}' is held by pid {}, which is alive",
                 rank_, name_, mine.pid);
  }
  if (present == header_.size || mine.state == MemberState::left) {
    return error(Code::busy, "comm '{}' is being left", name_);
  }
  return true;
}

Status Membership::make_regions(const CommConfig& config) {
  RegionRequest request;
  request.name = config.name;
  request.kind = RegionKind::comm;
  request.device = 0;
  tuning_ = {};
  tuning_.tuning = config.tuning;
  tuning_.inline_lines = kMaxInlineLines;
  tuning_.pair_inline_lines = pair_inline_lines(config.size);
  header_.size = config.size;
  // Less room for inlined blocks if there is not enough.
  for (;;) {
    request.bytes = layout().bytes();
    auto region = pool_.allocate(request);
    if (region.ok()) {
      control_ = *region;
      break;
    }
    if (region.status().code() != Code::no_space || tuning_.inline_lines <= 1) {
      return region.status();
    }
    tuning_.inline_lines /= 4;
    tuning_.pair_inline_lines = std::max(1u, tuning_.pair_inline_lines / 4);
  }

  ControlHeader header{};
  header.magic = kControlMagic;
  header.version = kControlVersion;
  header.size = config.size;
  header.epoch = control_.generation;
  // Fences stay on device 0; payload goes to the others where there are others.
  header.payload_devices = std::max(1u, pool_.device_count() - 1);
  header_ = header;
  ControlScratch scratch{};
  if (Status status = place_scratch(config, header.payload_devices, &header, &scratch);
      !status.ok()) {
    free_regions();
    return status;
  }

  std::byte* base = pool_.resolve(control_.address, control_.bytes);
  PENSTOCK_CHECK(base != nullptr, "a fresh region lies outside the pool");
  std::memset(base, 0, control_.bytes);
  std::memcpy(base + layout().scratch(), &scratch, sizeof(scratch));
  std::memcpy(base + layout().tuning(), &tuning_, sizeof(tuning_));
  std::memcpy(base, &header, sizeof(header));
  pool_.publish(base, control_.bytes);
  pool_.platform().store_fence();
  header.ready = 1;
  std::memcpy(base, &header, sizeof(header));
  pool_.publish(base, sizeof(header));
  pool_.platform().store_fence();
  header_ = header;
  scratch_ = scratch;
  return {};
}

// Halves the payload of a pass until the scratch regions fit.
Status Membership::place_scratch(const CommConfig& config, std::uint32_t payload_devices,
                                 ControlHeader* header, ControlScratch* scratch) {
  const Topology topology{config.size, payload_devices};
  const std::uint32_t first = pool_.device_count() > 1 ? 1 : 0;
  Status last;
  for (std::uint64_t rank_bytes = std::max(config.rank_bytes, kMinRankBytes);
       rank_bytes >= kMinRankBytes; rank_bytes /= 2) {
    header->rank_bytes = rank_bytes;
    header->pair_bytes = pair_half_bytes(config.size, rank_bytes);
    header->half_bytes = (scratch_half_bytes(topology, rank_bytes) + 4095) / 4096 * 4096;
    const std::uint64_t pairs = std::uint64_t{config.size} * config.size;
    const std::uint64_t pairs_here = (pairs + payload_devices - 1) / payload_devices;
    header->scratch_bytes = 2 * header->half_bytes + 2 * pairs_here * header->pair_bytes;
    scratch_regions_.clear();
    last = Status();
    for (std::uint32_t d = 0; d < payload_devices && last.ok(); ++d) {
      RegionRequest request;
      request.name = scratch_name(d);
      request.kind = RegionKind::comm;
      request.bytes = header->scratch_bytes;
      request.device = static_cast<std::int32_t>(first + d);
      auto region = pool_.allocate(request);
      if (!region.ok()) {
        last = region.status();
        break;
      }
      scratch_regions_.push_back(*region);
      scratch->address[d] = region->address;
    }
    if (last.ok()) return {};
    for (const Region& region : scratch_regions_) (void)pool_.free(region);
    scratch_regions_.clear();
    if (last.code() != Code::no_space) return last;
  }
  return last.with_context(fmt::format("scratch memory of comm '{}'", config.name));
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
  std::byte* line = at(ControlLayout(header_.size).member(rank_), sizeof(member));
  std::memcpy(line, &member, sizeof(member));
  pool_.publish(line, sizeof(member));
  pool_.platform().store_fence();
  joined_ = true;
  return {};
}

Result<Membership::Attempt> Membership::wait_for_all(std::uint64_t deadline_ns) {
  Platform& platform = pool_.platform();
  std::uint64_t next_survey = platform.now_ns() + kSurveyNs;
  std::uint32_t arrived = 0;  // ranks below have been seen
  for (;;) {
    while (arrived < size()) {
      const MemberState state = read_member(arrived).state;
      if (state == MemberState::withdrew) return Attempt::retry;
      if (state == MemberState::absent) break;
      ++arrived;
    }
    if (arrived == size()) {
      met_ = true;
      return Attempt::met;
    }
    const std::uint64_t now = platform.now_ns();
    if (now > deadline_ns) return timed_out();
    if (now > next_survey) {
      next_survey = now + kSurveyNs;
      if (find_dead() != kNoRank) return Attempt::retry;
    }
    platform.sleep_ns(kPollNs);
  }
}

Status Membership::timed_out() const {
  std::string missing;
  for (std::uint32_t rank = 0; rank < size(); ++rank) {
    if (read_member(rank).state != MemberState::absent) continue;
    missing += missing.empty() ? fmt::format("{}", rank) : fmt::format(", {}", rank);
  }
  return error(Code::deadline_exceeded,
               "comm '{}' of {} ranks: no sign of rank {} in pool {} before the deadline", name_,
               size(), missing, pool_.spec());
}

void Membership::free_regions() {
  for (const Region& region : scratch_regions_) (void)pool_.free(region);
  // A record whose header is garbage does not say where its scratch regions are: go by name.
  for (std::uint32_t d = 0; d < PENSTOCK_MAX_DEVICES; ++d) {
    auto region = pool_.find(RegionKind::comm, scratch_name(d));
    if (region.ok()) (void)pool_.free(*region);
  }
  (void)pool_.free(control_);
  scratch_regions_.clear();
}

void Membership::leave() {
  if (!joined_) return;
  joined_ = false;
  auto lock = pool_.lock(kCommsLock, kLeaveTimeoutMs);
  if (!lock.ok()) {
    log::warn("leaving comm '{}': {}", name_, lock.status().message());
    return;  // the lease tells others when this process is gone
  }
  auto found = pool_.find(RegionKind::comm, name_);
  if (!found.ok() || found->generation != control_.generation) return;  // freed by force
  ControlMember member = read_member(rank_);
  member.state = met_ ? MemberState::left : MemberState::withdrew;
  std::byte* line = at(ControlLayout(header_.size).member(rank_), sizeof(member));
  std::memcpy(line, &member, sizeof(member));
  pool_.publish(line, sizeof(member));
  pool_.platform().store_fence();
  bool others = false;
  for (std::uint32_t rank = 0; rank < size(); ++rank) {
    const ControlMember other = read_member(rank);
    others |= other.state == MemberState::joined && liveness(other) != Liveness::dead;
  }
  if (!others) {
    free_regions();
    return;
  }
  for (const Region& region : scratch_regions_) (void)pool_.drop(region);
  (void)pool_.drop(control_);
}

Membership::~Membership() { leave(); }

}  // namespace penstock
