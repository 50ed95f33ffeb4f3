// The card's RTL with memory behind it, as plain calls.
#ifndef PENSTOCK_SIM_VERILATED_VERILATED_CARD_H_
#define PENSTOCK_SIM_VERILATED_VERILATED_CARD_H_

#include <cstdint>
#include <memory>
#include <string>

#include "penstock/sim/verilated/axi_memory.h"

namespace penstock::sim {

struct VerilatedCardOptions {
  // Of the memory's chance, of what the RTL does not reset, and of register accesses' pauses. The
  // two ports draw differently from it.
  AxiConfig memory;
  // One of so many bursts of the control port is answered with an error, 0: none. Those of
  // `memory` are about the data port alone.
  std::uint32_t control_error_one_in = 0;
  // The wave file (FST); empty: none. Needs a build with waveforms.
  std::string trace;
};

// Not thread-safe. What the card does against AXI, and assertions of the RTL that fail, end the
// process: nothing that such a card answers means anything.
class VerilatedCard {
 public:
  // True if this build can write waveforms.
  static bool can_trace();

  // After the hard reset.
  explicit VerilatedCard(const VerilatedCardOptions& options);
  ~VerilatedCard();
  VerilatedCard(const VerilatedCard&) = delete;
  VerilatedCard& operator=(const VerilatedCard&) = delete;

  // A register access. False: SLVERR, or no answer within 10,000 cycles.
  bool read(std::uint32_t offset, std::uint32_t* value);
  bool write(std::uint32_t offset, std::uint32_t value);

  // What is attached may change between calls.
  AxiMemory& memory();

  // Lets time pass; ends before if something was written through the control port (a completion, a
  // fence) and `stop_early` is set. Returns the cycles that it ran.
  std::uint64_t run(std::uint64_t cycles, bool stop_early = false);
  std::uint64_t cycle() const;
  bool interrupt() const;
  // Of the control port and of the data port.
  const AxiCounts& control_counts() const;
  const AxiCounts& data_counts() const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace penstock::sim
#endif
