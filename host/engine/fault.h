// An engine that executes with another one and injects faults, by plan or by seed, so that whatever
// stands above can be tested against an engine that misbehaves within its contract.
#ifndef PENSTOCK_ENGINE_FAULT_H_
#define PENSTOCK_ENGINE_FAULT_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "penstock/engine/engine.h"

namespace penstock {

// Descriptors are numbered from 1 in the order in which the engine first sees them, over all of its
// queues.
struct FaultPlan {
  std::map<std::uint64_t, std::uint32_t> fail;  // number to penstock_status; nothing is executed
  std::uint32_t fail_per_million = 0;           // of the others, with io_error, drawn by the seed
  // From this one on (0: never) the engine is lost: all of it completes with io_error, and
  // accepts() says so.
  std::uint64_t lost = 0;
  std::uint64_t stall = 0;  // this one (0: none) never completes until its queue is cancelled
  // Before a descriptor is executed: delay_ns, and up to delay_random_ns more, drawn by the seed.
  std::uint64_t delay_ns = 0;
  std::uint64_t delay_random_ns = 0;
  std::uint64_t seed = 1;

  // "fail=3:io_error;fail=7:internal;fail_per_million=100;stall=9;lost=12;delay_us=50;
  // delay_random_us=10;seed=4". invalid_argument names the part that is wrong.
  static Result<FaultPlan> parse(const std::string& text);
};

// One descriptor of a queue is handed to the inner engine at a time, so faults keep the queue's
// order. A queue has to be drained (or cancelled and advanced) before it is destroyed. The same
// plan over the same single queue gives the same faults.
std::shared_ptr<Engine> make_fault_engine(std::shared_ptr<Engine> inner, const FaultPlan& plan);
// "ENGINE" or "ENGINE;PLAN", ENGINE as for make_engine but without commas.
Result<std::shared_ptr<Engine>> make_fault_engine(const std::string& text);

}  // namespace penstock
#endif
