// From checked arguments of an operation to those of a kernel: what every driver of these kernels
// needs. Pure, thread-safe.
#ifndef PENSTOCK_DRIVERS_KERNELS_LAUNCH_H_
#define PENSTOCK_DRIVERS_KERNELS_LAUNCH_H_

#include <string>

#include "penstock/drivers/kernels/arguments.h"
#include "penstock/engine/host_engine.h"

namespace penstock::kernels {

// Addresses are what the dialect's penstock_at() takes; their last four bits have to be those of
// the memory behind them. A pointer is one where the device shares the process's addresses.
inline u64 address_of(const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer); }

copy_arguments copy_launch(u64 src, const u64* dst, u32 n_dst, u64 bytes);

// The kernel's name. An operation that copies() has none: it is a copy of bytes().
std::string reduce_kernel(const ReduceArguments& arguments);
// Fills `weights` where the operation has some, and leaves it alone where not. src has n_src
// addresses, dst n_dst.
reduce_arguments reduce_launch(const ReduceArguments& arguments, const u64* src, const u64* dst,
                               reduce_weights* weights);

std::string outer_step_kernel(const OuterStepArguments& arguments);
outer_step_arguments outer_step_launch(const OuterStepArguments& arguments, const u64* src,
                                       u64 momentum, u64 parameters);

// So many work items have something to do; a launch of fewer does all of it, each in turn.
u64 work_items(const copy_arguments& arguments);
u64 work_items(const reduce_arguments& arguments, const std::string& kernel);
u64 work_items(const outer_step_arguments& arguments);

}  // namespace penstock::kernels
#endif
