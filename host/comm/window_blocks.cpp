// Blocks: published by their owner, fetched by anybody.
//
// A block has two counters, begun and done, each alone on its line, and `copies` places. Version v
// lives in place v modulo copies. The owner raises begun to v, writes the place, raises done to v.
// A reader takes v from done, reads the place, and looks at begun again: the place was v's all the
// while if begun is below v + copies, because only version v + copies overwrites it. The order of
// the owner's three steps is the same in memory (a store fence stands between them), so that no
// reader can see a byte of a later version without seeing that it has begun.
#include <cstring>

#include "penstock/comm/window_internal.h"

namespace penstock {

using window_internal::kLine;

namespace {

// The first line of a place.
struct alignas(64) BlockHeader {
  std::uint64_t version;
  std::uint64_t key;
  std::uint64_t bytes;
};
static_assert(sizeof(BlockHeader) == 64);

}  // namespace

Status CommWindow::check_block(std::uint32_t owner, std::uint32_t slot) const {
  PENSTOCK_TRY(check_rank("owner", owner));
  if (slot < config_.blocks) return {};
  return error(Code::invalid_argument, "window: block {} is out of range; each rank has {}", slot,
               config_.blocks);
}

CommWindow::BlockLines CommWindow::block_lines(std::uint32_t owner, std::uint32_t slot) const {
  const std::uint64_t first =
      1 + size() + std::uint64_t{size()} * config_.signals + std::uint64_t{slot} * 2;
  std::byte* const line = control_[owner] + first * kLine;
  return {Fence(pool_, line), Fence(pool_, line + kLine)};
}

std::byte* CommWindow::block_copy(std::uint32_t owner, std::uint32_t slot,
                                  std::uint64_t version) const {
  const std::uint64_t place =
      std::uint64_t{slot} * config_.block_copies + version % config_.block_copies;
  return payload_[owner] + window_internal::lines(ranks_[owner].bytes) + place * copy_bytes();
}

Result<std::uint64_t> CommWindow::publish_block(std::uint32_t slot, std::uint64_t key,
                                                const void* data, std::uint64_t bytes) {
  PENSTOCK_TRY(check_block(rank_, slot));
  if (bytes > config_.block_bytes) {
    return error(Code::out_of_range, "window: a block of {} bytes; this window's hold {}", bytes,
                 config_.block_bytes);
  }
  if (bytes > 0 && data == nullptr) {
    return error(Code::invalid_argument, "window: a block of {} bytes from a null pointer", bytes);
  }
  PENSTOCK_TRY(usable());
  const trace::Scope scope(trace::Kind::put, "publish_block", rank_, bytes);
  const std::uint64_t version = ++versions_[slot];
  BlockLines counters = block_lines(rank_, slot);
  counters.begun.signal(version);
  platform_.store_fence();
  std::byte* const place = block_copy(rank_, slot, version);
  const BlockHeader header{version, key, bytes};
  std::memcpy(place, &header, sizeof(header));
  if (bytes > 0) std::memcpy(place + kLine, data, bytes);
  pool_.publish(place, kLine + bytes);
  counters.done.signal(version);
  return version;
}

BlockView CommWindow::newest(std::uint32_t owner, std::uint32_t slot) const {
  BlockView view;
  view.info.owner = owner;
  view.info.slot = slot;
  const std::uint64_t version = block_lines(owner, slot).done.load();
  if (version == 0) return view;
  const std::byte* const place = block_copy(owner, slot, version);
  pool_.observe(place, kLine);
  BlockHeader header;
  std::memcpy(&header, place, sizeof(header));
  view.info.version = version;
  view.info.key = header.key;
  view.info.bytes = header.bytes;
  view.data = place + kLine;
  // A header that is being overwritten says nothing.
  const bool whole = header.version == version && header.bytes <= config_.block_bytes;
  if (!whole || !still_valid(view)) view.info.version = 0;
  return view;
}

bool CommWindow::still_valid(const BlockView& view) const {
  // The loads of the payload come before that of the counter.
  platform_.full_fence();
  const std::uint64_t begun = block_lines(view.info.owner, view.info.slot).begun.load();
  return begun < view.info.version + config_.block_copies;
}

Result<BlockView> CommWindow::view_block(std::uint32_t owner, std::uint32_t slot,
                                         std::uint64_t min_version, std::uint32_t timeout_ms) {
  PENSTOCK_TRY(check_block(owner, slot));
  PENSTOCK_TRY(usable());
  const std::uint64_t wanted = min_version == 0 ? 1 : min_version;
  BlockView view;
  const auto ready = [&] {
    view = newest(owner, slot);
    return view.info.version >= wanted;
  };
  PENSTOCK_TRY(wait_until(ready, timeout_ms, "block", owner, slot, wanted));
  pool_.observe(view.data, view.info.bytes);
  return view;
}

Result<BlockInfo> CommWindow::fetch_block(std::uint32_t owner, std::uint32_t slot,
                                          std::uint64_t min_version, void* data,
                                          std::uint64_t capacity, std::uint32_t timeout_ms) {
  const std::uint32_t limit_ms = timeout_ms == 0 ? config_.timeout_ms : timeout_ms;
  const std::uint64_t deadline_ns = platform_.now_ns() + std::uint64_t{limit_ms} * 1'000'000;
  for (;;) {
    PENSTOCK_ASSIGN(const BlockView view, view_block(owner, slot, min_version, limit_ms));
    if (view.info.bytes > capacity) {
      return error(Code::out_of_range,
                   "window: block {} of rank {} has {} bytes, the buffer only {}", slot, owner,
                   view.info.bytes, capacity);
    }
    if (view.info.bytes > 0 && data == nullptr) {
      return error(Code::invalid_argument, "window: a fetch of {} bytes to a null pointer",
                   view.info.bytes);
    }
    {
      const trace::Scope scope(trace::Kind::get, "fetch_block", owner, view.info.bytes);
      if (view.info.bytes > 0) std::memcpy(data, view.data, view.info.bytes);
    }
    if (still_valid(view)) return view.info;
    if (platform_.now_ns() >= deadline_ns) {
      return error(Code::deadline_exceeded,
                   "window: block {} of rank {} was overwritten whenever it was read, for {} ms; "
                   "a window with more than {} block_copies keeps it readable",
                   slot, owner, limit_ms, config_.block_copies);
    }
  }
}

Result<BlockInfo> CommWindow::peek_block(std::uint32_t owner, std::uint32_t slot) {
  PENSTOCK_TRY(check_block(owner, slot));
  PENSTOCK_TRY(usable());
  return newest(owner, slot).info;
}

Result<BlockInfo> CommWindow::find_block(std::uint64_t key) {
  PENSTOCK_TRY(usable());
  for (std::uint32_t owner = 0; owner < size(); ++owner) {
    for (std::uint32_t slot = 0; slot < config_.blocks; ++slot) {
      const BlockInfo info = newest(owner, slot).info;
      if (info.version > 0 && info.key == key) return info;
    }
  }
  return error(Code::not_found, "window: no rank has published a block with key {}", key);
}

}  // namespace penstock
