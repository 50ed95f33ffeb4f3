// Keeps a simulated card from being faster than the clock that its driver was told: so no deadline,
// which the card counts in cycles, comes before its time.
#ifndef PENSTOCK_SIM_PLUGIN_PACE_H_
#define PENSTOCK_SIM_PLUGIN_PACE_H_

#include <cstdint>
#include <functional>

namespace penstock::sim {

class Pace {
 public:
  // Runs `run` for some cycles, and takes the speed that they have on a processor of their own for
  // the clock's.
  static Pace measure(std::uint64_t cycles, const std::function<void(std::uint64_t)>& run);

  explicit Pace(std::uint32_t khz) : khz_(khz) {}
  std::uint32_t khz() const { return khz_; }
  // Cycles of about `us` microseconds, at least 1.
  std::uint64_t cycles_of_us(std::uint64_t us) const;
  // Waits until `cycles` that began at now_ns() = began_ns have taken their time.
  void wait(std::uint64_t began_ns, std::uint64_t cycles) const;

 private:
  std::uint32_t khz_;
};

}  // namespace penstock::sim
#endif
