// Scatter: the root writes every other rank's part, chunk by chunk, each round from rank root + 1
// on; every rank copies its chunks as they appear. The root's own part is copied locally, when
// nobody waits for it any more.
//
// Large chunks are signalled one by one, so that their readers need not wait for the rest of the
// round; small ones together, because a signal would cost as much as the chunk.
#include "penstock/comm/algorithm/algorithms.h"

namespace penstock::algorithm {
namespace {

constexpr std::uint64_t kSignalEachBytes = 4096;

}  // namespace

void scatter(PlanBuilder& builder) {
  const std::uint32_t n = builder.ranks();
  const std::uint32_t root = builder.key().root;
  const Range whole{0, builder.key().part_bytes};
  const std::vector<Range> pieces = builder.chunks(whole.bytes);
  std::vector<std::vector<std::uint32_t>> block(pieces.size(), std::vector<std::uint32_t>(n));
  for (std::size_t c = 0; c < pieces.size(); ++c) {
    for (std::uint32_t i = 1; i < n; ++i) {
      const std::uint32_t r = builder.peer(root, i);
      block[c][r] = builder.add_block(root, pieces[c].bytes);
      builder.copy(root, PlanBuilder::send(r, pieces[c]), builder.block(block[c][r]));
      if (pieces[c].bytes >= kSignalEachBytes) builder.publish(root);
    }
    builder.publish(root);
  }
  if (!builder.key().in_place) {
    builder.copy(root, PlanBuilder::send(root, whole), PlanBuilder::recv(0, whole));
  }
  for (std::uint32_t i = 1; i < n; ++i) {
    const std::uint32_t r = builder.peer(root, i);
    for (std::size_t c = 0; c < pieces.size(); ++c) {
      builder.copy(r, builder.block(block[c][r]), PlanBuilder::recv(0, pieces[c]));
    }
  }
}

}  // namespace penstock::algorithm
