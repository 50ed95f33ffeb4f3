// The registers over AXI4-Lite: every offset, all access rules, interrupts, the first error,
// counters, forwarded accesses, soft reset.
#include <gtest/gtest.h>

#include <array>
#include <map>
#include <optional>
#include <set>

#include "Vpenstock_registers.h"
#include "penstock/descriptor/register_map.h"
#include "penstock/descriptor/types.h"
#include "penstock/rtl/common/clocked_test.h"

namespace penstock::rtl {
namespace {

constexpr unsigned kOkay = 0;
constexpr unsigned kSlverr = 2;
constexpr int kPatience = 200;  // cycles for one access

struct Answer {
  std::uint32_t value = 0;
  unsigned resp = ~0U;
  bool operator==(const Answer&) const = default;
};
std::ostream& operator<<(std::ostream& out, const Answer& answer) {
  return out << "{" << std::hex << answer.value << std::dec << ", resp " << answer.resp << "}";
}

// A host on the port, and the holder of queues and windows behind cfg_*.
class Bench {
 public:
  explicit Bench(unsigned seed) : dut_(seed) {
    dut_->s_axil_awvalid = dut_->s_axil_wvalid = dut_->s_axil_arvalid = 0;
    dut_->s_axil_bready = dut_->s_axil_rready = 0;
    dut_->cfg_ready_i = 0;
    dut_->soft_reset_done_i = 0;
    dut_->idle_i = 1;
    dut_->queue_event_valid_i = 0;
    dut_->error_valid_i = 0;
    dut_->counter_i = 0;
    dut_->rows_i = 0;
    dut_.reset();
  }
  Vpenstock_registers* operator->() { return dut_.operator->(); }
  std::uint64_t random() { return dut_.random(); }
  std::uint64_t cycles() const { return dut_.cycles(); }

  // One cycle, with the holder of cfg_* answering after some cycles.
  void tick() {
    dut_.eval();
    const bool asked = dut_->cfg_valid_o && answering_;
    const bool ready = asked && dut_.chance(30);
    dut_->cfg_ready_i = ready;
    dut_->cfg_rdata_i = static_cast<std::uint32_t>(dut_.random());
    dut_->cfg_error_i = dut_.chance(50);
    if (ready) {
      const unsigned offset = dut_->cfg_addr_o;
      dut_->cfg_error_i = refused_.contains(offset);
      if (dut_->cfg_write_o && !dut_->cfg_error_i) held_[offset] = dut_->cfg_wdata_o;
      dut_->cfg_rdata_i = held_[offset];
      ++forwarded_;
    }
    dut_.tick();
    dut_->cfg_ready_i = 0;
  }

  Answer read(unsigned offset) {
    dut_->s_axil_araddr = offset;
    dut_->s_axil_arvalid = 1;
    for (int cycle = 0; cycle < kPatience; ++cycle) {
      dut_.eval();
      const bool taken = dut_->s_axil_arvalid && dut_->s_axil_arready;
      dut_->s_axil_rready = dut_.chance(50);
      dut_.eval();
      const bool answered = dut_->s_axil_rvalid && dut_->s_axil_rready;
      const Answer answer{dut_->s_axil_rdata, dut_->s_axil_rresp};
      tick();
      if (taken) {
        dut_->s_axil_arvalid = 0;
        dut_->s_axil_araddr = static_cast<unsigned>(dut_.random() & 0xffff);
      }
      if (answered) {
        dut_->s_axil_rready = 0;
        return answer;
      }
    }
    ADD_FAILURE() << "no answer to a read of 0x" << std::hex << offset;
    return {};
  }

  // Address and data come in any order, some cycles apart.
  unsigned write(unsigned offset, std::uint32_t value, unsigned strobes = 0xf) {
    bool address = false;
    bool data = false;
    for (int cycle = 0; cycle < kPatience; ++cycle) {
      if (!address && !dut_->s_axil_awvalid && dut_.chance(50)) {
        dut_->s_axil_awvalid = 1;
        dut_->s_axil_awaddr = offset;
      }
      if (!data && !dut_->s_axil_wvalid && dut_.chance(50)) {
        dut_->s_axil_wvalid = 1;
        dut_->s_axil_wdata = value;
        dut_->s_axil_wstrb = strobes;
      }
      dut_->s_axil_bready = dut_.chance(50);
      dut_.eval();
      const bool aw = dut_->s_axil_awvalid && dut_->s_axil_awready;
      const bool w = dut_->s_axil_wvalid && dut_->s_axil_wready;
      const bool b = dut_->s_axil_bvalid && dut_->s_axil_bready;
      const unsigned resp = dut_->s_axil_bresp;
      tick();
      if (aw) {
        address = true;
        dut_->s_axil_awvalid = 0;
      }
      if (w) {
        data = true;
        dut_->s_axil_wvalid = 0;
        dut_->s_axil_wdata = static_cast<std::uint32_t>(dut_.random());
      }
      if (b) {
        EXPECT_TRUE(address && data);
        dut_->s_axil_bready = 0;
        return resp;
      }
    }
    ADD_FAILURE() << "no answer to a write of 0x" << std::hex << offset;
    return ~0U;
  }
  std::uint32_t value(unsigned offset) {
    const Answer answer = read(offset);
    EXPECT_EQ(answer.resp, kOkay) << std::hex << offset;
    return answer.value;
  }
  std::uint64_t wide(unsigned offset) {
    const std::uint64_t low = value(offset);
    return low | std::uint64_t{value(offset + 4)} << 32;
  }

  std::map<unsigned, std::uint32_t>& held() { return held_; }
  std::set<unsigned>& refused() { return refused_; }
  void stop_answering() { answering_ = false; }
  unsigned forwarded() const { return forwarded_; }

 private:
  Clocked<Vpenstock_registers> dut_;
  std::map<unsigned, std::uint32_t> held_;
  std::set<unsigned> refused_;
  bool answering_ = true;
  unsigned forwarded_ = 0;
};

// Offsets below 0x1000 that exist, and those of them that can be written, from the map's text.
std::set<unsigned> known_offsets() {
  std::set<unsigned> known{0x000, 0x004, 0x008, 0x00c, 0x010, 0x014, 0x018, 0x01c,
                           0x020, 0x024, 0x028, 0x080, 0x084, 0x088, 0x090, 0x094,
                           0x098, 0x0a0, 0x0a4, 0x0a8, 0x0c0, 0x0c4, 0x0c8, 0x0cc};
  for (unsigned i = 0; i < 12; ++i) known.insert(0x040 + 4 * i);
  for (unsigned i = 0; i < 32; ++i) known.insert(0x100 + 4 * i);
  for (unsigned i = 0; i < 26; ++i) known.insert(0x180 + 4 * i);
  return known;
}
const std::set<unsigned> kWritable{0x080, 0x088, 0x090, 0x094, 0x098, 0x0a0, 0x0a4, 0x0a8};

TEST(Registers, HaveTheIdentityAndTheCapabilitiesOfTheMap) {
  Bench bench(1);
  EXPECT_EQ(bench.value(0x000), 0x4b545350U);
  EXPECT_EQ(bench.value(0x004), 0x00010000U);
  // NOP COPY REDUCE SIGNAL WAIT SELECT BARRIER
  EXPECT_EQ(bench.value(0x008), 0x13fU);
  EXPECT_EQ(bench.value(0x00c), 64U | 16U << 8 | 64U << 16 | 3U << 24);
  EXPECT_EQ(bench.value(0x010), 32U);
  EXPECT_EQ(bench.value(0x014), 131072U);
  EXPECT_EQ(bench.value(0x018), 8U | 8U << 8 | 64U << 16);
  EXPECT_EQ(bench.value(0x01c), 8U);
  EXPECT_EQ(bench.value(0x020), PENSTOCK_REGISTER_CAP_FILTERS_RESET);
  EXPECT_EQ(bench.value(0x024), PENSTOCK_REGISTER_CAP_SCORES_RESET);
  EXPECT_EQ(bench.value(0x028), PENSTOCK_REGISTER_CAP_NORMALISE_RESET);
  const std::set<unsigned> floats{PENSTOCK_F16, PENSTOCK_F32, PENSTOCK_BF16, PENSTOCK_F8E4M3,
                                  PENSTOCK_F8E5M2};
  std::uint32_t float_bits = 0;
  for (const unsigned type : floats) float_bits |= 1U << type;
  for (unsigned type = 0; type < PENSTOCK_TYPE_COUNT; ++type) {
    const std::uint32_t expected =
        (type == PENSTOCK_F64 ? 0 : 0x3fU) | (floats.contains(type) ? float_bits << 16 : 0);
    EXPECT_EQ(bench.value(PENSTOCK_REGISTER_CAP_TYPE_INT8 + 4 * type), expected) << type;
  }
  EXPECT_EQ(bench.value(0x088), 250000U);
  EXPECT_EQ(bench.value(0x084), 2U);  // idle
}

TEST(Registers, AnswerEveryOffsetByItsRule) {
  Bench bench(2);
  const std::set<unsigned> known = known_offsets();
  for (unsigned offset = 0; offset < 0x1000; ++offset) {
    const bool exists = known.contains(offset);
    const Answer answer = bench.read(offset);
    ASSERT_EQ(answer.resp, exists ? kOkay : kSlverr) << std::hex << offset;
    ASSERT_TRUE(exists || answer.value == 0) << std::hex << offset;
    if (!kWritable.contains(offset)) {
      ASSERT_EQ(bench.write(offset, 0xffffffff), kSlverr) << std::hex << offset;
    }
  }
  EXPECT_EQ(bench.forwarded(), 0U);
  EXPECT_FALSE(bench->soft_reset_o);
}

TEST(Registers, RefuseAPartOfAWord) {
  Bench bench(3);
  for (const unsigned offset : kWritable) {
    const std::uint32_t before = bench.value(offset);
    for (unsigned strobes = 0; strobes < 0xf; ++strobes) {
      ASSERT_EQ(bench.write(offset, ~before & ~2U, strobes), kSlverr) << std::hex << offset;
    }
    EXPECT_EQ(bench.value(offset), before) << std::hex << offset;
  }
  for (unsigned strobes = 0; strobes < 0xf; ++strobes) {
    ASSERT_EQ(bench.write(0x1000, 1, strobes), kSlverr);
  }
  EXPECT_EQ(bench.forwarded(), 0U);
}

TEST(Registers, HoldWhatIsWritten) {
  Bench bench(4);
  for (const unsigned offset : {0x088U, 0x0a0U, 0x0a4U}) {
    for (int i = 0; i < 8; ++i) {
      const auto value = static_cast<std::uint32_t>(bench.random());
      ASSERT_EQ(bench.write(offset, value), kOkay);
      ASSERT_EQ(bench.value(offset), value);
    }
  }
  EXPECT_EQ(bench->clock_khz_o, bench.value(0x088));
  EXPECT_FALSE(bench->enable_o);
  EXPECT_EQ(bench.write(0x080, 0xfffffffd), kOkay);
  EXPECT_TRUE(bench->enable_o);
  EXPECT_FALSE(bench->soft_reset_o);
  EXPECT_EQ(bench.value(0x080), 1U);
  EXPECT_EQ(bench.write(0x0a8, 0xffffffff), kOkay);
  EXPECT_EQ(bench.value(0x0a8), 1U);
}

TEST(Registers, ForwardWhatIsOfQueuesAndWindows) {
  Bench bench(5);
  std::map<unsigned, std::uint32_t> expected;
  for (int i = 0; i < 300; ++i) {
    const unsigned offset = 0x1000 + 4 * static_cast<unsigned>(bench.random() % (0xf000 / 4));
    const auto value = static_cast<std::uint32_t>(bench.random());
    if (bench.random() % 8 == 0) {
      bench.refused() = {offset};
      EXPECT_EQ(bench.write(offset, value), kSlverr);
      EXPECT_EQ(bench.read(offset), (Answer{0, kSlverr}));
      bench.refused().clear();
      EXPECT_EQ(bench.read(offset), (Answer{expected[offset], kOkay}));
    } else {
      EXPECT_EQ(bench.write(offset, value), kOkay);
      expected[offset] = value;
      EXPECT_EQ(bench.read(offset), (Answer{value, kOkay}));
    }
  }
  const unsigned before = bench.forwarded();
  EXPECT_GE(before, 600U);
  EXPECT_EQ(bench.write(0x1002, 1), kSlverr);
  EXPECT_EQ(bench.read(0x8001), (Answer{0, kSlverr}));
  EXPECT_EQ(bench.forwarded(), before);
}

TEST(Registers, LatchACausePerQueueAndInterruptWhereItMay) {
  Bench bench(6);
  for (unsigned queue = 0; queue < 64; ++queue) {
    const unsigned half = queue / 32;
    const std::uint32_t bit = 1U << queue % 32;
    bench->queue_event_queue_i = queue;
    bench->queue_event_valid_i = 1;
    bench.tick();
    bench->queue_event_valid_i = 0;
    bench->queue_event_queue_i = 63 - queue;
    EXPECT_EQ(bench.value(0x090 + 4 * half), bit);
    EXPECT_EQ(bench.value(0x094 - 4 * half), 0U);
    EXPECT_FALSE(bench->irq_o);
    EXPECT_EQ(bench.write(0x0a0 + 4 * half, ~bit), kOkay);
    EXPECT_FALSE(bench->irq_o);
    EXPECT_EQ(bench.write(0x0a0 + 4 * half, bit), kOkay);
    bench.tick();
    EXPECT_TRUE(bench->irq_o) << queue;
    EXPECT_EQ(bench.write(0x090 + 4 * half, ~bit), kOkay);
    EXPECT_EQ(bench.value(0x090 + 4 * half), bit);
    EXPECT_EQ(bench.write(0x090 + 4 * half, bit), kOkay);
    EXPECT_EQ(bench.value(0x090 + 4 * half), 0U);
    EXPECT_FALSE(bench->irq_o);
  }
}

TEST(Registers, KeepACauseThatComesWhileItIsCleared) {
  const auto event = [](Bench& bench, unsigned queue, bool on) {
    bench->queue_event_queue_i = queue;
    bench->queue_event_valid_i = on;
  };
  unsigned kept = 0;
  constexpr int kCycles = 12;
  for (int at = 0; at < kCycles; ++at) {
    Bench bench(1);
    EXPECT_EQ(bench.write(0x0a0, 1U << 7), kOkay);
    event(bench, 7, true);
    bench.tick();
    event(bench, 7, false);
    bench.tick();
    ASSERT_TRUE(bench->irq_o);
    // A write that clears all; queue 5 has its event in one cycle of it.
    bench->s_axil_awvalid = bench->s_axil_wvalid = bench->s_axil_bready = 1;
    bench->s_axil_awaddr = 0x090;
    bench->s_axil_wdata = 0xffffffff;
    bench->s_axil_wstrb = 0xf;
    int clearing = -1;
    for (int cycle = 0; cycle < kCycles; ++cycle) {
      event(bench, 5, cycle == at);
      bench.tick();
      bench->s_axil_awvalid = bench->s_axil_wvalid = 0;
      // The interrupt falls at the end of the cycle after that of the clearing.
      if (clearing < 0 && !bench->irq_o) clearing = cycle - 1;
    }
    event(bench, 5, false);
    bench->s_axil_bready = 0;
    ASSERT_GT(clearing, 0);
    EXPECT_EQ(bench.value(0x090), at >= clearing ? 1U << 5 : 0U) << at << " " << clearing;
    kept += at == clearing;
  }
  EXPECT_EQ(kept, 1U);
}

TEST(Registers, KeepTheFirstErrorUntilItIsCleared) {
  Bench bench(7);
  const auto raise = [&](unsigned code) {
    bench->error_valid_i = 1;
    bench->error_code_i = code;
    bench->error_queue_i = 40 + code;
    bench->error_sequence_i = 1000 + code;
    bench->error_address_i = 0x123456789abc0000U + code;
    for (unsigned i = 0; i < 32; ++i) bench->error_descriptor_i[i] = 77 * i + code;
    bench.tick();
    bench->error_valid_i = 0;
    bench->error_code_i = 0xff;
    bench->error_address_i = 0;
    for (unsigned i = 0; i < 32; ++i) bench->error_descriptor_i[i] = 0;
  };
  const auto expect = [&](unsigned code) {
    EXPECT_EQ(bench.value(0x0c0), code | (40 + code) << 8);
    EXPECT_EQ(bench.value(0x0c4), 1000 + code);
    EXPECT_EQ(bench.wide(0x0c8), 0x123456789abc0000U + code);
    for (unsigned i = 0; i < 32; ++i) EXPECT_EQ(bench.value(0x100 + 4 * i), 77 * i + code);
    EXPECT_EQ(bench.value(0x098), 1U);
    EXPECT_EQ(bench.value(0x084), 6U);
  };
  EXPECT_EQ(bench.write(0x0a8, 1), kOkay);
  raise(3);
  bench.tick();
  EXPECT_TRUE(bench->irq_o);
  raise(4);
  expect(3);
  EXPECT_EQ(bench.write(0x098, 0), kOkay);
  raise(2);
  expect(3);
  EXPECT_EQ(bench.write(0x098, 1), kOkay);
  EXPECT_EQ(bench.value(0x084), 2U);
  EXPECT_FALSE(bench->irq_o);
  raise(1);
  expect(1);
}

TEST(Registers, CountEventsAndKeepTheUpperHalfOfTheLowerOne) {
  Bench bench(8);
  const std::uint64_t start = bench.cycles();
  std::array<std::uint64_t, 13> expected{};
  for (int i = 0; i < 3000; ++i) {
    bench->counter_i = bench.random() & 0x1fff;
    bench->rows_i = bench.random() & 0xffff;
    bench->idle_i = bench.random() & 1;
    for (unsigned c = 2; c < 12; ++c) expected[c] += bench->counter_i >> c & 1U;
    if (bench->counter_i >> 12 & 1U) expected[12] += bench->rows_i;
    expected[1] += !bench->idle_i;
    bench.tick();
  }
  bench->counter_i = 0;
  bench->idle_i = 1;
  for (unsigned c = 1; c < 13; ++c) EXPECT_EQ(bench.wide(0x180 + 8 * c), expected[c]) << c;
  const std::uint64_t before = bench.wide(0x180);
  EXPECT_GE(before, 3000U);
  EXPECT_LE(before, bench.cycles() - start + 3);
  // 65,537 times 65,535 is 2^32 - 1: the next one carries into the upper half.
  bench->counter_i = 1U << 12;
  bench->rows_i = 0xffff;
  const std::uint64_t base = expected[12];
  for (int i = 0; i < 65537; ++i) bench.tick();
  bench->counter_i = 0;
  EXPECT_EQ(bench.wide(0x1e0), base + 0xffffffffU);
  // Up to the last number before the next carry.
  const std::uint64_t carry = std::uint64_t{1} << 33;
  std::uint64_t left = carry - 1 - bench.wide(0x1e0);
  bench->counter_i = 1U << 12;
  for (bench->rows_i = 0xffff; left >= 0xffff; left -= 0xffff) bench.tick();
  bench->rows_i = static_cast<std::uint16_t>(left);
  bench.tick();
  bench->counter_i = 0;
  EXPECT_EQ(bench.value(0x1e0), 0xffffffffU);
  bench->counter_i = 1U << 12;
  bench->rows_i = 1;
  bench.tick();
  bench->counter_i = 0;
  EXPECT_EQ(bench.value(0x1e4), 1U);
  EXPECT_EQ(bench.wide(0x1e0), carry);
}

TEST(Registers, StartAnewAfterASoftResetButForTheClock) {
  Bench bench(9);
  EXPECT_EQ(bench.write(0x088, 1234), kOkay);
  EXPECT_EQ(bench.write(0x080, 1), kOkay);
  for (const unsigned offset : {0x0a0U, 0x0a4U, 0x0a8U}) bench.write(offset, 0xffffffff);
  bench->queue_event_valid_i = 1;
  bench->error_valid_i = 1;
  bench->counter_i = 0x1fff;
  bench.tick();
  bench->queue_event_valid_i = 0;
  bench->error_valid_i = 0;
  bench->counter_i = 0;
  EXPECT_EQ(bench.write(0x080, 3), kOkay);
  EXPECT_TRUE(bench->soft_reset_o);
  EXPECT_EQ(bench.value(0x084) & 1U, 1U);
  // Queues and windows don't answer meanwhile.
  EXPECT_EQ(bench.read(0x1020), (Answer{0, kSlverr}));
  EXPECT_EQ(bench.write(0x1000, 1), kSlverr);
  EXPECT_EQ(bench.forwarded(), 0U);
  for (int i = 0; i < 50; ++i) bench.tick();
  EXPECT_TRUE(bench->soft_reset_o);
  bench->soft_reset_done_i = 1;
  bench.tick();
  bench->soft_reset_done_i = 0;
  EXPECT_FALSE(bench->soft_reset_o);
  EXPECT_FALSE(bench->irq_o);
  EXPECT_FALSE(bench->enable_o);
  EXPECT_EQ(bench.value(0x088), 1234U);
  EXPECT_EQ(bench.value(0x084), 2U);
  for (const unsigned offset :
       {0x080U, 0x090U, 0x094U, 0x098U, 0x0a0U, 0x0a4U, 0x0a8U, 0x0c0U, 0x0c4U, 0x0c8U, 0x0ccU}) {
    EXPECT_EQ(bench.value(offset), 0U) << std::hex << offset;
  }
  for (unsigned c = 1; c < 13; ++c) EXPECT_EQ(bench.wide(0x180 + 8 * c), 0U) << c;
  for (unsigned i = 0; i < 32; ++i) EXPECT_EQ(bench.value(0x100 + 4 * i), 0U);
}

TEST(Registers, AskTheHolderUntilItAnswers) {
  Bench bench(10);
  bench.stop_answering();
  bench->s_axil_araddr = 0x1000;
  bench->s_axil_arvalid = 1;
  bench.tick();
  bench->s_axil_arvalid = 0;
  for (int i = 0; i < 3; ++i) bench.tick();
  for (int i = 0; i < 50; ++i) {
    ASSERT_TRUE(bench->cfg_valid_o);
    ASSERT_EQ(bench->cfg_addr_o, 0x1000);
    ASSERT_FALSE(bench->cfg_write_o);
    ASSERT_FALSE(bench->s_axil_rvalid);
    bench.tick();
  }
}

TEST(Registers, TakeTurnsBetweenReadsAndWrites) {
  Bench bench(11);
  bench->s_axil_arvalid = 1;
  bench->s_axil_araddr = 0x000;
  bench->s_axil_rready = 1;
  bench->s_axil_awvalid = bench->s_axil_wvalid = 1;
  bench->s_axil_awaddr = 0x088;
  bench->s_axil_wdata = 5;
  bench->s_axil_wstrb = 0xf;
  bench->s_axil_bready = 1;
  unsigned reads = 0;
  unsigned writes = 0;
  for (int cycle = 0; cycle < 400; ++cycle) {
    bench->eval();
    reads += bench->s_axil_rvalid;
    writes += bench->s_axil_bvalid;
    bench.tick();
  }
  EXPECT_GE(reads, 40U);
  EXPECT_LE(reads > writes ? reads - writes : writes - reads, 1U);
}

}  // namespace
}  // namespace penstock::rtl
