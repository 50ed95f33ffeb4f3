// Send and receive: rank 0 writes its part chunk by chunk with a signal after each, rank 1 follows.
#include "penstock/comm/algorithm/algorithms.h"

namespace penstock::algorithm {

void send_recv(PlanBuilder& builder) {
  const std::vector<Range> pieces = builder.chunks(builder.key().part_bytes);
  std::vector<std::uint32_t> block;
  for (const Range& piece : pieces) {
    block.push_back(builder.add_block(0, piece.bytes));
    builder.copy(0, PlanBuilder::send(0, piece), builder.block(block.back()));
    builder.publish(0);
  }
  for (std::size_t c = 0; c < pieces.size(); ++c) {
    builder.copy(1, builder.block(block[c]), PlanBuilder::recv(0, pieces[c]));
  }
}

}  // namespace penstock::algorithm
