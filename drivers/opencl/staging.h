// Operations on memory that the device does not reach: their bytes go through buffers on the
// device, piece by piece. Three queues and as many buffers work at once: while a kernel works on
// one piece, the next one comes in and the one before goes out.
#ifndef PENSTOCK_DRIVERS_OPENCL_STAGING_H_
#define PENSTOCK_DRIVERS_OPENCL_STAGING_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "penstock/drivers/opencl/device_choice.h"

namespace penstock::opencl {

// Bytes of the process that are copied in before a kernel runs, or out after it, or both. Operands
// of one region are the same bytes on the device.
struct StagedOperand {
  std::byte* data;
  std::uint32_t type;
  std::uint32_t block;
  bool in;
  bool out;
  std::uint32_t region;
};

// One thread at a time. Every member throws cl::Error; what was begun before goes on then.
class Staging {
 public:
  Staging(cl::Context context, cl::Device device, cl::CommandQueue kernels,
          std::uint64_t chunk_bytes);

  // Starts a kernel for `count` elements from the first: `offset` has the regions' places in
  // `buffer`, on 64 bytes. It waits for `after`, and returns its event.
  using Launch = std::function<cl::Event(const cl::Buffer& buffer, const std::uint64_t* offset,
                                         std::uint64_t count, const std::vector<cl::Event>& after)>;
  // All of an operation of `count` elements. `launch` may be empty: then nothing happens between in
  // and out. Nothing comes in before `after`.
  void run(const std::vector<StagedOperand>& operands, std::uint32_t regions, std::uint64_t count,
           const Launch& launch, const std::vector<cl::Event>& after);
  // What comes in may be what an earlier operation is still taking out: adds its end to `before`.
  void wait_for_out(const void* data, std::uint64_t bytes, std::vector<cl::Event>* before);
  // What read() will be called for.
  void goes_out(const void* data, std::uint64_t bytes);
  // In one piece, for what is no list of elements.
  cl::Event write(const cl::Buffer& buffer, std::uint64_t offset, const void* data,
                  std::uint64_t bytes, const std::vector<cl::Event>& after);
  cl::Event read(const cl::Buffer& buffer, std::uint64_t offset, void* data, std::uint64_t bytes,
                 const std::vector<cl::Event>& after);

  // The last of what goes out; null if nothing ever did.
  const cl::Event& last_out() const { return last_out_; }
  bool began() const { return began_; }  // something since the last call of begin()
  void begin() { began_ = false; }
  void flush();
  void finish();

 private:
  struct Slot {
    cl::Buffer buffer;
    cl::Event free;  // what was the last to go out of it
  };
  struct Range {
    const std::byte* begin;
    const std::byte* end;
  };

  void open();
  Slot& next_slot();

  const cl::Context context_;
  const cl::Device device_;
  cl::CommandQueue in_, kernels_, out_;
  const std::uint64_t chunk_bytes_;
  std::array<Slot, 3> slots_;
  std::size_t next_ = 0;
  cl::Event last_out_;
  std::vector<Range> going_out_;
  bool began_ = false;
};

}  // namespace penstock::opencl
#endif
