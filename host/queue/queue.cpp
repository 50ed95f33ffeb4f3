#include "penstock/queue/queue.h"

#include <bit>

namespace penstock {

Result<std::unique_ptr<Queue>> Queue::create(Pool* pool, const QueueConfig& config) {
  constexpr std::uint32_t kMaxDepth = 65536;
  if (!std::has_single_bit(config.depth) || config.depth < 2 || config.depth > kMaxDepth) {
    return error(Code::invalid_argument, "a queue of depth {}: it must be a power of two, 2..{}",
                 config.depth, kMaxDepth);
  }
  if (config.default_timeout_ms == 0) {
    return error(Code::invalid_argument, "a queue whose waits have 0 ms: it must be at least 1");
  }
  for (std::size_t index = 0; index < config.windows.size(); ++index) {
    const Window& window = config.windows[index];
    if (pool == nullptr || pool->resolve(window.base, window.bytes) == nullptr) {
      return error(
          Code::out_of_range,
          "window {} of the queue, {} bytes at {:#x}, does not lie in the data of a device "
          "of the pool",
          index, window.bytes, window.base);
    }
  }
  return std::unique_ptr<Queue>(new Queue(pool, config));
}

Queue::Queue(Pool* pool, const QueueConfig& config)
    : pool_(pool),
      config_(config),
      depth_(config.depth),
      descriptors_(config.depth),
      completions_(config.depth) {}

// Each counter has one writer. A ring's cell is written before the counter that hands it over rises
// (release), and read after the counter was seen (acquire). The descriptor's cell is free for the
// next one when its completion was polled, which is later than the engine's last look at it.
bool Queue::submit(const penstock_descriptor& descriptor) {
  const std::uint64_t position = submitted_.load(std::memory_order_relaxed);
  if (position - polled_.load(std::memory_order_relaxed) >= depth_) return false;
  descriptors_[position & (depth_ - 1)] = descriptor;
  submitted_.store(position + 1, std::memory_order_release);
  return true;
}

bool Queue::poll(penstock_completion* completion) {
  const std::uint64_t position = polled_.load(std::memory_order_relaxed);
  if (position == completed_.load(std::memory_order_acquire)) return false;
  *completion = completions_[position & (depth_ - 1)];
  polled_.store(position + 1, std::memory_order_relaxed);
  return true;
}

std::uint32_t Queue::in_flight() const {
  return static_cast<std::uint32_t>(submitted_.load(std::memory_order_relaxed) -
                                    polled_.load(std::memory_order_relaxed));
}

const penstock_descriptor* Queue::front(std::uint32_t ahead) const {
  const std::uint64_t position = completed_.load(std::memory_order_relaxed) + ahead;
  if (position >= submitted_.load(std::memory_order_acquire)) return nullptr;
  return &descriptors_[position & (depth_ - 1)];
}

void Queue::complete(std::uint32_t status, std::uint32_t field, std::uint64_t detail) {
  const penstock_descriptor* descriptor = front();
  PENSTOCK_CHECK(descriptor != nullptr, "a completion without a descriptor");
  const std::uint64_t position = completed_.load(std::memory_order_relaxed);
  penstock_completion& completion = completions_[position & (depth_ - 1)];
  completion.cookie = descriptor->cookie;
  completion.status = status;
  completion.field = field;
  completion.detail = detail;
  completion.sequence = position + 1;
  wait_began_ns = 0;
  completed_.store(position + 1, std::memory_order_release);
}

std::byte* Queue::resolve(penstock_address address, std::uint64_t bytes, bool for_write) const {
  if (penstock_address_is_host(address)) {
    const std::uint64_t offset = penstock_address_offset(address);
    if (!config_.host_memory || bytes > PENSTOCK_OFFSET_MASK - offset) return nullptr;
    return reinterpret_cast<std::byte*>(static_cast<std::uintptr_t>(offset));
  }
  if (pool_ == nullptr) return nullptr;
  bool allowed = config_.windows.empty();
  for (const Window& window : config_.windows) {
    const std::uint64_t into =
        address - window.base;  // wraps below the base, and is then too large
    const bool inside = into <= window.bytes && bytes <= window.bytes - into;
    if (inside && (for_write ? window.write : window.read)) allowed = true;
  }
  return allowed ? pool_->resolve(address, bytes) : nullptr;
}

}  // namespace penstock
