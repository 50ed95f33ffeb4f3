#include "penstock/drivers/kernels/select_plan.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstring>
#include <iterator>
#include <new>

#include "penstock/base/status.h"
#include "penstock/descriptor/descriptor.h"
#include "penstock/engine/scalar_select.h"

namespace penstock::kernels {
namespace {

// The kernels' structures are the descriptors'.
#define SAME_SIZE(ours, theirs) static_assert(sizeof(ours) == sizeof(theirs))
#define SAME_PLACE(ours, theirs, field) \
  static_assert(offsetof(ours, field) == offsetof(theirs, field))
SAME_SIZE(select_op, penstock_column_op);
SAME_PLACE(select_op, penstock_column_op, weight);
SAME_PLACE(select_op, penstock_column_op, skip_unasked);
SAME_PLACE(select_op, penstock_column_op, column);
SAME_PLACE(select_op, penstock_column_op, list_weight);
SAME_PLACE(select_op, penstock_column_op, scale);
SAME_SIZE(select_typical, penstock_typical);
SAME_PLACE(select_typical, penstock_typical, model);
SAME_PLACE(select_typical, penstock_typical, weight);
SAME_SIZE(select_program, penstock_program);
SAME_PLACE(select_program, penstock_program, tie);
SAME_PLACE(select_program, penstock_program, gpu_pick);
SAME_PLACE(select_program, penstock_program, best);
SAME_PLACE(select_program, penstock_program, seed);
SAME_PLACE(select_program, penstock_program, n_typical);
SAME_PLACE(select_program, penstock_program, ops);
SAME_PLACE(select_program, penstock_program, shape);
SAME_PLACE(select_program, penstock_program, typical);
SAME_PLACE(select_program, penstock_program, threshold);
SAME_SIZE(select_term, penstock_term);
SAME_PLACE(select_term, penstock_term, clear);
SAME_SIZE(select_domain_term, penstock_domain_term);
SAME_PLACE(select_domain_term, penstock_domain_term, nodes);
SAME_PLACE(select_domain_term, penstock_domain_term, kind);
SAME_PLACE(select_domain_term, penstock_domain_term, self);
SAME_PLACE(select_domain_term, penstock_domain_term, min_domains);
SAME_SIZE(select_raise, penstock_raise);
SAME_PLACE(select_raise, penstock_raise, domain);
SAME_PLACE(select_raise, penstock_raise, eligible);
SAME_SIZE(select_task, penstock_task);
SAME_PLACE(select_task, penstock_task, scored_request);
SAME_PLACE(select_task, penstock_task, gpu_milli);
SAME_PLACE(select_task, penstock_task, row);
SAME_PLACE(select_task, penstock_task, tie);
SAME_PLACE(select_task, penstock_task, klass);
SAME_PLACE(select_task, penstock_task, terms);
SAME_PLACE(select_task, penstock_task, feature);
SAME_PLACE(select_task, penstock_task, set_bits);
SAME_PLACE(select_task, penstock_task, count);
SAME_PLACE(select_task, penstock_task, n_raises);
SAME_PLACE(select_task, penstock_task, domain_terms);
SAME_PLACE(select_task, penstock_task, raises);
SAME_SIZE(select_result, penstock_result);
SAME_PLACE(select_result, penstock_result, row);
SAME_PLACE(select_result, penstock_result, score);
SAME_PLACE(select_result, penstock_result, gpu_mask);
SAME_PLACE(select_result, penstock_result, best);
static_assert(SELECT_OK == PENSTOCK_OK && SELECT_NOT_FOUND == PENSTOCK_NOT_FOUND &&
              SELECT_OUT_OF_RANGE == PENSTOCK_OUT_OF_RANGE);
static_assert(SELECT_MAX_OPS == PENSTOCK_MAX_OPS && SELECT_MAX_TERMS == PENSTOCK_MAX_TERMS &&
              SELECT_MAX_BEST == PENSTOCK_MAX_BEST && SELECT_MAX_GPUS == PENSTOCK_MAX_GPUS);
static_assert(SELECT_MAX_QUANTITY == PENSTOCK_MAX_QUANTITY &&
              SELECT_MAX_FREE_VALUE == PENSTOCK_MAX_FREE_VALUE &&
              SELECT_MAX_DOMAIN_COUNT == PENSTOCK_MAX_DOMAIN_COUNT &&
              SELECT_MAX_NORMALISED == PENSTOCK_MAX_NORMALISED);
static_assert(static_cast<int>(SELECT_FILTER_DOMAINS) == PENSTOCK_FILTER_DOMAINS &&
              static_cast<int>(SELECT_SCORE_FGD) == PENSTOCK_SCORE_FGD &&
              static_cast<int>(SELECT_SCORE_SPREAD) == PENSTOCK_SCORE_SPREAD &&
              static_cast<int>(SELECT_NORMALISE_SPREAD) == PENSTOCK_NORMALISE_SPREAD &&
              static_cast<int>(SELECT_TIE_HASH) == PENSTOCK_TIE_HASH &&
              static_cast<int>(SELECT_GPU_FGD) == PENSTOCK_GPU_FGD);

bool has_term(const penstock_task& task, std::uint32_t group) {
  return std::any_of(task.terms, task.terms + task.n_terms,
                     [group](const penstock_term& term) { return term.group == group; });
}

template <typename Holds>
bool has_domain_term(const penstock_task& task, std::uint32_t group, Holds holds) {
  return std::any_of(
      task.domain_terms, task.domain_terms + task.n_domain_terms,
      [&](const penstock_domain_term& term) { return term.group == group && holds(term); });
}
bool has_domain_term(const penstock_task& task, std::uint32_t group) {
  return has_domain_term(task, group, [](const penstock_domain_term&) { return true; });
}

bool asks(const penstock_column_op& op, const penstock_task& task) {
  return std::any_of(op.column, op.column + op.n,
                     [&](std::uint16_t resource) { return task.request[resource] != 0; });
}

bool may_refuse(const penstock_column_op& op, const penstock_task& task) {
  switch (op.op) {
    case PENSTOCK_FILTER_BITS:
      return has_term(task, op.group);
    case PENSTOCK_FILTER_FIT:
      return asks(op, task);
    case PENSTOCK_FILTER_GPU:
      return task.gpu_count != 0;
    case PENSTOCK_FILTER_ROW:
      return task.row != -1;
    case PENSTOCK_FILTER_DOMAINS:
      return has_domain_term(task, op.group);
  }
  return true;
}

// Whether the score is 0 on every row before it is normalised.
bool is_zero(const penstock_column_op& op, const penstock_task& task) {
  switch (op.op) {
    case PENSTOCK_SCORE_BALANCED:
      return !asks(op, task);
    case PENSTOCK_SCORE_BITS:
      return !has_term(task, op.group);
    case PENSTOCK_SCORE_FEATURES:
      return std::all_of(task.feature, task.feature + op.n,
                         [](std::int64_t feature) { return feature == 0; });
    case PENSTOCK_SCORE_GPU_PACKING:
    case PENSTOCK_SCORE_GPU_CLUSTERING:
      return task.gpu_count == 0;
    case PENSTOCK_SCORE_DOMAINS:
    case PENSTOCK_SCORE_SPREAD:
      return !has_domain_term(task, op.group);
  }
  return false;
}

constexpr std::uint64_t line_up(std::uint64_t bytes) { return (bytes + 63) / 64 * 64; }

}  // namespace

select_step make_select_step(const penstock_program& program, const penstock_task& task) {
  select_step step = {};
  for (std::uint32_t i = 0; i < program.n_ops; i++) {
    const penstock_column_op& op = program.ops[i];
    const std::uint64_t bit = std::uint64_t{1} << i;
    if (!PENSTOCK_COLUMN_OP_IS_SCORE(op.op)) {
      if (!may_refuse(op, task)) continue;
      step.filters |= bit;
      if (op.op == PENSTOCK_FILTER_DOMAINS &&
          has_domain_term(task, op.group, [](const penstock_domain_term& term) {
            return term.kind != PENSTOCK_DOMAIN_ABSENT;
          }))
        step.flags |= SELECT_STEP_PREPARE;
    } else if (op.weight == 0) {
      continue;
    } else if (is_zero(op, task)) {
      if (!scalar_is_idle(op, task))
        step.base += op.weight * scalar_normalise_one(op.normalise, ScoreRange{}, 0);
    } else if (op.op == PENSTOCK_SCORE_SPREAD || op.normalise != PENSTOCK_NORMALISE_NONE) {
      step.ranged |= bit;
      if (op.op == PENSTOCK_SCORE_SPREAD) step.flags |= SELECT_STEP_SPREAD;
    } else {
      step.plain |= bit;
    }
  }
  return step;
}

SelectCapabilities select_capabilities(bool has_f64) {
  SelectCapabilities can;
  for (std::uint32_t op = 1; op <= PENSTOCK_SCORE_FGD; op++)
    if (penstock_column_opcode_name(op)[0] != '?') can.operations |= std::uint64_t{1} << op;
  can.normalisations = (2u << PENSTOCK_NORMALISE_SPREAD) - 1;
  can.ties = (2u << PENSTOCK_TIE_HASH) - 1;
  can.max_best = PENSTOCK_MAX_BEST;
  can.gpus = true;
  can.domains = true;
  can.max_resources = PENSTOCK_MAX_RESOURCES;
  can.max_bits = PENSTOCK_MAX_BIT_COLUMNS;
  can.max_free = PENSTOCK_MAX_FREE_COLUMNS;
  if (has_f64) return can;
  for (const std::uint32_t op : {PENSTOCK_SCORE_BALANCED, PENSTOCK_SCORE_BEST_FIT,
                                 PENSTOCK_SCORE_DOT_PRODUCT, PENSTOCK_SCORE_SPREAD})
    can.operations &= ~(std::uint64_t{1} << op);
  can.normalisations &= ~(1u << PENSTOCK_NORMALISE_MIN_MAX_F64);
  return can;
}

Result<SelectPlan> SelectPlan::make(const SelectArguments& arguments, const TableLimits& limits) {
  PENSTOCK_CHECK(std::has_single_bit(limits.lanes) && limits.groups >= 1,
                 "groups of {} lanes, {} of them", limits.lanes, limits.groups);
  SelectPlan plan(arguments);
  try {
    plan.steps_.reserve(arguments.n);
    for (std::uint64_t i = 0; i < arguments.n; i++)
      plan.steps_.push_back(make_select_step(*arguments.program, arguments.tasks[i]));
    plan.divide_rows(limits);
    plan.lay_out();
    plan.list_launches(limits);
  } catch (const std::bad_alloc&) {
    return error(Code::no_space, "no memory for the plan of {} tasks", arguments.n);
  }
  return plan;
}

void SelectPlan::divide_rows(const TableLimits& limits) {
  const penstock_node_table& header = *arguments_.view.header;
  std::uint32_t groups = std::min(limits.groups, (header.rows + limits.lanes - 1) / limits.lanes);
  if (header.rows <= limits.one_group_rows || groups == 0) groups = 1;
  const std::uint32_t share = (header.rows + groups - 1) / groups;
  batch_.rows_of_group = std::max(static_cast<std::uint32_t>(line_up(share)), 64u);
  batch_.groups =
      std::max((header.rows + batch_.rows_of_group - 1) / batch_.rows_of_group, std::uint32_t{1});
}

void SelectPlan::lay_out() {
  const penstock_node_table& header = *arguments_.view.header;
  batch_.table = {header.allocatable, header.requested, header.scored, header.gpu,
                  header.bits,        header.free,      header.domain, header.count,
                  header.logs,        header.capacity,  header.rows,   header.n_resources,
                  header.n_gpus};
  batch_.commit = arguments_.commit ? 1 : 0;
  for (const select_step& step : steps_) {
    batch_.n_raws = std::max(batch_.n_raws, static_cast<u32>(std::popcount(step.ranged)));
    spreads_ = spreads_ || (step.flags & SELECT_STEP_SPREAD) != 0;
  }

  batch_.program = line_up(sizeof(select_batch));
  batch_.tasks = batch_.program + line_up(sizeof(select_program));
  batch_.steps = batch_.tasks + arguments_.n * sizeof(select_task);
  input_bytes_ = line_up(batch_.steps + arguments_.n * sizeof(select_step));

  const auto part = [this](std::uint64_t bytes) {
    const std::uint64_t begin = scratch_bytes_;
    scratch_bytes_ += line_up(bytes);
    return begin;
  };
  const std::uint64_t rows = header.capacity;
  batch_.totals = part(rows * sizeof(i64));
  batch_.raws = part(batch_.n_raws * rows * sizeof(i64));
  batch_.met = part(spreads_ ? SELECT_MAX_DOMAIN_TERMS * rows * sizeof(u32) : 0);
  batch_.partials = part(batch_.groups * sizeof(select_partial));
  batch_.ranges = part(std::uint64_t{batch_.n_raws} * batch_.groups * sizeof(select_range));
  batch_.chosen = part((batch_.groups + 1ull) * SELECT_MAX_BEST * sizeof(select_best));
  batch_.context = part(sizeof(select_context));
}

void SelectPlan::list_launches(const TableLimits& limits) {
  const u32 n = static_cast<u32>(arguments_.n);
  const u32 lanes = limits.lanes;
  const u32 groups = batch_.groups;
  if (spreads_) launches_.push_back({"penstock_select_clear", limits.groups, lanes, 0, 0});
  if (groups == 1) {
    launches_.push_back({"penstock_select_batch", 1, lanes, 0, n});
    return;
  }
  if ((steps_[0].flags & SELECT_STEP_PREPARE) != 0)
    launches_.push_back({"penstock_select_begin", 1, lanes, 0, 0});
  for (u32 i = 0; i < n; i++) {
    launches_.push_back({"penstock_select_scan", groups, lanes, i, 1});
    if ((steps_[i].flags & SELECT_STEP_SPREAD) != 0)
      launches_.push_back({"penstock_select_spread", groups, lanes, i, 1});
    if (steps_[i].ranged != 0) launches_.push_back({"penstock_select_rank", groups, lanes, i, 1});
    launches_.push_back({"penstock_select_finish", 1, lanes, i, i + 1 < n ? 1u : 0u});
  }
}

void SelectPlan::write_inputs(std::byte* to) const {
  std::memcpy(to, &batch_, sizeof batch_);
  std::memcpy(to + batch_.program, arguments_.program, sizeof(penstock_program));
  std::memcpy(to + batch_.tasks, arguments_.tasks, arguments_.n * sizeof(penstock_task));
  std::memcpy(to + batch_.steps, steps_.data(), steps_.size() * sizeof(select_step));
}

}  // namespace penstock::kernels
