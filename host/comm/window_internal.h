// What the files of the window share.
#ifndef PENSTOCK_COMM_WINDOW_INTERNAL_H_
#define PENSTOCK_COMM_WINDOW_INTERNAL_H_

#include "penstock/base/trace.h"
#include "penstock/comm/window.h"

namespace penstock {
namespace window_internal {

inline constexpr std::uint64_t kLine = PENSTOCK_CACHE_LINE;
inline constexpr std::uint64_t kWindowMagic = 0x776f646e69777350;  // "Pswindow"

// The first line of a control region: what its owner needs to free both regions later.
struct alignas(64) WindowHeader {
  std::uint64_t magic;
  std::uint32_t size;
  std::uint32_t rank;        // the owner
  std::uint64_t generation;  // of the control region: the line is not from what was here before
  std::uint64_t payload_address;
  std::uint64_t payload_bytes;
  std::uint64_t payload_generation;
  std::uint32_t payload_slot;
};
static_assert(sizeof(WindowHeader) == 64);

inline constexpr std::uint64_t lines(std::uint64_t bytes) {
  return (bytes + kLine - 1) / kLine * kLine;
}

}  // namespace window_internal

// Turns until ready() or the deadline; looks after the peers now and then.
template <typename Ready>
Status CommWindow::wait_until(Ready ready, std::uint32_t timeout_ms, const char* what,
                              std::uint32_t peer, std::uint32_t slot, std::uint64_t value) {
  if (ready()) return {};
  const trace::Scope scope(trace::Kind::wait, what, peer, value);
  const std::uint32_t limit_ms = timeout_ms == 0 ? config_.timeout_ms : timeout_ms;
  const std::uint64_t deadline_ns = platform_.now_ns() + std::uint64_t{limit_ms} * 1'000'000;
  Backoff backoff(platform_, oversubscribed_);
  for (std::uint32_t turn = 1;; ++turn) {
    if (ready()) return {};
    backoff.turn();
    if (turn % 16 != 0) continue;
    PENSTOCK_TRY(look_after_peers());
    if (platform_.now_ns() >= deadline_ns) break;
  }
  const std::string whom = peer < size() ? fmt::format("rank {}", peer) : "any rank";
  return error(Code::deadline_exceeded, "window: {} {} of {} did not reach {} within {} ms", what,
               slot, whom, value, limit_ms);
}

}  // namespace penstock
#endif
