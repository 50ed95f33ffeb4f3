// Bytes as the two files of a trace, with a line of "---" between them. What reads without an error
// becomes a table and tasks that are placed.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "penstock/sched/fgd.h"
#include "penstock/sched/trace.h"
#include "penstock/sched/trace_table.h"

namespace {

void place(const std::vector<penstock::TraceNode>& nodes,
           const std::vector<penstock::TracePod>& pods) {
  using namespace penstock;
  auto table = make_trace_table(nodes, pods, make_engine("scalar").value());
  if (!table.ok()) return;
  std::vector<Task> tasks;
  for (const TracePod& pod : pods) {
    auto task = make_trace_task(*table.value(), pod);
    if (task.ok()) tasks.push_back(std::move(task).value());
  }
  const auto typical = make_typical_tasks(*table.value(), pods);
  if (!typical.ok()) return;
  CompileOptions options;
  options.typical = &typical.value();
  for (const Policy& policy : built_in_policies()) {
    const auto decisions = table.value()->place(policy, tasks, true, options);
    // Nothing about a list of pods makes a policy unfit for their table.
    if (decisions.status().code() == Code::invalid_argument) std::abort();
    if (decisions.ok() && decisions.value().size() != tasks.size()) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace penstock;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  constexpr std::string_view kBetween = "---\n";
  const size_t at = bytes.find(kBetween);
  const size_t rest = at == std::string_view::npos ? 0 : at + kBetween.size();
  const auto nodes = parse_trace_nodes(bytes.substr(0, at), "nodes.csv");
  const auto pods = parse_trace_pods(bytes.substr(rest), "pods.csv");
  for (const Status& status : {nodes.status(), pods.status()}) {
    // One line for whoever reads it on a terminal.
    if (!status.ok() && status.message().find('\n') != std::string::npos) std::abort();
  }
  if (nodes.ok() && pods.ok() && nodes.value().size() <= 64 && pods.value().size() <= 64) {
    place(nodes.value(), pods.value());
  }
  return 0;
}
