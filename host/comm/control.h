// What the ranks of a comm share besides payload: the bytes of its control region.
//
//   line 0              header: magic, version, size, ready, limits
//   lines 1..2          pool offsets of the scratch regions, one per payload device
//   line 3              tuning: what plans depend on
//   then size * 3 lines members: who holds the rank (line 0), why it gave up (lines 1 and 2)
//   then size * 2 lines the collectives' lane: rank r's progress (fence) and its offers
//   then size^2 * 2 * 2 the pair lanes: [from][to], the sender's two lines and the receiver's
//   then                inlined blocks of the collectives' lane: [rank][slot][line]
//   then                inlined blocks of the pair lanes: [from][to][slot][line], the sender's
//
// Every line has one writer: the maker for header and offsets (before `ready`, under the comms
// lock), the rank for its member lines and fences.
#ifndef PENSTOCK_COMM_CONTROL_H_
#define PENSTOCK_COMM_CONTROL_H_

#include <array>
#include <cstdint>

#include "penstock/comm/tuning.h"
#include "penstock/memory/pool.h"

namespace penstock {

inline constexpr std::uint64_t kControlMagic = 0x6d6d6f6374735050;  // "PPstcomm"
inline constexpr std::uint32_t kControlVersion = 3;

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

struct alignas(64) ControlTuning {
  Tuning tuning;
  std::uint32_t inline_lines;       // of a rank and slot of the collectives' lane
  std::uint32_t pair_inline_lines;  // of a pair and slot
  std::uint32_t group;              // of the topology; 0: one level
};
static_assert(sizeof(ControlTuning) == 64);

// withdrew: left before all had come; left: after that; died: killed while it was joined, as a
// process of the same host found, which alone can prove it and tells the other hosts so.
enum class MemberState : std::uint32_t { absent = 0, joined = 1, left = 2, withdrew = 3, died = 4 };

// The rank's engine works in the rank's own thread, so that it can use others' buffers in the pool
// where they are.
inline constexpr std::uint64_t kMemberDirect = 1;

struct alignas(64) ControlMember {
  std::array<std::uint8_t, 16> boot_id;
  std::uint64_t start_time;
  std::uint64_t pid_namespace;
  std::uint32_t pid;
  std::uint32_t host;
  std::uint32_t lock_slot;
  MemberState state;
  std::uint64_t flags;  // kMember...
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

// Where a rank's buffers are in the pool, for the passes that are on their way: pass p in slot
// p % kOfferSlots, because nobody is further ahead of another than two passes. Published by the
// signal that follows; the note of that signal says which of the two are offered.
inline constexpr std::uint32_t kOfferSlots = 4;
struct alignas(64) OfferLine {
  struct Offer {
    penstock_address send;
    penstock_address recv;
  } offer[kOfferSlots];
};
static_assert(sizeof(OfferLine) == 64);

// Inlined blocks of pass p are in slot p % kInlineSlots: a writer that hears from its readers only
// by their fences needs to look at them once in several passes.
inline constexpr std::uint32_t kInlineSlots = 4;

// Where things are, from the start of the region. `size` ranks.
struct ControlLayout {
  ControlLayout(std::uint64_t size, std::uint64_t inline_lines, std::uint64_t pair_inline_lines)
      : size_(size), inline_(inline_lines * 64), pair_inline_(pair_inline_lines * 64) {}
  // Of everything up to the members, which does not depend on the tuning.
  explicit ControlLayout(std::uint64_t size) : ControlLayout(size, 0, 0) {}
  std::uint64_t scratch() const { return 64; }
  std::uint64_t tuning() const { return 192; }
  std::uint64_t member(std::uint64_t rank) const { return 256 + rank * 192; }
  std::uint64_t abort(std::uint64_t rank) const { return member(rank) + 64; }
  // The fence's line; the offers' line follows.
  std::uint64_t fence(std::uint64_t rank) const { return member(size_) + rank * 128; }
  std::uint64_t pair_fence(std::uint64_t from, std::uint64_t to, std::uint64_t side) const {
    return fence(size_) + ((from * size_ + to) * 2 + side) * 128;
  }
  std::uint64_t inlined(std::uint64_t rank) const {
    return pair_fence(size_, 0, 0) + rank * kInlineSlots * inline_;
  }
  std::uint64_t pair_inlined(std::uint64_t from, std::uint64_t to) const {
    return inlined(size_) + (from * size_ + to) * kInlineSlots * pair_inline_;
  }
  std::uint64_t bytes() const { return pair_inlined(size_, 0); }

 private:
  std::uint64_t size_;
  std::uint64_t inline_;
  std::uint64_t pair_inline_;
};

}  // namespace penstock
#endif
