// How the operations of a program and the terms of a task become tests of a row, a base, a key, and
// what is left to the groups.
#include <algorithm>

#include "penstock/sched/task_class.h"

namespace penstock {

void TaskClass::plan() {
  bit_tests_.push_back({table_.bit_column(PENSTOCK_BIT_NODE), 0});
  bits_used_.add(PENSTOCK_BIT_NODE);
  for (std::uint32_t i = 0; i < task_.n_terms; i++) bits_used_.add(task_.terms[i].column);
  // Typical tasks ask for models, which are bits, too.
  bits_used_.all = program_.n_typical > 0;
  for (std::uint32_t i = 0; i < program_.n_ops && usable_; i++) {
    const penstock_column_op& op = program_.ops[i];
    if (PENSTOCK_COLUMN_OP_IS_SCORE(op.op)) {
      if (op.weight != 0) plan_score(op);
    } else {
      plan_filter(op);
    }
  }
}

void TaskClass::plan_filter(const penstock_column_op& op) {
  switch (op.op) {
    case PENSTOCK_FILTER_BITS:
      for (std::uint32_t i = 0; i < task_.n_terms; i++) {
        const penstock_term& term = task_.terms[i];
        if (term.group != op.group) continue;
        bit_tests_.push_back(
            {table_.bit_column(term.column), term.clear != 0 ? ~std::uint64_t{0} : 0});
      }
      return;
    case PENSTOCK_FILTER_FIT:
      for (std::uint32_t i = 0; i < op.n; i++) {
        const std::uint32_t r = op.column[i];
        if (task_.request[r] == 0) continue;
        fit_tests_.push_back({table_.column(table_.allocatable, r),
                              table_.column(table_.requested, r), task_.request[r]});
      }
      return;
    case PENSTOCK_FILTER_GPU:
      if (task_.gpu_count > 0) row_filters_.push_back(&op);
      return;
    case PENSTOCK_FILTER_ROW:
      // One row is soon looked at; a class for each row is not worth its memory.
      if (task_.row != -1) usable_ = false;
      return;
    case PENSTOCK_FILTER_DOMAINS:
      plan_domain_filter(op);
      return;
    default:
      usable_ = false;
  }
}

bool TaskClass::has_terms(const penstock_column_op& op) const {
  const auto in_group = [&op](const auto& term) { return term.group == op.group; };
  if (op.op == PENSTOCK_SCORE_BITS)
    return std::any_of(task_.terms, task_.terms + task_.n_terms, in_group);
  return std::any_of(task_.domain_terms, task_.domain_terms + task_.n_domain_terms, in_group);
}

void TaskClass::plan_score(const penstock_column_op& op) {
  const bool normalised = op.normalise != PENSTOCK_NORMALISE_NONE;
  switch (op.op) {
    case PENSTOCK_SCORE_DOMAINS:
    case PENSTOCK_SCORE_SPREAD:
      plan_domain_score(op);
      return;
    case PENSTOCK_SCORE_BITS:
      if (!has_terms(op)) {
        // 0 everywhere, which normalisation may turn into something else that is the same
        // everywhere.
        if (normalised) add_group_score(op, kMaxParts);
        return;
      }
      if (normalised) {
        add_group_score(op, add_part({PartKind::bits, 0, 0, &op}));
        return;
      }
      break;
    case PENSTOCK_SCORE_LEAST_ALLOCATED:
    case PENSTOCK_SCORE_MOST_ALLOCATED:
    case PENSTOCK_SCORE_BALANCED:
      if (!normalised) {
        plan_shares(op);
        return;
      }
      break;
    default:
      break;
  }
  if (normalised) {
    add_group_score(op, add_part({PartKind::raw, 0, 0, &op}));
  } else {
    row_scores_.push_back(&op);
  }
}

void TaskClass::add_group_score(const penstock_column_op& op, std::uint32_t part) {
  GroupScore score;
  score.op = &op;
  score.part = part;
  group_scores_.push_back(std::move(score));
}

void TaskClass::plan_shares(const penstock_column_op& op) {
  const bool balanced = op.op == PENSTOCK_SCORE_BALANCED;
  const auto begin = static_cast<std::uint32_t>(shares_.size());
  bool asks = false;
  for (std::uint32_t i = 0; i < op.n; i++) {
    const std::uint32_t r = op.column[i];
    asks = asks || task_.request[r] > 0;
    if ((op.skip_unasked >> i & 1) != 0 && task_.request[r] == 0) continue;
    shares_.push_back({table_.column(table_.allocatable, r),
                       table_.column(balanced ? table_.requested : table_.scored, r),
                       balanced ? task_.request[r] : task_.scored_request[r], op.list_weight[i]});
  }
  if (balanced && !asks) {
    shares_.resize(begin);
    return;
  }
  share_scores_.push_back({op.op, op.weight, begin, static_cast<std::uint32_t>(shares_.size())});
}

// ---- domains ----

bool TaskClass::is_narrow(std::uint16_t domain) const {
  if (domain == PENSTOCK_ROW_DOMAIN) return false;
  std::uint32_t most = 0;
  bool counted = false;  // how many domains there are enters a score
  for (std::uint32_t t = 0; t < task_.n_domain_terms; t++) {
    const penstock_domain_term& term = task_.domain_terms[t];
    if (term.domain != domain) continue;
    most = std::max(most, term.domains);
    for (std::uint32_t i = 0; i < program_.n_ops; i++) {
      const penstock_column_op& op = program_.ops[i];
      counted = counted || (op.op == PENSTOCK_SCORE_SPREAD && op.group == term.group &&
                            (term.kind & PENSTOCK_SPREAD_HOSTNAME) == 0);
    }
  }
  return counted || most <= limits_.narrow_domains;
}

std::uint32_t TaskClass::add_part(const Part& part) {
  for (std::uint32_t i = 0; i < parts_.size(); i++) {
    const Part& other = parts_[i];
    if (other.kind == part.kind && other.domain == part.domain && other.count == part.count &&
        other.op == part.op)
      return i;
  }
  if (parts_.size() == kMaxParts) {
    usable_ = false;
    return 0;
  }
  parts_.push_back(part);
  return static_cast<std::uint32_t>(parts_.size() - 1);
}

void TaskClass::watch(std::uint16_t domain, std::uint16_t count) {
  counts_used_.add(count);
  const bool known = std::any_of(watched_.begin(), watched_.end(), [&](const Watch& other) {
    return other.domain == domain && other.count == count;
  });
  if (!known) watched_.push_back({domain, count});
}

TaskClass::Term TaskClass::make_term(const penstock_domain_term& record, PartKind wide_kind) {
  rates_follow_counts_ = true;
  counts_used_.add(record.count);
  counts_used_.add(record.nodes);
  Term term;
  term.record = &record;
  term.narrow = is_narrow(record.domain);
  if (term.narrow) {
    term.part = add_part({PartKind::domain, record.domain, 0, nullptr});
  } else {
    watch(record.domain, record.count);
    term.part = add_part({wide_kind, record.domain, record.count, nullptr});
  }
  return term;
}

void TaskClass::plan_domain_filter(const penstock_column_op& op) {
  GroupFilter filter;
  for (std::uint32_t i = 0; i < task_.n_domain_terms; i++) {
    const penstock_domain_term& term = task_.domain_terms[i];
    if (term.group != op.group) continue;
    const bool may_be_first = term.kind == PENSTOCK_DOMAIN_PRESENT && term.self != 0;
    if (is_narrow(term.domain) || may_be_first || term.kind == PENSTOCK_DOMAIN_SPREAD) {
      filter.terms.push_back(make_term(
          term, term.kind == PENSTOCK_DOMAIN_SPREAD ? PartKind::count : PartKind::present));
      if (term.kind != PENSTOCK_DOMAIN_ABSENT && !filter.terms.back().narrow)
        domain_tests_.push_back({term.domain, term.count, Ask::has_domain});
      continue;
    }
    watch(term.domain, term.count);
    domain_tests_.push_back({term.domain, term.count,
                             term.kind == PENSTOCK_DOMAIN_ABSENT ? Ask::absent : Ask::present});
  }
  if (filter.terms.empty()) return;
  // Whether one of them may be the first depends on all of the group.
  for (std::uint32_t i = 0; i < task_.n_domain_terms; i++) {
    const penstock_domain_term& term = task_.domain_terms[i];
    if (term.group != op.group || term.kind != PENSTOCK_DOMAIN_PRESENT) continue;
    counts_used_.add(term.count);
    filter.present.push_back({&term});
  }
  group_filters_.push_back(std::move(filter));
}

void TaskClass::plan_domain_score(const penstock_column_op& op) {
  if (!has_terms(op)) {
    // Without a term SPREAD stays 0; DOMAINS is 0 before it is normalised.
    if (op.op == PENSTOCK_SCORE_DOMAINS && op.normalise != PENSTOCK_NORMALISE_NONE)
      add_group_score(op, kMaxParts);
    return;
  }
  GroupScore score;
  score.op = &op;
  for (std::uint32_t i = 0; i < task_.n_domain_terms; i++) {
    const penstock_domain_term& term = task_.domain_terms[i];
    if (term.group != op.group) continue;
    if (op.op == PENSTOCK_SCORE_SPREAD || is_narrow(term.domain)) {
      score.terms.push_back(make_term(term, PartKind::count));
      continue;
    }
    watch(term.domain, term.count);
    if (op.normalise == PENSTOCK_NORMALISE_NONE) {
      domain_shares_.push_back(
          {term.domain, term.count, std::int64_t{op.weight} * std::int64_t{term.weight}});
    } else {
      score.part = add_part({PartKind::sum, 0, 0, &op});
    }
  }
  if (!score.terms.empty() || op.normalise != PENSTOCK_NORMALISE_NONE)
    group_scores_.push_back(std::move(score));
}

}  // namespace penstock
