// Memory that answers now and then with an error: each descriptor completes all the same, and says
// which operand it was.
#include <gtest/gtest.h>

#include <cstring>

#include "penstock/engine/engine.h"
#include "penstock/engine/select_conformance.h"
#include "penstock/memory/temporary_pool_test.h"

namespace penstock {
namespace {

constexpr std::uint64_t kArena = 512 * 1024;

class CardBusError : public PoolTest {
 protected:
  void open(const std::string& engine) {
    create(4 * kMiB);
    pool_ = map();
    auto made = make_engine(engine);
    ASSERT_TRUE(made.ok()) << made.status().to_string();
    engine_ = std::move(made).value();
    region_ = pool_->allocate(request(kArena)).value();
    memory_ = pool_->resolve(region_.address, kArena);
    QueueConfig config;
    config.depth = 16;
    config.windows = {{region_.address, kArena, true, true}};
    queue_ = Queue::create(pool_.get(), config).value();
  }
  void TearDown() override {
    queue_.reset();
    engine_.reset();
    pool_.reset();
    PoolTest::TearDown();
  }
  // COPY from the first half to a place of its own in the second.
  static penstock_descriptor copy(SeededRandom& random, penstock_address base, std::uint64_t slot) {
    penstock_descriptor d{};
    d.opcode = PENSTOCK_OP_COPY;
    d.version = PENSTOCK_DESCRIPTOR_VERSION;
    d.n_src = d.n_dst = 1;
    d.cookie = slot;
    d.count = 1 + random.below(6000);
    d.src[0] = base + random.below(kArena / 2 - 6000);
    d.dst[0] = base + kArena / 2 + slot * 8192 + random.below(64);
    return d;
  }
  std::vector<penstock_completion> run(const std::vector<penstock_descriptor>& descriptors) {
    for (const penstock_descriptor& d : descriptors) EXPECT_TRUE(queue_->submit(d));
    std::vector<penstock_completion> completions;
    const std::uint64_t deadline = Platform::host().now_ns() + 60'000'000'000u;
    penstock_completion c;
    while (completions.size() < descriptors.size() && Platform::host().now_ns() < deadline) {
      engine_->advance(*queue_);
      while (queue_->poll(&c)) completions.push_back(c);
    }
    EXPECT_EQ(completions.size(), descriptors.size()) << "a descriptor did not complete";
    return completions;
  }

  std::unique_ptr<Pool> pool_;
  std::shared_ptr<Engine> engine_;
  Region region_;
  std::byte* memory_ = nullptr;
  std::unique_ptr<Queue> queue_;
};

TEST_F(CardBusError, OfAnOperandIsThatDescriptorsAlone) {
  open("card:verilator;seed=5;faults=25");
  SeededRandom random(5);
  for (std::uint64_t i = 0; i < kArena; ++i) memory_[i] = static_cast<std::byte>(random.next());
  int good = 0, bad_sources = 0, bad_destinations = 0;
  for (int batch = 0; batch < 25; ++batch) {
    std::vector<std::byte> before(memory_, memory_ + kArena);
    std::vector<penstock_descriptor> descriptors;
    for (std::uint64_t slot = 0; slot < 8; ++slot)
      descriptors.push_back(copy(random, region_.address, slot));
    const auto completions = run(descriptors);
    ASSERT_EQ(completions.size(), 8u);
    for (std::uint64_t i = 0; i < 8; ++i) {
      const penstock_descriptor& d = descriptors[i];
      const penstock_completion& c = completions[i];
      const std::uint64_t src = d.src[0] - region_.address, dst = d.dst[0] - region_.address;
      if (c.status == PENSTOCK_OK) {
        ++good;
        std::memcpy(before.data() + dst, before.data() + src, d.count);
      } else {
        ASSERT_EQ(c.status, std::uint32_t{PENSTOCK_IO_ERROR});
        const bool source = c.field == PENSTOCK_FIELD_SRC;
        ASSERT_TRUE(source || c.field == PENSTOCK_FIELD_DST) << c.field;
        ++(source ? bad_sources : bad_destinations);
        const penstock_address first = source ? d.src[0] : d.dst[0];
        EXPECT_GE(c.detail + 63, first);
        EXPECT_LT(c.detail, first + d.count);
        // What a failed one leaves in its own destination is anybody's.
        std::memcpy(before.data() + dst, memory_ + dst, d.count);
      }
    }
    ASSERT_EQ(std::memcmp(before.data(), memory_, kArena), 0) << "batch " << batch;
  }
  EXPECT_GT(good, 20);
  EXPECT_GT(bad_sources, 5);
  EXPECT_GT(bad_destinations, 5);
}

TEST_F(CardBusError, OfARingStopsTheQueueWhichBeginsAgain) {
  open("card:verilator;seed=6;control_faults=12");
  SeededRandom random(6);
  for (std::uint64_t i = 0; i < kArena; ++i) memory_[i] = static_cast<std::byte>(random.next());
  int good = 0, bad = 0;
  for (int batch = 0; batch < 12; ++batch) {
    std::vector<penstock_descriptor> descriptors;
    for (std::uint64_t slot = 0; slot < 8; ++slot)
      descriptors.push_back(copy(random, region_.address, slot));
    const auto completions = run(descriptors);
    ASSERT_EQ(completions.size(), 8u);
    for (std::uint64_t i = 0; i < 8; ++i) {
      const penstock_descriptor& d = descriptors[i];
      const penstock_completion& c = completions[i];
      EXPECT_EQ(c.cookie, d.cookie);
      ASSERT_TRUE(c.status == PENSTOCK_OK || c.status == PENSTOCK_IO_ERROR) << c.status;
      ++(c.status == PENSTOCK_OK ? good : bad);
      if (c.status != PENSTOCK_OK) continue;
      const std::uint64_t src = d.src[0] - region_.address, dst = d.dst[0] - region_.address;
      EXPECT_EQ(std::memcmp(memory_ + dst, memory_ + src, d.count), 0);
    }
  }
  EXPECT_GT(good, 10);
  EXPECT_GT(bad, 10);
}

}  // namespace
}  // namespace penstock
