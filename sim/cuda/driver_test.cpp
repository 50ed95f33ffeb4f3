// The engine `cuda` over the stand-in driver: what is not conformance. Errors, leaks, graphs,
// memory of the device, staging.
#pragma GCC visibility push(default)
#include <cuda.h>
#pragma GCC visibility pop
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <thread>
#include <vector>

#include "penstock/drivers/cuda/device.h"
#include "penstock/queue/queue.h"
#include "penstock/sim/cuda/standin.h"

namespace penstock::cuda {
namespace {

using testing::HasSubstr;

constexpr char kDriver[] = PENSTOCK_TEST_CUDA_DRIVER;

std::string argument(const std::string& more = "") {
  return std::string("0;driver=") + kDriver + more;
}

// Each test begins with a machine of its own, and leaves nothing of the driver behind.
class CudaTest : public testing::Test {
 protected:
  void SetUp() override { restart(""); }
  void TearDown() override {
    queue_.reset();
    engine_.reset();
    const penstock_cuda_standin_counts left = penstock_cuda_standin_live();
    EXPECT_EQ(left.contexts, 0u);
    EXPECT_EQ(left.modules, 0u);
    EXPECT_EQ(left.streams, 0u);
    EXPECT_EQ(left.events, 0u);
    EXPECT_EQ(left.graphs, 0u);
    EXPECT_EQ(left.allocations, 0u);
    EXPECT_EQ(left.pinned, 0u);
    EXPECT_EQ(left.registrations, 0u);
  }
  static void restart(const std::string& options) {
    ASSERT_EQ(penstock_cuda_standin_restart(options.c_str()), 0) << options;
  }
  void open(const std::string& more = "") {
    Result<std::shared_ptr<Engine>> made = cuda_engine_factory().make(argument(more));
    ASSERT_TRUE(made.ok()) << made.status().to_string();
    engine_ = std::move(made).value();
    queue_ = Queue::create(nullptr, QueueConfig{}).value();
  }
  static penstock_descriptor copy(const void* from, void* to, std::uint64_t bytes) {
    penstock_descriptor d{};
    d.opcode = PENSTOCK_OP_COPY;
    d.version = PENSTOCK_DESCRIPTOR_VERSION;
    d.n_src = d.n_dst = 1;
    d.count = bytes;
    d.src[0] = penstock_address_host(from);
    d.dst[0] = penstock_address_host(to);
    return d;
  }
  static penstock_descriptor sum(const float* a, const float* b, float* to, std::uint64_t count) {
    penstock_descriptor d = copy(a, to, count);
    d.opcode = PENSTOCK_OP_REDUCE;
    d.type = d.out_type = PENSTOCK_F32;
    d.n_src = 2;
    d.src[1] = penstock_address_host(b);
    return d;
  }
  // Submits all of them at once and returns how each ended.
  std::vector<penstock_completion> run(const std::vector<penstock_descriptor>& descriptors) {
    for (const penstock_descriptor& d : descriptors) EXPECT_TRUE(queue_->submit(d));
    std::vector<penstock_completion> ended;
    penstock_completion c{};
    while (ended.size() < descriptors.size()) {
      engine_->advance(*queue_);
      while (queue_->poll(&c)) ended.push_back(c);
      std::this_thread::yield();
    }
    return ended;
  }
  std::uint32_t run(const penstock_descriptor& d) { return run(std::vector{d})[0].status; }

  std::shared_ptr<Engine> engine_;
  std::unique_ptr<Queue> queue_;
};

// Memory of the device as an application has it.
class DeviceFloats {
 public:
  explicit DeviceFloats(const std::vector<float>& values) : count_(values.size()) {
    cuDevicePrimaryCtxRetain(&context_, 0);
    cuCtxPushCurrent(context_);
    EXPECT_EQ(cuMemAlloc(&address_, count_ * sizeof(float)), CUDA_SUCCESS);
    EXPECT_EQ(cuMemcpyHtoD(address_, values.data(), count_ * sizeof(float)), CUDA_SUCCESS);
  }
  ~DeviceFloats() {
    cuMemFree(address_);
    cuCtxPopCurrent(&context_);
    cuDevicePrimaryCtxRelease(0);
  }
  float* data() const { return reinterpret_cast<float*>(address_); }
  std::vector<float> read() const {
    std::vector<float> values(count_);
    EXPECT_EQ(cuMemcpyDtoH(values.data(), address_, count_ * sizeof(float)), CUDA_SUCCESS);
    return values;
  }

 private:
  std::size_t count_;
  CUcontext context_ = nullptr;
  CUdeviceptr address_ = 0;
};

std::vector<float> numbers(std::size_t n, float first) {
  std::vector<float> values(n);
  std::iota(values.begin(), values.end(), first);
  return values;
}

TEST_F(CudaTest, SaysThatThereIsNoDriver) {
  const auto made = cuda_engine_factory().make("driver=/nowhere/libcuda.so.1");
  EXPECT_EQ(made.status().code(), Code::unsupported);
  EXPECT_THAT(made.status().message(), HasSubstr("no CUDA driver"));
}

TEST_F(CudaTest, SaysWhatItMayNotDo) {
  restart("deny=1");
  const auto made =
      cuda_engine_factory().make(std::string("driver=") + PENSTOCK_TEST_CUDA_DRIVER_TOO);
  EXPECT_EQ(made.status().code(), Code::permission_denied);
  EXPECT_THAT(made.status().message(), HasSubstr("cuInit: CUDA_ERROR_NOT_PERMITTED"));
}

TEST_F(CudaTest, NamesTheDevicesThatThereAre) {
  restart("devices=2");
  const auto made = cuda_engine_factory().make(std::string("2;driver=") + kDriver);
  EXPECT_EQ(made.status().code(), Code::not_found);
  EXPECT_THAT(made.status().message(), HasSubstr("they are 0 to 1"));
}

TEST_F(CudaTest, RefusesOptionsThatItDoesNotKnow) {
  for (const char* wrong : {"x", "0;staged=2", "0;stage=1", "staged", "-1", "0;1"}) {
    const auto made = cuda_engine_factory().make(wrong);
    EXPECT_EQ(made.status().code(), Code::invalid_argument) << wrong;
  }
}

TEST_F(CudaTest, SaysThatItIsTheStandIn) {
  open();
  EXPECT_THAT(engine_->capabilities().description, HasSubstr("stand-in, no GPU"));
}

TEST_F(CudaTest, ReducesInDeviceMemoryWithoutStaging) {
  open();
  const DeviceFloats a(numbers(1000, 1)), b(numbers(1000, 2)), to(std::vector<float>(1000));
  EXPECT_EQ(run(sum(a.data(), b.data(), to.data(), 1000)), PENSTOCK_OK);
  const std::vector<float> result = to.read();
  for (std::size_t i = 0; i < 1000; ++i) EXPECT_EQ(result[i], 2.0f * static_cast<float>(i) + 3);
  EXPECT_EQ(penstock_cuda_standin_live().pinned, 0u);
}

TEST_F(CudaTest, MixesDeviceAndHostMemory) {
  restart("delay_us=200;seed=4");
  open();
  // More than one chunk of staging.
  const std::size_t n = (std::size_t{3} << 20) + 7;
  const std::vector<float> a = numbers(n, 1);
  const DeviceFloats b(numbers(n, 2));
  std::vector<float> to(n);
  EXPECT_EQ(run(sum(a.data(), b.data(), to.data(), n)), PENSTOCK_OK);
  for (std::size_t i = 0; i < n; ++i) ASSERT_EQ(to[i], a[i] + (a[i] + 1)) << i;
  EXPECT_GT(penstock_cuda_standin_live().pinned, 0u);
}

// What is copied in on one stream was written by another one a moment before.
TEST_F(CudaTest, KeepsTheOrderAcrossItsStreams) {
  restart("delay_us=500;seed=9");
  open();
  const std::size_t n = 300'000;
  std::vector<float> host = numbers(n, 1), between(n), to(n);
  const DeviceFloats device(std::vector<float>(n, 0.0f));
  std::vector<penstock_descriptor> work;
  work.push_back(copy(host.data(), device.data(), n * 4));
  work.push_back(copy(device.data(), between.data(), n * 4));
  work.push_back(sum(between.data(), device.data(), to.data(), n));
  work.push_back(sum(to.data(), between.data(), between.data(), n));
  for (const penstock_completion& c : run(work)) EXPECT_EQ(c.status, PENSTOCK_OK);
  for (std::size_t i = 0; i < n; ++i) {
    ASSERT_EQ(to[i], 2 * host[i]) << i;
    ASSERT_EQ(between[i], to[i] + host[i]) << i;
  }
}

// The first chunk of an operation reads what the last one of the operation before it writes.
TEST_F(CudaTest, KeepsTheOrderFromChunkToChunk) {
  restart("delay_us=2000;seed=2");
  open();
  const std::size_t n = 1'500'000;  // two chunks
  const DeviceFloats device(numbers(n, 1));
  std::vector<float> between(n), to(1000);
  const std::vector<penstock_descriptor> work = {copy(device.data(), between.data(), n * 4),
                                                 copy(&between[n - 1000], to.data(), 4000)};
  for (const penstock_completion& c : run(work)) EXPECT_EQ(c.status, PENSTOCK_OK);
  EXPECT_EQ(to, std::vector<float>(between.end() - 1000, between.end()));
}

TEST_F(CudaTest, RefusesWhatRunsOverTheEndOfAnAllocation) {
  open();
  const DeviceFloats a(numbers(100, 0)), b(numbers(100, 0)), to(numbers(99, 7));
  EXPECT_EQ(run(sum(a.data(), b.data(), to.data(), 100)), PENSTOCK_OUT_OF_RANGE);
  EXPECT_EQ(to.read(), numbers(99, 7));
  EXPECT_EQ(run(sum(a.data(), b.data(), to.data(), 99)), PENSTOCK_OK);
}

TEST_F(CudaTest, RefusesAListOfSourcesInDeviceMemory) {
  open();
  const DeviceFloats list(numbers(100, 0)), to(numbers(4, 0));
  penstock_descriptor d = sum(to.data(), to.data(), to.data(), 4);
  d.n_src = 9;
  d.flags = PENSTOCK_FLAG_SRC_LIST;
  d.src[0] = penstock_address_host(list.data());
  d.src[1] = 0;
  EXPECT_EQ(run(d), PENSTOCK_OUT_OF_RANGE);
}

TEST_F(CudaTest, RepeatedGroupsOfDescriptorsGoAsAGraph) {
  open();
  const DeviceFloats a(numbers(600, 1)), b(numbers(600, 5)), to(std::vector<float>(600, -1.0f));
  for (std::uint64_t round = 0; round < 4; ++round) {
    std::vector<penstock_descriptor> work;
    for (std::uint64_t i = 0; i < 6; ++i)
      work.push_back(sum(a.data() + 100 * i, b.data() + round, to.data() + 100 * i, 100 - i));
    for (const penstock_completion& c : run(work)) ASSERT_EQ(c.status, PENSTOCK_OK);
    const std::vector<float> result = to.read();
    for (std::size_t i = 0; i < 6; ++i)
      for (std::size_t k = 0; k < 100 - i; ++k)
        ASSERT_EQ(result[100 * i + k], static_cast<float>(100 * i + k + 1 + k + round + 5));
  }
  EXPECT_EQ(penstock_cuda_standin_live().graph_launches, 3u);
}

TEST_F(CudaTest, WithoutGraphsIfSoConfigured) {
  open(";graphs=0");
  const DeviceFloats a(numbers(600, 1)), to(std::vector<float>(600));
  for (int round = 0; round < 3; ++round)
    run(std::vector<penstock_descriptor>(6, sum(a.data(), a.data(), to.data(), 600)));
  EXPECT_EQ(penstock_cuda_standin_live().graph_launches, 0u);
}

TEST_F(CudaTest, NoPinnedMemoryIsNoSpace) {
  open();
  const std::vector<float> a = numbers(10, 1);
  std::vector<float> to(10);
  restart("fail_alloc=1");
  EXPECT_EQ(run(sum(a.data(), a.data(), to.data(), 10)), PENSTOCK_NO_SPACE);
  EXPECT_EQ(to, std::vector<float>(10));
  EXPECT_EQ(run(sum(a.data(), a.data(), to.data(), 10)), PENSTOCK_OK);
  EXPECT_EQ(to[9], 20);
}

TEST_F(CudaTest, ALostDeviceFailsWhatItHadAndSaysSo) {
  restart("lost_after=3;delay_us=100");
  open();
  const DeviceFloats a(numbers(1000, 1)), to(std::vector<float>(1000));
  std::vector<penstock_descriptor> work(8, sum(a.data(), a.data(), to.data(), 1000));
  std::uint32_t failed = 0;
  for (int round = 0; round < 3; ++round)
    for (const penstock_completion& c : run(work))
      if (c.status != PENSTOCK_OK) {
        EXPECT_EQ(c.status, PENSTOCK_IO_ERROR);
        ++failed;
      }
  EXPECT_GE(failed, 16u);
  const Status accepts = engine_->accepts(work[0]);
  EXPECT_EQ(accepts.code(), Code::io_error);
  EXPECT_THAT(accepts.message(), HasSubstr("CUDA_ERROR_LAUNCH_FAILED"));
  const auto again = cuda_engine_factory().make(argument());
  EXPECT_EQ(again.status().code(), Code::io_error);
  EXPECT_THAT(again.status().message(), HasSubstr("cuDevicePrimaryCtxRetain"));
}

TEST_F(CudaTest, ALostDeviceInTheMiddleOfStaging) {
  restart("lost_after=1;delay_us=100");
  open();
  const std::size_t n = std::size_t{3} << 20;
  const std::vector<float> a = numbers(n, 1);
  std::vector<float> to(n);
  EXPECT_EQ(run(sum(a.data(), a.data(), to.data(), n)), PENSTOCK_IO_ERROR);
}

TEST_F(CudaTest, ACancelledQueueWaitsForTheDevice) {
  restart("delay_us=2000");
  open();
  const DeviceFloats a(numbers(1000, 1)), to(std::vector<float>(1000));
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(queue_->submit(sum(a.data(), a.data(), to.data(), 1000)));
  }
  engine_->advance(*queue_);
  queue_->cancel();
  penstock_completion c{};
  for (int ended = 0; ended < 5;) {
    engine_->advance(*queue_);
    while (queue_->poll(&c)) {
      EXPECT_TRUE(c.status == PENSTOCK_CANCELLED || c.status == PENSTOCK_OK);
      ++ended;
    }
  }
}

TEST_F(CudaTest, ThePoolIsRegisteredOnceAndGivenBack) {
  const std::string path = "/dev/shm/penstock-cuda-test-" + std::to_string(getpid());
  PoolConfig config;
  config.spec = path;
  config.bytes_per_device = 4 << 20;
  ASSERT_TRUE(Pool::create(Platform::host(), config).ok());
  {
    const auto pool = Pool::map(Platform::host(), path).value();
    open();
    queue_ = Queue::create(pool.get(), QueueConfig{}).value();
    const auto other = Queue::create(pool.get(), QueueConfig{}).value();
    const Region region = pool->allocate({"r", RegionKind::user, 65536, -1, false}).value();
    penstock_descriptor d = copy(nullptr, nullptr, 4096);
    d.src[0] = region.address;
    d.dst[0] = region.address + 8192;
    std::memset(pool->resolve(region.address, 4096), 0x3c, 4096);
    EXPECT_EQ(run(d), PENSTOCK_OK);
    EXPECT_EQ(std::memcmp(pool->resolve(region.address, 4096),
                          pool->resolve(region.address + 8192, 4096), 4096),
              0);
    other->submit(d);
    penstock_completion c{};
    while (!other->poll(&c)) engine_->advance(*other);
    EXPECT_EQ(c.status, PENSTOCK_OK);
    EXPECT_EQ(penstock_cuda_standin_live().registrations, 1u);
    EXPECT_EQ(penstock_cuda_standin_live().pinned, 0u);
    queue_.reset();
  }
  EXPECT_EQ(penstock_cuda_standin_live().registrations, 0u);
  ASSERT_TRUE(Pool::destroy(Platform::host(), path).ok());
}

}  // namespace
}  // namespace penstock::cuda
