// Two levels: the part in one shard per member of a group. Member s of each group folds shard s of
// its group and shows it; in every group the next member folds the groups' results, into `recv` and
// into a block of its group; from these blocks the others of the group collect. So between groups
// moves one shard per rank and other group, and all else stays inside.
//
// In place it holds that shard s of a rank is overwritten only after the group's member s, which
// reads it, has shown its fold: with it, or with what was made of it.
#include <utility>

#include "penstock/comm/algorithm/algorithms.h"
#include "penstock/comm/algorithm/two_level.h"

namespace penstock::algorithm {

void all_reduce_two_level(PlanBuilder& builder) {
  const Groups groups(builder);
  const std::vector<Shard> shards = shards_of_part(builder);
  const auto folds = fold_inside(builder, shards);
  const std::uint32_t n = builder.ranks();
  std::vector<std::uint32_t> result(n);  // by the rank that folded over the groups
  for (std::uint32_t r = 0; r < n; ++r) {
    const std::uint32_t s = (groups.member_of(r) + groups.size - 1) % groups.size;
    const Range& range = shards[s].range;
    if (range.bytes == 0) continue;
    result[r] = builder.add_block(r, range.bytes);
    std::vector<Slice> dst = {PlanBuilder::recv(0, range), builder.block(result[r])};
    // A rank that folds nothing inside has not heard of the others' buffers; then its result is a
    // block that mirrors none.
    if (shards[groups.member_of(r)].range.bytes == 0) std::swap(dst[0], dst[1]);
    fold_across(builder, r, folds, s, std::move(dst));
    builder.publish(r);
  }
  for (std::uint32_t r = 0; r < n; ++r) {
    for (std::uint32_t i = 1; i < groups.size; ++i) {
      const std::uint32_t q = groups.rank(groups.group_of(r), groups.member_of(r) + i);
      const std::uint32_t s = (groups.member_of(q) + groups.size - 1) % groups.size;
      const Range& range = shards[s].range;
      if (range.bytes == 0) continue;
      builder.copy(r, builder.block(result[q]), PlanBuilder::recv(0, range));
    }
  }
}

}  // namespace penstock::algorithm
