// What `./run bench sched` measures through NodeTable and Cluster, as their users call them.
#ifndef PENSTOCK_TESTS_BENCH_SCHED_TABLE_SCENARIOS_H_
#define PENSTOCK_TESTS_BENCH_SCHED_TABLE_SCENARIOS_H_

#include <cstdint>
#include <vector>

#include "scenarios.h"

namespace penstock::bench {

// Gangs that come together and gangs of which the last member has no place; and tasks in batches of
// 64 between which nodes are added, removed, drained and changed.
void run_table_scenarios(const Options& options, std::uint32_t nodes, std::vector<Line>* lines);

// Pods one by one through Cluster with the default profile, and the search for victims when it is
// full. Clusters of more than 10,000 nodes take longer to make than to measure, and are left out.
void run_cluster_scenarios(const Options& options, std::uint32_t nodes, std::vector<Line>* lines);

// Whether --only asks for a scenario of this name.
bool wanted(const Options& options, const char* name);
void take_percentiles(std::vector<std::uint32_t>* times, Line* line);

}  // namespace penstock::bench
#endif
