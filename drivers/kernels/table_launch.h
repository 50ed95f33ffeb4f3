// How SELECT and UPDATE are launched.
#ifndef PENSTOCK_DRIVERS_KERNELS_TABLE_LAUNCH_H_
#define PENSTOCK_DRIVERS_KERNELS_TABLE_LAUNCH_H_

#include "penstock/drivers/kernels/dialect.h"

namespace penstock::kernels {

// What suits a device.
struct TableLimits {
  u32 lanes = 256;  // of a group: a power of 2, at most SELECT_MAX_LANES of the compiled kernels
  u32 groups = 1;   // that keep the device busy; at least 1
  // One group places the whole batch in one launch on a table of at most so many rows, because
  // launches would take longer than the rows.
  u32 one_group_rows = 0;
};

// One launch; each sees what those before it wrote.
struct TableLaunch {
  const char* kernel;
  u32 groups;
  u32 lanes;
  u32 first;
  u32 n;
};

}  // namespace penstock::kernels
#endif
