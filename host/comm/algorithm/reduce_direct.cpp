// Direct reduce: every rank but the root writes its part, chunk by chunk; the root folds each chunk
// from n sources in rank order, its own straight from `send`. The root reads n - 1 parts.
#include "penstock/comm/algorithm/algorithms.h"

namespace penstock::algorithm {

void reduce_direct(PlanBuilder& builder) {
  const std::uint32_t n = builder.ranks();
  const std::uint32_t root = builder.key().root;
  const std::vector<Range> pieces = builder.chunks(builder.key().part_bytes);
  std::vector<std::vector<std::uint32_t>> block(pieces.size(), std::vector<std::uint32_t>(n));
  for (std::size_t c = 0; c < pieces.size(); ++c) {
    // Chunk by chunk over the ranks, which write at the same time: so they are at different
    // devices.
    for (std::uint32_t i = 1; i < n; ++i) {
      const std::uint32_t r = builder.peer(root, i);
      block[c][r] = builder.add_block(r, pieces[c].bytes);
      builder.copy(r, PlanBuilder::send(0, pieces[c]), builder.block(block[c][r]));
      builder.publish(r);
    }
  }
  for (std::size_t c = 0; c < pieces.size(); ++c) {
    std::vector<Slice> src;
    for (std::uint32_t q = 0; q < n; ++q) {
      src.push_back(q == root ? PlanBuilder::send(0, pieces[c]) : builder.block(block[c][q]));
    }
    builder.reduce(root, std::move(src), {PlanBuilder::recv(0, pieces[c])});
  }
}

}  // namespace penstock::algorithm
