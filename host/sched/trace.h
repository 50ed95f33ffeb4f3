// Reads cluster traces in the form of the Alibaba GPU trace of 2023 ("openb"): one CSV file of
// nodes and one of pods, both with a header row.
//
//   nodes: sn, cpu_milli, memory_mib, gpu, model
//   pods:  name, cpu_milli, memory_mib, num_gpu, gpu_milli, gpu_spec
//
// Columns stand in any order; others are ignored. Errors are invalid_argument and name file:line,
// the column, the value found and what would be right.
#ifndef PENSTOCK_SCHED_TRACE_H_
#define PENSTOCK_SCHED_TRACE_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "penstock/base/status.h"

namespace penstock {

struct TraceNode {
  std::string name;
  std::int64_t cpu_milli = 0;   // thousandths of a core
  std::int64_t memory_mib = 0;  // MiB
  std::uint32_t gpus = 0;       // 0..16, each of 1000 thousandths
  std::string model;            // of its GPUs; "" if it has none
};

struct TracePod {
  std::string name;
  std::int64_t cpu_milli = 0;
  std::int64_t memory_mib = 0;
  std::uint32_t num_gpu = 0;    // 0..16
  std::uint32_t gpu_milli = 0;  // of each GPU: 1..1000, and 1000 when num_gpu > 1; 0 without GPU
  std::string gpu_spec;         // the models that will do, joined by '|'; "" for any
};

inline constexpr std::uint64_t kMaxTraceBytes = std::uint64_t{1} << 30;

Result<std::vector<TraceNode>> read_trace_nodes(const std::string& path);
Result<std::vector<TracePod>> read_trace_pods(const std::string& path);
// The same of bytes; `name` stands for the file in messages.
Result<std::vector<TraceNode>> parse_trace_nodes(std::string_view bytes, const std::string& name);
Result<std::vector<TracePod>> parse_trace_pods(std::string_view bytes, const std::string& name);

}  // namespace penstock
#endif
