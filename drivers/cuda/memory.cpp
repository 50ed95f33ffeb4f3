#include "penstock/drivers/cuda/memory.h"

#include <map>
#include <mutex>
#include <utility>

#include "penstock/base/log.h"

namespace penstock::cuda {
namespace {

CUdeviceptr pointer_of(const void* data) {
  return static_cast<CUdeviceptr>(reinterpret_cast<std::uintptr_t>(data));
}

bool attribute(const Driver& driver, void* value, CUpointer_attribute which, const void* data) {
  return driver.cuPointerGetAttribute(value, which, pointer_of(data)) == CUDA_SUCCESS;
}

// Registrations by context and first byte. A driver refuses to register twice.
struct Registry {
  std::recursive_mutex mutex;  // the last owner of a former registration may let go inside of make
  std::map<std::pair<CUcontext, const std::byte*>, std::weak_ptr<const Registration>> made;
};
Registry& registry() {
  static auto* const all = new Registry;
  return *all;
}

}  // namespace

Result<std::shared_ptr<const Context>> Context::open(const Driver& driver, int ordinal) {
  int count = 0;
  PENSTOCK_TRY(driver.check(driver.cuDeviceGetCount(&count), "cuDeviceGetCount"));
  if (ordinal < 0 || ordinal >= count)
    return error(Code::not_found, "there is no CUDA device {}: {}", ordinal,
                 count == 0 ? "there is none" : fmt::format("they are 0 to {}", count - 1));
  CUdevice device = 0;
  PENSTOCK_TRY(driver.check(driver.cuDeviceGet(&device, ordinal), "cuDeviceGet"));
  CUcontext context = nullptr;
  PENSTOCK_TRY(driver.check(driver.cuDevicePrimaryCtxRetain(&context, device),
                            fmt::format("cuDevicePrimaryCtxRetain of device {}", ordinal)));
  return std::shared_ptr<const Context>(new Context(driver, ordinal, device, context));
}

Context::~Context() { driver_.cuDevicePrimaryCtxRelease(device_); }

int Context::attribute(CUdevice_attribute which) const {
  int value = 0;
  return driver_.cuDeviceGetAttribute(&value, which, device_) == CUDA_SUCCESS ? value : 0;
}

std::string Context::name() const {
  char text[256] = {};
  driver_.cuDeviceGetName(text, sizeof text - 1, device_);
  return text;
}

Result<std::shared_ptr<const Registration>> Registration::make(
    std::shared_ptr<const Context> context, std::byte* base, std::uint64_t bytes) {
  const Driver& driver = context->driver();
  const Current current(driver, context->handle());
  const std::lock_guard lock(registry().mutex);
  auto& known = registry().made[{context->handle(), base}];
  if (auto made = known.lock(); made != nullptr && made->bytes() >= bytes) return made;
  const CUresult result = driver.cuMemHostRegister(
      base, bytes, CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP);
  const bool own = result != CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
  if (own) PENSTOCK_TRY(driver.check(result, fmt::format("cuMemHostRegister of {} bytes", bytes)));
  CUdeviceptr device = 0;
  const CUresult mapped = driver.cuMemHostGetDevicePointer(&device, base, 0);
  if (mapped != CUDA_SUCCESS) {
    if (own) driver.cuMemHostUnregister(base);
    return driver.check(mapped, "cuMemHostGetDevicePointer");
  }
  std::shared_ptr<const Registration> made(
      new Registration(std::move(context), base, bytes, device, own));
  known = made;
  return made;
}

Registration::~Registration() {
  const Driver& driver = context_->driver();
  const Current current(driver, context_->handle());
  const std::lock_guard lock(registry().mutex);
  if (own_) driver.cuMemHostUnregister(base_);
  const auto found = registry().made.find({context_->handle(), base_});
  if (found != registry().made.end() && found->second.expired()) registry().made.erase(found);
}

Reach::Reach(std::shared_ptr<const Context> context, Pool* pool, bool staged)
    : context_(std::move(context)), staged_(staged) {
  if (staged_) return;
  pageable_ = context_->attribute(CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS) != 0;
  if (pool == nullptr || pageable_) return;
  for (std::uint32_t d = 0; d < pool->device_count(); ++d) {
    const DeviceData data = pool->device_data(d);
    if (data.bytes == 0) continue;
    std::byte* base = pool->resolve(data.address, data.bytes);
    if (base == nullptr) continue;
    auto made = Registration::make(context_, base, data.bytes);
    if (made.ok()) {
      registrations_.push_back(std::move(made).value());
    } else {
      log::info("cuda: memory device {} of the pool is staged: {}", d, made.status().message());
    }
  }
}

Result<Place> Reach::find(const void* data, std::uint64_t bytes) const {
  const auto* start = static_cast<const std::byte*>(data);
  for (const auto& registration : registrations_) {
    if (start < registration->base()) continue;
    const auto offset = static_cast<std::uint64_t>(start - registration->base());
    if (offset < registration->bytes() && bytes <= registration->bytes() - offset)
      return Place{false, registration->device() + offset};
  }
  const Driver& driver = context_->driver();
  unsigned type = 0;
  if (!attribute(driver, &type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, data)) {
    return Place{!pageable_, pointer_of(data)};
  }
  if (type == CU_MEMORYTYPE_DEVICE) {
    CUdeviceptr base = 0;
    std::size_t size = 0;
    unsigned managed = 0;
    attribute(driver, &managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, data);
    int ordinal = context_->ordinal();
    attribute(driver, &ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, data);
    if (managed == 0 && ordinal != context_->ordinal())
      return error(Code::unsupported, "{} is memory of CUDA device {}, and this engine is on {}",
                   data, ordinal, context_->ordinal());
    PENSTOCK_TRY(driver.check(driver.cuMemGetAddressRange(&base, &size, pointer_of(data)),
                              "cuMemGetAddressRange"));
    const std::uint64_t offset = pointer_of(data) - base;
    if (offset > size || bytes > size - offset)
      return error(Code::out_of_range,
                   "{} bytes at {} run over the end of an allocation of {} bytes that begins {} "
                   "before",
                   bytes, data, size, offset);
    return Place{false, pointer_of(data)};
  }
  // Pinned by the application: as far as it is.
  if (staged_) return Place{true, 0};
  CUdeviceptr first = 0, last = 0;
  if (!attribute(driver, &first, CU_POINTER_ATTRIBUTE_DEVICE_POINTER, data) ||
      !attribute(driver, &last, CU_POINTER_ATTRIBUTE_DEVICE_POINTER, start + bytes - 1) ||
      last - first != bytes - 1)
    return Place{!pageable_, pointer_of(data)};
  return Place{false, first};
}

bool is_device_memory(const Driver& driver, const void* data, int* ordinal) {
  unsigned type = 0, managed = 0;
  if (!attribute(driver, &type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, data)) return false;
  attribute(driver, &managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, data);
  if (type != CU_MEMORYTYPE_DEVICE || managed != 0) return false;
  *ordinal = 0;
  attribute(driver, ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, data);
  return true;
}

}  // namespace penstock::cuda
