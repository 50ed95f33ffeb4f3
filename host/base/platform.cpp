#include "penstock/base/platform.h"

namespace penstock {
namespace {

// How long a loop yields before it sleeps, and how often it looks at the clock meanwhile.
constexpr std::uint64_t kYieldNs = 1'000'000;
constexpr std::uint32_t kYieldsPerLook = 16;
constexpr std::uint64_t kFirstSleepNs = 20'000;
constexpr std::uint64_t kLongestSleepNs = 200'000;

}  // namespace

void Backoff::turn() {
  if (spins_left_ > 0) {
    --spins_left_;
    platform_->pause();
    return;
  }
  if (sleep_ns_ == 0) {
    if (yields_ == 0) yielding_since_ns_ = platform_->now_ns();
    ++yields_;
    platform_->yield();
    if (yields_ % kYieldsPerLook == 0 && platform_->now_ns() - yielding_since_ns_ >= kYieldNs) {
      sleep_ns_ = kFirstSleepNs;
    }
    return;
  }
  platform_->sleep_ns(sleep_ns_);
  sleep_ns_ = sleep_ns_ * 2 < kLongestSleepNs ? sleep_ns_ * 2 : kLongestSleepNs;
}

}  // namespace penstock
