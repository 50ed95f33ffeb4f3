// Builds a plan step by step and keeps the rules that every plan has to keep: an algorithm says
// what is copied and reduced from where to where, and the builder adds the steps that order it.
#ifndef PENSTOCK_COMM_ALGORITHM_BUILDER_H_
#define PENSTOCK_COMM_ALGORITHM_BUILDER_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "penstock/comm/plan.h"

namespace penstock {

struct Range {
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
};

// [0, bytes) in `pieces` ranges that begin at multiples of a cache line (and so of every element
// size) and differ by at most one line; trailing ones are empty when there are fewer lines.
std::vector<Range> split(std::uint64_t bytes, std::uint32_t pieces);

// A part moves in chunks, each published by a signal of its own, so that readers follow the writer
// at the distance of one chunk. Small parts are not worth the additional steps.
std::vector<Range> chunks(std::uint64_t bytes, const Tuning& tuning);

// Not thread-safe. Misuse (reading a block that was not published) aborts.
//
// What the builder adds:
//   - before a rank's first write of a block, `reuse` on every other rank, except for those whose
//     signals of this pass it has waited for already: they have finished all earlier passes;
//   - before a read of a block, a `wait` for the signal that published it, unless an earlier one
//     implies it;
//   - at the end, a `signal` of every rank that has read a block since its last one, or has not
//     signalled at all: with a signal a rank also says which call it is in.
//
// When every block of the pass is small enough for the room there is, all are inlined: then
// `publish` and the waits before reads add nothing.
class PlanBuilder {
 public:
  // `layout` records blocks and no steps: what pass_part_bytes needs.
  enum class Mode { steps, layout };
  PlanBuilder(const PlanKey& key, Mode mode, bool inlined = false);

  const PlanKey& key() const { return plan_->key; }
  std::uint32_t ranks() const { return plan_->key.topology.ranks; }
  // The i-th rank after `rank`, going round. Everybody works through its peers in this order from
  // i = 1, so that no two ranks are at the same peer's blocks at the same step.
  std::uint32_t peer(std::uint32_t rank, std::uint32_t i) const { return (rank + i) % ranks(); }

  static Slice send(std::uint32_t part, Range range);
  static Slice recv(std::uint32_t part, Range range);
  Slice block(std::uint32_t index) const;

  std::vector<Range> chunks(std::uint64_t bytes) const {
    return penstock::chunks(bytes, key().tuning);
  }
  // Whether writers may put bytes into what readers offer (Tuning::push). Small blocks never do.
  bool pushes() const { return key().tuning.push != 0 && !inlined_; }
  void make_pushable(std::uint32_t block) { plan_->blocks[block].pushable = true; }

  // This call overwrites `send` while others may still read blocks that mirror it.
  void forbid_exposed_send() { plan_->may_expose_send = false; }

  // Places a block of `writer`; bytes > 0.
  std::uint32_t add_block(std::uint32_t writer, std::uint64_t bytes);

  void copy(std::uint32_t rank, const Slice& src, const Slice& dst);
  // Sources in rank order, one of every rank.
  void reduce(std::uint32_t rank, std::vector<Slice> src, std::vector<Slice> dst);
  // Sources in rank order, one of every rank of a group; or, `combines`, one fold of every group.
  // None of them is a block of the rank itself.
  void fold(std::uint32_t rank, std::vector<Slice> src, std::vector<Slice> dst, bool combines);
  // Signals if the rank has written blocks since its last signal.
  void publish(std::uint32_t rank);
  // Signals all the same, and waits for the n-th signal of another: for the barrier.
  std::uint32_t signal(std::uint32_t rank);
  void wait(std::uint32_t rank, std::uint32_t other, std::uint32_t value);

  // Adds the last signals. The builder is used up.
  std::shared_ptr<Plan> finish();

  // Layout so far: the most that a device holds, and the most that a rank writes.
  std::uint64_t most_on_device() const;
  std::uint64_t most_written() const;
  // Inlined: the most lines that a rank's blocks take.
  std::uint64_t most_lines() const;

 private:
  std::uint32_t place(std::uint32_t writer) const;
  void await(std::uint32_t rank, const Slice& src);
  void prepare_write(std::uint32_t rank, const Slice& dst);
  void mirror(const Slice& block, const Slice& of);
  void add_step(std::uint32_t rank, Step step) { plan_->ranks[rank].push_back(std::move(step)); }

  const Mode mode_;
  const bool inlined_;
  std::shared_ptr<Plan> plan_;
  std::vector<std::uint32_t> blocks_of_;             // by rank: how many it writes
  std::vector<std::uint64_t> written_;               // by rank, bytes
  std::vector<std::uint32_t> published_;             // by block: value of the signal, 0 before it
  std::vector<std::vector<std::uint32_t>> pending_;  // by rank: blocks written and not published
  std::vector<std::uint64_t> lines_;                 // by rank, of inlined blocks
  std::vector<bool> has_read_;                       // by rank: since its last signal
  std::vector<bool> has_reused_;                     // by rank
  std::vector<std::uint32_t> waited_;                // [rank * ranks + other]: highest value
};

}  // namespace penstock
#endif
