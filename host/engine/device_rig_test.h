// What the tests of the device engine share: a queue on a pool, and a device that does what a test
// tells it to.
#ifndef PENSTOCK_ENGINE_DEVICE_RIG_TEST_H_
#define PENSTOCK_ENGINE_DEVICE_RIG_TEST_H_

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <vector>

#include "penstock/engine/fake_device_test.h"
#include "penstock/engine/watching_platform_test.h"
#include "penstock/memory/temporary_pool_test.h"

namespace penstock {

inline Capabilities fake_capabilities() {
  Capabilities can = make_engine("scalar").value()->capabilities();
  can.name = "fake";
  can.synchronous = false;
  return can;
}

inline penstock_descriptor make(std::uint8_t opcode, std::uint8_t n_src, std::uint8_t n_dst,
                                std::uint64_t count = 0) {
  penstock_descriptor d{};
  d.opcode = opcode;
  d.version = 1;
  d.n_src = n_src;
  d.n_dst = n_dst;
  d.count = count;
  return d;
}

class DeviceEngineTest : public PoolTest {
 protected:
  void SetUp() override { open(Coherence::hardware); }
  void open(Coherence coherence) {
    close();
    if (pool_ == nullptr) {
      (void)Pool::destroy(platform_, spec_, true);
      create();
    }
    pool_ = map(watching_, 0, coherence);
    region_ = pool_->allocate(request(kMiB)).value();
    data_ = pool_->resolve(region_.address, kMiB);
    std::memset(data_, 0, kMiB);
    QueueConfig config;
    config.depth = 16;
    queue_ = Queue::create(pool_.get(), config).value();
    device_ = std::make_shared<FakeDevice>();
    engine_ = make_device_engine(fake_capabilities(), device_);
    watching_.written.clear();
    watching_.invalidated.clear();
  }
  void close() {
    queue_.reset();
    engine_.reset();
    pool_.reset();
  }
  void TearDown() override {
    close();
    PoolTest::TearDown();
  }

  penstock_address at(std::uint64_t offset) const { return region_.address + offset; }
  std::uint64_t& word(std::uint64_t offset) {
    return *reinterpret_cast<std::uint64_t*>(data_ + offset);
  }
  void submit(penstock_descriptor d) {
    d.cookie = ++cookie_;
    ASSERT_TRUE(queue_->submit(d));
  }
  void copy(std::uint64_t from, std::uint64_t to, std::uint64_t bytes = 8) {
    penstock_descriptor d = make(PENSTOCK_OP_COPY, 1, 1, bytes);
    d.src[0] = at(from);
    d.dst[0] = at(to);
    submit(d);
  }
  void signal(std::uint64_t offset, std::uint64_t value) {
    penstock_descriptor d = make(PENSTOCK_OP_SIGNAL, 1, 1);
    d.dst[0] = at(offset);
    d.src[0] = value;
    submit(d);
  }
  void wait(std::uint64_t offset, std::uint64_t value) {
    penstock_descriptor d = make(PENSTOCK_OP_WAIT, 2, 0);
    d.src[0] = at(offset);
    d.src[1] = value;
    submit(d);
  }
  std::uint32_t advance() { return engine_->advance(*queue_); }
  // Statuses of what completed, whose cookies have to go on where the last ones ended.
  std::vector<std::uint32_t> completed() {
    std::vector<std::uint32_t> statuses;
    penstock_completion c;
    while (queue_->poll(&c)) {
      EXPECT_EQ(c.cookie, ++last_cookie_);
      statuses.push_back(c.status);
      last_ = c;
    }
    return statuses;
  }

  WatchingPlatform watching_;
  std::unique_ptr<Pool> pool_;
  Region region_;
  std::byte* data_ = nullptr;
  std::shared_ptr<FakeDevice> device_;
  std::unique_ptr<Queue> queue_;
  std::unique_ptr<Engine> engine_;
  std::uint64_t cookie_ = 0, last_cookie_ = 0;
  penstock_completion last_{};
};

}  // namespace penstock
#endif
