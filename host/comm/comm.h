// A comm: a group of ranks, each a process, that meet through a pool.
#ifndef PENSTOCK_COMM_COMM_H_
#define PENSTOCK_COMM_COMM_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "penstock/comm/plan.h"
#include "penstock/engine/engine.h"
#include "penstock/memory/pool.h"

namespace penstock {

struct CommConfig {
  std::string name = "world";  // 1..31 bytes; the ranks of one comm give the same
  std::uint32_t rank = 0;
  std::uint32_t size = 1;  // 1..64
  // A name, a list with commas, or auto (engine/choice.h), which is the list of all that it may
  // take. Ranks may have different engines; results are the same bits. When an engine
  //   - cannot be made: the next of the list is taken; without one, join() has that error;
  //   - lacks an operation or type: the host does those steps, and the log says so once;
  //   - does not reach a buffer: its bytes are staged through the pool;
  //   - fails or is lost in the middle of a call (io_error, no_space, internal), or cannot work on
  //     this pool: the next of the list does again what was under way, and stays; the log says so.
  //     Without one, or if a reduction in place was under way, whose source may be gone, the comm
  //     is revoked on every rank. No rank ever takes for a result what an engine failed to write.
  // A comm that comes out of this one begins with the engine that this one has at the end.
  std::string engine = "auto";
  std::uint32_t timeout_ms = 30000;     // deadline of every wait, rendezvous included; at least 1
  std::uint64_t rank_bytes = 1u << 20;  // payload of one rank and pass; halved until it fits
  enum class Wait { automatic, spin, yield } wait = Wait::automatic;
  Tuning tuning;  // the first rank to come decides for all
  // Ranks of a group, a divisor of `size`; 0, 1 or all: one level. It decides what a reduction is
  // (plan.h, Topology), so that all ranks give the same. A comm that comes out of this one has the
  // same groups if they divide its ranks, else one level.
  std::uint32_t group = 0;
  LocalTuning local;
  // Waits for a comm of this name that grows (Comm::grow), and takes a free rank in it; rank and
  // size come from there.
  bool newcomer = false;
};

// One collective call, with the same values on every rank (except pointers).
// count is in elements of `type`: of the whole vector for all_reduce, broadcast, reduce, send_recv;
// of one rank's part for all_gather, gather, reduce_scatter, scatter, all_to_all (a buffer of parts
// has size * count elements, part r at r * count). barrier has none.
// In place: recv == send for all_reduce, broadcast, reduce, all_to_all; send == recv + rank * count
// for all_gather and (at the root) gather; recv == send + rank * count for reduce_scatter and (at
// the root) scatter. Any other overlap of the buffers is refused.
// Buffers that a rank does not need may be null: recv of reduce and gather, send of broadcast and
// scatter, at every rank but the root.
struct Call {
  Collective collective = Collective::barrier;
  const void* send = nullptr;
  void* recv = nullptr;
  std::uint64_t count = 0;
  std::uint32_t type = PENSTOCK_UINT8;
  std::uint32_t redop = PENSTOCK_SUM;
  std::uint64_t scale = 0;  // PREMUL_SUM only; see descriptor.h
  std::uint32_t root = 0;   // or the peer of send_recv
  bool sender = false;      // send_recv: this rank sends to `root`; else it receives from it
};

// What the calls of one rank did since the comm was made.
struct CommCounters {
  std::uint64_t calls = 0;
  std::uint64_t passes = 0;
  std::uint64_t descriptors = 0;
  std::uint64_t pool_bytes_written = 0;  // by this rank's engine
  std::uint64_t pool_bytes_read = 0;
};

class Statistics;  // statistics.h

// A call on its way. Handle; destroying it does not cancel the call.
class Request;

// One thread at a time. Calls on one comm run in the order in which they were made, and every rank
// makes them in the same order; send_recv is ordered per pair of ranks and direction only.
// Non-blocking calls make progress inside test(), wait() and every other call on the comm.
class Comm {
 public:
  // Meets the other ranks in the pool (which outlives the comm). Errors: deadline_exceeded (names
  // the ranks that did not come), already_exists (this rank is held by a live process, named),
  // mismatch (the others gave another size, both named), no_space, peer_dead.
  static Result<std::unique_ptr<Comm>> join(Pool& pool, const CommConfig& config);
  // Leaves; the last rank frees the comm's regions. Never blocks on others.
  virtual ~Comm() = default;

  virtual std::uint32_t rank() const = 0;
  virtual std::uint32_t size() const = 0;
  virtual std::uint64_t epoch() const = 0;
  virtual const Capabilities& engine() const = 0;
  virtual CommCounters counters() const = 0;
  // Times and latencies, while trace::times_enabled(). Lives as long as the comm.
  virtual const Statistics& statistics() const = 0;
  // The plan of the first pass that `call` would run.
  virtual Result<std::shared_ptr<const Plan>> plan(const Call& call) = 0;

  // Blocking: returns when this rank's buffers are final (recv) and free (send). After an error the
  // comm is revoked: peer_dead, deadline_exceeded (both name the rank), revoked, mismatch.
  virtual Status run(const Call& call) = 0;

  // Non-blocking. Buffers stay the caller's to keep and not to touch until the request is done.
  virtual Result<std::shared_ptr<Request>> start(const Call& call) = 0;
  virtual Result<bool> test(Request& request) = 0;
  virtual Status wait(Request& request) = 0;

  // Tells every rank to give up; their calls return revoked. Idempotent, callable in any state.
  virtual void abort(const std::string& reason) = 0;
  // ok, or why the comm is revoked.
  virtual Status health() = 0;

  // The same as abort, with the rank as the reason: pending and later calls of every rank return
  // revoked. Idempotent.
  virtual void revoke() = 0;
  // Every survivor calls it, and gets a comm of those who are left: epoch + 1, dense ranks in the
  // old order. A rank that died or left, or that has not called it before the deadline, is out; if
  // it comes later, its call returns revoked, and what it may have been writing to is reused only
  // once it has left or died. This comm is revoked, and takes no part in anything any more. Errors:
  // revoked (the others went on without this rank), deadline_exceeded, no_space. More ranks may
  // fail meanwhile.
  virtual Result<std::unique_ptr<Comm>> shrink() = 0;
  // Every rank calls it with the same size; CommConfig::newcomer processes take the ranks from
  // size() on. The new comm has epoch + 1; this one stays as it is. Errors: deadline_exceeded
  // (names the ranks that did not come), peer_dead, mismatch, no_space.
  virtual Result<std::unique_ptr<Comm>> grow(std::uint32_t size) = 0;
  // Every rank calls it: one comm for each color, with ranks in the order of (key, old rank). Null
  // for a negative color. This comm stays as it is. Errors: those of run; no_space.
  virtual Result<std::unique_ptr<Comm>> split(std::int32_t color, std::int32_t key) = 0;
};

class Request {
 public:
  virtual ~Request() = default;
  virtual bool done() const = 0;
  virtual Status status() const = 0;  // of a request that is done
};

}  // namespace penstock
#endif
