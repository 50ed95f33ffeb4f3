// Reduce-scatter: every rank writes the parts of the others into blocks, chunk by chunk, with one
// signal after the chunks of all peers; then it folds its own part chunk by chunk from n sources in
// rank order, its own contribution straight from `send`.
#include "penstock/comm/algorithm/algorithms.h"
#include "penstock/comm/algorithm/exchange.h"

namespace penstock::algorithm {

void reduce_scatter(PlanBuilder& builder) {
  const std::uint32_t n = builder.ranks();
  const std::vector<Range> pieces = builder.chunks(builder.key().part_bytes);
  const std::vector<BlockTable> block = publish_parts(builder, pieces);
  for (std::uint32_t r = 0; r < n; ++r) {
    for (std::size_t c = 0; c < pieces.size(); ++c) {
      builder.reduce(r, fold_sources(builder, block[c], r, r, pieces[c]),
                     {PlanBuilder::recv(0, pieces[c])});
    }
  }
}

}  // namespace penstock::algorithm
