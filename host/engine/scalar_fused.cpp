#include "penstock/engine/scalar_fused.h"

#include <algorithm>
#include <cstring>

#include "penstock/engine/numeric.h"

namespace penstock {
namespace {

template <typename T>
T read(const void* base, std::uint64_t offset) {
  T value;
  std::memcpy(&value, static_cast<const char*>(base) + offset, sizeof value);
  return value;
}
template <typename T>
void write(void* base, std::uint64_t offset, T value) {
  std::memcpy(static_cast<char*>(base) + offset, &value, sizeof value);
}

// Element i of an operand that is folded in f32.
float element(std::uint32_t type, std::uint32_t block, const void* base, std::uint64_t i) {
  switch (type) {
    case PENSTOCK_INT8: {
      const std::uint64_t record = i / block * (PENSTOCK_BLOCK_SCALE_BYTES + block);
      const auto code = read<std::int8_t>(base, record + PENSTOCK_BLOCK_SCALE_BYTES + i % block);
      return numeric::block_value(code, read<float>(base, record));
    }
    case PENSTOCK_F16:
      return numeric::widen<numeric::F16>(read<std::uint16_t>(base, i * 2));
    case PENSTOCK_BF16:
      return numeric::widen<numeric::Bf16>(read<std::uint16_t>(base, i * 2));
    case PENSTOCK_F8E4M3:
      return numeric::widen<numeric::F8e4m3>(read<std::uint8_t>(base, i));
    case PENSTOCK_F8E5M2:
      return numeric::widen<numeric::F8e5m2>(read<std::uint8_t>(base, i));
    case PENSTOCK_F32:
      return read<float>(base, i * 4);
    default:
      PENSTOCK_CHECK(false, "type {} is not folded in f32", type);
  }
}

void store_element(std::uint32_t type, void* base, std::uint64_t i, float value) {
  switch (type) {
    case PENSTOCK_F16:
      return write(base, i * 2, static_cast<std::uint16_t>(numeric::narrow<numeric::F16>(value)));
    case PENSTOCK_BF16:
      return write(base, i * 2, static_cast<std::uint16_t>(numeric::narrow<numeric::Bf16>(value)));
    case PENSTOCK_F8E4M3:
      return write(base, i, static_cast<std::uint8_t>(numeric::narrow<numeric::F8e4m3>(value)));
    case PENSTOCK_F8E5M2:
      return write(base, i, static_cast<std::uint8_t>(numeric::narrow<numeric::F8e5m2>(value)));
    case PENSTOCK_F32:
      return write(base, i * 4, numeric::canonical(value));
    default:
      PENSTOCK_CHECK(false, "type {} is not rounded from f32", type);
  }
}

// One record of block-scaled int8 from n values, n up to `block`.
void store_record(std::uint32_t block, void* record, const float* values, std::uint64_t n) {
  float largest = 0;
  for (std::uint64_t i = 0; i < n; ++i)
    largest = std::max(largest, numeric::block_magnitude(values[i]));
  const float scale = numeric::block_scale(largest);
  write(record, 0, scale);
  for (std::uint64_t i = 0; i < block; ++i)
    write(record, PENSTOCK_BLOCK_SCALE_BYTES + i,
          i < n ? numeric::block_code(values[i], 1.0f / scale) : std::int8_t{0});
}

template <typename T>
T step(std::uint32_t redop, T so_far, T next) {
  switch (redop) {
    case PENSTOCK_PROD:
      return so_far * next;
    case PENSTOCK_MIN:
      return numeric::minimum(so_far, next);
    case PENSTOCK_MAX:
      return numeric::maximum(so_far, next);
    default:
      return so_far + next;
  }
}

// One element of a fold in T, whose sources `load` gives.
template <typename T, typename Load>
T fold(const ReduceArguments& a, const T* weights, T multiplier, Load load) {
  const auto source = [&](std::uint32_t s) {
    if (weights != nullptr) return load(s) * weights[s];
    return a.redop == PENSTOCK_PREMUL_SUM ? load(s) * multiplier : load(s);
  };
  T value = source(0);
  for (std::uint32_t s = 1; s < a.n_src; ++s) value = step(a.redop, value, source(s));
  if (a.redop != PENSTOCK_AVG) return value;
  if (weights == nullptr) return value * (T{1} / static_cast<T>(a.n_src));
  T sum = weights[0];
  for (std::uint32_t s = 1; s < a.n_src; ++s) sum = sum + weights[s];
  return value * (T{1} / sum);
}

void fold_f64(const ReduceArguments& a) {
  const auto* weights = static_cast<const double*>(a.weights);
  for (std::uint64_t i = 0; i < a.count; ++i) {
    const double value = fold(a, weights, 1.0, [&](std::uint32_t s) {
      return read<double>(a.src[s], i * sizeof(double));
    });
    for (std::uint32_t d = 0; d < a.n_dst; ++d)
      write(a.dst[d], i * sizeof(double), numeric::canonical(value));
  }
}

}  // namespace

void scalar_fused_reduce(const ReduceArguments& a) {
  if (a.type == PENSTOCK_F64) return fold_f64(a);
  // A record of the result is made from all of its elements; what is not block-scaled takes the
  // same groups.
  constexpr std::uint64_t kGroup = 64;
  const std::uint64_t group = a.block != 0 ? a.block : kGroup;
  const auto* weights = static_cast<const float*>(a.weights);
  const auto multiplier = std::bit_cast<float>(static_cast<std::uint32_t>(a.scale));
  for (std::uint64_t first = 0; first < a.count; first += group) {
    const std::uint64_t n = std::min(group, a.count - first);
    float values[kGroup];
    for (std::uint64_t i = 0; i < n; ++i)
      values[i] = fold(a, weights, multiplier, [&](std::uint32_t s) {
        return element(a.type, a.block, a.src[s], first + i);
      });
    for (std::uint32_t d = 0; d < a.n_dst; ++d) {
      if (a.result_type() == PENSTOCK_INT8) {
        store_record(
            a.block,
            static_cast<char*>(a.dst[d]) + penstock_operand_bytes(PENSTOCK_INT8, a.block, first),
            values, n);
        continue;
      }
      for (std::uint64_t i = 0; i < n; ++i)
        store_element(a.result_type(), a.dst[d], first + i, values[i]);
    }
  }
}

void scalar_outer_step(const OuterStepArguments& a) {
  const float factor = 1.0f / static_cast<float>(a.n_src);
  for (std::uint64_t i = 0; i < a.count; ++i) {
    float sum = element(a.type, a.block, a.src[0], i);
    for (std::uint32_t s = 1; s < a.n_src; ++s) sum = sum + element(a.type, a.block, a.src[s], i);
    const float g = sum * factor;
    const float momentum = a.momentum_factor * read<float>(a.momentum, i * 4) + g;
    const float direction = a.momentum_factor * momentum + g;
    const float parameter = read<float>(a.parameters, i * 4) - a.learning_rate * direction;
    write(a.momentum, i * 4, numeric::canonical(momentum));
    write(a.parameters, i * 4, numeric::canonical(parameter));
  }
}

}  // namespace penstock
