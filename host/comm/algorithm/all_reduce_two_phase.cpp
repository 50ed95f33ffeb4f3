// Two phases: every rank folds one shard for all, then everybody collects the folded shards.
//
// The part is split into n shards, shard r belonging to rank r. Rank r writes the shards of the
// others into blocks and signals; when all have signalled it folds its own shard from n sources in
// rank order, into `recv` and, in the same step, into a result block, and signals again; then it
// copies the other ranks' result blocks into `recv`, from rank r + 1 round to r - 1. Each rank
// reads 2 (n - 1) / n parts instead of the n - 1 of one shot, for one more signal and wait.
//
// In place it holds that rank r has copied the shards of others before it overwrites them, and
// that its own shard is overwritten by the REDUCE that reads it.
#include "penstock/comm/algorithm/algorithms.h"
#include "penstock/comm/algorithm/exchange.h"

namespace penstock::algorithm {

void all_reduce_two_phase(PlanBuilder& builder) {
  const std::uint32_t n = builder.ranks();
  const std::vector<Range> shards = split(builder.key().part_bytes, n);
  const BlockTable block = publish_shards(builder, shards);
  std::vector<std::uint32_t> result(n);
  for (std::uint32_t r = 0; r < n; ++r) {
    if (shards[r].bytes == 0) continue;
    std::vector<Slice> src = fold_sources(builder, block, r, 0, shards[r]);
    result[r] = builder.add_block(r, shards[r].bytes);
    builder.reduce(r, std::move(src), {PlanBuilder::recv(0, shards[r]), builder.block(result[r])});
    builder.publish(r);
  }
  for (std::uint32_t r = 0; r < n; ++r) {
    for (std::uint32_t i = 1; i < n; ++i) {
      const std::uint32_t q = builder.peer(r, i);
      if (shards[q].bytes == 0) continue;
      builder.copy(r, builder.block(result[q]), PlanBuilder::recv(0, shards[q]));
    }
  }
}

}  // namespace penstock::algorithm
