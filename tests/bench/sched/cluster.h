// The clusters and tasks that `./run bench sched` measures with: nodes of three sizes in ten zones,
// a program with all of kube-scheduler's default plugins, and pods as its own benchmarks have them.
#ifndef PENSTOCK_TESTS_BENCH_SCHED_CLUSTER_H_
#define PENSTOCK_TESTS_BENCH_SCHED_CLUSTER_H_

#include <cstdint>

#include "penstock/engine/select_conformance.h"

namespace penstock::bench {

enum class Shape {
  plain,          // cpu and memory
  replica,        // of an owner: the system's default spreading over zones and nodes
  zone_spread,    // at most one more in a zone than in any other
  host_anti,      // never two on a node
  zone_affinity,  // where one of its kind is in the zone
  preferred,      // rather where one of its kind is in the zone
};

// About a fifth of cpu and memory is in use; one node in 20 is cordoned, one in 10 has a taint that
// tasks would rather avoid.
HostTable make_cluster(std::uint32_t nodes);
penstock_program default_program(const penstock_node_table& header);
// `kind` tells classes apart: the request, and for shapes with counts which of them are raised
// (0..31).
penstock_task make_task(const penstock_node_table& header, Shape shape, std::uint32_t kind);
// Bytes that a scan for the task reads, without what a cache line holds beyond it.
std::uint64_t scanned_bytes(const penstock_node_table& header, const penstock_task& task);

}  // namespace penstock::bench
#endif
