// One shot: every rank shows its whole input to all others, and every rank folds all of it.
//
// Rank r copies `send` into its block and signals. When every other rank has signalled, one REDUCE
// folds the n inputs in rank order into `recv`; the own one comes from `send` itself. Two steps of
// latency (a signal and a wait) and n - 1 parts to read for each rank: best while the time to move
// a part is small against the time to signal.
#include "penstock/comm/algorithm/algorithms.h"

namespace penstock::algorithm {

void all_reduce_one_shot(PlanBuilder& builder) {
  const std::uint32_t n = builder.ranks();
  const Range whole{0, builder.key().part_bytes};
  if (builder.key().in_place) builder.forbid_exposed_send();
  std::vector<std::uint32_t> block(n);
  for (std::uint32_t r = 0; r < n; ++r) {
    block[r] = builder.add_block(r, whole.bytes);
    builder.copy(r, PlanBuilder::send(0, whole), builder.block(block[r]));
    builder.publish(r);
  }
  for (std::uint32_t r = 0; r < n; ++r) {
    std::vector<Slice> src;
    for (std::uint32_t q = 0; q < n; ++q) {
      src.push_back(q == r ? PlanBuilder::send(0, whole) : builder.block(block[q]));
    }
    builder.reduce(r, std::move(src), {PlanBuilder::recv(0, whole)});
  }
}

}  // namespace penstock::algorithm
