// Two levels: in each other group the member with the root's number follows the root, chunk by
// chunk, and writes on what it reads; the others of its group follow it. The root's blocks have
// ranks / group + group - 2 readers instead of ranks - 1, for another copy between.
#include "penstock/comm/algorithm/algorithms.h"
#include "penstock/comm/algorithm/two_level.h"

namespace penstock::algorithm {

void broadcast_two_level(PlanBuilder& builder) {
  const PlanKey& key = builder.key();
  const Groups groups(builder);
  const std::uint32_t root = key.root;
  const std::uint32_t leader = groups.member_of(root);
  const std::vector<Range> pieces = builder.chunks(key.part_bytes);
  // [group][chunk]: from where its ranks read.
  std::vector<std::vector<std::uint32_t>> block(groups.count,
                                                std::vector<std::uint32_t>(pieces.size()));
  for (std::uint32_t i = 0; i < groups.count; ++i) {
    const std::uint32_t group = (groups.group_of(root) + i) % groups.count;
    const std::uint32_t r = groups.rank(group, leader);
    for (std::size_t c = 0; c < pieces.size(); ++c) {
      block[group][c] = builder.add_block(r, pieces[c].bytes);
      const Slice from = r == root ? PlanBuilder::send(0, pieces[c])
                                   : builder.block(block[groups.group_of(root)][c]);
      builder.copy(r, from, builder.block(block[group][c]));
      builder.publish(r);
    }
  }
  if (!key.in_place) {
    const Range whole{0, key.part_bytes};
    builder.copy(root, PlanBuilder::send(0, whole), PlanBuilder::recv(0, whole));
  }
  for (std::uint32_t i = 1; i < builder.ranks(); ++i) {
    const std::uint32_t r = builder.peer(root, i);
    const bool leads = groups.member_of(r) == leader;
    const std::uint32_t source = groups.group_of(leads ? root : r);
    for (std::size_t c = 0; c < pieces.size(); ++c) {
      builder.copy(r, builder.block(block[source][c]), PlanBuilder::recv(0, pieces[c]));
    }
  }
}

}  // namespace penstock::algorithm
