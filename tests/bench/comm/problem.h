// What is measured: one collective of one type and size. Root is rank 0 throughout.
//
// `bytes` follows nccl-tests: the whole vector of all_reduce, broadcast, reduce and send_recv;
// ranks times one rank's part for the others. Inputs are small whole numbers, so that every type
// and every order of a fold gives the same sum, and a result can be held against a formula.
#ifndef PENSTOCK_TESTS_BENCH_COMM_PROBLEM_H_
#define PENSTOCK_TESTS_BENCH_COMM_PROBLEM_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace penstock::bench {

inline constexpr std::uint32_t kMaxRanks = 16;

enum class Collective {
  all_reduce,
  broadcast,
  reduce,
  all_gather,
  reduce_scatter,
  all_to_all,
  gather,
  scatter,
  send_recv,
  barrier,
  count
};
enum class Type { f32, bf16, int8, count };

const char* collective_name(Collective collective);
const char* type_name(Type type);
std::optional<Collective> parse_collective(const std::string& name);
std::optional<Type> parse_type(const std::string& name);
std::size_t type_bytes(Type type);

struct Problem {
  Collective collective = Collective::barrier;
  Type type = Type::f32;
  std::uint32_t ranks = 1;
  std::uint64_t count = 0;  // elements of the vector, or of one rank's part

  // At least one element of each part.
  static Problem make(Collective collective, Type type, std::uint32_t ranks, std::uint64_t bytes);
  bool in_parts() const;  // count is of one rank's part
  std::uint64_t part_bytes() const { return count * type_bytes(type); }
  // What the rank gives and gets; 0 where it has nothing to give or get. A broadcast is in place:
  // the root gives what stands in its recv buffer.
  std::uint64_t send_bytes(std::uint32_t rank) const;
  std::uint64_t recv_bytes(std::uint32_t rank) const;
};

// Fills the rank's input (of a broadcast: the root's recv buffer), clears its output.
void fill(const Problem& problem, std::uint32_t rank, void* send, void* recv);
// Whether the rank's output is right; every element is looked at.
bool is_right(const Problem& problem, std::uint32_t rank, const void* recv);

}  // namespace penstock::bench
#endif
