// A SystemC kernel of its own with the card and the memory behind it, as plain calls.
#ifndef PENSTOCK_SIM_SYSTEMC_SIMULATION_H_
#define PENSTOCK_SIM_SYSTEMC_SIMULATION_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "penstock/sim/systemc/timing.h"

namespace penstock::systemc {

struct MemoryOptions {
  std::uint32_t read_latency = 40;   // cycles from address to first data
  std::uint32_t write_latency = 20;  // cycles from last data to acknowledgement
  std::uint32_t jitter = 0;          // up to so many cycles more, by chance
  std::uint64_t seed = 1;
};

// Where the memory answers with a bus error.
struct MemoryFault {
  std::uint64_t base = 0;
  std::uint64_t bytes = 0;
  bool reads = true;
  bool writes = true;
};

class Simulation {
 public:
  explicit Simulation(const MemoryOptions& memory = {}, const Timing& timing = {});
  ~Simulation();
  Simulation(const Simulation&) = delete;
  Simulation& operator=(const Simulation&) = delete;

  // Any number of simulations may live in a process, and be used by several threads: a call waits
  // until no other is in any of them (the kernel has one present simulation).

  // A register access, which takes a few cycles. False: there is no such register.
  bool read(std::uint32_t offset, std::uint32_t* value);
  bool write(std::uint32_t offset, std::uint32_t value);

  // Makes [memory, memory + bytes) reachable, and returns its bus address, a multiple of 4 KiB plus
  // the memory's own offset in its page. The memory outlives the attachment. detach takes what
  // attach returned; false if it is none.
  std::uint64_t attach(std::byte* memory, std::uint64_t bytes);
  bool detach(std::uint64_t bus);
  void add_fault(const MemoryFault& fault);
  void clear_faults();

  // Lets time pass.
  void run(std::uint64_t cycles);
  std::uint64_t cycle() const;
  bool interrupt() const;

 private:
  struct World;
  std::unique_ptr<World> world_;
};

}  // namespace penstock::systemc
#endif
