// The engine `card` over XRT, unmodified, against the card's RTL behind the stand-in.
#include <gmock/gmock.h>

#include <cstring>

#include "penstock/engine/conformance.h"
#include "penstock/sim/xrt/xrt_test.h"

namespace penstock::sim {
namespace {

using ::testing::HasSubstr;

constexpr std::uint64_t kBytes = 100'000;

class XrtCardTest : public StandinTest {
 protected:
  void open(const std::string& options, const std::string& more = "") {
    standin(options);
    create(8 * kMiB);
    pool_ = map();
    auto made = bus("card.xclbin", more);
    ASSERT_TRUE(made.ok()) << made.status().to_string();
    auto card = card::Card::open(std::move(made).value(), {500, 500});
    ASSERT_TRUE(card.ok()) << card.status().to_string();
    engine_ = (*card)->bus().stages() ? card::make_staged_engine(std::move(card).value())
                                      : card::make_card_engine(std::move(card).value());
    RegionRequest request;
    request.bytes = 2 * kBytes;
    region_ = pool_->allocate(request).value();
    memory_ = pool_->resolve(region_.address, 2 * kBytes);
    for (std::uint64_t i = 0; i < kBytes; ++i) memory_[i] = static_cast<std::byte>(i * 7 + 1);
    std::memset(memory_ + kBytes, 0, kBytes);
  }
  void TearDown() override {
    engine_.reset();
    pool_.reset();
    StandinTest::TearDown();
  }
  std::unique_ptr<Queue> queue() {
    QueueConfig config;
    config.depth = 16;
    return Queue::create(pool_.get(), config).value();
  }
  // Copies of 1000 bytes, each to its own place; their statuses.
  std::vector<std::uint32_t> copies(Queue& queue, std::uint64_t n) {
    for (std::uint64_t i = 0; i < n; ++i) {
      penstock_descriptor d{};
      d.opcode = PENSTOCK_OP_COPY;
      d.version = PENSTOCK_DESCRIPTOR_VERSION;
      d.n_src = d.n_dst = 1;
      d.cookie = i;
      d.count = 1000;
      d.src[0] = region_.address + i * 1000;
      d.dst[0] = region_.address + kBytes + i * 1000;
      EXPECT_TRUE(queue.submit(d));
    }
    std::vector<std::uint32_t> statuses;
    const std::uint64_t deadline = Platform::host().now_ns() + 60'000'000'000u;
    penstock_completion c;
    while (statuses.size() < n && Platform::host().now_ns() < deadline) {
      engine_->advance(queue);
      while (queue.poll(&c)) statuses.push_back(c.status);
    }
    EXPECT_EQ(statuses.size(), n) << "a descriptor did not complete";
    return statuses;
  }
  bool copied(std::uint64_t n) const {
    return std::memcmp(memory_, memory_ + kBytes, n * 1000) == 0;
  }

  std::unique_ptr<Pool> pool_;
  std::shared_ptr<Engine> engine_;
  Region region_;
  std::byte* memory_ = nullptr;
};

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

#ifdef PENSTOCK_TEST_FULL
TEST_F(XrtCardTest, ConformsOnCopies) {
  open("seed=8", ";memory=staged;staging=1");
  ConformanceOptions options;
  options.pool = pool_.get();
  options.seed = 8;
  options.quick = true;
  options.timeout_ms = 120000;
  auto report = run_conformance(*engine_, options);
  ASSERT_TRUE(report.ok()) << report.status().to_string();
  EXPECT_TRUE(report->passed()) << report->to_table();
  EXPECT_GT(report->comparisons(), 100'000u);
}
#endif

}  // namespace
}  // namespace penstock::sim
