// Host ports (kube-scheduler's NodePorts, v1.34). Two ports conflict when protocol and number are
// the same and the addresses are, too, or one of them is 0.0.0.0.
//
// A port is up to two bit columns that commits set: "some address" and its own address (0.0.0.0
// being one). A port on 0.0.0.0 asks that nobody has it on some address; a port on an address asks
// that nobody has it on that one nor on 0.0.0.0.
#ifndef PENSTOCK_SCHED_PORTS_H_
#define PENSTOCK_SCHED_PORTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "penstock/sched/kubernetes.h"
#include "penstock/sched/node_table.h"

namespace penstock {

inline constexpr std::size_t kMaxTaskPorts = 4;  // what a task's set_bits hold

bool conflict(const HostPort& a, const HostPort& b);

// The columns that a pod with these ports sets, each once.
Result<std::vector<std::uint16_t>> port_columns(NodeTable* table,
                                                const std::vector<HostPort>& ports);
// The terms of group ports and the bits to set; unsupported beyond kMaxTaskPorts.
Status add_port_terms(NodeTable* table, const std::vector<HostPort>& ports, Task* task);

// "TCP 8080", with " on 10.0.0.1" unless it is 0.0.0.0.
std::string port_text(const HostPort& port);

}  // namespace penstock
#endif
