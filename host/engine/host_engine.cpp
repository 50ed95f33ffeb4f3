#include "penstock/engine/host_engine.h"

#include <utility>

#include "penstock/engine/accept.h"
#include "penstock/engine/execute.h"
#include "penstock/engine/float_environment.h"

namespace penstock {
namespace {

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
        if (!wait_is_over(queue, *front, &outcome)) break;
      } else if (outcome.ok()) {
        outcome = run(queue, *front);
      }
    }
    queue.complete(outcome.status, outcome.field, outcome.detail);
    ++completions;
  }
  return completions;
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
      return execute_signal(access, queue, d);
    default:
      PENSTOCK_CHECK(false, "opcode {} was not checked", d.opcode);
      return {};
  }
}

}  // namespace

std::unique_ptr<Engine> make_host_engine(Capabilities capabilities,
                                         std::unique_ptr<const Kernels> kernels) {
  return std::make_unique<HostEngine>(std::move(capabilities), std::move(kernels));
}

}  // namespace penstock
