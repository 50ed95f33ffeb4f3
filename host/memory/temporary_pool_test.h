// A pool in /dev/shm for one test, gone with it.
#ifndef PENSTOCK_MEMORY_TEMPORARY_POOL_TEST_H_
#define PENSTOCK_MEMORY_TEMPORARY_POOL_TEST_H_

#include <gtest/gtest.h>
#include <unistd.h>

#include <memory>
#include <string>

#include "penstock/memory/pool.h"

namespace penstock {

inline constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

class PoolTest : public ::testing::Test {
 protected:
  void TearDown() override {
    // What a failed test left may not disturb the next.
    (void)Pool::destroy(platform_, spec_, true);
    (void)platform_.remove(spec_);
  }

  PoolConfig config(std::uint64_t bytes = 4 * kMiB, std::uint32_t devices = 1,
                    std::uint32_t hosts = 1) const {
    PoolConfig config;
    config.spec = spec_;
    config.bytes_per_device = bytes;
    config.devices = devices;
    config.hosts = hosts;
    return config;
  }
  void create(std::uint64_t bytes = 4 * kMiB, std::uint32_t devices = 1, std::uint32_t hosts = 1) {
    ASSERT_EQ(Pool::create(platform_, config(bytes, devices, hosts)).to_string(), "ok");
  }
  std::unique_ptr<Pool> map(std::uint32_t host = 0) const { return map(platform_, host); }
  std::unique_ptr<Pool> map(Platform& platform, std::uint32_t host = 0,
                            Coherence coherence = Coherence::hardware) const {
    MapOptions options;
    options.host_id = host;
    options.coherence = coherence;
    auto pool = Pool::map(platform, spec_, options);
    EXPECT_EQ(pool.status().to_string(), "ok");
    return pool.ok() ? std::move(pool).value() : nullptr;
  }
  static RegionRequest request(std::uint64_t bytes, const std::string& name = "",
                               std::int32_t device = -1, bool persistent = false) {
    RegionRequest request;
    request.bytes = bytes;
    request.name = name;
    request.device = device;
    request.persistent = persistent;
    return request;
  }

  Platform& platform_ = Platform::host();
  const std::string spec_ = "/dev/shm/penstock-test-" + std::to_string(::getpid());
};

}  // namespace penstock
#endif
