#include "penstock/memory/inline_block.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "penstock/memory/temporary_pool_test.h"

namespace penstock {
namespace {

constexpr std::uint64_t kTag = 0x1234'5678'9abc'def0;
constexpr std::uint64_t kWholeTag = ~std::uint64_t{0};

class InlineBlocks : public PoolTest, public testing::WithParamInterface<Coherence> {
 protected:
  void SetUp() override {
    PoolTest::SetUp();
    create(kMinDeviceBytes, 1);
    MapOptions options;
    options.coherence = GetParam();
    auto mapped = Pool::map(platform_, spec_, options);
    ASSERT_TRUE(mapped.ok());
    pool_ = std::move(mapped).value();
    const auto region = pool_->allocate(request(65536, "", 0)).value();
    lines_ = pool_->resolve(region.address, region.bytes);
    std::memset(lines_, 0, 65536);
  }
  void TearDown() override {
    pool_.reset();
    PoolTest::TearDown();
  }
  static std::vector<char> payload(std::uint64_t bytes, char first) {
    std::vector<char> data(bytes);
    for (std::uint64_t i = 0; i < bytes; ++i) data[i] = static_cast<char>(first + i * 7);
    return data;
  }

  std::unique_ptr<Pool> pool_;
  std::byte* lines_ = nullptr;
};

INSTANTIATE_TEST_SUITE_P(, InlineBlocks, testing::Values(Coherence::hardware, Coherence::software),
                         [](const auto& tested) { return coherence_name(tested.param); });

// 48 bytes fit beside tag and sequence, and 56 into every further line of 64.
TEST_P(InlineBlocks, lines_that_a_payload_takes) {
  EXPECT_EQ(inline_lines(0), 1u);
  EXPECT_EQ(inline_lines(48), 1u);
  EXPECT_EQ(inline_lines(49), 2u);
  EXPECT_EQ(inline_lines(48 + 56), 2u);
  EXPECT_EQ(inline_lines(48 + 57), 3u);
  EXPECT_EQ(inline_lines(4096), 74u);
}

TEST_P(InlineBlocks, what_is_written_is_read) {
  const InlineBlock block(*pool_, lines_);
  std::uint64_t sequence = 0;
  for (const std::uint64_t bytes : {1, 4, 8, 47, 48, 49, 104, 105, 1000, 4096}) {
    const std::vector<char> data = payload(bytes, static_cast<char>(bytes));
    block.write(++sequence, kTag + bytes, data.data(), bytes);
    std::vector<char> out(bytes + 8, 'x');
    std::uint64_t taken = 0;
    std::uint64_t tag = 0;
    ASSERT_EQ(block.read(sequence, kTag + bytes, kWholeTag, out.data(), bytes, &taken, &tag),
              InlineBlock::Arrival::complete);
    EXPECT_EQ(tag, kTag + bytes);
    EXPECT_EQ(std::memcmp(out.data(), data.data(), bytes), 0) << bytes;
    EXPECT_EQ(std::string(out.begin() + static_cast<std::ptrdiff_t>(bytes), out.end()), "xxxxxxxx");
  }
}

TEST_P(InlineBlocks, nothing_stands_outside_of_the_lines) {
  std::memset(lines_, 0x5a, 65536);
  const std::vector<char> data = payload(200, 3);
  InlineBlock(*pool_, lines_ + 64).write(1, kTag, data.data(), 200);
  for (std::uint64_t i = 0; i < 64; ++i) EXPECT_EQ(lines_[i], std::byte{0x5a});
  for (std::uint64_t i = 64 + 64 * inline_lines(200); i < 65536; ++i) {
    ASSERT_EQ(lines_[i], std::byte{0x5a}) << i;
  }
}

// Lines come in any order: a reader takes those at the front and comes back for the rest.
TEST_P(InlineBlocks, a_line_that_is_late_is_waited_for) {
  const std::uint64_t bytes = 200;  // four lines
  const std::vector<char> data = payload(bytes, 1);
  const InlineBlock block(*pool_, lines_);
  block.write(9, kTag, data.data(), bytes);
  std::vector<std::byte> third(lines_ + 128, lines_ + 192);
  std::memset(lines_ + 128, 0, 64);
  pool_->publish(lines_ + 128, 64);
  std::vector<char> out(bytes);
  std::uint64_t taken = 0;
  std::uint64_t tag = 0;
  EXPECT_EQ(block.read(9, kTag, kWholeTag, out.data(), bytes, &taken, &tag),
            InlineBlock::Arrival::partial);
  EXPECT_EQ(taken, 2u);
  std::memcpy(lines_ + 128, third.data(), 64);
  pool_->publish(lines_ + 128, 64);
  EXPECT_EQ(block.read(9, kTag, kWholeTag, out.data(), bytes, &taken, &tag),
            InlineBlock::Arrival::complete);
  EXPECT_EQ(std::memcmp(out.data(), data.data(), bytes), 0);
}

TEST_P(InlineBlocks, an_older_or_newer_sequence_is_not_taken) {
  const InlineBlock block(*pool_, lines_);
  const std::vector<char> data = payload(8, 1);
  block.write(5, kTag, data.data(), 8);
  char out[8] = {};
  std::uint64_t taken = 0;
  std::uint64_t tag = 0;
  for (const std::uint64_t sequence : {std::uint64_t{4}, std::uint64_t{6}}) {
    EXPECT_EQ(block.read(sequence, kTag, kWholeTag, out, 8, &taken, &tag),
              InlineBlock::Arrival::partial);
    EXPECT_EQ(taken, 0u);
    EXPECT_EQ(out[0], 0);
  }
}

// A rank that disagrees is found before a byte of its payload is used.
TEST_P(InlineBlocks, another_tag_leaves_the_destination_alone) {
  const InlineBlock block(*pool_, lines_);
  const std::vector<char> data = payload(8, 1);
  block.write(5, kTag, data.data(), 8);
  char out[8] = {};
  std::uint64_t taken = 0;
  std::uint64_t tag = 0;
  EXPECT_EQ(block.read(5, kTag ^ 16, kWholeTag, out, 8, &taken, &tag),
            InlineBlock::Arrival::other_tag);
  EXPECT_EQ(tag, kTag);
  for (const char byte : out) EXPECT_EQ(byte, 0);
  EXPECT_EQ(block.read(5, kTag ^ 16, kWholeTag ^ 16, out, 8, &taken, &tag),
            InlineBlock::Arrival::complete);
}

}  // namespace
}  // namespace penstock
