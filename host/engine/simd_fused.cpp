// Conversion, weights, block-scaled int8 and OUTER_STEP with the host's vector instructions.
//
// So many pairs of types times so many folds cannot each have a loop of its own. A chunk of
// elements is folded in f32 (f64) into a buffer that stays in the first cache, and rounded from
// there into the destinations. So a fold depends on the sources' type only, rounding on the
// result's only, and memory is still passed once.
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

enum class Join { add, multiply, minimum, maximum };

// How the next source's vector enters the fold.
template <class Math, Join kJoin>
HWY_INLINE typename Math::Vec JoinVectors(typename Math::Vec so_far, typename Math::Vec next) {
  if constexpr (kJoin == Join::add) return Math::Add(so_far, next);
  if constexpr (kJoin == Join::multiply) return Math::Mul(so_far, next);
  if constexpr (kJoin == Join::minimum) return Math::Minimum(so_far, next);
  if constexpr (kJoin == Join::maximum) return Math::Maximum(so_far, next);
}

// A chunk of every source, of one type: element i of source s begins at src[s] + i * size.
template <typename T>
struct Sources {
  std::uint32_t type;
  std::uint32_t block;
  std::uint32_t n;
  const std::uint8_t* data[PENSTOCK_MAX_SOURCES];
  T factors[PENSTOCK_MAX_SOURCES];  // of a scaled fold
};

template <class Lanes, bool kScaled, typename T>
HWY_INLINE typename Lanes::Vec LoadScaled(const Sources<T>& sources, std::uint32_t s,
                                          const std::uint8_t* at) {
  const typename Lanes::Vec v = Lanes::Load(at);
  if constexpr (kScaled) return Lanes::Mul(v, hn::Set(typename Lanes::D(), sources.factors[s]));
  return v;
}

template <class Lanes, Join kJoin, bool kScaled, typename T>
HWY_NOINLINE void FoldElements(const Sources<T>& sources, std::size_t n, T* fold) {
  using Vec = typename Lanes::Vec;
  const typename Lanes::D d;
  constexpr std::size_t kSize = sizeof(typename Lanes::Stored);
  constexpr std::size_t kBytes = Lanes::kLanes * kSize;
  std::size_t i = 0;
  for (; i + 2 * Lanes::kLanes <= n; i += 2 * Lanes::kLanes) {
    const std::uint8_t* p = sources.data[0] + i * kSize;
    Vec v0 = LoadScaled<Lanes, kScaled>(sources, 0, p);
    Vec v1 = LoadScaled<Lanes, kScaled>(sources, 0, p + kBytes);
    for (std::uint32_t s = 1; s < sources.n; ++s) {
      p = sources.data[s] + i * kSize;
      v0 = JoinVectors<Lanes, kJoin>(v0, LoadScaled<Lanes, kScaled>(sources, s, p));
      v1 = JoinVectors<Lanes, kJoin>(v1, LoadScaled<Lanes, kScaled>(sources, s, p + kBytes));
    }
    hn::Store(v0, d, fold + i);
    hn::Store(v1, d, fold + i + Lanes::kLanes);
  }
  // What is left goes through a buffer of one vector, so that nothing outside of the operands is
  // touched.
  for (; i < n; i += Lanes::kLanes) {
    const std::size_t bytes = std::min(n - i, std::size_t{Lanes::kLanes}) * kSize;
    alignas(64) std::uint8_t rest[kBytes] = {};
    std::memcpy(rest, sources.data[0] + i * kSize, bytes);
    Vec v = LoadScaled<Lanes, kScaled>(sources, 0, rest);
    for (std::uint32_t s = 1; s < sources.n; ++s) {
      std::memcpy(rest, sources.data[s] + i * kSize, bytes);
      v = JoinVectors<Lanes, kJoin>(v, LoadScaled<Lanes, kScaled>(sources, s, rest));
    }
    hn::Store(v, d, fold + i);
  }
}

// kLanes elements of a record, `at` codes from its first.
template <bool kScaled>
HWY_INLINE VF LoadCodes(const Sources<float>& sources, std::uint32_t s, std::size_t record,
                        std::size_t at) {
  const DF df;
  const hn::Rebind<std::int8_t, DF> d8;
  const std::uint8_t* const p = sources.data[s] + record;
  float scale;
  std::memcpy(&scale, p, sizeof scale);
  const auto* codes = reinterpret_cast<const std::int8_t*>(p + PENSTOCK_BLOCK_SCALE_BYTES + at);
  const VF code = hn::ConvertTo(df, hn::PromoteTo(DI(), hn::LoadU(d8, codes)));
  const VF nan = hn::Set(df, std::bit_cast<float>(numeric::kNanF32));
  const VF nan_code = hn::Set(df, static_cast<float>(numeric::kNanCode));
  const VF value = hn::IfThenElse(hn::Eq(code, nan_code), nan, hn::Mul(code, hn::Set(df, scale)));
  if constexpr (kScaled) return hn::Mul(value, hn::Set(df, sources.factors[s]));
  return value;
}

// Records of block-scaled int8 are whole, so that there is no rest.
template <Join kJoin, bool kScaled>
HWY_NOINLINE void FoldRecords(const Sources<float>& sources, std::size_t n, float* fold) {
  constexpr std::size_t kLanes = hn::MaxLanes(DF());
  std::size_t record = 0;
  for (std::size_t first = 0; first < n; first += sources.block) {
    for (std::size_t i = 0; i < sources.block; i += kLanes) {
      VF v = LoadCodes<kScaled>(sources, 0, record, i);
      for (std::uint32_t s = 1; s < sources.n; ++s)
        v = JoinVectors<NarrowMath, kJoin>(v, LoadCodes<kScaled>(sources, s, record, i));
      hn::Store(v, DF(), fold + first + i);
    }
    record += PENSTOCK_BLOCK_SCALE_BYTES + sources.block;
  }
}

template <Join kJoin, bool kScaled>
void FoldAs(const Sources<float>& sources, std::size_t n, float* fold) {
  switch (sources.type) {
    case PENSTOCK_INT8:
      return FoldRecords<kJoin, kScaled>(sources, n, fold);
    case PENSTOCK_F16:
      return FoldElements<F16Lanes, kJoin, kScaled>(sources, n, fold);
    case PENSTOCK_BF16:
      return FoldElements<Bf16Lanes, kJoin, kScaled>(sources, n, fold);
    case PENSTOCK_F8E4M3:
      return FoldElements<F8e4m3Lanes, kJoin, kScaled>(sources, n, fold);
    case PENSTOCK_F8E5M2:
      return FoldElements<F8e5m2Lanes, kJoin, kScaled>(sources, n, fold);
    case PENSTOCK_F32:
      return FoldElements<FloatLanes<float>, kJoin, kScaled>(sources, n, fold);
    default:
      PENSTOCK_CHECK(false, "type {} is not folded in f32", sources.type);
  }
}

void FoldSources(std::uint32_t redop, bool scaled, const Sources<float>& sources, std::size_t n,
                 float* fold) {
  if (scaled) return FoldAs<Join::add, true>(sources, n, fold);
  switch (redop) {
    case PENSTOCK_PROD:
      return FoldAs<Join::multiply, false>(sources, n, fold);
    case PENSTOCK_MIN:
      return FoldAs<Join::minimum, false>(sources, n, fold);
    case PENSTOCK_MAX:
      return FoldAs<Join::maximum, false>(sources, n, fold);
    default:
      return FoldAs<Join::add, false>(sources, n, fold);
  }
}

template <typename T>
void SetData(const void* const* src, std::uint64_t at, Sources<T>* sources) {
  for (std::uint32_t s = 0; s < sources->n; ++s)
    sources->data[s] = static_cast<const std::uint8_t*>(src[s]) + at;
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

// With weights only: what else f64 does has loops of its own.
void ReduceF64(const ReduceArguments& a) {
  alignas(64) double fold[kChunk];
  const auto* weights = static_cast<const double*>(a.weights);
  Sources<double> sources{a.type, 0, a.n_src, {}, {}};
  std::copy_n(weights, a.n_src, sources.factors);
  for (std::uint64_t first = 0; first < a.count; first += kChunk) {
    const std::size_t n = std::min<std::uint64_t>(kChunk, a.count - first);
    SetData(a.src, first * sizeof(double), &sources);
    FoldElements<FloatLanes<double>, Join::add, true>(sources, n, fold);
    if (a.redop == PENSTOCK_AVG) Finish(a, weights, n, fold);
    Deliver<double>(a, first * sizeof(double), n * sizeof(double), RoundF64{fold, n});
  }
}

void ReduceFused(const ReduceArguments& a) {
  if (a.type == PENSTOCK_F64) return ReduceF64(a);
  alignas(64) float fold[kChunk];
  const auto* weights = static_cast<const float*>(a.weights);
  Sources<float> sources{a.type, a.block, a.n_src, {}, {}};
  const bool scaled = weights != nullptr || a.redop == PENSTOCK_PREMUL_SUM;
  if (weights != nullptr)
    std::copy_n(weights, a.n_src, sources.factors);
  else
    std::fill_n(sources.factors, a.n_src,
                std::bit_cast<float>(static_cast<std::uint32_t>(a.scale)));
  for (std::uint64_t first = 0; first < a.count; first += kChunk) {
    const std::size_t n = std::min<std::uint64_t>(kChunk, a.count - first);
    SetData(a.src, penstock_operand_bytes(a.type, a.block, first), &sources);
    FoldSources(a.redop, scaled, sources, n, fold);
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
  Sources<float> sources{a.type, a.block, a.n_src, {}, {}};
  for (std::uint64_t first = 0; first < a.count; first += kChunk) {
    const std::size_t n = std::min<std::uint64_t>(kChunk, a.count - first);
    SetData(a.src, penstock_operand_bytes(a.type, a.block, first), &sources);
    FoldSources(PENSTOCK_SUM, false, sources, n, fold);
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
