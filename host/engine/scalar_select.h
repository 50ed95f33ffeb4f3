// SELECT as node_table.h defines it, in the plainest code: what every other engine is compared
// with.
//
// Every function here wants a checked table, program, operation and task (penstock_*_check): an
// index out of range is undefined. Cells may hold anything: one outside of its bound is read as the
// nearest bound, so that no arithmetic overflows. The functions read the table and write nothing,
// except scalar_commit, scalar_release, and scalar_select with `commit`; one thread at a time may
// change a table, and none may read it meanwhile.
#ifndef PENSTOCK_ENGINE_SCALAR_SELECT_H_
#define PENSTOCK_ENGINE_SCALAR_SELECT_H_

#include <cstdint>

#include "penstock/engine/host_engine.h"

namespace penstock {

// Places one task; commits it to the winner's row when asked. Fills all of *result.
void scalar_select(const TableView& table, const penstock_program& program,
                   const penstock_task& task, bool commit, penstock_result* result);

// What a decision has to know of the whole table before it can look at one row by itself. Holds
// while the table, program and task, to which it refers, stay as they are.
struct DecisionContext {
  // From here on filters can be run.
  DecisionContext(const TableView& of_table, const penstock_program& of_program,
                  const penstock_task& of_task);
  // Leaves all of `terms` to the caller.
  struct Unprepared {};
  DecisionContext(const TableView& of_table, const penstock_program& of_program,
                  const penstock_task& of_task, Unprepared)
      : table(of_table), program(of_program), task(of_task) {}
  // From here on scores can be run. feasible[row] is not 0 for the rows below header.rows that pass
  // all filters.
  void weigh_domains(const std::uint8_t* feasible);

  const TableView table;
  const penstock_program& program;
  const penstock_task& task;
  // One for each of the task's domain terms, by its index.
  struct Term {
    std::int32_t least = 0;     // FILTER_DOMAINS, kind SPREAD: min
    bool may_be_first = false;  // FILTER_DOMAINS, kind PRESENT
    double log = 0;             // SCORE_SPREAD: spread_log of the term's size
  };
  Term terms[PENSTOCK_MAX_DOMAIN_TERMS];
};

// logs[size] as it is read: 0 for a cell that is not in 0..PENSTOCK_MAX_LOG. The table must have
// domain columns, and size be at most its capacity.
double spread_log(const TableView& table, std::uint32_t size);

// Whether `op` (a filter of the context's program) lets the task onto the row.
bool scalar_filter(const DecisionContext& context, const penstock_column_op& op, std::uint32_t row);

// What `op` (a score of the context's program) gives the row, before it is normalised and weighted.
std::int64_t scalar_score(const DecisionContext& context, const penstock_column_op& op,
                          std::uint32_t row);

// The parts of both for the operations on domains: FILTER_DOMAINS, SCORE_DOMAINS, SCORE_SPREAD, and
// whether SCORE_SPREAD ignores the row.
bool scalar_domains_pass(const DecisionContext& context, const penstock_column_op& op,
                         std::uint32_t row);
std::int64_t scalar_domains_score(const DecisionContext& context, const penstock_column_op& op,
                                  std::uint32_t row);
std::int64_t scalar_spread_score(const DecisionContext& context, const penstock_column_op& op,
                                 std::uint32_t row);
bool scalar_spread_ignores(const DecisionContext& context, const penstock_column_op& op,
                           std::uint32_t row);

// Whether `op` gives 0 to every row however it is normalised: SCORE_SPREAD for a task that has no
// term in its group.
bool scalar_is_idle(const penstock_column_op& op, const penstock_task& task);

// Replaces scores[row] by its normalised value wherever feasible[row] is not 0.
void scalar_normalise(const penstock_column_op& op, const penstock_task& task, std::int64_t* scores,
                      const std::uint8_t* feasible, std::uint32_t rows);

// The same in two steps: the range of the feasible rows' scores (zeros when there is none), without
// those that the normalisation leaves out, and one score in that range. `normalise` is a
// penstock_normalise. An idle operation is not to be normalised.
struct ScoreRange {
  std::int64_t min = 0;
  std::int64_t max = 0;
  bool any = false;
  bool has_ignored = false;  // some feasible row was left out
};
ScoreRange scalar_score_range(std::uint32_t normalise, const std::int64_t* scores,
                              const std::uint8_t* feasible, std::uint32_t rows);
std::int64_t scalar_normalise_one(std::uint32_t normalise, const ScoreRange& range,
                                  std::int64_t score);

// The GPUs of the row that the task would take, as a mask of their indices. Fewer than gpu_count
// bits when not enough of them fit.
std::uint32_t scalar_pick_gpus(const TableView& table, const penstock_program& program,
                               const penstock_task& task, std::uint32_t row);

// Adds the task to the row, as SELECT commits it, on the GPUs of the mask (scalar_pick_gpus).
// PENSTOCK_OUT_OF_RANGE, and nothing changed, if a cell would leave its bounds or the mask does not
// hold gpu_count GPUs that have the room. The row must be below the table's capacity.
std::uint32_t scalar_commit(const TableView& table, const penstock_task& task, std::uint32_t row,
                            std::uint32_t gpu_mask);
// Takes back what scalar_commit with the same arguments did, except set_bits: only who counts the
// tasks that set a bit knows when to clear it. A raise is taken back from the domain that the row
// has now, if the row is eligible now. Errors as of scalar_commit.
std::uint32_t scalar_release(const TableView& table, const penstock_task& task, std::uint32_t row,
                             std::uint32_t gpu_mask);

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
