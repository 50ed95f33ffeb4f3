// What the algorithms for topologies with groups share.
//
// Ranks are numbered through the groups: rank k * group + m is member m of group k. Every shard (or
// part) has in each group one member that folds the contributions of that group; the next member,
// in one group or in all, folds those results over the groups. Two different ranks, because a plan
// has no step that reads what its own rank has just written: on an engine that overlaps steps
// nothing would order them.
#ifndef PENSTOCK_COMM_ALGORITHM_TWO_LEVEL_H_
#define PENSTOCK_COMM_ALGORITHM_TWO_LEVEL_H_

#include <cstdint>
#include <vector>

#include "penstock/comm/algorithm/builder.h"

namespace penstock::algorithm {

struct Groups {
  explicit Groups(const PlanBuilder& builder)
      : size(builder.key().topology.group), count(builder.key().topology.groups()) {}
  std::uint32_t rank(std::uint32_t group, std::uint32_t member) const {
    return group * size + member % size;
  }
  std::uint32_t group_of(std::uint32_t rank) const { return rank / size; }
  std::uint32_t member_of(std::uint32_t rank) const { return rank % size; }

  std::uint32_t size;
  std::uint32_t count;
};

// Ranges of send parts, one per shard; shard s is folded by member s of every group. Every rank
// writes what the others of its group fold, signals, folds what is its own, and signals again.
// Returns the blocks of the folds, [group][shard]; meaningless for an empty range.
struct Shard {
  std::uint32_t part = 0;
  Range range;
  std::uint32_t member = 0;  // that folds it
};
std::vector<std::vector<std::uint32_t>> fold_inside(PlanBuilder& builder,
                                                    const std::vector<Shard>& shards);

// Part 0 in one shard per member of a group.
std::vector<Shard> shards_of_part(const PlanBuilder& builder);

// Rank r folds shard s of all groups into `dst`.
void fold_across(PlanBuilder& builder, std::uint32_t r,
                 const std::vector<std::vector<std::uint32_t>>& folds, std::size_t s,
                 std::vector<Slice> dst);

}  // namespace penstock::algorithm
#endif
