/* The passes over all rows, domains and groups that one task takes, up to the rows that are best:
 * prepare, scan, spread, rank, merge. Every pass is the work of one group on its own rows; a pass
 * that needs what all groups found begins when they are over. Sums are of integers, and the best
 * row is defined by a total order, so that nothing depends on how rows are divided. */
#ifndef PENSTOCK_DRIVERS_KERNELS_SELECT_PASSES_H_
#define PENSTOCK_DRIVERS_KERNELS_SELECT_PASSES_H_

#include "penstock/drivers/kernels/select_rows.h"

PENSTOCK_KERNELS_BEGIN

/* ---- prepare: what domain filters have to know of all domains; by one group ---- */

PENSTOCK_FUNCTION void select_look_at_domains(const select_state* s, u32 t, u32 lane) {
  const PENSTOCK_GLOBAL select_domain_term* term = &s->task->domain_terms[t];
  i64 least = 0x7fffffff;
  u32 n = 0;
  u32 any = 0;
  for (u32 domain = lane; domain < term->domains; domain += s->lanes) {
    const i64 count = select_count(s, term->count, domain);
    any |= count > 0;
    if (term->kind != SELECT_DOMAIN_SPREAD || select_count(s, term->nodes, domain) == 0) continue;
    n++;
    if (count < least) least = count;
  }
  select_set_slot(s, lane, least, 0, n, any);
}

PENSTOCK_FUNCTION void select_note_domains(const select_state* s, u32 t, u32 lane) {
  const PENSTOCK_GLOBAL select_domain_term* term = &s->task->domain_terms[t];
  PENSTOCK_GLOBAL select_context* context = select_context_of(s);
  if (lane != 0) return;
  context->least[t] =
      term->min_domains > 1 && s->shared->n[0] < term->min_domains ? 0 : (i32)s->shared->low[0];
  context->present[t] = s->shared->flag[0];
}

PENSTOCK_FUNCTION void select_note_firsts(const select_state* s, u32 lane) {
  PENSTOCK_GLOBAL select_context* context = select_context_of(s);
  for (u32 t = lane; t < s->task->n_domain_terms; t += s->lanes) {
    u32 none_present = 1;
    for (u32 other = 0; other < s->task->n_domain_terms; other++) {
      const PENSTOCK_GLOBAL select_domain_term* term = &s->task->domain_terms[other];
      if (term->group == s->task->domain_terms[t].group && term->kind == SELECT_DOMAIN_PRESENT &&
          context->present[other])
        none_present = 0;
    }
    context->may_be_first[t] = none_present && s->task->domain_terms[t].self == 1;
  }
}

/* Whether one of these operations has the code and looks at the group's terms. */
PENSTOCK_FUNCTION u32 select_looks_at(const select_state* s, u64 ops, u32 code, u32 group) {
  for (u32 i = 0; ops != 0; ops >>= 1, i++)
    if ((ops & 1) != 0 && s->program->ops[i].op == code && s->program->ops[i].group == group)
      return 1;
  return 0;
}

PENSTOCK_FUNCTION void select_prepare(const select_state* s) {
  for (u32 t = 0; t < s->task->n_domain_terms; t++) {
    const PENSTOCK_GLOBAL select_domain_term* term = &s->task->domain_terms[t];
    if (term->kind == SELECT_DOMAIN_ABSENT ||
        !select_looks_at(s, s->step->filters, SELECT_FILTER_DOMAINS, term->group))
      continue;
    PENSTOCK_PHASE(select_look_at_domains(s, t, lane));
    select_fold(s);
    PENSTOCK_PHASE(select_note_domains(s, t, lane));
  }
  PENSTOCK_PHASE(select_note_firsts(s, lane));
}

/* ---- scan: which rows are feasible, and the scores that need no more than the row ---- */

PENSTOCK_FUNCTION void select_scan_rows(const select_state* s, u32 lane) {
  PENSTOCK_GLOBAL i64* totals = select_totals(s);
  const u32 end = select_rows_end(s);
  u32 feasible = 0;
  for (u32 row = select_rows_begin(s) + lane; row < end; row += s->lanes) {
    i64 total = SELECT_INFEASIBLE;
    if (select_passes(s, row)) {
      feasible++;
      total = s->step->base;
      for (u64 left = s->step->plain, i = 0; left != 0; left >>= 1, i++) {
        if ((left & 1) == 0) continue;
        const PENSTOCK_GLOBAL select_op* op = &s->program->ops[i];
        total += op->weight * select_score(s, op, row);
      }
    }
    totals[row] = total;
  }
  select_set_slot(s, lane, 0, 0, feasible, 0);
}

PENSTOCK_FUNCTION void select_note_feasible(const select_state* s, u32 lane) {
  if (lane == 0) select_partials(s)[s->group].feasible = s->shared->n[0];
}

/* The raw scores of one operation, and their range. `spread` says whether it is SPREAD. */
PENSTOCK_FUNCTION void select_score_rows(const select_state* s, u32 spread, u32 op_index, u32 slot,
                                         u32 lane) {
  const PENSTOCK_GLOBAL select_op* op = &s->program->ops[op_index];
  const PENSTOCK_GLOBAL i64* totals = select_totals(s);
  PENSTOCK_GLOBAL i64* raws = select_raws(s, slot);
  const u32 end = select_rows_end(s);
  i64 low = SELECT_MOST;
  i64 high = SELECT_INFEASIBLE;
  u32 any = 0;
  for (u32 row = select_rows_begin(s) + lane; row < end; row += s->lanes) {
    if (totals[row] == SELECT_INFEASIBLE) continue;
    const i64 score = spread ? select_spread(s, op->group, row) : select_score(s, op, row);
    raws[row] = score;
    if (op->normalise == SELECT_NORMALISE_SPREAD && score < 0) continue;
    if (score < low) low = score;
    if (score > high) high = score;
    any = 1;
  }
  select_set_slot(s, lane, low, high, 0, any);
}

PENSTOCK_FUNCTION void select_note_range(const select_state* s, u32 slot, u32 lane) {
  if (lane != 0) return;
  PENSTOCK_GLOBAL select_range* range = &select_ranges(s, slot)[s->group];
  range->low = s->shared->low[0];
  range->high = s->shared->high[0];
  range->any = s->shared->flag[0];
}

/* Of the operations that wait for all rows, those that are SPREAD (`spread` 1) or those that are
 * not. */
PENSTOCK_FUNCTION void select_score_ranged(const select_state* s, u32 spread) {
  u32 slot = 0;
  for (u64 left = s->step->ranged, i = 0; left != 0; left >>= 1, i++) {
    if ((left & 1) == 0) continue;
    if ((s->program->ops[i].op == SELECT_SCORE_SPREAD) == spread) {
      PENSTOCK_PHASE(select_score_rows(s, spread, (u32)i, slot, lane));
      select_fold(s);
      PENSTOCK_PHASE(select_note_range(s, slot, lane));
    }
    slot++;
  }
}

/* The size of a SPREAD term, as far as the group's rows give it: rows, or domains that nobody met
 * before. Who meets a domain first does not matter, only that one lane does. */
PENSTOCK_FUNCTION void select_size_term(const select_state* s, u32 t, u32 lane) {
  const PENSTOCK_GLOBAL select_domain_term* term = &s->task->domain_terms[t];
  const PENSTOCK_GLOBAL i64* totals = select_totals(s);
  PENSTOCK_GLOBAL u32* met = select_met(s, t);
  const u32 by_row =
      (term->kind & SELECT_SPREAD_HOSTNAME) != 0 || term->domain == SELECT_ROW_DOMAIN;
  const u32 mark = s->number + 1;
  const u32 end = select_rows_end(s);
  u32 n = 0;
  u32 without = 0;
  for (u32 row = select_rows_begin(s) + lane; row < end; row += s->lanes) {
    if (totals[row] == SELECT_INFEASIBLE || select_spread_ignores(s, term->group, row)) continue;
    if (by_row) {
      n++;
      continue;
    }
    const i32 domain = select_domain_of(s, term->domain, row);
    if (domain < 0)
      without = 1;
    else if (*(volatile PENSTOCK_GLOBAL u32*)&met[domain] != mark &&
             exchange_u32(&met[domain], mark) != mark)
      n++;
  }
  select_set_slot(s, lane, 0, 0, n, without);
}

PENSTOCK_FUNCTION void select_note_size(const select_state* s, u32 t, u32 lane) {
  if (lane != 0) return;
  select_partials(s)[s->group].sizes[t] = s->shared->n[0];
  select_partials(s)[s->group].without[t] = s->shared->flag[0];
}

PENSTOCK_FUNCTION void select_scan(const select_state* s) {
  PENSTOCK_PHASE(select_scan_rows(s, lane));
  select_fold(s);
  PENSTOCK_PHASE(select_note_feasible(s, lane));
  select_score_ranged(s, 0);
  if ((s->step->flags & SELECT_STEP_SPREAD) == 0) return;
  for (u32 t = 0; t < s->task->n_domain_terms; t++) {
    if (!select_looks_at(s, s->step->ranged, SELECT_SCORE_SPREAD, s->task->domain_terms[t].group))
      continue;
    PENSTOCK_PHASE(select_size_term(s, t, lane));
    select_fold(s);
    PENSTOCK_PHASE(select_note_size(s, t, lane));
  }
}

/* ---- spread: the SPREAD scores, once the sizes of their terms are known ---- */

PENSTOCK_FUNCTION void select_gather_size(const select_state* s, u32 t, u32 lane) {
  const PENSTOCK_GLOBAL select_partial* partials = select_partials(s);
  u32 n = 0;
  u32 without = 0;
  for (u32 group = lane; group < s->batch->groups; group += s->lanes) {
    n += partials[group].sizes[t];
    without |= partials[group].without[t];
  }
  select_set_slot(s, lane, 0, 0, n, without);
}

/* logs[size], or 0 for what is not in 0..SELECT_MAX_LOG: bits of floats from 0 up are in their
 * order, and -0 is as good as 0. */
PENSTOCK_FUNCTION void select_note_log(const select_state* s, u32 t, u32 lane) {
  const u64 most = 0x4050000000000000ul; /* 64.0 */
  if (lane != 0) return;
  const u32 size = s->shared->n[0] + s->shared->flag[0];
  const u64 log = ((const PENSTOCK_GLOBAL u64*)(s->table + s->batch->table.logs))[size];
  s->shared->log[t] = log <= most ? log : 0;
}

PENSTOCK_FUNCTION void select_spread_pass(const select_state* s) {
  for (u32 t = 0; t < s->task->n_domain_terms; t++) {
    if (!select_looks_at(s, s->step->ranged, SELECT_SCORE_SPREAD, s->task->domain_terms[t].group))
      continue;
    PENSTOCK_PHASE(select_gather_size(s, t, lane));
    select_fold(s);
    PENSTOCK_PHASE(select_note_log(s, t, lane));
  }
  select_score_ranged(s, 1);
}

/* ---- rank: totals, and the group's best rows ---- */

PENSTOCK_FUNCTION void select_gather_range(const select_state* s, u32 slot, u32 lane) {
  const PENSTOCK_GLOBAL select_range* ranges = select_ranges(s, slot);
  i64 low = SELECT_MOST;
  i64 high = SELECT_INFEASIBLE;
  u32 any = 0;
  for (u32 group = lane; group < s->batch->groups; group += s->lanes) {
    if (!ranges[group].any) continue;
    if (ranges[group].low < low) low = ranges[group].low;
    if (ranges[group].high > high) high = ranges[group].high;
    any = 1;
  }
  select_set_slot(s, lane, low, high, 0, any);
}

PENSTOCK_FUNCTION void select_keep_range(const select_state* s, u32 slot, u32 lane) {
  if (lane != 0) return;
  s->shared->range_low[slot] = s->shared->flag[0] ? s->shared->low[0] : 0;
  s->shared->range_high[slot] = s->shared->flag[0] ? s->shared->high[0] : 0;
}

PENSTOCK_FUNCTION void select_weigh_rows(const select_state* s, u32 lane) {
  PENSTOCK_GLOBAL i64* totals = select_totals(s);
  const u32 end = select_rows_end(s);
  for (u32 row = select_rows_begin(s) + lane; row < end; row += s->lanes) {
    i64 total = totals[row];
    u32 slot = 0;
    if (total == SELECT_INFEASIBLE) continue;
    for (u64 left = s->step->ranged, i = 0; left != 0; left >>= 1, i++) {
      if ((left & 1) == 0) continue;
      const PENSTOCK_GLOBAL select_op* op = &s->program->ops[i];
      total +=
          op->weight * select_normalised(op->normalise, s->shared->range_low[slot],
                                         s->shared->range_high[slot], select_raws(s, slot)[row]);
      slot++;
    }
    totals[row] = total;
  }
}

/* Whether a row is better than another: higher score, else by the tie rule. */
PENSTOCK_FUNCTION u32 select_better(const select_state* s, i64 a_score, u32 a_row, i64 b_score,
                                    u32 b_row) {
  if (a_score != b_score) return a_score > b_score;
  if (s->program->tie == SELECT_TIE_ROTATING) {
    const u32 rows = s->batch->table.rows;
    const u32 start = (u32)(s->task->tie % rows);
    return (a_row >= start ? a_row - start : a_row + (rows - start)) <
           (b_row >= start ? b_row - start : b_row + (rows - start));
  }
  if (s->program->tie == SELECT_TIE_HASH) {
    const u64 a = select_tie_hash(s->program->seed, s->task->tie, a_row);
    const u64 b = select_tie_hash(s->program->seed, s->task->tie, b_row);
    if (a != b) return a > b;
  }
  return a_row < b_row;
}

/* The lane's best among what may follow the row that was chosen last: its score in low, its row in
 * n, and flag says whether there is one. */
PENSTOCK_FUNCTION void select_offer(const select_state* s, u32 lane, i64 score, u32 row) {
  PENSTOCK_LOCAL select_local* shared = s->shared;
  if (shared->has_last && !select_better(s, shared->last_score, shared->last_row, score, row))
    return;
  if (shared->flag[lane] && !select_better(s, score, row, shared->low[lane], shared->n[lane]))
    return;
  shared->low[lane] = score;
  shared->n[lane] = row;
  shared->flag[lane] = 1;
}

PENSTOCK_FUNCTION void select_find_row(const select_state* s, u32 lane) {
  const PENSTOCK_GLOBAL i64* totals = select_totals(s);
  const u32 end = select_rows_end(s);
  s->shared->flag[lane] = 0;
  for (u32 row = select_rows_begin(s) + lane; row < end; row += s->lanes)
    if (totals[row] != SELECT_INFEASIBLE) select_offer(s, lane, totals[row], row);
}

/* Among what the groups chose. */
PENSTOCK_FUNCTION void select_find_chosen(const select_state* s, u32 lane) {
  const PENSTOCK_GLOBAL select_best* chosen = select_chosen(s);
  const u32 n = s->batch->groups * SELECT_MAX_BEST;
  s->shared->flag[lane] = 0;
  for (u32 i = lane; i < n; i += s->lanes)
    if (i % SELECT_MAX_BEST < s->program->best && chosen[i].row >= 0)
      select_offer(s, lane, chosen[i].score, (u32)chosen[i].row);
}

PENSTOCK_FUNCTION void select_best_step(const select_state* s, u32 lane, u32 stride) {
  if (lane < stride && s->shared->flag[lane + stride])
    select_offer(s, lane, s->shared->low[lane + stride], s->shared->n[lane + stride]);
}

PENSTOCK_FUNCTION void select_note_best(const select_state* s, PENSTOCK_GLOBAL select_best* best,
                                        u32 lane) {
  if (lane != 0) return;
  best->row = s->shared->flag[0] ? (i32)s->shared->n[0] : -1;
  best->reserved = 0;
  best->score = s->shared->flag[0] ? s->shared->low[0] : 0;
  s->shared->last_row = s->shared->n[0];
  s->shared->last_score = s->shared->low[0];
  s->shared->has_last = s->shared->flag[0];
}

PENSTOCK_FUNCTION void select_begin_choice(const select_state* s, u32 lane) {
  if (lane == 0) s->shared->has_last = 0;
}

/* The best rows, one after another, to best[0] and on: of the group's rows, or (`merge` 1) of what
 * the groups chose. Each round looks for the best of those that are worse than the one before. */
PENSTOCK_FUNCTION void select_choose(const select_state* s, u32 merge,
                                     PENSTOCK_GLOBAL select_best* best) {
  PENSTOCK_PHASE(select_begin_choice(s, lane));
  for (u32 round = 0; round < s->program->best; round++) {
    if (merge) {
      PENSTOCK_PHASE(select_find_chosen(s, lane));
    } else {
      PENSTOCK_PHASE(select_find_row(s, lane));
    }
    for (u32 stride = s->lanes / 2; stride > 0; stride /= 2)
      PENSTOCK_PHASE(select_best_step(s, lane, stride));
    PENSTOCK_PHASE(select_note_best(s, &best[round], lane));
    if (!s->shared->has_last) {
      /* The places that are left stay empty. */
      for (u32 rest = round + 1; rest < s->program->best; rest++)
        PENSTOCK_PHASE(select_note_best(s, &best[rest], lane));
      break;
    }
  }
}

PENSTOCK_FUNCTION void select_rank(const select_state* s) {
  u32 slot = 0;
  for (u64 left = s->step->ranged; left != 0; left &= left - 1) {
    PENSTOCK_PHASE(select_gather_range(s, slot, lane));
    select_fold(s);
    PENSTOCK_PHASE(select_keep_range(s, slot, lane));
    slot++;
  }
  if (slot != 0) PENSTOCK_PHASE(select_weigh_rows(s, lane));
  select_choose(s, 0, select_chosen(s) + (u64)s->group * SELECT_MAX_BEST);
}

PENSTOCK_KERNELS_END
#endif
