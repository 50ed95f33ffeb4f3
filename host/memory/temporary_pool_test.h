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
  // Null when it cannot be mapped within this time.
  std::unique_ptr<Pool> map_with_patience(std::uint32_t timeout_ms) const {
    MapOptions options;
    options.lock_timeout_ms = timeout_ms;
    auto pool = Pool::map(platform_, spec_, options);
    return pool.ok() ? std::move(pool).value() : nullptr;
  }
  // For a process whose pool another one is about to make.
  std::unique_ptr<Pool> map_when_there() const {
    const std::uint64_t deadline_ns = platform_.now_ns() + 10'000'000'000;
    while (true) {
      auto pool = Pool::map(platform_, spec_);
      if (pool.ok()) return std::move(pool).value();
      const bool later = pool.status().code() == Code::not_found;
      if (!later || platform_.now_ns() > deadline_ns) {
        ADD_FAILURE() << pool.status().to_string();
        return nullptr;
      }
      platform_.sleep_ns(1'000'000);
    }
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
