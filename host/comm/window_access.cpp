// Put, get and signals.
#include <cstring>

#include "penstock/comm/window_internal.h"
#include "penstock/engine/device_memory.h"

namespace penstock {

using window_internal::kLine;
using window_internal::lines;

namespace {

constexpr std::uint64_t kLookNs = 5'000'000;       // how often the peers are looked after
constexpr std::uint64_t kChunkBytes = 256u << 10;  // copied, then written back while it is hot

}  // namespace

Status CommWindow::usable() {
  if (process_ != platform_.process_generation()) {
    return error(Code::invalid_argument,
                 "the window belongs to the parent of this process; a forked child makes its own");
  }
  return look_after_peers();
}

// The comm's survey costs system calls, so it is asked now and then only.
Status CommWindow::look_after_peers() {
  const std::uint64_t now = platform_.now_ns();
  if (now < next_look_ns_) return {};
  PENSTOCK_TRY(comm_.health());
  next_look_ns_ = now + kLookNs;
  return {};
}

Status CommWindow::check_rank(const char* what, std::uint32_t rank) const {
  if (rank < size()) return {};
  return error(Code::invalid_argument, "window: {} {} is out of range; there are ranks 0 to {}",
               what, rank, size() - 1);
}

Status CommWindow::check_slot(std::uint32_t slot) const {
  if (slot < config_.signals) return {};
  return error(Code::invalid_argument, "window: signal slot {} is out of range; 0 to {} exist",
               slot, config_.signals - 1);
}

Status CommWindow::check_range(const char* what, std::uint32_t rank, std::uint64_t offset,
                               std::uint64_t bytes) const {
  const std::uint64_t limit = ranks_[rank].bytes;
  if (offset <= limit && bytes <= limit - offset) return {};
  return error(Code::out_of_range,
               "window: {} of {} bytes at offset {} goes beyond the {} bytes of rank {}", what,
               bytes, offset, limit, rank);
}

Fence CommWindow::left_fence(std::uint32_t at, std::uint32_t source) const {
  return Fence(pool_, control_[at] + (1 + source) * kLine);
}

Fence CommWindow::signal_fence(std::uint32_t at, std::uint32_t source, std::uint32_t slot) const {
  const std::uint64_t line = 1 + size() + std::uint64_t{source} * config_.signals + slot;
  return Fence(pool_, control_[at] + line * kLine);
}

Status CommWindow::put(std::uint32_t target, std::uint64_t offset, const void* data,
                       std::uint64_t bytes) {
  PENSTOCK_TRY(check_rank("target", target));
  PENSTOCK_TRY(check_range("a put", target, offset, bytes));
  if (offset % kLine != 0) {
    return error(Code::invalid_argument,
                 "window: a put writes whole lines, so its offset is a multiple of {}, not {}; the "
                 "next one is {}",
                 kLine, offset, lines(offset));
  }
  if (bytes == 0) return {};
  if (data == nullptr) {
    return error(Code::invalid_argument, "window: a put of {} bytes from a null pointer", bytes);
  }
  PENSTOCK_TRY(usable());
  const trace::Scope scope(trace::Kind::put, "put", target, bytes);
  HostCopy copy;
  if (device_memory_of(data) != nullptr) {
    PENSTOCK_ASSIGN(copy, HostCopy::make(const_cast<void*>(data), bytes, true));
    data = copy.data();
  }
  std::byte* const to = payload_[target] + offset;
  const auto* const from = static_cast<const std::byte*>(data);
  for (std::uint64_t done = 0; done < bytes; done += kChunkBytes) {
    const std::uint64_t chunk = std::min(kChunkBytes, bytes - done);
    std::memcpy(to + done, from + done, chunk);
    // What lies behind the end in the last line would otherwise be this cache's old idea of it.
    std::memset(to + done + chunk, 0, lines(chunk) - chunk);
    pool_.publish(to + done, chunk);
  }
  return {};
}

Status CommWindow::get(std::uint32_t source, std::uint64_t offset, void* data,
                       std::uint64_t bytes) {
  PENSTOCK_TRY(check_rank("source", source));
  PENSTOCK_TRY(check_range("a get", source, offset, bytes));
  if (bytes == 0) return {};
  if (data == nullptr) {
    return error(Code::invalid_argument, "window: a get of {} bytes to a null pointer", bytes);
  }
  PENSTOCK_TRY(usable());
  const trace::Scope scope(trace::Kind::get, "get", source, bytes);
  const std::byte* const from = payload_[source] + offset;
  pool_.observe(from, bytes);
  if (device_memory_of(data) == nullptr) {
    std::memcpy(data, from, bytes);
    return {};
  }
  PENSTOCK_ASSIGN(HostCopy copy, HostCopy::make(data, bytes, false));
  std::memcpy(copy.data(), from, bytes);
  return copy.write_back();
}

Status CommWindow::publish(std::uint64_t offset, std::uint64_t bytes) {
  PENSTOCK_TRY(check_range("a publication", rank_, offset, bytes));
  PENSTOCK_TRY(usable());
  pool_.publish(payload_[rank_] + offset, bytes);
  return {};
}

Status CommWindow::observe(std::uint64_t offset, std::uint64_t bytes) {
  PENSTOCK_TRY(check_range("an observation", rank_, offset, bytes));
  PENSTOCK_TRY(usable());
  pool_.observe(payload_[rank_] + offset, bytes);
  return {};
}

void CommWindow::flush() { platform_.store_fence(); }

Status CommWindow::signal(std::uint32_t target, std::uint32_t slot, std::uint64_t value) {
  PENSTOCK_TRY(check_rank("target", target));
  PENSTOCK_TRY(check_slot(slot));
  PENSTOCK_TRY(usable());
  const trace::Scope scope(trace::Kind::signal, "signal", value);
  signal_fence(target, rank_, slot).signal(value);
  return {};
}

Result<std::uint64_t> CommWindow::read_signal(std::uint32_t source, std::uint32_t slot) {
  PENSTOCK_TRY(check_rank("source", source));
  PENSTOCK_TRY(check_slot(slot));
  PENSTOCK_TRY(usable());
  return signal_fence(rank_, source, slot).load();
}

Status CommWindow::wait_signal(std::uint32_t source, std::uint32_t slot, std::uint64_t value,
                               std::uint32_t timeout_ms) {
  PENSTOCK_TRY(check_rank("source", source));
  PENSTOCK_TRY(check_slot(slot));
  PENSTOCK_TRY(usable());
  const Fence fence = signal_fence(rank_, source, slot);
  return wait_until([&] { return fence.reached(value); }, timeout_ms, "signal", source, slot,
                    value);
}

Result<std::uint32_t> CommWindow::wait_signal_of_any(std::uint32_t slot, std::uint64_t value,
                                                     std::uint32_t timeout_ms) {
  PENSTOCK_TRY(check_slot(slot));
  PENSTOCK_TRY(usable());
  std::uint32_t found = size();
  const auto ready = [&] {
    for (found = 0; found < size(); ++found) {
      if (signal_fence(rank_, found, slot).reached(value)) return true;
    }
    return false;
  };
  PENSTOCK_TRY(wait_until(ready, timeout_ms, "signal", size(), slot, value));
  return found;
}

}  // namespace penstock
