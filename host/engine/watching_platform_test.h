// A platform whose clock a test sets, and that keeps which lines were flushed.
#ifndef PENSTOCK_ENGINE_WATCHING_PLATFORM_TEST_H_
#define PENSTOCK_ENGINE_WATCHING_PLATFORM_TEST_H_

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "penstock/base/forwarding_platform_test.h"

namespace penstock {

class WatchingPlatform : public ForwardingPlatform {
 public:
  std::uint64_t now_ns() override { return clock_ns; }
  void write_back(const void* data, std::size_t bytes) override {
    written.emplace_back(static_cast<const std::byte*>(data), bytes);
  }
  void invalidate(const void* data, std::size_t bytes) override {
    invalidated.emplace_back(static_cast<const std::byte*>(data), bytes);
  }

  using Ranges = std::vector<std::pair<const std::byte*, std::size_t>>;
  static bool covers(const Ranges& ranges, const std::byte* data, std::size_t bytes) {
    for (const auto& [start, size] : ranges)
      if (data >= start && data + bytes <= start + size) return true;
    return false;
  }
  static bool touches(const Ranges& ranges, const std::byte* data, std::size_t bytes) {
    for (const auto& [start, size] : ranges)
      if (data < start + size && start < data + bytes) return true;
    return false;
  }

  std::uint64_t clock_ns = 1'000'000'000;
  Ranges written, invalidated;
};

}  // namespace penstock
#endif
