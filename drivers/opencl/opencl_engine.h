// The engine `opencl`.
#ifndef PENSTOCK_DRIVERS_OPENCL_OPENCL_ENGINE_H_
#define PENSTOCK_DRIVERS_OPENCL_OPENCL_ENGINE_H_

#include <memory>

#include "penstock/drivers/opencl/stream.h"

namespace penstock::opencl {

// Opens the device and compiles its kernels. Whether it shares the process's memory, as it may say,
// is tried; otherwise memory is staged. Errors name the device and, where OpenCL failed, its call.
Result<std::shared_ptr<const Core>> open_core(const Options& options);
std::shared_ptr<Engine> make_opencl_engine(std::shared_ptr<const Core> core);

// "opencl": make_engine("opencl:DEVICE;staged=1;cache=none").
EngineFactory opencl_engine_factory();

}  // namespace penstock::opencl
#endif
