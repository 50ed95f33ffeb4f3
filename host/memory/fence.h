// A fence: a monotonic 64-bit counter alone on its cache line, with one writer at a time.
//
// Publish (architecture, "Memory"): payload stored and written back (Pool::publish), store fence,
// counter stored and written back. Observe: counter's line invalidated, full fence, load; then the
// payload's lines are invalidated by Pool::observe before they are read. Under hardware coherence
// this is a store with release and a load with acquire; the store fence stays, because streaming
// stores are not ordered by release.
#ifndef PENSTOCK_MEMORY_FENCE_H_
#define PENSTOCK_MEMORY_FENCE_H_

#include <atomic>
#include <cstdint>

#include "penstock/memory/pool.h"

namespace penstock {

// Asks for a line that this processor will write soon. A hint.
inline void prefetch_for_write(const void* line) {
#if defined(__x86_64__)
  asm volatile("prefetchw %0" : : "m"(*static_cast<const char*>(line)));
#else
  __builtin_prefetch(line, 1);
#endif
}

// Words beside the counter in its line. What stands there before a signal is seen with it.
inline constexpr std::uint32_t kFenceNotes = 7;

// A handle; the counter lives in the pool. One thread of one process signals; any number may wait.
class Fence {
 public:
  // `line` is a resolved, line-aligned address inside the pool.
  Fence(const Pool& pool, void* line)
      : pool_(&pool),
        counter_(static_cast<std::atomic<std::uint64_t>*>(line)),
        software_(pool.coherence() == Coherence::software) {}

  // Raises the counter. A value that is not above the present one is ignored: fences never go back.
  void signal(std::uint64_t value);
  // The same with a note (index below kFenceNotes) that whoever sees the value sees, too. Payload
  // that was streamed past the cache has been fenced by who streamed it, so that on coherent memory
  // this is nothing but two stores.
  void signal(std::uint64_t value, std::uint32_t index, std::uint64_t note);
  // Leaves a note without raising the counter.
  void leave_note(std::uint32_t index, std::uint64_t note);
  // A note as the line held it at the last load().
  std::uint64_t note(std::uint32_t index) const {
    return counter_[1 + index].load(std::memory_order_relaxed);
  }
  // The next signal need not wait for the line. A hint.
  void prepare() const {
    if (!software_) prefetch_for_write(counter_);
  }
  // The counter as another host last published it.
  std::uint64_t load() const {
    if (software_) pool_->observe(counter_, sizeof *counter_);
    return counter_->load(std::memory_order_acquire);
  }
  bool reached(std::uint64_t value) const { return load() >= value; }
  // Waits until reached or until the platform's clock passes deadline_ns (deadline_exceeded names
  // the value waited for and the value seen).
  Status wait(std::uint64_t value, std::uint64_t deadline_ns, bool oversubscribed) const;

 private:
  const Pool* pool_;
  std::atomic<std::uint64_t>* counter_;
  bool software_;
};

}  // namespace penstock
#endif
