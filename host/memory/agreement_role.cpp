#include "penstock/memory/agreement_role.h"

#include <algorithm>

namespace penstock {
namespace {

constexpr std::uint64_t kMaxDurationNs = std::uint64_t{kMaxRoleDurationMs} * 1'000'000;

Lease owner_of(const RoleState& state) {
  Lease lease;
  lease.host = state.host;
  lease.lock_slot = state.lock_slot;
  lease.process = {state.boot_id, state.start_time, state.pid_namespace, state.pid};
  return lease;
}

// How long the holder itself may count on a lease of this duration.
std::uint64_t holders_share(std::uint64_t duration_ns) { return duration_ns / 4 * 3; }

// What an observer knows about when a role gets free.
class RoleWatch {
 public:
  explicit RoleWatch(const RoleConfig& config) : config_(config) {}

  bool is_free(const Decision& decision, std::uint64_t now_ns) {
    state_ = from_agreement_value<RoleState>(decision.value);
    if (decision.number == 0 || state_.holder == 0) return true;
    if (decision.number != seen_) {
      seen_ = decision.number;
      seen_at_ns_ = now_ns;
    }
    if (now_ns - seen_at_ns_ >= std::min(state_.duration_ns, kMaxDurationNs)) return true;
    return config_.is_dead && config_.is_dead(owner_of(state_));
  }
  const RoleState& state() const { return state_; }

 private:
  const RoleConfig& config_;
  RoleState state_;
  std::uint64_t seen_ = 0;
  std::uint64_t seen_at_ns_ = 0;
};

RoleState first_state(const RoleConfig& config, std::uint64_t holder) {
  RoleState state;
  state.holder = holder;
  state.duration_ns = std::uint64_t{config.duration_ms} * 1'000'000;
  state.start_time = config.owner.process.start_time;
  state.pid_namespace = config.owner.process.pid_namespace;
  state.boot_id = config.owner.process.boot_id;
  state.pid = config.owner.process.pid;
  state.host = static_cast<std::uint16_t>(config.owner.host);
  state.lock_slot = static_cast<std::uint16_t>(config.owner.lock_slot);
  return state;
}

}  // namespace

Result<RoleLease> RoleLease::acquire(Pool& pool, std::uint32_t which, std::uint32_t duration_ms,
                                     std::uint64_t deadline_ns) {
  constexpr std::uint32_t kRoles = kPoolAgreements - kFirstRoleAgreement;
  if (which >= kRoles) {
    return error(Code::invalid_argument, "pool {} has no role {}: it must be 0..{}", pool.spec(),
                 which, kRoles - 1);
  }
  PENSTOCK_ASSIGN(Agreement agreement, Agreement::open(pool, kFirstRoleAgreement + which));
  RoleConfig config;
  config.duration_ms = duration_ms;
  config.owner = pool.lease();
  config.is_dead = [&pool](const Lease& holder) { return pool.liveness(holder) == Liveness::dead; };
  return acquire(std::move(agreement), config, deadline_ns);
}

Result<RoleLease> RoleLease::acquire(Agreement agreement, const RoleConfig& config,
                                     std::uint64_t deadline_ns) {
  if (config.duration_ms < kMinRoleDurationMs || config.duration_ms > kMaxRoleDurationMs) {
    return error(Code::invalid_argument, "a role held for {} ms: it must be {}..{}",
                 config.duration_ms, kMinRoleDurationMs, kMaxRoleDurationMs);
  }
  Platform& platform = agreement.platform();
  RoleState mine = first_state(config, platform.random() | 1);
  RoleWatch watch(config);
  std::uint64_t began_ns = 0;
  while (true) {
    const auto next = [&](const Decision& newest) -> std::optional<AgreementValue> {
      const std::uint64_t now_ns = platform.now_ns();
      if (!watch.is_free(newest, now_ns)) return std::nullopt;
      began_ns = now_ns;
      mine.epoch = watch.state().epoch + 1;
      return to_agreement_value(mine);
    };
    PENSTOCK_ASSIGN(const Decision decision, agreement.update(next, deadline_ns));
    if (from_agreement_value<RoleState>(decision.value).holder == mine.holder) {
      return RoleLease(std::move(agreement), mine, began_ns + holders_share(mine.duration_ns));
    }
    const std::uint64_t now_ns = platform.now_ns();
    if (now_ns >= deadline_ns) {
      return error(Code::deadline_exceeded,
                   "the role is held by process {} of host {} under epoch {}", watch.state().pid,
                   watch.state().host, watch.state().epoch);
    }
    const std::uint64_t pause_ns = std::max<std::uint64_t>(watch.state().duration_ns / 16, 100'000);
    platform.sleep_ns(std::min({pause_ns, deadline_ns - now_ns, std::uint64_t{50'000'000}}));
  }
}

bool RoleLease::is_valid() const { return agreement_.platform().now_ns() < valid_until_ns_; }

Status RoleLease::lost(const RoleState& to) const {
  if (to.holder == 0) {
    return error(Code::revoked, "the role held under epoch {} was given up under epoch {}",
                 state_.epoch, to.epoch);
  }
  return error(Code::revoked,
               "the role held under epoch {} was taken over by process {} of host {}, under epoch "
               "{}",
               state_.epoch, to.pid, to.host, to.epoch);
}

Status RoleLease::renew(std::uint64_t deadline_ns) {
  std::uint64_t began_ns = 0;
  const auto next = [&](const Decision& newest) -> std::optional<AgreementValue> {
    began_ns = agreement_.platform().now_ns();
    const auto present = from_agreement_value<RoleState>(newest.value);
    if (present.holder != state_.holder) return std::nullopt;
    // An earlier call whose deadline passed may yet be decided by whoever proposes next. So that it
    // isn't taken for this one, which began later, no two proposals are alike.
    RoleState newer = present;
    newer.renewals = ++renewals_;
    return to_agreement_value(newer);
  };
  PENSTOCK_ASSIGN(const Decision decision, agreement_.update(next, deadline_ns));
  const auto present = from_agreement_value<RoleState>(decision.value);
  if (present.holder != state_.holder) {
    valid_until_ns_ = 0;
    return lost(present);
  }
  state_ = present;
  valid_until_ns_ = began_ns + holders_share(state_.duration_ns);
  return Status();
}

Status RoleLease::check(std::uint64_t deadline_ns) {
  PENSTOCK_ASSIGN(const Decision newest, agreement_.latest(deadline_ns));
  const auto present = from_agreement_value<RoleState>(newest.value);
  if (present.holder == state_.holder) return Status();
  valid_until_ns_ = 0;
  return lost(present);
}

Status RoleLease::release(std::uint64_t deadline_ns) {
  valid_until_ns_ = 0;
  const auto next = [&](const Decision& newest) -> std::optional<AgreementValue> {
    auto present = from_agreement_value<RoleState>(newest.value);
    if (present.holder != state_.holder) return std::nullopt;
    present.holder = 0;
    return to_agreement_value(present);
  };
  return agreement_.update(next, deadline_ns).status();
}

}  // namespace penstock
