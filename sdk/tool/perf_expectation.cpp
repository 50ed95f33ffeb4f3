#include "perf_expectation.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "penstock/descriptor/descriptor.h"

namespace penstock::tool {
namespace {

constexpr std::byte kUntouched{0xa5};

// splitmix64's finaliser: neighbouring inputs give unrelated bits.
std::uint64_t mix(std::uint64_t z) {
  z += 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

std::uint64_t hash(const Scenario& scenario, std::uint64_t rank, std::uint64_t index) {
  return mix(mix(scenario.seed * 64 + rank) ^ index);
}

struct FloatType {
  int fraction_bits;
  int exponent_bits;
  bool saturates;     // instead of overflowing to infinity
  double largest;     // finite
  std::uint64_t nan;  // canonical
  int range;          // inputs of sums are whole numbers up to this, times `step`
  double step;
};

bool is_float(std::uint32_t type) { return type >= PENSTOCK_F16 && type <= PENSTOCK_F8E5M2; }

bool is_signed(std::uint32_t type) {
  return type == PENSTOCK_INT8 || type == PENSTOCK_INT32 || type == PENSTOCK_INT64;
}

FloatType float_type(std::uint32_t type) {
  switch (type) {
    case PENSTOCK_F16:
      return {10, 5, false, 65504, 0x7e00, 255, 1};
    case PENSTOCK_BF16:
      return {7, 8, false, 0x1.fep127, 0x7fc0, 255, 1};
    case PENSTOCK_F32:
      return {23, 8, false, 0x1.fffffep127, 0x7fc00000, 32767, 0.125};
    case PENSTOCK_F8E4M3:
      return {3, 4, true, 448, 0x7f, 15, 1};
    case PENSTOCK_F8E5M2:
      return {2, 5, true, 57344, 0x7e, 7, 1};
    default:  // f64
      return {52,      11,    false, std::numeric_limits<double>::max(), 0x7ff8000000000000,
              1 << 30, 0.0625};
  }
}

std::uint64_t width_mask(std::uint32_t type) {
  const std::uint32_t bits = penstock_type_size(type) * 8;
  return bits == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << bits) - 1;
}

std::int64_t sign_extended(std::uint32_t type, std::uint64_t bits) {
  const std::uint32_t shift = 64 - penstock_type_size(type) * 8;
  return static_cast<std::int64_t>(bits << shift) >> shift;
}

// The value that a rank puts in for a reduction of floats.
double float_input(const Scenario& scenario, std::uint32_t rank, std::uint64_t index) {
  const FloatType type = float_type(scenario.type);
  const std::uint64_t bits = hash(scenario, rank, index);
  const bool negative = (bits & 1) != 0;
  // One element in 61 is special, at one rank, and one in 67, at another.
  const std::uint64_t common = hash(scenario, 63, index);
  if (common % 61 == 0 && (common >> 32) % scenario.ranks == rank) {
    return std::numeric_limits<double>::quiet_NaN();
  }
  if (common % 67 < 2 && !type.saturates && (common >> 40) % scenario.ranks == rank) {
    return negative ? -std::numeric_limits<double>::infinity()
                    : std::numeric_limits<double>::infinity();
  }
  if (scenario.redop == PENSTOCK_PROD) {
    const double power = std::ldexp(1.0, static_cast<int>(bits >> 8 & 0xffff) % 3 - 1);
    const double value = (common >> 20) % scenario.ranks == rank ? 3 * power : power;
    return negative ? -value : value;
  }
  const double magnitude = type.step * static_cast<double>((bits >> 8) % (type.range + 1u));
  return negative ? -magnitude : magnitude;
}

double fold_floats(std::uint32_t redop, double left, double right) {
  switch (redop) {
    case PENSTOCK_PROD:
      return left * right;
    case PENSTOCK_MIN:
    case PENSTOCK_MAX: {
      if (std::isnan(left) || std::isnan(right)) return std::numeric_limits<double>::quiet_NaN();
      const bool left_less = left < right || (left == right && std::signbit(left));
      return left_less == (redop == PENSTOCK_MIN) ? left : right;
    }
    default:
      return left + right;
  }
}

std::uint64_t reduced_float(const Scenario& scenario, std::uint64_t index) {
  const double factor = scenario.redop == PENSTOCK_PREMUL_SUM ? 3 : 1;
  double folded = factor * float_input(scenario, 0, index);
  for (std::uint32_t rank = 1; rank < scenario.ranks; ++rank) {
    folded = fold_floats(scenario.redop, folded, factor * float_input(scenario, rank, index));
  }
  if (scenario.redop == PENSTOCK_AVG && scenario.ranks > 1) {
    if (scenario.type == PENSTOCK_F64) {
      folded *= 1.0 / scenario.ranks;
    } else {
      // The product of two f32 is exact in a double, and then rounded once to f32.
      const float inverse = 1.0f / static_cast<float>(scenario.ranks);
      folded = static_cast<float>(folded * static_cast<double>(inverse));
    }
  }
  return encode_float(scenario.type, folded);
}

std::uint64_t fold_integers(const Scenario& scenario, std::uint64_t left, std::uint64_t right) {
  switch (scenario.redop) {
    case PENSTOCK_PROD:
      return left * right;
    case PENSTOCK_MIN:
    case PENSTOCK_MAX: {
      const bool left_less = is_signed(scenario.type) ? sign_extended(scenario.type, left) <
                                                            sign_extended(scenario.type, right)
                                                      : left < right;
      return left_less == (scenario.redop == PENSTOCK_MIN) ? left : right;
    }
    default:
      return left + right;
  }
}

std::uint64_t reduced_integer(const Scenario& scenario, std::uint64_t index) {
  const std::uint64_t mask = width_mask(scenario.type);
  const std::uint64_t factor = scenario.redop == PENSTOCK_PREMUL_SUM ? 3 : 1;
  std::uint64_t folded = input_bits(scenario, 0, index) * factor & mask;
  for (std::uint32_t rank = 1; rank < scenario.ranks; ++rank) {
    const std::uint64_t next = input_bits(scenario, rank, index) * factor & mask;
    folded = fold_integers(scenario, folded, next) & mask;
  }
  if (scenario.redop != PENSTOCK_AVG) return folded;
  if (!is_signed(scenario.type)) return folded / scenario.ranks;
  const std::int64_t quotient =
      sign_extended(scenario.type, folded) / static_cast<std::int64_t>(scenario.ranks);
  return static_cast<std::uint64_t>(quotient) & mask;
}

void put(std::byte* to, std::uint64_t bits, std::uint64_t bytes) {
  std::memcpy(to, &bits, bytes);  // the machine is little-endian, as descriptors are
}

}  // namespace

std::uint64_t encode_float(std::uint32_t type, double value) {
  const FloatType format = float_type(type);
  if (std::isnan(value)) return format.nan;
  if (type == PENSTOCK_F64) return std::bit_cast<std::uint64_t>(value);
  // The compiler's conversion rounds the same way, and faster.
  if (type == PENSTOCK_F32) return std::bit_cast<std::uint32_t>(static_cast<float>(value));
  const std::uint64_t sign =
      std::signbit(value) ? std::uint64_t{1} << (format.fraction_bits + format.exponent_bits) : 0;
  const int bias = (1 << (format.exponent_bits - 1)) - 1;
  const std::uint64_t infinity = ((std::uint64_t{1} << format.exponent_bits) - 1)
                                 << format.fraction_bits;
  double magnitude = std::fabs(value);
  if (std::isinf(magnitude)) {
    if (!format.saturates) return sign | infinity;
    magnitude = format.largest;
  }
  const int least = 1 - bias;  // exponent of the smallest normal number
  const int exponent = magnitude == 0 ? least : std::max(std::ilogb(magnitude), least);
  // In units of the last place; nearbyint rounds to nearest, ties to even.
  const double rounded =
      std::ldexp(std::nearbyint(std::ldexp(magnitude, format.fraction_bits - exponent)),
                 exponent - format.fraction_bits);
  if (rounded > format.largest) {
    if (!format.saturates) return sign | infinity;
    return sign | encode_float(type, format.largest);
  }
  // The units of a number in the lowest binade count subnormals as well; above, each binade adds
  // one to the exponent field.
  const int binade = rounded == 0 ? least : std::max(std::ilogb(rounded), least);
  const auto units = static_cast<std::uint64_t>(std::ldexp(rounded, format.fraction_bits - binade));
  return sign | ((static_cast<std::uint64_t>(binade - least) << format.fraction_bits) + units);
}

std::uint64_t scale_of(const Scenario& scenario) {
  if (!reduces(scenario.collective) || scenario.redop != PENSTOCK_PREMUL_SUM) return 0;
  if (!is_float(scenario.type)) return 3;
  if (scenario.type == PENSTOCK_F64) return std::bit_cast<std::uint64_t>(3.0);
  return std::bit_cast<std::uint32_t>(3.0f);
}

std::uint64_t input_bits(const Scenario& scenario, std::uint32_t rank, std::uint64_t index) {
  if (reduces(scenario.collective) && is_float(scenario.type)) {
    return encode_float(scenario.type, float_input(scenario, rank, index));
  }
  return hash(scenario, rank, index) & width_mask(scenario.type);
}

std::uint64_t reduced_bits(const Scenario& scenario, std::uint64_t index) {
  if (scenario.ranks == 1 && scenario.redop != PENSTOCK_PREMUL_SUM) {
    return input_bits(scenario, 0, index);
  }
  return is_float(scenario.type) ? reduced_float(scenario, index)
                                 : reduced_integer(scenario, index);
}

std::uint64_t output_bits(const Scenario& scenario, std::uint32_t rank, std::uint64_t index) {
  const std::uint64_t count = scenario.count;
  switch (scenario.collective) {
    case Collective::all_reduce:
    case Collective::reduce:
      return reduced_bits(scenario, index);
    case Collective::reduce_scatter:
      return reduced_bits(scenario, rank * count + index);
    case Collective::broadcast:
      return input_bits(scenario, scenario.root, index);
    case Collective::all_gather:
    case Collective::gather:
      return input_bits(scenario, static_cast<std::uint32_t>(index / count), index % count);
    case Collective::scatter:
      return input_bits(scenario, scenario.root, rank * count + index);
    case Collective::all_to_all:
      return input_bits(scenario, static_cast<std::uint32_t>(index / count),
                        rank * count + index % count);
    case Collective::send_recv:
      return input_bits(scenario, (rank + scenario.ranks - 1) % scenario.ranks, index);
    case Collective::barrier:
      break;
  }
  return 0;
}

std::uint64_t send_elements(const Scenario& scenario, std::uint32_t rank) {
  const std::uint64_t all = scenario.count * scenario.ranks;
  switch (scenario.collective) {
    case Collective::reduce_scatter:
    case Collective::all_to_all:
      return all;
    case Collective::scatter:
      return rank == scenario.root ? all : 0;
    default:
      return scenario.count;
  }
}

std::uint64_t recv_elements(const Scenario& scenario, std::uint32_t) {
  switch (scenario.collective) {
    case Collective::all_gather:
    case Collective::all_to_all:
    case Collective::gather:  // also where nothing must be written
      return scenario.count * scenario.ranks;
    default:
      return scenario.count;
  }
}

bool receives(const Scenario& scenario, std::uint32_t rank) {
  if (scenario.collective == Collective::barrier) return false;
  const bool to_root =
      scenario.collective == Collective::reduce || scenario.collective == Collective::gather;
  return !to_root || rank == scenario.root;
}

PerfBuffers::PerfBuffers(const Scenario& scenario, std::uint32_t rank)
    : scenario_(scenario), rank_(rank), element_bytes_(penstock_type_size(scenario.type)) {
  lay_out();
  fill(scenario.seed);
}

// In place there is one buffer wherever both lie in one: the larger, with the smaller at its part.
void PerfBuffers::lay_out() {
  const std::uint64_t sent = send_elements(scenario_, rank_) * element_bytes_;
  const std::uint64_t received = recv_elements(scenario_, rank_) * element_bytes_;
  const std::uint64_t part = scenario_.count * element_bytes_;
  const bool is_root = rank_ == scenario_.root;
  const Collective collective = scenario_.collective;
  const bool apart =
      (collective == Collective::gather || collective == Collective::scatter) && !is_root;
  const bool together = scenario_.in_place && !apart && collective != Collective::send_recv;
  first_.bytes.assign((together ? std::max(sent, received) : sent) + 2 * kGuardBytes, kUntouched);
  second_.bytes.assign((together ? 0 : received) + 2 * kGuardBytes, kUntouched);
  send_ = first_.payload();
  recv_ = together ? first_.payload() : second_.payload();
  if (!together) return;
  if (collective == Collective::all_gather || collective == Collective::gather) {
    send_ += rank_ * part;
  } else if (collective == Collective::reduce_scatter || collective == Collective::scatter) {
    recv_ += rank_ * part;
  }
}

void PerfBuffers::fill(std::uint64_t seed) {
  scenario_.seed = seed;
  std::fill(first_.bytes.begin(), first_.bytes.end(), kUntouched);
  std::fill(second_.bytes.begin(), second_.bytes.end(), kUntouched);
  const std::uint64_t sent = send_elements(scenario_, rank_);
  for (std::uint64_t i = 0; i < sent; ++i) {
    put(send_ + i * element_bytes_, input_bits(scenario_, rank_, i), element_bytes_);
  }
}

std::uint64_t PerfBuffers::count_wrong() const {
  // The same buffers, filled alike, with the outputs written over.
  PerfBuffers want(scenario_, rank_);
  if (receives(scenario_, rank_)) {
    const std::uint64_t received = recv_elements(scenario_, rank_);
    for (std::uint64_t i = 0; i < received; ++i) {
      put(want.recv_ + i * element_bytes_, output_bits(scenario_, rank_, i), element_bytes_);
    }
  }
  std::uint64_t wrong = 0;
  for (const auto& [have, expected] :
       {std::pair(&first_, &want.first_), std::pair(&second_, &want.second_)}) {
    const std::byte* const a = have->bytes.data();
    const std::byte* const b = expected->bytes.data();
    const std::uint64_t end = have->bytes.size() - kGuardBytes;
    for (std::uint64_t i = 0; i < have->bytes.size();) {
      const bool in_guard = i < kGuardBytes || i >= end;
      const std::uint64_t step = in_guard ? 1 : element_bytes_;
      if (std::memcmp(a + i, b + i, step) != 0) ++wrong;
      i += step;
    }
  }
  return wrong;
}

}  // namespace penstock::tool
