// A node table on which several processes decide at once, on one host or several, and one commits.
//
// Each **scheduler** keeps a copy of the table, decides on it, and sends what it decided to the
// **binder** as a request. The binder looks whether the row still passes the filters, commits, and
// appends a record to its log; from the log every scheduler brings its copy up to date and learns
// what became of its own requests. A request whose row was taken meanwhile is a conflict, and
// decided again; after a few in a row the choice is left to the binder, so that nobody starves.
//
// The binder's role is a RoleLease. When its holder dies (or sleeps too long) another process takes
// the role, continues from the newest reign, and begins one of its own (shared_table_layout.h). A
// scheduler believes a record only after it has looked, once it had read it, that the role was
// still held under the epoch of the reign that it read: then whoever takes the role later finds
// that record, because it reads the log after it took the role. So what a scheduler was told is
// never lost, and nothing is applied twice: the log says of each scheduler how far its requests
// were handled.
//
// The columns are those that the table has when it is shared: bit columns that a task names must
// have been interned before, and nodes are not added meanwhile.
#ifndef PENSTOCK_SCHED_SHARED_TABLE_H_
#define PENSTOCK_SCHED_SHARED_TABLE_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "penstock/base/status.h"
#include "penstock/engine/host_engine.h"
#include "penstock/memory/agreement.h"
#include "penstock/memory/fence.h"
#include "penstock/memory/pool.h"
#include "penstock/memory/shared_memory.h"
#include "penstock/sched/shared_table_layout.h"

namespace penstock {

struct SharedTableConfig {
  std::string name;              // 1..24 bytes
  std::uint32_t schedulers = 8;  // 1..64
  std::uint32_t binders = 4;     // processes that may hold the role: 1..16
  std::uint32_t ring = 64;       // requests of a scheduler that can be under way: 8..4096
  std::uint32_t log = 1024;      // records that are kept: 64..65536
  std::uint32_t role_ms = 500;   // how long a binder that says nothing keeps the role, 10..60000
};

// A node table in memory of this process's own. Copies are deep.
class TableCopy {
 public:
  TableCopy() = default;
  explicit TableCopy(std::uint64_t bytes);
  std::byte* data() { return reinterpret_cast<std::byte*>(lines_.data()); }
  const std::byte* data() const { return reinterpret_cast<const std::byte*>(lines_.data()); }
  std::uint64_t bytes() const { return lines_.size() * sizeof(Line); }
  // Of a table that penstock_node_table_check accepts.
  TableView view() { return table_view(reinterpret_cast<penstock_node_table*>(lines_.data())); }

 private:
  struct alignas(64) Line {
    std::byte bytes[64];
  };
  std::vector<Line> lines_;
};

// What every scheduler has to know of its own requests.
struct SchedulerState {
  std::uint64_t done = 0;               // the last sequence number that was handled
  std::vector<SharedOutcome> outcomes;  // of the last `ring` of them, at sequence % ring
};

// The table and the schedulers' states after a position of the log.
struct SharedState {
  std::uint64_t position = 0;
  std::uint64_t epoch = 0;  // of the reign that it was read from; 0: before the first
  TableCopy table;
  std::vector<SchedulerState> schedulers;
};

// The board of a shared table, and the way to its reigns. One thread at a time.
class SharedTable {
 public:
  // Shares the node table `table_name` of the pool, as it stands, under a program that all
  // schedulers use. already_exists, no_space, invalid_argument (a value out of its range, a program
  // that does not fit the table).
  static Status create(Pool& pool, const std::string& table_name, const penstock_program& program,
                       const SharedTableConfig& config);
  static Result<SharedTable> open(Pool& pool, const std::string& name);
  // Ends the sharing: writes the newest state back into the node table and frees all regions of the
  // shared table, which stay until then whoever dies. busy while a process of it lives. A NodeTable
  // that has the table open does not know which tasks set bits meanwhile, and so cannot release
  // them.
  static Status end(Pool& pool, const std::string& name);

  Pool& pool() const { return *pool_; }
  const std::string& name() const { return name_; }
  const BoardHeader& header() const { return header_; }
  const BoardLayout& layout() const { return layout_; }
  const penstock_program& program() const { return *program_; }
  const SharedMemory& memory() const { return memory_; }
  std::byte* board() const { return board_; }
  Fence requests_fence(std::uint32_t scheduler) const {
    return Fence(*pool_, board_ + layout_.fence(scheduler));
  }
  // The role's history, as its participant `binder`.
  Result<Agreement> agreement(std::uint32_t binder) const;

  // One process at a time is scheduler (or binder) `index`: a region that ends with the process.
  // busy names the holder. What a dead process left is taken over.
  Result<Region> claim(const char* what, std::uint32_t index) const;

  std::string reign_name(std::uint64_t epoch) const;
  // A reign that is ready to be read; nothing if there is none of this epoch.
  std::optional<Region> find_reign(std::uint64_t epoch, ReignHeader* header = nullptr) const;
  // The epoch of the role as it stands now, read by `agreement`; 0 if nobody ever held it.
  static Result<std::uint64_t> role_epoch(Agreement* agreement);
  // The state after the newest record of the newest reign below `epoch` that is ready, else the
  // node table as it was shared.
  Result<SharedState> newest_state(std::uint64_t epoch) const;

 private:
  SharedTable(Pool& pool, const std::string& name);
  Result<SharedState> first_state() const;

  Pool* pool_;
  std::string name_;
  SharedMemory memory_;
  BoardHeader header_;
  BoardLayout layout_;
  std::byte* board_ = nullptr;
  std::shared_ptr<const penstock_program> program_;
};

// Reads a reign. One thread at a time.
class ReignReader {
 public:
  ReignReader(const SharedTable& shared, const Region& region, std::uint64_t epoch);

  std::uint64_t epoch() const { return epoch_; }
  // The position of the last record that the binder published.
  std::uint64_t newest() const { return log_fence_.load(); }
  // corrupt if none of the two can be read, as when the region was freed.
  Result<SharedState> checkpoint() const;
  // A record between checkpoint and newest(); out_of_range if it was overwritten, or cannot be
  // read.
  Result<LogRecord> record(std::uint64_t position) const;

 private:
  const SharedTable* shared_;
  ReignLayout layout_;
  std::byte* base_;
  std::uint64_t epoch_;
  Fence log_fence_;
  Fence checkpoint_fence_;
};

// Applies a record to a state that stands right before it. internal if the table refuses it.
Status apply_record(const LogRecord& record, SharedState* state);

}  // namespace penstock
#endif
