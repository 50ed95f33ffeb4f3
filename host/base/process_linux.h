// The process half of the Linux platform; see Platform::self and Platform::liveness.
#ifndef PENSTOCK_BASE_PROCESS_LINUX_H_
#define PENSTOCK_BASE_PROCESS_LINUX_H_

#include "penstock/base/platform.h"

namespace penstock {

// All are thread-safe.
ProcessIdentity this_process();
std::uint64_t this_process_generation();
Liveness process_liveness(const ProcessIdentity& process);
char state_of_process(const ProcessIdentity& process);  // see Platform::process_state

}  // namespace penstock
#endif
