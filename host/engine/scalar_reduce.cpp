#include "penstock/engine/scalar_reduce.h"

#include <cstring>
#include <type_traits>

#include "penstock/engine/numeric.h"
#include "penstock/engine/scalar_fused.h"

namespace penstock {
namespace {

// How one element type is folded: the type of the fold, and the way in and out of it.
template <typename T>
struct Integer {
  using Stored = T;
  using Fold = T;
  static Fold in(Stored value) { return value; }
  static Stored out(Fold value) { return value; }
};
template <typename T>
struct Float {
  using Stored = T;
  using Fold = T;
  static Fold in(Stored value) { return value; }
  static Stored out(Fold value) { return numeric::canonical(value); }
};
template <typename Bits, typename Format>
struct Narrow {
  using Stored = Bits;
  using Fold = float;
  static Fold in(Stored value) { return numeric::widen<Format>(value); }
  static Stored out(Fold value) { return static_cast<Bits>(numeric::narrow<Format>(value)); }
};

template <typename T>
T add(T a, T b) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(std::uint64_t(a) + std::uint64_t(b));
  else
    return a + b;
}
template <typename T>
T multiply(T a, T b) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(std::uint64_t(a) * std::uint64_t(b));
  else
    return a * b;
}
template <typename T>
T lesser(T a, T b) {
  if constexpr (std::is_integral_v<T>)
    return b < a ? b : a;
  else
    return numeric::minimum(a, b);
}
template <typename T>
T greater(T a, T b) {
  if constexpr (std::is_integral_v<T>)
    return a < b ? b : a;
  else
    return numeric::maximum(a, b);
}
template <typename T>
T average(T sum, std::uint32_t n) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(sum / static_cast<T>(n));
  else
    return sum * (T{1} / static_cast<T>(n));
}
template <typename T>
T scale_of(std::uint64_t bits) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(bits);
  else if constexpr (sizeof(T) == 8)
    return std::bit_cast<double>(bits);
  else
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits));
}

template <typename T>
T step(std::uint32_t redop, T so_far, T next) {
  switch (redop) {
    case PENSTOCK_PROD:
      return multiply(so_far, next);
    case PENSTOCK_MIN:
      return lesser(so_far, next);
    case PENSTOCK_MAX:
      return greater(so_far, next);
    default:
      return add(so_far, next);
  }
}

template <typename Element>
void fold(const ReduceArguments& a) {
  using Stored = typename Element::Stored;
  using Fold = typename Element::Fold;
  const bool scaled = a.redop == PENSTOCK_PREMUL_SUM;
  const Fold scale = scale_of<Fold>(a.scale);
  const auto source = [&](std::uint32_t s, std::uint64_t i) {
    Stored stored;
    std::memcpy(&stored, static_cast<const char*>(a.src[s]) + i * sizeof(Stored), sizeof(Stored));
    const Fold value = Element::in(stored);
    return scaled ? multiply(value, scale) : value;
  };
  for (std::uint64_t i = 0; i < a.count; ++i) {
    Fold value = source(0, i);
    for (std::uint32_t s = 1; s < a.n_src; ++s) value = step(a.redop, value, source(s, i));
    if (a.redop == PENSTOCK_AVG) value = average(value, a.n_src);
    const Stored result = Element::out(value);
    for (std::uint32_t d = 0; d < a.n_dst; ++d)
      std::memcpy(static_cast<char*>(a.dst[d]) + i * sizeof(Stored), &result, sizeof(Stored));
  }
}

}  // namespace

void scalar_reduce(const ReduceArguments& a) {
  if (a.copies()) {
    // One source is copied bit for bit: a NaN keeps its payload.
    for (std::uint32_t d = 0; d < a.n_dst; ++d)
      if (a.dst[d] != a.src[0]) std::memcpy(a.dst[d], a.src[0], a.bytes());
    return;
  }
  if (a.fused()) return scalar_fused_reduce(a);
  switch (a.type) {
    case PENSTOCK_INT8:
      return fold<Integer<std::int8_t>>(a);
    case PENSTOCK_UINT8:
      return fold<Integer<std::uint8_t>>(a);
    case PENSTOCK_INT32:
      return fold<Integer<std::int32_t>>(a);
    case PENSTOCK_UINT32:
      return fold<Integer<std::uint32_t>>(a);
    case PENSTOCK_INT64:
      return fold<Integer<std::int64_t>>(a);
    case PENSTOCK_UINT64:
      return fold<Integer<std::uint64_t>>(a);
    case PENSTOCK_F16:
      return fold<Narrow<std::uint16_t, numeric::F16>>(a);
    case PENSTOCK_F32:
      return fold<Float<float>>(a);
    case PENSTOCK_F64:
      return fold<Float<double>>(a);
    case PENSTOCK_BF16:
      return fold<Narrow<std::uint16_t, numeric::Bf16>>(a);
    case PENSTOCK_F8E4M3:
      return fold<Narrow<std::uint8_t, numeric::F8e4m3>>(a);
    case PENSTOCK_F8E5M2:
      return fold<Narrow<std::uint8_t, numeric::F8e5m2>>(a);
    default:
      PENSTOCK_CHECK(false, "type {} was not checked", a.type);
  }
}

}  // namespace penstock
