// One checked descriptor between the advance loop and plain pointers: `prepare` resolves, compares
// and observes what an operation works on, somebody's kernels do the work, `publish` follows. Host
// engines do the three in turn (execute), device engines in three steps. Internal to host/engine.
#ifndef PENSTOCK_ENGINE_EXECUTE_H_
#define PENSTOCK_ENGINE_EXECUTE_H_

#include <cstddef>
#include <cstdint>

#include "penstock/engine/host_engine.h"

namespace penstock {

class Device;  // device_engine.h

// What a completion says, without cookie and sequence.
struct Outcome {
  std::uint32_t status = PENSTOCK_OK;
  std::uint32_t field = PENSTOCK_FIELD_NONE;
  std::uint64_t detail = 0;
  bool ok() const { return status == PENSTOCK_OK; }
};

// Bytes that operations write which are not over.
class Unfinished {
 public:
  virtual ~Unfinished() = default;
  virtual bool writes(const void* data, std::uint64_t bytes) const = 0;
};

// The queue's memory as the kernels see it. Sources are observed before they are handed out and
// destinations published on request, where they lie in a pool that needs it, however they are
// addressed.
class Access {
 public:
  // What the host would read or observe of `unfinished` (null: nothing is) it leaves alone; then
  // held() tells that the descriptor's turn has not come, whatever else was found. `device` (null:
  // a host engine) knows what the host cannot read.
  explicit Access(const Queue& queue, const Unfinished* unfinished = nullptr,
                  const Device* device = nullptr);

  // Null if the queue's windows refuse the access.
  std::byte* resolve(penstock_address address, std::uint64_t bytes, bool for_write) const {
    return queue_.resolve(address, bytes, for_write);
  }
  // Resolved for reading by the host, and observed. Null also for what it cannot read.
  const std::byte* source(penstock_address address, std::uint64_t bytes) const;
  // Resolved for reading and writing, and observed.
  std::byte* shared(penstock_address address, std::uint64_t bytes) const;

  void observe(const void* data, std::uint64_t bytes) const;
  void publish(const void* data, std::uint64_t bytes) const;
  bool held() const { return held_; }

 private:
  bool needs_care(const void* data, std::uint64_t bytes) const;
  bool hold(const void* data, std::uint64_t bytes) const;

  const Queue& queue_;
  const Pool* software_pool_;  // null where nothing has to be flushed
  const Unfinished* unfinished_;
  const Device* device_;
  mutable bool held_ = false;
};

bool overlaps(const void* a, std::uint64_t a_bytes, const void* b, std::uint64_t b_bytes);

// Pointers of one COPY, REDUCE or OUTER_STEP.
struct Operands {
  const void* src[PENSTOCK_MAX_SOURCES];
  void* dst[PENSTOCK_MAX_DESTINATIONS];
};

// The arguments point into the rest.
struct PreparedReduce {
  PreparedReduce() = default;
  PreparedReduce(const PreparedReduce&) = delete;
  PreparedReduce& operator=(const PreparedReduce&) = delete;

  ReduceArguments arguments;
  Operands operands;
  std::uint64_t dst_bytes;
  union {
    float f32[PENSTOCK_MAX_SOURCES];
    double f64[PENSTOCK_MAX_SOURCES];
  } weights;
};
struct PreparedOuterStep {
  PreparedOuterStep() = default;
  PreparedOuterStep(const PreparedOuterStep&) = delete;
  PreparedOuterStep& operator=(const PreparedOuterStep&) = delete;

  OuterStepArguments arguments;
  Operands operands;
  std::uint64_t dst_bytes;
};

// A node table that was found sound, and the copy of its header that the kernels work with: the
// geometry that was checked stays the one in use, whatever happens to shared memory meanwhile. The
// view points to that copy.
struct OpenTable {
  OpenTable() = default;
  OpenTable(const OpenTable&) = delete;
  OpenTable& operator=(const OpenTable&) = delete;

  std::byte* data = nullptr;
  penstock_node_table header;
  TableView view;
};
struct PreparedSelect {
  OpenTable table;
  penstock_program program;
  const std::byte* tasks = nullptr;  // in memory that may be another process's
  std::byte* results = nullptr;
  std::uint64_t n = 0;
  bool commit = false;
};
struct PreparedUpdate {
  OpenTable table;
  const penstock_update* updates = nullptr;  // likewise
  std::uint64_t n = 0;
};

// Of a checked descriptor with a count that is not 0, but for SELECT and UPDATE, where n is 0 then
// and nothing is left to do. What a descriptor is refused for is found before any destination is
// touched.
Outcome prepare_copy(const Access& access, const penstock_descriptor& d, Operands* operands);
Outcome prepare_reduce(const Access& access, const penstock_descriptor& d,
                       PreparedReduce* prepared);
Outcome prepare_outer_step(const Access& access, const penstock_descriptor& d,
                           PreparedOuterStep* prepared);
Outcome prepare_select(const Access& access, const penstock_descriptor& d,
                       PreparedSelect* prepared);
Outcome prepare_update(const Access& access, const penstock_descriptor& d,
                       PreparedUpdate* prepared);

// What a task's result or an update changed of the table's cells; then the header's fields that
// operations change.
void publish_commit(const Access& access, const TableView& view, const penstock_task& task,
                    std::uint32_t row);
void publish_update(const Access& access, const TableView& view, const penstock_update& update);
void close_table(const Access& access, const OpenTable& table);

Outcome execute_copy(const Access& access, const Kernels& kernels, const penstock_descriptor& d);
Outcome execute_reduce(const Access& access, const Kernels& kernels, const penstock_descriptor& d);
Outcome execute_outer_step(const Access& access, const Kernels& kernels,
                           const penstock_descriptor& d);
Outcome execute_select(const Access& access, const Kernels& kernels, const penstock_descriptor& d);
Outcome execute_update(const Access& access, const penstock_descriptor& d);
Outcome execute_signal(const Access& access, const Queue& queue, const penstock_descriptor& d);

// A WAIT or BARRIER at the queue's front: false while it holds back what follows, else how it ends.
// Its deadline runs from the first look.
bool wait_is_over(Queue& queue, const penstock_descriptor& d, Outcome* outcome);

}  // namespace penstock
#endif
