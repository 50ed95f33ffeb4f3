// Runs the plans of SELECT and UPDATE with the kernels' host dialect.
#ifndef PENSTOCK_DRIVERS_KERNELS_TABLE_KERNELS_TEST_H_
#define PENSTOCK_DRIVERS_KERNELS_TABLE_KERNELS_TEST_H_

#include <cstdint>
#include <cstring>
#include <vector>

#include "penstock/base/status.h"
#include "penstock/drivers/kernels/host_kernels.h"
#include "penstock/drivers/kernels/select_plan.h"
#include "penstock/drivers/kernels/update_plan.h"

namespace penstock::kernels {

// Memory on a cache line, filled with what no kernel may take for anything.
class TestMemory {
 public:
  explicit TestMemory(std::uint64_t bytes) : lines_(bytes / sizeof(Line) + 1) {
    std::memset(static_cast<void*>(lines_.data()), 0xa5, lines_.size() * sizeof(Line));
  }
  std::byte* data() { return reinterpret_cast<std::byte*>(lines_.data()); }
  u64 address() { return reinterpret_cast<std::uintptr_t>(lines_.data()); }

 private:
  struct alignas(64) Line {
    unsigned char bytes[64];
  };
  std::vector<Line> lines_;
};

// How a plan is run: groups and lanes that a device would have run at the same time go in the order
// of their numbers, or (backwards) against it. What depends on that order is a race.
struct TestShape {
  TableLimits limits;
  bool backwards = false;
};

inline void launch_on_host(const TableLaunch& launch, const TestShape& shape, void* arguments) {
  const HostKernel* kernel = find_host_kernel(launch.kernel);
  PENSTOCK_CHECK(kernel != nullptr, "no kernel {}", launch.kernel);
  void* parameters[] = {arguments};
  run_on_host(*kernel, parameters, launch.groups, launch.lanes, shape.backwards);
}

inline void select_on_host(const SelectArguments& arguments, const TestShape& shape) {
  const Result<SelectPlan> plan = SelectPlan::make(arguments, shape.limits);
  PENSTOCK_CHECK(plan.ok(), "{}", plan.status().message());
  TestMemory inputs(plan.value().input_bytes());
  TestMemory scratch(plan.value().scratch_bytes());
  plan.value().write_inputs(inputs.data());
  for (const TableLaunch& launch : plan.value().launches()) {
    select_arguments given = {
        reinterpret_cast<std::uintptr_t>(arguments.table),   inputs.address(), scratch.address(),
        reinterpret_cast<std::uintptr_t>(arguments.results), launch.first,     launch.n};
    launch_on_host(launch, shape, &given);
  }
}

inline void update_on_host(const UpdateArguments& arguments, const TestShape& shape) {
  const Result<UpdatePlan> plan = UpdatePlan::make(arguments, shape.limits);
  PENSTOCK_CHECK(plan.ok(), "{}", plan.status().message());
  TestMemory inputs(plan.value().input_bytes());
  TestMemory scratch(plan.value().scratch_bytes());
  plan.value().write_inputs(inputs.data());
  update_result result = {SELECT_OK, 0, 0};
  update_arguments given = {reinterpret_cast<std::uintptr_t>(arguments.table), inputs.address(),
                            scratch.address(), reinterpret_cast<std::uintptr_t>(&result)};
  for (const TableLaunch& launch : plan.value().launches()) launch_on_host(launch, shape, &given);
  *arguments.status = result.status;
  *arguments.bad_index = result.bad_index;
}

}  // namespace penstock::kernels
#endif
