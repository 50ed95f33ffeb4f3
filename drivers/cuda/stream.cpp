#include "penstock/drivers/cuda/stream.h"

#include <utility>

#include "penstock/drivers/kernels/launch.h"

namespace penstock::cuda {

using kernels::u64;

Stream::~Stream() {
  const Current current(driver_, device_.context()->handle());
  staging_->synchronize();
  driver_.cuStreamSynchronize(stream_);
  staging_.reset();
  table_memory_.reset();
  launcher_.reset();
  for (const Mark& mark : waiting_) driver_.cuEventDestroy(mark.event);
  for (CUevent event : events_) driver_.cuEventDestroy(event);
  driver_.cuStreamDestroy(stream_);
}

// Whatever fails after a part of an operation is on the device leaves it in a state that nobody
// knows: the stream is given up.
Status Stream::note(Status status) {
  if (!status.ok() && lost_.ok()) lost_ = status;
  return status;
}

Status Stream::add(std::vector<Operand>* operands, const void* data, std::uint32_t type,
                   std::uint32_t block, std::uint64_t count, bool read, bool written) const {
  PENSTOCK_ASSIGN(const Place place, reach_.find(data, penstock_operand_bytes(type, block, count)));
  auto* bytes = static_cast<std::byte*>(const_cast<void*>(data));
  operands->push_back({bytes, place, type, block, read, written});
  return {};
}

Status Stream::run(const std::vector<Operand>& operands, std::uint64_t count,
                   const ChunkWork& work) {
  bool staged = false;
  std::vector<u64> at;
  at.reserve(operands.size());
  for (const Operand& operand : operands) {
    staged = staged || operand.place.staged;
    at.push_back(operand.place.address);
  }
  if (!staged) return work(at.data(), 0, count);
  PENSTOCK_TRY(note(launcher_->flush()));
  const Status status = staging_->run(operands, count, [&](const u64* chunk, u64 first, u64 n) {
    PENSTOCK_TRY(work(chunk, first, n));
    return launcher_->flush();
  });
  // No pinned memory: nothing was started, and there may be some when other work is over.
  if (status.code() == Code::no_space) return status;
  return note(status);
}

Status Stream::launch_copy(const u64* at, std::uint32_t n_dst, std::uint64_t bytes) {
  const kernels::copy_arguments k = kernels::copy_launch(at[0], at + 1, n_dst, bytes);
  return launch("penstock_copy", device_.kernels().groups(kernels::work_items(k)), Kernels::kLanes,
                k);
}

Status Stream::copy(void* const* dst, std::uint32_t n_dst, const void* src, std::uint64_t bytes) {
  PENSTOCK_TRY(lost_);
  const Current current(driver_, device_.context()->handle());
  std::vector<Operand> operands;
  PENSTOCK_TRY(add(&operands, src, PENSTOCK_UINT8, 0, bytes, true, false));
  for (std::uint32_t d = 0; d < n_dst; ++d)
    if (dst[d] != src) PENSTOCK_TRY(add(&operands, dst[d], PENSTOCK_UINT8, 0, bytes, false, true));
  if (operands.size() == 1) return {};
  // One destination is what the device's copy engines are for, and they leave its cores alone;
  // below some size a kernel among kernels costs less.
  constexpr std::uint64_t kCopyEngine = 256 * 1024;
  const bool whole = !operands[0].place.staged && !operands[1].place.staged;
  if (whole && operands.size() == 2 && bytes >= kCopyEngine) {
    PENSTOCK_TRY(note(launcher_->flush()));
    return note(driver_.check(
        driver_.cuMemcpyAsync(operands[1].place.address, operands[0].place.address, bytes, stream_),
        fmt::format("cuMemcpyAsync of {} bytes", bytes)));
  }
  const auto n = static_cast<std::uint32_t>(operands.size() - 1);
  return run(operands, bytes,
             [this, n](const u64* at, u64, u64 count) { return launch_copy(at, n, count); });
}

Status Stream::reduce(const ReduceArguments& a) {
  if (a.copies()) return copy(a.dst, a.n_dst, a.src[0], a.bytes());
  PENSTOCK_TRY(lost_);
  const Current current(driver_, device_.context()->handle());
  std::vector<Operand> operands;
  operands.reserve(a.n_src + a.n_dst);
  for (std::uint32_t s = 0; s < a.n_src; ++s)
    PENSTOCK_TRY(add(&operands, a.src[s], a.type, a.block, a.count, true, false));
  for (std::uint32_t d = 0; d < a.n_dst; ++d)
    PENSTOCK_TRY(add(&operands, a.dst[d], a.result_type(), a.block, a.count, false, true));
  const std::string kernel = kernels::reduce_kernel(a);
  return run(operands, a.count, [&](const u64* at, u64, u64 n) {
    ReduceArguments part = a;
    part.count = n;
    kernels::reduce_weights weights{};
    const kernels::reduce_arguments k = kernels::reduce_launch(part, at, at + a.n_src, &weights);
    return launch(kernel, device_.kernels().groups(kernels::work_items(k, kernel)), Kernels::kLanes,
                  k, weights);
  });
}

Status Stream::outer_step(const OuterStepArguments& a) {
  PENSTOCK_TRY(lost_);
  const Current current(driver_, device_.context()->handle());
  std::vector<Operand> operands;
  for (std::uint32_t s = 0; s < a.n_src; ++s)
    PENSTOCK_TRY(add(&operands, a.src[s], a.type, a.block, a.count, true, false));
  for (void* state : {a.momentum, a.parameters})
    PENSTOCK_TRY(add(&operands, state, PENSTOCK_F32, 0, a.count, true, true));
  const std::string kernel = kernels::outer_step_kernel(a);
  return run(operands, a.count, [&](const u64* at, u64, u64 n) {
    OuterStepArguments part = a;
    part.count = n;
    const kernels::outer_step_arguments k =
        kernels::outer_step_launch(part, at, at[a.n_src], at[a.n_src + 1]);
    return launch(kernel, device_.kernels().groups(kernels::work_items(k)), Kernels::kLanes, k);
  });
}

Result<std::uint64_t> Stream::mark() {
  PENSTOCK_TRY(lost_);
  const Current current(driver_, device_.context()->handle());
  PENSTOCK_TRY(note(launcher_->flush()));
  CUevent event = nullptr;
  if (events_.empty()) {
    PENSTOCK_TRY(note(
        driver_.check(driver_.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING), "cuEventCreate")));
  } else {
    event = events_.back();
    events_.pop_back();
  }
  waiting_.push_back({++marks_, event});
  PENSTOCK_TRY(note(driver_.check(driver_.cuEventRecord(event, stream_), "cuEventRecord")));
  staging_->marked(marks_);
  table_memory_->marked(marks_);
  return marks_;
}

Result<bool> Stream::reached(std::uint64_t mark) {
  PENSTOCK_TRY(lost_);
  const Current current(driver_, device_.context()->handle());
  while (!waiting_.empty() && waiting_.front().number <= mark) {
    const CUresult result = driver_.cuEventQuery(waiting_.front().event);
    if (result == CUDA_ERROR_NOT_READY) return false;
    PENSTOCK_TRY(note(driver_.check(result, "what the device executed, at cuEventQuery")));
    events_.push_back(waiting_.front().event);
    staging_->reached(waiting_.front().number);
    table_memory_->reached(waiting_.front().number);
    waiting_.pop_front();
  }
  return true;
}

Result<std::unique_ptr<DeviceStream>> make_stream(const CudaDevice& device, Pool* pool) {
  const Driver& driver = device.context()->driver();
  const Current current(driver, device.context()->handle());
  CUstream stream = nullptr;
  PENSTOCK_TRY(
      driver.check(driver.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate"));
  return std::unique_ptr<DeviceStream>(std::make_unique<Stream>(device, stream, pool));
}

}  // namespace penstock::cuda
