// The host's side of a node table: the names of its rows and columns, and the descriptors that
// change it and place tasks on it. The cells stand in a pool's region, or in this process's memory
// when there is no pool.
//
// Invariants: every change of a cell goes through an UPDATE or a committing SELECT on the queue; a
// bit column that was interned from a predicate agrees with it for every node. A table in a pool
// has one writing process at a time, and others may open it.
#ifndef PENSTOCK_SCHED_NODE_TABLE_H_
#define PENSTOCK_SCHED_NODE_TABLE_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "penstock/base/status.h"
#include "penstock/descriptor/node_table.h"
#include "penstock/engine/engine.h"
#include "penstock/engine/host_engine.h"
#include "penstock/memory/pool.h"
#include "penstock/sched/catalogue.h"
#include "penstock/sched/policy.h"
#include "penstock/sched/task.h"

namespace penstock {

class Rescorer;

struct NodeTableConfig {
  std::string name;                     // of the region in a pool, up to 40 bytes; "" is anonymous
  std::uint32_t capacity = 1024;        // rows; rounded up to a multiple of 64
  std::vector<ResourceName> resources;  // 1..16
  std::uint32_t n_gpus = 0;             // most GPUs of a node: 0..16
  std::uint32_t bit_columns = 256;      // 2..4096
  std::vector<std::string> free_columns;
  std::uint32_t domain_columns = 0;  // 0..64
  std::uint32_t count_columns = 0;   // 0..4096
};

struct NodeSpec {
  NodeFacts facts;
  std::vector<std::int64_t> allocatable;  // by resource index
  std::uint32_t gpus = 0;
  bool unschedulable = false;
};

struct NodeDecision {
  std::int32_t row = -1;  // -1: no node fits
  std::string node;       // "" if none
  std::int64_t score = 0;
  std::uint32_t gpu_mask = 0;
  std::uint32_t feasible = 0;  // nodes that passed the filters
  std::vector<penstock_best> best;
};

// One thread at a time.
class NodeTable {
 public:
  // `pool` may be null. An engine that cannot run SELECT on this table is replaced by a host
  // engine, which the log tells. Beside one that has no UPDATE, or that does not know an operation
  // of a program or what a task asks for, a host engine does that.
  static Result<std::unique_ptr<NodeTable>> create(Pool* pool, std::shared_ptr<Engine> engine,
                                                   const NodeTableConfig& config);
  // A table that another process made in the pool, with the names that it last saved.
  static Result<std::unique_ptr<NodeTable>> open(Pool& pool, std::shared_ptr<Engine> engine,
                                                 const std::string& name);
  // Frees the regions of a table.
  static Status destroy(Pool& pool, const std::string& name);
  ~NodeTable();
  NodeTable(const NodeTable&) = delete;
  NodeTable& operator=(const NodeTable&) = delete;

  // ---- nodes ----
  // already_exists for a name that the table holds, no_space beyond its capacity.
  Status add_nodes(std::span<const NodeSpec> nodes);
  Status remove_node(std::uint32_t row);
  // Other labels, taints, amounts or cordon of the node with that name; what tasks hold of it
  // stays. Counts by its old domains are the caller's: see count_column().
  Status change_node(std::uint32_t row, const NodeSpec& node);
  Status set_unschedulable(std::uint32_t row, bool unschedulable);
  // Adds (or takes away) a task that runs on a row, outside of any decision.
  // `more` are raises beside those that the task's record has room for.
  Status occupy(std::uint32_t row, const Task& task, std::uint32_t gpu_mask,
                std::span<const penstock_raise> more = {});
  Status release(std::uint32_t row, const Task& task, std::uint32_t gpu_mask,
                 std::span<const penstock_raise> more = {});
  // A task that sets these bits was committed to the row by other means than select().
  void note_uses(std::uint32_t row, std::span<const std::uint16_t> columns);
  Status update(std::span<const penstock_update> updates);

  // ---- columns ----
  // The bit column for `key`, made from the predicate the first time. May evict a column that no
  // task of the present batch uses (see new_batch).
  Result<std::uint16_t> intern(const std::string& key, NodePredicate predicate);
  // A bit column that commits set; all clear when it is new, not evicted while a task holds it.
  Result<std::uint16_t> state_column(const std::string& key);
  // The domain column of a label of nodes: nodes whose label has the same value share a domain, or
  // each node that has it is one by itself, numbered as its row.
  Result<std::uint16_t> domain_column(const std::string& label, bool by_row);
  // The count column for `key`, -1 if there is none; marks it as used.
  std::int32_t find_count(const std::string& key) { return catalogue_.touch_count(key); }
  // A new count column that holds values[domain], and 0 in the domains beyond. The caller keeps it
  // right: it rises with tasks that name it in their raises, and by UPDATE. It is evicted when it
  // was not used for long, or one of the columns that it asks is. The key must be new.
  Result<std::uint16_t> add_count(const std::string& key, std::uint16_t domain,
                                  std::uint16_t eligible, std::span<const std::int32_t> values);
  // Other values for all domains.
  Status set_counts(std::uint16_t column, std::span<const std::int32_t> values);
  void drop_count(std::uint16_t column) { catalogue_.drop_count(column); }
  // Whether the row's bit is set.
  bool bit(std::uint32_t column, std::uint32_t row) const;
  // Marks the columns that the task names as used in this batch.
  void touch(const penstock_task& task) { catalogue_.touch_columns(task); }
  // As Catalogue::keep_batches.
  void keep_batches(std::uint64_t n) { catalogue_.keep_batches(n); }
  // Columns interned before may be evicted from here on: tasks made before must not be used again.
  void new_batch() { catalogue_.new_batch(); }

  // ---- decisions ----
  // Places the tasks one after another; results has tasks.size() entries. With commit each sees
  // those before it.
  Status select(const penstock_program& program, std::span<const penstock_task> tasks, bool commit,
                penstock_result* results);
  // Whether decisions are kept up to date from one to the next (see rescorer.h) instead of made by
  // a scan each; the results are the same. Yes at first, where a host engine reaches the cells as
  // they are: in this process's memory, or in a pool with hardware coherence.
  void set_incremental(bool incremental);
  // The same for tasks and a policy; compiles what the policy needs.
  Result<std::vector<NodeDecision>> place(const Policy& policy, std::span<const Task> tasks,
                                          bool commit, const CompileOptions& options = {});

  // ---- reading ----
  const Catalogue& catalogue() const { return catalogue_; }
  const std::string& engine_name() const { return engine_->capabilities().name; }
  const penstock_node_table& header() const { return *header_; }
  std::uint32_t rows() const { return header_->rows; }
  bool holds_node(std::uint32_t row) const;
  // The cells as they were last published.
  TableView view() const;
  // The largest allocatable of a resource over all nodes, at least 1.
  std::int64_t largest(std::uint32_t resource) const;

  // Writes the names into the pool, so that open() finds them; nothing without a pool.
  Status save();

 private:
  NodeTable() = default;
  // The engine itself, or a host engine in its place.
  Status choose_engine(std::shared_ptr<Engine> engine);
  Status make_queue();
  // What the domains of the saved names are in the table's cells.
  bool adopt_domains(penstock_node_table* header);
  Status run(const penstock_descriptor& descriptor);
  Status run(Engine& engine, penstock_descriptor descriptor);
  Status refused(const penstock_completion& completion) const;
  Result<penstock_address> stage(std::uint64_t offset, const void* data, std::uint64_t bytes);
  Status reserve_staging(std::uint64_t bytes);
  Status check_amounts(const NodeSpec& node) const;
  Rescorer* rescorer();
  void add_uses(std::span<const penstock_task> tasks, const penstock_result* results);
  Status check_new(std::span<const NodeSpec> nodes) const;
  Status check_row(std::uint32_t row) const;
  void append_node(const NodeSpec& node, std::uint32_t row,
                   std::vector<penstock_update>* out) const;
  Status change_usage(std::uint32_t row, const penstock_task& task, std::uint32_t gpu_mask,
                      int sign, std::span<const penstock_raise> more);

  struct FreeDeleter {
    void operator()(void* memory) const;
  };

  Pool* pool_ = nullptr;
  std::shared_ptr<Engine> engine_;
  std::shared_ptr<Engine> host_engine_;  // for what engine_ has not; may be the same
  bool told_of_host_ = false;
  std::unique_ptr<Queue> queue_;
  std::unique_ptr<void, FreeDeleter> memory_;  // the table when there is no pool
  Region region_{};
  Region names_region_{};
  Region staging_{};  // for engines that do not reach this process's memory
  bool owns_regions_ = false;
  penstock_node_table* header_ = nullptr;
  penstock_address address_ = 0;
  std::string name_;
  Catalogue catalogue_;
  bool incremental_ = true;
  std::unique_ptr<Rescorer> rescorer_;  // null: not used so far
  // The header that it works with: the geometry stays the one that was checked, whatever happens to
  // shared memory meanwhile. Its generation is that of the cells that it knows.
  penstock_node_table known_{};
};

}  // namespace penstock
#endif
