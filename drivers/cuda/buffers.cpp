// Device memory of the application as buffers of collectives.
#include <deque>
#include <utility>
#include <vector>

#include "penstock/drivers/cuda/device.h"
#include "penstock/engine/device_memory.h"

namespace penstock::cuda {
namespace {

CUdeviceptr pointer_of(const void* data) {
  return static_cast<CUdeviceptr>(reinterpret_cast<std::uintptr_t>(data));
}

// Copies of one direction, in order on a stream of their own.
class Direction {
 public:
  explicit Direction(const Driver& driver) : driver_(driver) {}
  Status open() {
    return driver_.check(driver_.cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING),
                         "cuStreamCreate");
  }
  void close() {
    if (stream_ == nullptr) return;
    driver_.cuStreamSynchronize(stream_);
    for (const Mark& mark : marks_) driver_.cuEventDestroy(mark.event);
    for (CUevent event : spare_) driver_.cuEventDestroy(event);
    driver_.cuStreamDestroy(stream_);
  }
  Status copy(CUdeviceptr to, CUdeviceptr from, std::uint64_t bytes) {
    return driver_.check(driver_.cuMemcpyAsync(to, from, bytes, stream_),
                         fmt::format("cuMemcpyAsync of {} bytes", bytes));
  }
  Result<std::uint64_t> mark() {
    CUevent event = nullptr;
    if (spare_.empty()) {
      PENSTOCK_TRY(
          driver_.check(driver_.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING), "cuEventCreate"));
    } else {
      event = spare_.back();
      spare_.pop_back();
    }
    marks_.push_back({++made_, event});
    PENSTOCK_TRY(driver_.check(driver_.cuEventRecord(event, stream_), "cuEventRecord"));
    return made_;
  }
  Status wait(std::uint64_t mark) {
    while (!marks_.empty() && marks_.front().number <= mark) {
      PENSTOCK_TRY(
          driver_.check(driver_.cuEventSynchronize(marks_.front().event), "cuEventSynchronize"));
      spare_.push_back(marks_.front().event);
      marks_.pop_front();
    }
    return {};
  }

 private:
  struct Mark {
    std::uint64_t number;
    CUevent event;
  };
  const Driver& driver_;
  CUstream stream_ = nullptr;
  std::uint64_t made_ = 0;
  std::deque<Mark> marks_;  // oldest first
  std::vector<CUevent> spare_;
};

class Copies final : public DeviceCopies {
 public:
  static Result<std::unique_ptr<DeviceCopies>> open(std::shared_ptr<const Context> context) {
    const Current current(context->driver(), context->handle());
    std::unique_ptr<Copies> copies(new Copies(std::move(context)));
    PENSTOCK_TRY(copies->reads_.open());
    PENSTOCK_TRY(copies->writes_.open());
    return std::unique_ptr<DeviceCopies>(std::move(copies));
  }
  ~Copies() override {
    const Current current(driver_, context_->handle());
    reads_.close();
    writes_.close();
  }

  Result<std::shared_ptr<std::byte>> allocate(std::uint64_t bytes) override {
    const Current current(driver_, context_->handle());
    void* memory = nullptr;
    PENSTOCK_TRY(driver_.check(driver_.cuMemHostAlloc(&memory, bytes, CU_MEMHOSTALLOC_PORTABLE),
                               fmt::format("cuMemHostAlloc of {} bytes of pinned memory", bytes)));
    return std::shared_ptr<std::byte>(static_cast<std::byte*>(memory),
                                      [context = context_](std::byte* data) {
                                        const Current again(context->driver(), context->handle());
                                        context->driver().cuMemFreeHost(data);
                                      });
  }
  Status read(void* to, const void* device, std::uint64_t bytes) override {
    const Current current(driver_, context_->handle());
    return reads_.copy(pointer_of(to), pointer_of(device), bytes);
  }
  Status write(void* device, const void* from, std::uint64_t bytes) override {
    const Current current(driver_, context_->handle());
    return writes_.copy(pointer_of(device), pointer_of(from), bytes);
  }
  Result<std::uint64_t> mark_reads() override {
    const Current current(driver_, context_->handle());
    return reads_.mark();
  }
  Result<std::uint64_t> mark_writes() override {
    const Current current(driver_, context_->handle());
    return writes_.mark();
  }
  Status wait_reads(std::uint64_t mark) override {
    const Current current(driver_, context_->handle());
    return reads_.wait(mark);
  }
  Status wait_writes(std::uint64_t mark) override {
    const Current current(driver_, context_->handle());
    return writes_.wait(mark);
  }

 private:
  explicit Copies(std::shared_ptr<const Context> context)
      : context_(std::move(context)),
        driver_(context_->driver()),
        reads_(driver_),
        writes_(driver_) {}

  const std::shared_ptr<const Context> context_;
  const Driver& driver_;
  Direction reads_, writes_;
};

class Buffers final : public DeviceMemory {
 public:
  explicit Buffers(const Driver& driver) : driver_(driver) {}
  bool holds(const void* data) const override {
    int ordinal = 0;
    return is_device_memory(driver_, data, &ordinal);
  }
  Result<std::unique_ptr<DeviceCopies>> open(const void* data) override {
    int ordinal = 0;
    if (!is_device_memory(driver_, data, &ordinal))
      return error(Code::invalid_argument, "{} is not in the memory of a CUDA device", data);
    PENSTOCK_ASSIGN(std::shared_ptr<const Context> context, Context::open(driver_, ordinal));
    return Copies::open(std::move(context));
  }

 private:
  const Driver& driver_;
};

}  // namespace

std::shared_ptr<DeviceMemory> find_cuda_memory() {
  const Driver* driver = present_driver(driver_path(""));
  if (driver == nullptr) return nullptr;
  return std::make_shared<Buffers>(*driver);
}

}  // namespace penstock::cuda
