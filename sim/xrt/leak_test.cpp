// That the leak sanitizer is at work where the tests are run with it, and finds nothing.
#include <gtest/gtest.h>
#include <sanitizer/lsan_interface.h>

#include <cstdint>
#include <cstdlib>
#include <vector>

namespace penstock::sim {
namespace {

constexpr std::uintptr_t kMask = 0x5a5a5a5a5a5a5a5a;

// Blocks that nothing points to.
__attribute__((noinline)) std::vector<std::uintptr_t> hide(int n) {
  std::vector<std::uintptr_t> hidden;
  for (int i = 0; i < n; ++i)
    hidden.push_back(reinterpret_cast<std::uintptr_t>(std::malloc(4711)) ^ kMask);
  return hidden;
}

TEST(Leaks, WouldBeFound) {
  EXPECT_EQ(__lsan_do_recoverable_leak_check(), 0);
  const std::vector<std::uintptr_t> hidden = hide(64);
  EXPECT_EQ(__lsan_do_recoverable_leak_check(), 1);
  for (const std::uintptr_t block : hidden) std::free(reinterpret_cast<void*>(block ^ kMask));
  EXPECT_EQ(__lsan_do_recoverable_leak_check(), 0);
}

}  // namespace
}  // namespace penstock::sim
