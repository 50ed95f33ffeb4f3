// From which sizes on a comm does what: the numbers that `penstock tune` measures. All ranks of a
// comm use the same, because plans depend on them: those of the rank that makes the comm.
#ifndef PENSTOCK_COMM_TUNING_H_
#define PENSTOCK_COMM_TUNING_H_

#include <cstdint>

#include "penstock/base/status.h"

namespace penstock {

// The bytes are of one part of a call (see plan.h). They never change what a result is, only how
// it comes about.
struct Tuning {
  // Up to here payload travels with its flag in the cache line (inline_block.h).
  std::uint32_t inline_bytes = 4096;
  // all_reduce: everybody reads all inputs while n parts are at most this.
  std::uint32_t one_shot_bytes = 128 * 1024;
  // reduce: everybody folds a shard from here on.
  std::uint32_t sharded_bytes = 256 * 1024;
  // A part (or shard) of at least this moves in `chunks` chunks, each published on its own.
  std::uint32_t chunk_bytes = 64 * 1024;
  std::uint32_t chunks = 4;
  // 1: on coherent memory, who folds writes the result straight into receive buffers that others
  // offer, which saves them a copy. But a rank that is stopped in the middle of that and wakes
  // after the others gave it up still writes into their buffers. 0: nobody writes into a buffer of
  // another.
  std::uint32_t push = 0;
  bool operator==(const Tuning&) const = default;
};

// What each rank decides for itself.
struct LocalTuning {
  // Buffers that lie in the pool are used where they are from here on; below, a copy costs less
  // than telling everybody where they are.
  std::uint64_t expose_bytes = 2 * 1024;
  // Calls that write at least this stream their results past the cache.
  std::uint64_t stream_bytes = std::uint64_t{2} << 20;
  bool operator==(const LocalTuning&) const = default;
};

// invalid_argument names the field: chunks 1..64, inline_bytes up to 64 KiB, chunk_bytes at least
// 64.
Status check_tuning(const Tuning& tuning);

}  // namespace penstock
#endif
