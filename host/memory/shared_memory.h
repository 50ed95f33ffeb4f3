// Loads and stores of the pool's own records (leases, region table), which other processes and
// hosts read at the same time. A record that is seen half-written is told by its checksum.
#ifndef PENSTOCK_MEMORY_SHARED_MEMORY_H_
#define PENSTOCK_MEMORY_SHARED_MEMORY_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "penstock/base/platform.h"
#include "penstock/memory/pool.h"

namespace penstock {

// Value type, thread-safe. Addresses are 8-byte aligned, sizes multiples of 8.
class SharedMemory {
 public:
  SharedMemory(Platform& platform, Coherence coherence)
      : platform_(&platform), coherence_(coherence) {}

  // Copies what was last published. Whole lines that this host alone writes, or only reads.
  void load(void* out, const void* shared, std::size_t bytes) const {
    if (coherence_ == Coherence::software) {
      platform_->invalidate(shared, bytes);
      platform_->full_fence();
    }
    for (std::size_t at = 0; at < bytes; at += 8) {
      const std::uint64_t word = word_at(shared, at).load(std::memory_order_relaxed);
      std::memcpy(static_cast<std::byte*>(out) + at, &word, 8);
    }
    std::atomic_thread_fence(std::memory_order_acquire);
  }

  // Stores and publishes. The first word goes last, so that a record whose first word says what it
  // is appears at the end.
  void store(void* shared, const void* from, std::size_t bytes) const {
    std::atomic_thread_fence(std::memory_order_release);
    for (std::size_t at = bytes; at > 0;) {
      at -= 8;
      std::uint64_t word;
      std::memcpy(&word, static_cast<const std::byte*>(from) + at, 8);
      word_at(shared, at).store(word, std::memory_order_release);
    }
    if (coherence_ == Coherence::software) {
      platform_->write_back(shared, bytes);
      platform_->store_fence();
    }
  }

 private:
  static std::atomic_ref<std::uint64_t> word_at(const void* shared, std::size_t at) {
    // atomic_ref of a const type is C++26; a load does not write.
    auto* bytes = static_cast<std::byte*>(const_cast<void*>(shared)) + at;
    return std::atomic_ref<std::uint64_t>(*reinterpret_cast<std::uint64_t*>(bytes));
  }

  Platform* platform_;
  Coherence coherence_;
};

}  // namespace penstock
#endif
