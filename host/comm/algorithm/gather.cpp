// Gather: every rank but the root writes its part, chunk by chunk with a signal after each; the
// root copies the chunks into `recv`, each round from rank root + 1 on. If they may push, they put
// their chunks there themselves.
#include "penstock/comm/algorithm/algorithms.h"

namespace penstock::algorithm {

void gather(PlanBuilder& builder) {
  const std::uint32_t n = builder.ranks();
  const std::uint32_t root = builder.key().root;
  const Range whole{0, builder.key().part_bytes};
  const std::vector<Range> pieces = builder.chunks(whole.bytes);
  std::vector<std::vector<std::uint32_t>> block(pieces.size(), std::vector<std::uint32_t>(n));
  // With one other rank the root takes the first half of the chunks itself.
  const bool pushes = builder.pushes() && (n > 2 || pieces.size() > 1);
  const std::size_t first_pushed = n > 2 ? 0 : pieces.size() / 2;
  if (pushes) builder.signal(root);
  for (std::size_t c = 0; c < pieces.size(); ++c) {
    // Chunk by chunk over the ranks, which write at the same time: so they are at different
    // devices.
    for (std::uint32_t i = 1; i < n; ++i) {
      const std::uint32_t r = builder.peer(root, i);
      block[c][r] = builder.add_block(r, pieces[c].bytes);
      if (pushes && c >= first_pushed) {
        builder.wait(r, root, 1);
        builder.make_pushable(block[c][r]);
      }
      builder.copy(r, PlanBuilder::send(0, pieces[c]), builder.block(block[c][r]));
      builder.publish(r);
    }
  }
  if (!builder.key().in_place) {
    builder.copy(root, PlanBuilder::send(0, whole), PlanBuilder::recv(root, whole));
  }
  for (std::size_t c = 0; c < pieces.size(); ++c) {
    for (std::uint32_t i = 1; i < n; ++i) {
      const std::uint32_t r = builder.peer(root, i);
      builder.copy(root, builder.block(block[c][r]), PlanBuilder::recv(r, pieces[c]));
    }
  }
}

}  // namespace penstock::algorithm
