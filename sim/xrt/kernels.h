// The kernels that are C++ functions, run from the registers that XRT would write.
#ifndef PENSTOCK_SIM_XRT_KERNELS_H_
#define PENSTOCK_SIM_XRT_KERNELS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "penstock/sim/xrt/bank_memory.h"

namespace penstock::sim {

// `registers` from offset 0 on, of which those that are missing are 0. False if there is no such
// kernel here, or a register names memory that no buffer holds.
bool run_hls_kernel(const std::string& kernel, const std::vector<std::uint32_t>& registers,
                    BankMemory& memory);

}  // namespace penstock::sim
#endif
