// Barrier: every rank signals once and waits for the signal of every other.
#include "penstock/comm/algorithm/algorithms.h"

namespace penstock::algorithm {

void barrier(PlanBuilder& builder) {
  for (std::uint32_t r = 0; r < builder.ranks(); ++r) {
    const std::uint32_t value = builder.signal(r);
    for (std::uint32_t i = 1; i < builder.ranks(); ++i) builder.wait(r, builder.peer(r, i), value);
  }
}

}  // namespace penstock::algorithm
