// Conversion, weights, block-scaled int8 and OUTER_STEP with the host's vector instructions.
//
// So many pairs of types times so many folds cannot each have a loop of its own. A chunk of
// elements is folded in f32 (f64) in a buffer that stays in the first cache: every source is
// widened and joined into it in turn, and then it is rounded into the destination. What a source or
// a destination costs depends on one type only, and memory is still passed once.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "penstock/engine/simd_fused.cpp"
#include <hwy/foreach_target.h>  // must come before highway.h

#include <algorithm>

#include "penstock/engine/scalar_fused.h"
#include "penstock/engine/simd_lanes-inl.h"
#include "penstock/engine/simd_reduce.h"

HWY_BEFORE_NAMESPACE();
namespace penstock {
namespace HWY_NAMESPACE {

#if !PENSTOCK_SIMD_HAS_F16
void ReduceFused(const ReduceArguments& a) { scalar_fused_reduce(a); }
void OuterStep(const OuterStepArguments& a) { scalar_outer_step(a); }
#else

// Elements of a chunk: a multiple of every vector and of every block.
constexpr std::size_t kChunk = 1024;

enum class Join { first, add, multiply, minimum, maximum };

// How a source's vector enters the fold.
template <class Math, Join kJoin, bool kScaled>
struct Joiner {
  using Vec = typename Math::Vec;
  Vec factor;
  HWY_INLINE Vec operator()(Vec so_far, Vec next) const {
    if constexpr (kScaled) next = Math::Mul(next, factor);
    if constexpr (kJoin == Join::first) return next;
    if constexpr (kJoin == Join::add) return Math::Add(so_far, next);
    if constexpr (kJoin == Join::multiply) return Math::Mul(so_far, next);
    if constexpr (kJoin == Join::minimum) return Math::Minimum(so_far, next);
    if constexpr (kJoin == Join::maximum) return Math::Maximum(so_far, next);
  }
};

template <class Lanes, typename T, class Op>
HWY_INLINE void JoinElements(const std::uint8_t* src, std::size_t n, const Op& op, T* fold) {
  using D = typename Lanes::D;
  constexpr std::size_t kSize = sizeof(typename Lanes::Stored);
  std::size_t i = 0;
  for (; i + Lanes::kLanes <= n; i += Lanes::kLanes)
    hn::Store(op(hn::Load(D(), fold + i), Lanes::Load(src + i * kSize)), D(), fold + i);
  if (i == n) return;
  alignas(64) std::uint8_t rest[Lanes::kLanes * kSize] = {};
  std::memcpy(rest, src + i * kSize, (n - i) * kSize);
  hn::Store(op(hn::Load(D(), fold + i), Lanes::Load(rest)), D(), fold + i);
}

// Records of block-scaled int8 are whole, so that there is no rest.
template <class Op>
HWY_INLINE void JoinRecords(const std::uint8_t* src, std::size_t block, std::size_t n, const Op& op,
                            float* fold) {
  const DF df;
  const DI di;
  const hn::Rebind<std::int8_t, DF> d8;
  const VF nan = hn::Set(df, std::bit_cast<float>(numeric::kNanF32));
  const VF nan_code = hn::Set(df, static_cast<float>(numeric::kNanCode));
  for (std::size_t first = 0; first < n; first += block) {
    float scale_bits;
    std::memcpy(&scale_bits, src, sizeof scale_bits);
    const VF scale = hn::Set(df, scale_bits);
    const auto* codes = reinterpret_cast<const std::int8_t*>(src + PENSTOCK_BLOCK_SCALE_BYTES);
    for (std::size_t i = 0; i < block; i += hn::MaxLanes(df)) {
      const VF code = hn::ConvertTo(df, hn::PromoteTo(di, hn::LoadU(d8, codes + i)));
      const VF value = hn::IfThenElse(hn::Eq(code, nan_code), nan, hn::Mul(code, scale));
      float* const at = fold + first + i;
      hn::Store(op(hn::Load(df, at), value), df, at);
    }
    src += PENSTOCK_BLOCK_SCALE_BYTES + block;
  }
}

struct Source {
  std::uint32_t type;
  std::uint32_t block;
  const std::uint8_t* data;
  std::size_t n;
};

template <Join kJoin, bool kScaled>
HWY_NOINLINE void JoinAs(const Source& s, float factor, float* fold) {
  const Joiner<NarrowMath, kJoin, kScaled> op{hn::Set(DF(), factor)};
  switch (s.type) {
    case PENSTOCK_INT8:
      return JoinRecords(s.data, s.block, s.n, op, fold);
    case PENSTOCK_F16:
      return JoinElements<F16Lanes>(s.data, s.n, op, fold);
    case PENSTOCK_BF16:
      return JoinElements<Bf16Lanes>(s.data, s.n, op, fold);
    case PENSTOCK_F8E4M3:
      return JoinElements<F8e4m3Lanes>(s.data, s.n, op, fold);
    case PENSTOCK_F8E5M2:
      return JoinElements<F8e5m2Lanes>(s.data, s.n, op, fold);
    case PENSTOCK_F32:
      return JoinElements<FloatLanes<float>>(s.data, s.n, op, fold);
    default:
      PENSTOCK_CHECK(false, "type {} is not folded in f32", s.type);
  }
}

void JoinSource(std::uint32_t redop, bool is_first, const Source& s, const float* factor,
                float* fold) {
  if (factor != nullptr)
    return is_first ? JoinAs<Join::first, true>(s, *factor, fold)
                    : JoinAs<Join::add, true>(s, *factor, fold);
  if (is_first) return JoinAs<Join::first, false>(s, 0, fold);
  switch (redop) {
    case PENSTOCK_PROD:
      return JoinAs<Join::multiply, false>(s, 0, fold);
    case PENSTOCK_MIN:
      return JoinAs<Join::minimum, false>(s, 0, fold);
    case PENSTOCK_MAX:
      return JoinAs<Join::maximum, false>(s, 0, fold);
    default:
      return JoinAs<Join::add, false>(s, 0, fold);
  }
}

template <class Lanes, typename T>
HWY_NOINLINE void StoreElements(const T* fold, std::size_t n, std::uint8_t* dst) {
  using D = typename Lanes::D;
  constexpr std::size_t kSize = sizeof(typename Lanes::Stored);
  std::size_t i = 0;
  for (; i + Lanes::kLanes <= n; i += Lanes::kLanes)
    Lanes::Store(hn::Load(D(), fold + i), dst + i * kSize);
  if (i == n) return;
  alignas(64) std::uint8_t rest[Lanes::kLanes * kSize];
  Lanes::Store(hn::Load(D(), fold + i), rest);
  std::memcpy(dst + i * kSize, rest, (n - i) * kSize);
}

// The scales of a chunk's records together: a division per record, one after another, would take
// longer than the codes.
HWY_NOINLINE void StoreRecords(float* fold, std::size_t block, std::size_t n, std::uint8_t* dst) {
  const DF df;
  const DI di;
  const hn::Rebind<std::int8_t, DF> d8;
  constexpr std::size_t kLanes = hn::MaxLanes(DF());
  constexpr std::size_t kMaxRecords = kChunk / 32;
  static_assert(kMaxRecords % kLanes == 0);
  const VF limit = hn::Set(df, numeric::kLargestF32);
  const std::size_t records = (n + block - 1) / block;
  std::fill(fold + n, fold + records * block, 0.0f);

  alignas(64) float scales[kMaxRecords] = {};
  alignas(64) float reciprocals[kMaxRecords];
  for (std::size_t r = 0; r < records; ++r) {
    VF largest = hn::Zero(df);
    for (std::size_t i = 0; i < block; i += kLanes) {
      const VF v = hn::Load(df, fold + r * block + i);
      const VF magnitude = hn::IfThenZeroElse(hn::IsNaN(v), hn::Min(hn::Abs(v), limit));
      largest = hn::Max(largest, magnitude);
    }
    scales[r] = hn::GetLane(hn::MaxOfLanes(df, largest));
  }
  for (std::size_t r = 0; r < records; r += kLanes) {
    const VF exact = hn::Div(hn::Load(df, scales + r), hn::Set(df, 127.0f));
    const VF scale = hn::Min(hn::Max(exact, hn::Set(df, numeric::kSmallestScale)),
                             hn::Set(df, numeric::kLargestScale));
    hn::Store(scale, df, scales + r);
    hn::Store(hn::Div(hn::Set(df, 1.0f), scale), df, reciprocals + r);
  }
  const VI nan_code = hn::Set(di, std::int32_t{numeric::kNanCode});
  for (std::size_t r = 0; r < records; ++r) {
    std::memcpy(dst, scales + r, sizeof scales[r]);
    const VF reciprocal = hn::Set(df, reciprocals[r]);
    auto* codes = reinterpret_cast<std::int8_t*>(dst + PENSTOCK_BLOCK_SCALE_BYTES);
    for (std::size_t i = 0; i < block; i += kLanes) {
      const VF v = hn::Load(df, fold + r * block + i);
      const VF finite = hn::Min(hn::Max(v, hn::Neg(limit)), limit);
      const VI code = hn::NearestInt(hn::Mul(finite, reciprocal));
      const auto is_nan = hn::RebindMask(di, hn::IsNaN(v));
      hn::StoreU(hn::DemoteTo(d8, hn::IfThenElse(is_nan, nan_code, code)), d8, codes + i);
    }
    dst += PENSTOCK_BLOCK_SCALE_BYTES + block;
  }
}

void StoreAs(std::uint32_t type, std::uint32_t block, float* fold, std::size_t n,
             std::uint8_t* dst) {
  switch (type) {
    case PENSTOCK_INT8:
      return StoreRecords(fold, block, n, dst);
    case PENSTOCK_F16:
      return StoreElements<F16Lanes>(fold, n, dst);
    case PENSTOCK_BF16:
      return StoreElements<Bf16Lanes>(fold, n, dst);
    case PENSTOCK_F8E4M3:
      return StoreElements<F8e4m3Lanes>(fold, n, dst);
    case PENSTOCK_F8E5M2:
      return StoreElements<F8e5m2Lanes>(fold, n, dst);
    case PENSTOCK_F32:
      return StoreElements<FloatLanes<float>>(fold, n, dst);
    default:
      PENSTOCK_CHECK(false, "type {} is not rounded from f32", type);
  }
}

// AVG's last operation: a product with the reciprocal of the weights' sum, or of their number.
template <typename T>
HWY_NOINLINE void Finish(const ReduceArguments& a, const T* weights, std::size_t n, T* fold) {
  const hn::ScalableTag<T> d;
  const std::size_t lanes = hn::MaxLanes(d);
  T sum = weights != nullptr ? weights[0] : static_cast<T>(a.n_src);
  for (std::uint32_t s = 1; weights != nullptr && s < a.n_src; ++s) sum = sum + weights[s];
  const auto factor = hn::Set(d, T{1} / sum);
  for (std::size_t i = 0; i < n; i += lanes)
    hn::Store(hn::Mul(hn::Load(d, fold + i), factor), d, fold + i);
}

// Rounds a chunk into every destination, `at` bytes from their starts.
template <typename T, class Round>
HWY_INLINE void Deliver(const ReduceArguments& a, std::uint64_t at, std::size_t bytes,
                        const Round& round) {
  if (a.n_dst == 1 && !a.stream) return round(static_cast<std::uint8_t*>(a.dst[0]) + at);
  alignas(64) std::uint8_t result[kChunk * sizeof(T)];
  round(result);
  for (std::uint32_t i = 0; i < a.n_dst; ++i) {
    auto* const dst = static_cast<std::uint8_t*>(a.dst[i]) + at;
    if (a.stream)
      simd_stream(dst, result, bytes);
    else
      std::memcpy(dst, result, bytes);
  }
}

struct RoundF32 {
  const ReduceArguments& a;
  float* fold;
  std::size_t n;
  HWY_INLINE void operator()(std::uint8_t* dst) const {
    StoreAs(a.result_type(), a.block, fold, n, dst);
  }
};
struct RoundF64 {
  const double* fold;
  std::size_t n;
  HWY_INLINE void operator()(std::uint8_t* dst) const {
    StoreElements<FloatLanes<double>>(fold, n, dst);
  }
};

void ReduceF64(const ReduceArguments& a) {
  alignas(64) double fold[kChunk];
  const auto* weights = static_cast<const double*>(a.weights);
  using Lanes = FloatLanes<double>;
  for (std::uint64_t first = 0; first < a.count; first += kChunk) {
    const std::size_t n = std::min<std::uint64_t>(kChunk, a.count - first);
    for (std::uint32_t s = 0; s < a.n_src; ++s) {
      const auto* src = static_cast<const std::uint8_t*>(a.src[s]) + first * sizeof(double);
      const auto factor = hn::Set(hn::ScalableTag<double>(), weights[s]);
      if (s == 0)
        JoinElements<Lanes>(src, n, Joiner<FloatMath<double>, Join::first, true>{factor}, fold);
      else
        JoinElements<Lanes>(src, n, Joiner<FloatMath<double>, Join::add, true>{factor}, fold);
    }
    if (a.redop == PENSTOCK_AVG) Finish(a, weights, n, fold);
    Deliver<double>(a, first * sizeof(double), n * sizeof(double), RoundF64{fold, n});
  }
}

void ReduceFused(const ReduceArguments& a) {
  if (a.type == PENSTOCK_F64) return ReduceF64(a);
  alignas(64) float fold[kChunk];
  const auto* weights = static_cast<const float*>(a.weights);
  const auto multiplier = std::bit_cast<float>(static_cast<std::uint32_t>(a.scale));
  for (std::uint64_t first = 0; first < a.count; first += kChunk) {
    const std::size_t n = std::min<std::uint64_t>(kChunk, a.count - first);
    const std::uint64_t src_at = penstock_operand_bytes(a.type, a.block, first);
    for (std::uint32_t s = 0; s < a.n_src; ++s) {
      const float* factor = weights != nullptr               ? weights + s
                            : a.redop == PENSTOCK_PREMUL_SUM ? &multiplier
                                                             : nullptr;
      const auto* src = static_cast<const std::uint8_t*>(a.src[s]) + src_at;
      JoinSource(a.redop, s == 0, Source{a.type, a.block, src, n}, factor, fold);
    }
    if (a.redop == PENSTOCK_AVG) Finish(a, weights, n, fold);
    Deliver<float>(a, penstock_operand_bytes(a.result_type(), a.block, first),
                   penstock_operand_bytes(a.result_type(), a.block, n), RoundF32{a, fold, n});
  }
}

struct OuterFactors {
  VF mean, rate, momentum;
};
// The momentum and the parameters of one vector, whose deltas have the sum `sum`.
HWY_INLINE void StepVector(const OuterFactors& f, VF sum, std::uint8_t* momentum,
                           std::uint8_t* parameters) {
  const VF g = hn::Mul(sum, f.mean);
  const VF m = hn::Add(hn::Mul(f.momentum, FloatLanes<float>::Load(momentum)), g);
  const VF direction = hn::Add(hn::Mul(f.momentum, m), g);
  const VF p = hn::Sub(FloatLanes<float>::Load(parameters), hn::Mul(f.rate, direction));
  FloatLanes<float>::Store(m, momentum);
  FloatLanes<float>::Store(p, parameters);
}

void OuterStep(const OuterStepArguments& a) {
  constexpr std::size_t kLanes = hn::MaxLanes(DF());
  alignas(64) float fold[kChunk];
  const OuterFactors factors{hn::Set(DF(), 1.0f / static_cast<float>(a.n_src)),
                             hn::Set(DF(), a.learning_rate), hn::Set(DF(), a.momentum_factor)};
  for (std::uint64_t first = 0; first < a.count; first += kChunk) {
    const std::size_t n = std::min<std::uint64_t>(kChunk, a.count - first);
    const std::uint64_t src_at = penstock_operand_bytes(a.type, a.block, first);
    for (std::uint32_t s = 0; s < a.n_src; ++s) {
      const auto* src = static_cast<const std::uint8_t*>(a.src[s]) + src_at;
      JoinSource(PENSTOCK_SUM, s == 0, Source{a.type, a.block, src, n}, nullptr, fold);
    }
    auto* momentum = static_cast<std::uint8_t*>(a.momentum) + first * sizeof(float);
    auto* parameters = static_cast<std::uint8_t*>(a.parameters) + first * sizeof(float);
    std::size_t i = 0;
    for (; i + kLanes <= n; i += kLanes)
      StepVector(factors, hn::Load(DF(), fold + i), momentum + i * 4, parameters + i * 4);
    if (i == n) continue;
    alignas(64) std::uint8_t rest[2][kLanes * 4] = {};
    std::memcpy(rest[0], momentum + i * 4, (n - i) * 4);
    std::memcpy(rest[1], parameters + i * 4, (n - i) * 4);
    StepVector(factors, hn::Load(DF(), fold + i), rest[0], rest[1]);
    std::memcpy(momentum + i * 4, rest[0], (n - i) * 4);
    std::memcpy(parameters + i * 4, rest[1], (n - i) * 4);
  }
}
#endif

}  // namespace HWY_NAMESPACE
}  // namespace penstock
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace penstock {
HWY_EXPORT(ReduceFused);
HWY_EXPORT(OuterStep);
void simd_reduce_fused(const ReduceArguments& a) { HWY_DYNAMIC_DISPATCH(ReduceFused)(a); }
void simd_outer_step(const OuterStepArguments& a) { HWY_DYNAMIC_DISPATCH(OuterStep)(a); }
}  // namespace penstock
#endif
