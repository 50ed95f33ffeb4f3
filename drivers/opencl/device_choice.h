// Which device, and what it can do.
#ifndef PENSTOCK_DRIVERS_OPENCL_DEVICE_CHOICE_H_
#define PENSTOCK_DRIVERS_OPENCL_DEVICE_CHOICE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "penstock/drivers/opencl/opencl.h"
#include "penstock/engine/engine.h"

namespace penstock::opencl {

// What follows "opencl:" in an engine's name: "DEVICE;key=value;flag".
struct Options {
  // A part of the device's name, or its place among all devices, from 0; "" takes the best.
  std::string device;
  bool staged = false;  // memory is staged even where the device shares it
  // "none", a folder, or "" for the user's (see program.h).
  std::string cache;
  std::uint64_t chunk_bytes = std::uint64_t{8}
                              << 20;  // of each of the buffers that stage; 64 K..1 G
  // invalid_argument for an unknown option and for a value that makes no sense.
  static Result<Options> parse(const std::string& text);
};

struct DeviceTraits {
  std::string name;      // as the device says, without blanks at the ends
  std::string platform;  // name and version
  std::string driver;
  cl_device_type type = 0;
  std::uint32_t units = 1;
  std::uint64_t max_group = 1;
  std::uint64_t memory_bytes = 0;
  std::uint64_t max_allocation = 0;
  bool f64 = false;
  bool exact_f32 = false;      // subnormals, infinities and NaNs, rounding to nearest even
  bool shares_memory = false;  // says that its memory is the host's
  bool system_svm = false;     // reaches all of the process's memory by its addresses
  // Why it cannot be used at all; empty if it can.
  std::string unusable;
};

// Whether it runs in this processor; no faster than `simd`.
inline bool is_cpu(const DeviceTraits& traits) { return (traits.type & CL_DEVICE_TYPE_CPU) != 0; }

struct FoundDevice {
  cl::Device device;
  DeviceTraits traits;
};

// All devices of all platforms, in the order of the platforms. not_found with the reason if there
// are none.
Result<std::vector<FoundDevice>> list_devices();
// By Options::device. Without a name: the first usable GPU, accelerator, CPU, in this order.
// not_found and invalid_argument list the devices there are; unsupported says why the device cannot
// be used.
Result<FoundDevice> choose_device(const std::string& name);

// What the engine does on such a device.
Capabilities capabilities_of(const DeviceTraits& traits);

}  // namespace penstock::opencl
#endif
