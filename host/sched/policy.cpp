#include "penstock/sched/policy.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <iterator>

#include "penstock/sched/fgd.h"
#include "penstock/sched/node_table.h"

namespace penstock {
namespace {

// What the free columns of GPU classes begin with; see trace_table.h.
constexpr std::string_view kGpuClass = "gpu-class/";

Status lacks(const std::string& name, const char* column) {
  return error(Code::invalid_argument, "'{}' needs the resource '{}', which the table lacks", name,
               column);
}

void push_column(penstock_column_op* op, std::int32_t column) {
  op->column[op->n++] = static_cast<std::uint16_t>(column);
}

// ---- filters ----

struct Filter {
  const char* name;
  penstock_column_opcode op;
  TermGroup group;  // of FILTER_BITS and FILTER_DOMAINS
};

constexpr Filter kFilters[] = {
    {"unschedulable", PENSTOCK_FILTER_BITS, TermGroup::unschedulable},
    {"node-name", PENSTOCK_FILTER_ROW, {}},
    {"taints", PENSTOCK_FILTER_BITS, TermGroup::taints},
    {"node-affinity", PENSTOCK_FILTER_BITS, TermGroup::node_affinity},
    {"ports", PENSTOCK_FILTER_BITS, TermGroup::ports},
    {"fit", PENSTOCK_FILTER_FIT, {}},
    {"spread", PENSTOCK_FILTER_DOMAINS, TermGroup::spread},
    {"pod-affinity", PENSTOCK_FILTER_DOMAINS, TermGroup::pod_affinity},
    {"model", PENSTOCK_FILTER_BITS, TermGroup::model},
    {"gpu", PENSTOCK_FILTER_GPU, {}},
};

// ---- scores ----

using Build = Status (*)(const std::string& name, const NodeTable& table, penstock_column_op* op);

Status build_cpu_and_memory(const std::string& name, const NodeTable& table,
                            penstock_column_op* op) {
  for (const char* resource : {"cpu", "memory"}) {
    const std::int32_t column = table.catalogue().find_resource(resource);
    if (column < 0) return lacks(name, resource);
    push_column(op, column);
  }
  return {};
}

Status build_weighted(const std::string& name, const NodeTable& table, penstock_column_op* op) {
  PENSTOCK_TRY(build_cpu_and_memory(name, table, op));
  std::fill_n(op->list_weight, op->n, std::uint16_t{1});
  return {};
}

// cpu and gpu, each divided by the largest machine.
Status build_scaled(const std::string& name, const NodeTable& table, penstock_column_op* op) {
  for (const char* resource : {"cpu", "gpu"}) {
    const std::int32_t column = table.catalogue().find_resource(resource);
    if (column < 0) return lacks(name, resource);
    op->scale[op->n] = table.largest(static_cast<std::uint32_t>(column));
    push_column(op, column);
  }
  return {};
}

Status build_gpu_packing(const std::string& name, const NodeTable& table, penstock_column_op* op) {
  const std::int32_t column = table.catalogue().find_resource("gpu");
  if (column < 0) return lacks(name, "gpu");
  push_column(op, column);
  return {};
}

Status build_gpu_clustering(const std::string& name, const NodeTable& table,
                            penstock_column_op* op) {
  const std::int32_t gpu = table.catalogue().find_resource("gpu");
  if (gpu < 0) return lacks(name, "gpu");
  op->scale[0] = table.largest(static_cast<std::uint32_t>(gpu));
  const auto& columns = table.catalogue().free_columns();
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (!columns[i].starts_with(kGpuClass)) continue;
    if (op->n == PENSTOCK_MAX_RESOURCES) {
      return error(Code::no_space, "'{}': more than {} classes of tasks", name,
                   PENSTOCK_MAX_RESOURCES);
    }
    push_column(op, static_cast<std::int32_t>(i));
  }
  return {};
}

Status build_fgd(const std::string& name, const NodeTable& table, penstock_column_op* op) {
  const std::int32_t column = table.catalogue().find_resource("cpu");
  if (column < 0) return lacks(name, "cpu");
  push_column(op, column);
  return {};
}

template <TermGroup kGroup>
Status build_group(const std::string&, const NodeTable&, penstock_column_op* op) {
  op->group = static_cast<std::uint8_t>(kGroup);
  return {};
}

struct Score {
  const char* name;
  penstock_column_opcode op;
  penstock_normalise normalise;
  Build build;
};

const Score kScores[] = {
    {"least-allocated", PENSTOCK_SCORE_LEAST_ALLOCATED, PENSTOCK_NORMALISE_NONE, build_weighted},
    {"most-allocated", PENSTOCK_SCORE_MOST_ALLOCATED, PENSTOCK_NORMALISE_NONE, build_weighted},
    {"requested-to-capacity-ratio", PENSTOCK_SCORE_RATIO, PENSTOCK_NORMALISE_NONE, build_weighted},
    {"balanced-allocation", PENSTOCK_SCORE_BALANCED, PENSTOCK_NORMALISE_NONE, build_cpu_and_memory},
    {"taint-toleration", PENSTOCK_SCORE_BITS, PENSTOCK_NORMALISE_REVERSED,
     build_group<TermGroup::preferred_taints>},
    {"node-affinity", PENSTOCK_SCORE_BITS, PENSTOCK_NORMALISE_DEFAULT,
     build_group<TermGroup::preferred_affinity>},
    {"spread", PENSTOCK_SCORE_SPREAD, PENSTOCK_NORMALISE_SPREAD,
     build_group<TermGroup::preferred_spread>},
    {"pod-affinity", PENSTOCK_SCORE_DOMAINS, PENSTOCK_NORMALISE_MIN_MAX_F64,
     build_group<TermGroup::preferred_pod_affinity>},
    {"image-locality", PENSTOCK_SCORE_DOMAINS, PENSTOCK_NORMALISE_NONE,
     build_group<TermGroup::images>},
    {"best-fit", PENSTOCK_SCORE_BEST_FIT, PENSTOCK_NORMALISE_MIN_MAX, build_scaled},
    {"dot-product", PENSTOCK_SCORE_DOT_PRODUCT, PENSTOCK_NORMALISE_NONE, build_scaled},
    {"gpu-packing", PENSTOCK_SCORE_GPU_PACKING, PENSTOCK_NORMALISE_NONE, build_gpu_packing},
    {"gpu-clustering", PENSTOCK_SCORE_GPU_CLUSTERING, PENSTOCK_NORMALISE_NONE,
     build_gpu_clustering},
    {"fgd", PENSTOCK_SCORE_FGD, PENSTOCK_NORMALISE_NONE, build_fgd},
};

template <typename List>
std::vector<std::string> names_of(const List& list) {
  std::vector<std::string> names;
  for (const auto& entry : list) names.emplace_back(entry.name);
  return names;
}

template <typename List>
auto find_named(const List& list, const std::string& name) {
  return std::find_if(std::begin(list), std::end(list),
                      [&name](const auto& entry) { return entry.name == name; });
}

Status unknown(const char* what, const std::string& name, const std::vector<std::string>& known) {
  return error(Code::not_found, "there is no {} '{}'; there are {}", what, name,
               fmt::to_string(fmt::join(known, ", ")));
}

// RATIO without a shape of the user's: the fuller the better, 100 when it is full.
void set_full_shape(penstock_program* program) {
  for (std::uint32_t i = 0; i < PENSTOCK_SHAPE_POINTS; ++i) {
    program->shape[i] = static_cast<std::uint8_t>(i);
  }
}

penstock_column_op* next_op(Program* program, const std::string& name) {
  program->names.push_back(name);
  return &program->record.ops[program->record.n_ops++];
}

// What SCORE_FGD reads beside its operation.
Status put_typical(const TypicalTasks* typical, penstock_program* program) {
  if (typical == nullptr || typical->total < 1 || typical->tasks.size() > PENSTOCK_MAX_TYPICAL) {
    return error(Code::invalid_argument,
                 "'fgd' needs the typical tasks of the workload, 1 to {} of them; it is for traces",
                 PENSTOCK_MAX_TYPICAL);
  }
  program->n_typical = static_cast<std::uint32_t>(typical->tasks.size());
  std::copy(typical->tasks.begin(), typical->tasks.end(), program->typical);
  const auto thresholds = fgd_thresholds(typical->total);
  std::copy(thresholds.begin(), thresholds.end(), program->threshold);
  return {};
}

}  // namespace

const std::vector<Policy>& built_in_policies() {
  static const std::vector<std::string> kTraceFilters = {"unschedulable", "model", "fit", "gpu"};
  static const std::vector<Policy> kPolicies = {
      {"default",
       "kube-scheduler's default filters and scores, as far as a pod's terms are supported",
       {"unschedulable", "node-name", "taints", "node-affinity", "ports", "fit", "model", "gpu"},
       {{"taint-toleration", 3},
        {"node-affinity", 2},
        {"least-allocated", 1},
        {"balanced-allocation", 1}}},
      {"best-fit",
       "the node on which least is left of cpu and GPU",
       kTraceFilters,
       {{"best-fit", 1}}},
      {"random",
       "any node that fits, and there any GPU that fits, by a seeded hash",
       kTraceFilters,
       {},
       PENSTOCK_TIE_HASH,
       PENSTOCK_GPU_HASH},
      {"dot-product",
       "the node whose free cpu and GPU point least in the direction of the request",
       kTraceFilters,
       {{"dot-product", 1}}},
      {"gpu-packing",
       "GPUs in use first, then free GPUs of nodes in use, then free nodes",
       kTraceFilters,
       {{"gpu-packing", 1}}},
      {"gpu-clustering",
       "nodes that run tasks of the same GPU class first",
       kTraceFilters,
       {{"gpu-clustering", 1}}},
      {"fgd",
       "the node and GPU whose free GPU parts lose least use for the workload's typical tasks",
       kTraceFilters,
       {{"fgd", 1}},
       PENSTOCK_TIE_LOWEST_ROW,
       PENSTOCK_GPU_FGD},
  };
  return kPolicies;
}

Result<Policy> find_policy(const std::string& name) {
  const auto found = find_named(built_in_policies(), name);
  if (found == built_in_policies().end()) {
    return unknown("policy", name, names_of(built_in_policies()));
  }
  return *found;
}

std::vector<std::string> filter_names() { return names_of(kFilters); }
std::vector<std::string> score_names() { return names_of(kScores); }

Result<Program> compile_policy(const Policy& policy, const NodeTable& table,
                               const CompileOptions& options) {
  if (policy.filters.size() + policy.scores.size() > PENSTOCK_MAX_OPS) {
    return error(Code::no_space, "policy '{}' has {} filters and scores, at most {} are run",
                 policy.name, policy.filters.size() + policy.scores.size(), PENSTOCK_MAX_OPS);
  }
  if (options.best < 1 || options.best > PENSTOCK_MAX_BEST) {
    return error(Code::invalid_argument, "{} best nodes, expected 1 to {}", options.best,
                 PENSTOCK_MAX_BEST);
  }
  Program program;
  program.record.magic = PENSTOCK_PROGRAM_MAGIC;
  program.record.version = PENSTOCK_PROGRAM_VERSION;
  program.record.tie = static_cast<std::uint8_t>(policy.tie);
  program.record.gpu_pick = static_cast<std::uint8_t>(policy.gpu_pick);
  program.record.best = static_cast<std::uint8_t>(options.best);
  program.record.seed = options.seed;
  for (const std::string& name : policy.filters) {
    const auto filter = find_named(kFilters, name);
    if (filter == std::end(kFilters)) return unknown("filter", name, filter_names());
    penstock_column_op* op = next_op(&program, name);
    op->op = static_cast<std::uint8_t>(filter->op);
    op->group = static_cast<std::uint8_t>(filter->group);
    if (filter->op != PENSTOCK_FILTER_FIT) continue;
    for (std::uint32_t r = 0; r < table.header().n_resources; ++r) {
      push_column(op, static_cast<std::int32_t>(r));
    }
  }
  for (const PolicyScore& weighted : policy.scores) {
    const auto score = find_named(kScores, weighted.name);
    if (score == std::end(kScores)) return unknown("score", weighted.name, score_names());
    if (weighted.weight < 1 || weighted.weight > PENSTOCK_MAX_WEIGHT) {
      return error(Code::invalid_argument,
                   "policy '{}': score '{}' has weight {}, expected 1 to {}", policy.name,
                   weighted.name, weighted.weight, PENSTOCK_MAX_WEIGHT);
    }
    penstock_column_op* op = next_op(&program, weighted.name);
    op->op = static_cast<std::uint8_t>(score->op);
    op->normalise = static_cast<std::uint8_t>(score->normalise);
    op->weight = weighted.weight;
    PENSTOCK_TRY(score->build(weighted.name, table, op));
    if (score->op == PENSTOCK_SCORE_RATIO) set_full_shape(&program.record);
    if (score->op == PENSTOCK_SCORE_FGD) {
      PENSTOCK_TRY(put_typical(options.typical, &program.record));
    }
  }
  std::uint64_t detail = 0;
  const std::uint32_t verdict = penstock_program_check(&program.record, &table.header(), &detail);
  if (verdict != PENSTOCK_OK) {
    return error(static_cast<Code>(verdict), "policy '{}': '{}' makes no valid program",
                 policy.name, detail < program.names.size() ? program.names[detail] : policy.name);
  }
  return program;
}

}  // namespace penstock
