// Which host holds a role: a lease on top of an agreement.
//
// The state is who holds the role, under which epoch, and for how long. Taking a role, renewing it
// and giving it up are decisions of one history, so that exactly one of a renewal and a takeover
// comes about. Clocks are never compared: the holder counts from before it proposed, for three
// quarters of the duration; an observer counts the whole duration from when it first saw the
// decision. So the holder is through before another begins, as long as the hosts' monotonic clocks
// agree within a quarter on how long a second is.
//
// A process that sleeps through all of that may wake in the middle of what it did as the holder.
// Therefore the epoch: it grows with every change of hands, stands in whatever the holder writes,
// and who finds a higher one than its own has lost the role. What a late holder may still write to
// stays in quarantine (architecture, "Failure").
#ifndef PENSTOCK_MEMORY_AGREEMENT_ROLE_H_
#define PENSTOCK_MEMORY_AGREEMENT_ROLE_H_

#include <cstdint>
#include <functional>

#include "penstock/memory/agreement.h"

namespace penstock {

// The value of a role's decisions.
struct RoleState {
  std::uint64_t epoch = 0;   // 0: nobody has ever held it
  std::uint64_t holder = 0;  // random, of one acquisition; 0: nobody holds it
  std::uint64_t renewals = 0;
  std::uint64_t duration_ns = 0;
  std::uint64_t start_time = 0;  // the holding process: see Lease
  std::uint64_t pid_namespace = 0;
  std::array<std::uint8_t, 16> boot_id{};
  std::uint32_t pid = 0;
  std::uint16_t host = 0;
  std::uint16_t lock_slot = 0;
};
static_assert(sizeof(RoleState) == 72);

inline constexpr std::uint32_t kMinRoleDurationMs = 10;
inline constexpr std::uint32_t kMaxRoleDurationMs = 3'600'000;

struct RoleConfig {
  std::uint32_t duration_ms = 1000;  // kMinRoleDurationMs..kMaxRoleDurationMs
  Lease owner;                       // this process
  // Whether a holder is proven dead, and its role free at once. May be empty.
  std::function<bool(const Lease& holder)> is_dead;
};

// A role that this process took. One thread at a time. Ends by release or by not being renewed;
// destruction alone does not end it.
class RoleLease {
 public:
  // Takes the role once nobody holds it, or the holder's time is over. deadline_exceeded names the
  // holder; invalid_argument for a duration out of bounds; Agreement's errors.
  static Result<RoleLease> acquire(Agreement agreement, const RoleConfig& config,
                                   std::uint64_t deadline_ns);
  // Role `which` of the pool, 0..kPoolAgreements - kFirstRoleAgreement - 1, for this mapping.
  static Result<RoleLease> acquire(Pool& pool, std::uint32_t which, std::uint32_t duration_ms,
                                   std::uint64_t deadline_ns);

  // Grows with every acquisition of this role, by whomever.
  std::uint64_t epoch() const { return state_.epoch; }
  // Until when (Platform::now_ns) nobody else can hold the role.
  std::uint64_t valid_until_ns() const { return valid_until_ns_; }
  bool is_valid() const;
  // Begins the time anew; to be called well before it is over. revoked names who took the role
  // over, and its epoch: the role is lost. deadline_exceeded leaves everything as it was.
  Status renew(std::uint64_t deadline_ns);
  // Whether the role is still this one's, by the history: revoked as in renew.
  Status check(std::uint64_t deadline_ns);
  // Gives the role up. A success also when it was lost before.
  Status release(std::uint64_t deadline_ns);

 private:
  RoleLease(Agreement agreement, const RoleState& state, std::uint64_t valid_until_ns)
      : agreement_(std::move(agreement)), state_(state), valid_until_ns_(valid_until_ns) {}
  Status lost(const RoleState& to) const;

  Agreement agreement_;
  RoleState state_;
  std::uint64_t valid_until_ns_;
  std::uint64_t renewals_ = 0;  // proposed
};

}  // namespace penstock
#endif
