#include "penstock/sched/trace.h"

#include <unordered_map>
#include <utility>

#include "penstock/descriptor/node_table.h"
#include "penstock/sched/csv.h"

namespace penstock {
namespace {

constexpr std::size_t kMaxNameBytes = 253;  // as long as a DNS name, which Kubernetes' names are

Status check_name(const CsvReader& csv, std::size_t column) {
  const std::string& name = csv.field(column);
  if (!name.empty() && name.size() <= kMaxNameBytes) return {};
  return csv.bad(column, fmt::format("a name of 1 to {} bytes", kMaxNameBytes));
}

Result<TraceNode> node_of(const CsvReader& csv) {
  enum : std::size_t { kName, kCpu, kMemory, kGpu, kModel };
  TraceNode node;
  PENSTOCK_TRY(check_name(csv, kName));
  node.name = csv.field(kName);
  PENSTOCK_ASSIGN(node.cpu_milli, csv.integer(kCpu, 0, PENSTOCK_MAX_QUANTITY));
  PENSTOCK_ASSIGN(node.memory_mib, csv.integer(kMemory, 0, PENSTOCK_MAX_QUANTITY));
  PENSTOCK_ASSIGN(const std::int64_t gpus, csv.integer(kGpu, 0, PENSTOCK_MAX_GPUS));
  node.gpus = static_cast<std::uint32_t>(gpus);
  node.model = csv.field(kModel);
  if (node.model.find('|') != std::string::npos || node.model.size() > kMaxNameBytes) {
    return csv.bad(kModel, fmt::format("one model without '|', of up to {} bytes", kMaxNameBytes));
  }
  return node;
}

Result<TracePod> pod_of(const CsvReader& csv) {
  enum : std::size_t { kName, kCpu, kMemory, kNumGpu, kGpuMilli, kGpuSpec };
  TracePod pod;
  PENSTOCK_TRY(check_name(csv, kName));
  pod.name = csv.field(kName);
  PENSTOCK_ASSIGN(pod.cpu_milli, csv.integer(kCpu, 0, PENSTOCK_MAX_REQUEST));
  PENSTOCK_ASSIGN(pod.memory_mib, csv.integer(kMemory, 0, PENSTOCK_MAX_REQUEST));
  PENSTOCK_ASSIGN(const std::int64_t num_gpu, csv.integer(kNumGpu, 0, PENSTOCK_MAX_GPUS));
  PENSTOCK_ASSIGN(const std::int64_t gpu_milli, csv.integer(kGpuMilli, 0, 1000));
  if (num_gpu == 0 && gpu_milli != 0) {
    return csv.bad(kGpuMilli, "0, since num_gpu is 0");
  }
  if (num_gpu == 1 && gpu_milli == 0) {
    return csv.bad(kGpuMilli, "1 to 1000, since num_gpu is 1");
  }
  if (num_gpu > 1 && gpu_milli != 1000) {
    return csv.bad(kGpuMilli,
                   fmt::format("1000, since num_gpu is {} and only one GPU is shared", num_gpu));
  }
  pod.num_gpu = static_cast<std::uint32_t>(num_gpu);
  pod.gpu_milli = static_cast<std::uint32_t>(gpu_milli);
  pod.gpu_spec = csv.field(kGpuSpec);
  if (pod.gpu_spec.size() > 1024) return csv.bad(kGpuSpec, "models in up to 1024 bytes");
  return pod;
}

}  // namespace

Result<std::vector<TraceNode>> parse_trace_nodes(std::string_view bytes, const std::string& name) {
  CsvReader csv(bytes, name);
  PENSTOCK_TRY(csv.open({"sn", "cpu_milli", "memory_mib", "gpu", "model"}));
  std::vector<TraceNode> nodes;
  std::unordered_map<std::string, std::size_t> line_of;
  for (;;) {
    PENSTOCK_ASSIGN(const bool more, csv.next());
    if (!more) break;
    PENSTOCK_ASSIGN(TraceNode node, node_of(csv));
    const auto [place, is_new] = line_of.emplace(node.name, csv.line());
    if (!is_new) {
      return csv.bad(0, fmt::format("a name of its own; line {} has it already", place->second));
    }
    if (nodes.size() == PENSTOCK_MAX_ROWS) {
      return error(Code::out_of_range, "{}: more than {} nodes, which is what a table holds",
                   csv.where(), PENSTOCK_MAX_ROWS);
    }
    nodes.push_back(std::move(node));
  }
  if (nodes.empty()) {
    return error(Code::invalid_argument, "{}: no row after the header, expected a node", name);
  }
  return nodes;
}

Result<std::vector<TracePod>> parse_trace_pods(std::string_view bytes, const std::string& name) {
  CsvReader csv(bytes, name);
  PENSTOCK_TRY(csv.open({"name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli", "gpu_spec"}));
  std::vector<TracePod> pods;
  for (;;) {
    PENSTOCK_ASSIGN(const bool more, csv.next());
    if (!more) break;
    PENSTOCK_ASSIGN(TracePod pod, pod_of(csv));
    pods.push_back(std::move(pod));
  }
  if (pods.empty()) {
    return error(Code::invalid_argument, "{}: no row after the header, expected a pod", name);
  }
  return pods;
}

Result<std::vector<TraceNode>> read_trace_nodes(const std::string& path) {
  PENSTOCK_ASSIGN(const std::string bytes, read_file(path, kMaxTraceBytes));
  return parse_trace_nodes(bytes, path);
}

Result<std::vector<TracePod>> read_trace_pods(const std::string& path) {
  PENSTOCK_ASSIGN(const std::string bytes, read_file(path, kMaxTraceBytes));
  return parse_trace_pods(bytes, path);
}

}  // namespace penstock
