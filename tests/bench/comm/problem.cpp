#include "problem.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace penstock::bench {
namespace {

constexpr std::array kCollectives = {"all_reduce",     "broadcast",  "reduce", "all_gather",
                                     "reduce_scatter", "all_to_all", "gather", "scatter",
                                     "send_recv",      "barrier"};
constexpr std::array kTypes = {"f32", "bf16", "int8"};
constexpr std::array<std::size_t, 3> kTypeBytes = {4, 2, 1};

// Element i of what rank r gives.
float input(std::uint32_t rank, std::uint64_t index) {
  return static_cast<float>(rank + 1 + index % 3);
}

void store(Type type, void* data, std::uint64_t index, float value) {
  auto* const at = static_cast<std::byte*>(data) + index * type_bytes(type);
  if (type == Type::f32) {
    std::memcpy(at, &value, sizeof value);
  } else if (type == Type::bf16) {
    std::memcpy(at, reinterpret_cast<const std::byte*>(&value) + 2, 2);
  } else {
    const auto byte = static_cast<std::int8_t>(value);
    std::memcpy(at, &byte, 1);
  }
}

float load(Type type, const void* data, std::uint64_t index) {
  const auto* const at = static_cast<const std::byte*>(data) + index * type_bytes(type);
  float value = 0;
  if (type == Type::f32) {
    std::memcpy(&value, at, sizeof value);
  } else if (type == Type::bf16) {
    std::memcpy(reinterpret_cast<std::byte*>(&value) + 2, at, 2);
  } else {
    std::int8_t byte = 0;
    std::memcpy(&byte, at, 1);
    value = byte;
  }
  return value;
}

float folded(const Problem& problem, std::uint64_t index) {
  float sum = 0;
  for (std::uint32_t rank = 0; rank < problem.ranks; ++rank) sum += input(rank, index);
  return sum;
}

// Element i of what the rank has to get.
float expected(const Problem& problem, std::uint32_t rank, std::uint64_t index) {
  const std::uint64_t part = problem.count == 0 ? 0 : index / problem.count;
  const std::uint64_t within = problem.count == 0 ? 0 : index % problem.count;
  switch (problem.collective) {
    case Collective::all_reduce:
    case Collective::reduce:
      return folded(problem, index);
    case Collective::broadcast:
      return input(0, index);
    case Collective::all_gather:
    case Collective::gather:
      return input(static_cast<std::uint32_t>(part), within);
    case Collective::reduce_scatter:
      return folded(problem, rank * problem.count + index);
    case Collective::all_to_all:
      return input(static_cast<std::uint32_t>(part), rank * problem.count + within);
    case Collective::scatter:
      return input(0, rank * problem.count + index);
    case Collective::send_recv:
      return input(rank - 1, index);
    default:
      return 0;
  }
}

template <typename Names>
std::optional<std::size_t> index_of(const Names& names, const std::string& name) {
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) return std::nullopt;
  return static_cast<std::size_t>(found - names.begin());
}

}  // namespace

const char* collective_name(Collective collective) {
  return kCollectives.at(static_cast<std::size_t>(collective));
}
const char* type_name(Type type) { return kTypes.at(static_cast<std::size_t>(type)); }
std::size_t type_bytes(Type type) { return kTypeBytes.at(static_cast<std::size_t>(type)); }

std::optional<Collective> parse_collective(const std::string& name) {
  const auto index = index_of(kCollectives, name);
  return index ? std::optional(static_cast<Collective>(*index)) : std::nullopt;
}
std::optional<Type> parse_type(const std::string& name) {
  const auto index = index_of(kTypes, name);
  return index ? std::optional(static_cast<Type>(*index)) : std::nullopt;
}

Problem Problem::make(Collective collective, Type type, std::uint32_t ranks, std::uint64_t bytes) {
  Problem problem{collective, type, ranks, 0};
  if (collective == Collective::barrier) return problem;
  const std::uint64_t elements = bytes / type_bytes(type);
  problem.count = std::max<std::uint64_t>(1, problem.in_parts() ? elements / ranks : elements);
  return problem;
}

bool Problem::in_parts() const {
  return collective == Collective::all_gather || collective == Collective::reduce_scatter ||
         collective == Collective::all_to_all || collective == Collective::gather ||
         collective == Collective::scatter;
}

std::uint64_t Problem::send_bytes(std::uint32_t rank) const {
  switch (collective) {
    case Collective::broadcast:
    case Collective::barrier:
      return 0;
    case Collective::reduce_scatter:
    case Collective::all_to_all:
      return part_bytes() * ranks;
    case Collective::scatter:
      return rank == 0 ? part_bytes() * ranks : 0;
    case Collective::send_recv:
      return rank % 2 == 0 && rank + 1 < ranks ? part_bytes() : 0;
    default:
      return part_bytes();
  }
}

std::uint64_t Problem::recv_bytes(std::uint32_t rank) const {
  switch (collective) {
    case Collective::barrier:
      return 0;
    case Collective::all_gather:
    case Collective::all_to_all:
      return part_bytes() * ranks;
    case Collective::gather:
      return rank == 0 ? part_bytes() * ranks : 0;
    case Collective::reduce:
      return rank == 0 ? part_bytes() : 0;
    case Collective::send_recv:
      return rank % 2 == 1 ? part_bytes() : 0;
    default:
      return part_bytes();
  }
}

void fill(const Problem& problem, std::uint32_t rank, void* send, void* recv) {
  std::memset(recv, 0, problem.recv_bytes(rank));
  const bool in_place = problem.collective == Collective::broadcast;
  void* const data = in_place ? recv : send;
  const std::uint64_t bytes =
      in_place ? (rank == 0 ? problem.part_bytes() : 0) : problem.send_bytes(rank);
  const std::uint64_t elements = bytes / type_bytes(problem.type);
  for (std::uint64_t i = 0; i < elements; ++i) store(problem.type, data, i, input(rank, i));
}

bool is_right(const Problem& problem, std::uint32_t rank, const void* recv) {
  const std::uint64_t elements = problem.recv_bytes(rank) / type_bytes(problem.type);
  for (std::uint64_t i = 0; i < elements; ++i) {
    if (load(problem.type, recv, i) != expected(problem, rank, i)) return false;
  }
  return true;
}

}  // namespace penstock::bench
