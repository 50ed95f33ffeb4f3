// One queue's in-order stream on a device.
#ifndef PENSTOCK_DRIVERS_OPENCL_STREAM_H_
#define PENSTOCK_DRIVERS_OPENCL_STREAM_H_

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "penstock/drivers/opencl/reach.h"
#include "penstock/drivers/opencl/staging.h"
#include "penstock/engine/device_engine.h"

namespace penstock::opencl {

// What the streams of a device share.
struct Core {
  FoundDevice found;
  Options options;
  Sharing sharing = Sharing::none;
  cl::Context context;
  cl::Program folds;
  std::unique_ptr<PoolObjects> pool_objects;  // null where nothing is shared

  const std::string& name() const { return found.traits.name; }
};

// An operation whose memory the device reaches is a kernel on it; any other is staged. Both kinds
// keep the order of the stream.
class Stream final : public DeviceStream {
 public:
  // `pool` may be null.
  static Result<std::unique_ptr<Stream>> open(std::shared_ptr<const Core> core, Pool* pool);
  ~Stream() override;

  Status copy(void* const* dst, std::uint32_t n_dst, const void* src, std::uint64_t bytes) override;
  Status reduce(const ReduceArguments& arguments) override;
  Status outer_step(const OuterStepArguments& arguments) override;
  Result<std::uint64_t> mark() override;
  Result<bool> reached(std::uint64_t mark) override;
  // Waits until the device is done.
  void drain() noexcept;

 private:
  struct Mark {
    std::uint64_t number;
    cl::Event kernel, out;  // the last of each, or null
  };

  Stream(std::shared_ptr<const Core> core, Pool* pool);
  template <typename Function>
  Status start(Function&& function);
  cl::Kernel& kernel(const std::string& name);
  template <typename Arguments>
  cl::Event launch(const std::string& name, const Binding& binding, const Arguments& arguments,
                   std::uint64_t items, const std::vector<cl::Event>& after,
                   const cl::Buffer* weights = nullptr);
  void launch_shared(const std::function<cl::Event(const std::vector<cl::Event>& after)>& launch);
  std::vector<cl::Event> before_staged() const;
  void reduce_now(const ReduceArguments& arguments);
  void outer_step_now(const OuterStepArguments& arguments);

  const std::shared_ptr<const Core> core_;
  Segments segments_;
  cl::CommandQueue queue_;
  std::unique_ptr<Staging> staging_;
  std::map<std::string, cl::Kernel> kernels_;
  cl::Event last_kernel_;  // of any kind
  cl::Event last_shared_;  // of a kernel that works on the process's memory
  bool began_ = false;     // something, since start()
  std::uint64_t marks_ = 0;
  std::deque<Mark> open_marks_;
};

}  // namespace penstock::opencl
#endif
