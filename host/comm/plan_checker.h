// Proves a plan right without running it.
#ifndef PENSTOCK_COMM_PLAN_CHECKER_H_
#define PENSTOCK_COMM_PLAN_CHECKER_H_

#include <cstddef>
#include <string>
#include <vector>

#include "penstock/comm/plan.h"

namespace penstock {

// Runs the plan `calls` times in a row on the same scratch memory (passes alternate between the two
// halves, so that call c + 2 overwrites what call c used; 3 or more show reuse) over every
// interleaving at once, by happens-before: program order within a rank, and signal before the waits
// that it satisfies. Finds, each as one sentence with rank, step and block:
//   - a read of a block that is not ordered after the publication of the bytes it reads,
//   - a write to a block that is not ordered after every read and write of its previous use,
//   - a wait that no signal can satisfy, or a cycle of waits (deadlock),
//   - an output byte that is never written, or written twice in one call; writes to a buffer that
//     the collective does not own at that rank (recv of a non-root),
//   - an output byte with the wrong contents: every byte is followed symbolically (which ranks'
//     inputs, at which part and offset, folded in which order) and compared with the definition of
//     the collective,
//   - a send part that is read after it was overwritten in place,
//   - blocks that overlap or are not line-aligned, slices outside of their space, two ranks writing
//     one block, lengths that disagree, a split that is no multiple of the element size,
//   - sources of a REDUCE that are not in rank order,
//   - a rank that writes a block before it knows, by this call alone, that every other rank has
//     finished the pass before the previous one, or touches a block after its last signal: either
//     breaks what another plan does before or after on the same half, so that plans found right may
//     follow each other in any mixture,
//   - a rank that leaves a barrier before another has entered it, bytes of a block that nobody
//     writes or nobody reads.
// Takes any plan, however broken, and any key. Thread-safe. Empty when
// the plan is right. At most `limit` findings.
std::vector<std::string> check_plan(const Plan& plan, int calls = 3, std::size_t limit = 20);

}  // namespace penstock
#endif
