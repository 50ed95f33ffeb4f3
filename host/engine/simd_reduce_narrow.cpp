#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "penstock/engine/simd_reduce_narrow.cpp"
#include <hwy/foreach_target.h>  // must come before highway.h

#include "penstock/engine/scalar_reduce.h"
#include "penstock/engine/simd_lanes-inl.h"
#include "penstock/engine/simd_reduce.h"

HWY_BEFORE_NAMESPACE();
namespace penstock {
namespace HWY_NAMESPACE {

#if !PENSTOCK_SIMD_HAS_F16
void ReduceNarrow(const ReduceArguments& a) { scalar_reduce(a); }
#else

void ReduceNarrow(const ReduceArguments& a) {
  switch (a.type) {
    case PENSTOCK_F16:
      return FoldAny<F16Lanes, true>(a);
    case PENSTOCK_BF16:
      return FoldAny<Bf16Lanes, true>(a);
    case PENSTOCK_F8E4M3:
      return FoldAny<F8e4m3Lanes, false>(a);
    case PENSTOCK_F8E5M2:
      return FoldAny<F8e5m2Lanes, false>(a);
    default:
      PENSTOCK_CHECK(false, "type {} was not checked", a.type);
  }
}
#endif

}  // namespace HWY_NAMESPACE
}  // namespace penstock
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace penstock {
HWY_EXPORT(ReduceNarrow);
void simd_reduce_narrow(const ReduceArguments& a) { HWY_DYNAMIC_DISPATCH(ReduceNarrow)(a); }
}  // namespace penstock
#endif
