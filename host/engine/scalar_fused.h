// The definition of what REDUCE does beyond one element type, and of OUTER_STEP, element by
// element.
#ifndef PENSTOCK_ENGINE_SCALAR_FUSED_H_
#define PENSTOCK_ENGINE_SCALAR_FUSED_H_

#include "penstock/engine/host_engine.h"

namespace penstock {

// As scalar_reduce, for arguments that are fused() and do not merely copy. Thread-safe.
void scalar_fused_reduce(const ReduceArguments& arguments);
void scalar_outer_step(const OuterStepArguments& arguments);

}  // namespace penstock
#endif
