// What XRT loads as libxrt_hwemu.so.2 in the mode hw_emu: its interface to a device, over a device
// that is not there. XRT's own static library has the glue above it.
#define XCL_DRIVER_DLL_EXPORT
#include <ert.h>
#include <experimental/xrt-next.h>
#include <uuid/uuid.h>
#include <xrt.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>

#include "penstock/sim/xrt/standin_device.h"

// Of XRT's glue.
namespace xrt_core {
class device {
 public:
  void register_axlf(const axlf* xclbin);
};
std::shared_ptr<device> get_userpf_device(void* handle, unsigned index);
namespace query {
enum class key_type;
}
}  // namespace xrt_core

namespace {

using penstock::sim::Buffer;
using penstock::sim::StandinDevice;
using penstock::sim::StandinOptions;

// Read anew where a device is looked for or opened, so that one process can try several.
StandinOptions options() {
  const char* text = std::getenv("PENSTOCK_XRT_STANDIN");
  std::string list = text == nullptr ? "" : text;
  std::replace(list.begin(), list.end(), ',', ';');
  auto result = StandinOptions::parse(list);
  if (!result.ok()) {
    std::fprintf(stderr, "PENSTOCK_XRT_STANDIN: %s\n", result.status().message().c_str());
    std::abort();
  }
  return std::move(result).value();
}

struct Handle {
  std::shared_ptr<StandinDevice> device;
  std::shared_ptr<xrt_core::device> core;
};
StandinDevice& device_of(xclDeviceHandle handle) { return *static_cast<Handle*>(handle)->device; }

// A device is the same for everybody who opens it, in this process.
std::shared_ptr<StandinDevice> share(unsigned index, const StandinOptions& options) {
  static std::mutex mutex;
  static std::map<unsigned, std::weak_ptr<StandinDevice>> devices;
  const std::lock_guard lock(mutex);
  std::shared_ptr<StandinDevice> device = devices[index].lock();
  if (device == nullptr) {
    device = std::make_shared<StandinDevice>(options);
    devices[index] = device;
  }
  return device;
}

// As a system call tells it, and as XRT's functions do.
int told(int failure) {
  errno = failure != 0 ? failure : errno;
  return -failure;
}

}  // namespace

extern "C" {

unsigned xclProbe() { return options().devices; }

xclDeviceHandle xclOpen(unsigned index, const char*, xclVerbosityLevel) {
  const StandinOptions now = options();
  if (index >= now.devices || now.no_permission) {
    errno = index >= now.devices ? ENODEV : EACCES;
    return nullptr;
  }
  auto handle = std::make_unique<Handle>();
  handle->device = share(index, now);
  handle->core = xrt_core::get_userpf_device(handle.get(), index);
  return handle.release();
}
void xclClose(xclDeviceHandle handle) { delete static_cast<Handle*>(handle); }

int xclLoadXclBin(xclDeviceHandle handle, const axlf* xclbin) {
  const int failure =
      device_of(handle).load(reinterpret_cast<const char*>(xclbin), xclbin->m_header.m_length);
  if (failure == 0) static_cast<Handle*>(handle)->core->register_axlf(xclbin);
  return told(failure);
}
int xclOpenContext(xclDeviceHandle handle, const xuid_t, unsigned ip, bool shared) {
  return told(device_of(handle).open_context(ip, shared));
}
int xclCloseContext(xclDeviceHandle handle, const xuid_t, unsigned ip) {
  return told(device_of(handle).close_context(ip));
}

int xclRegRead(xclDeviceHandle handle, uint32_t ip, uint32_t offset, uint32_t* value) {
  return told(device_of(handle).read_register(ip, offset, value));
}
int xclRegWrite(xclDeviceHandle handle, uint32_t ip, uint32_t offset, uint32_t value) {
  return told(device_of(handle).write_register(ip, offset, value));
}

xclBufferHandle xclAllocUserPtrBO(xclDeviceHandle handle, void* user, size_t bytes,
                                  unsigned flags) {
  std::uint32_t buffer = 0;
  const int failure = device_of(handle).allocate(bytes, flags, user, &buffer);
  return told(failure) == 0 ? buffer : NULLBO;
}
xclBufferHandle xclAllocBO(xclDeviceHandle handle, size_t bytes, int, unsigned flags) {
  return xclAllocUserPtrBO(handle, nullptr, bytes, flags);
}
void xclFreeBO(xclDeviceHandle handle, xclBufferHandle buffer) {
  told(device_of(handle).free(buffer));
}
void* xclMapBO(xclDeviceHandle handle, xclBufferHandle id, bool) {
  Buffer buffer;
  return told(device_of(handle).describe(id, &buffer)) == 0 ? buffer.host : nullptr;
}
int xclUnmapBO(xclDeviceHandle, xclBufferHandle, void*) { return 0; }
int xclSyncBO(xclDeviceHandle handle, xclBufferHandle buffer, xclBOSyncDirection direction,
              size_t bytes, size_t offset) {
  const bool to_device = direction == XCL_BO_SYNC_BO_TO_DEVICE;
  return told(device_of(handle).sync(buffer, to_device, bytes, offset));
}
int xclGetBOProperties(xclDeviceHandle handle, xclBufferHandle id, xclBOProperties* properties) {
  Buffer buffer;
  if (const int failure = device_of(handle).describe(id, &buffer); failure != 0)
    return told(failure);
  std::memset(properties, 0, sizeof(*properties));
  properties->handle = id;
  properties->flags = buffer.flags;
  properties->size = buffer.bytes;
  properties->paddr = buffer.address;
  return 0;
}

int xclExecBuf(xclDeviceHandle handle, xclBufferHandle command) {
  return told(device_of(handle).execute(command));
}
int xclExecWait(xclDeviceHandle handle, int ms) { return device_of(handle).wait(ms) ? 1 : 0; }

int xclGetDeviceInfo2(xclDeviceHandle, xclDeviceInfo2* info) {
  std::memset(info, 0, sizeof(*info));
  std::snprintf(info->mName, sizeof(info->mName), "%s", options().platform.c_str());
  return 0;
}

// What nothing here needs.
int xclCopyBO(xclDeviceHandle, xclBufferHandle, xclBufferHandle, size_t, size_t, size_t) {
  return told(ENOSYS);
}
xclBufferExportHandle xclExportBO(xclDeviceHandle, xclBufferHandle) { return told(ENOSYS); }
xclBufferHandle xclImportBO(xclDeviceHandle, xclBufferExportHandle, unsigned) { return NULLBO; }
int xclP2pEnable(xclDeviceHandle, bool, bool) { return told(ENOSYS); }
int xclReClock2(xclDeviceHandle, unsigned short, const uint16_t*) { return told(ENOSYS); }
size_t xclRead(xclDeviceHandle, xclAddressSpace, uint64_t, void*, size_t) { return 0; }
size_t xclWrite(xclDeviceHandle, xclAddressSpace, uint64_t, const void*, size_t) { return 0; }
ssize_t xclUnmgdPread(xclDeviceHandle, unsigned, void*, size_t, uint64_t) { return told(ENOSYS); }
ssize_t xclUnmgdPwrite(xclDeviceHandle, unsigned, const void*, size_t, uint64_t) {
  return told(ENOSYS);
}

}  // extern "C"

// Those are of C++ linkage in XRT.
int xclUpdateSchedulerStat(xclDeviceHandle) { return 1; }
int xclInternalResetDevice(xclDeviceHandle, xclResetKind) { return told(ENOSYS); }
int xclCmaEnable(xclDeviceHandle, bool, uint64_t) { return told(ENOSYS); }
int xclCloseExportHandle(xclBufferExportHandle) { return 0; }

namespace xclhwemhal2 {
class HwEmShim {
 public:
  static HwEmShim* handleCheck(void* handle);
  unsigned deviceQuery(xrt_core::query::key_type key);
};
HwEmShim* HwEmShim::handleCheck(void*) { return nullptr; }
unsigned HwEmShim::deviceQuery(xrt_core::query::key_type) { return 0; }
}  // namespace xclhwemhal2
