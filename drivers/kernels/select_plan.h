// From a checked SELECT to launches of its kernels. Knows nothing of any device's interface.
#ifndef PENSTOCK_DRIVERS_KERNELS_SELECT_PLAN_H_
#define PENSTOCK_DRIVERS_KERNELS_SELECT_PLAN_H_

#include <cstddef>
#include <vector>

#include "penstock/drivers/kernels/select_types.h"
#include "penstock/drivers/kernels/table_launch.h"
#include "penstock/engine/device_engine.h"

namespace penstock::kernels {

// A batch of at most 2^20 tasks. What the arguments point to has to stay as long as the plan.
class SelectPlan {
 public:
  // no_space if there is no memory for the plan.
  static Result<SelectPlan> make(const SelectArguments& arguments, const TableLimits& limits);

  // What the kernels read besides the table, and what they need to write besides it and the
  // results; both aligned to 64 bytes, the second with any content.
  std::uint64_t input_bytes() const { return input_bytes_; }
  void write_inputs(std::byte* to) const;
  std::uint64_t scratch_bytes() const { return scratch_bytes_; }

  // In order, each with select_arguments in which `first` and `n` are the launch's.
  const std::vector<TableLaunch>& launches() const { return launches_; }

 private:
  explicit SelectPlan(const SelectArguments& arguments) : arguments_(arguments) {}
  void divide_rows(const TableLimits& limits);
  void lay_out();
  void list_launches(const TableLimits& limits);

  SelectArguments arguments_;
  select_batch batch_ = {};
  std::vector<select_step> steps_;
  std::vector<TableLaunch> launches_;
  std::uint64_t input_bytes_ = 0;
  std::uint64_t scratch_bytes_ = 0;
  bool spreads_ = false;  // some step has SELECT_STEP_SPREAD
};

// What is left to do for a task: the part of the plan that depends on it.
select_step make_select_step(const penstock_program& program, const penstock_task& task);

// What the kernels can do, for an engine's capabilities: everything, or without float64 what needs
// none.
SelectCapabilities select_capabilities(bool has_f64);

}  // namespace penstock::kernels
#endif
