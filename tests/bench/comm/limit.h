// The memory limit: the least code that does each collective, with all buffers in shared memory,
// bare flags, and vector loops. No checks, no names, no life of a comm: what a library cannot
// undercut, and should come near to. It stays in the benchmark as the yardstick.
//
// A collective that moves data is a list of **moves**, each from one rank's buffer into another's.
// A kernel is a way to carry them out; the best one is the limit of that size:
//   lines    small payloads travel beside their sequence number, 56 bytes a line: one cache miss
//   staged   the source copies into its slot and raises its flag; the reader copies out of it
//   pull     the source raises its flag; the reader copies from the source's own buffer
//   push     the reader raises its flag; the source copies into the reader's own buffer
//   split    all raise their flags; every rank does an equal share of all bytes that move
// and likewise for those that fold: lines, staged, direct (each folds what it needs from the
// sources' own buffers) and sharded (each folds one shard and writes it to everybody who needs it).
// "+nt" stores past the caches.
#ifndef PENSTOCK_TESTS_BENCH_COMM_LIMIT_H_
#define PENSTOCK_TESTS_BENCH_COMM_LIMIT_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <vector>

#include "limit_loops.h"
#include "peer.h"

namespace penstock::bench {

// In shared memory, zeroed, mapped before the ranks are forked.
struct LimitShared {
  struct alignas(64) Flag {
    std::atomic<std::uint64_t> value;
  };
  struct alignas(64) SmallLine {
    std::byte payload[56];
    std::atomic<std::uint64_t> sequence;
  };
  static constexpr std::size_t kDepth = 16;       // calls that a small slot is not reused for
  static constexpr std::size_t kSmallLines = 32;  // of one channel and call
  static constexpr std::size_t kSmallBytes = kSmallLines * 56;
  using Channel = std::array<std::array<SmallLine, kSmallLines>, kDepth>;

  std::array<Flag, kMaxRanks> entered;
  std::array<Flag, kMaxRanks> finished;
  std::array<std::array<Channel, kMaxRanks>, kMaxRanks> lines;  // [source][channel]
};

class LimitPeer final : public Peer {
 public:
  // `ranks` send buffers and then as many recv buffers and slots, each of `buffer_bytes`, at
  // `memory`, which all ranks have at the same address. yields: there is not a CPU for every rank.
  LimitPeer(LimitShared& shared, std::byte* memory, std::size_t buffer_bytes, std::uint32_t rank,
            std::uint32_t ranks, const LimitLoops& loops, bool yields);

  std::uint32_t rank() const override { return rank_; }
  std::uint32_t size() const override { return ranks_; }
  void* allocate(Buffer buffer, std::size_t bytes) override;
  std::vector<std::string> prepare(const Problem& problem, void* send, void* recv) override;
  void select(std::size_t variant) override {
    kernel_ = variants_[variant].kernel;
    finish();  // of calls whose kernel raises no flag at its end
  }
  void run() override {
    ++call_;
    (this->*kernel_)();
  }

 private:
  using Kernel = void (LimitPeer::*)();
  struct Variant {
    const char* name;
    Kernel kernel;
  };
  struct Move {
    std::uint32_t source;
    std::uint32_t reader;
    std::uint32_t channel;  // moves of one source with the same channel carry the same bytes
    std::size_t from;       // in the source's input
    std::size_t to;         // in the reader's recv buffer
  };

  std::byte* send_of(std::uint32_t rank) const { return memory_ + rank * bytes_; }
  std::byte* recv_of(std::uint32_t rank) const { return memory_ + (ranks_ + rank) * bytes_; }
  std::byte* input_of(std::uint32_t rank) const;
  std::byte* slot_of(std::uint32_t rank) const;

  void enter() { shared_.entered[rank_].value.store(call_, std::memory_order_release); }
  void finish() { shared_.finished[rank_].value.store(call_, std::memory_order_release); }
  template <typename Ready>
  void wait(const Ready& ready) const;
  void wait_entered(std::uint32_t rank) const;
  void wait_all_entered() const;
  void wait_finished(std::uint32_t rank, std::uint64_t call) const;
  void wait_all_finished() const;
  // No rank still reads what this one wrote `depth` calls ago.
  void wait_reusable(std::uint64_t depth);

  void plan_moves();
  void add_variants(bool folds);
  bool moves_here(const Move& move) const { return move.source != move.reader; }
  void do_local_moves(bool stream);
  void copy_move(const Move& move, const std::byte* from, bool stream) const;

  // Small lines.
  void write_lines(std::uint32_t channel, const std::byte* data, std::size_t bytes);
  void read_lines(std::uint32_t source, std::uint32_t channel, std::byte* data,
                  std::size_t bytes) const;

  void move_lines();
  void move_staged();
  template <bool kStream>
  void move_pull();
  template <bool kStream>
  void move_push();
  template <bool kStream>
  void move_split();
  void copy_share(std::uint32_t lane, bool stream) const;
  void fold_lines();
  void fold_staged();
  template <bool kStream>
  void fold_direct();
  template <bool kStream>
  void fold_sharded();
  bool folds_here() const;
  void barrier();

  LimitShared& shared_;
  std::byte* const memory_;
  const std::size_t bytes_;
  const std::uint32_t rank_;
  const std::uint32_t ranks_;
  const LimitLoops& loops_;
  const bool yields_;
  std::uint64_t call_ = 0;
  std::uint64_t reusable_ = 0;  // every rank has finished this call, as far as was looked
  Problem problem_;
  std::size_t part_ = 0;  // bytes
  std::vector<Move> moves_;
  std::vector<Variant> variants_;
  Kernel kernel_ = nullptr;
};

}  // namespace penstock::bench
#endif
