// The names of a node table's rows and columns.
#ifndef PENSTOCK_SCHED_CATALOGUE_H_
#define PENSTOCK_SCHED_CATALOGUE_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
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
  const NodeFacts& node(std::uint32_t row) const { return nodes_[row]; }
  // The row that the next node gets: the lowest free one.
  std::uint32_t next_row() const;
  void put_node(std::uint32_t row, NodeFacts facts);
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
  void new_batch() { ++batch_; }
  std::uint64_t evictions() const { return evictions_; }

  // A text of lines for the pool, and back. corrupt says what is wrong.
  std::string serialise() const;
  static Result<Catalogue> parse(std::string_view text);

 private:
  std::vector<ResourceName> resources_;
  std::vector<std::string> free_columns_;
  std::vector<NodeFacts> nodes_;
  std::unordered_map<std::string, std::uint32_t> row_of_;
  std::vector<BitColumn> bits_;
  std::unordered_map<std::string, std::uint16_t> column_of_;
  std::uint64_t batch_ = 1;
  std::uint64_t evictions_ = 0;
};

}  // namespace penstock
#endif
