#include "penstock/sched/profile_policy.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace penstock {
namespace {

struct PluginName {
  std::string_view plugin;
  const char* name;  // null: by the fit strategy
};

constexpr PluginName kFilterNames[] = {
    {"NodeUnschedulable", "unschedulable"},
    {"NodeName", "node-name"},
    {"TaintToleration", "taints"},
    {"NodeAffinity", "node-affinity"},
    {"NodePorts", "ports"},
    {"NodeResourcesFit", "fit"},
    {"PodTopologySpread", "spread"},
    {"InterPodAffinity", "pod-affinity"},
};

constexpr PluginName kScoreNames[] = {
    {"TaintToleration", "taint-toleration"},
    {"NodeAffinity", "node-affinity"},
    {"NodeResourcesFit", nullptr},
    {"PodTopologySpread", "spread"},
    {"InterPodAffinity", "pod-affinity"},
    {"NodeResourcesBalancedAllocation", "balanced-allocation"},
    {"ImageLocality", "image-locality"},
};

const char* strategy_name(FitStrategy strategy) {
  switch (strategy) {
    case FitStrategy::most_allocated:
      return "most-allocated";
    case FitStrategy::requested_to_capacity_ratio:
      return "requested-to-capacity-ratio";
    case FitStrategy::least_allocated:
      break;
  }
  return "least-allocated";
}

template <std::size_t kCount>
Result<std::string> policy_name(const PluginName (&names)[kCount], const std::string& plugin,
                                const std::vector<std::string>& own, const char* what,
                                FitStrategy strategy) {
  for (const PluginName& entry : names) {
    if (entry.plugin == plugin)
      return std::string(entry.name ? entry.name : strategy_name(strategy));
  }
  if (std::find(own.begin(), own.end(), plugin) != own.end()) return plugin;
  std::vector<std::string_view> known;
  for (const PluginName& entry : names) known.push_back(entry.plugin);
  return error(Code::not_found, "there is no {} '{}'; there are {}, {}", what, plugin,
               fmt::to_string(fmt::join(known, ", ")), fmt::to_string(fmt::join(own, ", ")));
}

bool is_ignored(const SchedulerProfile& profile, const std::string& resource) {
  if (!is_extended_resource(resource)) return false;
  const auto lists = [](const std::vector<std::string>& list, const std::string& name) {
    return std::find(list.begin(), list.end(), name) != list.end();
  };
  return lists(profile.ignored_resources, resource) ||
         lists(profile.ignored_resource_groups, resource.substr(0, resource.find('/')));
}

// ---- the lists of resources ----

// What kube-scheduler scores; other names ("pods") weigh nothing there.
bool is_scored(std::string_view name) {
  return name == "cpu" || name == "memory" || name == "ephemeral-storage" ||
         is_scalar_resource(name);
}

Status check_resources(const SchedulerProfile& profile, const char* plugin,
                       const std::vector<ScoringResource>& resources, std::int32_t max_weight) {
  if (resources.empty()) {
    return error(Code::invalid_argument, "profile '{}': {}: resources not found, expected 1 to {}",
                 profile.scheduler_name, plugin, PENSTOCK_MAX_RESOURCES);
  }
  if (resources.size() > PENSTOCK_MAX_RESOURCES) {
    return error(Code::unsupported, "profile '{}': {}: {} resources, expected 1 to {}",
                 profile.scheduler_name, plugin, resources.size(), PENSTOCK_MAX_RESOURCES);
  }
  for (std::size_t i = 0; i < resources.size(); ++i) {
    if (resources[i].weight >= 1 && resources[i].weight <= max_weight) continue;
    return error(Code::invalid_argument,
                 "profile '{}': {}: resources[{}].weight: found {}, expected 1 to {}",
                 profile.scheduler_name, plugin, i, resources[i].weight, max_weight);
  }
  return {};
}

Status check_shape(const SchedulerProfile& profile) {
  const std::vector<ShapePoint>& shape = profile.fit_shape;
  bool right = !shape.empty();
  for (std::size_t i = 0; i < shape.size(); ++i) {
    right = right && shape[i].utilization >= 0 && shape[i].utilization <= 100 &&
            shape[i].score >= 0 && shape[i].score <= 10 &&
            (i == 0 || shape[i - 1].utilization < shape[i].utilization);
  }
  if (right) return {};
  return error(Code::invalid_argument,
               "profile '{}': NodeResourcesFit: the shape is not one or more points of rising "
               "utilization 0 to 100 with a score of 0 to 10",
               profile.scheduler_name);
}

// Writes the list of an op that counts resources.
void set_resources(const std::vector<ScoringResource>& resources, const Catalogue& catalogue,
                   bool weighted, penstock_column_op* op) {
  std::fill(std::begin(op->column), std::end(op->column), std::uint16_t{0});
  std::fill(std::begin(op->list_weight), std::end(op->list_weight), std::uint16_t{0});
  op->n = 0;
  op->skip_unasked = 0;
  for (const ScoringResource& resource : resources) {
    const std::int32_t column = catalogue.find_resource(resource.name);
    if (column < 0 || !is_scored(resource.name)) continue;
    if (is_scalar_resource(resource.name)) op->skip_unasked |= 1u << op->n;
    if (weighted) op->list_weight[op->n] = static_cast<std::uint16_t>(resource.weight);
    op->column[op->n++] = static_cast<std::uint16_t>(column);
  }
}

void leave_out_ignored(const SchedulerProfile& profile, const Catalogue& catalogue,
                       penstock_column_op* op) {
  std::uint8_t kept = 0;
  for (std::uint8_t i = 0; i < op->n; ++i) {
    if (is_ignored(profile, catalogue.resources()[op->column[i]].name)) continue;
    op->column[kept++] = op->column[i];
  }
  std::fill(op->column + kept, op->column + op->n, std::uint16_t{0});
  op->n = kept;
}

Status set_arguments(const SchedulerProfile& profile, const Catalogue& catalogue, Program* program,
                     penstock_column_op* op) {
  switch (op->op) {
    case PENSTOCK_FILTER_FIT:
      leave_out_ignored(profile, catalogue, op);
      break;
    case PENSTOCK_SCORE_LEAST_ALLOCATED:
    case PENSTOCK_SCORE_MOST_ALLOCATED:
    case PENSTOCK_SCORE_RATIO:
      PENSTOCK_TRY(check_resources(profile, "NodeResourcesFit", profile.fit_resources, 100));
      set_resources(profile.fit_resources, catalogue, true, op);
      break;
    case PENSTOCK_SCORE_BALANCED:
      PENSTOCK_TRY(check_resources(profile, "NodeResourcesBalancedAllocation",
                                   profile.balanced_resources, 1));
      set_resources(profile.balanced_resources, catalogue, false, op);
      break;
    default:
      break;
  }
  if (op->op != PENSTOCK_SCORE_RATIO) return {};
  PENSTOCK_TRY(check_shape(profile));
  std::vector<ShapePoint> shape = profile.fit_shape;
  for (ShapePoint& point : shape) point.score *= 10;  // out of 100, as every score
  for (std::uint32_t percent = 0; percent < PENSTOCK_SHAPE_POINTS; ++percent) {
    program->record.shape[percent] = static_cast<std::uint8_t>(broken_linear(shape, percent));
  }
  return {};
}

}  // namespace

std::int64_t broken_linear(std::span<const ShapePoint> shape, std::int64_t utilization) {
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const ShapePoint& to = shape[i];
    if (utilization > to.utilization) continue;
    if (i == 0) return to.score;
    const ShapePoint& from = shape[i - 1];
    const std::int64_t rise = std::int64_t{to.score} - from.score;
    const std::int64_t run = std::int64_t{to.utilization} - from.utilization;
    return from.score + rise * (utilization - from.utilization) / run;
  }
  return shape.empty() ? 0 : shape.back().score;
}

bool is_extended_resource(std::string_view name) {
  return name.find('/') != std::string_view::npos &&
         name.find("kubernetes.io/") == std::string_view::npos && !name.starts_with("requests.");
}

bool is_scalar_resource(std::string_view name) {
  return is_extended_resource(name) || name.starts_with("hugepages-") ||
         name.starts_with("attachable-volumes-") ||
         name.find("kubernetes.io/") != std::string_view::npos;
}

Result<Policy> profile_policy(const SchedulerProfile& profile) {
  Policy policy;
  policy.name = profile.scheduler_name;
  policy.description = "a kube-scheduler profile";
  for (const std::string& plugin : profile.filters) {
    PENSTOCK_ASSIGN(std::string name, policy_name(kFilterNames, plugin, filter_names(), "filter",
                                                  profile.fit_strategy));
    policy.filters.push_back(std::move(name));
  }
  for (const PolicyScore& score : profile.scores) {
    PENSTOCK_ASSIGN(std::string name, policy_name(kScoreNames, score.name, score_names(), "score",
                                                  profile.fit_strategy));
    policy.scores.push_back({std::move(name), score.weight});
  }
  return policy;
}

Result<Program> compile_profile(const SchedulerProfile& profile, const NodeTable& table,
                                const CompileOptions& options, penstock_tie tie) {
  PENSTOCK_ASSIGN(Policy policy, profile_policy(profile));
  policy.tie = tie;
  PENSTOCK_ASSIGN(Program program, compile_policy(policy, table, options));
  for (std::uint32_t i = 0; i < program.record.n_ops; ++i) {
    PENSTOCK_TRY(set_arguments(profile, table.catalogue(), &program, &program.record.ops[i]));
  }
  std::uint64_t detail = 0;
  const std::uint32_t verdict = penstock_program_check(&program.record, &table.header(), &detail);
  if (verdict != PENSTOCK_OK) {
    return error(static_cast<Code>(verdict), "profile '{}': '{}' makes no valid program",
                 profile.scheduler_name,
                 detail < program.names.size() ? program.names[detail] : profile.scheduler_name);
  }
  return program;
}

}  // namespace penstock
