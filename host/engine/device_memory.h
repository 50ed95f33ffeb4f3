// Buffers in the memory of a device, which this process cannot read or write: who recognises them,
// and how their bytes get to where it can. Drivers provide it; whoever is given buffers asks.
#ifndef PENSTOCK_ENGINE_DEVICE_MEMORY_H_
#define PENSTOCK_ENGINE_DEVICE_MEMORY_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "penstock/base/status.h"

namespace penstock {

// Copies between a device and memory of the process, in two directions that do not wait for each
// other. One thread at a time.
class DeviceCopies {
 public:
  // Waits until nothing is on its way.
  virtual ~DeviceCopies() = default;
  // Memory of the process from which and to which copies are fast; for any use while this lives.
  virtual Result<std::shared_ptr<std::byte>> allocate(std::uint64_t bytes) = 0;
  // Start a copy and return; in order in each direction. The memory of the process is the copy's
  // until a mark of that direction, made later, was waited for.
  virtual Status read(void* to, const void* device, std::uint64_t bytes) = 0;
  virtual Status write(void* device, const void* from, std::uint64_t bytes) = 0;
  // After what was started so far: a number above 0 and those before.
  virtual Result<std::uint64_t> mark_reads() = 0;
  virtual Result<std::uint64_t> mark_writes() = 0;
  // Until what is before the mark is over; 0 waits for nothing.
  virtual Status wait_reads(std::uint64_t mark) = 0;
  virtual Status wait_writes(std::uint64_t mark) = 0;
};

// Thread-safe.
class DeviceMemory {
 public:
  virtual ~DeviceMemory() = default;
  // Whether the address is in memory of a device that the process cannot reach. Fast.
  virtual bool holds(const void* data) const = 0;
  // For memory that it holds.
  virtual Result<std::unique_ptr<DeviceCopies>> open(const void* data) = 0;
};

// A buffer where the process reaches it: itself, or a copy of one in a device's memory.
class HostCopy {
 public:
  HostCopy() = default;
  // `filled`: the copy has the buffer's bytes. Errors of the device.
  static Result<HostCopy> make(void* data, std::uint64_t bytes, bool filled);
  void* data() const { return copy_ != nullptr ? copy_.get() : data_; }
  // Puts the copy's bytes into the buffer.
  Status write_back();

 private:
  void* data_ = nullptr;
  std::uint64_t bytes_ = 0;
  std::shared_ptr<std::byte> copy_;
  std::unique_ptr<DeviceCopies> copies_;
};

// A driver's plugin says how to find out whether the process has such memory now: null while it has
// none, for example because nothing else has loaded the driver yet; what it returns then counts
// from there on. Thread-safe.
void register_device_memory(std::function<std::shared_ptr<DeviceMemory>()> find);
// Asks those that returned null. To be called now and then: when a comm is made, when a buffer is
// seen for the first time.
void find_device_memory();

// Whose memory it is; null for what the process can reach. One load and a branch where no driver is
// in use. The result stays valid.
extern std::atomic<bool> device_memory_found;
DeviceMemory* search_device_memory(const void* data);
inline DeviceMemory* device_memory_of(const void* data) {
  if (!device_memory_found.load(std::memory_order_acquire) || data == nullptr) return nullptr;
  return search_device_memory(data);
}

}  // namespace penstock
#endif
