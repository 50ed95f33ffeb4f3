// The engine on a device: how memory is reached, the order of its stream, and what fails.
#include "penstock/drivers/opencl/opencl_engine.h"

#include <gmock/gmock.h>

#include <cstring>

#include "penstock/drivers/opencl/opencl_rig_test.h"
#include "penstock/engine/conformance.h"

namespace penstock::opencl {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::uint32_t kOk = PENSTOCK_OK;
constexpr std::uint64_t kPage = 4096;

// Pages that have others between them.
class Apart {
 public:
  explicit Apart(std::size_t n) : words_(n * 3 * kPage / 8 + kPage / 8) {}
  std::uint64_t* page(std::size_t i) {
    const auto start = reinterpret_cast<std::uintptr_t>(words_.data());
    return reinterpret_cast<std::uint64_t*>((start + kPage - 1) / kPage * kPage + 3 * kPage * i);
  }

 private:
  std::vector<std::uint64_t> words_;
};

class OpenclEngineTest : public OpenclTest {
 protected:
  // A sum of many sources that are too far apart for a kernel's memory objects.
  void expect_a_wide_sum(const char* how) {
    Apart memory(14);
    std::vector<const void*> src;
    for (std::size_t s = 0; s < 12; ++s) {
      for (std::size_t i = 0; i < 500; ++i) memory.page(s)[i] = (s + 1) * 1000 + i;
      src.push_back(memory.page(s));
    }
    // One of the sources is written before, one of the results is used after.
    for (std::size_t i = 0; i < 500; ++i) memory.page(12)[i] = i;
    const auto statuses =
        run({copy_of(memory.page(12), memory.page(3), 4000), sum_of(src, memory.page(13), 500),
             copy_of(memory.page(13), memory.page(0), 4000)});
    EXPECT_THAT(statuses, Each(kOk)) << how;
    for (std::uint64_t i = 0; i < 500; ++i)
      ASSERT_EQ(memory.page(0)[i], (78 - 4) * 1000 + 11 * i + i) << how << ' ' << i;
  }
};

TEST_F(OpenclEngineTest, StagedAndSharedKeepTheOrderOfOneStream) {
  open();
  make_queue();
  expect_a_wide_sum("as it is");
  open(";staged=1;chunk=65536");
  make_queue();
  expect_a_wide_sum("staged");
  EXPECT_THAT(engine_->capabilities().description, HasSubstr("memory staged"));
}

TEST_F(OpenclEngineTest, AChainOfStagedOperationsSeesWhatWasWrittenBefore) {
  open(";staged=1;chunk=65536");
  make_queue();
  constexpr std::uint64_t kCount = 60000;  // many pieces
  std::vector<std::uint64_t> a(kCount), b(kCount), c(kCount);
  for (std::uint64_t i = 0; i < kCount; ++i) a[i] = i, b[i] = 3 * i;
  EXPECT_THAT(
      run({sum_of({a.data(), b.data()}, c.data(), kCount),
           sum_of({c.data(), a.data()}, a.data(), kCount), copy_of(a.data(), b.data(), kCount * 8),
           sum_of({a.data(), b.data(), c.data()}, c.data(), kCount)}),
      Each(kOk));
  for (std::uint64_t i = 0; i < kCount; ++i) ASSERT_EQ(c[i], 14 * i) << i;
}

TEST_F(OpenclEngineTest, PoolMemoryIsOneObjectForAllQueues) {
  open();
  if (core_->sharing != Sharing::objects) GTEST_SKIP() << "the device does not share memory";
  create(8 * kMiB, 2);
  const auto pool = map();
  faults_->host_buffers = 0;
  make_queue(pool.get());
  const auto second = Queue::create(pool.get(), QueueConfig{}).value();
  const Region region = pool->allocate(request(kMiB)).value();
  penstock_descriptor d = copy_of(nullptr, nullptr, 4096);
  d.src[0] = region.address;
  d.dst[0] = region.address + 65536;
  std::memset(pool->resolve(region.address, 4096), 0x5a, 4096);
  ASSERT_TRUE(second->submit(d));
  while (engine_->advance(*second) == 0) platform_.yield();
  faults_->writes = faults_->reads = 0;
  EXPECT_THAT(run({d}), ElementsAre(kOk));
  EXPECT_EQ(faults_->host_buffers, 2u);  // one for each memory device
  EXPECT_EQ(faults_->writes + faults_->reads, 0u);
  EXPECT_EQ(std::memcmp(pool->resolve(region.address + 65536, 4096),
                        pool->resolve(region.address, 4096), 4096),
            0);
  queue_.reset();
}

// What lies across two objects is staged.
TEST_F(OpenclEngineTest, APoolLargerThanAnAllocationIsInSegments) {
  faults_->tell.info[0] = {CL_DEVICE_MAX_MEM_ALLOC_SIZE, 3 * kMiB};
  open();
  if (core_->sharing != Sharing::objects) GTEST_SKIP() << "the device does not share memory";
  create(8 * kMiB);
  const auto pool = map();
  make_queue(pool.get());
  const Region region = pool->allocate(request(6 * kMiB)).value();
  auto* words = reinterpret_cast<std::uint64_t*>(pool->resolve(region.address, 6 * kMiB));
  constexpr std::uint64_t kCount = 5 * kMiB / 2 / 8;
  for (std::uint64_t i = 0; i < kCount; ++i) words[i] = i * i;
  penstock_descriptor d = copy_of(nullptr, nullptr, kCount * 8);
  d.src[0] = region.address;
  d.dst[0] = region.address + 3 * kMiB;
  EXPECT_THAT(run({d}), ElementsAre(kOk));
  EXPECT_GT(faults_->writes, 0u);
  for (std::uint64_t i = 0; i < kCount; ++i) ASSERT_EQ(words[3 * kMiB / 8 + i], i * i) << i;
  queue_.reset();
}

TEST_F(OpenclEngineTest, APoolThatTheDeviceDoesNotTakeIsStaged) {
  open();
  if (core_->sharing != Sharing::objects) GTEST_SKIP() << "the device does not share memory";
  create(8 * kMiB);
  const auto pool = map();
  make_queue(pool.get());
  faults_->fail("clCreateBuffer", CL_OUT_OF_RESOURCES, 0, 1);
  const Region region = pool->allocate(request(kMiB)).value();
  auto* words = reinterpret_cast<std::uint64_t*>(pool->resolve(region.address, kMiB));
  for (std::uint64_t i = 0; i < 64; ++i) words[i] = i + 1;
  penstock_descriptor d = copy_of(nullptr, nullptr, 512);
  d.src[0] = region.address;
  d.dst[0] = region.address + 65536;
  EXPECT_THAT(run({d}), ElementsAre(kOk));
  EXPECT_EQ(words[65536 / 8 + 63], 64u);
  queue_.reset();
}

// What a device says of its memory is tried.
TEST_F(OpenclEngineTest, ADeviceThatOnlySaysThatItSharesMemoryIsStaged) {
  faults_->tell.copies_host_memory = true;
  open();
  EXPECT_EQ(core_->sharing, Sharing::none);
  make_queue();
  expect_a_wide_sum("staged after all");
}
TEST_F(OpenclEngineTest, ADeviceOfItsOwnMemoryIsStaged) {
  faults_->tell.info[0] = {0x1035, 0};  // CL_DEVICE_HOST_UNIFIED_MEMORY
  open();
  EXPECT_EQ(core_->sharing, Sharing::none);
  EXPECT_THAT(engine_->capabilities().description, HasSubstr("memory staged"));
  make_queue();
  expect_a_wide_sum("staged");
}

// PoCL's processor reaches everything, and does not say so; then it takes any address.
TEST_F(OpenclEngineTest, SystemSvmReachesMemoryByAddress) {
  faults_->tell.info[0] = {CL_DEVICE_SVM_CAPABILITIES, CL_DEVICE_SVM_COARSE_GRAIN_BUFFER |
                                                           CL_DEVICE_SVM_FINE_GRAIN_BUFFER |
                                                           CL_DEVICE_SVM_FINE_GRAIN_SYSTEM};
  open();
  if (core_->sharing != Sharing::system)
    GTEST_SKIP() << "this device has no system SVM, whatever it is made to say";
  make_queue();
  faults_->host_buffers = faults_->writes = 0;
  expect_a_wide_sum("by address");
  EXPECT_EQ(faults_->host_buffers + faults_->writes, 0u);
}

TEST_F(OpenclEngineTest, MemoryOfTheDeviceRunsOut) {
  open(";staged=1;chunk=65536");
  make_queue();
  std::vector<std::uint64_t> a(30000, 7), b(30000);
  faults_->tell.most_device_bytes = 65536 + 1000;  // one of three buffers
  EXPECT_THAT(run({copy_of(a.data(), b.data(), 240000)}),
              ElementsAre(std::uint32_t{PENSTOCK_NO_SPACE}));
  EXPECT_THAT(run({copy_of(a.data(), b.data(), 8)}), ElementsAre(std::uint32_t{PENSTOCK_NO_SPACE}));
  faults_->tell.most_device_bytes = 0;
  EXPECT_THAT(run({copy_of(a.data(), b.data(), 240000)}), ElementsAre(kOk));
  EXPECT_EQ(b.back(), 7u);
}

TEST_F(OpenclEngineTest, AnErrorNamesTheCallTheDeviceAndTheReason) {
  open();
  auto stream = Stream::open(core_, nullptr);
  ASSERT_TRUE(stream.ok());
  std::uint64_t src[64] = {}, dst[64] = {};
  void* const to = dst;
  faults_->fail("clEnqueueNDRangeKernel", CL_OUT_OF_RESOURCES, 0, 1);
  EXPECT_EQ(stream.value()->copy(&to, 1, src, sizeof(src)).to_string(),
            "no_space: clEnqueueNDRangeKernel on " + name() + ": CL_OUT_OF_RESOURCES");
  faults_->fail("clEnqueueNDRangeKernel", CL_INVALID_KERNEL_ARGS, 0, 1);
  EXPECT_EQ(stream.value()->copy(&to, 1, src, sizeof(src)).to_string(),
            "internal: clEnqueueNDRangeKernel on " + name() + ": CL_INVALID_KERNEL_ARGS");
  faults_->fail("clEnqueueNDRangeKernel", -9999, 0, 1);
  EXPECT_THAT(stream.value()->copy(&to, 1, src, sizeof(src)).message(),
              HasSubstr(": CL error -9999"));
  EXPECT_TRUE(stream.value()->copy(&to, 1, src, sizeof(src)).ok());
  stream.value()->drain();
  faults_->fail("clCreateCommandQueueWithProperties", CL_OUT_OF_HOST_MEMORY);
  EXPECT_THAT(Stream::open(core_, nullptr).status().message(), HasSubstr("clCreateCommandQueue"));
  faults_->fail("clCreateContext", CL_DEVICE_NOT_AVAILABLE);
  EXPECT_EQ(open_core(options()).status().to_string(),
            "io_error: clCreateContext on " + name() + ": CL_DEVICE_NOT_AVAILABLE");
}

// In the middle of an operation of many pieces: it fails, and the device lets go of its memory.
TEST_F(OpenclEngineTest, AnOperationThatFailsInItsMiddleEndsWhatItBegan) {
  open(";staged=1;chunk=65536");
  make_queue();
  std::vector<std::uint64_t> a(100000), b(100000);
  for (std::uint64_t i = 0; i < a.size(); ++i) a[i] = i;
  EXPECT_THAT(run({copy_of(a.data(), b.data(), 800000)}), ElementsAre(kOk));
  faults_->finishes = 0;
  faults_->fail("clEnqueueReadBuffer", CL_OUT_OF_RESOURCES, 4, 1);
  EXPECT_THAT(run({copy_of(a.data(), b.data(), 800000)}),
              ElementsAre(std::uint32_t{PENSTOCK_NO_SPACE}));
  EXPECT_GT(faults_->finishes, 0u);
  std::fill(b.begin(), b.end(), 0);
  EXPECT_THAT(run({copy_of(a.data(), b.data(), 800000)}), ElementsAre(kOk));
  EXPECT_EQ(b, a);
}

TEST_F(OpenclEngineTest, ALostDeviceIsSaidToBeLost) {
  for (const char* how : {"a command", "clFlush"}) {
    faults_->heal();
    open();
    make_queue();
    std::vector<std::uint64_t> a(100), b(100);
    const penstock_descriptor d = copy_of(a.data(), b.data(), 800);
    EXPECT_THAT(run({d}), ElementsAre(kOk));
    if (how[0] == 'a')
      faults_->tell.event_status = CL_OUT_OF_RESOURCES;
    else
      faults_->fail(how, CL_DEVICE_NOT_AVAILABLE);
    constexpr std::uint32_t kLost = PENSTOCK_IO_ERROR;
    EXPECT_THAT(run({d, d, d}), ElementsAre(kLost, kLost, kLost));
    const Status refused = engine_->accepts(d);
    EXPECT_EQ(refused.code(), Code::io_error);
    EXPECT_THAT(refused.message(), HasSubstr("opencl: the device is lost: "));
    EXPECT_THAT(refused.message(), HasSubstr(std::string(how) + " "));
    EXPECT_THAT(refused.message(), HasSubstr(name()));
    EXPECT_THAT(run({d}), ElementsAre(kLost));
  }
}

TEST_F(OpenclEngineTest, AQueueThatGoesWaitsForItsWork) {
  open();
  make_queue();
  std::vector<std::uint64_t> a(1 << 20, 5), b(1 << 20);
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(queue_->submit(copy_of(a.data(), b.data(), 8 << 20)));
  engine_->advance(*queue_);
  faults_->finishes = 0;
  queue_.reset();
  EXPECT_GT(faults_->finishes, 0u);
  EXPECT_EQ(b, a);
  EXPECT_EQ(faults_->events, 0);
}

}  // namespace
}  // namespace penstock::opencl
