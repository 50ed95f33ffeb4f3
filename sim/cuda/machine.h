// The machine behind the stand-in driver: devices' memory, the process's memory that they reach,
// and streams. Internal to sim/cuda.
//
// A device address is never an address at which the process has memory: device memory, and what is
// pinned or registered, has device addresses in a range that nobody may touch, and only kernels and
// copies of the stand-in translate them. So a host that follows a device pointer faults, and so
// does a kernel that is given a host pointer (as an illegal address).
#ifndef PENSTOCK_SIM_CUDA_MACHINE_H_
#define PENSTOCK_SIM_CUDA_MACHINE_H_

#include <cuda.h>

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <thread>

#include "penstock/sim/cuda/standin.h"

namespace penstock::sim::cuda {

struct Options {
  std::uint64_t seed = 1;      // of the delays
  std::uint64_t delay_us = 0;  // at most, before anything on a stream
  std::uint64_t devices = 1;
  std::uint64_t memory = 1u << 30;  // bytes of a device
  std::uint64_t fail_alloc = 0;     // this allocation, of device or pinned memory, fails; 0: none
  std::uint64_t lost_after = 0;     // the device is lost after so many launches; 0: never
  std::uint64_t deny = 0;           // 1: cuInit is not permitted
  std::uint64_t reg = 1;            // 0: memory cannot be registered
  std::uint64_t pageable = 0;       // 1: devices reach all of the process's memory
  static std::optional<Options> parse(const std::string& text);
};

// Memory with device addresses. Thread-safe.
class Memory {
 public:
  Memory();
  // A range of device addresses for memory of the device (storage is made) or of the host; null
  // where there is no room.
  CUdeviceptr add_device(std::size_t bytes, int ordinal);
  CUdeviceptr add_host(void* host, std::size_t bytes);
  bool remove_device(CUdeviceptr address);
  bool remove_host(void* host);
  void clear();

  struct Range {
    CUdeviceptr address;
    std::size_t bytes;
    std::byte* storage;  // where the process has it
    bool host;           // it is the process's own
    int ordinal;
  };
  // The range that holds a device address; of host memory also by the process's address.
  std::optional<Range> find(CUdeviceptr address) const;
  std::optional<Range> find_host(const void* data) const;
  std::uint64_t device_bytes() const { return device_bytes_; }
  // Where the process has `bytes` at a device address; null if they are not in one range.
  std::byte* translate(CUdeviceptr address, std::size_t bytes) const;

 private:
  CUdeviceptr reserve(std::size_t bytes);
  mutable std::mutex mutex_;
  std::map<CUdeviceptr, Range> ranges_;
  CUdeviceptr first_ = 0, next_ = 0, end_ = 0;
  std::atomic<std::uint64_t> device_bytes_{0};
};

// Something that becomes true once.
struct Completion {
  std::atomic<bool> done{false};
};

// A stream works off tasks in order, in a thread of its own.
class Stream {
 public:
  Stream();
  ~Stream();  // after its last task
  void put(std::function<void()> task);
  void synchronize();

 private:
  void work();
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> tasks_;
  bool busy_ = false, ending_ = false;
  std::mt19937_64 random_;
  std::thread thread_;
};

class Machine {
 public:
  static Machine& instance();

  Options options;
  Memory memory;
  std::atomic<bool> lost{false};
  std::atomic<std::uint64_t> allocations{0};  // so far, with those that failed
  struct Counts {
    std::atomic<std::uint64_t> contexts{0}, modules{0}, streams{0}, events{0}, graphs{0},
        allocations{0}, pinned{0}, registrations{0}, launches{0}, graph_launches{0};
  } counts;

  bool restart(const std::string& text);
  // Counts a launch; false: the device is lost.
  bool launch();
  // Counts an allocation; false: it is the one that fails.
  bool allocate() { return ++allocations != options.fail_alloc; }

  // For what waits on a completion.
  void finish(Completion& completion);
  void wait(const Completion& completion);

 private:
  Machine();
  std::mutex mutex_;
  std::condition_variable finished_;
};

// A kernel's name and what its arguments are.
struct Function;
const Function* find_function(const std::string& name);
// A launch whose arguments were copied: what it will do, or nothing if an address in it is none of
// the device's, or a dimension is none that it has.
std::function<bool()> make_launch(const Function& function, std::uint32_t groups,
                                  std::uint32_t lanes, void* const* parameters);

}  // namespace penstock::sim::cuda
#endif
