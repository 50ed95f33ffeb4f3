// REDUCE with the host's vector instructions (Highway, chosen when first used).
//
// One pass over all sources: a block of four vectors is loaded from each source in turn, folded in
// registers and stored to every destination. Lanes never mix, so the fold of an element has the
// order that scalar_reduce gives it.
#ifndef PENSTOCK_ENGINE_SIMD_REDUCE_H_
#define PENSTOCK_ENGINE_SIMD_REDUCE_H_

#include <string>
#include <vector>

#include "penstock/engine/host_engine.h"

namespace penstock {

// The same bits as scalar_reduce, under the same conditions. Thread-safe.
void simd_reduce(const ReduceArguments& arguments);
void simd_outer_step(const OuterStepArguments& arguments);

// The instruction sets that this build and this processor have, best first ("AVX3", "AVX2",
// "EMU128"), and a way for tests to make every simd function of the process use one of them; ""
// goes back to the best. False if it is none of the list. Not while another thread computes.
std::vector<std::string> simd_targets();
bool use_simd_target(const std::string& name);

// By kind of type; each one a file of its own.
void simd_reduce_float(const ReduceArguments& arguments);    // f32, f64
void simd_reduce_narrow(const ReduceArguments& arguments);   // f16, bf16, f8e4m3, f8e5m2
void simd_reduce_integer(const ReduceArguments& arguments);  // all of them
void simd_reduce_fused(const ReduceArguments& arguments);    // what is fused(), streamed or not

// Copies; whole lines of the destination go past the caches. Whoever signals that they are there
// has to order the stores before (hwy::FlushStream).
void simd_stream(void* to, const void* from, std::uint64_t bytes);

}  // namespace penstock
#endif
