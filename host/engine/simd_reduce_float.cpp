#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "penstock/engine/simd_reduce_float.cpp"
#include <hwy/foreach_target.h>  // must come before highway.h

#include "penstock/engine/scalar_reduce.h"
#include "penstock/engine/simd_lanes-inl.h"
#include "penstock/engine/simd_reduce.h"

HWY_BEFORE_NAMESPACE();
namespace penstock {
namespace HWY_NAMESPACE {

#if HWY_TARGET == HWY_SCALAR
void ReduceFloat(const ReduceArguments& a) { scalar_reduce(a); }
#else

void ReduceFloat(const ReduceArguments& a) {
  a.type == PENSTOCK_F32 ? FoldAny<FloatLanes<float>, true>(a)
                         : FoldAny<FloatLanes<double>, true>(a);
}
#endif

}  // namespace HWY_NAMESPACE
}  // namespace penstock
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace penstock {
HWY_EXPORT(ReduceFloat);
void simd_reduce_float(const ReduceArguments& a) { HWY_DYNAMIC_DISPATCH(ReduceFloat)(a); }
}  // namespace penstock
#endif
