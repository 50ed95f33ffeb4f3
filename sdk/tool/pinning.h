// On which CPU each rank of a run goes.
#ifndef PENSTOCK_SDK_TOOL_PINNING_H_
#define PENSTOCK_SDK_TOOL_PINNING_H_

#include <cstddef>
#include <string>
#include <vector>

#include "penstock/base/status.h"

namespace penstock::tool {

struct Cpu {
  int number = 0;
  int package = 0;  // processor; 0 if the system does not tell
  int core = 0;     // within the package
  int node = 0;     // of memory
  bool operator==(const Cpu&) const = default;
};

// The CPUs that this process may run on, in order. `sysfs` is where the system describes them
// (/sys/devices/system).
std::vector<Cpu> allowed_cpus(const std::string& sysfs = "/sys/devices/system");

// One CPU of every core first, then the cores' second CPUs, and so on: ranks share a core only when
// there are more of them than cores.
std::vector<Cpu> cores_first(const std::vector<Cpu>& cpus);

// "cores" (cores_first), "cpus" (in order), or a list of numbers and ranges, "0,4-6", in its order;
// rank r goes to the r-th, and round again. invalid_argument names what is wrong and which CPUs
// there are.
Result<std::vector<Cpu>> choose_cpus(const std::string& text, const std::vector<Cpu>& allowed);

// Whether so many ranks, each on its CPU in turn, share none.
bool has_own_cpus(const std::vector<Cpu>& cpus, std::size_t ranks);

// "0-3,8": ascending numbers with ranges; the form in which Linux lists CPUs and nodes.
std::string list_text(const std::vector<int>& numbers);

}  // namespace penstock::tool
#endif
