// What a test and the layer between it and the OpenCL runtime tell each other. The layer
// (fault_layer_test.cpp) is a library that the runtime's loader loads (OPENCL_LAYERS): so it is the
// unchanged engine that meets the faults.
#ifndef PENSTOCK_DRIVERS_OPENCL_FAULT_LAYER_TEST_H_
#define PENSTOCK_DRIVERS_OPENCL_FAULT_LAYER_TEST_H_

#include <cstdint>
#include <cstring>

namespace penstock::opencl {

struct FaultLayer {
  // What the test says; all zero: nothing is changed.
  struct Commands {
    char call[64];  // the call that fails with `code`, after so many that do not
    std::int32_t code;
    std::int32_t after;
    std::int32_t times;               // how many fail; 0: all from then on
    std::uint64_t most_device_bytes;  // of buffers on the device
    std::int32_t event_status;        // of every event
    bool twins;                       // each platform has its devices twice
    bool copies_host_memory;          // CL_MEM_USE_HOST_PTR makes a copy, as a device apart would
    struct {
      std::uint32_t key;  // of clGetDeviceInfo
      std::uint64_t value;
    } info[4];
  } tell;

  // What the test sees.
  bool loaded;
  std::int64_t contexts, queues, buffers, programs, kernels, events;  // references that are held
  std::uint64_t device_bytes;
  std::uint32_t from_source, from_binary;  // programs that were made
  std::uint32_t kernels_started, reads, writes, finishes;
  std::uint32_t host_buffers;  // with CL_MEM_USE_HOST_PTR that were made

  void fail(const char* name, std::int32_t with, std::int32_t after_calls = 0,
            std::int32_t how_often = 0) {
    std::strncpy(tell.call, name, sizeof(tell.call) - 1);
    tell.code = with;
    tell.after = after_calls;
    tell.times = how_often;
  }
  void heal() { tell = Commands(); }
  void count_anew() {
    from_source = from_binary = kernels_started = reads = writes = finishes = host_buffers = 0;
  }
};

// In the layer, "penstock_opencl_fault_layer".
using FaultLayerFunction = FaultLayer* (*)();

}  // namespace penstock::opencl
#endif
