#include "penstock/sim/systemc/arithmetic.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstring>

#include "penstock/descriptor/types.h"

namespace penstock::systemc {
namespace {

constexpr std::uint32_t kInfinity = 0x7f800000;
constexpr std::uint32_t kCanonicalNan = 0x7fc00000;

// What tells the narrow formats apart: how many bits, and which codes (without sign) are special.
struct Format {
  int exponent_bits;
  int fraction_bits;
  std::uint32_t infinity;  // 0: the format has none
  std::uint32_t nan;       // the canonical one
  std::uint32_t beyond;    // what is too large becomes
  int bias() const { return (1 << (exponent_bits - 1)) - 1; }
  int sign_place() const { return exponent_bits + fraction_bits; }
};

constexpr Format kF16{5, 10, 0x7c00, 0x7e00, 0x7c00};
constexpr Format kBf16{8, 7, 0x7f80, 0x7fc0, 0x7f80};
constexpr Format kF8e4m3{4, 3, 0, 0x7f, 0x7e};
constexpr Format kF8e5m2{5, 2, 0x7c, 0x7e, 0x7b};

const Format& format_of(std::uint32_t type) {
  switch (type) {
    case PENSTOCK_F16:
      return kF16;
    case PENSTOCK_BF16:
      return kBf16;
    case PENSTOCK_F8E4M3:
      return kF8e4m3;
    default:
      return kF8e5m2;
  }
}

// By the definition of a binary format: (-1)^s * 2^(e - bias) * 1.fraction.
float widen_by_definition(const Format& format, std::uint32_t code) {
  const bool negative = (code >> format.sign_place() & 1) != 0;
  const std::uint32_t magnitude = code & ((1u << format.sign_place()) - 1);
  const std::uint32_t exponent = magnitude >> format.fraction_bits;
  const std::uint32_t fraction = magnitude & ((1u << format.fraction_bits) - 1);
  if (format.infinity != 0 && magnitude >= format.infinity) {
    if (magnitude > format.infinity) return std::bit_cast<float>(kCanonicalNan);
    return std::bit_cast<float>(kInfinity | (negative ? 0x80000000u : 0));
  }
  if (magnitude == format.nan) return std::bit_cast<float>(kCanonicalNan);
  const double significand =
      exponent == 0 ? fraction : fraction + std::ldexp(1.0, format.fraction_bits);
  const int power = (exponent == 0 ? 1 : static_cast<int>(exponent)) - format.bias();
  const double value = std::ldexp(significand, power - format.fraction_bits);
  return static_cast<float>(negative ? -value : value);
}

// Every code of a format, once.
template <int kCodes>
std::array<float, kCodes> table_of(const Format& format) {
  std::array<float, kCodes> table;
  for (int code = 0; code < kCodes; ++code)
    table[static_cast<std::size_t>(code)] =
        widen_by_definition(format, static_cast<std::uint32_t>(code));
  return table;
}
const float* table_for(std::uint32_t type) {
  static const auto f16 = table_of<65536>(kF16);
  static const auto bf16 = table_of<65536>(kBf16);
  static const auto e4m3 = table_of<256>(kF8e4m3);
  static const auto e5m2 = table_of<256>(kF8e5m2);
  switch (type) {
    case PENSTOCK_F16:
      return f16.data();
    case PENSTOCK_BF16:
      return bf16.data();
    case PENSTOCK_F8E4M3:
      return e4m3.data();
    default:
      return e5m2.data();
  }
}

// The nearest multiple of the quantum that the value's binade has in the format; the addition of
// 2^52 rounds a double to an integer, to nearest even.
std::uint32_t narrow_by_definition(const Format& format, float value) {
  const std::uint32_t sign = std::signbit(value) ? 1u << format.sign_place() : 0;
  if (value != value) return format.nan;
  if (std::isinf(value)) return sign | format.beyond;
  const double magnitude = std::fabs(static_cast<double>(value));
  const int least = 1 - format.bias();
  int exponent = magnitude == 0 ? least : std::ilogb(magnitude);
  if (exponent < least) exponent = least;
  const double in_quanta = std::ldexp(magnitude, format.fraction_bits - exponent);
  constexpr double kRound = 0x1p52;
  const double rounded = in_quanta + kRound;
  const auto quanta = static_cast<std::uint32_t>(rounded - kRound);
  const std::uint32_t code =
      (static_cast<std::uint32_t>(exponent - least) << format.fraction_bits) + quanta;
  const std::uint32_t first_beyond = format.infinity != 0 ? format.infinity : format.nan;
  return sign | (code >= first_beyond ? format.beyond : code);
}

// ---- folding ----

// The bits as a number of 32 bits whose order is that of the values, with -0 below +0.
std::int32_t order_of(float value) {
  const auto bits = std::bit_cast<std::int32_t>(value);
  return bits ^ (bits >> 31 & 0x7fffffff);
}
// A NaN wins.
float lesser(float a, float b) {
  const float pick = order_of(b) < order_of(a) ? b : a;
  return a != a ? a : b != b ? b : pick;
}
float greater(float a, float b) {
  const float pick = order_of(a) < order_of(b) ? b : a;
  return a != a ? a : b != b ? b : pick;
}
template <typename T>
T lesser(T a, T b) {
  return a < b ? a : b;
}
template <typename T>
T greater(T a, T b) {
  return a < b ? b : a;
}

// Wraps: computed in the unsigned type of 64 bits, whose low bits are those of the result.
template <typename T>
T sum_of(T a, T b) {
  return static_cast<T>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
}
float sum_of(float a, float b) { return a + b; }
template <typename T>
T product_of(T a, T b) {
  return static_cast<T>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
}
float product_of(float a, float b) { return a * b; }

// One source's elements into the accumulators. `at` gives an element in the fold's type.
template <typename T, typename At>
void take(std::uint32_t redop, bool first, T scale, T* sum, std::uint32_t n, At at) {
  if (first) {
    for (std::uint32_t i = 0; i < n; ++i)
      sum[i] = redop == PENSTOCK_PREMUL_SUM ? product_of(at(i), scale) : at(i);
    return;
  }
  switch (redop) {
    case PENSTOCK_SUM:
    case PENSTOCK_AVG:
      for (std::uint32_t i = 0; i < n; ++i) sum[i] = sum_of(sum[i], at(i));
      return;
    case PENSTOCK_PREMUL_SUM:
      for (std::uint32_t i = 0; i < n; ++i) sum[i] = sum_of(sum[i], product_of(at(i), scale));
      return;
    case PENSTOCK_PROD:
      for (std::uint32_t i = 0; i < n; ++i) sum[i] = product_of(sum[i], at(i));
      return;
    case PENSTOCK_MIN:
      for (std::uint32_t i = 0; i < n; ++i) sum[i] = lesser(sum[i], at(i));
      return;
    default:
      for (std::uint32_t i = 0; i < n; ++i) sum[i] = greater(sum[i], at(i));
  }
}

template <typename T>
T load(const std::uint8_t* data, std::uint32_t index) {
  T value;
  std::memcpy(&value, data + std::size_t{index} * sizeof(T), sizeof(T));
  return value;
}
template <typename T>
void store(std::uint8_t* data, std::uint32_t index, T value) {
  std::memcpy(data + std::size_t{index} * sizeof(T), &value, sizeof(T));
}

template <typename T>
void take_integers(const FoldSetup& setup, bool first, std::uint8_t* accumulators,
                   const std::uint8_t* data, std::uint32_t n) {
  take(setup.redop, first, static_cast<T>(setup.scale), reinterpret_cast<T*>(accumulators), n,
       [data](std::uint32_t i) { return load<T>(data, i); });
}

template <typename T>
std::uint32_t finish_integers(const FoldSetup& setup, const std::uint8_t* accumulators,
                              std::uint8_t* out, std::uint32_t n) {
  const T* sum = reinterpret_cast<const T*>(accumulators);
  const T divisor = static_cast<T>(setup.redop == PENSTOCK_AVG ? setup.sources : 1);
  for (std::uint32_t i = 0; i < n; ++i) store<T>(out, i, static_cast<T>(sum[i] / divisor));
  return n * static_cast<std::uint32_t>(sizeof(T));
}

void take_floats(const FoldSetup& setup, bool first, std::uint8_t* accumulators,
                 const std::uint8_t* data, std::uint32_t n) {
  auto* sum = reinterpret_cast<float*>(accumulators);
  const float scale = std::bit_cast<float>(static_cast<std::uint32_t>(setup.scale));
  if (setup.type == PENSTOCK_F32)
    return take(setup.redop, first, scale, sum, n,
                [data](std::uint32_t i) { return load<float>(data, i); });
  const float* table = table_for(setup.type);
  if (Fold::element_bytes(setup.type) == 2)
    return take(setup.redop, first, scale, sum, n,
                [data, table](std::uint32_t i) { return table[load<std::uint16_t>(data, i)]; });
  take(setup.redop, first, scale, sum, n,
       [data, table](std::uint32_t i) { return table[data[i]]; });
}

std::uint32_t finish_floats(const FoldSetup& setup, std::uint8_t* accumulators, std::uint8_t* out,
                            std::uint32_t n) {
  auto* sum = reinterpret_cast<float*>(accumulators);
  if (setup.redop == PENSTOCK_AVG) {
    const float reciprocal = 1.0f / static_cast<float>(setup.sources);
    for (std::uint32_t i = 0; i < n; ++i) sum[i] *= reciprocal;
  }
  const std::uint32_t bytes = Fold::element_bytes(setup.out_type);
  if (setup.out_type == PENSTOCK_F32) {
    for (std::uint32_t i = 0; i < n; ++i) {
      const auto bits = std::bit_cast<std::uint32_t>(sum[i]);
      store<std::uint32_t>(out, i, (bits & 0x7fffffff) > kInfinity ? kCanonicalNan : bits);
    }
  } else if (bytes == 2) {
    for (std::uint32_t i = 0; i < n; ++i)
      store<std::uint16_t>(out, i, static_cast<std::uint16_t>(narrow(setup.out_type, sum[i])));
  } else {
    for (std::uint32_t i = 0; i < n; ++i)
      out[i] = static_cast<std::uint8_t>(narrow(setup.out_type, sum[i]));
  }
  return n * bytes;
}

}  // namespace

float widen(std::uint32_t type, std::uint32_t code) { return table_for(type)[code]; }

std::uint32_t narrow(std::uint32_t type, float value) {
  return narrow_by_definition(format_of(type), value);
}

std::uint32_t Fold::element_bytes(std::uint32_t type) {
  switch (type) {
    case PENSTOCK_INT8:
    case PENSTOCK_UINT8:
    case PENSTOCK_F8E4M3:
    case PENSTOCK_F8E5M2:
      return 1;
    case PENSTOCK_F16:
    case PENSTOCK_BF16:
      return 2;
    case PENSTOCK_INT64:
    case PENSTOCK_UINT64:
    case PENSTOCK_F64:
      return 8;
    default:
      return 4;
  }
}

Fold::Fold(const FoldSetup& setup)
    : setup_(setup),
      copies_(setup.sources == 1 && setup.redop != PENSTOCK_PREMUL_SUM &&
              setup.type == setup.out_type),
      // Eight-bit floats take four bytes each.
      accumulators_(std::size_t{4} * kChunkBytes) {}

void Fold::add(std::uint32_t index, const std::uint8_t* data, std::uint32_t elements) {
  const bool first = index == 0;
  std::uint8_t* sum = accumulators_.data();
  if (copies_) {
    std::memcpy(sum, data, std::size_t{elements} * element_bytes(setup_.type));
    return;
  }
  switch (setup_.type) {
    case PENSTOCK_INT8:
      return take_integers<std::int8_t>(setup_, first, sum, data, elements);
    case PENSTOCK_UINT8:
      return take_integers<std::uint8_t>(setup_, first, sum, data, elements);
    case PENSTOCK_INT32:
      return take_integers<std::int32_t>(setup_, first, sum, data, elements);
    case PENSTOCK_UINT32:
      return take_integers<std::uint32_t>(setup_, first, sum, data, elements);
    case PENSTOCK_INT64:
      return take_integers<std::int64_t>(setup_, first, sum, data, elements);
    case PENSTOCK_UINT64:
      return take_integers<std::uint64_t>(setup_, first, sum, data, elements);
    default:
      return take_floats(setup_, first, sum, data, elements);
  }
}

std::uint32_t Fold::finish(std::uint8_t* out, std::uint32_t elements) {
  std::uint8_t* sum = accumulators_.data();
  if (copies_) {
    const std::uint32_t bytes = elements * element_bytes(setup_.type);
    std::memcpy(out, sum, bytes);
    return bytes;
  }
  switch (setup_.type) {
    case PENSTOCK_INT8:
      return finish_integers<std::int8_t>(setup_, sum, out, elements);
    case PENSTOCK_UINT8:
      return finish_integers<std::uint8_t>(setup_, sum, out, elements);
    case PENSTOCK_INT32:
      return finish_integers<std::int32_t>(setup_, sum, out, elements);
    case PENSTOCK_UINT32:
      return finish_integers<std::uint32_t>(setup_, sum, out, elements);
    case PENSTOCK_INT64:
      return finish_integers<std::int64_t>(setup_, sum, out, elements);
    case PENSTOCK_UINT64:
      return finish_integers<std::uint64_t>(setup_, sum, out, elements);
    default:
      return finish_floats(setup_, sum, out, elements);
  }
}

}  // namespace penstock::systemc
