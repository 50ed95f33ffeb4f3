// The bus `verilator`: the card's RTL (sim/verilated).
#ifndef PENSTOCK_SIM_PLUGIN_VERILATOR_BUS_H_
#define PENSTOCK_SIM_PLUGIN_VERILATOR_BUS_H_

#include "penstock/drivers/card/bus.h"

namespace penstock::sim {

// Options:
//   seed=N             of all that happens by chance; 1
//   fixed              no chance in memory: always ready, one order, every latency the same
//   latency=N          cycles of a read, and write_latency=N of a write; 24
//   faults=N           one of N bursts of operands is answered with an error; 0: none
//   control_faults=N   one of N bursts of descriptors, completions and fences is
//   trace=FILE         waveforms (FST)
card::BusFactory verilator_bus_factory();

}  // namespace penstock::sim
#endif
