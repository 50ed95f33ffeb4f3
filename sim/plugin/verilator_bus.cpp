#include "penstock/sim/plugin/verilator_bus.h"

#include <cstdlib>
#include <cstring>
#include <mutex>

#include "penstock/base/platform.h"
#include "penstock/sim/plugin/pace.h"
#include "penstock/sim/verilated/verilated_card.h"

namespace penstock::sim {
namespace {

constexpr std::uint64_t kPage = 4096;
constexpr std::uint64_t kCyclesToMeasure = 1000;
constexpr std::uint64_t kIdleUs = 500;
// The first bus address; what is attached has a page between it and the next, which belongs to
// nobody, so that running over an end is noticed.
constexpr std::uint64_t kFirstBus = std::uint64_t{1} << 40;

class VerilatorBus final : public card::Bus {
 public:
  explicit VerilatorBus(const VerilatedCardOptions& options)
      : options_(options),
        card_(options),
        pace_(Pace::measure(kCyclesToMeasure, [this](std::uint64_t n) { card_.run(n); })) {}

  std::string description() const override {
    const AxiConfig& m = options_.memory;
    return fmt::format("the card's RTL in Verilator, memory latency {}/{} cycles{}, seed {}",
                       m.read_latency, m.write_latency, m.fixed ? "" : " by chance", m.seed);
  }
  std::uint32_t read(std::uint32_t offset) override {
    const std::lock_guard lock(mutex_);
    std::uint32_t value = 0;
    return card_.read(offset, &value) ? value : card::kNoAnswer;
  }
  void write(std::uint32_t offset, std::uint32_t value) override {
    const std::lock_guard lock(mutex_);
    static_cast<void>(card_.write(offset, value));
  }
  Result<std::uint64_t> attach(std::byte* memory, std::uint64_t bytes) override {
    const std::lock_guard lock(mutex_);
    const std::uint64_t bus = next_;
    next_ += (bytes + 2 * kPage - 1) / kPage * kPage;
    card_.memory().attach(bus, memory, bytes);
    return bus;
  }
  void detach(std::uint64_t bus) override {
    const std::lock_guard lock(mutex_);
    card_.memory().detach(bus);
  }
  Result<card::BusMemory> allocate(std::uint64_t bytes) override {
    const std::uint64_t rounded = (bytes + kPage - 1) / kPage * kPage;
    void* data = std::aligned_alloc(kPage, rounded);
    if (data == nullptr) return error(Code::no_space, "no {} bytes for a ring", rounded);
    std::memset(data, 0, rounded);
    auto* start = static_cast<std::byte*>(data);
    PENSTOCK_ASSIGN(const std::uint64_t bus, attach(start, rounded));
    return card::BusMemory{start, bus, rounded};
  }
  void release(const card::BusMemory& memory) override {
    detach(memory.bus);
    std::free(memory.data);
  }
  bool behind_caches() const override { return true; }
  std::uint32_t clock_khz() const override { return pace_.khz(); }
  void idle() override {
    const std::uint64_t began = Platform::host().now_ns();
    std::uint64_t cycles = 0;
    {
      const std::lock_guard lock(mutex_);
      cycles = card_.run(pace_.cycles_of_us(kIdleUs), true);
    }
    pace_.wait(began, cycles);
  }

 private:
  const VerilatedCardOptions options_;
  std::mutex mutex_;
  VerilatedCard card_;
  const Pace pace_;
  std::uint64_t next_ = kFirstBus;
};

Result<std::unique_ptr<card::Bus>> make(const std::string& text) {
  PENSTOCK_ASSIGN(card::BusOptions options, card::BusOptions::parse("verilator", text));
  constexpr std::uint64_t kMostCycles = 100000;
  VerilatedCardOptions card;
  AxiConfig& m = card.memory;
  const auto small = [&](const char* key, std::uint32_t otherwise, std::uint64_t least,
                         std::uint64_t most) {
    return static_cast<std::uint32_t>(options.number(key, otherwise, least, most));
  };
  m.seed = options.number("seed", m.seed, 0, UINT64_MAX);
  m.fixed = options.number("fixed", 0, 0, 1) != 0;
  m.read_latency = small("latency", m.read_latency, 1, kMostCycles);
  m.write_latency = small("write_latency", m.write_latency, 1, kMostCycles);
  m.read_error_one_in = m.write_error_one_in = small("faults", 0, 0, UINT32_MAX);
  card.control_error_one_in = small("control_faults", 0, 0, UINT32_MAX);
  card.trace = options.text("trace", "");
  PENSTOCK_TRY(options.finish());
  if (!card.trace.empty() && !VerilatedCard::can_trace())
    return error(Code::unsupported,
                 "bus verilator: trace={}: this build has no waveforms, they "
                 "need zlib",
                 card.trace);
  return std::unique_ptr<card::Bus>(std::make_unique<VerilatorBus>(card));
}

}  // namespace

card::BusFactory verilator_bus_factory() {
  card::BusFactory factory;
  factory.name = "verilator";
  factory.preference = 10;
  factory.simulated = true;
  factory.probe = [] { return Status(); };
  factory.make = make;
  return factory;
}

}  // namespace penstock::sim
