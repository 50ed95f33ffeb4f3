#include <cstring>

#include "penstock/engine/execute.h"
#include "penstock/engine/update.h"

namespace penstock {
namespace {

Outcome open_table(const Access& access, penstock_address address, bool for_write,
                   OpenTable* table) {
  const std::byte* start = access.source(address, sizeof(penstock_node_table));
  if (start == nullptr) return {PENSTOCK_OUT_OF_RANGE, PENSTOCK_FIELD_TABLE, address};
  std::memcpy(&table->header, start, sizeof(penstock_node_table));
  const std::uint64_t bytes = table->header.bytes;
  const std::uint32_t status = penstock_node_table_check(&table->header, bytes);
  if (status != PENSTOCK_OK) return {status, PENSTOCK_FIELD_TABLE, address};
  table->data = for_write ? access.shared(address, bytes)
                          : const_cast<std::byte*>(access.source(address, bytes));
  if (table->data == nullptr) return {PENSTOCK_OUT_OF_RANGE, PENSTOCK_FIELD_TABLE, address};
  table->view = table_view(&table->header, table->data);
  return {};
}

}  // namespace

void close_table(const Access& access, const OpenTable& table) {
  auto* shared = reinterpret_cast<penstock_node_table*>(table.data);
  shared->rows = table.header.rows;
  shared->generation = table.header.generation;
  access.publish(shared, sizeof(*shared));
}

void publish_commit(const Access& access, const TableView& view, const penstock_task& task,
                    std::uint32_t row) {
  const auto cell = [&](std::int64_t* base, std::uint32_t index) {
    access.publish(view.column(base, index) + row, sizeof(std::int64_t));
  };
  for (std::uint32_t r = 0; r < view.header->n_resources; ++r) {
    cell(view.requested, r);
    cell(view.scored, r);
  }
  for (std::uint32_t g = 0; g < view.header->n_gpus; ++g) cell(view.gpu, g);
  for (const std::uint16_t bit : task.set_bits)
    if (bit != 0) access.publish(view.bit_column(bit) + row / 64, sizeof(std::uint64_t));
  for (const std::uint16_t count : task.count)
    if (count != 0) cell(view.free, count - 1u);
  for (std::uint32_t i = 0; i < task.n_raises; ++i) {
    const std::int32_t domain = view.domain_of(task.raises[i].domain, row);
    if (domain >= 0)
      access.publish(view.count_column(task.raises[i].count) + domain, sizeof(std::int32_t));
  }
}

void publish_update(const Access& access, const TableView& view, const penstock_update& update) {
  std::int64_t* base = nullptr;
  switch (update.field) {
    case PENSTOCK_UPDATE_ALLOCATABLE:
      base = view.allocatable;
      break;
    case PENSTOCK_UPDATE_REQUESTED:
      base = view.requested;
      break;
    case PENSTOCK_UPDATE_SCORED:
      base = view.scored;
      break;
    case PENSTOCK_UPDATE_GPU:
      base = view.gpu;
      break;
    case PENSTOCK_UPDATE_FREE:
      base = view.free;
      break;
    case PENSTOCK_UPDATE_BIT:
      access.publish(view.bit_column(update.column) + update.row / 64, sizeof(std::uint64_t));
      return;
    case PENSTOCK_UPDATE_DOMAIN:
      access.publish(view.domain_column(update.column) + update.row, sizeof(std::int32_t));
      return;
    case PENSTOCK_UPDATE_COUNT:
      access.publish(view.count_column(update.column) + update.row, sizeof(std::int32_t));
      return;
    default:
      return;
  }
  access.publish(view.column(base, update.column) + update.row, sizeof(std::int64_t));
}

Outcome prepare_select(const Access& access, const penstock_descriptor& d,
                       PreparedSelect* prepared) {
  prepared->commit = (d.flags & PENSTOCK_FLAG_COMMIT) != 0;
  prepared->n = 0;
  OpenTable& table = prepared->table;
  const Outcome opened = open_table(access, d.src[0], prepared->commit, &table);
  if (!opened.ok()) return opened;

  const std::byte* program_data = access.source(d.src[1], sizeof(penstock_program));
  if (program_data == nullptr) return {PENSTOCK_OUT_OF_RANGE, PENSTOCK_FIELD_PROGRAM, d.src[1]};
  penstock_program& program = prepared->program;
  std::memcpy(&program, program_data, sizeof(program));
  Outcome outcome;
  outcome.status = penstock_program_check(&program, &table.header, &outcome.detail);
  if (!outcome.ok()) return {outcome.status, PENSTOCK_FIELD_PROGRAM, outcome.detail};
  if (d.count == 0) return {};

  const std::uint64_t task_bytes = d.count * sizeof(penstock_task);
  const std::uint64_t result_bytes = d.count * sizeof(penstock_result);
  const std::byte* tasks = access.source(d.src[2], task_bytes);
  if (tasks == nullptr) return {PENSTOCK_OUT_OF_RANGE, PENSTOCK_FIELD_SRC, d.src[2]};
  std::byte* results = access.resolve(d.dst[0], result_bytes, true);
  if (results == nullptr) return {PENSTOCK_OUT_OF_RANGE, PENSTOCK_FIELD_DST, d.dst[0]};
  if (overlaps(results, result_bytes, table.data, table.header.bytes) ||
      overlaps(results, result_bytes, program_data, sizeof(program)) ||
      overlaps(results, result_bytes, tasks, task_bytes))
    return {PENSTOCK_INVALID_ARGUMENT, PENSTOCK_FIELD_DST, d.dst[0]};

  // All tasks are looked at before the first is placed, so that a malformed one changes nothing.
  penstock_task task;
  for (std::uint64_t i = 0; i < d.count; ++i) {
    std::memcpy(&task, tasks + i * sizeof(task), sizeof(task));
    const std::uint32_t status = penstock_task_check(&task, &program, &table.header);
    if (status != PENSTOCK_OK) return {status, PENSTOCK_FIELD_TASK, i};
  }
  prepared->tasks = tasks;
  prepared->results = results;
  prepared->n = d.count;
  return {};
}

Outcome prepare_update(const Access& access, const penstock_descriptor& d,
                       PreparedUpdate* prepared) {
  prepared->n = 0;
  OpenTable& table = prepared->table;
  const Outcome opened = open_table(access, d.src[0], true, &table);
  if (!opened.ok()) return opened;
  if (d.count == 0) return {};
  const std::uint64_t bytes = d.count * sizeof(penstock_update);
  const std::byte* data = access.source(d.src[1], bytes);
  if (data == nullptr) return {PENSTOCK_OUT_OF_RANGE, PENSTOCK_FIELD_SRC, d.src[1]};
  if (overlaps(data, bytes, table.data, table.header.bytes))
    return {PENSTOCK_INVALID_ARGUMENT, PENSTOCK_FIELD_SRC, d.src[1]};
  prepared->updates = reinterpret_cast<const penstock_update*>(data);
  prepared->n = d.count;
  return {};
}

Outcome execute_select(const Access& access, const Kernels& kernels, const penstock_descriptor& d) {
  PreparedSelect prepared;
  Outcome outcome = prepare_select(access, d, &prepared);
  if (!outcome.ok() || prepared.n == 0) return outcome;
  OpenTable& table = prepared.table;
  // Each task is looked at once more when its turn comes, because its memory may be another
  // process's.
  penstock_task task;
  for (std::uint64_t i = 0; i < prepared.n; ++i) {
    std::memcpy(&task, prepared.tasks + i * sizeof(task), sizeof(task));
    if (penstock_task_check(&task, &prepared.program, &table.header) != PENSTOCK_OK) {
      outcome = {PENSTOCK_CORRUPT, PENSTOCK_FIELD_TASK, i};
      break;
    }
    penstock_result result;
    kernels.select(table.view, prepared.program, task, prepared.commit, &result);
    std::memcpy(prepared.results + i * sizeof(result), &result, sizeof(result));
    if (prepared.commit && result.status == PENSTOCK_OK)
      publish_commit(access, table.view, task, static_cast<std::uint32_t>(result.row));
  }
  if (prepared.commit) close_table(access, table);
  access.publish(prepared.results, prepared.n * sizeof(penstock_result));
  return outcome;
}

Outcome execute_update(const Access& access, const penstock_descriptor& d) {
  PreparedUpdate prepared;
  const Outcome outcome = prepare_update(access, d, &prepared);
  if (!outcome.ok() || prepared.n == 0) return outcome;
  const OpenTable& table = prepared.table;
  std::uint64_t bad_index = 0;
  const std::uint32_t status = apply_updates(table.view, prepared.updates, prepared.n, &bad_index);
  if (status != PENSTOCK_OK) return {status, PENSTOCK_FIELD_UPDATE, bad_index};
  for (std::uint64_t i = 0; i < prepared.n; ++i)
    publish_update(access, table.view, prepared.updates[i]);
  close_table(access, table);
  return {};
}

}  // namespace penstock
