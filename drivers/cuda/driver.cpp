#include "penstock/drivers/cuda/driver.h"

#include <dlfcn.h>

#include <map>
#include <memory>
#include <mutex>

#include "penstock/base/env.h"

// cuda.h gives some functions the name of a later version.
#define PENSTOCK_NAME_(name) #name
#define PENSTOCK_NAME(name) PENSTOCK_NAME_(name)

namespace penstock::cuda {
namespace {

constexpr int kOldestDriver = 12000;

struct Loaded {
  std::mutex mutex;
  std::map<std::string, std::unique_ptr<Driver>> drivers;
};
Loaded& loaded() {
  static auto* const tables = new Loaded;  // drivers outlive whatever is destroyed at exit
  return *tables;
}

Result<std::unique_ptr<Driver>> open(const std::string& path) {
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr)
    return error(Code::unsupported, "no CUDA driver: {}; it comes with NVIDIA's kernel driver",
                 dlerror());
  auto driver = std::make_unique<Driver>();
  driver->path = path;
  const char* missing = nullptr;
#define PENSTOCK_CUDA_LOAD(name)                                                                \
  driver->name = reinterpret_cast<decltype(driver->name)>(dlsym(library, PENSTOCK_NAME(name))); \
  if (driver->name == nullptr) missing = PENSTOCK_NAME(name);
  PENSTOCK_CUDA_FUNCTIONS(PENSTOCK_CUDA_LOAD)
#undef PENSTOCK_CUDA_LOAD
  driver->simulated = dlsym(library, "penstock_cuda_standin_live") != nullptr;
  if (driver->cuDriverGetVersion != nullptr) driver->cuDriverGetVersion(&driver->version);
  if (missing != nullptr || driver->version < kOldestDriver)
    return error(Code::unsupported, "the CUDA driver {} is of version {}.{}, 12.0 is needed{}{}",
                 path, driver->version / 1000, driver->version % 1000 / 10,
                 missing != nullptr ? ": it lacks " : "", missing != nullptr ? missing : "");
  if (const Status status = driver->check(driver->cuInit(0), "cuInit"); !status.ok()) {
    if (status.code() == Code::permission_denied) return status;
    return error(Code::unsupported, "{}", status.message());
  }
  return driver;
}

}  // namespace

bool Driver::is_loss(CUresult result) {
  switch (result) {
    case CUDA_ERROR_ECC_UNCORRECTABLE:
    case CUDA_ERROR_DEVICE_UNAVAILABLE:
    case CUDA_ERROR_NVLINK_UNCORRECTABLE:
    case CUDA_ERROR_CONTEXT_IS_DESTROYED:
    case CUDA_ERROR_DEINITIALIZED:
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_LAUNCH_TIMEOUT:
    case CUDA_ERROR_ASSERT:
    case CUDA_ERROR_HARDWARE_STACK_ERROR:
    case CUDA_ERROR_ILLEGAL_INSTRUCTION:
    case CUDA_ERROR_MISALIGNED_ADDRESS:
    case CUDA_ERROR_INVALID_ADDRESS_SPACE:
    case CUDA_ERROR_INVALID_PC:
    case CUDA_ERROR_LAUNCH_FAILED:
    case CUDA_ERROR_SYSTEM_NOT_READY:
    case CUDA_ERROR_UNKNOWN:
      return true;
    default:
      return false;
  }
}

Status Driver::check(CUresult result, const std::string& call) const {
  if (result == CUDA_SUCCESS) return {};
  Code code = Code::io_error;
  switch (result) {
    case CUDA_ERROR_OUT_OF_MEMORY:
      code = Code::no_space;
      break;
    case CUDA_ERROR_NOT_PERMITTED:
    case CUDA_ERROR_OPERATING_SYSTEM:
      code = Code::permission_denied;
      break;
    case CUDA_ERROR_NO_DEVICE:
    case CUDA_ERROR_INVALID_DEVICE:
      code = Code::not_found;
      break;
    case CUDA_ERROR_NO_BINARY_FOR_GPU:
    case CUDA_ERROR_UNSUPPORTED_PTX_VERSION:
    case CUDA_ERROR_NOT_SUPPORTED:
      code = Code::unsupported;
      break;
    default:
      break;
  }
  const char* name = nullptr;
  const char* meaning = nullptr;
  cuGetErrorName(result, &name);
  cuGetErrorString(result, &meaning);
  return error(code, "{}: {} ({})", call, name != nullptr ? name : "an unknown error",
               meaning != nullptr ? meaning : std::to_string(static_cast<int>(result)));
}

std::string driver_path(const std::string& option) {
  if (!option.empty()) return option;
  return env::text(env::Id::cuda_driver);
}

Result<const Driver*> load_driver(const std::string& path) {
  const std::lock_guard lock(loaded().mutex);
  std::unique_ptr<Driver>& place = loaded().drivers[path];
  if (place == nullptr) {
    PENSTOCK_ASSIGN(place, open(path));
  }
  return static_cast<const Driver*>(place.get());
}

const Driver* present_driver(const std::string& path) {
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_NOLOAD);
  if (library == nullptr) return nullptr;
  dlclose(library);
  const Result<const Driver*> driver = load_driver(path);
  return driver.ok() ? driver.value() : nullptr;
}

}  // namespace penstock::cuda
