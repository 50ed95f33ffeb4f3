// The C interface of the fused collectives.
#include "penstock/fused.h"

#include <memory>
#include <utility>

#include "comm_handle.h"
#include "penstock/comm/fused.h"

using penstock::Code;
using penstock::Status;
using penstock::sdk::guarded;

struct penstock_fused {
  std::unique_ptr<penstock::Fused> fused;
};

namespace {

template <typename Call>
Status check_pointers(const penstock_fused* fused, const Call* call) {
  if (fused == nullptr) return Status(Code::invalid_argument, "the fused handle is null");
  if (call == nullptr) return Status(Code::invalid_argument, "the call is null");
  return {};
}

penstock::FusedCall to_call(const penstock_fused_call& call) {
  penstock::FusedCall out;
  out.send = call.send;
  out.recv = call.recv;
  out.count = call.count;
  out.type = call.type;
  out.out_type = call.out_type;
  out.redop = call.redop;
  out.scale = call.scale;
  out.block = call.block;
  return out;
}

}  // namespace

penstock_status penstock_fused_create(penstock_comm* comm, penstock_fused** fused) {
  return guarded([&]() -> Status {
    if (fused == nullptr) return Status(Code::invalid_argument, "the place for fused is null");
    *fused = nullptr;
    if (comm == nullptr) return penstock::sdk::null_comm();
    auto made = std::make_unique<penstock_fused>();
    PENSTOCK_ASSIGN(made->fused, penstock::Fused::create(*comm->comm));
    *fused = made.release();
    return {};
  });
}

void penstock_fused_destroy(penstock_fused* fused) { delete fused; }

penstock_status penstock_fused_all_reduce(penstock_fused* fused, const penstock_fused_call* call) {
  return guarded([&]() -> Status {
    PENSTOCK_TRY(check_pointers(fused, call));
    PENSTOCK_TRY(penstock::sdk::check_size("penstock_fused_call", call->size, sizeof *call));
    return fused->fused->all_reduce(to_call(*call));
  });
}

penstock_status penstock_fused_average(penstock_fused* fused, const penstock_fused_call* call,
                                       double weight) {
  return guarded([&]() -> Status {
    PENSTOCK_TRY(check_pointers(fused, call));
    PENSTOCK_TRY(penstock::sdk::check_size("penstock_fused_call", call->size, sizeof *call));
    penstock::FusedCall average = to_call(*call);
    average.redop = PENSTOCK_AVG;
    return fused->fused->average(average, weight);
  });
}

penstock_status penstock_fused_outer_step(penstock_fused* fused,
                                          const penstock_outer_step_call* call) {
  return guarded([&]() -> Status {
    PENSTOCK_TRY(check_pointers(fused, call));
    PENSTOCK_TRY(penstock::sdk::check_size("penstock_outer_step_call", call->size, sizeof *call));
    penstock::OuterStepCall step;
    step.deltas = call->deltas;
    step.parameters = call->parameters;
    step.momentum = call->momentum;
    step.count = call->count;
    step.type = call->type;
    step.block = call->block;
    step.learning_rate = call->learning_rate;
    step.momentum_factor = call->momentum_factor;
    return fused->fused->outer_step(step);
  });
}

uint64_t penstock_fused_shard(const penstock_fused* fused, uint64_t count, uint32_t block) {
  return fused == nullptr ? 0 : fused->fused->shard(count, block);
}
