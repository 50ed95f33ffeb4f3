// A card that works on copies: what goes to it, and what becomes of errors.
#include "penstock/drivers/card/staged_engine.h"

#include <gmock/gmock.h>

#include "penstock/drivers/card/fake_bus_test.h"
#include "penstock/memory/temporary_pool_test.h"

namespace penstock::card {
namespace {

using ::testing::HasSubstr;

constexpr std::uint64_t kStaging = 8192;

class StagedCard : public PoolTest {
 protected:
  void SetUp() override {
    create(4 * kMiB);
    pool_ = map();
    fake_->staging = kStaging;
    fake_->answer = [this](const penstock_descriptor& d) { return work(d); };
    Result<std::shared_ptr<Card>> made =
        Card::open(std::make_unique<FakeBus>(fake_), Patience{50, 50});
    ASSERT_TRUE(made.ok()) << made.status().to_string();
    engine_ = make_staged_engine(std::move(made).value());
    queue_ = Queue::create(pool_.get(), {}).value();
    data_ = pool_->device_data(0);
    bytes_ = pool_->resolve(data_.address, data_.bytes);
    for (std::uint64_t i = 0; i < 100'000; ++i) bytes_[i] = static_cast<std::byte>(i * 5 + i / 251);
  }
  void TearDown() override {
    queue_.reset();
    engine_.reset();
    EXPECT_EQ(fake_->rings, 0u) << "of rings and staging memory";
    pool_.reset();
    PoolTest::TearDown();
  }
  // The card copies in its own memory, which its one window begins.
  penstock_completion work(const penstock_descriptor& d) {
    ++steps_;
    if (failures_ > 0) {
      --failures_;
      return {d.cookie, PENSTOCK_IO_ERROR, PENSTOCK_FIELD_SRC, 0, 0};
    }
    const std::uint64_t window =
        fake_->wide(PENSTOCK_REGISTER_WINDOW + PENSTOCK_REGISTER_WINDOW_BASE_LO);
    EXPECT_EQ(d.opcode, PENSTOCK_OP_COPY);
    for (std::uint8_t i = 0; i < d.n_dst; ++i) {
      EXPECT_LE(d.dst[i] - window + d.count, kStaging);
      std::memcpy(&fake_->own[d.dst[i] - window], &fake_->own[d.src[0] - window], d.count);
    }
    return {d.cookie, 0, 0, 0, 0};
  }
  std::uint32_t copy(penstock_address to, penstock_address from, std::uint64_t bytes) {
    penstock_descriptor d{};
    d.opcode = PENSTOCK_OP_COPY;
    d.version = PENSTOCK_DESCRIPTOR_VERSION;
    d.n_src = d.n_dst = 1;
    d.count = bytes;
    d.src[0] = from;
    d.dst[0] = to;
    EXPECT_TRUE(queue_->submit(d));
    penstock_completion c{};
    const std::uint64_t deadline = Platform::host().now_ns() + 20'000'000'000u;
    while (Platform::host().now_ns() < deadline) {
      engine_->advance(*queue_);
      if (queue_->poll(&c)) return c.status;
    }
    ADD_FAILURE() << "it does not complete";
    return PENSTOCK_STATUS_COUNT;
  }

  std::shared_ptr<FakeCard> fake_ = std::make_shared<FakeCard>();
  std::unique_ptr<Pool> pool_;
  std::shared_ptr<Engine> engine_;
  std::unique_ptr<Queue> queue_;
  DeviceData data_;
  std::byte* bytes_ = nullptr;
  int failures_ = 0, steps_ = 0;
};

TEST_F(StagedCard, SaysWhatItCanDo) {
  const Capabilities& c = engine_->capabilities();
  EXPECT_THAT(c.description, HasSubstr("on copies"));
  EXPECT_TRUE(c.host_memory);
  EXPECT_FALSE(c.synchronous);
  for (const std::uint32_t opcode : {PENSTOCK_OP_COPY, PENSTOCK_OP_REDUCE, PENSTOCK_OP_SELECT,
                                     PENSTOCK_OP_WAIT, PENSTOCK_OP_SIGNAL, PENSTOCK_OP_BARRIER})
    EXPECT_EQ(c.opcodes >> opcode & 1, 1u) << opcode;
  EXPECT_EQ(c.opcodes >> PENSTOCK_OP_UPDATE & 1, 0u);
}

TEST_F(StagedCard, ALongCopyGoesInSteps) {
  EXPECT_EQ(copy(data_.address + 50'001, data_.address + 3, 20'000), std::uint32_t{PENSTOCK_OK});
  EXPECT_EQ(std::memcmp(bytes_ + 50'001, bytes_ + 3, 20'000), 0);
  EXPECT_EQ(steps_, 6) << "of 3968 bytes: two operands, and a place for each to end in";
  std::uint64_t sent = 0, received = 0;
  for (const auto& [bytes, to_card] : fake_->movements) (to_card ? sent : received) += bytes;
  EXPECT_EQ(received, 20'000u);
  EXPECT_LE(sent, 20'000u + 6 * 64);
  EXPECT_TRUE(fake_->attached.empty()) << "nothing of the pool is the card's";
}

TEST_F(StagedCard, MemoryOfTheProcessWillDo) {
  std::vector<std::byte> own(9000, std::byte{7});
  EXPECT_EQ(copy(data_.address, penstock_address_host(own.data()), own.size()),
            std::uint32_t{PENSTOCK_OK});
  EXPECT_EQ(std::memcmp(bytes_, own.data(), own.size()), 0);
}

TEST_F(StagedCard, AStepThatFailedIsDoneAgain) {
  failures_ = 2;
  EXPECT_EQ(copy(data_.address + 50'000, data_.address, 1000), std::uint32_t{PENSTOCK_OK});
  EXPECT_EQ(std::memcmp(bytes_ + 50'000, bytes_, 1000), 0);
  EXPECT_EQ(steps_, 3);
}

TEST_F(StagedCard, ACardThatAlwaysFailsIsLost) {
  failures_ = 1000;
  EXPECT_EQ(copy(data_.address + 50'000, data_.address, 1000), std::uint32_t{PENSTOCK_IO_ERROR});
  EXPECT_EQ(steps_, 3);
  penstock_descriptor nop{};
  nop.version = PENSTOCK_DESCRIPTOR_VERSION;
  const Status refused = engine_->accepts(nop);
  EXPECT_EQ(refused.code(), Code::io_error);
  EXPECT_THAT(refused.message(), HasSubstr("a staged COPY with io_error"));
}

TEST_F(StagedCard, WhatCannotBeMovedIsLost) {
  fake_->moves = false;
  EXPECT_EQ(copy(data_.address + 50'000, data_.address, 1000), std::uint32_t{PENSTOCK_IO_ERROR});
  EXPECT_EQ(steps_, 0);
  penstock_descriptor nop{};
  nop.version = PENSTOCK_DESCRIPTOR_VERSION;
  EXPECT_THAT(engine_->accepts(nop).message(), HasSubstr("the DMA engine is broken"));
}

TEST_F(StagedCard, ADeadCardIsLost) {
  EXPECT_EQ(copy(data_.address + 50'000, data_.address, 10), std::uint32_t{PENSTOCK_OK});
  fake_->dead = true;
  EXPECT_EQ(copy(data_.address + 50'000, data_.address, 1000), std::uint32_t{PENSTOCK_IO_ERROR});
}

}  // namespace
}  // namespace penstock::card
