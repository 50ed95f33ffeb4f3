#include "penstock/sched/trace_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

namespace penstock {
namespace {

enum : std::uint32_t { kCpu, kMemory, kGpu };

// A task that shares a GPU is of one class; those that take whole ones are classed by their number.
std::string gpu_class(const TracePod& pod) {
  if (pod.num_gpu == 1 && pod.gpu_milli < 1000) return "gpu-class/shared";
  return fmt::format("gpu-class/{}", pod.num_gpu);
}

// The alternatives of "T4|P100", sorted, each once.
std::set<std::string, std::less<>> models_of(std::string_view spec) {
  std::set<std::string, std::less<>> models;
  while (!spec.empty()) {
    const std::size_t end = std::min(spec.find('|'), spec.size());
    if (end > 0) models.emplace(spec.substr(0, end));
    spec.remove_prefix(std::min(end + 1, spec.size()));
  }
  return models;
}

std::string model_key(const std::string& spec) {
  return fmt::format("model {}", fmt::join(models_of(spec), "|"));
}

}  // namespace

Result<std::unique_ptr<NodeTable>> make_trace_table(const std::vector<TraceNode>& nodes,
                                                    const std::vector<TracePod>& pods,
                                                    std::shared_ptr<Engine> engine,
                                                    const TraceTableOptions& options) {
  std::set<std::string> classes, specs;
  for (const TracePod& pod : pods) {
    if (pod.num_gpu > 0) classes.insert(gpu_class(pod));
    if (!pod.gpu_spec.empty()) specs.insert(model_key(pod.gpu_spec));
  }
  std::uint32_t gpus = 0;
  for (const TraceNode& node : nodes) gpus = std::max(gpus, node.gpus);

  NodeTableConfig config;
  config.name = options.table_name;
  config.capacity = static_cast<std::uint32_t>(std::min<std::size_t>(nodes.size(), 1u << 30));
  config.resources = {{"cpu", "milli"}, {"memory", "MiB"}, {"gpu", "milli"}};
  config.n_gpus = gpus;
  config.bit_columns = static_cast<std::uint32_t>(
      std::min<std::size_t>(PENSTOCK_BIT_FIRST_FREE + specs.size(), PENSTOCK_MAX_BIT_COLUMNS));
  config.free_columns.assign(classes.begin(), classes.end());
  PENSTOCK_ASSIGN(auto table, NodeTable::create(options.pool, std::move(engine), config));

  std::vector<NodeSpec> rows;
  rows.reserve(nodes.size());
  for (const TraceNode& node : nodes) {
    NodeSpec& row = rows.emplace_back();
    row.facts.name = node.name;
    row.facts.model = node.model;
    row.allocatable = {node.cpu_milli, node.memory_mib, std::int64_t{node.gpus} * 1000};
    row.gpus = node.gpus;
  }
  PENSTOCK_TRY(table->add_nodes(rows));
  PENSTOCK_TRY(table->save());
  return table;
}

Result<std::uint16_t> intern_models(NodeTable& table, const std::string& gpu_spec) {
  return table.intern(model_key(gpu_spec), [models = models_of(gpu_spec)](const NodeFacts& node) {
    return models.contains(node.model);
  });
}

Result<Task> make_trace_task(NodeTable& table, const TracePod& pod) {
  Task task;
  task.name = pod.name;
  penstock_task& record = task.record;
  record.request[kCpu] = pod.cpu_milli;
  record.request[kMemory] = pod.memory_mib;
  record.request[kGpu] = std::int64_t{pod.num_gpu} * pod.gpu_milli;
  std::copy(std::begin(record.request), std::end(record.request),
            std::begin(record.scored_request));
  record.gpu_count = pod.num_gpu;
  record.gpu_milli = pod.gpu_milli;
  PENSTOCK_TRY(add_term(&task, TermGroup::unschedulable, PENSTOCK_BIT_UNSCHEDULABLE, true));
  if (!pod.gpu_spec.empty()) {
    PENSTOCK_ASSIGN(const std::uint16_t column, intern_models(table, pod.gpu_spec));
    PENSTOCK_TRY(add_term(&task, TermGroup::model, column, false));
  }
  if (pod.num_gpu == 0) {
    // In no class: an entry beyond the list.
    record.klass = PENSTOCK_MAX_RESOURCES - 1;
    return task;
  }
  const std::int32_t column = table.catalogue().find_free_column(gpu_class(pod));
  if (column < 0) {
    return error(Code::invalid_argument, "pod '{}': the table has no column for its class",
                 pod.name);
  }
  if (column >= static_cast<std::int32_t>(PENSTOCK_MAX_RESOURCES)) {
    return error(Code::unsupported, "pod '{}': the pods are of more than {} GPU classes", pod.name,
                 PENSTOCK_MAX_RESOURCES);
  }
  record.klass = static_cast<std::uint32_t>(column);
  record.count[0] = static_cast<std::uint16_t>(column + 1);
  return task;
}

}  // namespace penstock
