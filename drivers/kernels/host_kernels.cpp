#include "penstock/drivers/kernels/host_kernels.h"

#include <bit>

#include "penstock/base/status.h"
#include "penstock/drivers/kernels/kernels.h"
#include "penstock/drivers/kernels/select.h"
#include "penstock/drivers/kernels/update.h"

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
#define PHASES(name)      \
  {                       \
#name, { name, true } \
  }
#define PENSTOCK_REDUCE(type) PLAIN(penstock_reduce_##type)
#define PENSTOCK_CONVERT(type) PLAIN(penstock_convert_##type), PLAIN(penstock_outer_step_##type)
constexpr NamedKernel kKernels[] = {
    PLAIN(penstock_copy),           PENSTOCK_REDUCE(int8),          PENSTOCK_REDUCE(uint8),
    PENSTOCK_REDUCE(int32),         PENSTOCK_REDUCE(uint32),        PENSTOCK_REDUCE(int64),
    PENSTOCK_REDUCE(uint64),        PENSTOCK_REDUCE(f16),           PENSTOCK_REDUCE(f32),
    PENSTOCK_REDUCE(f64),           PENSTOCK_REDUCE(bf16),          PENSTOCK_REDUCE(f8e4m3),
    PENSTOCK_REDUCE(f8e5m2),        PENSTOCK_CONVERT(f16),          PENSTOCK_CONVERT(f32),
    PENSTOCK_CONVERT(bf16),         PENSTOCK_CONVERT(f8e4m3),       PENSTOCK_CONVERT(f8e5m2),
    PENSTOCK_CONVERT(block),        PHASES(penstock_select_clear),  PHASES(penstock_select_begin),
    PHASES(penstock_select_scan),   PHASES(penstock_select_spread), PHASES(penstock_select_rank),
    PHASES(penstock_select_finish), PHASES(penstock_select_batch),  PLAIN(penstock_update_apply),
    PHASES(penstock_update_undo),
};

}  // namespace

const HostKernel* find_host_kernel(std::string_view name) {
  for (const NamedKernel& named : kKernels)
    if (named.name == name) return &named.kernel;
  return nullptr;
}

void run_on_host(const HostKernel& kernel, void* const* parameters, u32 groups, u32 lanes,
                 bool backwards) {
  PENSTOCK_CHECK(!backwards || std::has_single_bit(lanes), "{} lanes, backwards", lanes);
  const position before = here;
  for (u32 turn = 0; turn < groups; ++turn) {
    const u32 calls = kernel.whole_group ? 1 : lanes;
    for (u32 call = 0; call < calls; ++call) {
      here = {backwards ? groups - 1 - turn : turn, groups, backwards ? calls - 1 - call : call,
              lanes, backwards ? lanes - 1 : 0};
      kernel.function(parameters);
    }
  }
  here = before;
}

}  // namespace penstock::kernels
