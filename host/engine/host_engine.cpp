#include "penstock/engine/host_engine.h"

#include <utility>

#include "penstock/engine/accept.h"
#include "penstock/engine/execute.h"
#include "penstock/engine/float_environment.h"
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

class HostEngine final : public Engine {
 public:
  HostEngine(Capabilities capabilities, std::unique_ptr<const Kernels> kernels)
      : capabilities_(std::move(capabilities)), kernels_(std::move(kernels)) {}

  const Capabilities& capabilities() const override { return capabilities_; }
  Status accepts(const penstock_descriptor& descriptor) const override {
    return accept_descriptor(capabilities_, descriptor);
  }
  std::uint32_t advance(Queue& queue) override;
  const Kernels* direct_kernels() const override { return kernels_.get(); }

 private:
  enum class Progress { completed, blocked };

  // WAIT and BARRIER.
  Progress wait(Queue& queue, const penstock_descriptor& d) const;
  Outcome run(const Queue& queue, const penstock_descriptor& d) const;

  const Capabilities capabilities_;
  const std::unique_ptr<const Kernels> kernels_;
};

std::uint32_t HostEngine::advance(Queue& queue) {
  const FloatEnvironment environment;
  std::uint32_t completions = 0;
  while (const penstock_descriptor* front = queue.front()) {
    Outcome outcome;
    if (queue.cancelled()) {
      queue.wait_began_ns = 0;
      outcome.status = PENSTOCK_CANCELLED;
    } else {
      outcome.status = check_descriptor(capabilities_, *front, &outcome.field, &outcome.detail);
      if (outcome.ok() &&
          (front->opcode == PENSTOCK_OP_WAIT || front->opcode == PENSTOCK_OP_BARRIER)) {
        if (wait(queue, *front) == Progress::blocked) break;
        ++completions;
        continue;
      }
      if (outcome.ok()) outcome = run(queue, *front);
    }
    queue.complete(outcome.status, outcome.field, outcome.detail);
    ++completions;
  }
  return completions;
}

HostEngine::Progress HostEngine::wait(Queue& queue, const penstock_descriptor& d) const {
  const Holding holding =
      d.opcode == PENSTOCK_OP_BARRIER ? look_at_barrier(queue, d) : look_at_fence(queue, d);
  if (!holding.held) {
    queue.complete(holding.outcome.status, holding.outcome.field, holding.outcome.detail);
    return Progress::completed;
  }
  const std::uint64_t now = queue.pool()->platform().now_ns();
  if (queue.wait_began_ns == 0) queue.wait_began_ns = now != 0 ? now : 1;
  const std::uint64_t timeout_ms =
      d.timeout_ms != 0 ? d.timeout_ms : queue.config().default_timeout_ms;
  if (now < queue.wait_began_ns || now - queue.wait_began_ns < timeout_ms * kNsPerMs)
    return Progress::blocked;
  queue.complete(PENSTOCK_DEADLINE_EXCEEDED, PENSTOCK_FIELD_NONE, holding.outcome.detail);
  return Progress::completed;
}

Outcome HostEngine::run(const Queue& queue, const penstock_descriptor& d) const {
  const Access access(queue);
  switch (d.opcode) {
    case PENSTOCK_OP_NOP:
      return {};
    case PENSTOCK_OP_COPY:
      return execute_copy(access, *kernels_, d);
    case PENSTOCK_OP_REDUCE:
      return execute_reduce(access, *kernels_, d);
    case PENSTOCK_OP_OUTER_STEP:
      return execute_outer_step(access, *kernels_, d);
    case PENSTOCK_OP_SELECT:
      return execute_select(access, *kernels_, d);
    case PENSTOCK_OP_UPDATE:
      return execute_update(access, d);
    case PENSTOCK_OP_SIGNAL:
      break;
    default:
      PENSTOCK_CHECK(false, "opcode {} was not checked", d.opcode);
  }
  std::byte* line = access.resolve(d.dst[0], PENSTOCK_CACHE_LINE, true);
  if (line == nullptr) return {PENSTOCK_OUT_OF_RANGE, PENSTOCK_FIELD_DST, d.dst[0]};
  Fence(*queue.pool(), line).signal(d.src[0]);
  return {};
}

}  // namespace

std::unique_ptr<Engine> make_host_engine(Capabilities capabilities,
                                         std::unique_ptr<const Kernels> kernels) {
  return std::make_unique<HostEngine>(std::move(capabilities), std::move(kernels));
}

}  // namespace penstock
