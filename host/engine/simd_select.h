// SELECT with the host's vector instructions (Highway, chosen when the process starts).
//
// Rows are processed in blocks that stay in the first-level cache: filters give one bit per row,
// and a block without a feasible row is not scored. What nearly every policy asks of processors and
// memory (FIT, LEAST_ALLOCATED or MOST_ALLOCATED, BALANCED) is one pass that reads each column once
// (simd_select_pair-inl.h); other operations are a pass each. Operations for which the task names
// nothing add a constant. The terms of BITS divide the rows into a few parts, each of which has its
// own list of the best rows, so that what these operations add to all rows of a part, normalised or
// not, is wanted at the end only. Other operations that are normalised need the range of all rows'
// scores, and SPREAD the number of feasible rows and domains: their raw scores are kept per thread
// and weighed in a last pass. A program's percentages after the first, or after that one pass, are
// worked out only for rows that they could still make one of the best, and only rows whose score
// beats the k-th best so far are looked at one by one. Columns are int64; quotients come from
// float64 and are exact (simd_select_vectors-inl.h and simd_select_resources-inl.h say why). A
// block that holds larger cells than that is exact for, or cells outside of their bounds, is given
// to the scalar functions.
#ifndef PENSTOCK_ENGINE_SIMD_SELECT_H_
#define PENSTOCK_ENGINE_SIMD_SELECT_H_

#include "penstock/engine/host_engine.h"

namespace penstock {

// The same bits as scalar_select, under the same conditions.
void simd_select(const TableView& table, const penstock_program& program, const penstock_task& task,
                 bool commit, penstock_result* result);

}  // namespace penstock
#endif
