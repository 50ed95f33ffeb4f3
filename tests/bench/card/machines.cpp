#include "machine.h"
#ifdef PENSTOCK_WITH_SYSTEMC
#include "penstock/sim/systemc/simulation.h"
#endif
#ifdef PENSTOCK_WITH_VERILATOR
#include "penstock/sim/verilated/verilated_card.h"
#endif

namespace penstock::bench {
namespace {

#ifdef PENSTOCK_WITH_SYSTEMC
class SystemcMachine final : public Machine {
 public:
  explicit SystemcMachine(const Latency& latency)
      : simulation_({.read_latency = latency.read, .write_latency = latency.write}) {}
  std::uint32_t read(std::uint32_t offset) override {
    std::uint32_t value = 0;
    return simulation_.read(offset, &value) ? value : ~0u;
  }
  void write(std::uint32_t offset, std::uint32_t value) override {
    static_cast<void>(simulation_.write(offset, value));
  }
  std::uint64_t attach(std::byte* memory, std::uint64_t bytes) override {
    return simulation_.attach(memory, bytes);
  }
  void run(std::uint64_t cycles) override { simulation_.run(cycles); }
  std::uint64_t cycle() override { return simulation_.cycle(); }

 private:
  systemc::Simulation simulation_;
};
#endif

#ifdef PENSTOCK_WITH_VERILATOR
class RtlMachine final : public Machine {
 public:
  explicit RtlMachine(const Latency& latency) : card_(options_of(latency)) {}
  std::uint32_t read(std::uint32_t offset) override {
    std::uint32_t value = 0;
    return card_.read(offset, &value) ? value : ~0u;
  }
  void write(std::uint32_t offset, std::uint32_t value) override {
    static_cast<void>(card_.write(offset, value));
  }
  std::uint64_t attach(std::byte* memory, std::uint64_t bytes) override {
    const std::uint64_t bus = next_;
    card_.memory().attach(bus, memory, bytes);
    // A page between ranges belongs to nobody.
    next_ += (bytes + 2 * kPage - 1) / kPage * kPage;
    return bus;
  }
  void run(std::uint64_t cycles) override { static_cast<void>(card_.run(cycles)); }
  std::uint64_t cycle() override { return card_.cycle(); }

 private:
  static constexpr std::uint64_t kPage = 4096;
  static sim::VerilatedCardOptions options_of(const Latency& latency) {
    sim::VerilatedCardOptions options;
    options.memory.fixed = true;
    options.memory.read_latency = latency.read;
    options.memory.write_latency = latency.write;
    return options;
  }
  sim::VerilatedCard card_;
  std::uint64_t next_ = std::uint64_t{1} << 32;
};
#endif

}  // namespace

std::vector<std::string> machine_names() {
  std::vector<std::string> names;
#ifdef PENSTOCK_WITH_VERILATOR
  names.emplace_back("rtl");
#endif
#ifdef PENSTOCK_WITH_SYSTEMC
  names.emplace_back("systemc");
#endif
  return names;
}

std::unique_ptr<Machine> make_machine(const std::string& name, const Latency& latency) {
  static_cast<void>(latency);
#ifdef PENSTOCK_WITH_VERILATOR
  if (name == "rtl") return std::make_unique<RtlMachine>(latency);
#endif
#ifdef PENSTOCK_WITH_SYSTEMC
  if (name == "systemc") return std::make_unique<SystemcMachine>(latency);
#endif
  return nullptr;
}

}  // namespace penstock::bench
