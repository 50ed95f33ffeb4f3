// Two levels to a root: member s of each group folds shard s of its group; in the root's group the
// next member folds the groups' results, the root straight into `recv`, the others into blocks from
// which it collects.
#include "penstock/comm/algorithm/algorithms.h"
#include "penstock/comm/algorithm/two_level.h"

namespace penstock::algorithm {

void reduce_two_level(PlanBuilder& builder) {
  const Groups groups(builder);
  const std::uint32_t root = builder.key().root;
  const std::vector<Shard> shards = shards_of_part(builder);
  const auto folds = fold_inside(builder, shards);
  std::vector<std::uint32_t> result(groups.size);
  // The root last: what it collects is being folded while it folds its own.
  for (std::uint32_t i = 1; i <= groups.size; ++i) {
    const std::uint32_t member = (groups.member_of(root) + i) % groups.size;
    const std::uint32_t r = groups.rank(groups.group_of(root), member);
    const std::uint32_t s = (member + groups.size - 1) % groups.size;
    const Range& range = shards[s].range;
    if (range.bytes == 0) continue;
    if (r == root) {
      fold_across(builder, r, folds, s, {PlanBuilder::recv(0, range)});
      continue;
    }
    result[s] = builder.add_block(r, range.bytes);
    fold_across(builder, r, folds, s, {builder.block(result[s])});
    builder.publish(r);
  }
  for (std::uint32_t i = 0; i < groups.size; ++i) {
    const std::uint32_t s = (groups.member_of(root) + i) % groups.size;
    if ((s + 1) % groups.size == groups.member_of(root) || shards[s].range.bytes == 0) continue;
    builder.copy(root, builder.block(result[s]), PlanBuilder::recv(0, shards[s].range));
  }
}

}  // namespace penstock::algorithm
