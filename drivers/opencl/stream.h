// One queue's in-order stream on a device.
#ifndef PENSTOCK_DRIVERS_OPENCL_STREAM_H_
#define PENSTOCK_DRIVERS_OPENCL_STREAM_H_

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "penstock/drivers/opencl/reach.h"
#include "penstock/drivers/opencl/staging.h"
#include "penstock/drivers/opencl/table_program.h"
#include "penstock/engine/device_engine.h"

namespace penstock::kernels {
class SelectPlan;
class UpdatePlan;
}  // namespace penstock::kernels

namespace penstock::opencl {

// What the streams of a device share.
struct Core {
  FoundDevice found;
  Options options;
  Sharing sharing = Sharing::none;
  cl::Context context;
  cl::Program folds;
  std::unique_ptr<PoolObjects> pool_objects;  // null where nothing is shared
  std::unique_ptr<const TableProgram> tables;

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
  Status select(const SelectArguments& arguments) override;
  Status update(const UpdateArguments& arguments) override;
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
  Status start(const std::function<void()>& function);
  cl::Kernel& kernel(const std::string& name);
  template <typename Arguments>
  cl::Event launch(const std::string& name, const Binding& binding, const Arguments& arguments,
                   std::uint64_t items, const std::vector<cl::Event>& after,
                   const cl::Buffer* weights = nullptr);
  void launch_shared(const std::function<cl::Event(const std::vector<cl::Event>& after)>& launch);
  std::vector<cl::Event> before_staged() const;
  void reduce_now(const ReduceArguments& arguments);
  void outer_step_now(const OuterStepArguments& arguments);

  // stream_table.cpp
  struct TableBuffers {
    cl::Buffer inputs, scratch, results, table;  // the last two of tables that are staged
    std::uint64_t input_bytes = 0, scratch_bytes = 0, result_bytes = 0, table_bytes = 0;
  };
  struct TablePlaces {
    std::uint64_t table = 0, inputs = 0, scratch = 0, results = 0;  // addresses of kernels
    bool staged = false;
    std::vector<cl::Event> after;
  };
  struct HeldInputs {
    cl::Event taken;
    std::vector<std::byte> bytes;
  };
  Status start_table(bool changes, const std::function<void()>& function);
  cl::Kernel& table_kernel(const cl::Program& program, const std::string& name);
  void write_inputs(std::vector<std::byte> inputs);
  void release_inputs();
  template <typename Arguments>
  void launch_tables(const cl::Program& program, const Binding& binding,
                     const std::vector<kernels::TableLaunch>& launches,
                     const Arguments& arguments_of, std::vector<cl::Event> after);
  TablePlaces place_table(std::byte* table, std::uint64_t table_bytes, std::byte* results,
                          std::uint64_t result_bytes, Binding* binding);
  void take_back(std::byte* table, std::uint64_t begin, std::uint64_t end);
  void select_now(const SelectArguments& arguments, const cl::Program& program,
                  const kernels::SelectPlan& plan);
  void update_now(const UpdateArguments& arguments, const cl::Program& program,
                  const kernels::UpdatePlan& plan);

  const std::shared_ptr<const Core> core_;
  Segments segments_;
  cl::CommandQueue queue_;
  std::unique_ptr<Staging> staging_;
  std::map<std::string, cl::Kernel> kernels_;
  std::map<std::string, cl::Kernel> table_kernels_;
  TableBuffers table_buffers_;
  std::deque<HeldInputs> held_inputs_;
  bool table_kernel_ran_ = false;  // since start_table()
  cl::Event last_table_;           // of what goes out of table_buffers_
  cl::Event last_kernel_;          // of any kind
  cl::Event last_shared_;          // of a kernel that works on the process's memory
  bool began_ = false;             // something, since start()
  std::uint64_t marks_ = 0;
  std::deque<Mark> open_marks_;
};

}  // namespace penstock::opencl
#endif
