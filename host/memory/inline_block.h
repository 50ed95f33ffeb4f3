// A small payload that travels together with its flag: every line carries part of the payload and
// the sequence number that says which publication it belongs to, so that a reader needs no fence
// and no second trip.
//
//   first line   payload 0..47 | tag (u64)      | sequence (u64)
//   other lines  payload 0..55                  | sequence (u64)
//
// The writer stores a line's payload and tag first and its sequence last; on x86 stores become
// visible in that order, and a pool that is not coherent writes a line back whole, so that no
// reader can see the sequence without what belongs to it. A reader takes a line's payload after it
// has seen the sequence there. No two publications into one place have the same one, and 0 is none.
// The writer may publish into the same lines again once it knows that every reader is done (a fence
// tells).
#ifndef PENSTOCK_MEMORY_INLINE_BLOCK_H_
#define PENSTOCK_MEMORY_INLINE_BLOCK_H_

#include <cstddef>
#include <cstdint>

#include "penstock/memory/fence.h"
#include "penstock/memory/pool.h"

namespace penstock {

inline constexpr std::uint64_t kInlineFirstBytes = 48;
inline constexpr std::uint64_t kInlineLineBytes = 56;

// Lines that a payload takes; at least one.
constexpr std::uint64_t inline_lines(std::uint64_t bytes) {
  return bytes <= kInlineFirstBytes
             ? 1
             : 1 + (bytes - kInlineFirstBytes + kInlineLineBytes - 1) / kInlineLineBytes;
}

// A handle on inline_lines(bytes) lines of the pool. One process writes, any number read.
class InlineBlock {
 public:
  InlineBlock(const Pool& pool, void* lines)
      : InlineBlock(pool, lines, pool.coherence() == Coherence::software) {}
  // `software`: the pool's coherence, for callers that have it at hand.
  InlineBlock(const Pool& pool, void* lines, bool software)
      : pool_(&pool), lines_(static_cast<char*>(lines)), software_(software) {}

  void write(std::uint64_t sequence, std::uint64_t tag, const void* data,
             std::uint64_t bytes) const;
  // Fetches lines for writing, so that the next write need not wait for them. A hint.
  void prepare(std::uint64_t lines) const {
    if (software_) return;
    for (std::uint64_t i = 0; i < lines; ++i) prefetch_for_write(lines_ + i * PENSTOCK_CACHE_LINE);
  }

  enum class Arrival { complete, partial, other_tag };
  // complete once every line carries the sequence; then `out` holds the payload. Lines that were
  // taken need not be looked at again: `taken` counts them between calls, from 0. *tag receives
  // what stands beside the sequence in the first line; other_tag if that differs from the one that
  // is expected in a bit of `mask`: then nothing was written to `out`.
  Arrival read(std::uint64_t sequence, std::uint64_t expected_tag, std::uint64_t mask, void* out,
               std::uint64_t bytes, std::uint64_t* taken, std::uint64_t* tag) const;

 private:
  const Pool* pool_;
  char* lines_;
  bool software_;
};

}  // namespace penstock
#endif
