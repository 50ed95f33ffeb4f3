// The synchronisation unit over simulated memory.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "Vpenstock_sync.h"
#include "penstock/descriptor/descriptor.h"
#include "penstock/rtl/common/clocked_test.h"
#include "penstock/sim/verilated/axi_memory.h"
#include "penstock/sim/verilated/axi_port.h"

namespace penstock::rtl {
namespace {

using testing::IsEmpty;

constexpr std::uint64_t kBus = 0x0077'0000'0000'0000;
constexpr std::uint32_t kQueues = 64;

struct Done {
  std::uint32_t status, field;
  std::uint64_t detail, cycle;
};

struct Job {
  std::uint32_t queue, opcode;
  std::uint64_t fence, lines, value;
  std::uint32_t count = 1, timeout_ms = 1'000'000;
};

class Rig {
 public:
  explicit Rig(const sim::AxiConfig& axi, std::uint32_t clock_khz = 100)
      : dut(static_cast<unsigned>(axi.seed)),
        slave(memory, axi),
        words_(0x8000),
        port_(PENSTOCK_AXI_PORT(*dut, m_axi)) {
    memory.attach(kBus, words_.data(), words_.size() * 8);
    slave.drive(port_);
    dut->sync_valid_i = 0;
    dut->sync_cancel_i = 0;
    dut->sync_done_ready_i = 0;
    dut->clock_khz_i = clock_khz;
    dut.reset();
    slave.drive(port_);
  }

  // The counter of fence `number`, and its bus address.
  std::uint64_t& fence(std::uint64_t number) { return words_[number * 8]; }
  static std::uint64_t bus(std::uint64_t number) { return kBus + number * 64; }

  void tick() {
    dut->sync_done_ready_i = dut.chance(60);
    dut->clk_i = 0;
    dut.eval();
    slave.sample(port_);
    taken_ = dut->sync_valid_i && dut->sync_ready_o;
    polls += dut->poll_o;
    if (dut->sync_done_valid_o && dut->sync_done_ready_i) {
      const std::uint32_t q = dut->sync_done_queue_o;
      EXPECT_FALSE(done.contains(q)) << "queue " << q << " ended twice";
      done[q] = {dut->sync_done_status_o, dut->sync_done_field_o, dut->sync_done_detail_o,
                 dut.cycles()};
    }
    dut.tick();
    slave.drive(port_);
  }

  // The cycle in which it was taken.
  std::uint64_t submit(const Job& job) {
    done.erase(job.queue);
    dut->sync_valid_i = 1;
    dut->sync_queue_i = static_cast<std::uint8_t>(job.queue);
    dut->sync_opcode_i = static_cast<std::uint8_t>(job.opcode);
    dut->sync_fence_i = job.fence;
    dut->sync_lines_i = job.lines;
    dut->sync_count_i = static_cast<std::uint8_t>(job.count);
    dut->sync_value_i = job.value;
    dut->sync_timeout_ms_i = job.timeout_ms;
    for (int limit = 1000; limit > 0; --limit) {
      tick();
      if (!taken_) continue;
      dut->sync_valid_i = 0;
      return dut.cycles();
    }
    throw std::runtime_error("no job is taken");
  }
  // Until so many have ended since their submission.
  void run(std::size_t ends, std::uint64_t limit) {
    for (; done.size() < ends && limit > 0; --limit) tick();
    ASSERT_GE(done.size(), ends) << "hangs";
  }
  void settle() {
    for (int i = 0; i < 5000 && !slave.idle(); ++i) tick();
    EXPECT_TRUE(dut->idle_o);
    EXPECT_THAT(slave.violations(), IsEmpty());
  }

  Clocked<Vpenstock_sync> dut;
  sim::AxiMemory memory;
  sim::AxiSlave slave;
  std::map<std::uint32_t, Done> done;
  std::uint64_t polls = 0;

 private:
  std::vector<std::uint64_t> words_;
  const sim::AxiPort port_;
  bool taken_ = false;
};

sim::AxiConfig chance(std::uint64_t seed) {
  sim::AxiConfig axi;
  axi.seed = seed;
  return axi;
}

Job make_signal(std::uint32_t queue, std::uint64_t fence, std::uint64_t value) {
  return {queue, PENSTOCK_OP_SIGNAL, Rig::bus(fence), 0x5555, value};
}
Job make_wait(std::uint32_t queue, std::uint64_t fence, std::uint64_t value) {
  return {queue, PENSTOCK_OP_WAIT, 0x5555, Rig::bus(fence), value};
}
Job make_barrier(std::uint32_t queue, std::uint64_t own, std::uint64_t first, std::uint32_t count,
                 std::uint64_t value) {
  return {queue, PENSTOCK_OP_BARRIER, Rig::bus(own), Rig::bus(first), value, count};
}

void expect(const Rig& rig, std::uint32_t queue, std::uint32_t status, std::uint32_t field,
            std::uint64_t detail) {
  ASSERT_TRUE(rig.done.contains(queue));
  const Done& d = rig.done.at(queue);
  EXPECT_EQ(d.status, status) << "queue " << queue;
  EXPECT_EQ(d.field, field) << "queue " << queue;
  EXPECT_EQ(d.detail, detail) << "queue " << queue;
}

TEST(Sync, SixtyFourWaitsEndInWhateverOrderTheirSignalsCome) {
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    Rig rig(chance(seed));
    for (std::uint32_t q = 0; q < kQueues; ++q) {
      rig.fence(q) = q;
      rig.submit(make_wait(q, q, 100 + q));
    }
    EXPECT_EQ(rig.dut->sync_waiting_o, ~std::uint64_t{0});
    std::vector<std::uint32_t> order(kQueues);
    for (std::uint32_t q = 0; q < kQueues; ++q) order[q] = q;
    std::shuffle(order.begin(), order.end(), rig.dut.random);
    for (int i = 0; i < 3000; ++i) rig.tick();
    EXPECT_THAT(rig.done, IsEmpty());
    std::size_t ended = 0;
    for (const std::uint32_t q : order) {
      // One below does not do.
      rig.fence(q) = 99 + q;
      for (int i = 0; i < 100; ++i) rig.tick();
      EXPECT_FALSE(rig.done.contains(q));
      rig.fence(q) = 100 + q + rig.dut.random() % 3;
      ++ended;
      if (rig.dut.chance(50)) rig.run(ended, 20000);
    }
    rig.run(kQueues, 20000);
    for (std::uint32_t q = 0; q < kQueues; ++q) {
      EXPECT_EQ(rig.done[q].status, 0u);
      EXPECT_EQ(rig.done[q].detail, rig.fence(q));
    }
    EXPECT_EQ(rig.dut->sync_waiting_o, 0u);
    rig.settle();
  }
}

TEST(Sync, AWaitHoldsBackNoOtherQueue) {
  sim::AxiConfig axi;
  axi.fixed = true;
  axi.read_latency = axi.write_latency = 50;
  Rig rig(axi);
  for (std::uint32_t q = 1; q < kQueues; ++q) rig.submit(make_wait(q, q, 1));
  for (int i = 0; i < 500; ++i) rig.tick();
  for (std::uint64_t value = 1; value < 20; ++value) {
    const std::uint64_t before = rig.submit(make_signal(0, 100, value));
    rig.run(1, 10000);
    // A read and a write; the others' polls do not stand before it.
    EXPECT_LT(rig.done[0].cycle - before, 2 * 50 + 60);
    EXPECT_EQ(rig.fence(100), value);
  }
  EXPECT_GT(rig.polls, 100u);
}

TEST(Sync, FencesNeverGoBack) {
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    Rig rig(chance(seed));
    std::uint64_t highest = 0, seen = 0;
    for (int round = 0; round < 6; ++round) {
      for (std::uint32_t q = 0; q < kQueues; ++q) {
        const std::uint64_t value = rig.dut.random() % 1000;
        highest = std::max(highest, value);
        // Of its line only the counter is written.
        rig.submit(make_signal(q, 7, value));
        EXPECT_GE(rig.fence(7), seen);
        seen = rig.fence(7);
      }
      for (int limit = 200000; rig.done.size() < kQueues && limit > 0; --limit) {
        rig.tick();
        ASSERT_GE(rig.fence(7), seen);
        seen = rig.fence(7);
      }
      ASSERT_EQ(rig.done.size(), kQueues);
      for (std::uint32_t q = 0; q < kQueues; ++q) expect(rig, q, 0, 0, 0);
      EXPECT_EQ(rig.fence(7), highest);
      rig.done.clear();
    }
    rig.settle();
  }
}

TEST(Sync, DeadlinesAreCountedInMilliseconds) {
  for (const std::uint32_t khz : {10u, 250u}) {
    Rig rig(chance(5), khz);
    rig.fence(3) = 41;
    for (const std::uint32_t timeout_ms : {1u, 7u, 20u}) {
      Job job = make_wait(9, 3, 42);
      job.timeout_ms = timeout_ms;
      const std::uint64_t before = rig.submit(job);
      rig.run(1, 100000);
      expect(rig, 9, PENSTOCK_DEADLINE_EXCEEDED, 0, 41);
      EXPECT_GE(rig.done[9].cycle - before + 4, std::uint64_t{timeout_ms} * khz);
      EXPECT_LE(rig.done[9].cycle - before, std::uint64_t{timeout_ms} * khz + 600);
    }
    // There is always one look.
    rig.fence(3) = 42;
    Job job = make_wait(9, 3, 42);
    job.timeout_ms = 0;
    rig.submit(job);
    rig.run(1, 10000);
    expect(rig, 9, 0, 0, 42);
    // The longest deadline of the fastest clock is far away.
    rig.dut->clock_khz_i = 0xffffffff;
    job.value = 43;
    job.timeout_ms = 0xffffffff;
    rig.submit(job);
    for (int i = 0; i < 2000; ++i) rig.tick();
    EXPECT_THAT(rig.done, IsEmpty());
  }
}

TEST(Sync, CancelEndsWaitsAndLetsSignalsBe) {
  Rig rig(chance(6));
  rig.submit(make_wait(1, 10, 5));
  rig.submit(make_wait(2, 10, 5));
  rig.submit(make_barrier(3, 20, 20, 4, 9));
  for (int i = 0; i < 3000; ++i) rig.tick();
  EXPECT_THAT(rig.done, IsEmpty());
  EXPECT_EQ(rig.fence(20), 9u);
  rig.dut->sync_cancel_i = 1u << 1 | 1u << 3 | 1u << 4;
  rig.run(2, 20000);
  expect(rig, 1, PENSTOCK_CANCELLED, 0, 0);
  expect(rig, 3, PENSTOCK_CANCELLED, 0, 0);
  EXPECT_FALSE(rig.done.contains(2));
  rig.submit(make_signal(4, 11, 3));
  rig.run(3, 20000);
  expect(rig, 4, 0, 0, 0);
  EXPECT_EQ(rig.fence(11), 3u);
  rig.fence(10) = 6;
  rig.run(4, 20000);
  expect(rig, 2, 0, 0, 6);
  rig.settle();
}

TEST(Sync, BarriersOfUpTo64) {
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    Rig rig(chance(seed + 10));
    for (const std::uint32_t count : {1u, 2u, 15u, 16u, 17u, 63u, 64u}) {
      // Also over a page's end, which is at fence 64 k.
      for (const std::uint64_t first : {std::uint64_t{128}, std::uint64_t{190}}) {
        for (std::uint32_t i = 0; i < count; ++i) rig.fence(first + i) = 4;
        const std::uint32_t own = static_cast<std::uint32_t>(rig.dut.random() % count);
        rig.submit(make_barrier(7, first + own, first, count, 5));
        std::vector<std::uint32_t> order;
        for (std::uint32_t i = 0; i < count; ++i)
          if (i != own) order.push_back(i);
        std::shuffle(order.begin(), order.end(), rig.dut.random);
        for (const std::uint32_t i : order) {
          for (std::uint64_t pause = rig.dut.random() % 100; pause > 0; --pause) rig.tick();
          EXPECT_THAT(rig.done, IsEmpty());
          rig.fence(first + i) = 5 + rig.dut.random() % 2;
        }
        rig.run(1, 50000);
        expect(rig, 7, 0, 0, 0);
        EXPECT_EQ(rig.fence(first + own), 5u);
      }
    }
    // The first that is behind, whatever stands behind it.
    for (const std::uint32_t behind : {0u, 5u, 31u, 63u}) {
      rig.done.clear();
      for (std::uint32_t i = 0; i < 64; ++i) rig.fence(128 + i) = i < behind ? 9 : 8;
      Job job = make_barrier(8, 300, 128, 64, 9);
      job.timeout_ms = 15;
      rig.submit(job);
      rig.run(1, 50000);
      expect(rig, 8, PENSTOCK_DEADLINE_EXCEEDED, 0, behind);
    }
    rig.settle();
  }
}

TEST(Sync, BusErrorsNameTheBurst) {
  Rig rig(chance(7));
  rig.memory.fail(Rig::bus(40), 64, true, true);
  rig.memory.fail(Rig::bus(50), 64, false, true);
  rig.submit(make_signal(0, 40, 1));
  rig.run(1, 10000);
  expect(rig, 0, PENSTOCK_IO_ERROR, PENSTOCK_FIELD_DST, Rig::bus(40));
  rig.submit(make_signal(0, 50, 1));
  rig.run(1, 10000);
  expect(rig, 0, PENSTOCK_IO_ERROR, PENSTOCK_FIELD_DST, Rig::bus(50));
  rig.submit(make_barrier(0, 50, 0, 2, 1));
  rig.run(1, 10000);
  expect(rig, 0, PENSTOCK_IO_ERROR, PENSTOCK_FIELD_DST, Rig::bus(50));
  rig.submit(make_wait(0, 40, 1));
  rig.run(1, 10000);
  expect(rig, 0, PENSTOCK_IO_ERROR, PENSTOCK_FIELD_SRC, Rig::bus(40));
  // The burst that failed begins where the last one left off.
  for (std::uint32_t i = 0; i < 16; ++i) rig.fence(28 + i) = 1;
  rig.submit(make_barrier(0, 28, 28, 16, 1));
  rig.run(1, 10000);
  expect(rig, 0, PENSTOCK_IO_ERROR, PENSTOCK_FIELD_SRC, Rig::bus(28));
  EXPECT_EQ(rig.fence(50), 0u);
  // Nothing of it stays behind.
  rig.memory.clear_failures();
  rig.submit(make_signal(0, 40, 1));
  rig.run(1, 10000);
  expect(rig, 0, 0, 0, 0);
  rig.settle();
}

// All of it at once, for long: every job ends, once, and as it should.
TEST(Sync, Mixture) {
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    Rig rig(chance(seed + 20));
    std::map<std::uint32_t, Job> open;
    std::uint64_t values[32] = {};
    std::uint64_t ended = 0;
    for (int step = 0; step < 30000; ++step) {
      const auto q = static_cast<std::uint32_t>(rig.dut.random() % kQueues);
      if (!open.contains(q)) {
        const std::uint64_t fence = rig.dut.random() % 32;
        const std::uint64_t ahead = values[fence] + rig.dut.random() % 3;
        Job job = rig.dut.chance(60) ? make_signal(q, fence, ahead) : make_wait(q, fence, ahead);
        if (rig.dut.chance(10)) job = make_barrier(q, fence, 0, 32, 0);
        job.timeout_ms = 40;
        rig.submit(job);
        if (job.opcode == PENSTOCK_OP_SIGNAL) values[fence] = std::max(values[fence], ahead);
        open[q] = job;
      }
      rig.tick();
      for (const auto& [queue, end] : rig.done) {
        const Job& job = open.at(queue);
        if (job.opcode == PENSTOCK_OP_WAIT) {
          EXPECT_EQ(end.detail >= job.value, end.status == PENSTOCK_OK);
        } else {
          EXPECT_EQ(end.status, static_cast<std::uint32_t>(PENSTOCK_OK));
        }
        open.erase(queue);
        ++ended;
      }
      rig.done.clear();
    }
    rig.run(open.size(), 200000);
    EXPECT_GT(ended, 1000u);
    for (std::uint64_t fence = 0; fence < 32; ++fence) EXPECT_EQ(rig.fence(fence), values[fence]);
    rig.settle();
  }
}

}  // namespace
}  // namespace penstock::rtl
