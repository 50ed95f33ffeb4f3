// The kernels as functions of this process, for tests and for devices that are imitated.
#ifndef PENSTOCK_DRIVERS_KERNELS_HOST_KERNELS_H_
#define PENSTOCK_DRIVERS_KERNELS_HOST_KERNELS_H_

#include <string_view>

#include "penstock/drivers/kernels/arguments.h"

namespace penstock::kernels {

// Gets pointers to its arguments, one after another, as cuLaunchKernel does.
struct HostKernel {
  void (*function)(void* const* parameters);
  bool whole_group;  // one call runs all work items of a group, phase by phase
};
// Null if there is no kernel of that name.
const HostKernel* find_host_kernel(std::string_view name);

// Runs all work items in the calling thread, group after group; or the last first, and so in each
// phase, where the number of lanes has to be a power of 2: what depends on the order is a race.
// Thread-safe.
void run_on_host(const HostKernel& kernel, void* const* parameters, u32 groups, u32 lanes,
                 bool backwards = false);

}  // namespace penstock::kernels
#endif
