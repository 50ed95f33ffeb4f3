// Bytes per second of the engine `cuda` on operands in device memory and in pinned memory of the
// host, beside what the device's own copies reach there.
//
//   cuda [--probe] [--mebibytes N] [--engine TEXT]
//
// --probe only says whether the engine can run: exit status 0, or 1 with the reason.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "penstock/drivers/cuda/device.h"
#include "penstock/engine/accept.h"
#include "penstock/queue/queue.h"

namespace penstock::cuda {
namespace {

using Clock = std::chrono::steady_clock;

struct Arguments {
  bool probe = false;
  std::uint64_t mebibytes = 256;
  std::string engine = "0";
};

bool parse(int argc, char** argv, Arguments* out) {
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    if (name == "--probe") {
      out->probe = true;
    } else if (name == "--mebibytes" && i + 1 < argc) {
      out->mebibytes = std::strtoull(argv[++i], nullptr, 10);
    } else if (name == "--engine" && i + 1 < argc) {
      out->engine = argv[++i];
    } else {
      return false;
    }
  }
  return out->mebibytes >= 1 && out->mebibytes <= 16384;
}

// The best of some rounds, in seconds; the first one is not counted.
Result<double> best(const std::function<Status()>& round) {
  PENSTOCK_TRY(round());
  double least = 1e30;
  for (int i = 0; i < 5; ++i) {
    const auto began = Clock::now();
    PENSTOCK_TRY(round());
    least = std::min(least, std::chrono::duration<double>(Clock::now() - began).count());
  }
  return least;
}

// Operands of one kind of memory.
class Memory {
 public:
  static Result<std::unique_ptr<Memory>> make(std::shared_ptr<const Context> context, bool device,
                                              std::uint64_t bytes, int n) {
    std::unique_ptr<Memory> memory(new Memory(std::move(context), device));
    const Driver& driver = memory->context_->driver();
    const Current current(driver, memory->context_->handle());
    for (int i = 0; i < n; ++i) {
      CUdeviceptr address = 0;
      void* host = nullptr;
      const CUresult result = device
                                  ? driver.cuMemAlloc(&address, bytes)
                                  : driver.cuMemHostAlloc(&host, bytes, CU_MEMHOSTALLOC_DEVICEMAP);
      PENSTOCK_TRY(
          driver.check(result, fmt::format("memory for operand {} of {} bytes", i, bytes)));
      if (host != nullptr) std::memset(host, 0, bytes);
      memory->operands_.push_back(device ? reinterpret_cast<std::byte*>(address)
                                         : static_cast<std::byte*>(host));
    }
    return memory;
  }
  ~Memory() {
    const Driver& driver = context_->driver();
    const Current current(driver, context_->handle());
    for (std::byte* operand : operands_) {
      if (device_) {
        driver.cuMemFree(reinterpret_cast<CUdeviceptr>(operand));
      } else {
        driver.cuMemFreeHost(operand);
      }
    }
  }
  std::byte* operator[](std::size_t i) const { return operands_[i]; }

 private:
  Memory(std::shared_ptr<const Context> context, bool device)
      : context_(std::move(context)), device_(device) {}
  const std::shared_ptr<const Context> context_;
  const bool device_;
  std::vector<std::byte*> operands_;
};

// The device's own copies between two operands: bytes read and written per second.
Result<double> copy_limit(const Context& context, const Memory& memory, std::uint64_t bytes) {
  const Driver& driver = context.driver();
  const Current current(driver, context.handle());
  CUstream stream = nullptr;
  PENSTOCK_TRY(
      driver.check(driver.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate"));
  const auto address = [](const std::byte* data) {
    return static_cast<CUdeviceptr>(reinterpret_cast<std::uintptr_t>(data));
  };
  const Result<double> seconds = best([&]() -> Status {
    PENSTOCK_TRY(driver.check(
        driver.cuMemcpyAsync(address(memory[1]), address(memory[0]), bytes, stream), "copy"));
    return driver.check(driver.cuStreamSynchronize(stream), "copy");
  });
  driver.cuStreamDestroy(stream);
  PENSTOCK_TRY(seconds.status());
  return 2.0 * static_cast<double>(bytes) / seconds.value();
}

Status run(Engine& engine, Queue& queue, const penstock_descriptor& d) {
  queue.submit(d);
  penstock_completion completion{};
  while (!queue.poll(&completion)) engine.advance(queue);
  return describe_refusal(d, completion.status, completion.field, completion.detail);
}

Status measure(Engine& engine, const Context& context, const Memory& memory, const char* where,
               std::uint64_t bytes) {
  PENSTOCK_ASSIGN(const double limit, copy_limit(context, memory, bytes));
  fmt::print("\n{}: the device's copies move {:.1f} GB/s, read and written\n", where, limit / 1e9);
  fmt::print("{:<18} {:>10} {:>8}\n", "operation", "GB/s", "of that");
  PENSTOCK_ASSIGN(std::unique_ptr<Queue> queue, Queue::create(nullptr, QueueConfig{}));
  const auto row = [&](const std::string& name, const penstock_descriptor& d,
                       std::uint64_t moved) -> Status {
    PENSTOCK_ASSIGN(const double seconds, best([&] { return run(engine, *queue, d); }));
    const double rate = static_cast<double>(moved) / seconds;
    fmt::print("{:<18} {:>10.1f} {:>7.0f}%\n", name, rate / 1e9, 100 * rate / limit);
    return {};
  };
  penstock_descriptor d{};
  d.version = PENSTOCK_DESCRIPTOR_VERSION;
  d.opcode = PENSTOCK_OP_COPY;
  d.n_src = d.n_dst = 1;
  d.count = bytes;
  d.src[0] = penstock_address_host(memory[0]);
  d.dst[0] = penstock_address_host(memory[8]);
  PENSTOCK_TRY(row("COPY", d, 2 * bytes));
  for (const std::uint32_t type : {PENSTOCK_F32, PENSTOCK_BF16}) {
    for (const std::uint32_t n : {2u, 4u, 8u}) {
      d.opcode = PENSTOCK_OP_REDUCE;
      d.type = d.out_type = static_cast<std::uint8_t>(type);
      d.n_src = static_cast<std::uint8_t>(n);
      d.count = bytes / penstock_type_size(type);
      for (std::uint32_t s = 0; s < PENSTOCK_INLINE_SOURCES; ++s)
        d.src[s] = s < n ? penstock_address_host(memory[s]) : 0;
      PENSTOCK_TRY(
          row(fmt::format("REDUCE {} n={}", penstock_type_name(type), n), d, (n + 1) * bytes));
    }
  }
  return {};
}

Status run_all(const Arguments& arguments) {
  const Result<std::shared_ptr<Engine>> made = cuda_engine_factory().make(arguments.engine);
  if (arguments.probe) return made.status();
  if (!made.ok()) {
    fmt::print("not measured: {}\n", made.status().message());
    return {};
  }
  const std::shared_ptr<Engine>& engine = made.value();
  fmt::print("{}\n", engine->capabilities().description);
  PENSTOCK_ASSIGN(const Options options, Options::parse(arguments.engine));
  PENSTOCK_ASSIGN(const Driver* driver, load_driver(driver_path(options.driver)));
  PENSTOCK_ASSIGN(std::shared_ptr<const Context> context, Context::open(*driver, options.ordinal));
  const std::uint64_t bytes = arguments.mebibytes << 20;
  {
    PENSTOCK_ASSIGN(std::unique_ptr<Memory> memory, Memory::make(context, true, bytes, 9));
    PENSTOCK_TRY(measure(*engine, *context, *memory, "device memory", bytes));
  }
  PENSTOCK_ASSIGN(std::unique_ptr<Memory> memory, Memory::make(context, false, bytes, 9));
  return measure(*engine, *context, *memory, "pinned memory of the host", bytes);
}

}  // namespace
}  // namespace penstock::cuda

int main(int argc, char** argv) {
  penstock::cuda::Arguments arguments;
  if (!penstock::cuda::parse(argc, argv, &arguments)) {
    fmt::print(stderr, "usage: cuda [--probe] [--mebibytes 1..16384] [--engine TEXT]\n");
    return 2;
  }
  if (const penstock::Status status = penstock::cuda::run_all(arguments); !status.ok()) {
    fmt::print(stderr, "cuda: {}\n", status.message());
    return 1;
  }
  return 0;
}
