#include "penstock/sched/node_table.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "penstock/base/log.h"

namespace penstock {
namespace {

penstock_update set(std::uint16_t field, std::uint32_t column, std::uint32_t row,
                    std::int64_t value) {
  return {field, PENSTOCK_UPDATE_SET, column, row, 0, value};
}

penstock_update add(std::uint16_t field, std::uint32_t column, std::uint32_t row,
                    std::int64_t value) {
  return {field, PENSTOCK_UPDATE_ADD, column, row, 0, value};
}

}  // namespace

// ---- nodes ----

Status NodeTable::check_amounts(const NodeSpec& node) const {
  const auto& resources = catalogue_.resources();
  if (node.allocatable.size() != resources.size()) {
    return error(Code::invalid_argument, "node '{}': {} amounts for {} resources", node.facts.name,
                 node.allocatable.size(), resources.size());
  }
  for (std::size_t r = 0; r < resources.size(); ++r) {
    if (node.allocatable[r] < 0 || node.allocatable[r] > PENSTOCK_MAX_QUANTITY) {
      return error(Code::out_of_range, "node '{}': {} is {}, expected 0 to {}", node.facts.name,
                   resources[r].name, node.allocatable[r], PENSTOCK_MAX_QUANTITY);
    }
  }
  if (node.gpus > header_->n_gpus) {
    return error(Code::out_of_range, "node '{}': {} GPUs, the table was made for {} of a node",
                 node.facts.name, node.gpus, header_->n_gpus);
  }
  return {};
}

Status NodeTable::check_new(std::span<const NodeSpec> nodes) const {
  std::unordered_map<std::string, std::size_t> seen;
  for (const NodeSpec& node : nodes) {
    if (node.facts.name.empty()) return error(Code::invalid_argument, "a node has no name");
    if (catalogue_.find_node(node.facts.name) >= 0 || !seen.emplace(node.facts.name, 0).second) {
      return error(Code::already_exists, "node '{}' is in the table already", node.facts.name);
    }
    PENSTOCK_TRY(check_amounts(node));
  }
  if (nodes.size() > header_->capacity - catalogue_.node_count()) {
    return error(Code::no_space, "{} more nodes do not fit into a table of {} rows that holds {}",
                 nodes.size(), header_->capacity, catalogue_.node_count());
  }
  return {};
}

void NodeTable::append_node(const NodeSpec& node, std::uint32_t row,
                            std::vector<penstock_update>* out) const {
  for (std::uint32_t r = 0; r < node.allocatable.size(); ++r) {
    out->push_back(set(PENSTOCK_UPDATE_ALLOCATABLE, r, row, node.allocatable[r]));
  }
  for (std::uint32_t gpu = 0; gpu < node.gpus; ++gpu) {
    out->push_back(set(PENSTOCK_UPDATE_GPU, gpu, row, 1000));
  }
  for (std::uint32_t i = PENSTOCK_BIT_FIRST_FREE; i < catalogue_.bit_columns(); ++i) {
    const auto& column = catalogue_.bit_column(i);
    if (column.predicate && column.predicate(node.facts)) {
      out->push_back(set(PENSTOCK_UPDATE_BIT, i, row, 1));
    }
  }
  for (std::uint32_t i = 0; i < catalogue_.domain_columns(); ++i) {
    if (catalogue_.domain_column(i).key.empty()) continue;
    out->push_back(set(PENSTOCK_UPDATE_DOMAIN, i, row, catalogue_.domain_cell(i, row)));
  }
  if (node.unschedulable) {
    out->push_back(set(PENSTOCK_UPDATE_BIT, PENSTOCK_BIT_UNSCHEDULABLE, row, 1));
  }
  out->push_back(set(PENSTOCK_UPDATE_BIT, PENSTOCK_BIT_NODE, row, 1));
}

Status NodeTable::add_nodes(std::span<const NodeSpec> nodes) {
  PENSTOCK_TRY(check_new(nodes));
  catalogue_.drop_unknown_columns();
  // Lists of bounded length: an engine keeps what it needs to take one back.
  constexpr std::size_t kNodesAtATime = 4096;
  for (std::size_t at = 0; at < nodes.size(); at += kNodesAtATime) {
    const auto part = nodes.subspan(at, std::min(kNodesAtATime, nodes.size() - at));
    std::vector<penstock_update> updates;
    std::uint32_t rows = header_->rows;
    for (const NodeSpec& node : part) {
      const std::uint32_t row = catalogue_.next_row();
      catalogue_.put_node(row, node.facts);
      append_node(node, row, &updates);
      rows = std::max(rows, row + 1);
    }
    if (rows != header_->rows) updates.push_back(set(PENSTOCK_UPDATE_ROWS, 0, 0, rows));
    if (Status status = update(updates); !status.ok()) {
      for (const NodeSpec& node : part) {
        catalogue_.take_node(static_cast<std::uint32_t>(catalogue_.find_node(node.facts.name)));
      }
      return status;
    }
  }
  return {};
}

Status NodeTable::check_row(std::uint32_t row) const {
  if (holds_node(row)) return {};
  return error(Code::not_found, "row {} of the node table holds no node", row);
}

Status NodeTable::remove_node(std::uint32_t row) {
  PENSTOCK_TRY(check_row(row));
  std::vector<penstock_update> updates;
  for (std::uint32_t r = 0; r < header_->n_resources; ++r) {
    updates.push_back(set(PENSTOCK_UPDATE_ALLOCATABLE, r, row, 0));
    updates.push_back(set(PENSTOCK_UPDATE_REQUESTED, r, row, 0));
    updates.push_back(set(PENSTOCK_UPDATE_SCORED, r, row, 0));
  }
  for (std::uint32_t gpu = 0; gpu < header_->n_gpus; ++gpu) {
    updates.push_back(set(PENSTOCK_UPDATE_GPU, gpu, row, 0));
  }
  for (std::uint32_t column = 0; column < header_->n_bits; ++column) {
    updates.push_back(set(PENSTOCK_UPDATE_BIT, column, row, 0));
  }
  for (std::uint32_t column = 0; column < header_->n_free; ++column) {
    updates.push_back(set(PENSTOCK_UPDATE_FREE, column, row, 0));
  }
  for (std::uint32_t column = 0; column < header_->n_domains; ++column) {
    updates.push_back(set(PENSTOCK_UPDATE_DOMAIN, column, row, -1));
  }
  PENSTOCK_TRY(update(updates));
  catalogue_.take_node(row);
  return {};
}

Status NodeTable::change_node(std::uint32_t row, const NodeSpec& node) {
  PENSTOCK_TRY(check_row(row));
  if (catalogue_.node(row).name != node.facts.name) {
    return error(Code::invalid_argument, "row {} holds node '{}', not '{}'", row,
                 catalogue_.node(row).name, node.facts.name);
  }
  PENSTOCK_TRY(check_amounts(node));
  catalogue_.drop_unknown_columns();
  const NodeFacts before = catalogue_.node(row);
  catalogue_.change_node(row, node.facts);
  std::vector<penstock_update> updates;
  for (std::uint32_t r = 0; r < node.allocatable.size(); ++r) {
    updates.push_back(set(PENSTOCK_UPDATE_ALLOCATABLE, r, row, node.allocatable[r]));
  }
  for (std::uint32_t i = PENSTOCK_BIT_FIRST_FREE; i < catalogue_.bit_columns(); ++i) {
    const auto& column = catalogue_.bit_column(i);
    if (!column.predicate) continue;
    updates.push_back(set(PENSTOCK_UPDATE_BIT, i, row, column.predicate(node.facts) ? 1 : 0));
  }
  for (std::uint32_t i = 0; i < catalogue_.domain_columns(); ++i) {
    if (catalogue_.domain_column(i).key.empty()) continue;
    updates.push_back(set(PENSTOCK_UPDATE_DOMAIN, i, row, catalogue_.domain_cell(i, row)));
  }
  updates.push_back(
      set(PENSTOCK_UPDATE_BIT, PENSTOCK_BIT_UNSCHEDULABLE, row, node.unschedulable ? 1 : 0));
  Status status = update(updates);
  if (!status.ok()) catalogue_.change_node(row, before);
  return status;
}

Status NodeTable::set_unschedulable(std::uint32_t row, bool unschedulable) {
  PENSTOCK_TRY(check_row(row));
  const penstock_update change =
      set(PENSTOCK_UPDATE_BIT, PENSTOCK_BIT_UNSCHEDULABLE, row, unschedulable ? 1 : 0);
  return update({&change, 1});
}

Status NodeTable::change_usage(std::uint32_t row, const penstock_task& task, std::uint32_t gpu_mask,
                               int sign, std::span<const penstock_raise> more) {
  std::vector<penstock_update> updates;
  const TableView cells = view();
  const auto raise = [&](const penstock_raise& raised) {
    const std::int32_t domain = raised.domain == PENSTOCK_ROW_DOMAIN
                                    ? static_cast<std::int32_t>(row)
                                    : catalogue_.domain_cell(raised.domain, row);
    const std::uint64_t eligible = cells.bit_column(raised.eligible)[row / 64] >> (row % 64) & 1;
    if (domain < 0 || eligible == 0) return;
    updates.push_back(
        add(PENSTOCK_UPDATE_COUNT, raised.count, static_cast<std::uint32_t>(domain), sign));
  };
  std::for_each(task.raises, task.raises + task.n_raises, raise);
  std::for_each(more.begin(), more.end(), raise);
  for (std::uint32_t r = 0; r < header_->n_resources; ++r) {
    if (task.request[r] != 0) {
      updates.push_back(add(PENSTOCK_UPDATE_REQUESTED, r, row, sign * task.request[r]));
    }
    if (task.scored_request[r] != 0) {
      updates.push_back(add(PENSTOCK_UPDATE_SCORED, r, row, sign * task.scored_request[r]));
    }
  }
  for (std::uint32_t gpu = 0; gpu < header_->n_gpus; ++gpu) {
    if ((gpu_mask >> gpu & 1) == 0) continue;
    updates.push_back(add(PENSTOCK_UPDATE_GPU, gpu, row, -sign * std::int64_t{task.gpu_milli}));
  }
  for (const std::uint16_t count : task.count) {
    if (count != 0) updates.push_back(add(PENSTOCK_UPDATE_FREE, count - 1u, row, sign));
  }
  for (const std::uint16_t column : task.set_bits) {
    if (column == 0) continue;
    const std::uint32_t uses =
        sign > 0 ? catalogue_.add_use(row, column) : catalogue_.drop_use(row, column);
    updates.push_back(set(PENSTOCK_UPDATE_BIT, column, row, uses > 0 ? 1 : 0));
  }
  Status status = update(updates);
  if (status.ok()) return status;
  for (const std::uint16_t column : task.set_bits) {
    if (column == 0) continue;
    if (sign > 0) {
      catalogue_.drop_use(row, column);
    } else {
      catalogue_.add_use(row, column);
    }
  }
  return status;
}

Status NodeTable::occupy(std::uint32_t row, const Task& task, std::uint32_t gpu_mask,
                         std::span<const penstock_raise> more) {
  PENSTOCK_TRY(check_row(row));
  return change_usage(row, task.record, gpu_mask, 1, more).with_context("task '" + task.name + "'");
}

Status NodeTable::release(std::uint32_t row, const Task& task, std::uint32_t gpu_mask,
                          std::span<const penstock_raise> more) {
  PENSTOCK_TRY(check_row(row));
  return change_usage(row, task.record, gpu_mask, -1, more)
      .with_context("task '" + task.name + "'");
}

void NodeTable::note_uses(std::uint32_t row, std::span<const std::uint16_t> columns) {
  for (const std::uint16_t column : columns) catalogue_.add_use(row, column);
}

// ---- reading ----

bool NodeTable::holds_node(std::uint32_t row) const { return !catalogue_.node(row).name.empty(); }

TableView NodeTable::view() const {
  if (pool_ != nullptr) pool_->observe(header_, header_->bytes);
  return table_view(header_);
}

std::int64_t NodeTable::largest(std::uint32_t resource) const {
  const TableView cells = view();
  const std::int64_t* allocatable = cells.column(cells.allocatable, resource);
  std::int64_t most = 1;
  for (std::uint32_t row = 0; row < header_->rows; ++row) {
    if (holds_node(row)) most = std::max(most, allocatable[row]);
  }
  return std::min(most, PENSTOCK_MAX_QUANTITY);
}

}  // namespace penstock
