// Two levels: in each group, the part of rank d is folded by the member after d's; then every rank
// folds the groups' results of its own part. Between groups moves one part per rank and other
// group, instead of one per pair of ranks.
#include "penstock/comm/algorithm/algorithms.h"
#include "penstock/comm/algorithm/two_level.h"

namespace penstock::algorithm {

void reduce_scatter_two_level(PlanBuilder& builder) {
  const Groups groups(builder);
  const Range whole{0, builder.key().part_bytes};
  std::vector<Shard> shards;
  for (std::uint32_t d = 0; d < builder.ranks(); ++d) {
    shards.push_back({d, whole, (d + 1) % groups.size});
  }
  const auto folds = fold_inside(builder, shards);
  for (std::uint32_t r = 0; r < builder.ranks(); ++r) {
    fold_across(builder, r, folds, r, {PlanBuilder::recv(0, whole)});
  }
}

}  // namespace penstock::algorithm
