// Averaging between random partners (gossip).
//
// In a round every rank meets at most one other, and both take the average of their vectors. Who
// meets whom comes from a seed that all share, so that nobody has to ask; a round costs each rank
// one exchange, whatever the number of ranks, and waits for nobody but the partner. Over the rounds
// the vectors converge to the mean of all: each round of random pairs halves the expected squared
// distance to it, about (Boyd, Ghosh, Prabhakar, Shah: Randomized Gossip Algorithms, 2006).
//
// Numbers: the average of two ranks is AVG over their two vectors in rank order (types.h), so that
// both have the same bits, and the sum over both changes by rounding only.
#ifndef PENSTOCK_COMM_PAIRWISE_H_
#define PENSTOCK_COMM_PAIRWISE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "penstock/comm/comm.h"
#include "penstock/engine/host_engine.h"

namespace penstock {

// By rank: whom it meets in this round, or itself if nobody. Ranks whose bit is set in `absent`
// meet nobody; of an odd number of others, one is left over. Disjoint pairs, every pairing as
// likely as any other. Depends on nothing but the arguments. 1..64 ranks.
std::vector<std::uint32_t> pairwise_partners(std::uint64_t seed, std::uint64_t round,
                                             std::uint32_t ranks, std::uint64_t absent = 0);

// Belongs to one comm, which outlives it, and counts as a use of it: one thread at a time.
class PairwiseAverage {
 public:
  // All ranks give the same seed.
  static Result<std::unique_ptr<PairwiseAverage>> make(Comm& comm, std::uint64_t seed);

  // Replaces `count` elements of `type` by their average with those of the partner of this round.
  // Ranks that are in the round give the same round, absent, count and type; a rank that is absent
  // need not call, and if it does, nothing happens. Rounds may have any numbers; both partners
  // must come to the rounds that they share in the same order. invalid_argument; otherwise the
  // errors of Comm::run, after which the comm is revoked and the vector may be averaged in part.
  Status run(std::uint64_t round, void* data, std::uint64_t count, std::uint32_t type,
             std::uint64_t absent = 0);

  std::uint32_t partner(std::uint64_t round, std::uint64_t absent = 0) const {
    return pairwise_partners(seed_, round, comm_.size(), absent)[comm_.rank()];
  }

 private:
  PairwiseAverage(Comm& comm, std::uint64_t seed);
  Status average_chunk(std::uint32_t partner, std::byte* data, std::uint64_t count,
                       std::uint32_t type);

  Comm& comm_;
  const std::uint64_t seed_;
  const std::unique_ptr<const Kernels> kernels_;
  std::vector<std::byte> theirs_;  // a chunk of the partner's
};

}  // namespace penstock
#endif
