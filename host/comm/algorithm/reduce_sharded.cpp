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
  const std::vector<Range> shards = split(builder.key().part_bytes, n);
  const BlockTable block = publish_shards(builder, shards);
  std::vector<std::uint32_t> result(n);
  for (std::uint32_t r = 0; r < n; ++r) {
    if (shards[r].bytes == 0) continue;
    std::vector<Slice> src = fold_sources(builder, block, r, 0, shards[r]);
    if (r == root) {
      builder.reduce(r, std::move(src), {PlanBuilder::recv(0, shards[r])});
      continue;
    }
    result[r] = builder.add_block(r, shards[r].bytes);
    builder.reduce(r, std::move(src), {builder.block(result[r])});
    builder.publish(r);
  }
  for (std::uint32_t i = 1; i < n; ++i) {
    const std::uint32_t q = builder.peer(root, i);
    if (shards[q].bytes == 0) continue;
    builder.copy(root, builder.block(result[q]), PlanBuilder::recv(0, shards[q]));
  }
}

}  // namespace penstock::algorithm
