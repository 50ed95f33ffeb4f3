#include "penstock/memory/pool.h"

#include <gtest/gtest.h>
#include <unistd.h>

namespace penstock {
namespace {

TEST(Pool, makes_maps_allocates_and_destroys) {
  Platform& platform = Platform::host();
  PoolConfig config;
  config.spec = "/dev/shm/penstock-pool-test-" + std::to_string(::getpid());
  config.bytes_per_device = 4 << 20;
  ASSERT_EQ(Pool::create(platform, config).to_string(), "ok");
  {
    auto pool = Pool::map(platform, config.spec);
    ASSERT_EQ(pool.status().to_string(), "ok");
    RegionRequest request;
    request.name = "first";
    request.bytes = 5000;
    auto region = (*pool)->allocate(request);
    ASSERT_EQ(region.status().to_string(), "ok");
    EXPECT_EQ(region->bytes, 8192u);
    EXPECT_EQ((*pool)->free(*region).to_string(), "ok");
    EXPECT_EQ((*pool)->free(*region).code(), Code::not_found);
    EXPECT_EQ(Pool::destroy(platform, config.spec).code(), Code::busy);
  }
  EXPECT_EQ(Pool::destroy(platform, config.spec).to_string(), "ok");
}

}  // namespace
}  // namespace penstock
