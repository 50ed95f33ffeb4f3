// A window: memory that every rank of a comm exposes to the others, for one-sided access.
//
//   put, get      write into and read from another rank's part
//   signal        raise a counter at another rank; what was put before is seen by whoever sees it
//   wait_signal   wait for such a counter
//   blocks        a rank publishes, any number of ranks fetch; a reader that meets a writer
//                 recognises it and reads again
//
// Who may write what (architecture, "Memory": every line has one writing host at a time):
//   - A put writes whole lines: it begins at a multiple of 64, and the rest of its last line
//   becomes
//     zero. Two ranks may write the same line only if the second one has waited for a signal that
//     came after the put of the first.
//   - The owner of a part may store into it (data()), then publish what it stored, under the same
//     rule.
//   - Counters are per source and slot: each has one writer. So are blocks: the rank that they
//     belong to. Readers write nothing.
//
// Memory that a window was made of is given to nobody else while any rank may still write into it:
// a rank that leaves says so in every other rank's control lines, and only when all have left or
// are proven dead are the regions freed. Every rank holds all regions (Pool::hold), so that the
// death of their makers doesn't free them either; between hosts, where no hold is seen, they are
// persistent. A stopped rank that wakes late therefore writes into memory that is still the
// window's.
//
// A rank's regions lie in the arena of its host, and only that host frees them. In a pool of
// several hosts a rank that leaves waits a little for the others; what it can't free then because
// somebody is still in it, its host frees when one of its processes makes another window.
//
// Layout. Each rank makes two regions. Its control region, on the pool's first device:
//   1 line                 a WindowHeader, written by the owner
//   size lines             [source]        written by source: 1 once it has left the window
//   size * signals lines   [source][slot]  counters, written by source
//   blocks * 2 lines       [slot]          written by the owner: versions begun, versions done
// Its payload region, on a device of its own where there are several:
//   bytes, in whole lines                  what the rank exposes
//   blocks * copies        [slot][copy]    a BlockHeader line and block_bytes in whole lines
#ifndef PENSTOCK_COMM_WINDOW_H_
#define PENSTOCK_COMM_WINDOW_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "penstock/comm/comm.h"
#include "penstock/memory/fence.h"
#include "penstock/memory/pool.h"

namespace penstock {

struct CommWindowConfig {
  std::uint64_t bytes = 0;           // that this rank exposes; may differ between ranks
  std::uint32_t signals = 16;        // counters per pair of ranks and direction, 1..1024
  std::uint32_t blocks = 0;          // that each rank can publish, up to 65536
  std::uint64_t block_bytes = 0;     // the most that one block holds
  std::uint32_t block_copies = 1;    // 1..4: versions that are kept; with 2 or more, a reader gets
                                     // the last one while the next is being written
  std::uint32_t timeout_ms = 30000;  // of every wait, unless the call gives its own; at least 1
};

// A published block. `version` counts from 1.
struct BlockInfo {
  std::uint32_t owner = 0;
  std::uint32_t slot = 0;
  std::uint64_t version = 0;
  std::uint64_t key = 0;
  std::uint64_t bytes = 0;
};

// A block in place: data lies in the pool and may be overwritten at any time; what was read counts
// only if still_valid() says so afterwards.
struct BlockView {
  BlockInfo info;
  const std::byte* data = nullptr;
};

// One thread at a time. Destroyed before its comm and its pool.
class CommWindow {
 public:
  // Collective: every rank of the comm calls it, with the same signals, blocks, block_bytes and
  // block_copies. Either every rank gets its window or every rank gets an error: invalid_argument
  // and no_space name the rank, mismatch names both values; peer_dead, deadline_exceeded, revoked
  // as in Comm::run. The bytes that a rank exposes are whatever was there.
  static Result<std::unique_ptr<CommWindow>> make(Pool& pool, Comm& comm,
                                                  const CommWindowConfig& config);
  // Leaves. Waits for others in a pool of several hosts only, and at most two seconds.
  ~CommWindow();
  CommWindow(const CommWindow&) = delete;
  CommWindow& operator=(const CommWindow&) = delete;

  std::uint32_t rank() const { return rank_; }
  std::uint32_t size() const { return static_cast<std::uint32_t>(ranks_.size()); }
  std::uint64_t bytes(std::uint32_t rank) const { return ranks_[rank].bytes; }
  std::byte* data() { return payload_[rank_]; }  // of this rank's part

  // Writes into the target's part. The bytes are the caller's again when it returns, and are seen
  // by whoever sees a later signal. invalid_argument: an offset that is no multiple of 64;
  // out_of_range: beyond the target's part. peer_dead and revoked come at most some milliseconds
  // late, and nothing is lost by a put that came before them.
  Status put(std::uint32_t target, std::uint64_t offset, const void* data, std::uint64_t bytes);
  // Reads the source's part as it was last published. Any offset.
  Status get(std::uint32_t source, std::uint64_t offset, void* data, std::uint64_t bytes);
  // Makes what this rank stored into its own part by itself visible to those who see a later
  // signal.
  Status publish(std::uint64_t offset, std::uint64_t bytes);
  // Drops what this process has cached of its own part, before it loads from data() what others
  // put.
  Status observe(std::uint64_t offset, std::uint64_t bytes);
  // All puts so far are in memory.
  void flush();

  // Raises the counter that this rank has at the target. Counters begin at 0 and only rise; a value
  // that is not above the present one changes nothing.
  Status signal(std::uint32_t target, std::uint32_t slot, std::uint64_t value);
  // Waits until the source has raised its counter at this rank to at least `value`.
  // deadline_exceeded names what was waited for and what was seen; peer_dead, revoked.
  // timeout_ms 0: the window's.
  Status wait_signal(std::uint32_t source, std::uint32_t slot, std::uint64_t value,
                     std::uint32_t timeout_ms = 0);
  // The same for whichever rank comes first; returns it (the lowest of several).
  Result<std::uint32_t> wait_signal_of_any(std::uint32_t slot, std::uint64_t value,
                                           std::uint32_t timeout_ms = 0);
  // What the source's counter is at.
  Result<std::uint64_t> read_signal(std::uint32_t source, std::uint32_t slot);

  // Publishes the next version of a block of this rank, and returns its number. `key` is the
  // caller's: find_block looks for it.
  Result<std::uint64_t> publish_block(std::uint32_t slot, std::uint64_t key, const void* data,
                                      std::uint64_t bytes);
  // Copies the newest version, which is at least min_version (waited for until the deadline), into
  // a buffer of `capacity` bytes. out_of_range if it is larger.
  Result<BlockInfo> fetch_block(std::uint32_t owner, std::uint32_t slot, std::uint64_t min_version,
                                void* data, std::uint64_t capacity, std::uint32_t timeout_ms = 0);
  // The same without a copy.
  Result<BlockView> view_block(std::uint32_t owner, std::uint32_t slot, std::uint64_t min_version,
                               std::uint32_t timeout_ms = 0);
  // True if what was read through the view up to now is that version's, whole.
  bool still_valid(const BlockView& view) const;
  // The newest version in place: (0, 0) where nothing was published. Doesn't wait.
  Result<BlockInfo> peek_block(std::uint32_t owner, std::uint32_t slot);
  // The first block with this key, by owner and slot. not_found. Looks at every header.
  Result<BlockInfo> find_block(std::uint64_t key);

 private:
  struct Entry;  // what the ranks tell each other when they make a window
  struct Peer {
    std::uint64_t bytes = 0;
    Region control;
    Region payload;
    Lease lease;
  };
  struct BlockLines {
    Fence begun;
    Fence done;
  };

  CommWindow(Pool& pool, Comm& comm, const CommWindowConfig& config);
  Status allocate(Entry* entry);
  Status agree(const std::vector<Entry>& entries) const;
  Status hold_and_resolve();
  void leave();
  void free_own();
  static void free_left(Pool& pool);
  bool all_gone() const;
  bool among_hosts() const;

  Status usable();
  Status look_after_peers();
  Status check_rank(const char* what, std::uint32_t rank) const;
  Status check_slot(std::uint32_t slot) const;
  Status check_range(const char* what, std::uint32_t rank, std::uint64_t offset,
                     std::uint64_t bytes) const;
  Status check_block(std::uint32_t owner, std::uint32_t slot) const;
  template <typename Ready>
  Status wait_until(Ready ready, std::uint32_t timeout_ms, const char* what, std::uint32_t peer,
                    std::uint32_t slot, std::uint64_t value);

  Fence left_fence(std::uint32_t at, std::uint32_t source) const;
  Fence signal_fence(std::uint32_t at, std::uint32_t source, std::uint32_t slot) const;
  BlockLines block_lines(std::uint32_t owner, std::uint32_t slot) const;
  std::byte* block_copy(std::uint32_t owner, std::uint32_t slot, std::uint64_t version) const;
  std::uint64_t copy_bytes() const;  // of one copy of a block, header included
  // The newest version that is whole, or version 0.
  BlockView newest(std::uint32_t owner, std::uint32_t slot) const;

  Pool& pool_;
  Comm& comm_;
  Platform& platform_;
  const CommWindowConfig config_;
  const std::uint32_t rank_;
  const std::uint64_t process_;
  const bool oversubscribed_;
  std::vector<Peer> ranks_;
  std::vector<std::byte*> control_;
  std::vector<std::byte*> payload_;
  std::vector<std::uint64_t> versions_;  // of this rank's blocks
  std::uint64_t next_look_ns_ = 0;
  bool agreed_ = false;  // the others know this rank's regions
};

}  // namespace penstock
#endif
