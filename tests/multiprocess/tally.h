// Counts what processes have come to, for others that act on it: no test has to guess how long
// ranks take on a busy machine.
#ifndef PENSTOCK_TESTS_MULTIPROCESS_TALLY_H_
#define PENSTOCK_TESTS_MULTIPROCESS_TALLY_H_

#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <new>

#include "penstock/base/status.h"

namespace penstock::test {

// Made before the processes that share it.
class Tally {
 public:
  Tally() {
    void* memory =
        ::mmap(nullptr, sizeof(*count_), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    PENSTOCK_CHECK(memory != MAP_FAILED, "mmap");
    count_ = new (memory) std::atomic<std::uint32_t>(0);
  }
  ~Tally() { ::munmap(count_, sizeof(*count_)); }
  Tally(const Tally&) = delete;
  Tally& operator=(const Tally&) = delete;

  void add() const { count_->fetch_add(1); }
  // Waits until so many were added; false after timeout_s.
  bool await(std::uint32_t count, double timeout_s = 40) const {
    for (double waited_s = 0; waited_s < timeout_s; waited_s += 0.001) {
      if (count_->load() >= count) return true;
      ::usleep(1000);
    }
    return count_->load() >= count;
  }

 private:
  std::atomic<std::uint32_t>* count_ = nullptr;
};

}  // namespace penstock::test
#endif
