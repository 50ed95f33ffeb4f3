// A card over XRT behind the stand-in, a pool, and copies of its bytes.
#ifndef PENSTOCK_SIM_XRT_XRT_CARD_RIG_TEST_H_
#define PENSTOCK_SIM_XRT_XRT_CARD_RIG_TEST_H_

#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "penstock/sim/xrt/xrt_test.h"

namespace penstock::sim {

class XrtCardTest : public StandinTest {
 protected:
  static constexpr std::uint64_t kBytes = 100'000;

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

}  // namespace penstock::sim
#endif
