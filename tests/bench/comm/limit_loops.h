// The inner loops of the limit kernels, compiled once for AVX-512 and once for AVX2.
#ifndef PENSTOCK_TESTS_BENCH_COMM_LIMIT_LOOPS_H_
#define PENSTOCK_TESTS_BENCH_COMM_LIMIT_LOOPS_H_

#include <cstddef>

#include "problem.h"

namespace penstock::bench {

// `stream`: with non-temporal stores; destinations are then 64-byte aligned and bytes a multiple
// of 64.
struct LimitLoops {
  const char* name;
  void (*copy)(void* to, const void* from, std::size_t bytes, bool stream);
  // Folds 1..kMaxRanks sources in order into every destination. bf16 is folded in f32 and rounded
  // once; NaNs get no care here.
  void (*fold)(Type type, void* const* to, std::size_t destinations, const void* const* from,
               std::size_t sources, std::size_t bytes, bool stream);
};

extern const LimitLoops kAvx512Loops;
extern const LimitLoops kAvx2Loops;
// The widest that this processor runs.
const LimitLoops& limit_loops();

}  // namespace penstock::bench
#endif
