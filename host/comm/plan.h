// A plan: the steps that each rank runs for one pass of a collective. Pure data.
//
// A **pass** moves at most the payload that fits into one half of the comm's scratch memory; a
// larger call is a sequence of passes, and consecutive passes alternate between the two halves, so
// that a rank may write pass p + 1 while others still read pass p. A plan therefore speaks of
// blocks (indices into its own table, placed at offsets of a half), of parts of the user's buffers
// (resolved with the call's stride and the pass's offset when it is run), and of fences relative to
// their values at the start of the pass. It holds no address, so that it can be cached, printed,
// checked and priced without running it.
//
// Every rank of a lane has one fence: its progress. A `signal` step raises the own fence by one;
// value v of a `wait` means "the rank has executed its v-th signal of this pass". Because a rank's
// steps run in order, one counter per rank suffices for all that it publishes and for all that it
// has finished reading.
//
// A block of a small pass is **inlined**: its payload travels with its flag in the cache line
// (inline_block.h), so that writing it publishes it and reading it waits for it, with no signal and
// no wait. Such blocks have more than two halves; "the pass before the previous one" is for them
// the pass that used the memory before.
//
// A block that **mirrors** bytes of its writer's buffers holds a copy of them until the end of the
// call. If the buffer itself lies in the pool, its writer can skip the copy and tell the readers
// where the buffer is (lane.h); the steps are the same.
//
// Rules that every plan keeps (the checker proves them, plan_checker.h):
//   - `reuse` on rank q waits until q has finished the pass before the previous one. Before its
//     first write of a block a rank has made sure of that for every other rank (by `reuse`, or by a
//     `wait` that implies it): the previous use of the half may have been any other plan.
//   - a rank's last read or write of any block is followed by a signal.
//   - a REDUCE lists its sources in rank order: the fold's definition.
#ifndef PENSTOCK_COMM_PLAN_H_
#define PENSTOCK_COMM_PLAN_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "penstock/base/status.h"
#include "penstock/comm/tuning.h"

namespace penstock {

inline constexpr std::uint32_t kMaxRanks = 64;                          // sources of one REDUCE
inline constexpr std::uint64_t kMaxPartBytes = std::uint64_t{1} << 40;  // of a part in one pass

enum class Collective : std::uint8_t {
  all_reduce,
  broadcast,
  reduce,
  all_gather,
  reduce_scatter,
  all_to_all,
  gather,
  scatter,
  send_recv,  // ranks 0 (sender) and 1 (receiver) of a lane of two
  barrier,
};
inline constexpr int kCollectives = 10;
const char* collective_name(Collective collective);
Result<Collective> parse_collective(const std::string& name);  // not_found lists the names
bool has_root(Collective collective);
bool reduces(Collective collective);

// Where payload and fences live. Bulk traffic starves small accesses, so fences get a device of
// their own where there is more than one.
struct Topology {
  std::uint32_t ranks = 1;
  std::uint32_t payload_devices = 1;  // numbered 0.. in plans; the comm maps them to the pool's
  // Ranks of a group, a divisor of `ranks`: ranks 0 .. group - 1 are the first group, and so on. 0,
  // 1 or all: there is one level. It decides what a reduction is: with groups, each group's ranks
  // are folded in rank order, that result is rounded to the type, and the groups' results are
  // folded in their order. AVG is the average of the groups' averages; PREMUL_SUM multiplies the
  // inputs.
  std::uint32_t group = 0;
  bool is_grouped() const { return group > 1 && group < ranks; }
  std::uint32_t groups() const { return is_grouped() ? ranks / group : 1; }
  bool operator==(const Topology&) const = default;
};

// What determines a plan.
struct PlanKey {
  Collective collective = Collective::barrier;
  Topology topology;
  std::uint32_t root = 0;           // ignored where has_root() is false
  std::uint32_t element_bytes = 1;  // power of two up to 64; blocks are split at multiples of it
  std::uint64_t part_bytes = 0;     // bytes of one part in this pass (see Space)
  bool in_place = false;            // the self copy of all_gather, gather, scatter, all_to_all is
                                    // not needed; broadcast at the root, reduce: recv is send
  std::string algorithm = "auto";   // or a name that list_algorithms() gives
  std::uint32_t inline_lines = 0;   // room for inlined blocks: lines per rank and half
  Tuning tuning = {};
  bool operator==(const PlanKey&) const = default;
};

// `send` and `recv` are the caller's buffers, made of parts: one part for all_reduce, broadcast,
// reduce, send_recv, for the send side of all_gather and gather, and for the receive side of
// reduce_scatter and scatter; `ranks` parts otherwise (part r belongs to rank r).
enum class Space : std::uint8_t { send, recv, block };

struct Slice {
  Space space = Space::send;
  std::uint32_t index = 0;   // part number, or index into Plan::blocks
  std::uint64_t offset = 0;  // bytes into the part's bytes of this pass, or into the block
  std::uint64_t bytes = 0;
  bool operator==(const Slice&) const = default;
};

enum class StepKind : std::uint8_t { copy, reduce, signal, wait, reuse };
const char* step_kind_name(StepKind kind);

struct Step {
  StepKind kind = StepKind::copy;
  std::uint32_t rank = 0;   // wait, reuse: whose fence
  std::uint32_t value = 0;  // wait, signal: relative to the fence at the start of the pass
  std::vector<Slice> src;   // copy: one; reduce: one per rank (of a group), in rank order
  std::vector<Slice> dst;   // 1..3, all of the sources' length
  bool combines = false;    // reduce: the sources are folds of groups, one per group in their order
};

// A line-aligned range of a half of the scratch memory, written by one rank in this pass. An
// inlined block lies in its writer's own half for such blocks, beside the fences.
struct Block {
  std::uint32_t writer = 0;
  std::uint32_t device = 0;  // payload device; 0 if inlined
  std::uint64_t offset = 0;  // within the half, multiple of 64
  std::uint64_t bytes = 0;   // payload; the block occupies whole lines
  bool inlined = false;
  Slice mirror = {};  // of the writer's send or recv; bytes 0: of nothing
  // Written after its readers have said that they are ready: where the tuning allows it, the writer
  // puts the bytes straight into the receive buffers that they offer.
  bool pushable = false;
};

// With one rank there is nothing but local steps ("local"; a reduction is a REDUCE of one source,
// so that a pre-multiplied sum multiplies), and with part_bytes 0 there are no steps at all, except
// those of the barrier: a call of zero bytes does not synchronise.
struct Plan {
  PlanKey key;
  std::string algorithm;   // the one chosen, or "local"
  std::string definition;  // how the result is defined, for people: "left fold ..."
  std::vector<Block> blocks;
  std::vector<std::vector<Step>> ranks;   // steps by rank
  std::vector<std::uint32_t> signals;     // how often each rank signals
  std::vector<std::uint64_t> half_bytes;  // per payload device: what the blocks occupy
  // False: this call overwrites `send` in place while others may still read what mirrors it.
  bool may_expose_send = true;
  bool is_inlined() const { return !blocks.empty() && blocks.front().inlined; }
};

struct Algorithm {
  Collective collective;
  std::string name;
  std::string summary;     // one line: when it is right to use it
  bool two_level = false;  // for topologies with groups; other reductions are for those without
};
std::vector<Algorithm> list_algorithms();

// invalid_argument names the field that makes no sense (ranks 0, root out of range, part_bytes not
// a multiple of element_bytes or above kMaxPartBytes, part_bytes of a barrier, send_recv of more
// than two ranks, unknown algorithm: lists those of the collective). Depends on nothing but the
// key.
Result<std::shared_ptr<const Plan>> make_plan(const PlanKey& key);

// The most bytes of one part that one pass can take so that the plan's blocks fit into `half_bytes`
// of every payload device and no rank writes more than `rank_bytes`: a multiple of 64, and so of
// the element size; every smaller part fits as well. At most key.part_bytes, rounded up, unless
// that is 0; then kMaxPartBytes where nothing limits it (one rank). 0 for a barrier. no_space if
// not even 64 bytes fit; invalid_argument as in make_plan. Lays out one plan if key.part_bytes is
// small and fits, else about 40: callers keep what it returns.
Result<std::uint64_t> pass_part_bytes(const PlanKey& key, std::uint64_t half_bytes,
                                      std::uint64_t rank_bytes);

// Scratch that a comm of this topology needs per payload device and half so that every collective
// can move `rank_bytes` per rank and pass. A multiple of 64.
std::uint64_t scratch_half_bytes(const Topology& topology, std::uint64_t rank_bytes);

// Bytes written to and read from the pool by all ranks in this pass.
struct PoolTraffic {
  std::uint64_t written = 0;
  std::uint64_t read = 0;
};
PoolTraffic pool_traffic(const Plan& plan);

// For people, for programs, and for chrome://tracing or ui.perfetto.dev (a timeline in which every
// step takes the time that a simple rate model gives it: bytes over `bytes_per_us` plus a
// constant).
std::string plan_to_text(const Plan& plan);
std::string plan_to_json(const Plan& plan);
std::string plan_to_chrome_trace(const Plan& plan);

}  // namespace penstock
#endif
