// What REDUCE has to give, computed in another way than any engine does: narrow formats through
// exact float64 arithmetic instead of bits, f32 through float64 and f64 through binary128 with one
// rounding, integers modulo 2^width in 128 bits. Slow, and shares no code with the engines.
#ifndef PENSTOCK_ENGINE_CONFORMANCE_REFERENCE_H_
#define PENSTOCK_ENGINE_CONFORMANCE_REFERENCE_H_

#include <cstdint>
#include <vector>

#include "penstock/descriptor/descriptor.h"

namespace penstock::conformance {

// The value of a code of a float type (f16, f32, bf16, f8e4m3, f8e5m2); exact.
double reference_value(std::uint32_t type, std::uint32_t code);
// The code nearest to a value, ties to even, by the type's rules for overflow and NaN.
std::uint32_t reference_code(std::uint32_t type, double value);

// One element: the fold of the sources' bit patterns (in the low bits), as a bit pattern.
std::uint64_t reference_reduce(std::uint32_t type, std::uint32_t redop, std::uint64_t scale,
                               const std::vector<std::uint64_t>& sources);

// What is folded in f32, of values that are f32 numbers, as such a number. Weights are none or one
// for each value; at least one is not zero.
double reference_fold_f32(std::uint32_t redop, std::uint64_t scale,
                          const std::vector<double>& weights, const std::vector<double>& values);
// The same of f64 with weights, as a bit pattern.
std::uint64_t reference_weighted_f64(std::uint32_t redop, const std::vector<double>& weights,
                                     const std::vector<double>& values);

// Block-scaled int8.
struct ReferenceRecord {
  double scale = 0;
  std::vector<int> codes;
};
ReferenceRecord reference_record(const std::vector<double>& values);
double reference_code_value(int code, double scale);

// One element of OUTER_STEP; momentum and parameter are read and written.
void reference_outer_step(const std::vector<double>& deltas, double rate, double factor,
                          double* momentum, double* parameter);

}  // namespace penstock::conformance
#endif
