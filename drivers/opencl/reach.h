// How kernels reach the process's memory without a copy. A kernel gets up to eight memory objects,
// and its addresses are the number of an object and an offset (drivers/kernels/dialect_opencl.h).
#ifndef PENSTOCK_DRIVERS_OPENCL_REACH_H_
#define PENSTOCK_DRIVERS_OPENCL_REACH_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "penstock/drivers/opencl/device_choice.h"
#include "penstock/memory/pool.h"

namespace penstock::opencl {

inline constexpr std::uint32_t kObjects = 8;

// How a device comes to the process's memory.
enum class Sharing {
  none,     // it has memory of its own: bytes are staged
  objects,  // memory objects of the process's memory (CL_MEM_USE_HOST_PTR)
  system,   // by address (fine-grained system SVM)
};

// A part of a pool's mapping as a memory object. The runtime does not say what becomes of two
// objects of the same memory, so that all queues share one.
struct Segment {
  std::byte* data = nullptr;
  std::uint64_t bytes = 0;
  cl::Buffer buffer;
};
using Segments = std::vector<std::shared_ptr<const Segment>>;  // by address

// Of one context. Thread-safe.
class PoolObjects {
 public:
  PoolObjects(cl::Context context, const DeviceTraits& traits);
  // The memory of all devices of a pool, in segments as large as the device allows. What it does
  // not take is left out, and logged. The pool outlives the segments.
  Segments attach(Pool& pool);

 private:
  const cl::Context context_;
  const std::string device_;
  const std::uint64_t most_bytes_;
  std::mutex mutex_;
  std::map<std::pair<std::byte*, std::uint64_t>, std::weak_ptr<const Segment>> known_;
};

struct Extent {
  const void* data;
  std::uint64_t bytes;
};

// What one launch reaches. Throws cl::Error.
class Binding {
 public:
  // An object that the engine made itself, at the number that it returns.
  std::uint32_t add(const cl::Buffer& buffer);
  // Gives each extent an address. False if the objects do not suffice, or an extent lies across
  // segments: then nothing was bound, and the bytes have to be staged.
  bool bind(Sharing sharing, const cl::Context& context, const Segments& segments,
            const std::vector<Extent>& extents, std::vector<std::uint64_t>* addresses);
  void set_arguments(cl::Kernel& kernel) const;

  static std::uint64_t address(std::uint32_t object, std::uint64_t offset) {
    return std::uint64_t{object} << 56 | offset;
  }

 private:
  bool bind_objects(const cl::Context& context, const Segments& segments,
                    const std::vector<Extent>& extents, std::vector<std::uint64_t>* addresses);

  std::vector<cl::Buffer> objects_;
  void* base_ = nullptr;  // of all addresses, with system SVM
};

}  // namespace penstock::opencl
#endif
