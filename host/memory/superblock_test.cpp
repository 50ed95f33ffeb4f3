#include "penstock/memory/superblock.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <vector>

#include "penstock/base/checksum.h"

namespace penstock {
namespace {

using ::testing::HasSubstr;

constexpr std::uint64_t kBytes = 8 << 20;
constexpr PoolId kId = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};

using Page = std::vector<unsigned char>;

Page page_of(const Superblock& block) {
  Page page(kPageBytes);
  std::memcpy(page.data(), &block, sizeof block);
  return page;
}

Superblock sample(std::uint32_t index = 0) { return make_superblock(kId, index, 2, kBytes, 2, 64); }

// The checksum made right again after a change.
Page sealed(Page page) {
  const std::uint32_t sum = crc32c(page.data(), 124);
  std::memcpy(page.data() + 124, &sum, 4);
  return page;
}

Result<Superblock> read(const Page& page, std::uint64_t device_bytes = kBytes) {
  return read_superblock("pool.0", page.data(), page.size(), device_bytes);
}

TEST(Superblock, bytes_are_where_the_format_says) {
  const Page page = page_of(sample(1));
  EXPECT_EQ(std::memcmp(page.data(), "PENSTOCK", 8), 0);
  EXPECT_EQ(page[8], 2);   // version
  EXPECT_EQ(page[16], 1);  // pool id
  EXPECT_EQ(page[31], 16);
  EXPECT_EQ(page[32], 1);     // device index
  EXPECT_EQ(page[36], 2);     // device count
  EXPECT_EQ(page[42], 0x80);  // 8 MiB
  EXPECT_EQ(page[48], 2);     // hosts
  EXPECT_EQ(page[52], 64);    // region slots
  EXPECT_EQ(page[57], 1);     // 256 lease slots
  EXPECT_EQ(page[81], 0x10);  // data at 4096 on a device that is not the first
}

TEST(Superblock, geometry_of_device_0) {
  const Superblock block = sample();
  EXPECT_EQ(block.lease_offset, 4096u);
  EXPECT_EQ(block.table_offset, 4096u + 2 * 256 * 64);
  EXPECT_EQ(block.agreement_offset, block.table_offset + 2 * 64 * 128);
  // 8 histories of 2 decisions, 2 hosts and 256 bytes, then 2 lines; up to a whole page.
  EXPECT_EQ(block.data_offset, block.agreement_offset + 3 * 4096);
  EXPECT_EQ(block.arena_bytes % 4096, 0u);
  EXPECT_LE(block.data_offset + 2 * block.arena_bytes, kBytes);
  EXPECT_GT(block.data_offset + 2 * block.arena_bytes, kBytes - 2 * 4096);
}

TEST(Superblock, the_smallest_pool_has_room_for_every_host) {
  const Superblock block = make_superblock(kId, 0, 1, 2 << 20, 16, region_slots_for(2 << 20, 16));
  EXPECT_TRUE(read(page_of(block), 2 << 20).ok());
  EXPECT_GE(block.arena_bytes, 64u << 10);
}

TEST(Superblock, reads_back) {
  const auto block = read(page_of(sample()));
  ASSERT_EQ(block.status().to_string(), "ok");
  EXPECT_EQ(block.value().pool_id, kId);
  EXPECT_TRUE(read(page_of(sample()), kBytes * 2).ok()) << "a longer file is fine";
}

TEST(Superblock, too_short) {
  Page page = page_of(sample());
  page.resize(100);
  EXPECT_EQ(read(page, 100).status().to_string(),
            "corrupt: pool.0 is no pool: it has 100 bytes, but a superblock takes 4096");
  EXPECT_EQ(read(Page{}, 0).status().code(), Code::corrupt);
}

TEST(Superblock, not_a_pool) {
  Page page(kPageBytes, 0);
  EXPECT_EQ(read(page).status().code(), Code::corrupt);
  EXPECT_THAT(read(page).status().message(), HasSubstr("pool.0 is no pool"));
}

TEST(Superblock, another_version_comes_before_its_checksum) {
  Page page = page_of(sample());
  page[8] = 7;
  EXPECT_EQ(read(page).status().to_string(),
            "unsupported: pool.0 is a pool of format version 7; this build reads version 2");
}

TEST(Superblock, every_flipped_bit_is_noticed) {
  const Page good = page_of(sample());
  for (std::size_t bit = 0; bit < sizeof(Superblock) * 8; ++bit) {
    Page page = good;
    page[bit / 8] ^= static_cast<unsigned char>(1u << (bit % 8));
    EXPECT_FALSE(read(page).ok()) << "bit " << bit;
  }
}

// With the checksum made right, so that it is the number itself that is refused.
TEST(Superblock, contradictions_are_noticed) {
  struct Case {
    std::size_t at;
    unsigned char value;
    const char* message;
  };
  const Case cases[] = {
      {12, 1, "contradicts itself"},
      {32, 2, "this device's index"},
      {36, 0, "devices"},
      {36, 17, "devices"},
      {40, 1, "multiple of 4096"},
      {42, 0, "multiple of 4096"},
      {48, 0, "hosts"},
      {48, 17, "hosts"},
      {52, 5, "region slots"},
      {54, 1, "region slots"},
      {56, 1, "lease slots"},
      {60, 1, "contradicts itself"},
      {64, 1, "contradicts itself"},
      {72, 1, "contradicts itself"},
      {96, 1, "contradicts itself"},
      {80, 1, "contradicts itself"},
      {88, 1, "contradicts itself"},
      {96, 1, "contradicts itself"},
  };
  for (const Case& each : cases) {
    Page page = page_of(sample());
    page[each.at] = each.value;
    const Status status = read(sealed(page)).status();
    EXPECT_EQ(status.code(), Code::corrupt) << each.at;
    EXPECT_THAT(status.message(), HasSubstr(each.message)) << each.at;
  }
}

TEST(Superblock, a_file_that_is_shorter_names_both_sizes) {
  EXPECT_EQ(read(page_of(sample()), kBytes - 1).status().to_string(),
            "corrupt: pool.0: the superblock names 8388608 bytes, but only 8388607 are there");
}

TEST(Superblock, devices_have_to_belong_together) {
  const Superblock first = sample(0);
  EXPECT_TRUE(check_same_pool("pool.1", first, sample(1), 1).ok());
  EXPECT_THAT(check_same_pool("pool.1", first, sample(0), 1).message(),
              HasSubstr("pool.1 is device 0 of its pool, but stands in the place of device 1"));
  PoolId other = kId;
  other[3] = 99;
  EXPECT_THAT(
      check_same_pool("pool.1", first, make_superblock(other, 1, 2, kBytes, 2, 64), 1).message(),
      HasSubstr("pool.1 belongs to another pool"));
  EXPECT_FALSE(check_same_pool("pool.1", first, make_superblock(kId, 1, 3, kBytes, 2, 64), 1).ok());
}

TEST(Superblock, random_bytes_are_refused) {
  std::mt19937 random(1);
  for (int turn = 0; turn < 20000; ++turn) {
    Page page = page_of(sample());
    const unsigned changes = 1 + random() % 8;
    for (unsigned i = 0; i < changes; ++i) {
      page[random() % 124] = static_cast<unsigned char>(random());
    }
    const auto block = read(turn % 2 == 0 ? sealed(page) : page);
    if (!block.ok()) continue;
    // Only what the geometry does not depend on may have changed.
    EXPECT_LE(block.value().data_offset + block.value().hosts * block.value().arena_bytes,
              block.value().bytes);
    EXPECT_LE(block.value().bytes, kBytes);
  }
}

TEST(Superblock, marker_of_a_pool_in_the_making) {
  Page page(kPageBytes, 0);
  std::memcpy(page.data(), "PSMAKING", 8);
  std::memcpy(page.data() + 16, kId.data(), 16);
  EXPECT_EQ(read(page).status().code(), Code::busy);
  PoolId id{};
  EXPECT_TRUE(read_making_marker(page.data(), page.size(), &id));
  EXPECT_EQ(id, kId);
  EXPECT_FALSE(read_making_marker(page.data(), 100, &id));
  const Page pool = page_of(sample());
  EXPECT_FALSE(read_making_marker(pool.data(), pool.size(), &id));
}

}  // namespace
}  // namespace penstock
