// A queue's stream on the device: kernels in order, with copies of what the device does not reach
// beside them.
#ifndef PENSTOCK_DRIVERS_CUDA_STREAM_H_
#define PENSTOCK_DRIVERS_CUDA_STREAM_H_

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "penstock/drivers/cuda/device.h"
#include "penstock/drivers/cuda/launcher.h"
#include "penstock/drivers/cuda/staging.h"
#include "penstock/drivers/cuda/table_memory.h"

namespace penstock::kernels {
class SelectPlan;
class UpdatePlan;
}  // namespace penstock::kernels

namespace penstock::cuda {

class Stream final : public DeviceStream {
 public:
  Stream(const CudaDevice& device, CUstream stream, Pool* pool)
      : device_(device),
        driver_(device.context()->driver()),
        stream_(stream),
        reach_(device.context(), pool, device.options().staged),
        launcher_(std::in_place, driver_, stream, device.options().graphs),
        staging_(std::in_place, driver_, stream),
        table_memory_(std::in_place, driver_, stream) {}
  ~Stream() override;

  Status copy(void* const* dst, std::uint32_t n_dst, const void* src, std::uint64_t bytes) override;
  Status reduce(const ReduceArguments& arguments) override;
  Status outer_step(const OuterStepArguments& arguments) override;
  Status select(const SelectArguments& arguments) override;
  Status update(const UpdateArguments& arguments) override;
  Result<std::uint64_t> mark() override;
  Result<bool> reached(std::uint64_t mark) override;

 private:
  struct Mark {
    std::uint64_t number;
    CUevent event;
  };

  Status add(std::vector<Operand>* operands, const void* data, std::uint32_t type,
             std::uint32_t block, std::uint64_t count, bool read, bool written) const;
  // Runs `work` over the whole of the operands, or chunk by chunk where one has to be staged.
  Status run(const std::vector<Operand>& operands, std::uint64_t count, const ChunkWork& work);
  // Adds a launch of the kernel with these arguments; it goes to the device with the next flush.
  template <typename... Arguments>
  Status launch(const std::string& kernel, std::uint32_t groups, std::uint32_t lanes,
                const Arguments&... arguments);
  Status launch_copy(const std::uint64_t* at, std::uint32_t n_dst, std::uint64_t bytes);
  Status note(Status status);

  // stream_table.cpp
  struct TablePlaces {
    Place table;
    bool copied = false;  // kernels work on a copy in the device's memory
    CUdeviceptr device_table = 0, device_inputs = 0, scratch = 0, results = 0;
    TableMemory::Block inputs, bounce;  // the second of a table that is staged
  };
  Status copy_bytes(CUdeviceptr to, CUdeviceptr from, std::uint64_t bytes);
  Result<TablePlaces> place_table(std::byte* table, std::uint64_t bytes, bool copy,
                                  std::uint64_t input_bytes, std::uint64_t scratch_bytes,
                                  std::uint64_t result_bytes);
  Status send_table(const TablePlaces& places, const std::byte* table, std::uint64_t bytes,
                    std::uint64_t input_bytes);
  Status return_table(const TablePlaces& places, std::byte* table, std::uint64_t begin,
                      std::uint64_t end);
  Status select_now(const SelectArguments& arguments, const kernels::SelectPlan& plan,
                    const TablePlaces& places, const Place& results,
                    const TableMemory::Block& bounce);
  Status update_now(const UpdateArguments& arguments, const kernels::UpdatePlan& plan,
                    const TablePlaces& places, const TableMemory::Block& bounce);

  const CudaDevice& device_;
  const Driver& driver_;
  const CUstream stream_;
  const Reach reach_;
  std::optional<Launcher> launcher_;
  std::optional<Staging> staging_;
  std::optional<TableMemory> table_memory_;
  Status lost_;
  std::uint64_t marks_ = 0;
  std::deque<Mark> waiting_;  // oldest first
  std::vector<CUevent> events_;
};

template <typename... Arguments>
Status Stream::launch(const std::string& kernel, std::uint32_t groups, std::uint32_t lanes,
                      const Arguments&... arguments) {
  PENSTOCK_ASSIGN(const CUfunction function, device_.kernels().find(kernel));
  Launch launch(function, groups, lanes);
  (launch.add(arguments), ...);
  launcher_->add(std::move(launch));
  return {};
}

}  // namespace penstock::cuda
#endif
