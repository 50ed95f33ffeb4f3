// The floating-point environment that results are defined in: round to nearest even, subnormals
// kept. An application may have set its threads to flush subnormals (x86: FTZ and DAZ, often set by
// -ffast-math start-up code) or to another rounding.
#ifndef PENSTOCK_ENGINE_FLOAT_ENVIRONMENT_H_
#define PENSTOCK_ENGINE_FLOAT_ENVIRONMENT_H_

#if defined(__SSE__)
#include <xmmintrin.h>
#else
#include <cfenv>
#endif

namespace penstock {

// Sets the environment of the calling thread and restores the former one, exception flags included.
// Code that must run inside has to stand behind a call that is not inlined, because the compiler
// knows of no dependence between this and arithmetic.
class FloatEnvironment {
 public:
#if defined(__SSE__)
  // Most threads are in this environment already, and writing the register costs more than reading.
  FloatEnvironment() : saved_(_mm_getcsr()) {
    if ((saved_ & ~kFlags) != kAllMaskedNearestEven) _mm_setcsr(kAllMaskedNearestEven);
  }
  ~FloatEnvironment() {
    if (_mm_getcsr() != saved_) _mm_setcsr(saved_);
  }

 private:
  static constexpr unsigned kAllMaskedNearestEven = 0x1f80;
  static constexpr unsigned kFlags = 0x3f;  // of exceptions that were raised
  unsigned saved_;
#else
  FloatEnvironment() {
    std::fegetenv(&saved_);
    std::fesetenv(FE_DFL_ENV);
  }
  ~FloatEnvironment() { std::fesetenv(&saved_); }

 private:
  std::fenv_t saved_;
#endif
 public:
  FloatEnvironment(const FloatEnvironment&) = delete;
  FloatEnvironment& operator=(const FloatEnvironment&) = delete;
};

}  // namespace penstock
#endif
