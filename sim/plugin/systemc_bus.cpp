#include "penstock/sim/plugin/systemc_bus.h"

#include <cstdlib>
#include <cstring>

#include "penstock/base/platform.h"
#include "penstock/sim/plugin/pace.h"
#include "penstock/sim/systemc/simulation.h"

namespace penstock::sim {
namespace {

constexpr std::uint64_t kPage = 4096;
constexpr std::uint64_t kCyclesToMeasure = 20000;
constexpr std::uint64_t kIdleUs = 200;

class SystemcBus final : public card::Bus {
 public:
  explicit SystemcBus(const systemc::MemoryOptions& memory)
      : memory_(memory),
        simulation_(memory),
        pace_(Pace::measure(kCyclesToMeasure, [this](std::uint64_t n) { simulation_.run(n); })) {}

  std::string description() const override {
    return fmt::format("a card of SystemC, memory latency {} cycles, jitter {}, seed {}",
                       memory_.read_latency, memory_.jitter, memory_.seed);
  }
  std::uint32_t read(std::uint32_t offset) override {
    std::uint32_t value = 0;
    return simulation_.read(offset, &value) ? value : card::kNoAnswer;
  }
  void write(std::uint32_t offset, std::uint32_t value) override {
    static_cast<void>(simulation_.write(offset, value));
  }
  Result<std::uint64_t> attach(std::byte* memory, std::uint64_t bytes) override {
    return simulation_.attach(memory, bytes);
  }
  void detach(std::uint64_t bus) override { static_cast<void>(simulation_.detach(bus)); }
  Result<card::BusMemory> allocate(std::uint64_t bytes) override {
    const std::uint64_t rounded = (bytes + kPage - 1) / kPage * kPage;
    void* data = std::aligned_alloc(kPage, rounded);
    if (data == nullptr) return error(Code::no_space, "no {} bytes for a ring", rounded);
    std::memset(data, 0, rounded);
    auto* start = static_cast<std::byte*>(data);
    return card::BusMemory{start, simulation_.attach(start, rounded), rounded};
  }
  void release(const card::BusMemory& memory) override {
    detach(memory.bus);
    std::free(memory.data);
  }
  bool behind_caches() const override { return true; }
  std::uint32_t clock_khz() const override { return pace_.khz(); }
  void idle() override {
    const std::uint64_t began = Platform::host().now_ns();
    const std::uint64_t cycles = pace_.cycles_of_us(kIdleUs);
    simulation_.run(cycles);
    pace_.wait(began, cycles);
  }

 private:
  const systemc::MemoryOptions memory_;
  systemc::Simulation simulation_;
  const Pace pace_;
};

}  // namespace

card::BusFactory systemc_bus_factory() {
  card::BusFactory factory;
  factory.name = "systemc";
  factory.preference = 20;
  factory.simulated = true;
  factory.probe = [] { return Status(); };
  factory.make = [](const std::string& text) -> Result<std::unique_ptr<card::Bus>> {
    PENSTOCK_ASSIGN(card::BusOptions options, card::BusOptions::parse("systemc", text));
    constexpr std::uint64_t kMostCycles = 100000;
    systemc::MemoryOptions memory;
    memory.seed = options.number("seed", memory.seed, 0, UINT64_MAX);
    const auto cycles = [&](const char* key, std::uint32_t otherwise, std::uint64_t least) {
      return static_cast<std::uint32_t>(options.number(key, otherwise, least, kMostCycles));
    };
    memory.read_latency = cycles("latency", memory.read_latency, 1);
    memory.write_latency = cycles("write_latency", memory.write_latency, 1);
    memory.jitter = cycles("jitter", memory.jitter, 0);
    PENSTOCK_TRY(options.finish());
    return std::unique_ptr<card::Bus>(std::make_unique<SystemcBus>(memory));
  };
  return factory;
}

}  // namespace penstock::sim
