// SELECT as node_table.h defines it, in the plainest code: what every other engine is compared
// with.
//
// Every function here wants a checked table, program, operation and task (penstock_*_check): an
// index out of range is undefined. Cells may hold anything: one outside of its bound is read as the
// nearest bound, so that no arithmetic overflows. The functions read the table and write nothing,
// except scalar_select with `commit`; one thread at a time may commit to a table, and none may read
// it meanwhile.
#ifndef PENSTOCK_ENGINE_SCALAR_SELECT_H_
#define PENSTOCK_ENGINE_SCALAR_SELECT_H_

#include <cstdint>

#include "penstock/engine/host_engine.h"

namespace penstock {

// Places one task; commits it to the winner's row when asked. Fills all of *result.
void scalar_select(const TableView& table, const penstock_program& program,
                   const penstock_task& task, bool commit, penstock_result* result);

// Whether `op` (a filter) lets the task onto the row.
bool scalar_filter(const TableView& table, const penstock_column_op& op, const penstock_task& task,
                   std::uint32_t row);

// What `op` (a score) gives the row, before it is normalised and weighted.
std::int64_t scalar_score(const TableView& table, const penstock_column_op& op,
                          const penstock_task& task, std::uint32_t row);

// Replaces scores[row] by its normalised value wherever feasible[row] is not 0.
void scalar_normalise(const penstock_column_op& op, std::int64_t* scores,
                      const std::uint8_t* feasible, std::uint32_t rows);

// The same in two steps: the range of the feasible rows' scores (zeros when there is none), and one
// score in that range. `normalise` is a penstock_normalise.
struct ScoreRange {
  std::int64_t min = 0;
  std::int64_t max = 0;
  bool any = false;
};
ScoreRange scalar_score_range(const std::int64_t* scores, const std::uint8_t* feasible,
                              std::uint32_t rows);
std::int64_t scalar_normalise_one(std::uint32_t normalise, const ScoreRange& range,
                                  std::int64_t score);

// The GPUs of the row that the task would take, as a mask of their indices. Fewer than gpu_count
// bits when not enough of them fit.
std::uint32_t scalar_pick_gpus(const TableView& table, const penstock_program& program,
                               const penstock_task& task, std::uint32_t row);

// Whether a row with score `a_score` is better than one with `b_score`: higher score, else the
// program's tie rule. `rows` is the table's; a total order over different rows.
bool scalar_better(const penstock_program& program, const penstock_task& task, std::uint32_t rows,
                   std::int64_t a_score, std::uint32_t a_row, std::int64_t b_score,
                   std::uint32_t b_row);

// Puts the row into result->best, which holds the n_best best rows so far, if it belongs there.
void scalar_insert(const penstock_program& program, const penstock_task& task, std::uint32_t rows,
                   std::uint32_t row, std::int64_t score, penstock_result* result);

// What follows the choice, on every host engine: fills status, row, score and gpu_mask from the
// best rows that *result already lists, and commits when asked.
void scalar_finish(const TableView& table, const penstock_program& program,
                   const penstock_task& task, bool commit, penstock_result* result);

}  // namespace penstock
#endif
