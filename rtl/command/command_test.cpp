// The command processor: order, completions, doorbells, windows, errors, cancel, reset.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "penstock/rtl/command/command_test_fixture.h"

namespace penstock::rtl {
namespace {

using testing::IsEmpty;

TEST_F(Command, NopTakesFewCyclesBesideMemory) {
  constexpr std::uint32_t kLatency = 40;
  CommandRig& rig = start({.axi = fixed(kLatency), .slow_engines = false});
  CommandQueue& q = queue(5);
  for (int round = 0; round < 3; ++round) {
    q.submit(make(PENSTOCK_OP_NOP, 0, 0), {});
    const std::size_t events = rig.events.size();
    const std::uint64_t before = rig.dut.cycles();
    q.doorbell();
    while (rig.events.size() == events) rig.tick();
    const std::uint64_t cycles = rig.dut.cycles() - before;
    RecordProperty("cycles", static_cast<int>(cycles));
    printf("NOP: %d cycles beside a read and a write\n", static_cast<int>(cycles - 2 * kLatency));
    EXPECT_LE(cycles, 50 + 2 * kLatency);  // ten more are the registers' and the multiplexer's
    EXPECT_EQ(q.poll(), "");
    EXPECT_EQ(q.polled(), q.submitted());
    for (int i = 0; i < 100; ++i) rig.tick();
  }
  EXPECT_TRUE(rig.dut->idle_o);
}

TEST_F(Command, CopiesBackToBackTakeFewCyclesEach) {
  CommandRig& rig = start({.axi = fixed(200), .slow_engines = false});
  CommandQueue& q = queue(0, 7);
  for (std::uint32_t i = 0; i < 128; ++i)
    q.submit(make_copy(kPool + 0x200000 + i * 4096, kPool + i * 4096, 4096), {});
  q.doorbell();
  while (rig.jobs_ended < 16) rig.tick();
  const std::uint64_t before = rig.dut.cycles();
  while (rig.jobs_ended < 112) rig.tick();
  const double each = static_cast<double>(rig.dut.cycles() - before) / 96;
  printf("COPY: %.1f cycles each\n", each);
  EXPECT_LT(each, 60);
  run(100000);
}

TEST_F(Command, RegistersHoldAndRefuse) {
  CommandRig& rig = start(3);
  // After a reset everything reads as 0, whatever the memories held.
  for (const std::uint32_t q : {0u, 17u, 63u}) {
    for (std::uint32_t offset = 0; offset < 0x30; offset += 4) {
      EXPECT_EQ(rig.read(reg::queue(q, offset)), offset == reg::kState ? 2u : 0u) << offset;
    }
    for (std::uint32_t word = 0; word < 7; ++word)
      EXPECT_EQ(rig.read(reg::window(q, 15, word)), 0u);
  }
  for (std::uint32_t q = 0; q < 64; ++q) {
    EXPECT_FALSE(rig.write64(reg::queue(q, reg::kRing), 0x1234567800000000ull + q * 64));
    EXPECT_FALSE(rig.write(reg::queue(q, reg::kTimeout), 1000 + q));
    for (std::uint32_t w = 0; w < 16; ++w) rig.set_window(q, w, q * 16 + w, ~q, w, w & 3);
  }
  for (std::uint32_t q = 0; q < 64; ++q) {
    EXPECT_EQ(rig.read(reg::queue(q, reg::kRing)), q * 64);
    EXPECT_EQ(rig.read(reg::queue(q, reg::kRing + 4)), 0x12345678u);
    EXPECT_EQ(rig.read(reg::queue(q, reg::kTimeout)), 1000 + q);
    for (std::uint32_t w = 0; w < 16; ++w) {
      EXPECT_EQ(rig.read(reg::window(q, w, 0)), q * 16 + w);
      EXPECT_EQ(rig.read(reg::window(q, w, 2)), ~q);
      EXPECT_EQ(rig.read(reg::window(q, w, 4)), w);
      EXPECT_EQ(rig.read(reg::window(q, w, 6)), w & 3);
    }
  }
  const auto refused = [&](std::uint32_t offset, std::uint32_t value) {
    const std::uint32_t before = rig.read(reg::queue(9, offset));
    EXPECT_TRUE(rig.write(reg::queue(9, offset), value)) << offset << ' ' << value;
    EXPECT_EQ(rig.read(reg::queue(9, offset)), before);
  };
  refused(reg::kRing, 0x20);
  refused(reg::kCompletions, 1);
  refused(reg::kConfig, 0);
  refused(reg::kConfig, 17);
  refused(reg::kControl, 1);  // no depth yet
  refused(reg::kControl, 4);
  refused(reg::kWindows, 17);
  refused(reg::kTail, kStart);
  refused(reg::kHead, 0);
  refused(reg::kCompleted, 0);
  refused(reg::kState, 0);
  std::uint32_t value = 0;
  for (const std::uint32_t offset : {0x1030u, 0x103cu, 0x2000u, 0x7ffcu, 0x801cu, 0x1002u})
    EXPECT_TRUE(rig.access(false, offset, &value)) << offset;
  // What an enabled queue stands on cannot be changed.
  EXPECT_FALSE(rig.write(reg::queue(9, reg::kConfig), 16));
  EXPECT_FALSE(rig.write(reg::queue(9, reg::kControl), 1));
  EXPECT_EQ(rig.read(reg::queue(9, reg::kState)), 3u);
  refused(reg::kConfig, 4);
  refused(reg::kRing, 0);
  refused(reg::kCompletions + 4, 0);
  EXPECT_FALSE(rig.write(reg::queue(9, reg::kControl), 0));
  EXPECT_FALSE(rig.write(reg::queue(9, reg::kConfig), 4));
}

// Rings that are filled to the brim and wrap many times, counters that pass 2^32.
TEST_F(Command, FullRingsLoseNothing) {
  CommandRig& rig = start(11);
  for (const std::uint32_t number : {0u, 1u, 31u, 63u}) queue(number, number == 1 ? 1 : 5);
  CommandQueue& large = queue(7, 7);
  for (int round = 0; round < 12; ++round) {
    for (CommandQueue& q : queues_) {
      while (!q.full()) {
        penstock_descriptor d = make(PENSTOCK_OP_NOP, 0, 0);
        d.version = rig.dut.chance(30) ? 7 : 1;
        q.submit(d, d.version == 1
                        ? Expected{}
                        : Expected{PENSTOCK_UNSUPPORTED, PENSTOCK_FIELD_VERSION, d.version});
      }
      q.doorbell();
      EXPECT_LE(kStart + q.submitted() - q.read(reg::kHead), q.depth());
    }
    run(200000);
  }
  std::uint64_t total = 0;
  for (CommandQueue& q : queues_) {
    total += q.submitted();
    EXPECT_EQ(q.read(reg::kHead), kStart + q.submitted());
    EXPECT_EQ(q.read(reg::kCompleted), kStart + q.submitted());
    EXPECT_EQ(q.read(reg::kState), 3u);
  }
  EXPECT_GT(large.submitted(), 1000u);
  EXPECT_EQ(rig.events.size(), total);
  EXPECT_EQ(rig.begun, total);
  EXPECT_TRUE(rig.dut->idle_o);
}

TEST_F(Command, DoorbellsOutOfRangeStopTheirQueue) {
  struct Case {
    std::uint32_t first, second;
    bool legal;
  };
  // Depth 16; counts from the start.
  const Case cases[] = {{4, 3, false},           {4, 4, true},   {4, 20, true},
                        {4, 21, false},          {0, 17, false}, {4, 4 + 0x80000000u, false},
                        {4, 0xffffffffu, false}, {0, 16, true}};
  std::uint32_t number = 0;
  CommandRig& rig = start(5);
  for (const Case& c : cases) {
    CommandQueue& q = queue(number++);
    CommandQueue other(rig, 40, 4);
    for (std::uint32_t i = 0; i < c.first; ++i) q.submit(make(PENSTOCK_OP_NOP, 0, 0), {});
    q.doorbell();
    run(20000);
    const std::size_t reports = rig.reports.size();
    EXPECT_FALSE(q.write(reg::kTail, kStart + c.second));
    if (!c.legal) {
      ASSERT_EQ(rig.reports.size(), reports + 1);
      EXPECT_EQ(rig.reports.back().code, 3u);
      EXPECT_EQ(rig.reports.back().queue, q.queue());
      EXPECT_EQ(rig.reports.back().address, kStart + c.second);
      EXPECT_EQ(q.read(reg::kState), 0x307u);
      EXPECT_EQ(q.read(reg::kTail), kStart + c.first);
      // Nothing of it begins any more, whatever its doorbell says.
      const std::uint64_t begun = rig.begun;
      EXPECT_FALSE(q.write(reg::kTail, kStart + c.first + 1));
      for (int i = 0; i < 500; ++i) rig.tick();
      EXPECT_EQ(rig.begun, begun);
      // It can be disabled, and then starts anew.
      EXPECT_FALSE(q.write(reg::kControl, 0));
      EXPECT_EQ(q.read(reg::kState), 0x306u);
      q.enable();
      EXPECT_EQ(q.read(reg::kState), 3u);
      q.submit(make(PENSTOCK_OP_NOP, 0, 0), {});
      q.doorbell();
      run(20000);
    } else {
      EXPECT_EQ(rig.reports.size(), reports);
      EXPECT_EQ(q.read(reg::kTail), kStart + c.second);
      for (int i = 0; i < 3000; ++i) rig.tick();  // whatever stands in the ring completes
      EXPECT_EQ(q.read(reg::kCompleted), kStart + c.second);
    }
    EXPECT_FALSE(other.write(reg::kControl, 0));
  }
}

// Behind the last doorbell, and not behind what was fetched.
TEST_F(Command, ADoorbellDoesNotGoBackwardsBeforeAnythingIsFetched) {
  CommandRig& rig = start(6);
  CommandQueue& q = queue(0);
  rig.dut->enable_i = 0;
  for (int i = 0; i < 6; ++i) q.submit(make(PENSTOCK_OP_NOP, 0, 0), {});
  q.doorbell();
  for (int i = 0; i < 200; ++i) rig.tick();
  EXPECT_EQ(rig.begun, 0u);
  EXPECT_FALSE(q.write(reg::kTail, kStart + 5));
  ASSERT_EQ(rig.reports.size(), 1u);
  EXPECT_EQ(rig.reports.back().code, 3u);
  EXPECT_EQ(rig.reports.back().address, kStart + 5);
  EXPECT_EQ(q.read(reg::kTail), kStart + 6);
  rig.dut->enable_i = 1;
  for (int i = 0; i < 500; ++i) rig.tick();
  EXPECT_EQ(rig.begun, 0u);
}

// Up to a window's last byte, and one element more, in every type.
TEST_F(Command, AnOperandHasAsManyBytesAsItsTypeSays) {
  struct Size {
    std::uint8_t type;
    std::uint64_t bytes;
  };
  const Size sizes[] = {{PENSTOCK_INT8, 1},   {PENSTOCK_UINT8, 1}, {PENSTOCK_INT32, 4},
                        {PENSTOCK_UINT32, 4}, {PENSTOCK_INT64, 8}, {PENSTOCK_UINT64, 8},
                        {PENSTOCK_F16, 2},    {PENSTOCK_F32, 4},   {PENSTOCK_BF16, 2},
                        {PENSTOCK_F8E4M3, 1}, {PENSTOCK_F8E5M2, 1}};
  start(5);
  CommandQueue& q = queue(3, 6);
  for (const Size& size : sizes)
    for (const std::uint64_t more : {0, 1}) {
      penstock_descriptor d = make(PENSTOCK_OP_REDUCE, 2, 1);
      d.type = d.out_type = size.type;
      d.count = 8;
      d.dst[0] = kPool + 0x100000;
      d.src[0] = kPool + 0x102000;
      d.src[1] = kPool + kSize - (8 - more) * size.bytes;
      Expected expected{};
      if (more != 0) expected = {PENSTOCK_OUT_OF_RANGE, PENSTOCK_FIELD_SRC, d.src[1]};
      q.submit(d, expected);
    }
  q.doorbell();
  run(100000);
}

// What queue q works on: 8 KiB of its own.
std::uint64_t area(std::uint32_t q) { return kPool + 0x100000 + q * 0x2000; }
std::uint64_t fence(std::uint32_t q) { return kPool + q * 64; }

// One queue's mixture, and what its memory should be in the end.
class Mixture {
 public:
  Mixture(CommandRig& rig, std::uint32_t q) : rig_(rig), q_(q), bytes_(0x2000) {
    for (std::uint8_t& byte : bytes_) byte = static_cast<std::uint8_t>(rig.dut.random());
    std::memcpy(rig.at(CommandRig::bus_of(area(q))), bytes_.data(), bytes_.size());
  }

  void submit(CommandQueue& queue) {
    switch (rig_.dut.random() % 12) {
      case 0:
        return queue.submit(make(PENSTOCK_OP_NOP, 0, 0), {});
      case 1:
        return queue.submit(make_signal(fence(q_), ++value_), {});
      case 2:  // its own fence, which it has raised already
        return queue.submit(make_wait(fence(q_), value_, 0), {PENSTOCK_OK, 0, value_});
      case 3: {  // a neighbour's first signal, which waits for nobody
        if (q_ % 2 == 0) return queue.submit(make_wait(fence(q_), 0, 0), {0, 0, value_});
        return queue.submit(make_wait(fence(q_ - 1), 1, 60000), {0, 0, 0, true});
      }
      case 4: {
        penstock_descriptor d = make(PENSTOCK_OP_SELECT, 3, 1);
        d.src[0] = area(q_);
        d.src[1] = 0x88;
        d.src[2] = 0x100 * rig_.dut.random() % 0x100000;
        d.dst[0] = 0x1000;
        d.count = rig_.dut.random() % (1 << 20);
        d.flags = rig_.dut.random() % 2 != 0 ? PENSTOCK_FLAG_COMMIT : 0;
        const std::uint64_t hash = d.src[0] + 3 * d.src[1] + 5 * d.src[2] + 7 * d.dst[0] +
                                   11 * d.count + (d.flags != 0 ? 13 : 0);
        return queue.submit(d, {0, PENSTOCK_FIELD_TASK, hash ^ CommandRig::bus_of(area(q_))});
      }
      case 5: {  // outside
        const std::uint64_t where = kPool + kSize - 10;
        return queue.submit(make_copy(area(q_), where, 11),
                            {PENSTOCK_OUT_OF_RANGE, PENSTOCK_FIELD_SRC, where});
      }
      case 6: {
        penstock_descriptor d = make_copy(area(q_), area(q_) + 1, 2);
        return queue.submit(d, {PENSTOCK_INVALID_ARGUMENT, PENSTOCK_FIELD_DST, area(q_)});
      }
      default:
        return fold(queue);
    }
  }

  bool correct() const {
    return std::memcmp(rig_.at(CommandRig::bus_of(area(q_))), bytes_.data(), bytes_.size()) == 0;
  }
  std::uint64_t value() const { return value_; }

 private:
  // A sum of bytes, of pieces that often are what the one before it wrote.
  void fold(CommandQueue& queue) {
    const auto n =
        static_cast<std::uint8_t>(1 + rig_.dut.random() % (rig_.dut.chance(10) ? 40 : 4));
    const std::uint64_t bytes = rig_.dut.random() % 200;
    penstock_descriptor d = make(PENSTOCK_OP_REDUCE, n, 1);
    d.type = d.out_type = PENSTOCK_UINT8;
    d.count = bytes;
    std::uint64_t src[64];
    std::vector<std::uint8_t> sum(bytes);
    for (std::uint32_t i = 0; i < n; ++i) {
      const std::uint64_t offset = 256 * (1 + rig_.dut.random() % 16);
      src[i] = area(q_) + offset;
      for (std::uint64_t b = 0; b < bytes; ++b)
        sum[b] = static_cast<std::uint8_t>(sum[b] + bytes_[offset + b]);
    }
    // In place, or somewhere else among the pieces.
    std::uint64_t to = rig_.dut.chance(30) ? src[0] : area(q_) + 256 * (17 + rig_.dut.random() % 4);
    for (std::uint32_t i = 1; i < n; ++i)
      if (src[i] == to) to = area(q_) + 256 * 20;
    d.dst[0] = to;
    if (n > 8) {
      // Its list stands in a place that no job writes. With a count of 0 nobody looks at it.
      const std::uint64_t list = area(q_) + 0x1800 + 8 * (rig_.dut.random() % 24) + 512 * lists_;
      if (lists_ == 3) return queue.submit(make(PENSTOCK_OP_NOP, 0, 0), {});
      ++lists_;
      std::memcpy(rig_.at(CommandRig::bus_of(list)), src, n * 8ull);
      std::memcpy(bytes_.data() + (list - area(q_)), src, n * 8ull);
      d.flags = PENSTOCK_FLAG_SRC_LIST;
      d.src[0] = list;
    } else {
      std::copy(src, src + n, d.src);
    }
    std::copy(sum.begin(), sum.end(), bytes_.begin() + static_cast<std::ptrdiff_t>(to - area(q_)));
    queue.submit(d, {});
  }

  CommandRig& rig_;
  const std::uint32_t q_;
  std::vector<std::uint8_t> bytes_;
  std::uint64_t value_ = 1;  // of its fence, once its first descriptor is done
  std::uint32_t lists_ = 0;
};

TEST_F(Command, SixtyFourQueuesOfEverything) {
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    queues_.clear();
    CommandRig& rig = start(seed);
    std::vector<Mixture> mixtures;
    for (std::uint32_t q = 0; q < 64; ++q) {
      queue(q, 2 + q % 4);
      mixtures.emplace_back(rig, q);
      queues_.back().submit(make_signal(fence(q), 1), {});
      mixtures.back().submit(queues_.back());
    }
    const std::uint32_t total = 24;
    for (bool more = true; more && !HasFailure();) {
      more = false;
      std::uint32_t q = 0;
      for (CommandQueue& queue : queues_) {
        ASSERT_EQ(queue.poll(), "");
        bool fresh = false;
        while (!queue.full() && queue.submitted() < total && rig.dut.chance(70)) {
          mixtures[q].submit(queue);
          fresh = true;
        }
        if (fresh || queue.submitted() <= 2) queue.doorbell();
        more = more || queue.submitted() < total;
        ++q;
      }
      for (int i = 0; i < 50; ++i) rig.tick();
      ASSERT_LT(rig.dut.cycles(), 2000000u);
    }
    run(1000000);
    if (HasFailure()) return;
    for (std::uint32_t q = 0; q < 64; ++q) EXPECT_TRUE(mixtures[q].correct()) << q;
    EXPECT_EQ(rig.events.size(), 64 * total);
    EXPECT_EQ(rig.begun, 64 * total);
    EXPECT_GT(rig.most_jobs, 3u);
    EXPECT_THAT(rig.reports, IsEmpty());
    for (int i = 0; i < 100; ++i) rig.tick();
    EXPECT_TRUE(rig.dut->idle_o);
    EXPECT_THAT(rig.slave.violations(), IsEmpty());
  }
}

}  // namespace
}  // namespace penstock::rtl
