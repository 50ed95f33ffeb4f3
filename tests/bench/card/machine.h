// A simulated card whose clock is in the hands of who measures it.
#ifndef PENSTOCK_TESTS_BENCH_CARD_MACHINE_H_
#define PENSTOCK_TESTS_BENCH_CARD_MACHINE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace penstock::bench {

// Memory answers after a fixed number of cycles, and is otherwise as fast as its port.
struct Latency {
  std::uint32_t read = 40;
  std::uint32_t write = 20;
};

class Machine {
 public:
  virtual ~Machine() = default;
  virtual std::uint32_t read(std::uint32_t offset) = 0;
  virtual void write(std::uint32_t offset, std::uint32_t value) = 0;
  // 4 KiB aligned memory, which outlives the machine. Returns its bus address.
  virtual std::uint64_t attach(std::byte* memory, std::uint64_t bytes) = 0;
  virtual void run(std::uint64_t cycles) = 0;
  virtual std::uint64_t cycle() = 0;
};

// The machines that this build has: "rtl" (Verilated) and "systemc".
std::vector<std::string> machine_names();
// Null for a name that it does not have.
std::unique_ptr<Machine> make_machine(const std::string& name, const Latency& latency);

}  // namespace penstock::bench
#endif
