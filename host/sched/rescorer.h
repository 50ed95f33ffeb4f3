// SELECT for whoever makes one decision after the other on a table in this process: the same
// results as scalar_select, but from what earlier decisions have left at hand (see task_class.h)
// instead of from a scan.
//
// Every change of the table is written into one log that all classes of tasks share, and a class
// catches up when it is asked again. The log is bounded: a class that is too far behind looks at
// the whole table once. What is not worth keeping (the first task of a class, a task that names its
// row, a program whose normalised scores have too many values) is scanned by the kernels of an
// engine.
#ifndef PENSTOCK_SCHED_RESCORER_H_
#define PENSTOCK_SCHED_RESCORER_H_

#include <cstdint>
#include <list>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "penstock/base/status.h"
#include "penstock/engine/host_engine.h"
#include "penstock/sched/task_class.h"

namespace penstock {

struct RescorerOptions {
  std::uint32_t classes = 256;  // that are kept, at least 1; the one not asked for longest goes
  std::uint64_t bytes = std::uint64_t{1} << 29;  // of all classes together, about
  // Scans as long as they cost less than to bring the class up to date; else always the latter.
  bool scan_first = true;
  TaskClassLimits limits;
};

struct RescorerCounters {
  std::uint64_t decisions = 0;
  std::uint64_t scans = 0;      // of them, those made by a scan
  std::uint64_t rebuilds = 0;   // times that a class looked at the whole table
  std::uint64_t refreshes = 0;  // entries of the log that a class worked off
};

// One thread at a time, and nobody else writes the table meanwhile.
class Rescorer {
 public:
  // A checked table in this process, and the kernels that scan it; both outlive this object.
  Rescorer(const TableView& table, const Kernels& kernels, const RescorerOptions& options = {});
  ~Rescorer();
  Rescorer(const Rescorer&) = delete;
  Rescorer& operator=(const Rescorer&) = delete;

  // Places the tasks one after another as Kernels::select does; results has tasks.size() entries.
  // invalid_argument, corrupt or unsupported for a program or a task that does not pass its check;
  // nothing is changed then.
  Status select(const penstock_program& program, std::span<const penstock_task> tasks, bool commit,
                penstock_result* results);

  // ---- what has changed in the table apart from select() ----
  // Updates that were applied.
  void updated(std::span<const penstock_update> updates);
  // Cells of a row; a cell of a count column.
  void row_changed(std::uint32_t row);
  void count_changed(std::uint32_t column, std::uint32_t domain);
  // A task was committed to the row, or was taken from it.
  void task_changed(std::uint32_t row, const penstock_task& task);
  // Anything.
  void table_changed();

  const RescorerCounters& counters() const { return counters_; }
  std::uint64_t bytes() const;

 private:
  enum class What : std::uint8_t {
    cells,   // of a row: numbers
    all,     // of a row: bits and domains, too
    bit,     // of a row, in one column
    bits,    // of many rows in one column
    count,   // of a domain, in one column
    counts,  // of many domains in one column
    nothing,
  };
  struct Change {
    std::uint32_t index;   // row, or domain
    std::uint16_t column;  // of bits or counts
    What what;
  };
  struct Kept;
  struct ProgramEntry;

  Result<Kept*> find(ProgramEntry* program, const penstock_task& task);
  void place(Kept* kept, const penstock_task& task, bool commit, penstock_result* result);
  Result<ProgramEntry*> find_program(const penstock_program& program);
  Kept* find_task(ProgramEntry* program, const penstock_task& task, std::uint64_t hash);
  Kept* add_task(ProgramEntry* program, const penstock_task& task, std::uint64_t hash);
  bool ready(Kept* kept);
  void catch_up(Kept* kept);
  void work_off(const Change& change, std::uint64_t number, TaskClass* rows);
  void drop_idle();
  void drop(std::list<Kept>::iterator kept);
  void make_room(const Kept* except);
  void note(Change change);
  void note_rows(std::uint32_t rows);

  TableView table_;
  const Kernels& kernels_;
  RescorerOptions options_;
  RescorerDomains domains_;
  std::list<std::unique_ptr<ProgramEntry>> programs_;
  std::list<Kept> kept_;  // the one asked last first
  std::unordered_multimap<std::uint64_t, std::list<Kept>::iterator> by_hash_;
  ProgramEntry* last_program_ = nullptr;
  Kept* last_ = nullptr;
  std::vector<Kept*> batch_;  // of the tasks that select() places

  // Entry i of the log, begin_ <= i < end_, is at log_[i % log_.size()].
  std::vector<Change> log_;
  std::uint64_t end_ = 0;
  std::uint64_t forgotten_ = 0;             // a class that has not seen so many starts anew
  std::vector<std::uint64_t> last_change_;  // by row: 1 + the entry that names it last; 0: none
  std::uint32_t rows_;
  RescorerCounters counters_;
};

}  // namespace penstock
#endif
