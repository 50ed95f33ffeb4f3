#include "penstock/sim/verilated/axi_memory.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <vector>

#include "penstock/sim/verilated/axi_port.h"

namespace penstock::sim {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::uint64_t kBus = 0x4'0000;
constexpr std::uint64_t kBytes = 1u << 18;

// What a Verilated model would hold.
struct Signals {
  std::uint8_t m_axi_awvalid = 0, m_axi_awready = 0, m_axi_awid = 0, m_axi_awlen = 0;
  std::uint8_t m_axi_wvalid = 0, m_axi_wready = 0, m_axi_wlast = 0;
  std::uint8_t m_axi_bvalid = 0, m_axi_bready = 0, m_axi_bid = 0, m_axi_bresp = 0;
  std::uint8_t m_axi_arvalid = 0, m_axi_arready = 0, m_axi_arid = 0, m_axi_arlen = 0;
  std::uint8_t m_axi_rvalid = 0, m_axi_rready = 0, m_axi_rid = 0, m_axi_rresp = 0, m_axi_rlast = 0;
  std::uint64_t m_axi_awaddr = 0, m_axi_wstrb = 0, m_axi_araddr = 0;
  std::array<std::uint32_t, 16> m_axi_wdata{}, m_axi_rdata{};
};

struct Bench {
  explicit Bench(const AxiConfig& config) : bytes(kBytes / 8), slave(memory, config) {
    memory.attach(kBus, bytes.data(), kBytes);
    slave.drive(port);
  }
  void edge() {
    slave.sample(port);
    slave.drive(port);
  }
  std::vector<std::uint64_t> bytes;
  Signals s;
  AxiPort port = PENSTOCK_AXI_PORT(s, m_axi);
  AxiMemory memory;
  AxiSlave slave;
};

AxiConfig fixed(std::uint32_t read, std::uint32_t write) {
  AxiConfig config;
  config.fixed = true;
  config.read_latency = read;
  config.write_latency = write;
  return config;
}

TEST(AxiMemory, FixedReadsTakeTheirLatencyAndThenABeatPerCycle) {
  Bench b(fixed(40, 30));
  for (std::size_t i = 0; i < b.bytes.size(); ++i) b.bytes[i] = i;
  b.s.m_axi_arvalid = 1;
  b.s.m_axi_rready = 1;
  std::uint64_t beats = 0, first = 0, last = 0;
  for (std::uint64_t cycle = 0; cycle < 400; ++cycle) {
    b.s.m_axi_arvalid = cycle < 4 ? 1 : 0;
    b.s.m_axi_araddr = kBus + cycle * 4096;
    b.s.m_axi_arlen = 63;
    if (b.s.m_axi_rvalid != 0) {
      first = beats == 0 ? cycle : first;
      last = cycle;
      std::uint64_t word = 0;
      std::memcpy(&word, b.s.m_axi_rdata.data(), 8);
      ASSERT_EQ(word, beats * 8);
      ASSERT_EQ(b.s.m_axi_rlast, beats % 64 == 63);
      ASSERT_EQ(b.s.m_axi_rresp, kAxiOkay);
      ++beats;
    }
    b.edge();
  }
  EXPECT_EQ(beats, 256u);
  EXPECT_EQ(first, 40u);
  EXPECT_EQ(last, 40u + 255u);
  EXPECT_THAT(b.slave.violations(), IsEmpty());
}

TEST(AxiMemory, FixedWritesTakeTheirLatencyAndObeyTheirStrobes) {
  Bench b(fixed(40, 30));
  std::fill(b.bytes.begin(), b.bytes.end(), 0x1111111111111111u);
  b.s.m_axi_bready = 1;
  b.s.m_axi_awaddr = kBus + 128;
  b.s.m_axi_awlen = 1;
  b.s.m_axi_awid = 5;
  std::fill(b.s.m_axi_wdata.begin(), b.s.m_axi_wdata.end(), 0xffffffffu);
  std::uint64_t answered = 0;
  for (std::uint64_t cycle = 0; cycle < 60; ++cycle) {
    b.s.m_axi_awvalid = cycle == 0 ? 1 : 0;
    b.s.m_axi_wvalid = cycle == 1 || cycle == 2 ? 1 : 0;
    b.s.m_axi_wlast = cycle == 2 ? 1 : 0;
    b.s.m_axi_wstrb = cycle == 1 ? 0x8000'0000'0000'0f00u : ~std::uint64_t{0};
    if (b.s.m_axi_bvalid != 0) {
      EXPECT_EQ(answered, 0u);
      answered = cycle;
      EXPECT_EQ(b.s.m_axi_bid, 5);
      EXPECT_EQ(b.s.m_axi_bresp, kAxiOkay);
    }
    b.edge();
  }
  EXPECT_EQ(answered, 2u + 30u);
  EXPECT_EQ(b.bytes[16], 0x1111111111111111u);
  EXPECT_EQ(b.bytes[17], 0x11111111ffffffffu);
  EXPECT_EQ(b.bytes[23], 0xff11111111111111u);
  for (std::size_t i = 24; i < 32; ++i) EXPECT_EQ(b.bytes[i], ~std::uint64_t{0});
  EXPECT_EQ(b.bytes[15], 0x1111111111111111u);
  EXPECT_EQ(b.bytes[32], 0x1111111111111111u);
  EXPECT_THAT(b.slave.violations(), IsEmpty());
}

// A master that has several reads and writes under way on pages that differ by ID, so that each
// answer is known: a page is written and read in turn.
class Master {
 public:
  explicit Master(std::uint64_t seed) : random_(seed) {}

  // Before the edge: what it drives. Valid payloads stay until they are taken.
  void drive(Signals& s) {
    if (s.m_axi_arvalid == 0 && random_.chance(2)) offer_read(s);
    if (s.m_axi_awvalid == 0 && random_.chance(2)) offer_write(s);
    if (s.m_axi_wvalid == 0 && !queued_.empty() && random_.chance(2)) offer_beat(s);
    s.m_axi_rready = random_.below(4) != 0;
    s.m_axi_bready = random_.below(4) != 0;
  }
  // At the edge: what was taken.
  void edge(Signals& s) {
    if (s.m_axi_rvalid != 0 && s.m_axi_rready != 0) take_read(s);
    if (s.m_axi_bvalid != 0 && s.m_axi_bready != 0) {
      ASSERT_EQ(reading_[s.m_axi_bid], false);
      ASSERT_LT(s.m_axi_bid, kIds);
      busy_[s.m_axi_bid] = false;
      if (s.m_axi_bresp == kAxiOkay) shadow_[s.m_axi_bid] = pending_[s.m_axi_bid];
      ++(s.m_axi_bresp == kAxiOkay ? writes_ : errors_);
    }
    take_write(s);
  }
  bool idle() const {
    return std::none_of(busy_.begin(), busy_.end(), [](bool b) { return b; });
  }
  void stop() { stopped_ = true; }

  std::uint64_t reads_ = 0, writes_ = 0, errors_ = 0, compared_ = 0;

 private:
  static constexpr std::uint32_t kIds = 12;
  using Page = std::array<std::uint64_t, 64>;  // the first word of each beat

  std::uint32_t free_id() {
    const std::uint32_t id = random_.below(kIds);
    return busy_[id] || stopped_ ? kIds : id;
  }
  void offer_read(Signals& s) {
    const std::uint32_t id = free_id();
    if (id == kIds || shadow_.count(id) == 0) return;
    busy_[id] = reading_[id] = true;
    beats_[id] = 0;
    length_[id] = 1 + random_.below(64);
    s.m_axi_arvalid = 1;
    s.m_axi_arid = static_cast<std::uint8_t>(id);
    s.m_axi_araddr = kBus + id * 4096;
    s.m_axi_arlen = static_cast<std::uint8_t>(length_[id] - 1);
  }
  void offer_write(Signals& s) {
    const std::uint32_t id = free_id();
    if (id == kIds) return;
    busy_[id] = true;
    reading_[id] = false;
    s.m_axi_awvalid = 1;
    s.m_axi_awid = static_cast<std::uint8_t>(id);
    s.m_axi_awaddr = kBus + id * 4096;
    s.m_axi_awlen = 63;
  }
  void offer_beat(Signals& s) {
    const auto [id, beat] = queued_.front();
    pending_[id][beat] = random_.next();
    for (std::uint32_t w = 0; w < 8; ++w) {
      const std::uint64_t word = pending_[id][beat] + w;
      std::memcpy(&s.m_axi_wdata[std::size_t{2} * w], &word, 8);
    }
    s.m_axi_wvalid = 1;
    s.m_axi_wstrb = ~std::uint64_t{0};
    s.m_axi_wlast = beat == 63;
  }
  void take_write(Signals& s) {
    if (s.m_axi_wvalid != 0 && s.m_axi_wready != 0) {
      s.m_axi_wvalid = 0;
      queued_.pop_front();
    }
    if (s.m_axi_awvalid != 0 && s.m_axi_awready != 0) {
      s.m_axi_awvalid = 0;
      for (std::uint32_t beat = 0; beat < 64; ++beat) queued_.emplace_back(s.m_axi_awid, beat);
    }
    if (s.m_axi_arvalid != 0 && s.m_axi_arready != 0) s.m_axi_arvalid = 0;
  }
  void take_read(Signals& s) {
    const std::uint32_t id = s.m_axi_rid;
    ASSERT_LT(id, kIds);
    ASSERT_TRUE(busy_[id] && reading_[id]);
    for (std::uint32_t w = 0; w < 8 && s.m_axi_rresp == kAxiOkay; ++w) {
      std::uint64_t word = 0;
      std::memcpy(&word, &s.m_axi_rdata[std::size_t{2} * w], 8);
      ASSERT_EQ(word, shadow_[id][beats_[id]] + w);
      ++compared_;
    }
    ++beats_[id];
    ASSERT_EQ(s.m_axi_rlast != 0, beats_[id] == length_[id]);
    if (s.m_axi_rlast == 0) return;
    busy_[id] = false;
    ++(s.m_axi_rresp == kAxiOkay ? reads_ : errors_);
  }

  Random random_;
  std::array<bool, kIds> busy_{}, reading_{};
  std::array<std::uint32_t, kIds> beats_{}, length_{};
  std::map<std::uint32_t, Page> shadow_, pending_;
  std::deque<std::pair<std::uint32_t, std::uint32_t>> queued_;
  bool stopped_ = false;
};

AxiCounts run_traffic(std::uint64_t seed, std::uint32_t errors) {
  AxiConfig config;
  config.seed = seed;
  config.read_error_one_in = config.write_error_one_in = errors;
  Bench b(config);
  Master master(seed ^ 0x5555);
  const auto cycle = [&] {
    master.drive(b.s);
    b.slave.sample(b.port);
    master.edge(b.s);
    b.slave.drive(b.port);
  };
  for (std::uint32_t i = 0; i < 20000; ++i) cycle();
  master.stop();
  for (std::uint32_t i = 0; i < 20000 && !master.idle(); ++i) cycle();
  EXPECT_TRUE(master.idle()) << "seed " << seed;
  EXPECT_TRUE(b.slave.idle());
  EXPECT_THAT(b.slave.violations(), IsEmpty());
  EXPECT_GT(master.compared_, 100u) << "seed " << seed;
  EXPECT_GT(master.writes_, 5u);
  EXPECT_EQ(master.errors_, b.slave.counts().read_errors + b.slave.counts().write_errors);
  return b.slave.counts();
}

TEST(AxiMemory, AMasterGetsWhatItWroteWhateverTheSeed) {
  AxiCounts all;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const AxiCounts counts = run_traffic(seed, 0);
    if (::testing::Test::HasFatalFailure()) return;
    all.reordered += counts.reordered;
    all.interleaved += counts.interleaved;
    all.ar_stalls += counts.ar_stalls;
    all.aw_stalls += counts.aw_stalls;
    all.w_stalls += counts.w_stalls;
    EXPECT_EQ(counts.read_errors + counts.write_errors, 0u);
  }
  EXPECT_GT(all.reordered, 100u);
  EXPECT_GT(all.interleaved, 100u);
  EXPECT_GT(all.ar_stalls, 1000u);
  EXPECT_GT(all.aw_stalls, 1000u);
  EXPECT_GT(all.w_stalls, 1000u);
}

TEST(AxiMemory, ErrorsComeByChanceAndLeaveMemoryAlone) {
  std::uint64_t errors = 0;
  for (std::uint64_t seed = 100; seed < 110; ++seed) {
    const AxiCounts counts = run_traffic(seed, 5);
    if (::testing::Test::HasFatalFailure()) return;
    errors += counts.read_errors;
    EXPECT_GT(counts.write_errors, 0u);
  }
  EXPECT_GT(errors, 10u);
}

TEST(AxiMemory, TheSameSeedGivesTheSameRun) {
  const AxiCounts a = run_traffic(3, 7), b = run_traffic(3, 7), c = run_traffic(4, 7);
  EXPECT_EQ(a.read_beats, b.read_beats);
  EXPECT_EQ(a.reordered, b.reordered);
  EXPECT_NE(a.read_beats, c.read_beats);
}

std::uint8_t read_once(Bench& b, std::uint64_t address) {
  b.s.m_axi_araddr = address;
  b.s.m_axi_arlen = 0;
  b.s.m_axi_arvalid = b.s.m_axi_rready = 1;
  for (int i = 0; i < 1000; ++i) {
    const bool taken = b.s.m_axi_arvalid != 0 && b.s.m_axi_arready != 0;
    const bool there = b.s.m_axi_rvalid != 0;
    const std::uint8_t response = b.s.m_axi_rresp;
    b.edge();
    if (taken) b.s.m_axi_arvalid = 0;
    if (there) return response;
  }
  return 0xff;
}
std::uint8_t write_once(Bench& b, std::uint64_t address) {
  b.s.m_axi_awaddr = address;
  b.s.m_axi_awlen = 0;
  b.s.m_axi_awvalid = b.s.m_axi_bready = b.s.m_axi_wlast = 1;
  b.s.m_axi_wstrb = ~std::uint64_t{0};
  b.s.m_axi_wdata.fill(0x77777777);
  for (int i = 0; i < 1000; ++i) {
    const bool address_taken = b.s.m_axi_awvalid != 0 && b.s.m_axi_awready != 0;
    const bool data_taken = b.s.m_axi_wvalid != 0 && b.s.m_axi_wready != 0;
    const bool there = b.s.m_axi_bvalid != 0;
    const std::uint8_t response = b.s.m_axi_bresp;
    b.edge();
    if (address_taken) b.s.m_axi_awvalid = 0;
    if (address_taken) b.s.m_axi_wvalid = 1;
    if (data_taken) b.s.m_axi_wvalid = 0;
    if (there) return response;
  }
  return 0xff;
}

TEST(AxiMemory, AddressesOutsideAreDecodeErrorsAndFaultsSlaveErrors) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    AxiConfig config;
    config.seed = seed;
    Bench b(config);
    b.memory.fail(kBus + 4096, 64, true, false);
    b.memory.fail(kBus + 8192, 64, false, true);
    EXPECT_EQ(read_once(b, kBus + kBytes), kAxiDecodeError);
    EXPECT_EQ(read_once(b, kBus - 64), kAxiDecodeError);
    EXPECT_EQ(write_once(b, kBus + kBytes), kAxiDecodeError);
    EXPECT_EQ(read_once(b, kBus + 4096), kAxiSlaveError);
    EXPECT_EQ(write_once(b, kBus + 4096), kAxiOkay);
    EXPECT_EQ(b.bytes[512], 0x7777777777777777u);
    EXPECT_EQ(read_once(b, kBus + 8192), kAxiOkay);
    EXPECT_EQ(write_once(b, kBus + 8192), kAxiSlaveError);
    EXPECT_EQ(b.bytes[1024], 0u);
    EXPECT_EQ(write_once(b, kBus), kAxiOkay);
    EXPECT_EQ(b.bytes[0], 0x7777777777777777u);
    EXPECT_THAT(b.slave.violations(), IsEmpty());
  }
}

TEST(AxiMemory, DetachedMemoryIsOutside) {
  Bench b(fixed(4, 4));
  EXPECT_EQ(read_once(b, kBus), kAxiOkay);
  b.memory.detach(kBus);
  EXPECT_EQ(read_once(b, kBus), kAxiDecodeError);
}

TEST(AxiMemory, ReadsOfOneIdComeInOrder) {
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    AxiConfig config;
    config.seed = seed;
    Bench b(config);
    for (std::size_t i = 0; i < b.bytes.size(); ++i) b.bytes[i] = i;
    std::uint64_t asked = 0, came = 0;
    b.s.m_axi_arlen = 1;
    b.s.m_axi_rready = 1;
    for (int i = 0; i < 20000 && came < 400; ++i) {
      b.s.m_axi_arvalid = asked < 200 ? 1 : 0;
      b.s.m_axi_araddr = kBus + asked * 128;
      asked += b.s.m_axi_arvalid != 0 && b.s.m_axi_arready != 0 ? 1 : 0;
      if (b.s.m_axi_rvalid != 0) {
        std::uint64_t word = 0;
        std::memcpy(&word, b.s.m_axi_rdata.data(), 8);
        ASSERT_EQ(word, came * 8) << "seed " << seed;
        ++came;
      }
      b.edge();
    }
    EXPECT_EQ(came, 400u) << "seed " << seed;
  }
}

TEST(AxiMemory, WritesOfOneIdTakeEffectInOrder) {
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    AxiConfig config;
    config.seed = seed;
    Bench b(config);
    std::uint32_t asked = 0, given = 0, answered = 0;
    b.s.m_axi_bready = b.s.m_axi_wlast = 1;
    b.s.m_axi_awaddr = kBus;
    b.s.m_axi_wstrb = ~std::uint64_t{0};
    for (int i = 0; i < 40000 && answered < 200; ++i) {
      b.s.m_axi_awvalid = asked < 200 ? 1 : 0;
      b.s.m_axi_wvalid = given < asked ? 1 : 0;
      b.s.m_axi_wdata[0] = given + 1;
      const bool taken = b.s.m_axi_awvalid != 0 && b.s.m_axi_awready != 0;
      given += b.s.m_axi_wvalid != 0 && b.s.m_axi_wready != 0 ? 1 : 0;
      answered += b.s.m_axi_bvalid != 0 ? 1 : 0;
      asked += taken ? 1 : 0;
      b.edge();
      ASSERT_GE(b.bytes[0] & 0xffffffffu, answered) << "seed " << seed;
    }
    EXPECT_EQ(answered, 200u) << "seed " << seed;
    EXPECT_EQ(b.bytes[0] & 0xffffffffu, 200u) << "seed " << seed;
    EXPECT_THAT(b.slave.violations(), IsEmpty());
  }
}

TEST(AxiMemory, IdleBusesCarryGarbage) {
  Bench b(fixed(4, 4));
  std::uint32_t changes = 0;
  std::array<std::uint32_t, 16> before = b.s.m_axi_rdata;
  for (int i = 0; i < 100; ++i) {
    b.edge();
    ASSERT_EQ(b.s.m_axi_rvalid, 0);
    ASSERT_EQ(b.s.m_axi_bvalid, 0);
    changes += before != b.s.m_axi_rdata ? 1 : 0;
    before = b.s.m_axi_rdata;
  }
  EXPECT_EQ(changes, 100u);
}

std::vector<std::string> violations_of(const std::function<void(Bench&)>& act) {
  AxiConfig config = fixed(4, 4);
  config.max_reads = 1;
  Bench b(config);
  act(b);
  return b.slave.violations();
}

TEST(AxiMemory, AMasterThatBreaksARuleIsSeen) {
  const auto read = [](std::uint64_t address, std::uint8_t length) {
    return [=](Bench& b) {
      b.s.m_axi_arvalid = 1;
      b.s.m_axi_araddr = address;
      b.s.m_axi_arlen = length;
      b.edge();
    };
  };
  EXPECT_THAT(violations_of(read(kBus + 4096 - 64, 0)), IsEmpty());
  EXPECT_THAT(violations_of(read(kBus + 4096 - 64, 1)), Contains(HasSubstr("cross 4 KiB")));
  EXPECT_THAT(violations_of(read(kBus + 8, 0)), Contains(HasSubstr("not aligned")));
  EXPECT_THAT(violations_of(read(kBus, 64)), Contains(HasSubstr("65 beats")));
  // The second address is not taken while the first is under way.
  const auto second = [&](std::uint8_t valid, std::uint64_t address) {
    return [=](Bench& b) {
      read(kBus, 0)(b);
      read(kBus + 64, 0)(b);
      b.s.m_axi_arvalid = valid;
      b.s.m_axi_araddr = address;
      b.edge();
    };
  };
  EXPECT_THAT(violations_of(second(1, kBus + 64)), IsEmpty());
  EXPECT_THAT(violations_of(second(1, kBus + 128)), Contains(HasSubstr("ar: changed")));
  EXPECT_THAT(violations_of(second(0, kBus + 64)), Contains(HasSubstr("ar: valid fell")));
}

TEST(AxiMemory, WriteDataOutOfStepIsSeen) {
  const auto write = [](std::uint8_t early, std::uint8_t last_at, std::uint8_t length) {
    return [=](Bench& b) {
      b.s.m_axi_awvalid = 1;
      b.s.m_axi_awaddr = kBus;
      b.s.m_axi_awlen = length;
      b.s.m_axi_wvalid = early;
      b.edge();
      b.s.m_axi_awvalid = 0;
      b.s.m_axi_wvalid = 1;
      for (std::uint8_t beat = 0; beat <= length; ++beat) {
        b.s.m_axi_wlast = beat == last_at;
        b.edge();
      }
      b.s.m_axi_wvalid = 0;
      b.edge();
    };
  };
  EXPECT_THAT(violations_of(write(0, 3, 3)), IsEmpty());
  EXPECT_THAT(violations_of(write(0, 2, 3)), Contains(HasSubstr("wlast is 1 at beat 3 of 4")));
  EXPECT_THAT(violations_of(write(0, 9, 3)), Contains(HasSubstr("wlast is 0 at beat 4 of 4")));
  EXPECT_THAT(violations_of(write(1, 0, 0)), Contains(HasSubstr("no address was taken")));
}

TEST(AxiMemory, OneDirectionMayBeMissing) {
  Signals s;
  std::vector<std::uint64_t> bytes(512);
  AxiMemory memory;
  memory.attach(kBus, bytes.data(), 4096);
  AxiSlave slave(memory, fixed(4, 4));
  const AxiPort port = PENSTOCK_AXI_READ_PORT(s, m_axi);
  s.m_axi_awready = 9;
  slave.sample(port);
  slave.drive(port);
  EXPECT_EQ(s.m_axi_awready, 9);
  EXPECT_EQ(s.m_axi_arready, 1);
}

}  // namespace
}  // namespace penstock::sim
