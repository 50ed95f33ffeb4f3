#include "penstock/sim/plugin/pace.h"

#include <time.h>

#include <algorithm>

#include "penstock/base/platform.h"

namespace penstock::sim {
namespace {

constexpr std::uint64_t kNsPerMs = 1'000'000;

// What this thread has had of a processor, which others may be using, too.
std::uint64_t processor_ns() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(time.tv_nsec);
}

}  // namespace

Pace Pace::measure(std::uint64_t cycles, const std::function<void(std::uint64_t)>& run) {
  const std::uint64_t began = processor_ns();
  run(cycles);
  const std::uint64_t took = std::max<std::uint64_t>(processor_ns() - began, 1);
  const std::uint64_t khz = cycles * kNsPerMs / took;
  return Pace(static_cast<std::uint32_t>(std::clamp<std::uint64_t>(khz, 1, UINT32_MAX)));
}

std::uint64_t Pace::cycles_of_us(std::uint64_t us) const {
  return std::max<std::uint64_t>(khz_ * us / 1000, 1);
}

void Pace::wait(std::uint64_t began_ns, std::uint64_t cycles) const {
  Platform& platform = Platform::host();
  const std::uint64_t until = began_ns + cycles * kNsPerMs / khz_;
  while (platform.now_ns() < until) platform.yield();
}

}  // namespace penstock::sim
