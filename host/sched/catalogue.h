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
            std::uint32_t bit_columns);

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
  void put_node(std::uint32_t row, NodeFacts facts);
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
  // A column for the key: a free one, else the least recently used that is neither a state column
  // nor used in this batch; no_space if there is none.
  Result<std::uint16_t> assign(const std::string& key, NodePredicate predicate, bool state);
  // For a column that came out of parse().
  void set_predicate(std::uint16_t column, NodePredicate predicate);
  void new_batch() { ++batch_; }
  std::uint64_t evictions() const { return evictions_; }
  // Frees the columns whose predicate is not known in this process, since a new node cannot be
  // asked.
  void drop_unknown_columns();

  // How many tasks of a row hold a bit that commits set; a bit is cleared with its last user.
  // Return the number after the change.
  std::uint32_t add_use(std::uint32_t row, std::uint16_t column);
  std::uint32_t drop_use(std::uint32_t row, std::uint16_t column);

  // A text of lines for the pool, and back. corrupt says what is wrong.
  std::string serialise() const;
  static Result<Catalogue> parse(std::string_view text);

 private:
  bool parse_line(const std::vector<std::string>& fields);

  std::vector<ResourceName> resources_;
  std::vector<std::string> free_columns_;
  std::vector<NodeFacts> nodes_;
  std::set<std::uint32_t> free_rows_;  // below nodes_.size()
  std::unordered_map<std::string, std::uint32_t> row_of_;
  std::vector<BitColumn> bits_;
  std::unordered_map<std::string, std::uint16_t> column_of_;
  std::map<std::pair<std::uint32_t, std::uint16_t>, std::uint32_t> uses_;
  std::uint64_t batch_ = 1;
  std::uint64_t evictions_ = 0;
};

}  // namespace penstock
#endif
