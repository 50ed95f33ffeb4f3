// How the system gives pages: on which node, and how large. Linux.
#ifndef PENSTOCK_BASE_MEMORY_LINUX_H_
#define PENSTOCK_BASE_MEMORY_LINUX_H_

#include <string>
#include <vector>

#include "penstock/base/status.h"

namespace penstock {

// All are thread-safe.

// The NUMA nodes that have memory, ascending; {0} if the system does not tell.
std::vector<int> memory_nodes();
// Pages that this thread causes to be made come from that node, until it is called with -1.
// unsupported where there is one node only, invalid_argument for one that does not exist.
Status bind_memory(int node);

// Whether what is mapped from this path (which exists) can have huge pages: "hugetlbfs" when it has
// nothing else; for a tmpfs such as /dev/shm what its mount option `huge` says, "never", "advise",
// "within_size" or "always", unless the kernel forbids or forces it for all; else "never".
std::string huge_pages_of(const std::string& path);

// Mount points of file systems of a type, in the order of /proc/self/mountinfo.
std::vector<std::string> mount_points(const std::string& type);

// "0-2,8" as the kernel lists CPUs and nodes; what is no number ends it.
std::vector<int> parse_kernel_list(const std::string& text);

}  // namespace penstock
#endif
