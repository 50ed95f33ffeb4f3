#include <cstring>

#include "penstock/engine/host_engine.h"
#include "penstock/engine/scalar_fused.h"
#include "penstock/engine/scalar_reduce.h"
#include "penstock/engine/scalar_select.h"

namespace penstock {
namespace {

class ScalarKernels final : public Kernels {
 public:
  void copy(void* const* dst, std::uint32_t n_dst, const void* src, std::uint64_t bytes,
            bool) const override {
    for (std::uint32_t d = 0; d < n_dst; ++d)
      if (dst[d] != src) std::memcpy(dst[d], src, bytes);
  }
  void reduce(const ReduceArguments& arguments) const override { scalar_reduce(arguments); }
  void outer_step(const OuterStepArguments& arguments) const override {
    scalar_outer_step(arguments);
  }
  void select(const TableView& table, const penstock_program& program, const penstock_task& task,
              bool commit, penstock_result* result) const override {
    scalar_select(table, program, task, commit, result);
  }
};

}  // namespace

std::unique_ptr<const Kernels> scalar_kernels() { return std::make_unique<ScalarKernels>(); }

}  // namespace penstock
