// What the driver does with a card that behaves.
#include <gmock/gmock.h>

#include "penstock/drivers/card/card_engine.h"
#include "penstock/drivers/card/fake_bus_test.h"
#include "penstock/memory/temporary_pool_test.h"

namespace penstock::card {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

penstock_descriptor nop(std::uint64_t cookie) {
  penstock_descriptor d{};
  d.version = 1;
  d.cookie = cookie;
  return d;
}

class CardTest : public PoolTest {
 protected:
  void SetUp() override {
    create(4 * kMiB);
    pool_ = map();
    open();
  }
  void TearDown() override {
    engine_.reset();
    pool_.reset();
    PoolTest::TearDown();
  }
  void open() {
    Result<std::shared_ptr<Card>> made = Card::open(std::make_unique<FakeBus>(fake_));
    ASSERT_TRUE(made.ok()) << made.status().to_string();
    engine_ = make_card_engine(std::move(made).value());
  }
  std::unique_ptr<Queue> queue(std::uint32_t depth, std::vector<Window> windows = {}) {
    QueueConfig config;
    config.depth = depth;
    config.windows = std::move(windows);
    config.default_timeout_ms = 777;
    return Queue::create(pool_.get(), config).value();
  }
  std::vector<std::uint32_t> run(Queue& queue, const std::vector<std::uint64_t>& cookies) {
    for (const std::uint64_t cookie : cookies) EXPECT_TRUE(queue.submit(nop(cookie)));
    return poll(queue, cookies);
  }
  std::vector<std::uint32_t> poll(Queue& queue, const std::vector<std::uint64_t>& cookies) {
    std::vector<std::uint32_t> statuses;
    penstock_completion c;
    for (int i = 0; i < 1000 && statuses.size() < cookies.size(); ++i) {
      engine_->advance(queue);
      while (queue.poll(&c)) {
        EXPECT_EQ(c.cookie, cookies[statuses.size()]);
        statuses.push_back(c.status);
      }
    }
    return statuses;
  }
  std::uint64_t window(std::uint32_t queue, std::uint32_t index, std::uint32_t reg) {
    return fake_->wide(PENSTOCK_REGISTER_WINDOW + queue * PENSTOCK_REGISTER_WINDOW_STRIDE +
                       index * PENSTOCK_REGISTER_WINDOW_STRIDE2 + reg);
  }

  std::shared_ptr<FakeCard> fake_ = std::make_shared<FakeCard>();
  std::unique_ptr<Pool> pool_;
  std::shared_ptr<Engine> engine_;
};

TEST_F(CardTest, CapabilitiesAreWhatTheRegistersSay) {
  const Capabilities& c = engine_->capabilities();
  EXPECT_EQ(c.name, "card");
  EXPECT_EQ(c.opcodes, 0x13fu);
  EXPECT_EQ(c.max_sources, 64u);
  EXPECT_EQ(c.max_destinations, 3u);
  EXPECT_EQ(c.max_bytes, std::uint64_t{1} << 32);
  EXPECT_EQ(c.max_rows, 4096u);
  EXPECT_EQ(c.redops[PENSTOCK_F32], 0x3fu);
  EXPECT_EQ(c.out_types[PENSTOCK_F32], 0xec0u);
  EXPECT_EQ(c.redops[PENSTOCK_F64], 0u);
  EXPECT_EQ(c.select.operations, 0xf0000001eull);
  EXPECT_EQ(c.select.normalisations, 0xfu);
  EXPECT_EQ(c.select.ties, 3u);
  EXPECT_EQ(c.select.max_best, 8u);
  EXPECT_EQ(c.select.max_bits, 64u);
  EXPECT_FALSE(c.host_memory);
  EXPECT_FALSE(c.weights);
  EXPECT_TRUE(engine_->accepts(nop(1)).ok());
  penstock_descriptor d = nop(1);
  d.opcode = PENSTOCK_OP_UPDATE;
  d.n_src = 2;
  EXPECT_EQ(engine_->accepts(d).code(), Code::unsupported);
}

TEST_F(CardTest, TheCardIsResetAndEnabledWithTheBusClock) {
  EXPECT_EQ(fake_->resets_seen, 1u);
  EXPECT_EQ(fake_->registers[PENSTOCK_REGISTER_CONTROL], 1u);
  EXPECT_EQ(fake_->registers[PENSTOCK_REGISTER_CLOCK_KHZ], 1234u);
}

TEST_F(CardTest, CompletionsInterruptWhereTheBusWaitsForThem) {
  EXPECT_EQ(fake_->registers[PENSTOCK_REGISTER_IRQ_MASK_LO], 0u);
  EXPECT_EQ(fake_->registers[PENSTOCK_REGISTER_IRQ_MASK_HI], 0u);
  engine_.reset();
  fake_->interrupts = true;
  open();
  EXPECT_EQ(fake_->registers[PENSTOCK_REGISTER_IRQ_MASK_LO], 0xffffffffu);
  EXPECT_EQ(fake_->registers[PENSTOCK_REGISTER_IRQ_MASK_HI], 0xffffffffu);
}

TEST_F(CardTest, RingsGoRound) {
  const auto q = queue(4);
  std::uint64_t cookie = 100;
  for (int round = 0; round < 40; ++round) {
    const std::vector<std::uint64_t> cookies = {cookie, cookie + 1, cookie + 2};
    cookie += 3;
    ASSERT_THAT(run(*q, cookies), ElementsAre(0, 0, 0)) << round;
  }
  EXPECT_EQ(fake_->queues[0].depth, 4u);
  EXPECT_EQ(fake_->queues[0].tail, 120u);
  EXPECT_EQ(fake_->doorbells.size(), 40u) << "one for all that was there";
  EXPECT_EQ(fake_->registers[PENSTOCK_REGISTER_QUEUE + PENSTOCK_REGISTER_QUEUE_TIMEOUT_MS], 777u);
}

TEST_F(CardTest, ADeepQueueIsHandedOnInParts) {
  const auto q = queue(4096);
  std::vector<std::uint64_t> cookies(4096);
  for (std::size_t i = 0; i < cookies.size(); ++i) cookies[i] = i * 7;
  EXPECT_EQ(run(*q, cookies).size(), 4096u);
  EXPECT_EQ(fake_->queues[0].depth, 1024u);
  for (const auto& [number, value] : fake_->doorbells) EXPECT_LE(value, 4096u);
}

TEST_F(CardTest, CompletionsKeepStatusFieldAndDetail) {
  const auto q = queue(4);
  fake_->answer = [](const penstock_descriptor& d) {
    return penstock_completion{d.cookie, PENSTOCK_OUT_OF_RANGE, PENSTOCK_FIELD_DST, 0xabcd, 0};
  };
  ASSERT_TRUE(q->submit(nop(5)));
  engine_->advance(*q);
  penstock_completion c;
  ASSERT_TRUE(q->poll(&c));
  EXPECT_EQ(c.status, std::uint32_t{PENSTOCK_OUT_OF_RANGE});
  EXPECT_EQ(c.field, std::uint32_t{PENSTOCK_FIELD_DST});
  EXPECT_EQ(c.detail, 0xabcdu);
}

TEST_F(CardTest, WindowsAreThePoolsDevicesOrTheQueuesOwn) {
  const DeviceData data = pool_->device_data(0);
  ASSERT_GT(data.bytes, 0u);
  const auto bus = reinterpret_cast<std::uint64_t>(pool_->resolve(data.address, data.bytes));
  const auto whole = queue(4);
  run(*whole, {1});
  EXPECT_EQ(fake_->registers[PENSTOCK_REGISTER_QUEUE + PENSTOCK_REGISTER_QUEUE_WINDOWS], 1u);
  EXPECT_EQ(window(0, 0, PENSTOCK_REGISTER_WINDOW_BASE_LO), data.address);
  EXPECT_EQ(window(0, 0, PENSTOCK_REGISTER_WINDOW_BYTES_LO), data.bytes);
  EXPECT_EQ(window(0, 0, PENSTOCK_REGISTER_WINDOW_BUS_LO), bus);
  EXPECT_EQ(window(0, 0, PENSTOCK_REGISTER_WINDOW_RIGHTS) & 0xf, 3u);
  const auto some =
      queue(4, {{data.address + 4096, 100, true, false}, {data.address + 64, 8, false, true}});
  run(*some, {1});
  EXPECT_EQ(fake_->registers[PENSTOCK_REGISTER_QUEUE + PENSTOCK_REGISTER_QUEUE_STRIDE +
                             PENSTOCK_REGISTER_QUEUE_WINDOWS],
            2u);
  EXPECT_EQ(window(1, 0, PENSTOCK_REGISTER_WINDOW_BASE_LO), data.address + 4096);
  EXPECT_EQ(window(1, 0, PENSTOCK_REGISTER_WINDOW_BYTES_LO), 100u);
  EXPECT_EQ(window(1, 0, PENSTOCK_REGISTER_WINDOW_BUS_LO), bus + 4096);
  EXPECT_EQ(window(1, 0, PENSTOCK_REGISTER_WINDOW_RIGHTS) & 0xf, 1u);
  EXPECT_EQ(window(1, 1, PENSTOCK_REGISTER_WINDOW_BUS_LO), bus + 64);
  EXPECT_EQ(window(1, 1, PENSTOCK_REGISTER_WINDOW_RIGHTS) & 0xf, 2u);
}

TEST_F(CardTest, MoreWindowsThanTheCardHasAreRefused) {
  const DeviceData data = pool_->device_data(0);
  const auto q = queue(4, std::vector<Window>(17, Window{data.address, 64, true, true}));
  EXPECT_THAT(run(*q, {1, 2}), ElementsAre(PENSTOCK_UNSUPPORTED, PENSTOCK_UNSUPPORTED));
  const auto other = queue(4);
  EXPECT_THAT(run(*other, {1}), ElementsAre(0)) << "the refused queue left nothing behind";
  EXPECT_TRUE(fake_->queues[0].enabled);
}

TEST_F(CardTest, QueuesAndMemoryAreGivenBack) {
  std::vector<std::unique_ptr<Queue>> queues;
  for (int i = 0; i < 4; ++i) {
    queues.push_back(queue(4));
    EXPECT_THAT(run(*queues.back(), {7}), ElementsAre(0));
  }
  EXPECT_EQ(fake_->rings, 4u);
  EXPECT_EQ(fake_->attached.size(), 1u) << "one device, once";
  const auto fifth = queue(4);
  EXPECT_THAT(run(*fifth, {1}), ElementsAre(PENSTOCK_NO_SPACE));
  queues.erase(queues.begin() + 1);
  EXPECT_FALSE(fake_->queues[1].enabled);
  EXPECT_THAT(run(*fifth, {2}), ElementsAre(0));
  EXPECT_TRUE(fake_->queues[1].enabled);
  EXPECT_EQ(fake_->attached.size(), 1u);
  queues.clear();
  EXPECT_EQ(fake_->attached.size(), 1u);
}

TEST_F(CardTest, TheLastQueueTakesTheMemoryWithIt) {
  auto q = queue(4);
  run(*q, {1});
  EXPECT_EQ(fake_->attached.size(), 1u);
  q.reset();
  EXPECT_TRUE(fake_->attached.empty());
  EXPECT_EQ(fake_->rings, 0u);
}

TEST_F(CardTest, AQueueThatGoesWithWorkUnderWayIsCancelledFirst) {
  auto q = queue(4);
  fake_->per_idle = 0;
  ASSERT_TRUE(q->submit(nop(1)));
  engine_->advance(*q);
  EXPECT_EQ(fake_->queues[0].tail, 1u);
  fake_->per_idle = 1;
  fake_->silent = true;  // answers what is cancelled alone
  q.reset();
  EXPECT_EQ(fake_->queues[0].head, 1u);
  EXPECT_FALSE(fake_->queues[0].enabled);
  EXPECT_EQ(fake_->resets_seen, 1u) << "the first one";
  EXPECT_EQ(fake_->rings, 0u);
}

TEST_F(CardTest, CancelReachesTheCardAndEndsWithTheQueues) {
  const auto q = queue(4);
  fake_->silent = true;
  const std::vector<std::uint64_t> cookies = {1, 2, 3};
  for (const std::uint64_t cookie : cookies) ASSERT_TRUE(q->submit(nop(cookie)));
  engine_->advance(*q);
  q->cancel();
  EXPECT_THAT(poll(*q, cookies),
              ElementsAre(PENSTOCK_CANCELLED, PENSTOCK_CANCELLED, PENSTOCK_CANCELLED));
  // What comes while it is cancelled never reaches the card.
  const std::size_t doorbells = fake_->doorbells.size();
  EXPECT_THAT(run(*q, {4}), ElementsAre(PENSTOCK_CANCELLED));
  EXPECT_EQ(fake_->doorbells.size(), doorbells);
  q->reset_cancel();
  fake_->silent = false;
  EXPECT_THAT(run(*q, {5, 6}), ElementsAre(0, 0));
  EXPECT_FALSE(fake_->queues[0].cancel);
}

TEST_F(CardTest, AdvanceWithoutWorkTouchesNothing) {
  const auto q = queue(4);
  EXPECT_EQ(engine_->advance(*q), 0u);
  EXPECT_TRUE(fake_->queues.empty());
}

TEST_F(CardTest, APoolThatNeedsFlushesIsNotForACardBehindCaches) {
  pool_ = map(platform_, 0, Coherence::software);
  const auto q = queue(4);
  EXPECT_THAT(run(*q, {1}), ElementsAre(PENSTOCK_UNSUPPORTED));
}

TEST_F(CardTest, AQueueWithoutAPoolHasNoWindows) {
  QueueConfig config;
  config.depth = 2;
  const auto q = Queue::create(nullptr, config).value();
  EXPECT_THAT(run(*q, {1}), ElementsAre(0));
  EXPECT_EQ(fake_->registers[PENSTOCK_REGISTER_QUEUE + PENSTOCK_REGISTER_QUEUE_WINDOWS], 0u);
}

TEST_F(CardTest, TheQueueOutlivesTheEngine) {
  const auto q = queue(4);
  EXPECT_THAT(run(*q, {1}), ElementsAre(0));
  engine_.reset();
  // Another card takes it over.
  fake_ = std::make_shared<FakeCard>();
  open();
  EXPECT_THAT(run(*q, {2}), ElementsAre(0));
  EXPECT_EQ(fake_->queues[0].head, 1u);
}

TEST(Bus, ByNameOrTheBestThatIsThere) {
  const auto factory = [](std::string name, int preference, Status available) {
    BusFactory made;
    made.name = std::move(name);
    made.preference = preference;
    made.probe = [available] { return available; };
    made.make = [](const std::string& options) -> Result<std::unique_ptr<Bus>> {
      if (options == "wrong") return error(Code::invalid_argument, "wrong options");
      return std::unique_ptr<Bus>(std::make_unique<FakeBus>(std::make_shared<FakeCard>()));
    };
    return made;
  };
  EXPECT_EQ(make_bus("").status().code(), Code::not_found);
  ASSERT_TRUE(register_bus(factory("far", 9, error(Code::unsupported, "no cable"))).ok());
  EXPECT_THAT(make_bus("").status().message(), HasSubstr("far: no cable"));
  ASSERT_TRUE(register_bus(factory("near", 1, {})).ok());
  EXPECT_EQ(register_bus(factory("near", 1, {})).code(), Code::already_exists);
  EXPECT_EQ(register_bus(factory("no;name", 1, {})).code(), Code::invalid_argument);
  EXPECT_TRUE(make_bus("").ok());
  EXPECT_TRUE(make_bus("near").ok());
  EXPECT_EQ(make_bus("near;wrong").status().message(), "wrong options");
  EXPECT_EQ(make_bus("far").status().code(), Code::unsupported);
  EXPECT_THAT(make_bus("nowhere").status().message(), HasSubstr("there are far, near"));
  ASSERT_EQ(list_buses().size(), 2u);
  EXPECT_EQ(list_buses()[0].name, "far");
  const EngineFactory engine = card_engine_factory();
  EXPECT_TRUE(engine.probe().available);
  EXPECT_FALSE(engine.probe().simulated);  // "near" does not say so
  BusFactory model = factory("model", -1, {});
  model.simulated = true;
  ASSERT_TRUE(register_bus(model).ok());
  const std::vector<EngineVariant> variants = engine.probe().variants;
  ASSERT_EQ(variants.size(), 3u);
  EXPECT_EQ(variants[0].name, "card:far");
  EXPECT_FALSE(variants[0].available);
  EXPECT_EQ(variants[0].reason, "no cable");
  EXPECT_EQ(variants[1].name, "card:near");
  EXPECT_TRUE(variants[1].available && !variants[1].simulated);
  EXPECT_TRUE(variants[2].available && variants[2].simulated);
  EXPECT_THAT(engine.probe().reason, HasSubstr("near"));
  EXPECT_TRUE(engine.make("near").ok());
  EXPECT_THAT(engine.make("far").status().message(), HasSubstr("engine card: "));
}

TEST(Bus, OptionsAreTakenApart) {
  BusOptions options = BusOptions::parse("b", "seed=12;trace=/a=b;quiet").value();
  EXPECT_EQ(options.number("seed", 1, 0, 100), 12u);
  EXPECT_EQ(options.number("latency", 40, 1, 100), 40u);
  EXPECT_EQ(options.text("trace", ""), "/a=b");
  EXPECT_THAT(options.finish().message(), HasSubstr("no option \"quiet\"; there are seed"));
  EXPECT_EQ(options.number("quiet", 0, 0, 1), 1u);
  EXPECT_TRUE(options.finish().ok());
  for (const char* wrong : {"seed=101", "seed=", "seed=-1", "seed=1x"}) {
    BusOptions bad = BusOptions::parse("b", wrong).value();
    bad.number("seed", 1, 0, 100);
    EXPECT_THAT(bad.finish().message(), HasSubstr("number from 0 to 100")) << wrong;
  }
  EXPECT_EQ(BusOptions::parse("b", "a=1;a=2").status().code(), Code::invalid_argument);
  EXPECT_EQ(BusOptions::parse("b", "=2").status().code(), Code::invalid_argument);
}

}  // namespace
}  // namespace penstock::card
