// Sharded reduce: all ranks fold, each one shard, and the root collects.
//
// Rank r writes the shards of the others into blocks and signals; when all have signalled it folds
// shard r from n sources in rank order into a result block and signals again. The root folds its
// shard straight into `recv` and copies the other results behind it, from rank root + 1 on. The
// root reads 2 (n - 1) / n parts instead of the n - 1 of the direct reduce.
#include "penstock/comm/algorithm/algorithms.h"
#include "penstock/comm/algorithm/exchange.h"

namespace penstock::algorithm {

void reduce_sharded(PlanBuilder& builder) {
  const std::uint32_t n = builder.ranks();
  const std::uint32_t root = builder.key().root;
  const auto pieces = shard_pieces(builder);
  const std::vector<BlockTable> block = publish_shards(builder, pieces);
  const std::size_t count = block.size();
  std::vector<std::vector<std::uint32_t>> result(n, std::vector<std::uint32_t>(count));
  for (std::uint32_t r = 0; r < n; ++r) {
    for (std::size_t c = 0; c < count; ++c) {
      const Range& piece = pieces[r][c];
      if (piece.bytes == 0) continue;
      std::vector<Slice> src = fold_sources(builder, block[c], r, 0, piece);
      if (r == root) {
        builder.reduce(r, std::move(src), {PlanBuilder::recv(0, piece)});
        continue;
      }
      result[r][c] = builder.add_block(r, piece.bytes);
      // The root's signal that published its sources says that it is ready.
      if (builder.pushes()) builder.make_pushable(result[r][c]);
      builder.reduce(r, std::move(src), {builder.block(result[r][c])});
      builder.publish(r);
    }
  }
  for (std::size_t c = 0; c < count; ++c) {
    for (std::uint32_t i = 1; i < n; ++i) {
      const std::uint32_t q = builder.peer(root, i);
      if (pieces[q][c].bytes == 0) continue;
      builder.copy(root, builder.block(result[q][c]), PlanBuilder::recv(0, pieces[q][c]));
    }
  }
}

}  // namespace penstock::algorithm
