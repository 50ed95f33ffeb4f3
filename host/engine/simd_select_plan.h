// What a decision of simd_select has to compute, as far as the program and the task say.
#ifndef PENSTOCK_ENGINE_SIMD_SELECT_PLAN_H_
#define PENSTOCK_ENGINE_SIMD_SELECT_PLAN_H_

#include <cstdint>

#include "penstock/engine/host_engine.h"
#include "penstock/engine/scalar_select.h"
#include "penstock/engine/simd_select_blocks.h"

namespace penstock {

// A list of operations of a program.
struct OpList {
  const penstock_column_op* op[PENSTOCK_MAX_OPS];
  std::uint32_t n = 0;

  void add(const penstock_column_op& added) { op[n++] = &added; }
  const penstock_column_op* const* begin() const { return op; }
  const penstock_column_op* const* end() const { return op + n; }
};

// The operations of a checked program, every one in the list that says how its scores are got. The
// program and the task must outlive it.
struct SelectPlan {
  SelectPlan(const penstock_program& program, const penstock_task& task);

  // Filters that may refuse the task a row, apart from the FIT that is part of the pair.
  OpList filters;
  // What every row gets from operations whose scores do not depend on the row.
  std::int64_t base = 0;

  // LEAST_ALLOCATED or MOST_ALLOCATED, and BALANCED, if they go with `pair`; and that FIT, or null.
  OpList paired;
  const penstock_column_op* paired_fit = nullptr;
  PairScores pair;

  // BITS: they give rows that agree in which of a few terms hold the same score, so that the rows
  // are divided into 2^n_terms parts by these terms: bit i of a part says whether term[i] holds.
  static constexpr std::uint32_t kMaxTerms = 3;
  static constexpr std::uint32_t kMaxParts = 1u << kMaxTerms;
  OpList of_parts;
  const penstock_term* term[kMaxTerms];
  std::uint32_t n_terms = 0;
  std::uint32_t n_parts() const { return 1u << n_terms; }
  // What `of_parts` add to the score of a feasible row of each part; any[part] is not 0 for those
  // that have feasible rows, and the others get nothing that counts.
  void weigh_parts(const std::uint8_t* any, std::int64_t* values) const;

  // Scores that can only be weighed once those of all rows are known: they are normalised, or are
  // SPREAD, which wants to know of all rows which are feasible.
  OpList normalised;
  // Scores from 0 to 100 that rows do without if they could not be among the best with them, and
  // what all of them add at most.
  OpList deferred;
  std::int64_t deferred_most = 0;
  // All others.
  OpList plain;

 private:
  bool is_zero(const penstock_column_op& op) const;
  bool may_refuse(const penstock_column_op& op) const;
  bool names_term_of(const penstock_column_op& op) const;
  bool names_domain_term_of(const penstock_column_op& op) const;
  void find_pair();
  void find_fit(const penstock_column_op& fit);
  bool divides(const penstock_column_op& op);

  const penstock_program& program_;
  const penstock_task& task_;
};

}  // namespace penstock
#endif
