#include "penstock/engine/device_engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "penstock/engine/conformance.h"
#include "penstock/engine/device_rig_test.h"
#include "penstock/memory/fence.h"

namespace penstock {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST_F(DeviceEngineTest, NothingCompletesBeforeTheDeviceIsDoneAndAllInOrder) {
  word(0) = 7;
  copy(0, 64);
  copy(64, 128);  // of what the first writes
  submit(make(PENSTOCK_OP_NOP, 0, 0));
  EXPECT_EQ(advance(), 0u);
  EXPECT_EQ(device_->started, 2u);
  EXPECT_EQ(device_->marks, 1u);  // one for both
  device_->run();
  EXPECT_EQ(advance(), 0u);  // the mark is behind the second
  device_->run();
  EXPECT_EQ(advance(), 3u);
  EXPECT_THAT(completed(), ElementsAre(0, 0, 0));
  EXPECT_EQ(word(128), 7u);
  EXPECT_EQ(advance(), 0u);
  EXPECT_EQ(device_->marks, 1u);
}

// What is refused waits for its turn, and touches nothing.
TEST_F(DeviceEngineTest, ARefusedDescriptorCompletesInItsPlace) {
  copy(0, 64);
  copy(4096, 4100, 8);  // overlaps
  penstock_descriptor d = make(PENSTOCK_OP_COPY, 1, 1, 8);
  d.src[0] = penstock_address_make(3, 0);
  d.dst[0] = at(0);
  submit(d);
  d.version = 9;
  submit(d);
  copy(0, 128);
  EXPECT_EQ(advance(), 0u);
  EXPECT_EQ(device_->started, 2u);
  device_->run(2);
  EXPECT_EQ(advance(), 5u);
  EXPECT_THAT(completed(), ElementsAre(0, std::uint32_t{PENSTOCK_INVALID_ARGUMENT},
                                       std::uint32_t{PENSTOCK_OUT_OF_RANGE},
                                       std::uint32_t{PENSTOCK_UNSUPPORTED}, 0));
}

TEST_F(DeviceEngineTest, SignalComesAfterWhatPrecedesItAndWaitHoldsBackWhatFollows) {
  word(0) = 5;
  copy(0, 64);
  signal(128, 3);
  wait(192, 1);
  copy(0, 256);
  advance();
  EXPECT_EQ(Fence(*pool_, data_ + 128).load(), 0u);
  device_->run();
  EXPECT_EQ(advance(), 2u);
  EXPECT_EQ(Fence(*pool_, data_ + 128).load(), 3u);
  EXPECT_EQ(device_->started, 1u);
  Fence(*pool_, data_ + 192).signal(1);
  EXPECT_EQ(advance(), 1u);
  EXPECT_EQ(device_->started, 2u);
  device_->run();
  EXPECT_EQ(advance(), 1u);
  EXPECT_THAT(completed(), ElementsAre(0, 0, 0, 0));
  EXPECT_EQ(word(256), 5u);
}

TEST_F(DeviceEngineTest, BarrierSignalsAfterWhatPrecedesItAndHoldsBackWhatFollows) {
  copy(0, 64);
  penstock_descriptor d = make(PENSTOCK_OP_BARRIER, 2, 1, 2);
  d.dst[0] = at(4096);
  d.src[0] = at(4096);
  d.src[1] = 8;
  d.timeout_ms = 250;
  submit(d);
  copy(0, 256);
  advance();
  EXPECT_EQ(Fence(*pool_, data_ + 4096).load(), 0u);
  device_->run();
  EXPECT_EQ(advance(), 1u);
  EXPECT_EQ(Fence(*pool_, data_ + 4096).load(), 8u);
  EXPECT_EQ(device_->started, 1u);
  watching_.clock_ns += 250'000'000;
  EXPECT_EQ(advance(), 1u);
  device_->run();
  EXPECT_EQ(advance(), 1u);
  EXPECT_THAT(completed(), ElementsAre(0, std::uint32_t{PENSTOCK_DEADLINE_EXCEEDED}, 0));
}

// The host reads lists and weights itself: not before they are written.
TEST_F(DeviceEngineTest, AListThatIsStillBeingWrittenIsNotRead) {
  for (std::uint64_t s = 0; s < 9; ++s) {
    word(4096 + 8 * s) = at(8192 + 64 * s);
    word(8192 + 64 * s) = 1 << s;
  }
  copy(4096, 16384, 72);
  penstock_descriptor d = make(PENSTOCK_OP_REDUCE, 9, 1, 1);
  d.type = d.out_type = PENSTOCK_UINT64;
  d.flags = PENSTOCK_FLAG_SRC_LIST;
  d.src[0] = at(16384);
  d.dst[0] = at(0);
  submit(d);
  advance();
  EXPECT_EQ(device_->started, 1u);
  device_->run();
  advance();
  EXPECT_EQ(device_->started, 2u);
  device_->run();
  advance();
  EXPECT_THAT(completed(), ElementsAre(0, 0));
  EXPECT_EQ(word(0), 0x1ffu);
}

TEST_F(DeviceEngineTest, OnASoftwareCoherentPoolDestinationsArePublishedAfterTheMark) {
  open(Coherence::software);
  copy(4096, 8192, 256);
  copy(8192, 12288, 256);  // its source cannot be observed before it is published
  copy(4096, 16384, 256);
  signal(64, 1);
  advance();
  const auto written = [&](std::uint64_t offset, std::size_t bytes) {
    return WatchingPlatform::covers(watching_.written, data_ + offset, bytes);
  };
  const auto dropped = [&](std::uint64_t offset) {
    return WatchingPlatform::touches(watching_.invalidated, data_ + offset, 256);
  };
  EXPECT_TRUE(dropped(4096));
  EXPECT_TRUE(watching_.written.empty());
  EXPECT_EQ(device_->started, 1u);
  device_->run();
  EXPECT_FALSE(dropped(8192));
  advance();
  EXPECT_TRUE(written(8192, 256));
  EXPECT_TRUE(dropped(8192));
  EXPECT_EQ(device_->started, 3u);
  EXPECT_FALSE(WatchingPlatform::touches(watching_.written, data_ + 12288, 256));
  EXPECT_FALSE(WatchingPlatform::touches(watching_.written, data_ + 64, 64));
  device_->run(2);
  advance();
  EXPECT_TRUE(written(12288, 256));
  EXPECT_TRUE(written(16384, 256));
  EXPECT_TRUE(WatchingPlatform::touches(watching_.written, data_ + 64, 64));
  EXPECT_FALSE(dropped(12288));
  EXPECT_THAT(completed(), ElementsAre(0, 0, 0, 0));
}

TEST_F(DeviceEngineTest, WhatCannotBeStartedFailsAlone) {
  device_->answers = {Status(), error(Code::internal, "no kernel"), Status()};
  for (std::uint64_t i = 0; i < 3; ++i) copy(0, 64 + 64 * i);
  advance();
  device_->run(2);
  EXPECT_EQ(advance(), 3u);
  EXPECT_THAT(completed(), ElementsAre(0, std::uint32_t{PENSTOCK_INTERNAL}, 0));
}

// Memory of the device may be there again when what is under way is over.
TEST_F(DeviceEngineTest, NoSpaceWhileOthersAreUnderWayMeansLater) {
  device_->answers = {Status(), error(Code::no_space, "full"), error(Code::no_space, "full"),
                      Status(), error(Code::no_space, "full")};
  copy(0, 64);
  copy(0, 128);
  copy(0, 192);
  advance();
  advance();
  EXPECT_EQ(device_->refusals, 2u);
  EXPECT_EQ(device_->started, 1u);
  device_->run();
  advance();  // the second starts, the third has to wait
  EXPECT_EQ(device_->started, 2u);
  device_->answers = {error(Code::no_space, "too large for it")};
  device_->run();
  advance();  // alone on the device
  EXPECT_THAT(completed(), ElementsAre(0, 0, std::uint32_t{PENSTOCK_NO_SPACE}));
}

TEST_F(DeviceEngineTest, ALostDeviceFailsWhatItHasOnceAndTakesNothingMore) {
  auto second = Queue::create(pool_.get(), QueueConfig{}).value();
  penstock_descriptor d = make(PENSTOCK_OP_COPY, 1, 1, 8);
  d.src[0] = at(0);
  d.dst[0] = at(32768);
  ASSERT_TRUE(second->submit(d));
  EXPECT_TRUE(engine_->accepts(d).ok());
  engine_->advance(*second);
  copy(0, 64);
  submit(make(PENSTOCK_OP_NOP, 0, 0));
  copy(0, 128);
  signal(192, 1);
  advance();
  device_->lost = true;
  EXPECT_EQ(advance(), 4u);
  constexpr std::uint32_t kLost = PENSTOCK_IO_ERROR;
  EXPECT_THAT(completed(), ElementsAre(kLost, 0, kLost, kLost));
  EXPECT_EQ(Fence(*pool_, data_ + 192).load(), 0u);
  const Status refused = engine_->accepts(d);
  EXPECT_EQ(refused.code(), Code::io_error);
  EXPECT_THAT(refused.message(), HasSubstr("fake: the device is lost: it fell off the bus"));
  copy(0, 64);
  EXPECT_EQ(advance(), 1u);
  EXPECT_THAT(completed(), ElementsAre(kLost));
  EXPECT_EQ(device_->started, 3u);
  EXPECT_EQ(engine_->advance(*second), 1u);
  penstock_completion c;
  ASSERT_TRUE(second->poll(&c));
  EXPECT_EQ(c.status, kLost);
  EXPECT_FALSE(second->poll(&c));
  auto third = Queue::create(pool_.get(), QueueConfig{}).value();
  ASSERT_TRUE(third->submit(d));
  EXPECT_EQ(engine_->advance(*third), 1u);
}

TEST_F(DeviceEngineTest, WhatIsCancelledCompletesWhenTheDeviceHasLetGo) {
  copy(0, 64);
  copy(0, 128);
  wait(192, 1);
  copy(0, 256);
  advance();
  queue_->cancel();
  EXPECT_EQ(advance(), 0u);
  device_->run(2);
  EXPECT_EQ(advance(), 4u);
  constexpr std::uint32_t kCancelled = PENSTOCK_CANCELLED;
  EXPECT_THAT(completed(), ElementsAre(kCancelled, kCancelled, kCancelled, kCancelled));
  EXPECT_EQ(device_->started, 2u);
  queue_->reset_cancel();
  copy(0, 64);
  advance();
  device_->run();
  EXPECT_EQ(advance(), 1u);
  EXPECT_THAT(completed(), ElementsAre(0));
}

TEST_F(DeviceEngineTest, AQueueThatGoesWaitsForTheDevice) {
  open(Coherence::software);
  word(0) = 9;
  copy(0, 64);
  copy(0, 128);
  advance();
  EXPECT_EQ(device_->waiting(), 2u);
  queue_.reset();
  EXPECT_EQ(device_->waiting(), 0u);
  EXPECT_EQ(device_->log.back(), "closed");
  EXPECT_EQ(word(128), 9u);
  // Later nothing of it falls out of this host's caches.
  EXPECT_TRUE(WatchingPlatform::covers(watching_.written, data_ + 128, 8));
}

TEST_F(DeviceEngineTest, AStreamThatCannotBeOpenedIsTheAnswer) {
  device_->open_answer = error(Code::no_space, "no more streams");
  copy(0, 64);
  copy(0, 128);
  EXPECT_EQ(advance(), 2u);
  constexpr std::uint32_t kNoSpace = PENSTOCK_NO_SPACE;
  EXPECT_THAT(completed(), ElementsAre(kNoSpace, kNoSpace));
  device_->open_answer = Status();
  copy(0, 64);
  advance();
  device_->run();
  EXPECT_EQ(advance(), 1u);
}

TEST_F(DeviceEngineTest, WhatTheHostCannotReadIsRefused) {
  device_->unreadable = data_ + 4096;
  penstock_descriptor d = make(PENSTOCK_OP_REDUCE, 2, 1, 4);
  d.type = d.out_type = PENSTOCK_F32;
  d.redop = PENSTOCK_AVG;
  d.flags = PENSTOCK_FLAG_WEIGHTS;
  d.scale = d.src[0] = at(4096);
  d.src[1] = at(8192);
  d.dst[0] = at(0);
  submit(d);
  EXPECT_EQ(advance(), 1u);
  EXPECT_THAT(completed(), ElementsAre(std::uint32_t{PENSTOCK_OUT_OF_RANGE}));
  EXPECT_EQ(last_.field, std::uint32_t{PENSTOCK_FIELD_WEIGHTS});
  copy(4096, 0, 16);  // as an operand it is welcome
  advance();
  device_->run();
  EXPECT_EQ(advance(), 1u);
  EXPECT_THAT(completed(), ElementsAre(0));
}

TEST_F(DeviceEngineTest, ConformsWhateverTheDelay) {
  for (const Coherence coherence : {Coherence::hardware, Coherence::software}) {
    for (const std::uint32_t looks : {1u, 3u}) {
      close();
      PoolTest::TearDown();
      create(8 * kMiB);
      const auto pool = map(platform_, 0, coherence);
      const auto device = std::make_shared<FakeDevice>();
      device->looks_for_each = looks;
      const auto engine = make_device_engine(fake_capabilities(), device);
      ConformanceOptions options;
      options.pool = pool.get();
      options.quick = true;
      options.seed = looks;
      auto report = run_conformance(*engine, options);
      ASSERT_TRUE(report.ok()) << report.status().to_string();
      EXPECT_TRUE(report->passed()) << report->to_table();
      for (const ConformanceRow& row : report->rows)
        EXPECT_EQ(row.verdict, Verdict::pass) << row.operation << ' ' << row.type << row.reason;
    }
  }
}

}  // namespace
}  // namespace penstock
