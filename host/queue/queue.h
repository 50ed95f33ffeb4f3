// A ring of descriptors and a ring of completions between one submitter and one engine.
//
// Invariants: every accepted descriptor gives exactly one completion, in order; a full queue
// refuses (submit returns false) and loses nothing, because a descriptor is accepted only while its
// completion has a place; after cancel() everything accepted completes as cancelled.
//
// Order: WAIT and BARRIER hold back what follows them, SIGNAL comes after what precedes it.
#ifndef PENSTOCK_QUEUE_QUEUE_H_
#define PENSTOCK_QUEUE_QUEUE_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "penstock/descriptor/descriptor.h"
#include "penstock/memory/pool.h"

namespace penstock {

// What a queue's descriptors may touch: pool bytes, or the whole of this process's own memory.
struct Window {
  penstock_address base = 0;
  std::uint64_t bytes = 0;
  bool read = true;
  bool write = true;
};

struct QueueConfig {
  std::uint32_t depth = 256;                 // power of two, 2..65536
  std::uint32_t default_timeout_ms = 30000;  // of a WAIT that names none
  bool host_memory = true;                   // descriptors may name this process's memory
  bool oversubscribed = false;               // more waiters than CPUs: yield instead of spinning
  std::vector<Window> windows;               // empty: the whole pool
};

// What an engine keeps about one queue (a card: its ring). It goes with the queue.
class EngineSide {
 public:
  virtual ~EngineSide() = default;
};

// Submitter side and engine side may be two threads; each side is one thread at a time.
class Queue {
 public:
  // `pool` may be null for a queue that only names host memory; it outlives the queue.
  static Result<std::unique_ptr<Queue>> create(Pool* pool, const QueueConfig& config);

  // ---- submitter ----
  bool submit(const penstock_descriptor& descriptor);
  bool poll(penstock_completion* completion);  // false: none waiting
  std::uint32_t in_flight() const;             // accepted and not yet polled
  std::uint32_t depth() const { return depth_; }
  void cancel() { cancelled_.store(true, std::memory_order_release); }
  // After everything in flight was polled: takes submissions again.
  void reset_cancel() { cancelled_.store(false, std::memory_order_release); }

  // ---- engine ----
  // The oldest without completion, or the one so many after it; null if there are not so many.
  const penstock_descriptor* front(std::uint32_t ahead = 0) const;
  void complete(std::uint32_t status, std::uint32_t field = 0, std::uint64_t detail = 0);
  bool cancelled() const { return cancelled_.load(std::memory_order_acquire); }
  // When the WAIT at the front was first seen unsatisfied; 0 if it was not. For its deadline.
  std::uint64_t wait_began_ns = 0;
  std::unique_ptr<EngineSide> engine_side;

  Pool* pool() const { return pool_; }
  const QueueConfig& config() const { return config_; }

  // Bytes of memory behind an address if the windows allow the access, else null.
  std::byte* resolve(penstock_address address, std::uint64_t bytes, bool for_write) const;

 private:
  Queue(Pool* pool, const QueueConfig& config);

  Pool* pool_;
  QueueConfig config_;
  std::uint32_t depth_;
  std::vector<penstock_descriptor> descriptors_;
  std::vector<penstock_completion> completions_;
  alignas(64) std::atomic<std::uint64_t> submitted_{0};
  alignas(64) std::atomic<std::uint64_t> completed_{0};
  alignas(64) std::atomic<std::uint64_t> polled_{0};
  std::atomic<bool> cancelled_{false};
};

}  // namespace penstock
#endif
