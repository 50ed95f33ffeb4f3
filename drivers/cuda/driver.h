// The CUDA driver as a table of functions that is filled when it is needed: nothing is linked, and
// a machine without a driver says so. Without global state but the table itself.
#ifndef PENSTOCK_DRIVERS_CUDA_DRIVER_H_
#define PENSTOCK_DRIVERS_CUDA_DRIVER_H_

#include <cuda.h>

#include <cstdint>
#include <string>

#include "penstock/base/status.h"

namespace penstock::cuda {

#define PENSTOCK_CUDA_FUNCTIONS(F)  \
  F(cuInit)                         \
  F(cuDriverGetVersion)             \
  F(cuGetErrorName)                 \
  F(cuGetErrorString)               \
  F(cuDeviceGetCount)               \
  F(cuDeviceGet)                    \
  F(cuDeviceGetName)                \
  F(cuDeviceGetAttribute)           \
  F(cuDevicePrimaryCtxRetain)       \
  F(cuDevicePrimaryCtxRelease)      \
  F(cuCtxPushCurrent)               \
  F(cuCtxPopCurrent)                \
  F(cuModuleLoadData)               \
  F(cuModuleUnload)                 \
  F(cuModuleGetFunction)            \
  F(cuMemAlloc)                     \
  F(cuMemFree)                      \
  F(cuMemHostAlloc)                 \
  F(cuMemFreeHost)                  \
  F(cuMemHostRegister)              \
  F(cuMemHostUnregister)            \
  F(cuMemHostGetDevicePointer)      \
  F(cuMemGetAddressRange)           \
  F(cuPointerGetAttribute)          \
  F(cuMemcpyAsync)                  \
  F(cuStreamCreate)                 \
  F(cuStreamDestroy)                \
  F(cuStreamSynchronize)            \
  F(cuStreamWaitEvent)              \
  F(cuEventCreate)                  \
  F(cuEventDestroy)                 \
  F(cuEventRecord)                  \
  F(cuEventQuery)                   \
  F(cuEventSynchronize)             \
  F(cuLaunchKernel)                 \
  F(cuLaunchHostFunc)               \
  F(cuGraphCreate)                  \
  F(cuGraphDestroy)                 \
  F(cuGraphAddKernelNode)           \
  F(cuGraphInstantiate)             \
  F(cuGraphExecDestroy)             \
  F(cuGraphExecKernelNodeSetParams) \
  F(cuGraphLaunch)

struct Driver {
#define PENSTOCK_CUDA_MEMBER(name) decltype(&::name) name = nullptr;
  PENSTOCK_CUDA_FUNCTIONS(PENSTOCK_CUDA_MEMBER)
#undef PENSTOCK_CUDA_MEMBER
  std::string path;
  int version = 0;         // 12080 is 12.8
  bool simulated = false;  // the stand-in of sim/cuda

  // ok, or which call failed with what, and for which purpose: "cuMemAlloc of 4096 bytes: ...".
  // no_space for memory, permission_denied, not_found for a device, otherwise io_error.
  Status check(CUresult result, const std::string& call) const;
  // Whether the context is of no use after this result: it answers everything with it.
  static bool is_loss(CUresult result);
};

// The path that counts: an option of the engine, else PENSTOCK_CUDA_DRIVER, else "libcuda.so.1".
std::string driver_path(const std::string& option);
// Loads and initialises it, once for each path; it stays. unsupported if there is none here or it
// is too old, permission_denied if it may not be used. Thread-safe.
Result<const Driver*> load_driver(const std::string& path);
// The driver if something else in this process has loaded it already, else null.
const Driver* present_driver(const std::string& path);

// Makes a context current for the calling thread while it lives.
class Current {
 public:
  Current(const Driver& driver, CUcontext context) : driver_(driver) {
    entered_ = driver_.cuCtxPushCurrent(context) == CUDA_SUCCESS;
  }
  ~Current() {
    CUcontext ignored = nullptr;
    if (entered_) driver_.cuCtxPopCurrent(&ignored);
  }
  Current(const Current&) = delete;
  Current& operator=(const Current&) = delete;

 private:
  const Driver& driver_;
  bool entered_;
};

}  // namespace penstock::cuda
#endif
