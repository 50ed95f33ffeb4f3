// What the driver does with a card that does not behave.
#include <gmock/gmock.h>

#include "penstock/drivers/card/card_engine.h"
#include "penstock/drivers/card/fake_bus_test.h"
#include "penstock/memory/temporary_pool_test.h"

namespace penstock::card {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr std::uint32_t kIoError = PENSTOCK_IO_ERROR;

class CardFault : public PoolTest {
 protected:
  void SetUp() override {
    create(4 * kMiB);
    pool_ = map();
  }
  void TearDown() override {
    queue_.reset();
    engine_.reset();
    pool_.reset();
    PoolTest::TearDown();
  }
  Status open() {
    Result<std::shared_ptr<Card>> made =
        Card::open(std::make_unique<FakeBus>(fake_), Patience{30, 30});
    if (!made.ok()) return made.status();
    engine_ = make_card_engine(std::move(made).value());
    QueueConfig config;
    config.depth = 8;
    queue_ = Queue::create(pool_.get(), config).value();
    return {};
  }
  // Statuses of descriptors with cookies 1.., within a few seconds.
  std::vector<std::uint32_t> run(std::uint64_t n) {
    for (std::uint64_t i = 1; i <= n; ++i) {
      penstock_descriptor d{};
      d.version = 1;
      d.cookie = i;
      EXPECT_TRUE(queue_->submit(d));
    }
    std::vector<std::uint32_t> statuses;
    const std::uint64_t deadline = Platform::host().now_ns() + 20'000'000'000u;
    while (statuses.size() < n && Platform::host().now_ns() < deadline) {
      engine_->advance(*queue_);
      while (queue_->poll(&last_)) {
        EXPECT_EQ(last_.cookie, statuses.size() + 1);
        statuses.push_back(last_.status);
      }
    }
    return statuses;
  }

  std::shared_ptr<FakeCard> fake_ = std::make_shared<FakeCard>();
  std::unique_ptr<Pool> pool_;
  std::shared_ptr<Engine> engine_;
  std::unique_ptr<Queue> queue_;
  penstock_completion last_{};
};

TEST_F(CardFault, NothingThatAnswers) {
  fake_->dead = true;
  EXPECT_EQ(open().code(), Code::io_error);
}

TEST_F(CardFault, SomethingElseThatAnswers) {
  fake_->registers[PENSTOCK_REGISTER_ID] = 0x12345678;
  EXPECT_EQ(open().code(), Code::unsupported);
  EXPECT_THAT(open().message(), HasSubstr("0x12345678"));
  EXPECT_EQ(fake_->resets_seen, 0u) << "what is not understood is left alone";
}

TEST_F(CardFault, VersionsThatAreAndAreNotUnderstood) {
  for (const std::uint32_t version : {0x00000005u, 0x00020000u, 0x80010000u}) {
    fake_->registers[PENSTOCK_REGISTER_VERSION] = version;
    EXPECT_EQ(open().code(), Code::unsupported) << version;
  }
  fake_->registers[PENSTOCK_REGISTER_VERSION] = 0x00010007;
  fake_->registers[PENSTOCK_REGISTER_CAP_OPCODES] = 0xffffffff;
  fake_->registers[PENSTOCK_REGISTER_CAP_SCORES] = 0xffffffff;
  ASSERT_TRUE(open().ok());
  EXPECT_EQ(engine_->capabilities().opcodes, (1u << PENSTOCK_OP_COUNT) - 1)
      << "what a later version has more is left out";
  EXPECT_EQ(engine_->capabilities().select.operations >> 32, 0x1fffu);
}

TEST_F(CardFault, LimitsThatNoCardHas) {
  for (const auto& [reg, value] : {std::pair{PENSTOCK_REGISTER_CAP_LIMITS, 0x03401000u},
                                   {PENSTOCK_REGISTER_CAP_LIMITS, 0x03401041u},
                                   {PENSTOCK_REGISTER_CAP_LIMITS, 0x03400004u},
                                   {PENSTOCK_REGISTER_CAP_LIMITS, 0x03401104u},
                                   {PENSTOCK_REGISTER_CAP_LIMITS, 0x03001004u},
                                   {PENSTOCK_REGISTER_CAP_LIMITS, 0x03411004u},
                                   {PENSTOCK_REGISTER_CAP_LIMITS, 0x00401004u},
                                   {PENSTOCK_REGISTER_CAP_LIMITS, 0x04401004u},
                                   {PENSTOCK_REGISTER_CAP_MAX_BYTES, 57u},
                                   {PENSTOCK_REGISTER_CAP_ROWS, 0x40000000u},
                                   {PENSTOCK_REGISTER_CAP_TABLE, 0x00400800u},
                                   {PENSTOCK_REGISTER_CAP_TABLE, 0x00010808u},
                                   {PENSTOCK_REGISTER_CAP_TABLE, 0x00400811u},
                                   {PENSTOCK_REGISTER_CAP_NORMALISE, 0x0000030fu},
                                   {PENSTOCK_REGISTER_CAP_NORMALISE, 0x0009030fu}}) {
    const std::uint32_t before = std::exchange(fake_->registers[reg], value);
    EXPECT_EQ(open().code(), Code::corrupt) << reg << ' ' << value;
    fake_->registers[reg] = before;
  }
  EXPECT_TRUE(open().ok());
}

TEST_F(CardFault, GarbageInEveryRegister) {
  std::uint32_t state = 1;
  for (int i = 0; i < 1000; ++i) {
    for (auto& [reg, value] : fake_->registers) value = state = state * 1664525 + 1013904223;
    fake_->registers[PENSTOCK_REGISTER_ID] = PENSTOCK_REGISTER_ID_RESET;
    fake_->registers[PENSTOCK_REGISTER_VERSION] = PENSTOCK_REGISTER_VERSION_RESET;
    const Status status = open();
    EXPECT_TRUE(status.ok() || status.code() == Code::corrupt) << status.to_string();
    queue_.reset();
  }
}

TEST_F(CardFault, AResetThatDoesNotEnd) {
  fake_->resets = false;
  const Status status = open();
  EXPECT_EQ(status.code(), Code::io_error);
  EXPECT_THAT(status.message(), HasSubstr("reset"));
}

TEST_F(CardFault, AQueueThatDoesNotComeUp) {
  ASSERT_TRUE(open().ok());
  fake_->enables = false;
  EXPECT_THAT(run(2), ElementsAre(kIoError, kIoError));
  fake_->enables = true;
  EXPECT_THAT(run(1), ElementsAre(0));
}

TEST_F(CardFault, AnswersThatNoCardMayGive) {
  ASSERT_TRUE(open().ok());
  for (const penstock_completion& wrong : {penstock_completion{99, 0, 0, 0, 0},
                                           {1, PENSTOCK_STATUS_COUNT, 0, 0, 0},
                                           {1, 0, PENSTOCK_FIELD_ENUM_COUNT, 0, 0},
                                           {0, PENSTOCK_CANCELLED, 0, 0, 0},
                                           {0, kIoError, PENSTOCK_FIELD_SRC, 0, 0}}) {
    fake_->answer = [wrong](const penstock_descriptor&) { return wrong; };
    EXPECT_THAT(run(1), ElementsAre(PENSTOCK_INTERNAL));
  }
}

TEST_F(CardFault, BusErrorsNamePenstockAddresses) {
  ASSERT_TRUE(open().ok());
  const DeviceData data = pool_->device_data(0);
  const auto bus = reinterpret_cast<std::uint64_t>(pool_->resolve(data.address, 64));
  fake_->registers[PENSTOCK_REGISTER_STATUS] = 4;
  fake_->answer = [bus](const penstock_descriptor& d) {
    return penstock_completion{d.cookie, kIoError, PENSTOCK_FIELD_SRC, bus + 8192, 0};
  };
  EXPECT_THAT(run(1), ElementsAre(kIoError));
  EXPECT_EQ(last_.detail, data.address + 8192);
  EXPECT_EQ(last_.field, std::uint32_t{PENSTOCK_FIELD_SRC});
  EXPECT_EQ(fake_->registers[PENSTOCK_REGISTER_STATUS] & 4, 0u) << "the latch is cleared";
  fake_->answer = [bus](const penstock_descriptor& d) {
    return penstock_completion{d.cookie, kIoError, PENSTOCK_FIELD_SRC, bus - 128, 0};
  };
  EXPECT_THAT(run(1), ElementsAre(kIoError));
  EXPECT_EQ(last_.detail, 0u) << "of no window";
  // A descriptor that could not be read has no cookie.
  fake_->answer = [](const penstock_descriptor&) {
    return penstock_completion{0, kIoError, 0, 0x1234, 0};
  };
  EXPECT_THAT(run(1), ElementsAre(kIoError));
}

TEST_F(CardFault, AQueueThatStoppedBeginsAgain) {
  ASSERT_TRUE(open().ok());
  int answered = 0;
  fake_->answer = [&](const penstock_descriptor& d) {
    if (++answered == 3) fake_->queues[0].stopped = true;
    return penstock_completion{d.cookie, 0, 0, 0, 0};
  };
  EXPECT_THAT(run(5), ElementsAre(0, 0, kIoError, kIoError, kIoError));
  EXPECT_THAT(run(6), Each(0u));
  EXPECT_EQ(fake_->queues[0].enabled_times, 2u);
  EXPECT_EQ(fake_->resets_seen, 1u) << "the others' work goes on";
}

TEST_F(CardFault, ACardThatStopsAnsweringIsReset) {
  ASSERT_TRUE(open().ok());
  fake_->silent = true;
  EXPECT_THAT(run(3), ElementsAre(kIoError, kIoError, kIoError));
  EXPECT_EQ(fake_->resets_seen, 2u);
  fake_->silent = false;
  EXPECT_THAT(run(8), Each(0u));
}

TEST_F(CardFault, AResetFailsTheWorkOfEveryQueue) {
  ASSERT_TRUE(open().ok());
  QueueConfig config;
  config.depth = 2;
  const auto other = Queue::create(pool_.get(), config).value();
  penstock_descriptor d{};
  d.version = 1;
  ASSERT_TRUE(other->submit(d));
  fake_->silent = true;
  engine_->advance(*other);
  EXPECT_THAT(run(1), ElementsAre(kIoError));
  fake_->silent = false;
  EXPECT_EQ(engine_->advance(*other), 1u);
  penstock_completion c{};
  ASSERT_TRUE(other->poll(&c));
  EXPECT_EQ(c.status, kIoError);
  ASSERT_TRUE(other->submit(d));
  EXPECT_EQ(engine_->advance(*other), 1u);
  ASSERT_TRUE(other->poll(&c));
  EXPECT_EQ(c.status, 0u);
}

TEST_F(CardFault, AWaitIsNotTakenForAStandstill) {
  ASSERT_TRUE(open().ok());
  fake_->silent = true;
  penstock_descriptor d{};
  d.version = 1;
  ASSERT_TRUE(queue_->submit(d));
  engine_->advance(*queue_);
  fake_->queues[0].waiting = true;
  const std::uint64_t until = Platform::host().now_ns() + 200'000'000;
  int turns = 0;
  for (; Platform::host().now_ns() < until || turns < 5000; ++turns)
    ASSERT_EQ(engine_->advance(*queue_), 0u);
  EXPECT_EQ(fake_->resets_seen, 1u);
  fake_->queues[0].waiting = fake_->silent = false;
  EXPECT_EQ(engine_->advance(*queue_), 1u);
}

TEST_F(CardFault, SlowWorkIsNotTakenForAStandstill) {
  ASSERT_TRUE(open().ok());
  fake_->silent = true;
  penstock_descriptor d{};
  d.version = 1;
  ASSERT_TRUE(queue_->submit(d));
  const std::uint64_t until = Platform::host().now_ns() + 200'000'000;
  for (int turns = 0; Platform::host().now_ns() < until || turns < 5000; ++turns) {
    ++fake_->registers[PENSTOCK_REGISTER_DATA_READ_BEATS_LO];
    ASSERT_EQ(engine_->advance(*queue_), 0u);
  }
  EXPECT_EQ(fake_->resets_seen, 1u);
}

TEST_F(CardFault, ACardThatIsGoneIsGivenUp) {
  ASSERT_TRUE(open().ok());
  EXPECT_THAT(run(1), ElementsAre(0));
  fake_->dead = true;
  EXPECT_THAT(run(3), ElementsAre(kIoError, kIoError, kIoError));
  EXPECT_THAT(run(3), SizeIs(3));
  penstock_descriptor d{};
  d.version = 1;
  EXPECT_EQ(engine_->accepts(d).code(), Code::io_error);
  queue_.reset();
  EXPECT_EQ(fake_->rings, 0u);
  EXPECT_TRUE(fake_->attached.empty());
}

TEST_F(CardFault, AQueueThatDoesNotComeToRestIsReset) {
  ASSERT_TRUE(open().ok());
  fake_->per_idle = 0;
  penstock_descriptor d{};
  d.version = 1;
  ASSERT_TRUE(queue_->submit(d));
  engine_->advance(*queue_);
  queue_.reset();
  EXPECT_EQ(fake_->resets_seen, 2u);
  EXPECT_TRUE(fake_->attached.empty());
}

}  // namespace
}  // namespace penstock::card
