#include "penstock/memory/fence.h"

namespace penstock {

// The store fence is there under hardware coherence, too: the payload may have been streamed past
// the cache, and such stores are ordered by nothing else.
void Fence::signal(std::uint64_t value) {
  if (value <= counter_->load(std::memory_order_relaxed)) return;
  Platform& platform = pool_->platform();
  platform.store_fence();
  counter_->store(value, std::memory_order_release);
  pool_->publish(counter_, sizeof *counter_);
}

void Fence::signal(std::uint64_t value, std::uint32_t index, std::uint64_t note) {
  counter_[1 + index].store(note, std::memory_order_relaxed);
  if (software_) pool_->platform().store_fence();
  counter_->store(value, std::memory_order_release);
  if (software_) pool_->publish(counter_, sizeof *counter_);
}

void Fence::leave_note(std::uint32_t index, std::uint64_t note) {
  counter_[1 + index].store(note, std::memory_order_release);
  pool_->publish(counter_, sizeof *counter_);
}

Status Fence::wait(std::uint64_t value, std::uint64_t deadline_ns, bool oversubscribed) const {
  std::uint64_t seen = load();
  if (seen >= value) return Status();
  Platform& platform = pool_->platform();
  Backoff backoff(platform, oversubscribed);
  // The clock costs as much as a turn of spinning, so it is read once in a few.
  constexpr std::uint32_t kTurnsPerLook = 8;
  for (std::uint32_t turn = 0;; ++turn) {
    seen = load();
    if (seen >= value) return Status();
    if (turn % kTurnsPerLook == 0 && platform.now_ns() >= deadline_ns) break;
    backoff.turn();
  }
  penstock_address address = 0;
  (void)pool_->address_of(counter_, sizeof *counter_, &address);
  return error(Code::deadline_exceeded,
               "the fence at pool offset {:#x} should reach {}, but is at {}", address, value,
               seen);
}

}  // namespace penstock
