// The names of a node table's rows and columns.
#ifndef PENSTOCK_SCHED_CATALOGUE_H_
#define PENSTOCK_SCHED_CATALOGUE_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "penstock/base/status.h"
#include "penstock/descriptor/node_table.h"
#include "penstock/sched/node_facts.h"

namespace penstock {

struct ResourceName {
  std::string name;  // "cpu", "memory", "gpu", "pods", "example.com/thing"
  std::string unit;  // "milli", "bytes", "MiB", ""
  bool operator==(const ResourceName&) const = default;
};

// One thread at a time.
class Catalogue {
 public:
  Catalogue() = default;
  Catalogue(std::vector<ResourceName> resources, std::vector<std::string> free_columns,
            std::uint32_t bit_columns, std::uint32_t domain_columns = 0,
            std::uint32_t count_columns = 0);

  const std::vector<ResourceName>& resources() const { return resources_; }
  const std::vector<std::string>& free_columns() const { return free_columns_; }
  // -1 if there is none.
  std::int32_t find_resource(std::string_view name) const;
  std::int32_t find_free_column(std::string_view name) const;
  std::int32_t find_node(const std::string& name) const;

  // ---- rows ----
  std::uint32_t rows() const { return static_cast<std::uint32_t>(nodes_.size()); }
  std::uint32_t node_count() const { return static_cast<std::uint32_t>(row_of_.size()); }
  // Facts of a row that holds a node; an empty name means that it holds none.
  const NodeFacts& node(std::uint32_t row) const;
  // The row that the next node gets: the lowest free one.
  std::uint32_t next_row() const;
  // The node is in the domains that its labels say.
  void put_node(std::uint32_t row, NodeFacts facts);
  // Other labels or taints of the node with that name.
  void change_node(std::uint32_t row, NodeFacts facts);
  // Forgets the node and the uses of bits on its row.
  void take_node(std::uint32_t row);

  // ---- bit columns ----
  struct BitColumn {
    std::string key;          // "" is free
    NodePredicate predicate;  // null for columns that commits set, and after open()
    bool state = false;
    std::uint64_t last_batch = 0;
  };
  std::uint32_t bit_columns() const { return static_cast<std::uint32_t>(bits_.size()); }
  const BitColumn& bit_column(std::uint32_t column) const { return bits_[column]; }
  // Marks the column as used in this batch; -1 if the key has none.
  std::int32_t touch(const std::string& key);
  // A column for the key: a free one, else the least recently used that is not used in this batch
  // and is no state column that some task holds; no_space if there is none. Count columns that ask
  // an evicted one go with it.
  Result<std::uint16_t> assign(const std::string& key, NodePredicate predicate, bool state);
  // For a column that came out of parse().
  void set_predicate(std::uint16_t column, NodePredicate predicate);
  void new_batch() {
    ++batch_;
    full_ = Kind::none;
  }
  // Columns that were used in the last n batches are not evicted, of any kind: at least 1.
  void keep_batches(std::uint64_t n) { keep_ = n; }
  std::uint64_t evictions() const { return evictions_; }
  // The kind of columns of which there was none for an assign*() in this batch.
  enum class Kind : std::uint8_t { none, bits, domains, counts };
  Kind full() const { return full_; }
  // Frees the columns whose predicate is not known in this process, since a new node cannot be
  // asked.
  void drop_unknown_columns();

  // How many tasks of a row hold a bit that commits set; a bit is cleared with its last user.
  // Return the number after the change.
  std::uint32_t add_use(std::uint32_t row, std::uint16_t column);
  std::uint32_t drop_use(std::uint32_t row, std::uint16_t column);

  // ---- domain columns ----
  // A label of nodes as a topology. Nodes whose label has the same value share a domain; in a
  // column by row every node that has the label is a domain of its own, numbered as its row.
  struct DomainColumn {
    std::string key;                  // "" is free; "=label", "#label" when by row
    std::vector<std::int32_t> cells;  // by row, up to the last that holds a node; -1: none
    std::unordered_map<std::string, std::uint32_t> domain_of;  // by the label's value
    std::vector<std::uint32_t> nodes;                          // by domain
    std::set<std::uint32_t> unused;                            // domains without nodes
    std::uint64_t last_batch = 0;
  };
  std::uint32_t domain_columns() const { return static_cast<std::uint32_t>(domains_.size()); }
  const DomainColumn& domain_column(std::uint32_t column) const { return domains_[column]; }
  // The domains [0, n) are in use.
  std::uint32_t domains_in_use(std::uint32_t column) const;
  // Of the row; -1: none.
  std::int32_t domain_cell(std::uint32_t column, std::uint32_t row) const;
  static std::string domain_key(const std::string& label, bool by_row);
  // The numbers that the domains of a column have in a table's cells, by row; false if they make no
  // sense: two values with one number, one value with two.
  bool adopt_domains(std::uint32_t column, const std::int32_t* cells);
  std::int32_t touch_domain(const std::string& key);
  // As assign().
  Result<std::uint16_t> assign_domain(const std::string& key);

  // ---- count columns ----
  struct CountColumn {
    std::string key;             // "" is free
    std::uint16_t domain = 0;    // domain column, or PENSTOCK_ROW_DOMAIN
    std::uint16_t eligible = 0;  // bit column of the nodes that count; 0: all
    std::uint64_t serial = 0;    // of this use of the column; from 1 on, never twice
    std::uint64_t last_batch = 0;
  };
  std::uint32_t count_columns() const { return static_cast<std::uint32_t>(counts_.size()); }
  const CountColumn& count_column(std::uint32_t column) const { return counts_[column]; }
  // Marks the columns that it asks, too.
  std::int32_t touch_count(const std::string& key);
  Result<std::uint16_t> assign_count(const std::string& key, std::uint16_t domain,
                                     std::uint16_t eligible);
  void drop_count(std::uint16_t column);
  // Marks the columns that the task names; they are in use.
  void touch_columns(const penstock_task& task);
  // Of the last count column that was assigned.
  std::uint64_t last_serial() const { return serial_; }

  // A text of lines for the pool, and back. What domains there are stands in the table's cells.
  // corrupt says what is wrong.
  std::string serialise() const;
  static Result<Catalogue> parse(std::string_view text);

 private:
  bool parse_line(const std::vector<std::string>& fields);
  bool parse_count(const std::vector<std::string>& fields);
  void enter_domain(DomainColumn* column, std::uint32_t row);
  void leave_domain(DomainColumn* column, std::uint32_t row);
  void touch_bit(std::uint16_t column) { bits_[column].last_batch = batch_; }
  bool is_kept(std::uint64_t last_batch) const { return last_batch + keep_ > batch_; }

  std::vector<ResourceName> resources_;
  std::vector<std::string> free_columns_;
  std::vector<NodeFacts> nodes_;
  std::set<std::uint32_t> free_rows_;  // below nodes_.size()
  std::unordered_map<std::string, std::uint32_t> row_of_;
  std::vector<BitColumn> bits_;
  std::unordered_map<std::string, std::uint16_t> column_of_;
  std::map<std::pair<std::uint32_t, std::uint16_t>, std::uint32_t> uses_;
  std::vector<std::uint32_t> rows_using_;  // by bit column
  std::vector<DomainColumn> domains_;
  std::unordered_map<std::string, std::uint16_t> domain_column_of_;
  std::vector<CountColumn> counts_;
  std::unordered_map<std::string, std::uint16_t> count_column_of_;
  std::uint64_t serial_ = 0;
  std::uint64_t keep_ = 1;
  Kind full_ = Kind::none;
  std::uint64_t batch_ = 1;
  std::uint64_t evictions_ = 0;
};

}  // namespace penstock
#endif
