// What a control region holds behind the lanes: what the members of a comm need to notice each
// other's silence, and to agree on who goes on without the others.
//
//   line 0              who made the regions, and how many ranks of a growing comm are settled
//   then size lines     signs of life of each rank, its own to write
//   then                an agreement (host/memory/agreement.h) among the ranks: RegroupRecord
#ifndef PENSTOCK_COMM_LIFE_H_
#define PENSTOCK_COMM_LIFE_H_

#include <algorithm>
#include <cstdint>

#include "penstock/memory/agreement_space.h"

namespace penstock {

struct alignas(64) LifeHeader {
  std::uint32_t maker_host;  // in whose arena the regions lie; only that host can free them
  std::uint32_t settled;     // ranks below it belong to the comm that grows, the rest to newcomers
};
static_assert(sizeof(LifeHeader) == 64);

// Raised by a rank that waits for others inside a call, a few times a second. A rank that computes
// between two calls raises nothing, and nothing is expected of it: only the deadline of the others'
// calls counts then. So no thread is needed.
struct alignas(64) LifeLine {
  std::uint64_t beats;
  std::uint32_t waits_for;  // rank + 1; 0: none
  std::uint32_t shrinks;    // 1 once this rank has come to shrink the comm
};
static_assert(sizeof(LifeLine) == 64);

// Of a state as Platform::process_state gives it.
inline bool is_stopped(char state) { return state == 'T' || state == 't'; }

// A rank whose last sign is younger waits inside a call. Long against the few milliseconds between
// two signs, because ranks may outnumber the CPUs.
inline std::uint64_t sign_counts_for_ns(std::uint32_t timeout_ms) {
  return std::min<std::uint64_t>(400'000'000, std::uint64_t{timeout_ms} * 1'000'000 / 2);
}

// The ranks that lost others agree in steps: who is to meet (members), then whether all of them
// have met (met) or not (lost one more: voided), after which the next attempt begins.
enum class RegroupPhase : std::uint32_t { none = 0, members = 1, met = 2, voided = 3 };
struct RegroupRecord {
  std::uint64_t members = 0;  // bit r: rank r of the old comm
  std::uint32_t attempt = 0;
  RegroupPhase phase = RegroupPhase::none;
};
inline constexpr std::uint32_t kRegroupDepth = 4;

// Where things are, from `base`, which is where the lanes' part of the region ends.
class LifeLayout {
 public:
  LifeLayout(std::uint64_t base, std::uint32_t size) : base_((base + 63) / 64 * 64), size_(size) {}
  std::uint64_t header() const { return base_; }
  std::uint64_t line(std::uint64_t rank) const { return base_ + 64 + rank * 64; }
  std::uint64_t agreement() const { return line(size_); }
  std::uint64_t bytes() const { return agreement() + agreement_bytes(size_, kRegroupDepth); }

 private:
  std::uint64_t base_;
  std::uint32_t size_;
};

}  // namespace penstock
#endif
