// A scheduler of a shared table (shared_table.h): decides on a copy of its own, and asks the
// binder.
#ifndef PENSTOCK_SCHED_SHARED_TABLE_SCHEDULER_H_
#define PENSTOCK_SCHED_SHARED_TABLE_SCHEDULER_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "penstock/engine/engine.h"
#include "penstock/sched/shared_table.h"

namespace penstock {

struct SharedTask {
  penstock_task task{};
  std::uint64_t cookie = 0;  // comes back with the outcome, and tells a successor what it was
};

enum class PlacementStatus {
  placed,
  no_node,  // no row passed the filters
  refused,  // malformed, or a cell of the table would leave its bounds
};

struct SharedPlacement {
  PlacementStatus status = PlacementStatus::no_node;
  std::int32_t row = -1;
  std::uint32_t gpu_mask = 0;
  std::uint32_t conflicts = 0;
};

struct SharedSchedulerStatistics {
  std::uint64_t decisions = 0;
  std::uint64_t placed = 0;
  std::uint64_t conflicts = 0;
  std::uint64_t reigns = 0;  // that were seen
};

// One thread at a time.
class SharedScheduler {
 public:
  // So many conflicts of a task, and the binder chooses.
  static constexpr std::uint32_t kConflictsOfATask = 2;

  // As scheduler `index`, with an engine that executes in the calling thread; waits up to
  // timeout_ms for a binder, until it has handled what an earlier scheduler of this index sent.
  // busy if another process is, unsupported (engine), deadline_exceeded.
  static Result<std::unique_ptr<SharedScheduler>> open(Pool& pool, const std::string& name,
                                                       std::uint32_t index,
                                                       const std::shared_ptr<Engine>& engine,
                                                       std::uint32_t timeout_ms);
  ~SharedScheduler();
  SharedScheduler(const SharedScheduler&) = delete;
  SharedScheduler& operator=(const SharedScheduler&) = delete;

  // What became of the last requests of this index, oldest first, those of earlier processes
  // included: up to `ring`.
  std::vector<SharedOutcome> outcomes() const;

  // Places all tasks; each sees those before it. At most `window` requests are under way at a time
  // (1..ring). deadline_exceeded when no binder answers: what was sent may still be placed, and the
  // next call, or outcomes() of a successor, knows.
  Result<std::vector<SharedPlacement>> place(std::span<const SharedTask> tasks,
                                             std::uint32_t window, std::uint32_t timeout_ms);
  // Takes a placed task away again. unsupported for a task with set_bits: only who counts the tasks
  // that set a bit knows when to clear it. not_found if the table refuses.
  Status release(const SharedTask& task, std::int32_t row, std::uint32_t gpu_mask,
                 std::uint32_t timeout_ms);

  // Reads what the log has; to be called now and then by who only looks.
  Status refresh();
  TableView table() { return state_.table.view(); }
  const SharedSchedulerStatistics& statistics() const { return statistics_; }

 private:
  // A request under way. A placement stands in the copy already, unless it was withdrawn.
  struct Pending {
    std::uint64_t sequence = 0;
    std::size_t index = 0;  // of the task in place()'s list
    penstock_task task{};
    std::int32_t row = -1;
    std::uint32_t gpu_mask = 0;
    bool in_copy = false;
  };
  struct Settled {
    std::size_t index;
    SharedOutcome outcome;
  };

  SharedScheduler(SharedTable shared, const Region& claim, std::uint32_t index, Agreement agreement,
                  const std::shared_ptr<Engine>& engine);
  Status wait_for_reign(std::uint64_t deadline_ns);
  // Whether the role is held under the epoch of the reign that is read.
  Result<bool> is_current();
  // Takes the newest reign's state; false, and there is no reader, if it is not ready.
  Result<bool> attach();
  void settle_from_state();
  // True if something was read.
  Result<bool> poll();
  // False: the copy must be read anew.
  bool take(const LogRecord& record);
  bool withdraw_row(std::int32_t row);
  bool undo(Pending* pending);
  void send(RequestKind kind, const penstock_task& task, std::uint64_t cookie, std::size_t index,
            std::int32_t row, std::uint32_t gpu_mask, bool in_copy);
  // Waits for records while `pending_` is above `most`.
  Status wait_until(std::size_t most, std::uint64_t deadline_ns);
  void abandon();

  SharedTable shared_;
  Region claim_;
  std::uint32_t index_;
  Agreement agreement_;
  std::shared_ptr<Engine> engine_;
  const Kernels* kernels_;
  Fence fence_;
  std::uint64_t sequence_ = 0;  // of the last request
  std::optional<ReignReader> reader_;
  SharedState state_;  // with what is under way
  std::deque<Pending> pending_;
  std::vector<Settled> settled_;
  SharedSchedulerStatistics statistics_;
};

}  // namespace penstock
#endif
