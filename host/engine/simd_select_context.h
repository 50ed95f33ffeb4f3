// DecisionContext's two steps with vectors: what a decision has to know of all rows and domains.
#ifndef PENSTOCK_ENGINE_SIMD_SELECT_CONTEXT_H_
#define PENSTOCK_ENGINE_SIMD_SELECT_CONTEXT_H_

#include <cstdint>

#include "penstock/engine/scalar_select.h"

namespace penstock {

// What DecisionContext's constructor finds out, for one that was made unprepared.
void simd_prepare_filters(DecisionContext* context);

// What DecisionContext::weigh_domains finds out. `feasible` has a bit for every row below
// header.rows, in words of 64, and zeros up to the end of the last word.
void simd_weigh_domains(const std::uint64_t* feasible, DecisionContext* context);

}  // namespace penstock
#endif
