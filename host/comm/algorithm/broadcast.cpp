// Broadcast: the root writes its part once, chunk by chunk, with a signal after each; the others
// follow and copy every chunk as it appears. The chunks' blocks go round over the devices, so that
// the root writes to one while the readers are at another.
//
// If it may push and there is one reader, the two share the work: the reader copies the first half
// of the chunks, and the root puts the others where they belong.
//
// The root's own `recv` is filled after its last signal, when nobody waits for it.
#include "penstock/comm/algorithm/algorithms.h"

namespace penstock::algorithm {

void broadcast(PlanBuilder& builder) {
  const PlanKey& key = builder.key();
  const std::uint32_t root = key.root;
  const std::vector<Range> pieces = builder.chunks(key.part_bytes);
  const bool shares = builder.pushes() && builder.ranks() == 2 && pieces.size() > 1;
  if (shares) builder.signal(builder.peer(root, 1));
  std::vector<std::uint32_t> block;
  for (const Range& piece : pieces) {
    const bool pushed = shares && block.size() >= pieces.size() / 2;
    if (pushed) builder.wait(root, builder.peer(root, 1), 1);
    block.push_back(builder.add_block(root, piece.bytes));
    if (pushed) builder.make_pushable(block.back());
    builder.copy(root, PlanBuilder::send(0, piece), builder.block(block.back()));
    builder.publish(root);
  }
  if (!key.in_place) {
    const Range whole{0, key.part_bytes};
    builder.copy(root, PlanBuilder::send(0, whole), PlanBuilder::recv(0, whole));
  }
  for (std::uint32_t i = 1; i < builder.ranks(); ++i) {
    for (std::size_t c = 0; c < pieces.size(); ++c) {
      builder.copy(builder.peer(root, i), builder.block(block[c]), PlanBuilder::recv(0, pieces[c]));
    }
  }
}

}  // namespace penstock::algorithm
