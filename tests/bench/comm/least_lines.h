// The least that a collective needs under software coherence, in cache lines of all ranks together,
// whatever the algorithm: what a rank gives to others is written back once by who wrote it, and
// invalidated once by everyone who reads it. Input and output are in the pool, so that nothing is
// copied on the way. Besides, one line for each signal: written back by the rank that raises it,
// invalidated by each rank that has to wait for it.
#ifndef PENSTOCK_TESTS_BENCH_COMM_LEAST_LINES_H_
#define PENSTOCK_TESTS_BENCH_COMM_LEAST_LINES_H_

#include <cstdint>

#include "problem.h"

namespace penstock::bench {

struct LeastLines {
  std::uint64_t written_back = 0;
  std::uint64_t invalidated = 0;
};

inline LeastLines least_lines(const Problem& problem) {
  const std::uint64_t n = problem.ranks;
  const std::uint64_t lines = (problem.part_bytes() + 63) / 64;
  const std::uint64_t pairs = n * (n - 1);
  if (n < 2) return {};
  switch (problem.collective) {
    case Collective::all_reduce:
      // A fold by shards: all parts but one's own go out, and every shard's result once.
      return {n * lines + n, 2 * (n - 1) * lines + pairs};
    case Collective::broadcast:
      return {lines + 1, (n - 1) * lines + (n - 1)};
    case Collective::reduce:
    case Collective::gather:
    case Collective::scatter: {
      const bool from_root = problem.collective == Collective::scatter;
      return {(n - 1) * lines + (from_root ? 1 : n - 1), (n - 1) * lines + (n - 1)};
    }
    case Collective::all_gather:
      return {n * lines + n, pairs * lines + pairs};
    case Collective::reduce_scatter:
    case Collective::all_to_all:
      return {pairs * lines + n, pairs * lines + pairs};
    case Collective::send_recv:
      return {n / 2 * lines + n / 2, n / 2 * lines + n / 2};
    default:
      return {n, pairs};
  }
}

}  // namespace penstock::bench
#endif
