// SELECT and UPDATE on a stream. A table that the device reaches stays where it is. Any other is
// copied to the device before an operation, and what the operation may have changed copied back
// after it.
#include <algorithm>
#include <utility>

#include "penstock/drivers/kernels/select_plan.h"
#include "penstock/drivers/kernels/update_plan.h"
#include "penstock/drivers/opencl/error.h"
#include "penstock/drivers/opencl/stream.h"

namespace penstock::opencl {
namespace {

// A buffer of at least so many bytes; what it held is lost when it grows. What was started with the
// old one keeps it.
void grow(const cl::Context& context, std::uint64_t bytes, cl::Buffer* buffer,
          std::uint64_t* held) {
  bytes = std::max<std::uint64_t>(bytes, 64);
  if (bytes <= *held) return;
  *held = 0;
  *buffer = cl::Buffer(context, CL_MEM_READ_WRITE, bytes);
  *held = bytes;
}

}  // namespace

// An operation that changed a part of a table is not to be tried again.
Status Stream::start_table(bool changes, const std::function<void()>& function) {
  table_kernel_ran_ = false;
  const Status status = start(function);
  if (status.ok() || !changes || !table_kernel_ran_) return status;
  return error(Code::io_error, "{}; a part of the operation may stand in the table",
               status.message());
}

cl::Kernel& Stream::table_kernel(const cl::Program& program, const std::string& name) {
  const auto found = table_kernels_.find(name);
  if (found != table_kernels_.end()) return found->second;
  return table_kernels_.emplace(name, cl::Kernel(program, name.c_str())).first->second;
}

// The inputs stay until the device has taken them.
void Stream::write_inputs(std::vector<std::byte> inputs) {
  grow(core_->context, inputs.size(), &table_buffers_.inputs, &table_buffers_.input_bytes);
  HeldInputs& held = held_inputs_.emplace_back();
  held.bytes = std::move(inputs);
  queue_.enqueueWriteBuffer(table_buffers_.inputs, CL_FALSE, 0, held.bytes.size(),
                            held.bytes.data(), nullptr, &held.taken);
  began_ = true;
  last_kernel_ = held.taken;
}

// Forgets inputs that the device has taken, which it does in order, or was never asked to.
void Stream::release_inputs() {
  while (!held_inputs_.empty()) {
    const cl::Event& taken = held_inputs_.front().taken;
    if (taken() != nullptr && taken.getInfo<CL_EVENT_COMMAND_EXECUTION_STATUS>() > CL_COMPLETE)
      return;
    held_inputs_.pop_front();
  }
}

template <typename Arguments>
void Stream::launch_tables(const cl::Program& program, const Binding& binding,
                           const std::vector<kernels::TableLaunch>& launches,
                           const Arguments& arguments_of, std::vector<cl::Event> after) {
  std::vector<std::pair<const char*, cl::Kernel*>> bound;
  for (const kernels::TableLaunch& launch : launches) {
    auto known = std::find_if(bound.begin(), bound.end(),
                              [&](const auto& entry) { return entry.first == launch.kernel; });
    if (known == bound.end()) {
      cl::Kernel& kernel = table_kernel(program, launch.kernel);
      binding.set_arguments(kernel);
      known = bound.insert(bound.end(), {launch.kernel, &kernel});
    }
    const auto arguments = arguments_of(launch);
    known->second->setArg(kObjects, sizeof(arguments), &arguments);
    cl::Event event;
    queue_.enqueueNDRangeKernel(
        *known->second, cl::NullRange, cl::NDRange(std::size_t{launch.groups} * launch.lanes),
        cl::NDRange(launch.lanes), after.empty() ? nullptr : &after, &event);
    began_ = true;
    table_kernel_ran_ = true;
    last_kernel_ = event;
    after.clear();
  }
}

// Binds the table and the results, in place or as copies on the device. Its own buffers are objects
// 0 and 1.
Stream::TablePlaces Stream::place_table(std::byte* table, std::uint64_t table_bytes,
                                        std::byte* results, std::uint64_t result_bytes,
                                        Binding* binding) {
  TablePlaces places;
  places.inputs = Binding::address(binding->add(table_buffers_.inputs), 0);
  places.scratch = Binding::address(binding->add(table_buffers_.scratch), 0);
  std::vector<Extent> extents = {{table, table_bytes}};
  if (results != nullptr) extents.push_back({results, result_bytes});
  std::vector<std::uint64_t> at;
  const Binding own = *binding;
  if (binding->bind(core_->sharing, core_->context, segments_, extents, &at)) {
    places.table = at[0];
    if (results != nullptr) places.results = at[1];
    const cl::Event& out = staging_->last_out();
    if (out() != nullptr) places.after.push_back(out);
  } else {
    *binding = own;
    places.staged = true;
    grow(core_->context, table_bytes, &table_buffers_.table, &table_buffers_.table_bytes);
    places.table = Binding::address(binding->add(table_buffers_.table), 0);
    std::vector<cl::Event> before = before_staged();
    staging_->wait_for_out(table, table_bytes, &before);
    if (last_table_() != nullptr) before.push_back(last_table_);
    places.after.push_back(staging_->write(table_buffers_.table, 0, table, table_bytes, before));
  }
  if (places.staged || results == nullptr) {
    grow(core_->context, std::max<std::uint64_t>(result_bytes, 64), &table_buffers_.results,
         &table_buffers_.result_bytes);
    places.results = Binding::address(binding->add(table_buffers_.results), 0);
    // What is still read out of it.
    if (last_table_() != nullptr) places.after.push_back(last_table_);
  }
  return places;
}

// Takes [begin, end) of the table back from the device.
void Stream::take_back(std::byte* table, std::uint64_t begin, std::uint64_t end) {
  if (begin == end) return;
  last_table_ =
      staging_->read(table_buffers_.table, begin, table + begin, end - begin, {last_kernel_});
  staging_->goes_out(table + begin, end - begin);
}

Status Stream::select(const SelectArguments& arguments) {
  PENSTOCK_ASSIGN(const Tables tables, core_->tables->get());
  PENSTOCK_ASSIGN(const kernels::SelectPlan plan,
                  kernels::SelectPlan::make(arguments, tables.limits));
  return start_table(arguments.commit, [&] { select_now(arguments, tables.program, plan); });
}

void Stream::select_now(const SelectArguments& a, const cl::Program& program,
                        const kernels::SelectPlan& plan) {
  const penstock_node_table& header = *a.view.header;
  const std::uint64_t result_bytes = a.n * sizeof(penstock_result);
  release_inputs();
  std::vector<std::byte> inputs(plan.input_bytes());
  plan.write_inputs(inputs.data());
  write_inputs(std::move(inputs));
  grow(core_->context, plan.scratch_bytes(), &table_buffers_.scratch,
       &table_buffers_.scratch_bytes);
  Binding binding;
  const TablePlaces at = place_table(a.table, header.bytes, a.results, result_bytes, &binding);
  launch_tables(
      program, binding, plan.launches(),
      [&](const kernels::TableLaunch& launch) {
        return kernels::select_arguments{at.table,   at.inputs,    at.scratch,
                                         at.results, launch.first, launch.n};
      },
      at.after);
  if (!at.staged) {
    last_shared_ = last_kernel_;
    return;
  }
  last_table_ = staging_->read(table_buffers_.results, 0, a.results, result_bytes, {last_kernel_});
  staging_->goes_out(a.results, result_bytes);
  if (!a.commit) return;
  take_back(a.table, header.requested, header.domain);
  take_back(a.table, header.count, header.logs);
}

Status Stream::update(const UpdateArguments& arguments) {
  PENSTOCK_ASSIGN(const Tables tables, core_->tables->get());
  PENSTOCK_ASSIGN(const kernels::UpdatePlan plan,
                  kernels::UpdatePlan::make(arguments, tables.limits));
  if (plan.empty()) {
    *arguments.status = PENSTOCK_OK;
    *arguments.bad_index = 0;
    return {};
  }
  return start_table(true, [&] { update_now(arguments, tables.program, plan); });
}

void Stream::update_now(const UpdateArguments& a, const cl::Program& program,
                        const kernels::UpdatePlan& plan) {
  const penstock_node_table& header = *a.view.header;
  release_inputs();
  std::vector<std::byte> inputs(plan.input_bytes());
  plan.write_inputs(inputs.data());
  write_inputs(std::move(inputs));
  grow(core_->context, plan.scratch_bytes(), &table_buffers_.scratch,
       &table_buffers_.scratch_bytes);
  Binding binding;
  const TablePlaces at =
      place_table(a.table, header.bytes, nullptr, sizeof(kernels::update_result), &binding);
  launch_tables(
      program, binding, plan.launches(),
      [&](const kernels::TableLaunch&) {
        return kernels::update_arguments{at.table, at.inputs, at.scratch, at.results};
      },
      at.after);
  if (at.staged)
    take_back(a.table, header.allocatable, header.logs);
  else
    last_shared_ = last_kernel_;
  staging_->read(table_buffers_.results, offsetof(kernels::update_result, status), a.status,
                 sizeof(*a.status), {last_kernel_});
  last_table_ = staging_->read(table_buffers_.results, offsetof(kernels::update_result, bad_index),
                               a.bad_index, sizeof(*a.bad_index), {last_kernel_});
}

}  // namespace penstock::opencl
