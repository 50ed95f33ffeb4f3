// The lease table: who maps the pool. Slot s of host h is written only by the process that holds
// the lock on its byte (kLeaseLocks + h * lease slots + s), and zero when nobody does.
#ifndef PENSTOCK_MEMORY_LEASE_H_
#define PENSTOCK_MEMORY_LEASE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "penstock/base/platform.h"

namespace penstock {

// One line of the pool.
struct LeaseRecord {
  std::uint64_t magic;  // kLeaseMagic, or 0
  std::uint64_t start_time;
  std::uint64_t pid_namespace;
  std::array<std::uint8_t, 16> boot_id;
  std::uint32_t pid;
  std::uint32_t host;
  std::uint8_t reserved[12];
  std::uint32_t checksum;  // CRC-32C of all bytes before
};
static_assert(sizeof(LeaseRecord) == 64, "a lease is a line of its own");
inline constexpr std::uint64_t kLeaseMagic = 0x455341454c5350;  // "PSLEASE"

LeaseRecord make_lease_record(const ProcessIdentity& process, std::uint32_t host);
// The holder, or nothing when the slot is empty or half-written. Any bytes are fine.
std::optional<ProcessIdentity> read_lease_record(const LeaseRecord& record);

}  // namespace penstock
#endif
