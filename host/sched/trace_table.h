// From a trace to a node table and tasks. Resources: cpu (milli), memory (MiB) and gpu (milli, of
// the node in total). A model, or alternatives of them, is a bit column; the classes of tasks that
// gpu-clustering counts are free columns.
#ifndef PENSTOCK_SCHED_TRACE_TABLE_H_
#define PENSTOCK_SCHED_TRACE_TABLE_H_

#include <memory>
#include <string>
#include <vector>

#include "penstock/base/status.h"
#include "penstock/sched/node_table.h"
#include "penstock/sched/trace.h"

namespace penstock {

struct TraceTableOptions {
  Pool* pool = nullptr;
  std::string table_name;
};

// An empty table of the nodes, with columns for what the pods ask for.
Result<std::unique_ptr<NodeTable>> make_trace_table(const std::vector<TraceNode>& nodes,
                                                    const std::vector<TracePod>& pods,
                                                    std::shared_ptr<Engine> engine,
                                                    const TraceTableOptions& options = {});

// The task of a pod, for a table that was made with it in `pods`.
Result<Task> make_trace_task(NodeTable& table, const TracePod& pod);

// The bit column of the nodes whose model is one of the alternatives of a gpu_spec. Tables of
// make_trace_table have one for each spec of their pods.
Result<std::uint16_t> intern_models(NodeTable& table, const std::string& gpu_spec);

}  // namespace penstock
#endif
