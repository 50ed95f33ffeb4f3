/* The dialect that a translation unit chose by including it, or the host's. */
#ifndef PENSTOCK_DRIVERS_KERNELS_DIALECT_H_
#define PENSTOCK_DRIVERS_KERNELS_DIALECT_H_

#if !defined(PENSTOCK_DIALECT_CUDA) && !defined(PENSTOCK_DIALECT_OPENCL)
#include "penstock/drivers/kernels/dialect_host.h"
#endif

#define PENSTOCK_ITEM ((u64)PENSTOCK_GROUP * PENSTOCK_LANES + PENSTOCK_LANE)
#define PENSTOCK_ITEMS ((u64)PENSTOCK_GROUPS * PENSTOCK_LANES)

#endif
