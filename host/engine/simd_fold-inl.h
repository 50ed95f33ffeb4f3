// The loop of every vectorised REDUCE, included once per target (no include guard by name alone).
//
// A Lanes type says how elements become vectors of the fold type and back:
//   Stored             the element in memory
//   Vec                a vector of the fold type, kLanes elements
//   Load(p), Store(v, p)   kLanes elements at p, which needs no alignment
//   Add, Mul, Minimum, Maximum, Scale(bits), and Average(v, Divisor(n))
// Where Highway has no vectors (its scalar target), the callers leave the work to scalar_reduce.
#if defined(PENSTOCK_ENGINE_SIMD_FOLD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PENSTOCK_ENGINE_SIMD_FOLD_INL_H_
#undef PENSTOCK_ENGINE_SIMD_FOLD_INL_H_
#else
#define PENSTOCK_ENGINE_SIMD_FOLD_INL_H_
#endif

#include <hwy/highway.h>

#include <cstring>

#include "penstock/engine/host_engine.h"

HWY_BEFORE_NAMESPACE();
namespace penstock {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

enum class Step { add, multiply, minimum, maximum };
enum class Extra { none, scale_first, average_last };

template <class Lanes, Step kStep, Extra kExtra>
class Folder {
 public:
  using Vec = typename Lanes::Vec;
  explicit Folder(const ReduceArguments& a) : scale_(Lanes::Scale(a.scale)), divisor_(a.n_src) {}

  HWY_INLINE Vec Load(const std::uint8_t* p) const {
    const Vec v = Lanes::Load(p);
    if constexpr (kExtra == Extra::scale_first) return Lanes::Mul(v, scale_);
    return v;
  }
  HWY_INLINE Vec Join(Vec so_far, Vec next) const {
    if constexpr (kStep == Step::add) return Lanes::Add(so_far, next);
    if constexpr (kStep == Step::multiply) return Lanes::Mul(so_far, next);
    if constexpr (kStep == Step::minimum) return Lanes::Minimum(so_far, next);
    if constexpr (kStep == Step::maximum) return Lanes::Maximum(so_far, next);
  }
  HWY_INLINE void Store(Vec v, std::uint8_t* p) const {
    if constexpr (kExtra == Extra::average_last) v = Lanes::Average(v, divisor_);
    Lanes::Store(v, p);
  }

 private:
  const Vec scale_;
  const typename Lanes::Divisor divisor_;
};

// kSources 0: any number.
template <class Lanes, Step kStep, Extra kExtra, std::uint32_t kSources>
HWY_NOINLINE void Fold(const ReduceArguments& a) {
  using Vec = typename Lanes::Vec;
  constexpr std::size_t kBytes = Lanes::kLanes * sizeof(typename Lanes::Stored);
  const Folder<Lanes, kStep, kExtra> folder(a);
  const std::uint32_t n_src = kSources != 0 ? kSources : a.n_src;
  const std::uint8_t* src[kSources != 0 ? kSources : PENSTOCK_MAX_SOURCES];
  for (std::uint32_t s = 0; s < n_src; ++s) src[s] = static_cast<const std::uint8_t*>(a.src[s]);
  std::uint8_t* dst[PENSTOCK_MAX_DESTINATIONS];
  for (std::uint32_t d = 0; d < a.n_dst; ++d) dst[d] = static_cast<std::uint8_t*>(a.dst[d]);

  const std::size_t total = a.count * sizeof(typename Lanes::Stored);
  std::size_t at = 0;
  for (; at + 4 * kBytes <= total; at += 4 * kBytes) {
    Vec v0 = folder.Load(src[0] + at);
    Vec v1 = folder.Load(src[0] + at + kBytes);
    Vec v2 = folder.Load(src[0] + at + 2 * kBytes);
    Vec v3 = folder.Load(src[0] + at + 3 * kBytes);
    for (std::uint32_t s = 1; s < n_src; ++s) {
      const std::uint8_t* p = src[s] + at;
      v0 = folder.Join(v0, folder.Load(p));
      v1 = folder.Join(v1, folder.Load(p + kBytes));
      v2 = folder.Join(v2, folder.Load(p + 2 * kBytes));
      v3 = folder.Join(v3, folder.Load(p + 3 * kBytes));
    }
    for (std::uint32_t d = 0; d < a.n_dst; ++d) {
      std::uint8_t* p = dst[d] + at;
      folder.Store(v0, p);
      folder.Store(v1, p + kBytes);
      folder.Store(v2, p + 2 * kBytes);
      folder.Store(v3, p + 3 * kBytes);
    }
  }
  // What is left goes through a buffer of one vector, so that nothing outside of the operands is
  // touched.
  while (at < total) {
    const std::size_t bytes = total - at < kBytes ? total - at : kBytes;
    alignas(64) std::uint8_t buffer[kBytes] = {};
    std::memcpy(buffer, src[0] + at, bytes);
    Vec v = folder.Load(buffer);
    for (std::uint32_t s = 1; s < n_src; ++s) {
      std::memcpy(buffer, src[s] + at, bytes);
      v = folder.Join(v, folder.Load(buffer));
    }
    folder.Store(v, buffer);
    for (std::uint32_t d = 0; d < a.n_dst; ++d) std::memcpy(dst[d] + at, buffer, bytes);
    at += bytes;
  }
}

// kOwnLoops: the usual numbers of sources of small comms get loops of their own.
template <class Lanes, bool kOwnLoops>
void FoldSum(const ReduceArguments& a) {
  if constexpr (kOwnLoops) {
    switch (a.n_src) {
      case 2:
        return Fold<Lanes, Step::add, Extra::none, 2>(a);
      case 3:
        return Fold<Lanes, Step::add, Extra::none, 3>(a);
      case 4:
        return Fold<Lanes, Step::add, Extra::none, 4>(a);
      default:
        break;
    }
  }
  Fold<Lanes, Step::add, Extra::none, 0>(a);
}

template <class Lanes, bool kOwnLoops>
void FoldAny(const ReduceArguments& a) {
  switch (a.redop) {
    case PENSTOCK_SUM:
      return FoldSum<Lanes, kOwnLoops>(a);
    case PENSTOCK_PROD:
      return Fold<Lanes, Step::multiply, Extra::none, 0>(a);
    case PENSTOCK_MIN:
      return Fold<Lanes, Step::minimum, Extra::none, 0>(a);
    case PENSTOCK_MAX:
      return Fold<Lanes, Step::maximum, Extra::none, 0>(a);
    case PENSTOCK_AVG:
      return Fold<Lanes, Step::add, Extra::average_last, 0>(a);
    case PENSTOCK_PREMUL_SUM:
      return Fold<Lanes, Step::add, Extra::scale_first, 0>(a);
    default:
      PENSTOCK_CHECK(false, "reduction {} was not checked", a.redop);
  }
}

// Arithmetic of the floating-point fold types.
template <typename T>
struct FloatMath {
  using D = hn::ScalableTag<T>;
  using Vec = hn::Vec<D>;
  static constexpr std::size_t kLanes = hn::MaxLanes(D());

  static HWY_INLINE Vec Add(Vec a, Vec b) { return hn::Add(a, b); }
  static HWY_INLINE Vec Mul(Vec a, Vec b) { return hn::Mul(a, b); }
  // IEEE 754-2019: a NaN wins, -0 < +0. Equal values have equal bits, but for zeros, whose signs
  // are joined: either one negative for the minimum, both for the maximum.
  static HWY_INLINE Vec Minimum(Vec a, Vec b) {
    Vec r = hn::IfThenElse(hn::Lt(a, b), a, b);
    r = hn::IfThenElse(hn::Eq(a, b), hn::Or(a, b), r);
    return hn::IfThenElse(hn::IsNaN(a), a, r);
  }
  static HWY_INLINE Vec Maximum(Vec a, Vec b) {
    Vec r = hn::IfThenElse(hn::Gt(a, b), a, b);
    r = hn::IfThenElse(hn::Eq(a, b), hn::And(a, b), r);
    return hn::IfThenElse(hn::IsNaN(a), a, r);
  }
  static Vec Scale(std::uint64_t bits) {
    T scale;
    std::memcpy(&scale, &bits, sizeof(scale));  // little-endian: the low half for f32
    return hn::Set(D(), scale);
  }
  struct Divisor {
    explicit Divisor(std::uint32_t n) : factor(hn::Set(D(), T{1} / static_cast<T>(n))) {}
    const Vec factor;
  };
  static HWY_INLINE Vec Average(Vec sum, const Divisor& divisor) {
    return hn::Mul(sum, divisor.factor);
  }
};

}  // namespace HWY_NAMESPACE
}  // namespace penstock
HWY_AFTER_NAMESPACE();
#endif
