// The definition of REDUCE, element by element.
#ifndef PENSTOCK_ENGINE_SCALAR_REDUCE_H_
#define PENSTOCK_ENGINE_SCALAR_REDUCE_H_

#include "penstock/engine/host_engine.h"

namespace penstock {

// The arguments are checked; the floating-point environment is the default one (nearest even, no
// flushing of subnormals). Pointers need no alignment. Thread-safe.
void scalar_reduce(const ReduceArguments& arguments);

}  // namespace penstock
#endif
