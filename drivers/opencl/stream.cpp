#include "penstock/drivers/opencl/stream.h"

#include <algorithm>
#include <utility>

#include "penstock/base/log.h"
#include "penstock/drivers/kernels/launch.h"
#include "penstock/drivers/opencl/error.h"

namespace penstock::opencl {
namespace {

// Work items of a group, pieces of work for each, and the most groups; kernels stride over what is
// more. A GPU's neighbours run at once: so many groups as keep it busy are enough. A CPU runs a
// group's work items one after the other, each to its end: with little work for each, a group goes
// through memory from front to back, in as many places as there are pieces.
struct Shape {
  std::uint64_t lanes, pieces, most_groups;
};
Shape shape_of(const DeviceTraits& traits) {
  constexpr std::uint64_t kCpuGroups = 32768, kGroupsPerUnit = 16;
  const Shape shape =
      is_cpu(traits) ? Shape{256, 4, kCpuGroups} : Shape{256, 1, traits.units * kGroupsPerUnit};
  return {std::min<std::uint64_t>(shape.lanes, std::max<std::uint64_t>(traits.max_group, 1)),
          shape.pieces, shape.most_groups};
}

std::byte* bytes_at(const void* data) {
  return const_cast<std::byte*>(static_cast<const std::byte*>(data));
}

// Below 0 for a command that failed.
cl_int status_of(const cl::Event& event) {
  return event() == nullptr ? CL_COMPLETE : event.getInfo<CL_EVENT_COMMAND_EXECUTION_STATUS>();
}

}  // namespace

Result<std::unique_ptr<Stream>> Stream::open(std::shared_ptr<const Core> core, Pool* pool) {
  const std::string& name = core->name();
  return guarded(name, [&]() -> Result<std::unique_ptr<Stream>> {
    return std::unique_ptr<Stream>(new Stream(std::move(core), pool));
  });
}

Stream::Stream(std::shared_ptr<const Core> core, Pool* pool)
    : core_(std::move(core)), queue_(core_->context, core_->found.device) {
  staging_ = std::make_unique<Staging>(core_->context, core_->found.device, queue_,
                                       core_->options.chunk_bytes);
  if (pool != nullptr && core_->sharing == Sharing::objects)
    segments_ = core_->pool_objects->attach(*pool);
}

Stream::~Stream() { drain(); }

void Stream::drain() noexcept {
  const Status drained = guarded(core_->name(), [&]() -> Status {
    queue_.flush();
    staging_->flush();
    queue_.finish();
    staging_->finish();
    return {};
  });
  if (!drained.ok()) log::warn("opencl: {}", drained.message());
}

// An operation of many commands may fail in its middle. Then what it began has to end first.
Status Stream::start(const std::function<void()>& function) {
  began_ = false;
  staging_->begin();
  Status status = guarded(core_->name(), [&]() -> Status {
    function();
    return {};
  });
  if (!status.ok() && (began_ || staging_->began())) drain();
  return status;
}

cl::Kernel& Stream::kernel(const std::string& name) {
  const auto found = kernels_.find(name);
  if (found != kernels_.end()) return found->second;
  return kernels_.emplace(name, cl::Kernel(core_->folds, name.c_str())).first->second;
}

template <typename Arguments>
cl::Event Stream::launch(const std::string& name, const Binding& binding,
                         const Arguments& arguments, std::uint64_t items,
                         const std::vector<cl::Event>& after, const cl::Buffer* weights) {
  cl::Kernel& k = kernel(name);
  binding.set_arguments(k);
  k.setArg(kObjects, sizeof(arguments), &arguments);
  if (weights != nullptr) {
    if ((*weights)() != nullptr)
      k.setArg(kObjects + 1, *weights);
    else
      k.setArg(kObjects + 1, sizeof(cl_mem), nullptr);
  }
  const DeviceTraits& traits = core_->found.traits;
  const Shape shape = shape_of(traits);
  const std::uint64_t of_group = shape.lanes * shape.pieces;
  const std::uint64_t groups =
      std::clamp<std::uint64_t>((items + of_group - 1) / of_group, 1, shape.most_groups);
  cl::Event event;
  queue_.enqueueNDRangeKernel(k, cl::NullRange, cl::NDRange(groups * shape.lanes),
                              cl::NDRange(shape.lanes), after.empty() ? nullptr : &after, &event);
  began_ = true;
  last_kernel_ = event;
  return event;
}

// What staging still takes out of the device may be what the kernel reads.
void Stream::launch_shared(
    const std::function<cl::Event(const std::vector<cl::Event>& after)>& launch) {
  const cl::Event& out = staging_->last_out();
  std::vector<cl::Event> after;
  if (status_of(out) > CL_COMPLETE) after.push_back(out);
  last_shared_ = launch(after);
}

std::vector<cl::Event> Stream::before_staged() const {
  if (status_of(last_shared_) <= CL_COMPLETE) return {};
  return {last_shared_};
}

Status Stream::copy(void* const* dst, std::uint32_t n_dst, const void* src, std::uint64_t bytes) {
  return start([&] {
    std::vector<Extent> extents = {{src, bytes}};
    for (std::uint32_t d = 0; d < n_dst; ++d) extents.push_back({dst[d], bytes});
    Binding binding;
    std::vector<std::uint64_t> at;
    if (binding.bind(core_->sharing, core_->context, segments_, extents, &at)) {
      const auto arguments = kernels::copy_launch(at[0], &at[1], n_dst, bytes);
      launch_shared([&](const std::vector<cl::Event>& after) {
        return launch("penstock_copy", binding, arguments, kernels::work_items(arguments), after);
      });
      return;
    }
    std::vector<StagedOperand> operands = {{bytes_at(src), PENSTOCK_UINT8, 0, true, false, 0}};
    for (std::uint32_t d = 0; d < n_dst; ++d)
      operands.push_back({bytes_at(dst[d]), PENSTOCK_UINT8, 0, false, true, 0});
    staging_->run(operands, 1, bytes, {}, before_staged());
  });
}

Status Stream::reduce(const ReduceArguments& arguments) {
  if (arguments.copies())
    return copy(arguments.dst, arguments.n_dst, arguments.src[0], arguments.bytes());
  return start([&] { reduce_now(arguments); });
}

void Stream::reduce_now(const ReduceArguments& a) {
  const std::string name = kernels::reduce_kernel(a);
  const std::uint64_t out_bytes = penstock_operand_bytes(a.result_type(), a.block, a.count);
  std::vector<Extent> extents;
  for (std::uint32_t s = 0; s < a.n_src; ++s) extents.push_back({a.src[s], a.bytes()});
  for (std::uint32_t d = 0; d < a.n_dst; ++d) extents.push_back({a.dst[d], out_bytes});
  cl::Buffer weights;
  kernels::reduce_weights numbers{};
  const auto arguments_at = [&](const std::uint64_t* at, std::uint64_t count, std::uint32_t n_dst) {
    ReduceArguments part = a;
    part.count = count;
    part.n_dst = n_dst;
    return kernels::reduce_launch(part, at, at + a.n_src, &numbers);
  };
  Binding binding;
  std::vector<std::uint64_t> at;
  const bool shared = binding.bind(core_->sharing, core_->context, segments_, extents, &at);
  if (!shared) at.assign(extents.size(), 0);
  const kernels::reduce_arguments whole = arguments_at(at.data(), a.count, a.n_dst);
  if (a.weights != nullptr)
    weights = cl::Buffer(core_->context, CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR, sizeof(numbers),
                         &numbers);
  if (shared) {
    launch_shared([&](const std::vector<cl::Event>& after) {
      return launch(name, binding, whole, kernels::work_items(whole, name), after, &weights);
    });
    return;
  }
  std::vector<StagedOperand> operands;
  for (std::uint32_t s = 0; s < a.n_src; ++s)
    operands.push_back({bytes_at(a.src[s]), a.type, a.block, true, false, s});
  // The result goes out of one region to all destinations.
  for (std::uint32_t d = 0; d < a.n_dst; ++d)
    operands.push_back({bytes_at(a.dst[d]), a.result_type(), a.block, false, true, a.n_src});
  staging_->run(
      operands, a.n_src + 1, a.count,
      [&](const cl::Buffer& buffer, const std::uint64_t* offset, std::uint64_t count,
          const std::vector<cl::Event>& after) {
        Binding piece;
        piece.add(buffer);
        const kernels::reduce_arguments part = arguments_at(offset, count, 1);
        return launch(name, piece, part, kernels::work_items(part, name), after, &weights);
      },
      before_staged());
}

Status Stream::outer_step(const OuterStepArguments& arguments) {
  return start([&] { outer_step_now(arguments); });
}

void Stream::outer_step_now(const OuterStepArguments& a) {
  const std::string name = kernels::outer_step_kernel(a);
  const std::uint64_t state_bytes = a.count * sizeof(float);
  std::vector<Extent> extents;
  for (std::uint32_t s = 0; s < a.n_src; ++s)
    extents.push_back({a.src[s], penstock_operand_bytes(a.type, a.block, a.count)});
  extents.push_back({a.momentum, state_bytes});
  extents.push_back({a.parameters, state_bytes});
  Binding binding;
  std::vector<std::uint64_t> at;
  if (binding.bind(core_->sharing, core_->context, segments_, extents, &at)) {
    const auto arguments = kernels::outer_step_launch(a, at.data(), at[a.n_src], at[a.n_src + 1]);
    launch_shared([&](const std::vector<cl::Event>& after) {
      return launch(name, binding, arguments, kernels::work_items(arguments), after);
    });
    return;
  }
  std::vector<StagedOperand> operands;
  for (std::uint32_t s = 0; s < a.n_src; ++s)
    operands.push_back({bytes_at(a.src[s]), a.type, a.block, true, false, s});
  operands.push_back({bytes_at(a.momentum), PENSTOCK_F32, 0, true, true, a.n_src});
  operands.push_back({bytes_at(a.parameters), PENSTOCK_F32, 0, true, true, a.n_src + 1});
  staging_->run(
      operands, a.n_src + 2, a.count,
      [&](const cl::Buffer& buffer, const std::uint64_t* offset, std::uint64_t count,
          const std::vector<cl::Event>& after) {
        Binding piece;
        piece.add(buffer);
        OuterStepArguments part = a;
        part.count = count;
        const auto arguments =
            kernels::outer_step_launch(part, offset, offset[a.n_src], offset[a.n_src + 1]);
        return launch(name, piece, arguments, kernels::work_items(arguments), after);
      },
      before_staged());
}

Result<std::uint64_t> Stream::mark() {
  const Status flushed = guarded(core_->name(), [&]() -> Status {
    staging_->flush();
    queue_.flush();
    return {};
  });
  if (!flushed.ok()) {
    drain();
    return flushed;
  }
  open_marks_.push_back({++marks_, last_kernel_, staging_->last_out()});
  return marks_;
}

Result<bool> Stream::reached(std::uint64_t mark) {
  return guarded(core_->name(), [&]() -> Result<bool> {
    while (!open_marks_.empty() && open_marks_.front().number <= mark) {
      const Mark& next = open_marks_.front();
      for (const cl::Event* event : {&next.kernel, &next.out}) {
        const cl_int status = status_of(*event);
        if (status > CL_COMPLETE) return false;
        if (status == CL_COMPLETE) continue;
        drain();
        return error_of(status, "a command that was started", core_->name());
      }
      open_marks_.pop_front();
    }
    return true;
  });
}

}  // namespace penstock::opencl
