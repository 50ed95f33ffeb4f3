// The process half of the Linux platform; see Platform::self and Platform::liveness.
#ifndef PENSTOCK_BASE_PROCESS_LINUX_H_
#define PENSTOCK_BASE_PROCESS_LINUX_H_

#include "penstock/base/platform.h"

namespace penstock {

// Both are thread-safe.
ProcessIdentity this_process();
Liveness process_liveness(const ProcessIdentity& process);

}  // namespace penstock
#endif
