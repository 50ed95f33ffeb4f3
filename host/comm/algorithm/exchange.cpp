#include "penstock/comm/algorithm/exchange.h"

namespace penstock::algorithm {

std::vector<BlockTable> publish_parts(PlanBuilder& builder, const std::vector<Range>& pieces) {
  const std::uint32_t n = builder.ranks();
  std::vector<BlockTable> blocks(pieces.size(), BlockTable(std::size_t{n} * n));
  for (std::uint32_t r = 0; r < n; ++r) {
    for (std::size_t c = 0; c < pieces.size(); ++c) {
      for (std::uint32_t i = 1; i < n; ++i) {
        const std::uint32_t q = builder.peer(r, i);
        const std::uint32_t index = builder.add_block(r, pieces[c].bytes);
        blocks[c][std::size_t{r} * n + q] = index;
        builder.copy(r, PlanBuilder::send(q, pieces[c]), builder.block(index));
      }
      builder.publish(r);
    }
  }
  return blocks;
}

std::vector<std::vector<Range>> shard_pieces(const PlanBuilder& builder) {
  const Tuning& tuning = builder.key().tuning;
  const std::vector<Range> shards = split(builder.key().part_bytes, builder.ranks());
  // The first shard is the largest.
  const std::uint32_t count = shards[0].bytes >= tuning.chunk_bytes ? tuning.chunks : 1;
  std::vector<std::vector<Range>> pieces;
  for (const Range& shard : shards) {
    pieces.push_back(split(shard.bytes, count));
    for (Range& piece : pieces.back()) piece.offset += shard.offset;
  }
  return pieces;
}

std::vector<BlockTable> publish_shards(PlanBuilder& builder,
                                       const std::vector<std::vector<Range>>& pieces) {
  const std::uint32_t n = builder.ranks();
  std::vector<BlockTable> blocks(pieces[0].size(), BlockTable(std::size_t{n} * n));
  for (std::uint32_t r = 0; r < n; ++r) {
    for (std::size_t c = 0; c < blocks.size(); ++c) {
      for (std::uint32_t i = 1; i < n; ++i) {
        const std::uint32_t q = builder.peer(r, i);
        const Range& piece = pieces[q][c];
        if (piece.bytes == 0) continue;
        const std::uint32_t index = builder.add_block(r, piece.bytes);
        blocks[c][std::size_t{r} * n + q] = index;
        builder.copy(r, PlanBuilder::send(0, piece), builder.block(index));
      }
      builder.publish(r);
    }
  }
  return blocks;
}

std::vector<Slice> fold_sources(const PlanBuilder& builder, const BlockTable& blocks,
                                std::uint32_t r, std::uint32_t part, Range range) {
  const std::uint32_t n = builder.ranks();
  std::vector<Slice> sources;
  for (std::uint32_t q = 0; q < n; ++q) {
    sources.push_back(q == r ? PlanBuilder::send(part, range)
                             : builder.block(blocks[std::size_t{q} * n + r]));
  }
  return sources;
}

}  // namespace penstock::algorithm
