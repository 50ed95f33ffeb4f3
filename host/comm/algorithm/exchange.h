// What algorithms share in which every rank has something for every other.
#ifndef PENSTOCK_COMM_ALGORITHM_EXCHANGE_H_
#define PENSTOCK_COMM_ALGORITHM_EXCHANGE_H_

#include <cstdint>
#include <vector>

#include "penstock/comm/algorithm/builder.h"

namespace penstock::algorithm {

// Block indices by [writer * ranks + reader]; meaningless where a rank has nothing for another.
using BlockTable = std::vector<std::uint32_t>;

// Every rank writes, chunk by chunk, the parts of `send` that belong to others, and signals after
// each chunk. One table per chunk.
std::vector<BlockTable> publish_parts(PlanBuilder& builder, const std::vector<Range>& pieces);

// Part 0 in one shard per rank, and every shard in the same number of pieces (trailing ones may be
// empty): [shard][piece].
std::vector<std::vector<Range>> shard_pieces(const PlanBuilder& builder);

// Every rank writes, piece by piece, the shards of part 0 that others fold (shard q for rank q;
// empty pieces are left out), and signals after each piece. One table per piece.
std::vector<BlockTable> publish_shards(PlanBuilder& builder,
                                       const std::vector<std::vector<Range>>& pieces);

// The sources of a fold at rank r, in rank order: r's own from `send`, the others' from blocks.
// `part` and `range` say where the own source stands.
std::vector<Slice> fold_sources(const PlanBuilder& builder, const BlockTable& blocks,
                                std::uint32_t r, std::uint32_t part, Range range);

}  // namespace penstock::algorithm
#endif
