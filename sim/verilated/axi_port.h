// Binds the AXI signals of a Verilated model (or of any struct that holds them) to an AxiPort:
//   const AxiPort port = PENSTOCK_AXI_PORT(*dut, m_axi);
// for members m_axi_awvalid, m_axi_awready and so on, with IDs of up to 8 bits. The model stays
// where it is as long as the port is used. Without one direction: PENSTOCK_AXI_READ_PORT and
// PENSTOCK_AXI_WRITE_PORT.
#ifndef PENSTOCK_SIM_VERILATED_AXI_PORT_H_
#define PENSTOCK_SIM_VERILATED_AXI_PORT_H_

#include "penstock/sim/verilated/axi_memory.h"

#define PENSTOCK_AXI_WRITE_SIGNALS(model, prefix)                             \
  .awvalid = &(model).prefix##_awvalid, .awready = &(model).prefix##_awready, \
  .awaddr = &(model).prefix##_awaddr, .awid = &(model).prefix##_awid,         \
  .awlen = &(model).prefix##_awlen, .wvalid = &(model).prefix##_wvalid,       \
  .wready = &(model).prefix##_wready, .wdata = (model).prefix##_wdata.data(), \
  .wstrb = &(model).prefix##_wstrb, .wlast = &(model).prefix##_wlast,         \
  .bvalid = &(model).prefix##_bvalid, .bready = &(model).prefix##_bready,     \
  .bid = &(model).prefix##_bid, .bresp = &(model).prefix##_bresp
#define PENSTOCK_AXI_READ_SIGNALS(model, prefix)                              \
  .arvalid = &(model).prefix##_arvalid, .arready = &(model).prefix##_arready, \
  .araddr = &(model).prefix##_araddr, .arid = &(model).prefix##_arid,         \
  .arlen = &(model).prefix##_arlen, .rvalid = &(model).prefix##_rvalid,       \
  .rready = &(model).prefix##_rready, .rdata = (model).prefix##_rdata.data(), \
  .rid = &(model).prefix##_rid, .rresp = &(model).prefix##_rresp, .rlast = &(model).prefix##_rlast
#define PENSTOCK_AXI_NO_WRITE_SIGNALS                                                           \
  .awvalid = nullptr, .awready = nullptr, .awaddr = nullptr, .awid = nullptr, .awlen = nullptr, \
  .wvalid = nullptr, .wready = nullptr, .wdata = nullptr, .wstrb = nullptr, .wlast = nullptr,   \
  .bvalid = nullptr, .bready = nullptr, .bid = nullptr, .bresp = nullptr
#define PENSTOCK_AXI_NO_READ_SIGNALS                                                            \
  .arvalid = nullptr, .arready = nullptr, .araddr = nullptr, .arid = nullptr, .arlen = nullptr, \
  .rvalid = nullptr, .rready = nullptr, .rdata = nullptr, .rid = nullptr, .rresp = nullptr,     \
  .rlast = nullptr

#define PENSTOCK_AXI_PORT(model, prefix)                                                \
  ::penstock::sim::AxiPort {                                                            \
    PENSTOCK_AXI_WRITE_SIGNALS(model, prefix), PENSTOCK_AXI_READ_SIGNALS(model, prefix) \
  }
#define PENSTOCK_AXI_READ_PORT(model, prefix)                               \
  ::penstock::sim::AxiPort {                                                \
    PENSTOCK_AXI_NO_WRITE_SIGNALS, PENSTOCK_AXI_READ_SIGNALS(model, prefix) \
  }
#define PENSTOCK_AXI_WRITE_PORT(model, prefix)                              \
  ::penstock::sim::AxiPort {                                                \
    PENSTOCK_AXI_WRITE_SIGNALS(model, prefix), PENSTOCK_AXI_NO_READ_SIGNALS \
  }

#endif
