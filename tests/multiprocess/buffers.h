// What the collectives between processes must give, written here element by element, and buffers
// that check it.
#ifndef PENSTOCK_TESTS_MULTIPROCESS_BUFFERS_H_
#define PENSTOCK_TESTS_MULTIPROCESS_BUFFERS_H_

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <list>
#include <span>
#include <string>
#include <vector>

#include "penstock/comm/call_check.h"
#include "penstock/comm/comm.h"

namespace penstock::test {

inline constexpr std::byte kGuard{0xa5};
inline constexpr std::size_t kGuardBytes = 64;

// A value that depends on everything it may be confused with.
inline std::uint64_t input(std::uint64_t seed, std::uint32_t rank, std::uint64_t index) {
  std::uint64_t z = seed * 0x9e3779b97f4a7c15ull + rank * 0xbf58476d1ce4e5b9ull + index;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}

// Element types as the test sees them: int64 sums wrap, f32 sums round at every step, so that a
// fold in another order shows.
struct Int64 {
  using Value = std::int64_t;
  static constexpr std::uint32_t type = PENSTOCK_INT64;
  static Value make(std::uint64_t bits) { return static_cast<Value>(bits); }
  static Value add(Value a, Value b) {
    return static_cast<Value>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
  }
};
struct F32 {
  using Value = float;
  static constexpr std::uint32_t type = PENSTOCK_F32;
  static Value make(std::uint64_t bits) {
    return std::ldexp(static_cast<float>(bits & 0xffffff) - 0x800000, int(bits >> 60) - 20);
  }
  static Value add(Value a, Value b) {
    const volatile float sum = a + b;
    return sum;
  }
};
struct Uint8 {
  using Value = std::uint8_t;
  static constexpr std::uint32_t type = PENSTOCK_UINT8;
  static Value make(std::uint64_t bits) { return static_cast<Value>(bits >> 13); }
  static Value add(Value a, Value b) { return static_cast<Value>(a + b); }
};

template <typename T>
typename T::Value reduced(std::uint64_t seed, std::uint32_t ranks, std::uint64_t index) {
  auto value = T::make(input(seed, 0, index));
  for (std::uint32_t r = 1; r < ranks; ++r) value = T::add(value, T::make(input(seed, r, index)));
  return value;
}

// What element `index` of rank's receive buffer must be; `send` buffers hold input(rank, index).
template <typename T>
typename T::Value expected(const Call& call, std::uint64_t seed, std::uint32_t rank,
                           std::uint32_t ranks, std::uint64_t index) {
  const std::uint64_t part = index / call.count;
  const std::uint64_t within = index % call.count;
  const auto from = [&](std::uint64_t r, std::uint64_t i) {
    return T::make(input(seed, static_cast<std::uint32_t>(r), i));
  };
  switch (call.collective) {
    case Collective::all_reduce:
    case Collective::reduce:
      return reduced<T>(seed, ranks, index);
    case Collective::broadcast:
      return from(call.root, index);
    case Collective::all_gather:
    case Collective::gather:
      return from(part, within);
    case Collective::reduce_scatter:
      return reduced<T>(seed, ranks, rank * call.count + index);
    case Collective::all_to_all:
      return from(part, rank * call.count + within);
    case Collective::scatter:
      return from(call.root, rank * call.count + index);
    default:
      return from(call.root, index);
  }
}

// Buffers of one rank for one call, with guard bytes around what the call may write.
template <typename T>
class Buffers {
 public:
  using Value = typename T::Value;
  // `memory` gives the memory of the buffers, which outlives this; by default it is private.
  using Memory = std::function<std::byte*(std::uint64_t bytes)>;
  Buffers(Call& call, std::uint64_t seed, std::uint32_t rank, std::uint32_t ranks, bool in_place,
          const Memory& send_memory = {}, const Memory& recv_memory = {})
      : call_(call), seed_(seed), rank_(rank), ranks_(ranks) {
    const BufferBytes bytes = buffer_bytes(call, rank, ranks);
    const std::uint64_t span = std::max(bytes.send, bytes.recv);
    send_ = guarded(in_place ? span : bytes.send, send_memory);
    recv_ = guarded(in_place ? 0 : bytes.recv, recv_memory);
    std::byte* send = send_.data() + kGuardBytes;
    std::byte* recv = in_place ? send : recv_.data() + kGuardBytes;
    const std::uint64_t own = rank * call.count * sizeof(Value);
    if (in_place && bytes.send < bytes.recv) send += own;  // all_gather, gather
    if (in_place && bytes.recv < bytes.send) recv += own;  // reduce_scatter, scatter
    for (std::uint64_t i = 0; i < bytes.send / sizeof(Value); ++i) {
      const Value value = T::make(input(seed, rank, i));
      std::memcpy(send + i * sizeof(Value), &value, sizeof(Value));
    }
    call.send = bytes.send > 0 ? send : nullptr;
    call.recv = bytes.recv > 0 ? recv : nullptr;
    recv_bytes_ = bytes.recv;
    in_place_ = in_place;
  }

  std::string verify() const {
    const auto* recv = static_cast<const std::byte*>(call_.recv);
    for (std::uint64_t i = 0; i < recv_bytes_ / sizeof(Value); ++i) {
      Value got;
      std::memcpy(&got, recv + i * sizeof(Value), sizeof(Value));
      const Value want = expected<T>(call_, seed_, rank_, ranks_, i);
      if (std::memcmp(&got, &want, sizeof(Value)) != 0) {
        return fmt::format("{} of {} x {} root {} in_place {}: element {} is {}, not {}",
                           collective_name(call_.collective), call_.count,
                           penstock_type_name(T::type), call_.root, in_place_, i, +got, +want);
      }
    }
    for (const std::span<std::byte>& buffer : {send_, recv_}) {
      for (std::size_t i = 0; i < kGuardBytes; ++i) {
        if (buffer[i] != kGuard || buffer[buffer.size() - 1 - i] != kGuard) {
          return fmt::format("{}: wrote outside of a buffer", collective_name(call_.collective));
        }
      }
    }
    return "";
  }

 private:
  const Call& call_;
  std::uint64_t seed_;
  std::uint32_t rank_, ranks_;
  std::span<std::byte> guarded(std::uint64_t bytes, const Memory& memory) {
    const std::uint64_t size = bytes + 2 * kGuardBytes;
    std::byte* place = nullptr;
    if (memory) {
      place = memory(size);
    } else {
      private_.emplace_back(size);
      place = private_.back().data();
    }
    std::fill_n(place, size, kGuard);
    return {place, size};
  }

  std::list<std::vector<std::byte>> private_;
  std::span<std::byte> send_, recv_;
  std::uint64_t recv_bytes_ = 0;
  bool in_place_ = false;
};

inline constexpr Collective kAll[] = {
    Collective::all_reduce,     Collective::broadcast,  Collective::reduce, Collective::all_gather,
    Collective::reduce_scatter, Collective::all_to_all, Collective::gather, Collective::scatter};

}  // namespace penstock::test
#endif
