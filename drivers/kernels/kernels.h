/* All kernels, for a translation unit that has chosen its dialect. */
#ifndef PENSTOCK_DRIVERS_KERNELS_KERNELS_H_
#define PENSTOCK_DRIVERS_KERNELS_KERNELS_H_

#include "penstock/drivers/kernels/convert.h"
#include "penstock/drivers/kernels/copy.h"
#include "penstock/drivers/kernels/reduce.h"

#endif
