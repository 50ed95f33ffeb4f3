#include "penstock/comm/algorithm/two_level.h"

#include <utility>

namespace penstock::algorithm {

std::vector<Shard> shards_of_part(const PlanBuilder& builder) {
  const Groups groups(builder);
  std::vector<Shard> shards;
  for (const Range& range : split(builder.key().part_bytes, groups.size)) {
    shards.push_back({0, range, static_cast<std::uint32_t>(shards.size())});
  }
  return shards;
}

std::vector<std::vector<std::uint32_t>> fold_inside(PlanBuilder& builder,
                                                    const std::vector<Shard>& shards) {
  const Groups groups(builder);
  const std::uint32_t n = builder.ranks();
  // What a rank shows to the folding member: [rank][shard].
  std::vector<std::vector<std::uint32_t>> shown(n, std::vector<std::uint32_t>(shards.size()));
  for (std::uint32_t r = 0; r < n; ++r) {
    const std::uint32_t self = groups.member_of(r);
    // From the next member on, so that no two ranks write for the same one at the same step.
    for (std::uint32_t i = 1; i < groups.size; ++i) {
      for (std::size_t s = 0; s < shards.size(); ++s) {
        const Shard& shard = shards[s];
        if (shard.member != (self + i) % groups.size || shard.range.bytes == 0) continue;
        shown[r][s] = builder.add_block(r, shard.range.bytes);
        builder.copy(r, PlanBuilder::send(shard.part, shard.range), builder.block(shown[r][s]));
      }
    }
    builder.publish(r);
  }
  std::vector<std::vector<std::uint32_t>> folds(groups.count,
                                                std::vector<std::uint32_t>(shards.size()));
  for (std::uint32_t r = 0; r < n; ++r) {
    const std::uint32_t group = groups.group_of(r);
    for (std::size_t s = 0; s < shards.size(); ++s) {
      const Shard& shard = shards[s];
      if (groups.member_of(r) != shard.member || shard.range.bytes == 0) continue;
      std::vector<Slice> src;
      for (std::uint32_t m = 0; m < groups.size; ++m) {
        const std::uint32_t q = groups.rank(group, m);
        src.push_back(q == r ? PlanBuilder::send(shard.part, shard.range)
                             : builder.block(shown[q][s]));
      }
      folds[group][s] = builder.add_block(r, shard.range.bytes);
      builder.fold(r, std::move(src), {builder.block(folds[group][s])}, false);
    }
    builder.publish(r);
  }
  return folds;
}

void fold_across(PlanBuilder& builder, std::uint32_t r,
                 const std::vector<std::vector<std::uint32_t>>& folds, std::size_t s,
                 std::vector<Slice> dst) {
  std::vector<Slice> src;
  for (const std::vector<std::uint32_t>& of_group : folds) {
    src.push_back(builder.block(of_group[s]));
  }
  builder.fold(r, std::move(src), std::move(dst), true);
}

}  // namespace penstock::algorithm
