// Two phases: every rank folds one shard for all, then everybody collects the folded shards.
//
// The part is split into n shards, shard r belonging to rank r. Rank r writes the shards of the
// others into blocks and signals; when all have signalled it folds its own shard from n sources in
// rank order, into `recv` and, in the same step, into a result block, and signals again; then it
// copies the other ranks' result blocks into `recv`, from rank r + 1 round to r - 1. Each rank
// reads 2 (n - 1) / n parts instead of the n - 1 of one shot, for one more signal and wait. A large
// shard goes through this in pieces, so that a rank folds one while others still write the next.
//
// In place it holds that rank r has copied the shards of others before it overwrites them, and
// that its own shard is overwritten by the REDUCE that reads it. It also holds without the copy
// (blocks that mirror `send`): shard q of rank r is overwritten with the result of rank q, who has
// read it by then.
#include "penstock/comm/algorithm/algorithms.h"
#include "penstock/comm/algorithm/exchange.h"

namespace penstock::algorithm {

void all_reduce_two_phase(PlanBuilder& builder) {
  const std::uint32_t n = builder.ranks();
  const auto pieces = shard_pieces(builder);
  const std::vector<BlockTable> block = publish_shards(builder, pieces);
  const std::size_t count = block.size();
  std::vector<std::vector<std::uint32_t>> result(n, std::vector<std::uint32_t>(count));
  for (std::uint32_t r = 0; r < n; ++r) {
    for (std::size_t c = 0; c < count; ++c) {
      const Range& piece = pieces[r][c];
      if (piece.bytes == 0) continue;
      std::vector<Slice> src = fold_sources(builder, block[c], r, 0, piece);
      result[r][c] = builder.add_block(r, piece.bytes);
      builder.reduce(r, std::move(src), {PlanBuilder::recv(0, piece), builder.block(result[r][c])});
      builder.publish(r);
    }
  }
  for (std::uint32_t r = 0; r < n; ++r) {
    for (std::size_t c = 0; c < count; ++c) {
      for (std::uint32_t i = 1; i < n; ++i) {
        const std::uint32_t q = builder.peer(r, i);
        if (pieces[q][c].bytes == 0) continue;
        builder.copy(r, builder.block(result[q][c]), PlanBuilder::recv(0, pieces[q][c]));
      }
    }
  }
}

}  // namespace penstock::algorithm
