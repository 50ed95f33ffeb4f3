// The bus `xrt`: the card as a kernel of an xclbin, on a device that XRT knows.
//
//   card:xrt;xclbin=FILE;device=0000:17:00.1
//
//   xclbin=FILE     what the device is programmed with; PENSTOCK_XCLBIN where it is not given
//   device=N        by number, or by its bus address (BDF); 0
//   ip=INSTANCE     of the kernel penstock_card; the first
//   memory=W        direct: the card works on the caller's memory in place; staged: on copies in
//   its
//                   own; auto: in place where that is possible; auto
//   staging=MIB     memory of its own for each queue, where it works on copies; 64
//   interrupts=W    auto, on or off: whether waiting is done by interrupt; auto
//
// drivers/xrt/README.md says what a platform needs for it.
#ifndef PENSTOCK_DRIVERS_XRT_XRT_BUS_H_
#define PENSTOCK_DRIVERS_XRT_XRT_BUS_H_

#include "penstock/drivers/card/bus.h"

namespace penstock::card {

BusFactory xrt_bus_factory();

}  // namespace penstock::card
#endif
