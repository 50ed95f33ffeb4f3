// The one-sided part of the C interface: windows and pairwise averaging.
#include "penstock/comm/window.h"

#include "comm_handle.h"
#include "penstock/comm/pairwise.h"

using penstock::BlockInfo;
using penstock::Code;
using penstock::Status;
using penstock::sdk::check_size;
using penstock::sdk::guarded;
using penstock::sdk::null_comm;

struct penstock_window {
  std::unique_ptr<penstock::CommWindow> window;
};

namespace {

Status null_window() { return Status(Code::invalid_argument, "the window is null"); }

// Runs a function of the window that returns Status.
template <typename Function>
penstock_status on(penstock_window* window, Function function) {
  return guarded([&]() -> Status {
    if (window == nullptr) return null_window();
    return function(*window->window);
  });
}

// `block` may be null.
Status check_block(const penstock_block* block) {
  if (block == nullptr) return {};
  return check_size("penstock_block", block->size, sizeof(*block));
}

void fill(const BlockInfo& info, penstock_block* block) {
  if (block == nullptr) return;
  block->owner = info.owner;
  block->slot = info.slot;
  block->version = info.version;
  block->key = info.key;
  block->bytes = info.bytes;
}

}  // namespace

extern "C" {

penstock_status penstock_window_make(penstock_comm* comm, const penstock_window_config* config,
                                     penstock_window** window) {
  return guarded([&]() -> Status {
    if (window == nullptr) {
      return Status(Code::invalid_argument, "penstock_window_make: window is null");
    }
    *window = nullptr;
    if (comm == nullptr) return null_comm();
    if (config == nullptr) {
      return Status(Code::invalid_argument, "penstock_window_make: config is null");
    }
    PENSTOCK_TRY(check_size("penstock_window_config", config->size, sizeof(*config)));
    penstock::CommWindowConfig inner;
    inner.bytes = config->bytes;
    if (config->signals > 0) inner.signals = config->signals;
    inner.blocks = config->blocks;
    inner.block_bytes = config->block_bytes;
    if (config->block_copies > 0) inner.block_copies = config->block_copies;
    if (config->timeout_ms > 0) inner.timeout_ms = config->timeout_ms;
    auto handle = std::make_unique<penstock_window>();
    PENSTOCK_ASSIGN(handle->window,
                    penstock::CommWindow::make(comm->its_pool(), *comm->comm, inner));
    *window = handle.release();
    return {};
  });
}

void penstock_window_destroy(penstock_window* window) { delete window; }

void* penstock_window_data(penstock_window* window) {
  return window == nullptr ? nullptr : window->window->data();
}

std::uint64_t penstock_window_bytes(const penstock_window* window, std::uint32_t rank) {
  if (window == nullptr || rank >= window->window->size()) return 0;
  return window->window->bytes(rank);
}

penstock_status penstock_window_put(penstock_window* window, std::uint32_t target,
                                    std::uint64_t offset, const void* data, std::uint64_t bytes) {
  return on(window, [&](auto& w) { return w.put(target, offset, data, bytes); });
}

penstock_status penstock_window_get(penstock_window* window, std::uint32_t source,
                                    std::uint64_t offset, void* data, std::uint64_t bytes) {
  return on(window, [&](auto& w) { return w.get(source, offset, data, bytes); });
}

penstock_status penstock_window_publish(penstock_window* window, std::uint64_t offset,
                                        std::uint64_t bytes) {
  return on(window, [&](auto& w) { return w.publish(offset, bytes); });
}

penstock_status penstock_window_observe(penstock_window* window, std::uint64_t offset,
                                        std::uint64_t bytes) {
  return on(window, [&](auto& w) { return w.observe(offset, bytes); });
}

penstock_status penstock_window_signal(penstock_window* window, std::uint32_t target,
                                       std::uint32_t slot, std::uint64_t value) {
  return on(window, [&](auto& w) { return w.signal(target, slot, value); });
}

penstock_status penstock_window_wait_signal(penstock_window* window, std::uint32_t source,
                                            std::uint32_t slot, std::uint64_t value,
                                            std::uint32_t timeout_ms) {
  return on(window, [&](auto& w) { return w.wait_signal(source, slot, value, timeout_ms); });
}

penstock_status penstock_window_wait_any(penstock_window* window, std::uint32_t slot,
                                         std::uint64_t value, std::uint32_t timeout_ms,
                                         std::uint32_t* source) {
  return on(window, [&](auto& w) -> Status {
    if (source == nullptr) {
      return Status(Code::invalid_argument, "penstock_window_wait_any: source is null");
    }
    PENSTOCK_ASSIGN(*source, w.wait_signal_of_any(slot, value, timeout_ms));
    return {};
  });
}

penstock_status penstock_window_publish_block(penstock_window* window, std::uint32_t slot,
                                              std::uint64_t key, const void* data,
                                              std::uint64_t bytes, std::uint64_t* version) {
  return on(window, [&](auto& w) -> Status {
    PENSTOCK_ASSIGN(const std::uint64_t number, w.publish_block(slot, key, data, bytes));
    if (version != nullptr) *version = number;
    return {};
  });
}

penstock_status penstock_window_fetch_block(penstock_window* window, std::uint32_t owner,
                                            std::uint32_t slot, std::uint64_t min_version,
                                            void* data, std::uint64_t capacity,
                                            std::uint32_t timeout_ms, penstock_block* block) {
  return on(window, [&](auto& w) -> Status {
    PENSTOCK_TRY(check_block(block));
    PENSTOCK_ASSIGN(const BlockInfo info,
                    w.fetch_block(owner, slot, min_version, data, capacity, timeout_ms));
    fill(info, block);
    return {};
  });
}

penstock_status penstock_window_find_block(penstock_window* window, std::uint64_t key,
                                           penstock_block* block) {
  return on(window, [&](auto& w) -> Status {
    PENSTOCK_TRY(check_block(block));
    PENSTOCK_ASSIGN(const BlockInfo info, w.find_block(key));
    fill(info, block);
    return {};
  });
}

penstock_status penstock_pairwise_average(penstock_comm* comm, std::uint64_t seed,
                                          std::uint64_t round, std::uint64_t absent, void* data,
                                          std::uint64_t count, penstock_type type) {
  return guarded([&]() -> Status {
    if (comm == nullptr) return null_comm();
    PENSTOCK_ASSIGN(const auto averaging, penstock::PairwiseAverage::make(*comm->comm, seed));
    return averaging->run(round, data, count, static_cast<std::uint32_t>(type), absent);
  });
}

std::uint32_t penstock_pairwise_partner(std::uint64_t seed, std::uint64_t round,
                                        std::uint32_t ranks, std::uint32_t rank,
                                        std::uint64_t absent) {
  if (ranks > penstock::kMaxRanks || rank >= ranks) return rank;
  return penstock::pairwise_partners(seed, round, ranks, absent)[rank];
}
}
