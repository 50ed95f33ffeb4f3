// A place in a comm: its regions, its lines, and how it is given up.
#include <algorithm>
#include <cstring>

#include "penstock/base/log.h"
#include "penstock/comm/rendezvous.h"
#include "penstock/comm/rendezvous_internal.h"
#include "penstock/memory/agreement.h"
#include "penstock/memory/inline_block.h"

namespace penstock {
namespace {

constexpr std::uint64_t kMinRankBytes = 4096;
constexpr std::uint64_t kPollNs = 50'000;

constexpr std::uint32_t kSmallLines = 20;  // 1 KiB

// Room for a payload from one rank to another, less with many pairs.
std::uint32_t pair_inline_lines(const Tuning& tuning, std::uint32_t size) {
  const auto most = static_cast<std::uint32_t>(inline_lines(tuning.inline_bytes));
  return std::min(most, size <= 2    ? kMaxInlineLines
                        : size <= 8  ? kSmallLines
                        : size <= 16 ? 4u
                                     : 2u);
}

// Room for one payload to all, or a small one to every other rank.
std::uint32_t inline_lines_of(const Tuning& tuning, std::uint32_t size) {
  const auto lines = static_cast<std::uint32_t>(inline_lines(tuning.inline_bytes));
  return std::min(std::max(lines, std::min(lines, kSmallLines) * (size - 1)), kMaxInlineLines);
}

// Half of a pair lane: a quarter of what a rank moves per pass (256 KiB), less when there are so
// many pairs that all of them together would take more than 16 MiB.
std::uint64_t pair_half_bytes(std::uint64_t size, std::uint64_t rank_bytes) {
  const std::uint64_t share = (std::uint64_t{8} << 20) / (size * size);
  return std::clamp<std::uint64_t>(share / 4096 * 4096, 4096,
                                   std::max<std::uint64_t>(rank_bytes / 4 / 4096 * 4096, 4096));
}

}  // namespace

std::byte* Membership::at(std::uint64_t offset, std::uint64_t bytes) const {
  std::byte* place = pool_.resolve(control_.address + offset, bytes);
  PENSTOCK_CHECK(place != nullptr, "control region of comm '{}' lies outside the pool", name_);
  return place;
}

std::string Membership::scratch_name(std::uint32_t payload_device) const {
  return fmt::format("{}/scratch.{}", meeting_.region, payload_device);
}

std::uint32_t Membership::pool_hosts() const {
  const AgreementSpace space = pool_.agreement_space(0);
  return space.base == nullptr ? 1 : space.participants;
}

ControlMember Membership::read_member(std::uint32_t rank) const {
  const std::byte* line = at(layout().member(rank), sizeof(ControlMember));
  pool_.observe(line, sizeof(ControlMember));
  ControlMember member;
  std::memcpy(&member, line, sizeof(member));
  return member;
}

LifeHeader Membership::life_header() const {
  const std::byte* line = at(life().header(), sizeof(LifeHeader));
  pool_.observe(line, sizeof(LifeHeader));
  LifeHeader header;
  std::memcpy(&header, line, sizeof(header));
  return header;
}

LifeLine Membership::read_life(std::uint32_t rank) const {
  const std::byte* line = at(life().line(rank), sizeof(LifeLine));
  pool_.observe(line, sizeof(LifeLine));
  LifeLine life_line;
  std::memcpy(&life_line, line, sizeof(life_line));
  return life_line;
}

ProcessIdentity Membership::process_of(const ControlMember& member) const {
  return {member.boot_id, member.start_time, member.pid_namespace, member.pid};
}

Liveness Membership::liveness(const ControlMember& member) const {
  Lease lease;
  lease.host = member.host;
  lease.lock_slot = member.lock_slot;
  lease.process = process_of(member);
  return pool_.liveness(lease);
}

std::string Membership::describe(std::uint32_t rank) const {
  return fmt::format("rank {} (pid {})", rank, identity(rank).pid);
}

std::string Membership::describe_with_state(std::uint32_t rank) const {
  const char state = process_state(rank);
  if (!is_stopped(state)) return describe(rank);
  return fmt::format("rank {} (pid {}), which is stopped (state {})", rank, identity(rank).pid,
                     state);
}

char Membership::process_state(std::uint32_t rank) const {
  return pool_.platform().process_state(process_of(identity(rank)));
}

// Who holds the rank, also when its line can no longer be read.
ControlMember Membership::identity(std::uint32_t rank) const {
  return known_[rank].pid != 0 || !joined_ ? known_[rank] : read_member(rank);
}

bool Membership::is_dead(std::uint32_t rank, const ControlMember& member) const {
  if (member.state == MemberState::died) return true;
  if (member.state != MemberState::joined || liveness(member) != Liveness::dead) return false;
  // It may have left, and ended, after its line was read.
  const ControlMember last = read_member(rank);
  if (last.state != MemberState::joined) return last.state == MemberState::died;
  // Its line is its host's to write, so that the other hosts learn what they cannot find out.
  if (member.host == pool_.host_id()) write_state(rank, member, MemberState::died);
  return true;
}

std::uint32_t Membership::find_dead() const {
  for (std::uint32_t rank = 0; rank < size(); ++rank) {
    if (rank != this->rank() && is_dead(rank, read_member(rank))) return rank;
  }
  return kNoRank;
}

bool Membership::has_left(std::uint32_t rank) const {
  const MemberState state = read_member(rank).state;
  return state == MemberState::left || state == MemberState::withdrew;
}

std::uint32_t Membership::find_aborted(Status* reason) const {
  for (std::uint32_t rank = 0; rank < size(); ++rank) {
    if (rank == this->rank()) continue;
    const std::byte* line = at(layout().abort(rank), sizeof(ControlAbort));
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
  std::byte* line = at(layout().abort(rank()), sizeof(abort));
  // The text first: a reader that sees the code sees the reason.
  std::memcpy(line + 4, reinterpret_cast<const char*>(&abort) + 4, sizeof(abort) - 4);
  pool_.publish(line, sizeof(abort));
  pool_.platform().store_fence();
  std::memcpy(line, &abort.code, sizeof(abort.code));
  pool_.publish(line, sizeof(abort.code));
  pool_.platform().store_fence();
}

void Membership::beat(std::uint32_t waits_for) {
  if (!joined_) return;
  std::byte* line = at(life().line(rank()), sizeof(LifeLine));
  LifeLine own;
  std::memcpy(&own, line, sizeof(own));
  ++own.beats;
  own.waits_for = waits_for == kNoRank ? 0 : waits_for + 1;
  std::memcpy(line, &own, sizeof(own));
  pool_.publish(line, sizeof(own));
}

std::uint64_t Membership::beats_of(std::uint32_t rank, std::uint32_t* waits_for) const {
  const LifeLine other = read_life(rank);
  *waits_for = other.waits_for == 0 || other.waits_for > size() ? kNoRank : other.waits_for - 1;
  return other.beats;
}

Status Membership::make_regions(const CommConfig& config) {
  sweep();
  Status status;
  // Less room for inlined blocks if there is not enough for everything.
  for (std::uint32_t most = kMaxInlineLines; most > 0; most /= 4) {
    status = make_regions(config, most);
    if (status.code() != Code::no_space) break;
  }
  return status;
}

Status Membership::make_regions(const CommConfig& config, std::uint32_t most_inline_lines) {
  PENSTOCK_TRY(allocate_control(config, most_inline_lines));
  ControlHeader header{};
  header.magic = kControlMagic;
  header.version = kControlVersion;
  header.size = meeting_.size;
  header.epoch = meeting_.epoch;
  // Fences stay on device 0; payload goes to the others where there are others.
  header.payload_devices = std::max(1u, pool_.device_count() - 1);
  header_ = header;
  ControlScratch scratch{};
  if (Status status = place_scratch(config, header.payload_devices, &header, &scratch);
      !status.ok()) {
    free_regions();
    return status;
  }
  format(header, scratch);
  return {};
}

Status Membership::allocate_control(const CommConfig& config, std::uint32_t most_inline_lines) {
  RegionRequest request;
  request.name = meeting_.region;
  request.kind = RegionKind::comm;
  request.device = 0;
  // Between hosts no hold keeps the region of a maker that is gone: it stays until it is swept.
  request.persistent = pool_hosts() > 1;
  tuning_ = {};
  tuning_.tuning = config.tuning;
  tuning_.group = group_of(config, meeting_.size);
  tuning_.inline_lines = std::min(inline_lines_of(config.tuning, meeting_.size), most_inline_lines);
  tuning_.pair_inline_lines =
      std::min(pair_inline_lines(config.tuning, meeting_.size), most_inline_lines);
  header_.size = meeting_.size;
  request.bytes = life().bytes();
  PENSTOCK_ASSIGN(control_, pool_.allocate(request));
  return {};
}

// Everything first, `ready` last.
void Membership::format(const ControlHeader& made, const ControlScratch& scratch) {
  ControlHeader header = made;
  header_ = header;
  std::byte* base = pool_.resolve(control_.address, control_.bytes);
  PENSTOCK_CHECK(base != nullptr, "a fresh region lies outside the pool");
  std::memset(base, 0, control_.bytes);
  std::memcpy(base + layout().scratch(), &scratch, sizeof(scratch));
  std::memcpy(base + layout().tuning(), &tuning_, sizeof(tuning_));
  const LifeHeader life_header{pool_.host_id(), meeting_.settled};
  std::memcpy(base + life().header(), &life_header, sizeof(life_header));
  format_agreement(pool_.platform(), pool_.coherence(),
                   {base + life().agreement(), header.size, kRegroupDepth});
  std::memcpy(base, &header, sizeof(header));
  pool_.publish(base, control_.bytes);
  pool_.platform().store_fence();
  header.ready = 1;
  std::memcpy(base, &header, sizeof(header));
  pool_.publish(base, sizeof(header));
  pool_.platform().store_fence();
  header_ = header;
  scratch_ = scratch;
}

// Halves the payload of a pass until the scratch regions fit.
Status Membership::place_scratch(const CommConfig& config, std::uint32_t payload_devices,
                                 ControlHeader* header, ControlScratch* scratch) {
  const Topology topology{meeting_.size, payload_devices};
  const std::uint32_t first = pool_.device_count() > 1 ? 1 : 0;
  Status last;
  for (std::uint64_t rank_bytes = std::max(config.rank_bytes, kMinRankBytes);
       rank_bytes >= kMinRankBytes; rank_bytes /= 2) {
    header->rank_bytes = rank_bytes;
    header->pair_bytes = pair_half_bytes(meeting_.size, rank_bytes);
    header->half_bytes = (scratch_half_bytes(topology, rank_bytes) + 4095) / 4096 * 4096;
    const std::uint64_t pairs = std::uint64_t{meeting_.size} * meeting_.size;
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
      request.persistent = pool_hosts() > 1;
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

// Frees what comms left whose last member was killed or never came to leave. Under the comms lock,
// so that whatever is not abandoned is held by somebody.
void Membership::sweep() {
  for (const RegionInfo& info : pool_.regions()) {
    if (info.kind != RegionKind::comm || is_scratch(info.name) ||
        info.lease.host != pool_.host_id()) {
      continue;
    }
    CommConfig config;
    config.name = info.name;
    Meeting meeting;
    meeting.region = info.name;
    Membership other(pool_, config, 0, std::move(meeting));
    other.control_ = info.region;
    if (!other.is_abandoned(info)) continue;
    log::info("pool {}: frees what the members of comm '{}' left", pool_.spec(), info.name);
    other.free_regions();
  }
}

bool Membership::is_abandoned(const RegionInfo& info) {
  // Of another version: whoever made it knows what it is, as long as it lives.
  if (!read_header() || header_.version != kControlVersion) return info.owner == Liveness::dead;
  return survey_members().living == 0;
}

bool Membership::others_live(bool here) const {
  for (std::uint32_t rank = 0; rank < size(); ++rank) {
    if (rank == this->rank()) continue;
    const ControlMember other = read_member(rank);
    if (other.state != MemberState::joined || is_dead(rank, other)) continue;
    if (!here || other.host == pool_.host_id()) return true;
  }
  return false;
}

void Membership::write_state(std::uint32_t rank, ControlMember member, MemberState state) const {
  member.state = state;
  std::byte* line = at(layout().member(rank), sizeof(member));
  std::memcpy(line, &member, sizeof(member));
  pool_.publish(line, sizeof(member));
  pool_.platform().store_fence();
}

void Membership::mark(MemberState state) { write_state(rank(), read_member(rank()), state); }

// After mark: frees the regions if nobody is left, else lets them go. Under the comms lock.
void Membership::give_back() {
  if (!others_live(false)) {
    free_regions();
    return;
  }
  let_go();
}

bool Membership::is_in_place() const {
  auto found = pool_.find(RegionKind::comm, meeting_.region);
  return found.ok() && found->generation == control_.generation;
}

void Membership::let_go() {
  for (const Region& region : scratch_regions_) (void)pool_.drop(region);
  (void)pool_.drop(control_);
}

// That it has left this rank says before it asks for the locks: those may be in the hands of one
// that is stopped, and nobody shall wait for this rank for that reason. What it then cannot free is
// freed by whoever comes to the locks later.
void Membership::leave_within(std::uint32_t patience_ms) {
  if (!joined_) return;
  joined_ = false;
  if (!is_in_place()) return let_go();  // freed by force
  mark(met_ ? MemberState::left : MemberState::withdrew);
  auto lock = pool_.lock(kCommsLock, patience_ms);
  // Freeing takes the table's lock, and would wait for it as long as the pool's user said.
  const Status table = lock.ok() ? pool_.lock(kTableLock, patience_ms).status() : lock.status();
  if (!table.ok()) {
    log::warn("leaving comm '{}': {}; who leaves a comm later frees its memory", name_,
              table.message());
    return let_go();
  }
  // What a rank that died left half-made is nobody's: no comm will come by its name.
  (void)pool_.reclaim();
  if (!is_in_place()) return let_go();
  const bool last_here =
      pool_hosts() > 1 && life_header().maker_host == pool_.host_id() && !others_live(true);
  if (!last_here || !others_live(false)) {
    give_back();
    sweep();  // what others could not free
    return;
  }
  // Without the lock, because those who are waited for may be waiting for this host's ranks in the
  // same way. What is still held is freed by nobody else but a comm of this host that comes next.
  std::move(lock).value().reset();
  Platform& platform = pool_.platform();
  const std::uint64_t deadline_ns = platform.now_ns() + std::uint64_t{patience_ms} * 1'000'000;
  while (others_live(false) && platform.now_ns() < deadline_ns) platform.sleep_ns(kPollNs);
  auto again = pool_.lock(kCommsLock, patience_ms);
  if (!again.ok() || !is_in_place()) return let_go();
  give_back();
}

void Membership::leave() { leave_within(std::min(kLeaveTimeoutMs, std::max(1u, timeout_ms_ / 8))); }

Membership::~Membership() { leave_within(kLeaveTimeoutMs); }

}  // namespace penstock
