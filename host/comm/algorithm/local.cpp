// A single rank: what it sends is what it receives, and no pool is needed.
//
// A reduction stays a REDUCE of one source, even in place: a pre-multiplied sum of one rank still
// multiplies.
#include "penstock/comm/algorithm/algorithms.h"

namespace penstock::algorithm {

void local(PlanBuilder& builder) {
  const PlanKey& key = builder.key();
  const Range whole{0, key.part_bytes};
  if (whole.bytes == 0) return;
  if (reduces(key.collective)) {
    builder.reduce(0, {PlanBuilder::send(0, whole)}, {PlanBuilder::recv(0, whole)});
  } else if (!key.in_place) {
    builder.copy(0, PlanBuilder::send(0, whole), PlanBuilder::recv(0, whole));
  }
}

}  // namespace penstock::algorithm
