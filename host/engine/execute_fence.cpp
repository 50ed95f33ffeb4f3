// SIGNAL, WAIT and BARRIER: the host does them, whatever the engine.
#include "penstock/engine/execute.h"
#include "penstock/memory/fence.h"

namespace penstock {
namespace {

constexpr std::uint64_t kNsPerMs = 1'000'000;

// What a WAIT or BARRIER finds now: held back, with the detail that it would have after its
// deadline, or how it ends.
struct Holding {
  bool held = false;
  Outcome outcome;
};

Holding look_at_fence(const Queue& queue, const penstock_descriptor& d) {
  std::byte* line = queue.resolve(d.src[0], PENSTOCK_CACHE_LINE, false);
  if (line == nullptr) return {false, {PENSTOCK_OUT_OF_RANGE, PENSTOCK_FIELD_SRC, d.src[0]}};
  const std::uint64_t value = Fence(*queue.pool(), line).load();
  return {value < d.src[1], {PENSTOCK_OK, PENSTOCK_FIELD_NONE, value}};
}

// Signalling again at each look changes nothing: the fence is there already.
Holding look_at_barrier(const Queue& queue, const penstock_descriptor& d) {
  std::byte* own = queue.resolve(d.dst[0], PENSTOCK_CACHE_LINE, true);
  if (own == nullptr) return {false, {PENSTOCK_OUT_OF_RANGE, PENSTOCK_FIELD_DST, d.dst[0]}};
  std::byte* lines = queue.resolve(d.src[0], d.count * PENSTOCK_CACHE_LINE, false);
  if (lines == nullptr) return {false, {PENSTOCK_OUT_OF_RANGE, PENSTOCK_FIELD_SRC, d.src[0]}};
  Fence(*queue.pool(), own).signal(d.src[1]);
  for (std::uint64_t i = 0; i < d.count; ++i)
    if (!Fence(*queue.pool(), lines + i * PENSTOCK_CACHE_LINE).reached(d.src[1]))
      return {true, {PENSTOCK_OK, PENSTOCK_FIELD_NONE, i}};
  return {};
}

}  // namespace

Outcome execute_signal(const Access& access, const Queue& queue, const penstock_descriptor& d) {
  std::byte* line = access.resolve(d.dst[0], PENSTOCK_CACHE_LINE, true);
  if (line == nullptr) return {PENSTOCK_OUT_OF_RANGE, PENSTOCK_FIELD_DST, d.dst[0]};
  Fence(*queue.pool(), line).signal(d.src[0]);
  return {};
}

bool wait_is_over(Queue& queue, const penstock_descriptor& d, Outcome* outcome) {
  const Holding holding =
      d.opcode == PENSTOCK_OP_BARRIER ? look_at_barrier(queue, d) : look_at_fence(queue, d);
  *outcome = holding.outcome;
  if (!holding.held) return true;
  const std::uint64_t now = queue.pool()->platform().now_ns();
  if (queue.wait_began_ns == 0) queue.wait_began_ns = now != 0 ? now : 1;
  const std::uint64_t timeout_ms =
      d.timeout_ms != 0 ? d.timeout_ms : queue.config().default_timeout_ms;
  if (now < queue.wait_began_ns || now - queue.wait_began_ns < timeout_ms * kNsPerMs) return false;
  outcome->status = PENSTOCK_DEADLINE_EXCEEDED;
  return true;
}

}  // namespace penstock
