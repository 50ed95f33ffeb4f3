// Memory behind an AXI4 port of a simulated block: 512-bit data, 64-bit addresses, INCR bursts of
// up to 64 beats. Everything that AXI leaves to a memory happens by chance from a seed.
//
//   AxiMemory memory;                                   // what is where on the bus
//   memory.attach(0x10000, bytes, sizeof(bytes));
//   AxiSlave slave(memory, AxiConfig{.seed = 7});       // one port
//   const AxiPort port = PENSTOCK_AXI_PORT(*dut, m_axi);  // axi_port.h
//   slave.drive(port);
//   for each cycle:
//     dut->clk_i = 0; dut->eval();
//     slave.sample(port);                // before the rising edge: which handshakes happen at it
//     dut->clk_i = 1; dut->eval();
//     slave.drive(port);                 // after it: what the next edge will see
//   EXPECT_THAT(slave.violations(), IsEmpty());
//
// What holds:
// - Read data of one ID comes in the order of its addresses, so do responses of writes. Between IDs
//   order is by chance, beats of different bursts mix.
// - A read sees each write whose response was taken before its address was offered. Data that is
//   written and read at once is old or new, by chance, 8 bytes at least in one piece.
// - Writes of one ID take effect in the order of their addresses.
// - An address outside of what is attached is answered DECERR, a fault that was asked for SLVERR;
//   such a write leaves memory alone, such a read carries garbage.
// - While no response is valid its signals carry garbage; a valid one stays until it is taken.
// - `ready` may come before `valid`, after it only, or seldom.
//
// Not thread-safe, but attached memory may be used by other threads and processes meanwhile.
#ifndef PENSTOCK_SIM_VERILATED_AXI_MEMORY_H_
#define PENSTOCK_SIM_VERILATED_AXI_MEMORY_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "penstock/sim/incoherent/random.h"

namespace penstock::sim {

inline constexpr std::uint32_t kAxiBeatBytes = 64;
inline constexpr std::uint32_t kAxiMaxBeats = 64;
inline constexpr std::uint32_t kAxiPageBytes = 4096;

// Values of rresp and bresp.
enum AxiResponse : std::uint8_t { kAxiOkay = 0, kAxiSlaveError = 2, kAxiDecodeError = 3 };

// The signals of one port, as a Verilated model (or a test) holds them. The address, data and
// response signals of a direction are all there or all null.
struct AxiPort {
  const std::uint8_t* awvalid;
  std::uint8_t* awready;
  const std::uint64_t* awaddr;
  const std::uint8_t* awid;
  const std::uint8_t* awlen;
  const std::uint8_t* wvalid;
  std::uint8_t* wready;
  const std::uint32_t* wdata;  // 16 words
  const std::uint64_t* wstrb;
  const std::uint8_t* wlast;
  std::uint8_t* bvalid;
  const std::uint8_t* bready;
  std::uint8_t* bid;
  std::uint8_t* bresp;
  const std::uint8_t* arvalid;
  std::uint8_t* arready;
  const std::uint64_t* araddr;
  const std::uint8_t* arid;
  const std::uint8_t* arlen;
  std::uint8_t* rvalid;
  const std::uint8_t* rready;
  std::uint32_t* rdata;  // 16 words
  std::uint8_t* rid;
  std::uint8_t* rresp;
  std::uint8_t* rlast;
};

// What is where on the bus; shared by the ports that lead to it, outlives them.
class AxiMemory {
 public:
  // [bus, bus + bytes) is this memory. bus and bytes are multiples of 64, `data` of 8, and what is
  // attached does not overlap: anything else is a programmer error. The memory is the caller's and
  // stays until detach().
  void attach(std::uint64_t bus, void* data, std::uint64_t bytes);
  // What was attached at `bus`. No access to it may be under way.
  void detach(std::uint64_t bus);

  // Every burst that touches [bus, bus + bytes) is answered SLVERR, if it is a read, a write.
  void fail(std::uint64_t bus, std::uint64_t bytes, bool reads, bool writes);
  void clear_failures() { failures_.clear(); }

  // The 64 bytes at an aligned bus address, or null outside of what is attached.
  std::byte* line(std::uint64_t bus) const;
  bool fails(std::uint64_t bus, std::uint64_t bytes, bool write) const;

 private:
  struct Range {
    std::uint64_t bus, bytes;
    std::byte* data;
  };
  struct Failure {
    std::uint64_t bus, bytes;
    bool reads, writes;
  };
  std::vector<Range> ranges_;  // by address
  mutable std::size_t last_ = 0;
  std::vector<Failure> failures_;
};

struct AxiConfig {
  std::uint64_t seed = 1;
  // No chance: always ready, one order, each response as many cycles after its request as below.
  // For measurements.
  bool fixed = false;
  // Cycles from the edge that takes an address to the edge at which the first beat can be taken,
  // and from the edge that takes the last beat of a write to that of its response; at least 1.
  // By chance they are 1 to twice as many, now and then eight times.
  std::uint32_t read_latency = 24;
  std::uint32_t write_latency = 24;
  std::uint32_t max_reads = 64;  // bursts under way; then the port is not ready
  std::uint32_t max_writes = 64;
  // One of so many bursts is answered SLVERR; 0: none. Not where `fixed`.
  std::uint32_t read_error_one_in = 0;
  std::uint32_t write_error_one_in = 0;
};

struct AxiCounts {
  std::uint64_t cycles = 0;
  std::uint64_t read_bursts = 0, read_beats = 0;    // taken
  std::uint64_t write_bursts = 0, write_beats = 0;  // taken; bursts: by their response
  std::uint64_t read_errors = 0, write_errors = 0;  // bursts
  std::uint64_t reordered = 0;                      // a response before one of an older request
  std::uint64_t interleaved = 0;                    // a beat between two beats of another burst
  std::uint64_t ar_stalls = 0, aw_stalls = 0, w_stalls = 0;  // cycles valid, not ready
  std::uint64_t r_stalls = 0, b_stalls = 0;                  // cycles the master was not ready
};

class AxiSlave {
 public:
  AxiSlave(AxiMemory& memory, const AxiConfig& config);

  // Before each rising edge, when what the master drives has settled.
  void sample(const AxiPort& port);
  // After each rising edge, and once before the first.
  void drive(const AxiPort& port);
  // Forgets everything under way, as when the block is reset without an isolator.
  void reset();

  bool idle() const { return reads_.empty() && writes_.empty() && !r_valid_ && !b_valid_; }
  const AxiCounts& counts() const { return counts_; }
  // Sentences about what the master did against AXI or against what a block promises (write data
  // only after its address was taken); the first 16.
  const std::vector<std::string>& violations() const { return violations_; }

 private:
  struct Burst {
    std::uint64_t address;
    std::uint64_t due = 0;  // the edge at which it can be answered
    std::uint8_t id;
    std::uint8_t beats;
    std::uint8_t done = 0;  // beats delivered, or taken
    std::uint8_t response = kAxiOkay;
    bool complete = false;  // a write's beats are all there
    bool captured = false;  // `data` holds a read's bytes, or those of a write that acts late
    std::vector<std::uint64_t> data;
    std::vector<std::uint64_t> strobes;
  };
  // How a channel's ready or a response's valid behaves.
  struct Mood {
    bool lazy = false;               // only after valid was seen
    std::uint32_t stall_one_in = 0;  // a stall begins in one of so many cycles, 0: never
    std::uint32_t stall_cycles = 1;  // up to so many
    std::uint32_t left = 0;          // of the stall under way
  };
  // What the master drove in the last cycle if it was not taken: it has to stay.
  struct Held {
    bool valid = false;
    std::uint64_t address = 0, strobe = 0;
    std::uint8_t id = 0, length = 0;
    std::array<std::uint32_t, kAxiBeatBytes / 4> data{};
  };

  bool open(Mood& mood, bool valid_seen);
  Mood draw_mood();
  std::uint64_t latency(std::uint32_t cycles);
  std::uint8_t judge(const Burst& burst, bool write);
  void violation(std::string text);
  void check_address(const char* channel, std::uint64_t address, std::uint32_t beats);
  void check_held(const char* channel, Held& held, bool valid, bool taken, const Held& now);

  void sample_read_address(const AxiPort& port);
  void sample_read_data(const AxiPort& port);
  void sample_write_address(const AxiPort& port);
  void sample_write_data(const AxiPort& port);
  void take_write_beat(const AxiPort& port);
  void sample_write_response(const AxiPort& port);
  void choose_read();
  void choose_write();
  void fill_beat(Burst& burst);
  void apply(const Burst& burst);
  void drive_read(const AxiPort& port);
  void drive_write(const AxiPort& port);

  AxiMemory& memory_;
  const AxiConfig config_;
  Random random_;
  Mood ar_, aw_, w_, r_, b_;
  std::uint64_t now_ = 0;  // edges so far
  std::deque<Burst> reads_, writes_;
  std::size_t filling_ = 0;  // of writes_: those before it have all their beats
  bool ar_ready_ = false, aw_ready_ = false, w_ready_ = false;
  bool ar_seen_ = false, aw_seen_ = false, w_seen_ = false;
  bool r_valid_ = false, b_valid_ = false;
  std::size_t read_ = 0, write_ = 0;  // which burst the valid response belongs to
  std::uint64_t r_data_[kAxiBeatBytes / 8] = {};
  bool r_last_ = false;
  std::uint8_t r_response_ = 0;
  std::uint64_t mixed_with_ = 0;  // address of the burst of the last beat, if it was not the last
  bool unfinished_ = false;
  Held ar_held_, aw_held_, w_held_;
  AxiCounts counts_;
  std::vector<std::string> violations_;
};

}  // namespace penstock::sim
#endif
