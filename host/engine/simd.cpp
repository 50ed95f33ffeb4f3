#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "penstock/engine/simd.cpp"
#include <hwy/foreach_target.h>  // must come before highway.h
#include <hwy/highway.h>

#include <cstring>

#include "penstock/engine/simd_reduce.h"
#include "penstock/engine/simd_select.h"

HWY_BEFORE_NAMESPACE();
namespace penstock {
namespace HWY_NAMESPACE {
std::int64_t TargetBit() { return HWY_TARGET; }
}  // namespace HWY_NAMESPACE
}  // namespace penstock
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace penstock {
HWY_EXPORT(TargetBit);
namespace {

// Of a source that goes to several destinations: read once from memory, then from the cache.
constexpr std::uint64_t kCopyBlock = std::uint64_t{64} << 10;

class SimdKernels final : public Kernels {
 public:
  // The C library's memcpy is as wide as the processor, and goes over to streaming stores (with the
  // store fence they need) where a copy is larger than this thread's share of the last cache.
  void copy(void* const* dst, std::uint32_t n_dst, const void* src,
            std::uint64_t bytes) const override {
    const std::uint64_t block = n_dst == 1 ? bytes : kCopyBlock;
    for (std::uint64_t at = 0; at < bytes; at += block) {
      const std::uint64_t now = bytes - at < block ? bytes - at : block;
      for (std::uint32_t d = 0; d < n_dst; ++d)
        if (dst[d] != src)
          std::memcpy(static_cast<char*>(dst[d]) + at, static_cast<const char*>(src) + at, now);
    }
  }
  void reduce(const ReduceArguments& arguments) const override { simd_reduce(arguments); }
  void select(const TableView& table, const penstock_program& program, const penstock_task& task,
              bool commit, penstock_result* result) const override {
    simd_select(table, program, task, commit, result);
  }
};

}  // namespace

std::unique_ptr<const Kernels> simd_kernels() { return std::make_unique<SimdKernels>(); }

const char* simd_target() { return hwy::TargetName(HWY_DYNAMIC_DISPATCH(TargetBit)()); }

void simd_reduce(const ReduceArguments& a) {
  if (a.n_src == 1 && a.redop != PENSTOCK_PREMUL_SUM) {
    SimdKernels().copy(a.dst, a.n_dst, a.src[0], a.count * penstock_type_size(a.type));
  } else if (a.type <= PENSTOCK_UINT64) {
    simd_reduce_integer(a);
  } else if (a.type == PENSTOCK_F32 || a.type == PENSTOCK_F64) {
    simd_reduce_float(a);
  } else {
    simd_reduce_narrow(a);
  }
}

std::vector<std::string> simd_targets() {
  std::vector<std::string> names;
  hwy::SetSupportedTargetsForTest(0);
  const std::int64_t targets = hwy::SupportedTargets() & HWY_TARGETS;
  // A better target has a lower bit.
  for (std::int64_t bit = 1; bit > 0 && bit <= targets; bit <<= 1)
    if ((targets & bit) != 0) names.emplace_back(hwy::TargetName(bit));
  return names;
}

bool use_simd_target(const std::string& name) {
  hwy::SetSupportedTargetsForTest(0);
  const std::int64_t targets = hwy::SupportedTargets() & HWY_TARGETS;
  std::int64_t chosen = name.empty() ? targets : 0;
  for (std::int64_t bit = 1; bit > 0 && bit <= targets; bit <<= 1)
    if ((targets & bit) != 0 && name == hwy::TargetName(bit)) chosen = bit;
  if (chosen == 0) return false;
  if (!name.empty()) hwy::SetSupportedTargetsForTest(chosen);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  return true;
}

}  // namespace penstock
#endif
