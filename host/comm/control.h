// What the ranks of a comm share besides payload: the bytes of its control region.
//
//   line 0              header: magic, version, size, ready, limits
//   lines 1..2          pool offsets of the scratch regions, one per payload device
//   then size * 3 lines members: who holds the rank (line 0), why it gave up (lines 1 and 2)
//   then size lines     fences of the collectives' lane: rank r's progress
//   then size^2 * 2     fences of the pair lanes: [from][to], sender's line and receiver's line
//
// Every line has one writer: the maker for header and offsets (before `ready`, under the comms
// lock), the rank for its member lines and fences.
#ifndef PENSTOCK_COMM_CONTROL_H_
#define PENSTOCK_COMM_CONTROL_H_

#include <array>
#include <cstdint>

#include "penstock/memory/pool.h"

namespace penstock {

inline constexpr std::uint64_t kControlMagic = 0x6d6d6f6374735050;  // "PPstcomm"
inline constexpr std::uint32_t kControlVersion = 1;

struct alignas(64) ControlHeader {
  std::uint64_t magic;
  std::uint32_t version;
  std::uint32_t size;             // ranks
  std::uint32_t payload_devices;  // 1..16
  std::uint32_t ready;            // 1 once everything else in the region is written
  std::uint64_t epoch;
  std::uint64_t half_bytes;     // of the collectives' scratch, per payload device
  std::uint64_t rank_bytes;     // payload of one rank and pass
  std::uint64_t pair_bytes;     // of one half of a pair lane
  std::uint64_t scratch_bytes;  // of each scratch region
};
static_assert(sizeof(ControlHeader) == 64);

struct alignas(64) ControlScratch {
  penstock_address address[PENSTOCK_MAX_DEVICES];
};
static_assert(sizeof(ControlScratch) == 128);

// withdrew: left before all had come; left: after that.
enum class MemberState : std::uint32_t { absent = 0, joined = 1, left = 2, withdrew = 3 };

struct alignas(64) ControlMember {
  std::array<std::uint8_t, 16> boot_id;
  std::uint64_t start_time;
  std::uint64_t pid_namespace;
  std::uint32_t pid;
  std::uint32_t host;
  std::uint32_t lock_slot;
  MemberState state;
  std::uint64_t reserved;
};
static_assert(sizeof(ControlMember) == 64);

struct alignas(64) ControlAbort {
  std::uint32_t code;     // Code of the reason, written last; 0: still in
  std::uint32_t culprit;  // rank that the reason is about, or kNoRank
  char reason[120];       // NUL-terminated, cut to fit
};
static_assert(sizeof(ControlAbort) == 128);
inline constexpr std::uint32_t kNoRank = 0xffffffff;

struct alignas(64) FenceLine {
  std::uint64_t counter;
};
static_assert(sizeof(FenceLine) == 64);

// Where things are, from the start of the region. `size` ranks.
struct ControlLayout {
  explicit ControlLayout(std::uint64_t size) : size_(size) {}
  std::uint64_t scratch() const { return 64; }
  std::uint64_t member(std::uint64_t rank) const { return 192 + rank * 192; }
  std::uint64_t abort(std::uint64_t rank) const { return member(rank) + 64; }
  std::uint64_t fence(std::uint64_t rank) const { return 192 + size_ * 192 + rank * 64; }
  std::uint64_t pair_fence(std::uint64_t from, std::uint64_t to, std::uint64_t side) const {
    return 192 + size_ * 256 + ((from * size_ + to) * 2 + side) * 64;
  }
  std::uint64_t bytes() const { return 192 + size_ * 256 + size_ * size_ * 128; }

 private:
  std::uint64_t size_;
};

}  // namespace penstock
#endif
