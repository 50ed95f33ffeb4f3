// All-to-all: every rank writes what the others get into blocks, chunk by chunk, with one signal
// after the chunks of all peers; then it copies what the others have for it, each round from rank
// r + 1 to r - 1. The own part is copied locally.
//
// In place, where `recv` is `send`, it holds that a rank has written all that it sends before it
// copies the first byte that it receives.
#include "penstock/comm/algorithm/algorithms.h"
#include "penstock/comm/algorithm/exchange.h"

namespace penstock::algorithm {

void all_to_all(PlanBuilder& builder) {
  const std::uint32_t n = builder.ranks();
  const Range whole{0, builder.key().part_bytes};
  if (builder.key().in_place) builder.forbid_exposed_send();
  const std::vector<Range> pieces = builder.chunks(whole.bytes);
  const std::vector<BlockTable> block = publish_parts(builder, pieces);
  for (std::uint32_t r = 0; r < n; ++r) {
    if (!builder.key().in_place) {
      builder.copy(r, PlanBuilder::send(r, whole), PlanBuilder::recv(r, whole));
    }
    for (std::size_t c = 0; c < pieces.size(); ++c) {
      for (std::uint32_t i = 1; i < n; ++i) {
        const std::uint32_t q = builder.peer(r, i);
        builder.copy(r, builder.block(block[c][std::size_t{q} * n + r]),
                     PlanBuilder::recv(q, pieces[c]));
      }
    }
  }
}

}  // namespace penstock::algorithm
