// The bus `systemc`: a card of transactions (sim/systemc).
#ifndef PENSTOCK_SIM_PLUGIN_SYSTEMC_BUS_H_
#define PENSTOCK_SIM_PLUGIN_SYSTEMC_BUS_H_

#include "penstock/drivers/card/bus.h"

namespace penstock::sim {

// Options: seed, latency and write_latency (cycles), jitter (cycles at most that chance adds).
card::BusFactory systemc_bus_factory();

}  // namespace penstock::sim
#endif
