#include "penstock/drivers/kernels/host_kernels.h"

#include "penstock/base/status.h"
#include "penstock/drivers/kernels/kernels.h"

namespace penstock::kernels {

thread_local position here;

namespace {

struct NamedKernel {
  std::string_view name;
  HostKernel kernel;
};
#define PLAIN(name)        \
  {                        \
#name, { name, false } \
  }
#define PENSTOCK_REDUCE(type) PLAIN(penstock_reduce_##type)
#define PENSTOCK_CONVERT(type) PLAIN(penstock_convert_##type), PLAIN(penstock_outer_step_##type)
constexpr NamedKernel kKernels[] = {
    PLAIN(penstock_copy),    PENSTOCK_REDUCE(int8),    PENSTOCK_REDUCE(uint8),
    PENSTOCK_REDUCE(int32),  PENSTOCK_REDUCE(uint32),  PENSTOCK_REDUCE(int64),
    PENSTOCK_REDUCE(uint64), PENSTOCK_REDUCE(f16),     PENSTOCK_REDUCE(f32),
    PENSTOCK_REDUCE(f64),    PENSTOCK_REDUCE(bf16),    PENSTOCK_REDUCE(f8e4m3),
    PENSTOCK_REDUCE(f8e5m2), PENSTOCK_CONVERT(f16),    PENSTOCK_CONVERT(f32),
    PENSTOCK_CONVERT(bf16),  PENSTOCK_CONVERT(f8e4m3), PENSTOCK_CONVERT(f8e5m2),
    PENSTOCK_CONVERT(block),
};

}  // namespace

const HostKernel* find_host_kernel(std::string_view name) {
  for (const NamedKernel& named : kKernels)
    if (named.name == name) return &named.kernel;
  return nullptr;
}

void run_on_host(const HostKernel& kernel, void* const* parameters, u32 groups, u32 lanes) {
  const position before = here;
  for (u32 group = 0; group < groups; ++group) {
    here = {group, groups, 0, lanes};
    const u32 calls = kernel.whole_group ? 1 : lanes;
    for (; here.lane < calls; ++here.lane) kernel.function(parameters);
  }
  here = before;
}

}  // namespace penstock::kernels
