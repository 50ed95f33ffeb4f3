// All-gather: every rank writes its part once, chunk by chunk with a signal after each, and copies
// the others' chunks into `recv`, each round from rank r + 1 to r - 1. The own part is copied
// locally while the others' first chunks are on their way.
#include "penstock/comm/algorithm/algorithms.h"

namespace penstock::algorithm {

void all_gather(PlanBuilder& builder) {
  const std::uint32_t n = builder.ranks();
  const Range whole{0, builder.key().part_bytes};
  const std::vector<Range> pieces = builder.chunks(whole.bytes);
  std::vector<std::vector<std::uint32_t>> block(n);
  for (std::uint32_t r = 0; r < n; ++r) {
    for (const Range& piece : pieces) {
      block[r].push_back(builder.add_block(r, piece.bytes));
      builder.copy(r, PlanBuilder::send(0, piece), builder.block(block[r].back()));
      builder.publish(r);
    }
  }
  for (std::uint32_t r = 0; r < n; ++r) {
    if (!builder.key().in_place) {
      builder.copy(r, PlanBuilder::send(0, whole), PlanBuilder::recv(r, whole));
    }
    for (std::size_t c = 0; c < pieces.size(); ++c) {
      for (std::uint32_t i = 1; i < n; ++i) {
        const std::uint32_t q = builder.peer(r, i);
        builder.copy(r, builder.block(block[q][c]), PlanBuilder::recv(q, pieces[c]));
      }
    }
  }
}

}  // namespace penstock::algorithm
