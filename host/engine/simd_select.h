// SELECT with the host's vector instructions (Highway, chosen when the process starts).
//
// Rows are processed in blocks that stay in the first-level cache: filters give one bit per row,
// a block without a feasible row is not scored, and only rows whose score beats the k-th best so
// far are looked at one by one. Columns are int64; quotients come from float64 division, which is
// exact where dividend + divisor < 2^53 (simd_select_ops-inl.h has the proof). A block that holds
// larger cells, or cells outside of their bounds, is given to the scalar functions.
#ifndef PENSTOCK_ENGINE_SIMD_SELECT_H_
#define PENSTOCK_ENGINE_SIMD_SELECT_H_

#include "penstock/engine/host_engine.h"

namespace penstock {

// The same bits as scalar_select, under the same conditions.
void simd_select(const TableView& table, const penstock_program& program, const penstock_task& task,
                 bool commit, penstock_result* result);

}  // namespace penstock
#endif
