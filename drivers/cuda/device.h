// The engine `cuda`: an NVIDIA GPU behind the driver's API.
#ifndef PENSTOCK_DRIVERS_CUDA_DEVICE_H_
#define PENSTOCK_DRIVERS_CUDA_DEVICE_H_

#include <memory>
#include <string>
#include <unordered_map>

#include "penstock/drivers/cuda/memory.h"
#include "penstock/drivers/kernels/table_launch.h"
#include "penstock/engine/device_engine.h"
#include "penstock/engine/device_memory.h"

namespace penstock::cuda {

// What stands after "cuda:": a device's number, then options after ';'.
struct Options {
  int ordinal = 0;
  std::string driver;   // driver=FILE: the library to load as the driver
  bool staged = false;  // staged=1: no memory is registered; all of it goes through pinned buffers
  bool graphs = true;   // graphs=0: never
  // invalid_argument names what is wrong and the options that there are.
  static Result<Options> parse(const std::string& text);
};

// The kernels on one device.
class Kernels {
 public:
  static Result<std::unique_ptr<const Kernels>> load(std::shared_ptr<const Context> context);
  ~Kernels();
  Kernels(const Kernels&) = delete;
  Kernels& operator=(const Kernels&) = delete;
  // internal if there is none of that name.
  Result<CUfunction> find(const std::string& name) const;
  // Groups of a launch of so many work items: enough to fill the device, and no more than there is
  // work for.
  std::uint32_t groups(std::uint64_t items) const;
  static constexpr std::uint32_t kLanes = 256;
  // What suits SELECT and UPDATE.
  kernels::TableLimits table_limits() const;

 private:
  Kernels(std::shared_ptr<const Context> context, CUmodule module);
  const std::shared_ptr<const Context> context_;
  const CUmodule module_;
  std::uint32_t most_groups_;
  std::unordered_map<std::string, CUfunction> functions_;
};

class CudaDevice final : public Device {
 public:
  static Result<std::shared_ptr<CudaDevice>> open(const Options& options);

  Result<std::unique_ptr<DeviceStream>> open(Queue& queue) override;
  bool host_reads(const void* data, std::uint64_t bytes) const override;
  bool reaches_device_memory(const void* data) const override;

  const std::shared_ptr<const Context>& context() const { return context_; }
  const Kernels& kernels() const { return *kernels_; }
  const Options& options() const { return options_; }
  Capabilities capabilities() const;

 private:
  CudaDevice(Options options, std::shared_ptr<const Context> context,
             std::unique_ptr<const Kernels> kernels)
      : options_(std::move(options)), context_(std::move(context)), kernels_(std::move(kernels)) {}
  const Options options_;
  const std::shared_ptr<const Context> context_;
  const std::unique_ptr<const Kernels> kernels_;
};

// Keeps `device` until it goes.
Result<std::unique_ptr<DeviceStream>> make_stream(const CudaDevice& device, Pool* pool);

EngineFactory cuda_engine_factory();

// Device memory of the process, if anything in it has loaded the driver; else null.
std::shared_ptr<DeviceMemory> find_cuda_memory();

}  // namespace penstock::cuda
#endif
