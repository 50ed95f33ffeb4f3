/* What the operations of a program give one row. The active filters of a step are those that can
 * refuse the row, the active scores those that differ from row to row: the host has seen to the
 * others. */
#ifndef PENSTOCK_DRIVERS_KERNELS_SELECT_ROWS_H_
#define PENSTOCK_DRIVERS_KERNELS_SELECT_ROWS_H_

#include "penstock/drivers/kernels/select_gpus.h"
#include "penstock/drivers/kernels/select_state.h"

PENSTOCK_KERNELS_BEGIN

/* ---- filters ---- */

PENSTOCK_FUNCTION u32 select_term_holds(const select_state* s,
                                        const PENSTOCK_GLOBAL select_term* term, u32 row) {
  return select_bit(s, term->column, row) != term->clear;
}

PENSTOCK_FUNCTION u32 select_bits_hold(const select_state* s, u32 group, u32 row) {
  for (u32 i = 0; i < s->task->n_terms; i++)
    if (s->task->terms[i].group == group && !select_term_holds(s, &s->task->terms[i], row))
      return 0;
  return 1;
}

PENSTOCK_FUNCTION u32 select_fits(const select_state* s, const PENSTOCK_GLOBAL select_op* op,
                                  u32 row) {
  for (u32 i = 0; i < op->n; i++) {
    const i64 request = s->task->request[op->column[i]];
    if (request != 0 && request > select_left(s, op->column[i], row)) return 0;
  }
  return 1;
}

PENSTOCK_FUNCTION u32 select_gpus_fit(const select_state* s, u32 row) {
  u32 fitting = 0;
  for (u32 gpu = 0; gpu < s->batch->table.n_gpus; gpu++)
    fitting += select_gpu_free(s, gpu, row) >= (i64)s->task->gpu_milli;
  return fitting >= s->task->gpu_count;
}

PENSTOCK_FUNCTION u32 select_domains_pass(const select_state* s, u32 group, u32 row) {
  const PENSTOCK_GLOBAL select_context* context = select_context_of(s);
  for (u32 t = 0; t < s->task->n_domain_terms; t++) {
    const PENSTOCK_GLOBAL select_domain_term* term = &s->task->domain_terms[t];
    if (term->group != group) continue;
    const i32 domain = select_domain_of(s, term->domain, row);
    if (domain < 0) {
      if (term->kind != SELECT_DOMAIN_ABSENT) return 0;
      continue;
    }
    const i64 n = select_count(s, term->count, (u32)domain);
    if (term->kind == SELECT_DOMAIN_ABSENT && n != 0) return 0;
    if (term->kind == SELECT_DOMAIN_PRESENT && n == 0 && !context->may_be_first[t]) return 0;
    if (term->kind == SELECT_DOMAIN_SPREAD &&
        n + (i64)term->self - context->least[t] > (i64)term->weight)
      return 0;
  }
  return 1;
}

PENSTOCK_FUNCTION u32 select_passes(const select_state* s, u32 row) {
  if (!select_bit(s, 0, row)) return 0;
  for (u64 left = s->step->filters, i = 0; left != 0; left >>= 1, i++) {
    if ((left & 1) == 0) continue;
    const PENSTOCK_GLOBAL select_op* op = &s->program->ops[i];
    u32 passes = 0;
    switch (op->op) {
      case SELECT_FILTER_BITS:
        passes = select_bits_hold(s, op->group, row);
        break;
      case SELECT_FILTER_FIT:
        passes = select_fits(s, op, row);
        break;
      case SELECT_FILTER_GPU:
        passes = select_gpus_fit(s, row);
        break;
      case SELECT_FILTER_ROW:
        passes = s->task->row == (i64)row;
        break;
      case SELECT_FILTER_DOMAINS:
        passes = select_domains_pass(s, op->group, row);
        break;
    }
    if (!passes) return 0;
  }
  return 1;
}

/* ---- scores ---- */

PENSTOCK_FUNCTION u32 select_leaves_the_sum(const select_state* s,
                                            const PENSTOCK_GLOBAL select_op* op, u32 i) {
  return ((op->skip_unasked >> i) & 1) != 0 && s->task->request[op->column[i]] == 0;
}

/* LEAST_ALLOCATED, MOST_ALLOCATED and RATIO. */
PENSTOCK_FUNCTION i64 select_allocation(const select_state* s, const PENSTOCK_GLOBAL select_op* op,
                                        u32 row) {
  i64 sum = 0;
  i64 weights = 0;
  for (u32 i = 0; i < op->n; i++) {
    const u32 r = op->column[i];
    const i64 allocatable = select_quantity(s, s->batch->table.allocatable, r, row);
    if (allocatable == 0 || select_leaves_the_sum(s, op, i)) continue;
    const i64 used =
        select_quantity(s, s->batch->table.scored, r, row) + s->task->scored_request[r];
    const i64 within = used < allocatable ? used : allocatable;
    const i64 counted = op->op == SELECT_SCORE_LEAST_ALLOCATED ? allocatable - within : within;
    i64 share = counted * 100 / allocatable;
    if (op->op == SELECT_SCORE_RATIO) {
      share = s->program->shape[share];
      if (share == 0) continue;
    }
    sum += share * op->list_weight[i];
    weights += op->list_weight[i];
  }
  if (weights == 0) return 0;
  /* Half away from zero. The quotient in float64 could not fall on the other side of a half: it is
   * a half exactly, or at least 1/3200 away. */
  if (op->op == SELECT_SCORE_RATIO) return (2 * sum + weights) / (2 * weights);
  return sum / weights;
}

PENSTOCK_FUNCTION i64 select_bits_score(const select_state* s, u32 group, u32 row) {
  i64 sum = 0;
  for (u32 i = 0; i < s->task->n_terms; i++)
    if (s->task->terms[i].group == group && select_term_holds(s, &s->task->terms[i], row))
      sum += s->task->terms[i].weight;
  return sum;
}

PENSTOCK_FUNCTION i64 select_features(const select_state* s, const PENSTOCK_GLOBAL select_op* op,
                                      u32 row) {
  i64 sum = 0;
  for (u32 j = 0; j < op->n; j++)
    sum += s->task->feature[j] * select_free_value(s, op->column[j], row);
  return sum;
}

PENSTOCK_FUNCTION i64 select_domains_score(const select_state* s, u32 group, u32 row) {
  i64 sum = 0;
  for (u32 t = 0; t < s->task->n_domain_terms; t++) {
    const PENSTOCK_GLOBAL select_domain_term* term = &s->task->domain_terms[t];
    if (term->group != group) continue;
    const i32 domain = select_domain_of(s, term->domain, row);
    if (domain >= 0) sum += (i64)term->weight * select_count(s, term->count, (u32)domain);
  }
  return sum;
}

/* Whether SPREAD ignores the row. */
PENSTOCK_FUNCTION u32 select_spread_ignores(const select_state* s, u32 group, u32 row) {
  for (u32 t = 0; t < s->task->n_domain_terms; t++) {
    const PENSTOCK_GLOBAL select_domain_term* term = &s->task->domain_terms[t];
    if (term->group == group && (term->kind & SELECT_SPREAD_REQUIRED) != 0 &&
        select_domain_of(s, term->domain, row) < 0)
      return 1;
  }
  return 0;
}

#if PENSTOCK_HAS_F64
/* Toward zero, of what is limited to what a free column may hold. */
PENSTOCK_FUNCTION i64 select_truncate(f64 value) {
  const f64 most = (f64)SELECT_MAX_FREE_VALUE;
  return value < -most ? -SELECT_MAX_FREE_VALUE : value > most ? SELECT_MAX_FREE_VALUE : (i64)value;
}
/* Half away from zero; |value| is below 2^52. */
PENSTOCK_FUNCTION i64 select_round(f64 value) {
  const i64 whole = (i64)value;
  const f64 rest = sub_f64(value, (f64)whole); /* exact */
  return rest >= 0.5 ? whole + 1 : rest <= -0.5 ? whole - 1 : whole;
}

PENSTOCK_FUNCTION i64 select_balanced(const select_state* s, const PENSTOCK_GLOBAL select_op* op,
                                      u32 row) {
  f64 fractions[SELECT_MAX_RESOURCES];
  u32 n = 0;
  f64 total = 0;
  for (u32 i = 0; i < op->n; i++) {
    const u32 r = op->column[i];
    const i64 allocatable = select_quantity(s, s->batch->table.allocatable, r, row);
    if (allocatable == 0 || select_leaves_the_sum(s, op, i)) continue;
    const i64 used = select_quantity(s, s->batch->table.requested, r, row) + s->task->request[r];
    const f64 fraction = div_f64((f64)used, (f64)allocatable);
    fractions[n] = fraction < 1.0 ? fraction : 1.0;
    total = add_f64(total, fractions[n]);
    n++;
  }
  f64 deviation = 0;
  if (n == 2) {
    const f64 apart = sub_f64(fractions[0], fractions[1]);
    deviation = div_f64(apart < 0 ? -apart : apart, 2);
  } else if (n > 2) {
    const f64 mean = div_f64(total, (f64)n);
    f64 squares = 0;
    for (u32 i = 0; i < n; i++) {
      const f64 apart = sub_f64(fractions[i], mean);
      squares = add_f64(squares, mul_f64(apart, apart));
    }
    deviation = sqrt_f64(div_f64(squares, (f64)n));
  }
  return select_truncate(mul_f64(sub_f64(1, deviation), 100));
}

PENSTOCK_FUNCTION i64 select_best_fit(const select_state* s, const PENSTOCK_GLOBAL select_op* op,
                                      u32 row) {
  f64 sum = 0;
  for (u32 i = 0; i < op->n; i++) {
    const i64 spare = select_left(s, op->column[i], row) - s->task->request[op->column[i]];
    sum = add_f64(sum, div_f64(mul_f64(0.5, (f64)spare), (f64)op->scale[i]));
  }
  return select_truncate(mul_f64(100, sub_f64(1, sum)));
}

PENSTOCK_FUNCTION i64 select_dot_product(const select_state* s, const PENSTOCK_GLOBAL select_op* op,
                                         u32 row) {
  f64 sum = 0;
  for (u32 i = 0; i < op->n; i++) {
    const f64 scale = (f64)op->scale[i];
    sum = add_f64(sum, mul_f64(div_f64((f64)select_left(s, op->column[i], row), scale),
                               div_f64((f64)s->task->request[op->column[i]], scale)));
  }
  return select_truncate(mul_f64(100, sub_f64(1, div_f64(sum, (f64)op->n))));
}

/* Wants the logs of the terms' sizes. */
PENSTOCK_FUNCTION i64 select_spread(const select_state* s, u32 group, u32 row) {
  if (select_spread_ignores(s, group, row)) return -1;
  f64 sum = 0;
  for (u32 t = 0; t < s->task->n_domain_terms; t++) {
    const PENSTOCK_GLOBAL select_domain_term* term = &s->task->domain_terms[t];
    if (term->group != group) continue;
    const i32 domain = select_domain_of(s, term->domain, row);
    if (domain < 0) continue;
    const f64 n = (f64)select_count(s, term->count, (u32)domain);
    sum = add_f64(
        sum, add_f64(mul_f64(n, f64_of_bits(s->shared->log[t])), (f64)((i64)term->weight - 1)));
  }
  return select_round(sum);
}
#else
PENSTOCK_FUNCTION i64 select_spread(const select_state* s, u32 group, u32 row) { return 0; }
#endif

/* Any score but SPREAD, before it is normalised and weighted. */
PENSTOCK_FUNCTION i64 select_score(const select_state* s, const PENSTOCK_GLOBAL select_op* op,
                                   u32 row) {
  u32 mask = 0;
  switch (op->op) {
    case SELECT_SCORE_LEAST_ALLOCATED:
    case SELECT_SCORE_MOST_ALLOCATED:
    case SELECT_SCORE_RATIO:
      return select_allocation(s, op, row);
    case SELECT_SCORE_BITS:
      return select_bits_score(s, op->group, row);
    case SELECT_SCORE_FEATURES:
      return select_features(s, op, row);
    case SELECT_SCORE_GPU_PACKING:
      return select_gpu_packing(s, op, row);
    case SELECT_SCORE_GPU_CLUSTERING:
      return select_gpu_clustering(s, op, row);
    case SELECT_SCORE_DOMAINS:
      return select_domains_score(s, op->group, row);
    case SELECT_SCORE_FGD:
      return select_fgd(s, op, row, &mask);
#if PENSTOCK_HAS_F64
    case SELECT_SCORE_BALANCED:
      return select_balanced(s, op, row);
    case SELECT_SCORE_BEST_FIT:
      return select_best_fit(s, op, row);
    case SELECT_SCORE_DOT_PRODUCT:
      return select_dot_product(s, op, row);
#endif
  }
  return 0;
}

PENSTOCK_FUNCTION i64 select_normalised(u32 normalise, i64 low, i64 high, i64 score) {
  const i64 max = high > 0 ? high : 0;
  const i64 spread = high - low;
  switch (normalise) {
    case SELECT_NORMALISE_DEFAULT:
      return select_limit(max == 0 ? score : 100 * score / max, -SELECT_MAX_NORMALISED,
                          SELECT_MAX_NORMALISED);
    case SELECT_NORMALISE_REVERSED:
      return select_limit(max == 0 ? 100 : 100 - 100 * score / max, -SELECT_MAX_NORMALISED,
                          SELECT_MAX_NORMALISED);
    case SELECT_NORMALISE_MIN_MAX:
      return spread == 0 ? 0 : (score - low) * 100 / spread;
#if PENSTOCK_HAS_F64
    case SELECT_NORMALISE_MIN_MAX_F64:
      return spread == 0 ? 0
                         : select_truncate(mul_f64(100, div_f64((f64)(score - low), (f64)spread)));
#endif
    case SELECT_NORMALISE_SPREAD:
      if (score < 0) return 0;
      return max == 0 ? 100 : 100 * (max + low - score) / max;
  }
  return score;
}

PENSTOCK_KERNELS_END
#endif
