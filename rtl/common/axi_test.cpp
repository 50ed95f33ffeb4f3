// The AXI multiplexer and isolator between three masters and a memory that does what AXI allows:
// every byte arrives, also when the card is taken off the bus in mid-traffic.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <deque>
#include <vector>

#include "Vaxi_harness.h"
#include "penstock/rtl/common/clocked_test.h"
#include "penstock/sim/verilated/axi_memory.h"
#include "penstock/sim/verilated/axi_port.h"

namespace penstock::rtl {
namespace {

constexpr unsigned kMasters = 3;
constexpr std::uint64_t kBus = 0x7000000000;
constexpr std::uint64_t kRegion =
    64 * 1024;                          // that each master writes; those it reads stand before
constexpr unsigned kPatience = 100000;  // cycles for anything

struct Burst {
  std::uint64_t address;
  unsigned id;
  unsigned beats;
  unsigned done = 0;
};

std::uint32_t read_word(std::uint64_t address) {
  return static_cast<std::uint32_t>(address * 0x9e3779b1U >> 6) | 1U;
}

class Bench {
 public:
  Bench(unsigned seed, const sim::AxiConfig& config)
      : dut_(seed), slave_(memory_, config), port_(PENSTOCK_AXI_PORT(*dut_, m_axi)) {
    bytes_.resize(2 * kMasters * kRegion / 8);
    memory_.attach(kBus, bytes_.data(), bytes_.size() * 8);
    // What is read never changes.
    for (std::uint64_t at = 0; at < kMasters * kRegion; at += 64) {
      for (unsigned word = 0; word < 16; ++word) {
        const std::uint32_t value = read_word(kBus + at);
        std::memcpy(byte(at + 4 * word), &value, 4);
      }
    }
    old_ = bytes_;
    wanted_ = bytes_;
    dut_->isolate_i = 0;
    dut_->inside_rst_ni = 0;
    rest();
    slave_.drive(port_);
    dut_.reset();
    dut_->inside_rst_ni = 1;
    tick();
  }

  // What the masters ask for from now on: how many bursts each, and how often one begins.
  void ask(unsigned reads, unsigned writes, unsigned percent, unsigned max_beats) {
    percent_ = percent;
    max_beats_ = max_beats;
    for (Master& master : masters_) {
      master.reads_left = reads;
      master.writes_left = writes;
    }
  }
  void ask_one(unsigned which, unsigned reads, unsigned writes, unsigned max_beats) {
    ask(0, 0, 100, max_beats);
    masters_[which].reads_left = reads;
    masters_[which].writes_left = writes;
    eager_ = true;
  }

  void tick() {
    for (unsigned m = 0; m < kMasters; ++m) offer(m);
    dut_.eval();
    slave_.sample(port_);
    for (unsigned m = 0; m < kMasters; ++m) take(m);
    clean_ = dut_->clean_o;
    dut_.tick();
    slave_.drive(port_);
  }
  bool done() const {
    for (const Master& m : masters_) {
      if (m.reads_left + m.writes_left > 0 || m.ar_offered || m.aw_offered) return false;
      if (!m.reads.empty() || !m.owed.empty() || !m.responses.empty()) return false;
    }
    return true;
  }
  void run() {
    unsigned cycles = 0;
    while (!done() && ++cycles < kPatience) tick();
    ASSERT_TRUE(done()) << "traffic does not end";
    EXPECT_THAT(slave_.violations(), testing::IsEmpty());
  }

  // Every written byte is as it was wanted.
  void expect_written() const {
    EXPECT_EQ(std::memcmp(bytes_.data(), wanted_.data(), bytes_.size() * 8), 0);
  }
  // Every byte is as it was before, or as it was wanted.
  void expect_old_or_wanted() {
    unsigned changed = 0;
    const auto* now = reinterpret_cast<const std::uint8_t*>(bytes_.data());
    const auto* before = reinterpret_cast<const std::uint8_t*>(old_.data());
    const auto* wanted = reinterpret_cast<const std::uint8_t*>(wanted_.data());
    for (std::size_t i = 0; i < bytes_.size() * 8; ++i) {
      ASSERT_TRUE(now[i] == before[i] || now[i] == wanted[i]) << "byte " << i;
      changed += now[i] != before[i];
    }
    changed_ += changed;
    old_ = bytes_;
    wanted_ = bytes_;
  }

  // Takes the inside off the bus, resets it when the bus is clean, and lets it begin anew.
  void isolate() {
    dut_->isolate_i = 1;
    dut_.eval();
    unsigned cycles = 0;
    clean_ = false;
    while (!clean_ && ++cycles < kPatience) tick();
    ASSERT_TRUE(clean_) << "the bus does not come clean";
    EXPECT_TRUE(slave_.idle());
    dut_->inside_rst_ni = 0;
    rest();
    for (Master& master : masters_) master = Master{.next = master.next};
    for (int i = 0; i < 3; ++i) tick();
    EXPECT_TRUE(clean_);
    dut_->inside_rst_ni = 1;
    dut_->isolate_i = 0;
    tick();
    EXPECT_THAT(slave_.violations(), testing::IsEmpty());
  }

  std::uint64_t random() { return dut_.random(); }
  std::uint64_t cycles() const { return dut_.cycles(); }
  const sim::AxiCounts& counts() const { return slave_.counts(); }
  unsigned beats_checked() const { return beats_checked_; }
  unsigned changed() const { return changed_; }
  unsigned swallowed() const { return swallowed_; }
  sim::AxiMemory& memory() { return memory_; }
  unsigned errors() const { return errors_; }

 private:
  struct Master {
    unsigned reads_left = 0, writes_left = 0;
    bool ar_offered = false, aw_offered = false, w_offered = false;
    Burst ar{}, aw{};
    std::vector<Burst> reads{};  // in order per ID
    std::deque<Burst> owed{};    // data to give
    std::vector<Burst> responses{};
    std::uint64_t next = 0;  // where the next write goes
  };

  std::byte* byte(std::uint64_t at) { return reinterpret_cast<std::byte*>(bytes_.data()) + at; }
  std::uint64_t write_base(unsigned m) const { return (kMasters + m) * kRegion; }

  void rest() {
    dut_->s_axi_awvalid = dut_->s_axi_wvalid = dut_->s_axi_arvalid = 0;
    dut_->s_axi_bready = dut_->s_axi_rready = 0;
  }
  static void set(std::uint8_t& flags, unsigned m, bool on) {
    flags = static_cast<std::uint8_t>((flags & ~(1U << m)) | (on ? 1U << m : 0));
  }
  // A burst of up to max_beats_ that stays in its 4 KiB.
  unsigned beats_at(std::uint64_t at) {
    const unsigned room = static_cast<unsigned>((4096 - at % 4096) / 64);
    return 1 + static_cast<unsigned>(dut_.random() % std::min(room, max_beats_));
  }

  void offer(unsigned m) {
    Master& master = masters_[m];
    if (!master.ar_offered && master.reads_left > 0 && dut_.chance(percent_)) {
      const std::uint64_t at = m * kRegion + (eager_ ? 0 : dut_.random() % (kRegion / 64) * 64);
      master.ar = {at, static_cast<unsigned>(eager_ ? 0 : dut_.random() % 16),
                   eager_ ? max_beats_ : beats_at(at)};
      master.ar_offered = true;
      --master.reads_left;
    }
    if (!master.aw_offered && master.writes_left > 0 && dut_.chance(percent_)) {
      // No two writes meet, so that their order does not matter.
      const unsigned beats = eager_ ? max_beats_ : beats_at(master.next);
      master.aw = {write_base(m) + master.next, static_cast<unsigned>(dut_.random() % 16), beats};
      master.next = (master.next + beats * 64) % kRegion;
      master.aw_offered = true;
      --master.writes_left;
    }
    set(dut_->s_axi_arvalid, m, master.ar_offered);
    set(dut_->s_axi_awvalid, m, master.aw_offered);
    put(dut_->s_axi_araddr, m, kBus + master.ar.address);
    put(dut_->s_axi_awaddr, m, kBus + master.aw.address);
    put_bits(dut_->s_axi_arid, m, 4, master.ar.id);
    put_bits(dut_->s_axi_awid, m, 4, master.aw.id);
    put_bits(dut_->s_axi_arlen, m, 8, master.ar.beats - 1);
    put_bits(dut_->s_axi_awlen, m, 8, master.aw.beats - 1);
    if (!master.owed.empty() && !master.w_offered && (eager_ || dut_.chance(80))) {
      const Burst& burst = master.owed.front();
      word_[m] = static_cast<std::uint32_t>(dut_.random());
      strobe_[m] = dut_.chance(50) ? ~std::uint64_t{0} : dut_.random();
      dut_->s_axi_wword[m] = word_[m];
      put(dut_->s_axi_wstrb, m, strobe_[m]);
      set(dut_->s_axi_wlast, m, burst.done + 1 == burst.beats);
      want(burst.address + 64 * burst.done, word_[m], strobe_[m]);
      master.w_offered = true;
    }
    set(dut_->s_axi_wvalid, m, master.w_offered);
    set(dut_->s_axi_rready, m, eager_ || dut_.chance(70));
    set(dut_->s_axi_bready, m, eager_ || dut_.chance(70));
  }

  void take(unsigned m) {
    Master& master = masters_[m];
    const auto flag = [m](unsigned flags) { return (flags >> m & 1U) != 0; };
    if (flag(dut_->s_axi_wvalid) && flag(dut_->s_axi_wready)) {
      Burst& burst = master.owed.front();
      master.w_offered = false;
      if (++burst.done == burst.beats) master.owed.pop_front();
    }
    if (flag(dut_->s_axi_arvalid) && flag(dut_->s_axi_arready)) {
      master.reads.push_back(master.ar);
      master.ar_offered = false;
    }
    if (flag(dut_->s_axi_awvalid) && flag(dut_->s_axi_awready)) {
      master.owed.push_back(master.aw);
      master.responses.push_back(master.aw);
      master.aw_offered = false;
    }
    if (flag(dut_->s_axi_rvalid) && flag(dut_->s_axi_rready)) take_read(m);
    if (flag(dut_->s_axi_bvalid) && flag(dut_->s_axi_bready)) {
      const unsigned id = dut_->s_axi_bid >> 4 * m & 0xfU;
      errors_ += (dut_->s_axi_bresp >> 2 * m & 3U) != 0;
      const auto it = std::find_if(master.responses.begin(), master.responses.end(),
                                   [id](const Burst& b) { return b.id == id; });
      ASSERT_NE(it, master.responses.end()) << "a response that no write waits for";
      master.responses.erase(it);
    }
    if (dut_->isolate_i && dut_->m_axi_rvalid && dut_->m_axi_rready) ++swallowed_;
  }

  void take_read(unsigned m) {
    Master& master = masters_[m];
    const unsigned id = dut_->s_axi_rid >> 4 * m & 0xfU;
    const auto it = std::find_if(master.reads.begin(), master.reads.end(),
                                 [id](const Burst& b) { return b.id == id; });
    ASSERT_NE(it, master.reads.end()) << "data that no read waits for";
    if ((dut_->s_axi_rresp >> 2 * m & 3U) != 0) {
      ++errors_;
    } else {
      const std::uint32_t expected = read_word(kBus + it->address + 64 * it->done);
      for (unsigned word = 0; word < 16; ++word) {
        ASSERT_EQ(dut_->s_axi_rdata[word], expected) << "master " << m;
      }
      ++beats_checked_;
    }
    ++it->done;
    ASSERT_EQ(dut_->s_axi_rlast >> m & 1U, it->done == it->beats ? 1U : 0U);
    if (it->done == it->beats) master.reads.erase(it);
  }

  void want(std::uint64_t at, std::uint32_t word, std::uint64_t strobes) {
    auto* bytes = reinterpret_cast<std::uint8_t*>(wanted_.data()) + at;
    for (unsigned i = 0; i < 64; ++i) {
      if ((strobes >> i & 1U) != 0) bytes[i] = static_cast<std::uint8_t>(word >> 8 * (i % 4));
    }
  }

  template <typename Wide>
  static void put(Wide& wide, unsigned m, std::uint64_t value) {
    wide[2 * m] = static_cast<std::uint32_t>(value);
    wide[2 * m + 1] = static_cast<std::uint32_t>(value >> 32);
  }
  template <typename Int>
  static void put_bits(Int& bits, unsigned m, unsigned width, unsigned value) {
    const unsigned mask = ((1U << width) - 1) << width * m;
    bits = static_cast<Int>((bits & ~mask) | (value << width * m & mask));
  }

  Clocked<Vaxi_harness> dut_;
  sim::AxiMemory memory_;
  sim::AxiSlave slave_;
  sim::AxiPort port_;
  std::vector<std::uint64_t> bytes_, old_, wanted_;
  std::array<Master, kMasters> masters_{};
  std::array<std::uint32_t, kMasters> word_{};
  std::array<std::uint64_t, kMasters> strobe_{};
  unsigned percent_ = 50;
  unsigned max_beats_ = 64;
  bool eager_ = false;
  bool clean_ = false;
  unsigned beats_checked_ = 0;
  unsigned changed_ = 0;
  unsigned swallowed_ = 0;
  unsigned errors_ = 0;
};

TEST(AxiMux, BringsEveryBeatToItsMaster) {
  for (unsigned seed = 1; seed <= 8; ++seed) {
    Bench bench(seed, {.seed = seed});
    bench.ask(40, 15, 10 + 10 * seed, seed % 2 ? 64 : 3);
    ASSERT_NO_FATAL_FAILURE(bench.run()) << "seed " << seed;
    bench.expect_written();
    EXPECT_GE(bench.beats_checked(), kMasters * 40U);
    EXPECT_EQ(bench.counts().write_bursts, kMasters * 15U);
  }
}

TEST(AxiMux, BringsErrorsToTheirMaster) {
  Bench bench(3, {.seed = 3});
  bench.memory().fail(kBus, kRegion, true, false);  // the first master's reads
  bench.ask(10, 5, 50, 4);
  ASSERT_NO_FATAL_FAILURE(bench.run());
  EXPECT_EQ(bench.errors(), bench.counts().read_beats - bench.beats_checked());
  EXPECT_GE(bench.errors(), 10U);
  EXPECT_GE(bench.beats_checked(), 20U);
}

TEST(AxiMux, GivesOneMasterAloneTheFullRate) {
  for (unsigned which = 0; which < kMasters; ++which) {
    {
      Bench bench(which, {.fixed = true, .read_latency = 10, .write_latency = 10});
      bench.ask_one(which, 30, 0, 64);
      const std::uint64_t start = bench.cycles();
      ASSERT_NO_FATAL_FAILURE(bench.run());
      EXPECT_LE(bench.cycles() - start, 30U * 64 + 40);
    }
    {
      // One beat per burst: address and data of different bursts pass in the same cycle.
      Bench bench(which, {.fixed = true, .read_latency = 10, .write_latency = 10});
      bench.ask_one(which, 0, 500, 1);
      const std::uint64_t start = bench.cycles();
      ASSERT_NO_FATAL_FAILURE(bench.run());
      EXPECT_LE(bench.cycles() - start, 500U + 40);
    }
  }
}

TEST(AxiIsolator, LeavesTheBusCleanWhereverItBegins) {
  unsigned swallowed = 0;
  unsigned changed = 0;
  for (unsigned seed = 1; seed <= 12; ++seed) {
    Bench bench(seed, {.seed = seed});
    for (unsigned round = 0; round < 8; ++round) {
      bench.ask(30, 12, 20 + 6 * seed, seed % 3 ? 64 : 2);
      const unsigned before = static_cast<unsigned>(bench.random() % 400);
      for (unsigned cycle = 0; cycle < before; ++cycle) bench.tick();
      ASSERT_NO_FATAL_FAILURE(bench.isolate()) << "seed " << seed << " round " << round;
      ASSERT_NO_FATAL_FAILURE(bench.expect_old_or_wanted());
    }
    swallowed += bench.swallowed();
    changed += bench.changed();
    // What comes afterwards is whole.
    bench.ask(10, 4, 50, 16);
    ASSERT_NO_FATAL_FAILURE(bench.run()) << "seed " << seed;
    bench.expect_written();
  }
  EXPECT_GT(swallowed, 1000U);
  EXPECT_GT(changed, 1000U);
}

}  // namespace
}  // namespace penstock::rtl
