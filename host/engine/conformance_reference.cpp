#include "penstock/engine/conformance_reference.h"

#include <bit>
#include <cmath>

#include "penstock/base/status.h"

namespace penstock::conformance {
namespace {

// Twice the precision and more: a sum of two float64 rounded to it and then to float64 is rounded
// as if once, and a product is exact.
#if defined(__SIZEOF_FLOAT128__)
__extension__ using Quad = __float128;
#else
using Quad = long double;
static_assert(std::numeric_limits<Quad>::digits >= 2 * 53 + 2);
#endif

struct Layout {
  int fraction_bits;
  int bias;
  int width;
  double largest;
  bool infinities;
  bool saturates;
  std::uint32_t nan;
};
Layout layout(std::uint32_t type) {
  switch (type) {
    case PENSTOCK_F16:
      return {10, 15, 16, 65504.0, true, false, 0x7e00};
    case PENSTOCK_BF16:
      return {7, 127, 16, 0x1.fep127, true, false, 0x7fc0};
    case PENSTOCK_F8E4M3:
      return {3, 7, 8, 448.0, false, true, 0x7f};
    case PENSTOCK_F8E5M2:
      return {2, 15, 8, 57344.0, true, true, 0x7e};
    case PENSTOCK_F32:
      return {23, 127, 32, 0x1.fffffep127, true, false, 0x7fc00000};
    default:
      PENSTOCK_CHECK(false, "type {} is no float of 32 bits or less", type);
  }
}

double minimum(double a, double b, bool of_maximum) {
  if (std::isnan(a) || std::isnan(b)) return std::nan("");
  if (a == 0 && b == 0) {
    const bool negative =
        of_maximum ? std::signbit(a) && std::signbit(b) : std::signbit(a) || std::signbit(b);
    return negative ? -0.0 : 0.0;
  }
  return of_maximum ? std::fmax(a, b) : std::fmin(a, b);
}

// Fold types: f32 as float64 values that are rounded after each operation.
double to_f32(double value) {
  return reference_value(PENSTOCK_F32, reference_code(PENSTOCK_F32, value));
}
double to_f64(Quad value) { return static_cast<double>(value); }

template <typename Wide, typename Round>
double fold_weighted(std::uint32_t redop, const std::vector<double>& weights,
                     const std::vector<double>& values, Round round) {
  double sum = 0, total = 0;
  bool any = false;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (weights[i] == 0) continue;
    const double product = round(Wide(values[i]) * Wide(weights[i]));
    sum = any ? round(Wide(sum) + Wide(product)) : product;
    total = any ? round(Wide(total) + Wide(weights[i])) : weights[i];
    any = true;
  }
  if (redop != PENSTOCK_AVG) return sum;
  return round(Wide(sum) * Wide(round(Wide(1) / Wide(total))));
}

template <typename Wide, typename Round>
double fold_floats(std::uint32_t redop, double scale, std::vector<double> values, Round round) {
  const auto n = static_cast<double>(values.size());
  if (redop == PENSTOCK_PREMUL_SUM)
    for (double& value : values) value = round(Wide(value) * Wide(scale));
  double result = values[0];
  for (std::size_t i = 1; i < values.size(); ++i) {
    switch (redop) {
      case PENSTOCK_PROD:
        result = round(Wide(result) * Wide(values[i]));
        break;
      case PENSTOCK_MIN:
        result = minimum(result, values[i], false);
        break;
      case PENSTOCK_MAX:
        result = minimum(result, values[i], true);
        break;
      default:
        result = round(Wide(result) + Wide(values[i]));
        break;
    }
  }
  if (redop == PENSTOCK_AVG) result = round(Wide(result) * Wide(round(Wide(1) / Wide(n))));
  return result;
}

std::uint64_t reduce_integers(std::uint32_t type, std::uint32_t redop, std::uint64_t scale,
                              const std::vector<std::uint64_t>& sources) {
  __extension__ using Wide = __int128;
  const int width = static_cast<int>(penstock_type_size(type)) * 8;
  const bool is_signed = type == PENSTOCK_INT8 || type == PENSTOCK_INT32 || type == PENSTOCK_INT64;
  const Wide modulus = Wide(1) << width;
  const auto wrap = [&](Wide value) {
    value %= modulus;
    if (value < 0) value += modulus;
    if (is_signed && value >= modulus / 2) value -= modulus;
    return value;
  };
  // As residues, whose product fits into 128 bits without a sign.
  __extension__ using Residue = unsigned __int128;
  const auto multiply = [&](Wide a, Wide b) {
    const auto x = static_cast<Residue>(a < 0 ? a + modulus : a);
    const auto y = static_cast<Residue>(b < 0 ? b + modulus : b);
    return wrap(static_cast<Wide>(x * y % static_cast<Residue>(modulus)));
  };
  const auto n = static_cast<int>(sources.size());
  Wide result = 0;
  for (int i = 0; i < n; ++i) {
    Wide value = wrap(Wide(sources[static_cast<std::size_t>(i)]));
    if (redop == PENSTOCK_PREMUL_SUM) value = multiply(value, wrap(Wide(scale)));
    if (i == 0)
      result = value;
    else if (redop == PENSTOCK_PROD)
      result = multiply(result, value);
    else if (redop == PENSTOCK_MIN)
      result = value < result ? value : result;
    else if (redop == PENSTOCK_MAX)
      result = value > result ? value : result;
    else
      result = wrap(result + value);
  }
  if (redop == PENSTOCK_AVG) result /= n;
  if (result < 0) result += modulus;
  return static_cast<std::uint64_t>(result);
}

}  // namespace

double reference_value(std::uint32_t type, std::uint32_t code) {
  const Layout l = layout(type);
  const std::uint32_t magnitude = code & ((std::uint32_t{1} << (l.width - 1)) - 1);
  const bool negative = (code >> (l.width - 1) & 1) != 0;
  const auto fraction = static_cast<double>(magnitude & ((1u << l.fraction_bits) - 1));
  const int field = static_cast<int>(magnitude >> l.fraction_bits);
  double value = field == 0 ? std::ldexp(fraction, 1 - l.bias - l.fraction_bits)
                            : std::ldexp(fraction + std::ldexp(1.0, l.fraction_bits),
                                         field - l.bias - l.fraction_bits);
  if (value > l.largest) value = l.infinities && fraction == 0 ? HUGE_VAL : std::nan("");
  return negative ? -value : value;
}

std::uint32_t reference_code(std::uint32_t type, double value) {
  const Layout l = layout(type);
  if (std::isnan(value)) return l.nan;
  const std::uint32_t sign = std::signbit(value) ? std::uint32_t{1} << (l.width - 1) : 0;
  double magnitude = std::fabs(value);
  int exponent = 1 - l.bias;
  if (magnitude > l.largest * 2) {
    magnitude = HUGE_VAL;
  } else {
    // The spacing of the format's numbers around the value; scaling by it is exact, so that
    // nearbyint (nearest even) is the only rounding.
    if (magnitude != 0) exponent = std::max(std::ilogb(magnitude), 1 - l.bias);
    magnitude = std::nearbyint(std::ldexp(magnitude, l.fraction_bits - exponent));
    magnitude = std::ldexp(magnitude, exponent - l.fraction_bits);
  }
  if (magnitude > l.largest) {
    if (l.saturates)
      magnitude = l.largest;
    else
      return sign | ((std::uint32_t{1} << (l.width - 1)) - (std::uint32_t{1} << l.fraction_bits));
  }
  if (magnitude == 0) return sign;
  exponent = std::max(std::ilogb(magnitude), 1 - l.bias);
  const auto steps = static_cast<std::uint32_t>(std::ldexp(magnitude, l.fraction_bits - exponent));
  const std::uint32_t implicit = std::uint32_t{1} << l.fraction_bits;
  if (steps < implicit) return sign | steps;
  return sign | (static_cast<std::uint32_t>(exponent + l.bias) << l.fraction_bits) |
         (steps - implicit);
}

std::uint64_t reference_reduce(std::uint32_t type, std::uint32_t redop, std::uint64_t scale,
                               const std::vector<std::uint64_t>& sources) {
  if (sources.size() == 1 && redop != PENSTOCK_PREMUL_SUM) return sources[0];
  if (type <= PENSTOCK_UINT64) return reduce_integers(type, redop, scale, sources);
  std::vector<double> values(sources.size());
  if (type == PENSTOCK_F64) {
    for (std::size_t i = 0; i < sources.size(); ++i) values[i] = std::bit_cast<double>(sources[i]);
    const double result =
        fold_floats<Quad>(redop, std::bit_cast<double>(scale), std::move(values), to_f64);
    return std::isnan(result) ? 0x7ff8000000000000 : std::bit_cast<std::uint64_t>(result);
  }
  for (std::size_t i = 0; i < sources.size(); ++i)
    values[i] = reference_value(type, static_cast<std::uint32_t>(sources[i]));
  const double factor = reference_value(PENSTOCK_F32, static_cast<std::uint32_t>(scale));
  return reference_code(type, fold_floats<double>(redop, factor, std::move(values), to_f32));
}

double reference_fold_f32(std::uint32_t redop, std::uint64_t scale,
                          const std::vector<double>& weights, const std::vector<double>& values) {
  if (!weights.empty()) return fold_weighted<double>(redop, weights, values, to_f32);
  const double factor = reference_value(PENSTOCK_F32, static_cast<std::uint32_t>(scale));
  return fold_floats<double>(redop, factor, values, to_f32);
}

std::uint64_t reference_weighted_f64(std::uint32_t redop, const std::vector<double>& weights,
                                     const std::vector<double>& values) {
  const double result = fold_weighted<Quad>(redop, weights, values, to_f64);
  return std::isnan(result) ? 0x7ff8000000000000 : std::bit_cast<std::uint64_t>(result);
}

double reference_code_value(int code, double scale) {
  return code == -128 ? std::nan("") : to_f32(code * scale);
}

ReferenceRecord reference_record(const std::vector<double>& values) {
  constexpr double kLargest = 0x1.fffffep127;
  ReferenceRecord record;
  double largest = 0;
  for (const double value : values)
    if (!std::isnan(value)) largest = std::fmax(largest, std::fmin(std::fabs(value), kLargest));
  record.scale = std::fmin(std::fmax(to_f32(largest / 127), 0x1p-126), 0x1.020406p121);
  const double reciprocal = to_f32(1 / record.scale);
  for (const double value : values) {
    const double finite = std::fmax(std::fmin(value, kLargest), -kLargest);
    record.codes.push_back(
        std::isnan(value) ? -128 : static_cast<int>(std::nearbyint(to_f32(finite * reciprocal))));
  }
  return record;
}

void reference_outer_step(const std::vector<double>& deltas, double rate, double factor,
                          double* momentum, double* parameter) {
  const double g = reference_fold_f32(PENSTOCK_AVG, 0, {}, deltas);
  *momentum = to_f32(to_f32(factor * *momentum) + g);
  const double direction = to_f32(to_f32(factor * *momentum) + g);
  *parameter = to_f32(*parameter - to_f32(rate * direction));
}

}  // namespace penstock::conformance
