// Reduce-scatter: every rank writes the parts of the others into blocks, chunk by chunk, with one
// signal after the chunks of all peers; then it folds its own part chunk by chunk from n sources in
// rank order, its own contribution straight from `send`.
#include "penstock/comm/algorithm/algorithms.h"

namespace penstock::algorithm {

void reduce_scatter(PlanBuilder& builder) {
  const std::uint32_t n = builder.ranks();
  const std::vector<Range> pieces = chunks(builder.key().part_bytes);
  // block[c][r * n + q]: chunk c of what r has for q.
  std::vector<std::vector<std::uint32_t>> block(pieces.size(),
                                                std::vector<std::uint32_t>(std::size_t{n} * n));
  for (std::uint32_t r = 0; r < n; ++r) {
    for (std::size_t c = 0; c < pieces.size(); ++c) {
      for (std::uint32_t i = 1; i < n; ++i) {
        const std::uint32_t q = builder.peer(r, i);
        const std::uint32_t index = builder.add_block(r, pieces[c].bytes);
        block[c][std::size_t{r} * n + q] = index;
        builder.copy(r, PlanBuilder::send(q, pieces[c]), builder.block(index));
      }
      builder.publish(r);
    }
  }
  for (std::uint32_t r = 0; r < n; ++r) {
    for (std::size_t c = 0; c < pieces.size(); ++c) {
      std::vector<Slice> src;
      for (std::uint32_t q = 0; q < n; ++q) {
        src.push_back(q == r ? PlanBuilder::send(r, pieces[c])
                             : builder.block(block[c][std::size_t{q} * n + r]));
      }
      builder.reduce(r, std::move(src), {PlanBuilder::recv(0, pieces[c])});
    }
  }
}

}  // namespace penstock::algorithm
