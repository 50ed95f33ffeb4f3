#include "penstock/sim/incoherent/expectation.h"

#include <cmath>
#include <cstring>
#include <type_traits>

#include "penstock/base/status.h"

namespace penstock::sim {
namespace {

template <typename T>
T element(std::uint64_t bits) {
  if constexpr (std::is_floating_point_v<T>) {
    const auto mantissa = static_cast<T>(static_cast<std::int64_t>(bits & 0xffffff) - 0x800000);
    return std::ldexp(mantissa + T(0.5), static_cast<int>(bits >> 60) - 24);
  } else {
    return static_cast<T>(bits >> 8);
  }
}

template <typename T>
T wrap(std::uint64_t value) {
  return static_cast<T>(value);
}

template <typename T>
T combine(std::uint32_t redop, T a, T b) {
  if (redop == PENSTOCK_MIN) return b < a ? b : a;
  if (redop == PENSTOCK_MAX) return a < b ? b : a;
  if constexpr (std::is_floating_point_v<T>) {
    const volatile T result = redop == PENSTOCK_PROD ? a * b : a + b;
    return result;
  } else {
    const auto x = static_cast<std::uint64_t>(a);
    const auto y = static_cast<std::uint64_t>(b);
    return wrap<T>(redop == PENSTOCK_PROD ? x * y : x + y);
  }
}

// The fold over all ranks of the element with this index.
template <typename T>
T folded(const Call& call, std::uint32_t size, const Inputs& inputs, std::uint64_t index) {
  T result = element<T>(inputs(0, index));
  for (std::uint32_t rank = 1; rank < size; ++rank) {
    result = combine<T>(call.redop, result, element<T>(inputs(rank, index)));
  }
  if (call.redop != PENSTOCK_AVG || size == 1) return result;
  if constexpr (std::is_floating_point_v<T>) {
    return result * (T(1) / static_cast<T>(size));
  } else if constexpr (std::is_signed_v<T>) {
    return static_cast<T>(static_cast<std::int64_t>(result) / static_cast<std::int64_t>(size));
  } else {
    return static_cast<T>(result / size);
  }
}

template <typename T>
std::vector<std::byte> result_of(const Call& call, std::uint32_t rank, std::uint32_t size,
                                 const Inputs& inputs) {
  std::vector<T> out;
  const auto part = [&](std::uint32_t from, std::uint64_t first) {
    for (std::uint64_t i = 0; i < call.count; ++i)
      out.push_back(element<T>(inputs(from, first + i)));
  };
  const auto fold = [&](std::uint64_t first) {
    for (std::uint64_t i = 0; i < call.count; ++i) {
      out.push_back(folded<T>(call, size, inputs, first + i));
    }
  };
  const std::uint64_t own = rank * call.count;
  switch (call.collective) {
    case Collective::all_reduce:
      fold(0);
      break;
    case Collective::reduce:
      if (rank == call.root) fold(0);
      break;
    case Collective::reduce_scatter:
      fold(own);
      break;
    case Collective::broadcast:
      part(call.root, 0);
      break;
    case Collective::scatter:
      part(call.root, own);
      break;
    case Collective::send_recv:
      if (!call.sender) part(call.root, 0);
      break;
    case Collective::gather:
      for (std::uint32_t from = 0; from < size && rank == call.root; ++from) part(from, 0);
      break;
    case Collective::all_gather:
      for (std::uint32_t from = 0; from < size; ++from) part(from, 0);
      break;
    case Collective::all_to_all:
      for (std::uint32_t from = 0; from < size; ++from) part(from, own);
      break;
    case Collective::barrier:
      break;
  }
  const auto* bytes = reinterpret_cast<const std::byte*>(out.data());
  return {bytes, bytes + out.size() * sizeof(T)};
}

// Calls `action` with a value of the type.
template <typename Action>
auto with_type(std::uint32_t type, Action action) {
  switch (type) {
    case PENSTOCK_INT8:
      return action(std::int8_t{});
    case PENSTOCK_UINT8:
      return action(std::uint8_t{});
    case PENSTOCK_INT32:
      return action(std::int32_t{});
    case PENSTOCK_UINT32:
      return action(std::uint32_t{});
    case PENSTOCK_INT64:
      return action(std::int64_t{});
    case PENSTOCK_UINT64:
      return action(std::uint64_t{});
    case PENSTOCK_F32:
      return action(float{});
    default:
      PENSTOCK_CHECK(type == PENSTOCK_F64, "type {} does not occur in scenarios", type);
      return action(double{});
  }
}

}  // namespace

bool is_plain_type(std::uint32_t type) {
  return type <= PENSTOCK_UINT64 || type == PENSTOCK_F32 || type == PENSTOCK_F64;
}

void store_element(std::uint32_t type, std::uint64_t bits, void* at) {
  with_type(type, [&](auto zero) {
    const auto value = element<decltype(zero)>(bits);
    std::memcpy(at, &value, sizeof value);
  });
}

std::vector<std::byte> expected_result(const Call& call, std::uint32_t rank, std::uint32_t size,
                                       const Inputs& inputs) {
  return with_type(call.type,
                   [&](auto zero) { return result_of<decltype(zero)>(call, rank, size, inputs); });
}

}  // namespace penstock::sim
