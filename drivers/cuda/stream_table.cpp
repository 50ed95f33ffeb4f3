// SELECT and UPDATE on a stream. A table works best in the device's own memory: a batch of more
// than a few tasks reads it there, in a copy that is made once, and what the batch may have changed
// is copied back after it. So is a table that the device does not reach at all.
#include <algorithm>
#include <cstddef>
#include <utility>

#include "penstock/drivers/cuda/stream.h"
#include "penstock/drivers/kernels/select_plan.h"
#include "penstock/drivers/kernels/update_plan.h"

namespace penstock::cuda {
namespace {

// A batch of fewer tasks reads less of a table that lies in the host's memory than a copy would.
constexpr std::uint64_t kTasksWorthACopy = 4;

}  // namespace

kernels::TableLimits Kernels::table_limits() const {
  // Two groups on each multiprocessor; one group does small tables in less than three launches
  // take.
  return {kLanes, std::max(most_groups_ / 4, 1u), 2048};
}

Status Stream::copy_bytes(CUdeviceptr to, CUdeviceptr from, std::uint64_t bytes) {
  return driver_.check(driver_.cuMemcpyAsync(to, from, bytes, stream_),
                       fmt::format("cuMemcpyAsync of {} bytes", bytes));
}

// Where kernels find the table and what else they need; `inputs` is pinned and waits for the
// plan's.
Result<Stream::TablePlaces> Stream::place_table(std::byte* table, std::uint64_t bytes, bool copy,
                                                std::uint64_t input_bytes,
                                                std::uint64_t scratch_bytes,
                                                std::uint64_t result_bytes) {
  TablePlaces places;
  PENSTOCK_ASSIGN(places.table, reach_.find(table, bytes));
  int ordinal = 0;
  places.copied = places.table.staged || (copy && !is_device_memory(driver_, table, &ordinal));
  PENSTOCK_ASSIGN(places.inputs, table_memory_->pinned(input_bytes));
  PENSTOCK_ASSIGN(places.device_inputs, table_memory_->device(TableMemory::kInputs, input_bytes));
  PENSTOCK_ASSIGN(places.scratch, table_memory_->device(TableMemory::kScratch, scratch_bytes));
  PENSTOCK_ASSIGN(places.results, table_memory_->device(TableMemory::kResults, result_bytes));
  places.device_table = places.table.address;
  if (places.copied) {
    PENSTOCK_ASSIGN(places.device_table, table_memory_->device(TableMemory::kTable, bytes));
  }
  if (places.table.staged) {
    PENSTOCK_ASSIGN(places.bounce, table_memory_->pinned(bytes));
  }
  return places;
}

// From here on a failure is the stream's.
Status Stream::send_table(const TablePlaces& places, const std::byte* table, std::uint64_t bytes,
                          std::uint64_t input_bytes) {
  PENSTOCK_TRY(launcher_->flush());
  if (places.table.staged) {
    PENSTOCK_TRY(table_memory_->copy_on_host({{places.bounce.data, table, bytes}}));
    PENSTOCK_TRY(copy_bytes(places.device_table, places.bounce.device, bytes));
  } else if (places.copied) {
    PENSTOCK_TRY(copy_bytes(places.device_table, places.table.address, bytes));
  }
  return copy_bytes(places.device_inputs, places.inputs.device, input_bytes);
}

// Brings [begin, end) of the table back.
Status Stream::return_table(const TablePlaces& places, std::byte* table, std::uint64_t begin,
                            std::uint64_t end) {
  if (!places.copied || begin == end) return {};
  const CUdeviceptr from = places.device_table + begin;
  if (!places.table.staged) return copy_bytes(places.table.address + begin, from, end - begin);
  PENSTOCK_TRY(copy_bytes(places.bounce.device + begin, from, end - begin));
  return table_memory_->copy_on_host({{table + begin, places.bounce.data + begin, end - begin}});
}

Status Stream::select(const SelectArguments& a) {
  PENSTOCK_TRY(lost_);
  const Current current(driver_, device_.context()->handle());
  PENSTOCK_ASSIGN(const kernels::SelectPlan plan,
                  kernels::SelectPlan::make(a, device_.kernels().table_limits()));
  const std::uint64_t result_bytes = a.n * sizeof(penstock_result);
  PENSTOCK_ASSIGN(const Place results, reach_.find(a.results, result_bytes));
  PENSTOCK_ASSIGN(const TablePlaces places,
                  place_table(a.table, a.view.header->bytes, a.n >= kTasksWorthACopy,
                              plan.input_bytes(), plan.scratch_bytes(), result_bytes));
  TableMemory::Block bounce;
  if (results.staged) {
    PENSTOCK_ASSIGN(bounce, table_memory_->pinned(result_bytes));
  }
  plan.write_inputs(places.inputs.data);
  return note(select_now(a, plan, places, results, bounce));
}

Status Stream::select_now(const SelectArguments& a, const kernels::SelectPlan& plan,
                          const TablePlaces& places, const Place& results,
                          const TableMemory::Block& bounce) {
  const penstock_node_table& header = *a.view.header;
  const std::uint64_t result_bytes = a.n * sizeof(penstock_result);
  PENSTOCK_TRY(send_table(places, a.table, header.bytes, plan.input_bytes()));
  for (const kernels::TableLaunch& one : plan.launches())
    PENSTOCK_TRY(
        launch(one.kernel, one.groups, one.lanes,
               kernels::select_arguments{places.device_table, places.device_inputs, places.scratch,
                                         places.results, one.first, one.n}));
  PENSTOCK_TRY(launcher_->flush());
  if (results.staged) {
    PENSTOCK_TRY(copy_bytes(bounce.device, places.results, result_bytes));
    PENSTOCK_TRY(table_memory_->copy_on_host({{a.results, bounce.data, result_bytes}}));
  } else {
    PENSTOCK_TRY(copy_bytes(results.address, places.results, result_bytes));
  }
  if (!a.commit) return {};
  PENSTOCK_TRY(return_table(places, a.table, header.requested, header.domain));
  return return_table(places, a.table, header.count, header.logs);
}

Status Stream::update(const UpdateArguments& a) {
  PENSTOCK_TRY(lost_);
  const Current current(driver_, device_.context()->handle());
  PENSTOCK_ASSIGN(const kernels::UpdatePlan plan,
                  kernels::UpdatePlan::make(a, device_.kernels().table_limits()));
  if (plan.empty()) {
    *a.status = PENSTOCK_OK;
    *a.bad_index = 0;
    return {};
  }
  PENSTOCK_ASSIGN(const TablePlaces places,
                  place_table(a.table, a.view.header->bytes, false, plan.input_bytes(),
                              plan.scratch_bytes(), sizeof(kernels::update_result)));
  PENSTOCK_ASSIGN(const TableMemory::Block bounce,
                  table_memory_->pinned(sizeof(kernels::update_result)));
  plan.write_inputs(places.inputs.data);
  return note(update_now(a, plan, places, bounce));
}

Status Stream::update_now(const UpdateArguments& a, const kernels::UpdatePlan& plan,
                          const TablePlaces& places, const TableMemory::Block& bounce) {
  const penstock_node_table& header = *a.view.header;
  PENSTOCK_TRY(send_table(places, a.table, header.bytes, plan.input_bytes()));
  for (const kernels::TableLaunch& one : plan.launches())
    PENSTOCK_TRY(launch(one.kernel, one.groups, one.lanes,
                        kernels::update_arguments{places.device_table, places.device_inputs,
                                                  places.scratch, places.results}));
  PENSTOCK_TRY(launcher_->flush());
  PENSTOCK_TRY(return_table(places, a.table, header.allocatable, header.logs));
  PENSTOCK_TRY(copy_bytes(bounce.device, places.results, sizeof(kernels::update_result)));
  return table_memory_->copy_on_host(
      {{a.status, bounce.data + offsetof(kernels::update_result, status), sizeof(*a.status)},
       {a.bad_index, bounce.data + offsetof(kernels::update_result, bad_index),
        sizeof(*a.bad_index)}});
}

}  // namespace penstock::cuda
