// From a checked UPDATE to launches of its kernels. Knows nothing of any device's interface.
#ifndef PENSTOCK_DRIVERS_KERNELS_UPDATE_PLAN_H_
#define PENSTOCK_DRIVERS_KERNELS_UPDATE_PLAN_H_

#include <cstddef>
#include <vector>

#include "penstock/drivers/kernels/table_launch.h"
#include "penstock/drivers/kernels/update_types.h"
#include "penstock/engine/device_engine.h"

namespace penstock::kernels {

// The updates are read while the plan is made, and not again.
class UpdatePlan {
 public:
  // no_space if there is no memory for the plan.
  static Result<UpdatePlan> make(const UpdateArguments& arguments, const TableLimits& limits);

  // No update changes a cell (all are UPDATE_ROWS): nothing is to be launched, and all is well.
  bool empty() const { return changes_.empty(); }

  // As of SelectPlan. The result is one update_result.
  std::uint64_t input_bytes() const { return input_bytes_; }
  void write_inputs(std::byte* to) const;
  std::uint64_t scratch_bytes() const { return scratch_bytes_; }

  // In order, each with update_arguments; `first` and `n` mean nothing.
  const std::vector<TableLaunch>& launches() const { return launches_; }

 private:
  void sort(const std::vector<update_change>& changes);
  void lay_out(const TableLimits& limits);

  update_batch batch_ = {};
  std::vector<update_change> changes_;  // bucket after bucket
  std::vector<u32> begins_;
  std::vector<TableLaunch> launches_;
  std::uint64_t input_bytes_ = 0;
  std::uint64_t scratch_bytes_ = 0;
};

}  // namespace penstock::kernels
#endif
