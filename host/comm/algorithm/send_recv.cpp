// Send and receive: rank 0 writes its part chunk by chunk with a signal after each, rank 1 follows.
// If it may push, the two share the work: rank 1 copies the first half of the chunks, and rank 0
// puts the others where they belong.
#include "penstock/comm/algorithm/algorithms.h"

namespace penstock::algorithm {

void send_recv(PlanBuilder& builder) {
  const std::vector<Range> pieces = builder.chunks(builder.key().part_bytes);
  const bool shares = builder.pushes() && pieces.size() > 1;
  if (shares) builder.signal(1);
  std::vector<std::uint32_t> block;
  for (const Range& piece : pieces) {
    const bool pushed = shares && block.size() >= pieces.size() / 2;
    if (pushed) builder.wait(0, 1, 1);
    block.push_back(builder.add_block(0, piece.bytes));
    if (pushed) builder.make_pushable(block.back());
    builder.copy(0, PlanBuilder::send(0, piece), builder.block(block.back()));
    builder.publish(0);
  }
  for (std::size_t c = 0; c < pieces.size(); ++c) {
    builder.copy(1, builder.block(block[c]), PlanBuilder::recv(0, pieces[c]));
  }
}

}  // namespace penstock::algorithm
