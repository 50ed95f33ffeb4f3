// Which parts of the user's buffers a rank has in a collective, and what they must hold at the end:
// the definition of the collectives, for whoever checks or executes plans.
#ifndef PENSTOCK_COMM_PLAN_SPACES_H_
#define PENSTOCK_COMM_PLAN_SPACES_H_

#include <cstdint>
#include <vector>

#include "penstock/comm/plan.h"

namespace penstock {

// Parts that `rank` has in its send or recv buffer; 0 if the collective leaves that buffer alone.
std::uint32_t part_count(const PlanKey& key, Space space, std::uint32_t rank);

// In place, part `index` of recv is this part of send; -1 if it is memory of its own.
std::int64_t aliased_send_part(const PlanKey& key, std::uint32_t rank, std::uint32_t index);

// A part of the send buffer of a rank.
struct Input {
  std::uint32_t rank = 0;
  std::uint32_t part = 0;
};

// Part `index` of recv at `rank` is a copy of the one input, or the left fold of the inputs in the
// order given.
struct Definition {
  bool is_fold = false;
  std::uint32_t group = 0;  // not 0: the fold of the folds of so many inputs each
  std::vector<Input> inputs;
};
Definition define_output(const PlanKey& key, std::uint32_t rank, std::uint32_t index);

}  // namespace penstock
#endif
