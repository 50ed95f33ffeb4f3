// The sum of vectors that lie in the memory of GPUs, one GPU for each rank. The buffers of every
// collective may be there; where they are is found out from their addresses.
//
// Link it with CUDA's driver (-lcuda), and start it like the other examples. With
// PENSTOCK_ENGINE=cuda the GPU works on them where they are; any other engine gets copies, chunk by
// chunk.
#include <cuda.h>

#include <cstdio>
#include <stdexcept>
#include <vector>

#include "penstock/penstock.hpp"

namespace {

void check(CUresult result, const char* call) {
  if (result == CUDA_SUCCESS) return;
  const char* name = "an unknown error";
  cuGetErrorName(result, &name);
  throw std::runtime_error(std::string(call) + ": " + name);
}

// A vector in the memory of a GPU.
class GpuVector {
 public:
  GpuVector(CUcontext context, const std::vector<float>& values) : bytes_(values.size() * 4) {
    check(cuCtxPushCurrent(context), "cuCtxPushCurrent");
    check(cuMemAlloc(&address_, bytes_), "cuMemAlloc");
    check(cuMemcpyHtoD(address_, values.data(), bytes_), "cuMemcpyHtoD");
  }
  ~GpuVector() {
    cuMemFree(address_);
    CUcontext context = nullptr;
    cuCtxPopCurrent(&context);
  }
  float* data() const { return reinterpret_cast<float*>(address_); }
  void read(std::vector<float>* values) const {
    check(cuMemcpyDtoH(values->data(), address_, bytes_), "cuMemcpyDtoH");
  }

 private:
  std::size_t bytes_;
  CUdeviceptr address_ = 0;
};

}  // namespace

int main() {
  try {
    penstock::world world;
    int devices = 0;
    CUdevice device = 0;
    CUcontext context = nullptr;
    check(cuInit(0), "cuInit");
    check(cuDeviceGetCount(&devices), "cuDeviceGetCount");
    if (devices == 0) throw std::runtime_error("there is no GPU");
    check(cuDeviceGet(&device, static_cast<int>(world.rank()) % devices), "cuDeviceGet");
    check(cuDevicePrimaryCtxRetain(&context, device), "cuDevicePrimaryCtxRetain");

    std::vector<float> gradient(1 << 20, static_cast<float>(world.rank() + 1));
    {
      const GpuVector on_gpu(context, gradient);
      world.all_reduce(on_gpu.data(), on_gpu.data(), gradient.size());
      on_gpu.read(&gradient);
    }
    cuDevicePrimaryCtxRelease(device);

    const auto n = static_cast<float>(world.size());
    bool right = true;
    for (const float value : gradient) right = right && value == n * (n + 1) / 2;
    std::printf("rank %u of %u: sum %g in GPU memory, %s\n", world.rank(), world.size(),
                gradient.front(), right ? "right" : "WRONG");
    return right ? 0 : 1;
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "%s\n", failure.what());
    return 2;
  }
}
