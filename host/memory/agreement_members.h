// Which hosts are members of the pool's cluster, and since which epoch.
//
// The state is one history of decisions: an epoch that grows with every change, and for each host
// the epoch at which it became a member. Beside it every host has a beat line of its own, which it
// raises while it lives, and in which it says which epoch it has taken note of.
//
// A beat that stands still is a reason to remove a host, and no proof that it is dead: it may wake.
// Until it has acknowledged an epoch in which it is no member any more (or its death is proven by
// other means), what it could write to stays in quarantine. Model: tests/models/takeover.pml.
#ifndef PENSTOCK_MEMORY_AGREEMENT_MEMBERS_H_
#define PENSTOCK_MEMORY_AGREEMENT_MEMBERS_H_

#include <array>
#include <cstdint>
#include <vector>

#include "penstock/memory/agreement.h"
#include "penstock/memory/superblock.h"

namespace penstock {

// The value of the membership's decisions.
struct Members {
  std::uint64_t epoch = 0;
  // Per host, the epoch since which it is a member; 0: it is none. Epochs end before 2^32.
  std::array<std::uint32_t, kMaxHosts> since{};

  bool is_member(std::uint32_t host) const { return host < kMaxHosts && since[host] != 0; }
  bool operator==(const Members&) const = default;
};
static_assert(sizeof(Members) == 72);

// A host's line: written by its processes only, under the lock of the membership's history.
struct BeatRecord {
  std::uint64_t magic;  // kBeatMagic, or 0
  std::uint64_t beats;
  std::uint64_t acknowledged;
  std::uint8_t reserved[36];
  std::uint32_t checksum;  // CRC-32C of all bytes before
};
static_assert(sizeof(BeatRecord) == 64);
inline constexpr std::uint64_t kBeatMagic = 0x5441454253504e;  // "NPSBEAT"

// One thread at a time; the pool outlives it.
class MembershipView {
 public:
  static Result<MembershipView> open(Pool& pool);

  // Makes this host a member, if it is none; a new member gets the new epoch. Errors: Agreement's.
  Result<Members> join(std::uint64_t deadline_ns);
  // Removes hosts (bit h: host h) that are members; nothing changes if none is. A host may remove
  // itself.
  Result<Members> remove(std::uint32_t hosts, std::uint64_t deadline_ns);
  // The present members. A host that was a member and is none any more has been removed, and may
  // touch nothing of the epochs before until it has joined anew.
  Result<Members> look(std::uint64_t deadline_ns);

  // Shows that this host lives. Several times per timeout of silent().
  Status beat(std::uint64_t deadline_ns);
  // Says that no process of this host touches anything of the epochs before `epoch` any more.
  Status acknowledge(std::uint64_t epoch, std::uint64_t deadline_ns);
  // The highest epoch that a host has acknowledged; 0: none.
  std::uint64_t acknowledged(std::uint32_t host) const;
  // Whether what `host` could write to before `members.epoch` must be left alone.
  bool is_quarantined(std::uint32_t host, const Members& members) const {
    return acknowledged(host) < members.epoch;
  }
  // Members whose beat has stood still for timeout_ns of this host's clock, counted between calls
  // of this function; bit h: host h. Never this host.
  std::uint32_t silent(const Members& members, std::uint64_t timeout_ns);

 private:
  MembershipView(Pool& pool, Agreement agreement, std::byte* beats);
  Result<Members> change(const std::function<void(Members*)>& edit, std::uint64_t deadline_ns);
  BeatRecord load(std::uint32_t host) const;
  Status store(const std::function<void(BeatRecord*)>& edit, std::uint64_t deadline_ns);

  struct Seen {
    std::uint64_t beats = 0;
    std::uint64_t since_ns = 0;
  };
  Pool* pool_;
  Agreement agreement_;
  std::byte* beats_;
  SharedMemory memory_;
  std::array<Seen, kMaxHosts> seen_{};
};

}  // namespace penstock
#endif
