// The plugin that brings the engine `card` with the buses that were built: to simulated cards, and
// to those that are plugged in.
#include "penstock/base/log.h"
#include "penstock/drivers/card/card_engine.h"
#ifdef PENSTOCK_WITH_SYSTEMC
#include "penstock/sim/plugin/systemc_bus.h"
#endif
#ifdef PENSTOCK_WITH_VERILATOR
#include "penstock/sim/plugin/verilator_bus.h"
#endif
#ifdef PENSTOCK_WITH_XRT
#include "penstock/drivers/xrt/xrt_bus.h"
#endif

PENSTOCK_ENGINE_PLUGIN(register_engine) {
  const auto add = [](penstock::card::BusFactory factory) {
    if (const penstock::Status added = penstock::card::register_bus(std::move(factory));
        !added.ok())
      penstock::log::warn("{}", added.message());
  };
  static_cast<void>(add);
#ifdef PENSTOCK_WITH_SYSTEMC
  add(penstock::sim::systemc_bus_factory());
#endif
#ifdef PENSTOCK_WITH_VERILATOR
  add(penstock::sim::verilator_bus_factory());
#endif
#ifdef PENSTOCK_WITH_XRT
  add(penstock::card::xrt_bus_factory());
#endif
  if (const penstock::Status added = register_engine(penstock::card::card_engine_factory());
      !added.ok())
    penstock::log::warn("{}", added.message());
}
