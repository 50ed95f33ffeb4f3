// Which memory a device reaches, and by which address: that of a pool (registered with the device),
// its own, what the application pinned, and, where the device shares the process's page tables,
// all.
#ifndef PENSTOCK_DRIVERS_CUDA_MEMORY_H_
#define PENSTOCK_DRIVERS_CUDA_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "penstock/drivers/cuda/driver.h"
#include "penstock/memory/pool.h"

namespace penstock::cuda {

// A device's primary context, shared with whatever else uses the device in this process. Released
// with the last owner.
class Context {
 public:
  // not_found if there is no device of that number.
  static Result<std::shared_ptr<const Context>> open(const Driver& driver, int ordinal);
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  const Driver& driver() const { return driver_; }
  CUcontext handle() const { return handle_; }
  int ordinal() const { return ordinal_; }
  int attribute(CUdevice_attribute which) const;
  std::string name() const;

 private:
  Context(const Driver& driver, int ordinal, CUdevice device, CUcontext handle)
      : driver_(driver), ordinal_(ordinal), device_(device), handle_(handle) {}
  const Driver& driver_;
  const int ordinal_;
  const CUdevice device_;
  const CUcontext handle_;
};

// Memory of the process that a device reaches while this lives.
class Registration {
 public:
  ~Registration();
  Registration(const Registration&) = delete;
  Registration& operator=(const Registration&) = delete;

  const std::byte* base() const { return base_; }
  std::uint64_t bytes() const { return bytes_; }
  CUdeviceptr device() const { return device_; }
  // The same memory for everybody who registers it while it is registered. An error where it cannot
  // be, which is no fault of anybody: it is staged then.
  static Result<std::shared_ptr<const Registration>> make(std::shared_ptr<const Context> context,
                                                          std::byte* base, std::uint64_t bytes);

 private:
  Registration(std::shared_ptr<const Context> context, std::byte* base, std::uint64_t bytes,
               CUdeviceptr device, bool own)
      : context_(std::move(context)), base_(base), bytes_(bytes), device_(device), own_(own) {}
  const std::shared_ptr<const Context> context_;
  std::byte* const base_;
  const std::uint64_t bytes_;
  const CUdeviceptr device_;
  const bool own_;  // not one that the application made
};

// How a device reaches an operand.
struct Place {
  bool staged = false;  // not at all: through pinned buffers
  CUdeviceptr address = 0;
};

// What a queue's operands may be. One thread at a time.
class Reach {
 public:
  // Registers the pool's devices; what refuses is staged, and said in the log. `staged`: nothing is
  // registered, for tests.
  Reach(std::shared_ptr<const Context> context, Pool* pool, bool staged);
  // out_of_range if an operand runs over the end of an allocation of the device, unsupported if it
  // is another device's. The context is current.
  Result<Place> find(const void* data, std::uint64_t bytes) const;

 private:
  const std::shared_ptr<const Context> context_;
  const bool staged_;
  bool pageable_ = false;
  std::vector<std::shared_ptr<const Registration>> registrations_;
};

// Whether memory is a device's (CU_MEMORYTYPE_DEVICE and not managed), and whose.
bool is_device_memory(const Driver& driver, const void* data, int* ordinal);

}  // namespace penstock::cuda
#endif
