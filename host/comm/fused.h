// Collectives that do more than a plan's fold on their way: conversion, weights, block-scaled int8
// and the outer step of local-update training (descriptor.h, "Conversion" to "Outer step").
//
// Buffers may be in a device's memory; they are copied as a whole then.
//
// Each is two collectives of the comm with one descriptor between them: all_to_all hands every rank
// its shard of every vector, the engine folds the shard once, all_gather hands the results round.
// Bytes that cross the pool are in the exchanged form: `type` on the way in, `out_type` on the way
// out, or block-scaled int8 both ways. A shard is the same number of elements for every rank; the
// last ones may be short or empty.
#ifndef PENSTOCK_COMM_FUSED_H_
#define PENSTOCK_COMM_FUSED_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "penstock/comm/comm.h"

namespace penstock {

// With the same values on every rank, except the pointers.
struct FusedCall {
  const void* send = nullptr;  // count elements of `type`
  void* recv = nullptr;        // count elements of `out_type`; may be `send` where the types agree
  std::uint64_t count = 0;
  std::uint32_t type = PENSTOCK_F32;
  std::uint32_t out_type = PENSTOCK_F32;
  std::uint32_t redop = PENSTOCK_SUM;
  std::uint64_t scale = 0;  // PREMUL_SUM only
  // 32 or 64: vectors are quantised to int8 in blocks before they are exchanged, folded in f32,
  // quantised again, and converted to out_type at the end; about a quarter of f32's bytes.
  std::uint32_t block = 0;
};

// One outer step. Parameters are the same on every rank, before and after; momentum is sharded.
struct OuterStepCall {
  const void* deltas = nullptr;  // count elements of `type`: old parameters minus trained ones
  float* parameters = nullptr;   // count, in place
  float* momentum = nullptr;     // shard(count) elements, this rank's; all zero before the first
  std::uint64_t count = 0;
  std::uint32_t type = PENSTOCK_F32;
  std::uint32_t block = 0;  // of the deltas' exchange, as above
  float learning_rate = 0;
  float momentum_factor = 0;
};

// Belongs to one comm, which outlives it, and counts as a use of it: one thread at a time, every
// rank makes the same calls in the same order. Keeps its staging memory from call to call (at most
// three times the exchanged vector). Errors are those of Comm::run, after which the comm is
// revoked, and those below, which leave the comm as it was: unsupported (no such conversion, or the
// engine has none) and invalid_argument. They depend on what is the same on every rank, except that
// a null pointer is seen where it is.
class Fused {
 public:
  // The engine works in host memory; its name as for make_engine.
  static Result<std::unique_ptr<Fused>> create(Comm& comm, const std::string& engine = "auto");

  // The fold of all ranks' vectors in rank order, rounded once to out_type: the bits of one REDUCE
  // (with `block`: of a REDUCE of the quantised vectors into blocks, converted to out_type).
  Status all_reduce(const FusedCall& call);

  // The average with a weight per rank, rounded once; call.redop is AVG and call.type a float. A
  // rank of weight 0 is absent: its vector is exchanged, but takes no part, whatever it holds.
  // invalid_argument on every rank when all are absent; nothing is written then. The weight is
  // rounded to f32, but for f64.
  Status average(const FusedCall& call, double weight);

  Status outer_step(const OuterStepCall& call);

  // Elements of one rank's shard.
  std::uint64_t shard(std::uint64_t count, std::uint32_t block = 0) const;

 private:
  // Who has what of a call's elements, and in which form they are exchanged.
  struct Layout {
    std::uint64_t shard;      // elements
    std::uint64_t here;       // of them in this rank's shard
    std::uint32_t in, out;    // exchanged types
    std::uint64_t in_bytes;   // of a shard on the way in
    std::uint64_t out_bytes;  // of a shard on the way out
    bool whole;               // no shard is short, so that a vector is exchanged where it is
  };

  Fused(Comm& comm, std::shared_ptr<Engine> engine, std::unique_ptr<Queue> queue);

  Layout layout(std::uint64_t count, std::uint32_t type, std::uint32_t out_type,
                std::uint32_t block) const;
  // The three with buffers that the process reaches.
  Status all_reduce_here(const FusedCall& call);
  Status average_here(const FusedCall& call, double weight);
  Status outer_step_here(const OuterStepCall& call);
  Status accepts(const penstock_descriptor& descriptor, const char* what) const;
  Status execute(const penstock_descriptor& descriptor);
  // Leaves every rank's part of this rank's shard, one after another, in incoming_.
  Status exchange(const void* send, std::uint64_t count, std::uint32_t type, std::uint32_t block,
                  const Layout& layout);
  // Sets the sources of a fold of incoming_.
  void set_sources(const Layout& layout, penstock_descriptor* descriptor);
  Status fold(const FusedCall& call, penstock_descriptor descriptor);

  Comm& comm_;
  const std::shared_ptr<Engine> engine_;
  const std::unique_ptr<Queue> queue_;
  std::vector<penstock_address> list_;
  std::vector<std::byte> outgoing_, incoming_, gathered_, shard_;
};

}  // namespace penstock
#endif
