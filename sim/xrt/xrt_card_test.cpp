// The engine `card` over XRT, unmodified, against the card's RTL behind the stand-in.
#include <gmock/gmock.h>

#include <cstring>

#include "penstock/sim/xrt/xrt_card_rig_test.h"

namespace penstock::sim {
namespace {

using ::testing::HasSubstr;

TEST_F(XrtCardTest, CopiesInPlace) {
  open("user_memory=1;seed=4");
  const auto q = queue();
  for (const std::uint32_t status : copies(*q, 16)) EXPECT_EQ(status, std::uint32_t{PENSTOCK_OK});
  EXPECT_TRUE(copied(16));
}

// All ones from some access on: what is under way fails, and nothing is taken any more.
TEST_F(XrtCardTest, ALostDevice) {
  open("user_memory=1;seed=5;lost_after=140");
  const auto q = queue();
  int failed = 0;
  for (int round = 0; round < 20; ++round)
    for (const std::uint32_t status : copies(*q, 8)) {
      EXPECT_TRUE(status == PENSTOCK_OK || status == PENSTOCK_IO_ERROR) << status;
      if (failed > 0) {
        EXPECT_EQ(status, std::uint32_t{PENSTOCK_IO_ERROR});
      }
      failed += status == PENSTOCK_IO_ERROR ? 1 : 0;
    }
  EXPECT_GT(failed, 0);
  penstock_descriptor nop{};
  nop.version = PENSTOCK_DESCRIPTOR_VERSION;
  EXPECT_EQ(engine_->accepts(nop).code(), Code::io_error);
}

TEST_F(XrtCardTest, ADeviceWhoseRegistersFail) {
  open("user_memory=1;seed=6;register_errors_after=140");
  const auto q = queue();
  int failed = 0;
  for (int round = 0; round < 20; ++round)
    for (const std::uint32_t status : copies(*q, 8)) failed += status == PENSTOCK_IO_ERROR ? 1 : 0;
  EXPECT_GT(failed, 0);
}

TEST_F(XrtCardTest, NoMemoryForRings) {
  open("user_memory=1;most_buffers=0");
  const auto q = queue();
  for (const std::uint32_t status : copies(*q, 2)) EXPECT_NE(status, std::uint32_t{PENSTOCK_OK});
}

// On copies: what the driver forgets to move is not there.
TEST_F(XrtCardTest, CopiesOnCopies) {
  open("seed=7");
  const auto q = queue();
  for (const std::uint32_t status : copies(*q, 16)) EXPECT_EQ(status, std::uint32_t{PENSTOCK_OK});
  EXPECT_TRUE(copied(16));
  EXPECT_THAT(engine_->capabilities().description, HasSubstr("on copies"));
  EXPECT_TRUE(engine_->capabilities().host_memory);
}

// More sources than a descriptor names, of more bytes than the card's staging memory holds at once.
TEST_F(XrtCardTest, AReduceGoesInSteps) {
  open("seed=9", ";memory=staged;staging=1");
  constexpr std::uint32_t kSources = 11;
  constexpr std::uint64_t kCount = 30'001;
  RegionRequest request;
  request.bytes = (kSources + 1) * kCount * 4 + 8 * kSources;
  const Region region = pool_->allocate(request).value();
  std::byte* data = pool_->resolve(region.address, request.bytes);
  const auto at = [&](std::uint32_t source) { return 8 * kSources + source * kCount * 4; };
  penstock_descriptor d{};
  d.opcode = PENSTOCK_OP_REDUCE;
  d.version = PENSTOCK_DESCRIPTOR_VERSION;
  d.type = d.out_type = PENSTOCK_INT32;
  d.redop = PENSTOCK_SUM;
  d.n_src = kSources;
  d.n_dst = 1;
  d.flags = PENSTOCK_FLAG_SRC_LIST;
  d.count = kCount;
  d.src[0] = region.address;
  d.dst[0] = region.address + at(kSources);
  for (std::uint32_t source = 0; source < kSources; ++source) {
    const penstock_address address = region.address + at(source);
    std::memcpy(data + 8 * source, &address, 8);
    for (std::uint64_t i = 0; i < kCount; ++i) {
      const auto value = static_cast<std::int32_t>((i + 1) * (source + 3));
      std::memcpy(data + at(source) + 4 * i, &value, 4);
    }
  }
  const auto q = queue();
  ASSERT_TRUE(q->submit(d));
  penstock_completion c{};
  const std::uint64_t deadline = Platform::host().now_ns() + 60'000'000'000u;
  while (!q->poll(&c) && Platform::host().now_ns() < deadline) engine_->advance(*q);
  ASSERT_EQ(c.status, std::uint32_t{PENSTOCK_OK});
  for (std::uint64_t i = 0; i < kCount; ++i) {
    std::int32_t value;
    std::memcpy(&value, data + at(kSources) + 4 * i, 4);
    ASSERT_EQ(value, static_cast<std::int32_t>((i + 1) * (3 + 13) * kSources / 2)) << i;
  }
}

}  // namespace
}  // namespace penstock::sim
