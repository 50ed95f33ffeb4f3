#include "penstock/sim/systemc/selector.h"

#include <algorithm>
#include <cstring>

#include "penstock/sim/systemc/card.h"
#include "penstock/sim/systemc/memory.h"

namespace penstock::systemc {

// Bus addresses of what a SELECT names.
struct Selector::Places {
  std::uint32_t queue = 0;
  std::uint64_t table = 0, program = 0, tasks = 0, results = 0;
};

void Card::select_process() {
  process([this] {
    while (selects_.empty()) pause_for(select_event_);
    const SelectJob job = selects_.front();
    const Answer answer = selector_->run(job.queue, job.record);
    selects_.pop_front();
    if (answer.status == PENSTOCK_IO_ERROR)
      report_error(CardError::operand, job.queue, queues_[job.queue].head, answer.detail,
                   job.record);
    job_done(job.queue, job.record.cookie, answer, job.record);
  });
}

Answer Selector::resolve(std::uint32_t queue, penstock_address address, std::uint64_t bytes,
                         bool write, std::uint32_t field, std::uint64_t* bus) {
  card_.pause(card_.timing_.window);
  return card_.resolve(queue, address, bytes, write, field, bus);
}

Answer Selector::move(bool write, std::uint64_t bus, void* data, std::uint64_t bytes,
                      std::uint32_t field) {
  sc_core::sc_time delay = card_.cycles(Card::beats(bus, bytes));
  const Card::Transfer transfer = card_.transfer(true, write, bus, data, bytes, &delay);
  card_.pause(delay);
  if (transfer.ok) return {};
  return {PENSTOCK_IO_ERROR, field, transfer.bus};
}

Answer Selector::move_aside(bool write, std::uint64_t bus, void* data, std::uint64_t bytes,
                            std::uint32_t field) {
  sc_core::sc_time delay = card_.cycles(Card::beats(bus, bytes));
  const Card::Transfer transfer = card_.transfer(true, write, bus, data, bytes, &delay);
  settled_ = std::max(settled_, sc_core::sc_time_stamp() + delay);
  if (transfer.ok) return {};
  return {PENSTOCK_IO_ERROR, field, transfer.bus};
}

Answer Selector::open_table(const penstock_descriptor& d, bool commit, Places* places) {
  const auto refuse = [&d](std::uint32_t status) {
    return Answer{status, PENSTOCK_FIELD_TABLE, d.src[0]};
  };
  penstock_node_table header;
  Answer answer =
      resolve(places->queue, d.src[0], sizeof(header), false, PENSTOCK_FIELD_TABLE, &places->table);
  if (!answer.ok()) return answer;
  answer = move(false, places->table, &header, sizeof(header), PENSTOCK_FIELD_TABLE);
  if (!answer.ok()) return answer;
  card_.pause(card_.timing_.header);
  if (const std::uint32_t status = check_header(header); status != PENSTOCK_OK)
    return refuse(status);
  answer =
      resolve(places->queue, d.src[0], header.bytes, false, PENSTOCK_FIELD_TABLE, &places->table);
  if (answer.ok() && commit)
    answer =
        resolve(places->queue, d.src[0], header.bytes, true, PENSTOCK_FIELD_TABLE, &places->table);
  if (!answer.ok()) return answer;
  if (!table_fits_card(header)) return refuse(PENSTOCK_UNSUPPORTED);
  const bool same = resident_ == places->table && generation_ == header.generation &&
                    header.rows == table_.header.rows && header.checksum == table_.header.checksum;
  table_.header = header;
  if (same) return {};
  resident_.reset();
  answer = load_columns(*places);
  if (!answer.ok()) return answer;
  resident_ = places->table;
  generation_ = header.generation;
  return {};
}

// A column of cells at an offset of the table.
Answer Selector::load_columns(const Places& places) {
  const penstock_node_table& h = table_.header;
  Answer answer;
  const auto load = [&](auto* columns, std::uint32_t n, std::uint64_t offset, std::size_t cells) {
    columns->resize(n);
    for (auto& column : *columns) {
      column.resize(cells);
      const std::uint64_t bytes = cells * sizeof(column[0]);
      if (answer.ok() && bytes > 0)
        answer = move(false, places.table + offset, column.data(), bytes, PENSTOCK_FIELD_TABLE);
      offset += bytes;
    }
  };
  load(&table_.allocatable, h.n_resources, h.allocatable, h.capacity);
  load(&table_.requested, h.n_resources, h.requested, h.capacity);
  load(&table_.scored, h.n_resources, h.scored, h.capacity);
  load(&table_.bits, h.n_bits, h.bits, h.capacity / 64);
  load(&table_.free, h.n_free, h.free, h.capacity);
  return answer;
}

Answer Selector::open_program(const penstock_descriptor& d, Places* places) {
  penstock_program record;
  Answer answer = resolve(places->queue, d.src[1], sizeof(record), false, PENSTOCK_FIELD_PROGRAM,
                          &places->program);
  if (!answer.ok()) return answer;
  answer = move(false, places->program, &record, sizeof(record), PENSTOCK_FIELD_PROGRAM);
  if (!answer.ok()) return answer;
  card_.pause(std::uint64_t{card_.timing_.program_op} * std::min<std::uint32_t>(record.n_ops, 64));
  std::uint64_t detail = 0;
  if (const std::uint32_t status = check_program(record, table_.header, &detail);
      status != PENSTOCK_OK)
    return {status, PENSTOCK_FIELD_PROGRAM, detail};
  if (!program_suits_card(record, &detail, &intervals_))
    return {PENSTOCK_UNSUPPORTED, PENSTOCK_FIELD_PROGRAM, detail};
  program_ = decode_program(record);
  return {};
}

Answer Selector::open_tasks(const penstock_descriptor& d, Places* places) {
  const std::uint64_t task_bytes = d.count * sizeof(penstock_task);
  const std::uint64_t result_bytes = d.count * sizeof(penstock_result);
  Answer answer =
      resolve(places->queue, d.src[2], task_bytes, false, PENSTOCK_FIELD_SRC, &places->tasks);
  if (!answer.ok()) return answer;
  answer =
      resolve(places->queue, d.dst[0], result_bytes, true, PENSTOCK_FIELD_DST, &places->results);
  if (!answer.ok()) return answer;
  const auto overlaps = [&](std::uint64_t base, std::uint64_t bytes) {
    return touch(places->results, result_bytes, base, bytes);
  };
  if (overlaps(places->table, table_.header.bytes) ||
      overlaps(places->program, sizeof(penstock_program)) || overlaps(places->tasks, task_bytes))
    return {PENSTOCK_INVALID_ARGUMENT, PENSTOCK_FIELD_DST, d.dst[0]};
  return {};
}

// All of them before the first is placed, so that a malformed one changes nothing.
Answer Selector::check_tasks(const penstock_descriptor& d, const Places& places) {
  const bool commits = (d.flags & PENSTOCK_FLAG_COMMIT) != 0;
  penstock_task task;
  for (std::uint64_t i = 0; i < d.count; ++i) {
    // They come in one stream.
    const std::uint64_t at = places.tasks + i * sizeof(task);
    const Answer answer = i == 0 ? move(false, at, &task, sizeof(task), PENSTOCK_FIELD_TASK)
                                 : move_aside(false, at, &task, sizeof(task), PENSTOCK_FIELD_TASK);
    if (!answer.ok()) return answer;
    if (i > 0) card_.pause(Card::beats(at, sizeof(task)));
    const std::uint32_t status = check_task(task, program_.record, table_.header);
    if (status != PENSTOCK_OK) return {status, PENSTOCK_FIELD_TASK, i};
    if (!task_suits_card(task, program_.record, commits))
      return {PENSTOCK_UNSUPPORTED, PENSTOCK_FIELD_TASK, i};
  }
  return {};
}

std::uint64_t Selector::decision_cycles() const {
  const Timing& t = card_.timing_;
  const std::uint64_t groups = (table_.header.rows + t.lanes - 1) / t.lanes;
  return groups * (intervals_.ranges + intervals_.sums) + t.decision +
         (intervals_.ranges > 0 ? t.normalised : 0) + (program_.has_balanced ? t.balanced : 0) +
         t.best * (program_.record.best - 1u);
}

Answer Selector::place_all(const penstock_descriptor& d, const Places& places) {
  const bool commits = (d.flags & PENSTOCK_FLAG_COMMIT) != 0;
  penstock_task task;
  settled_ = sc_core::sc_time_stamp();
  for (std::uint64_t i = 0; i < d.count; ++i) {
    // All but the first are fetched while the one before is placed.
    const std::uint64_t at = places.tasks + i * sizeof(task);
    Answer answer = i == 0 ? move(false, at, &task, sizeof(task), PENSTOCK_FIELD_TASK)
                           : move_aside(false, at, &task, sizeof(task), PENSTOCK_FIELD_TASK);
    if (!answer.ok()) return answer;
    if (check_task(task, program_.record, table_.header) != PENSTOCK_OK ||
        !task_suits_card(task, program_.record, commits))
      return {PENSTOCK_CORRUPT, PENSTOCK_FIELD_TASK, i};
    card_.pause(decision_cycles());
    ++card_.counters_[kDecisions];
    card_.counters_[kRowsScanned] += table_.header.rows;
    penstock_result result = decide(table_, program_, task);
    if (commits && result.status == PENSTOCK_OK) {
      const auto row = static_cast<std::uint32_t>(result.row);
      result.status = commit(&table_, task, row);
      if (result.status == PENSTOCK_OK) {
        answer = write_commit(places, task, row);
        if (!answer.ok()) {
          resident_.reset();
          return answer;
        }
      }
    }
    answer = move_aside(true, places.results + i * sizeof(result), &result, sizeof(result),
                        PENSTOCK_FIELD_DST);
    if (!answer.ok()) return answer;
  }
  card_.pause_until(settled_);
  return {};
}

// The cells of the row that changed, and the generation.
Answer Selector::write_commit(const Places& places, const penstock_task& task, std::uint32_t row) {
  const penstock_node_table& h = table_.header;
  Answer answer;
  const auto put = [&](std::uint64_t offset, void* cell, std::uint64_t bytes) {
    const Answer put_one =
        move_aside(true, places.table + offset, cell, bytes, PENSTOCK_FIELD_TABLE);
    if (answer.ok()) answer = put_one;
  };
  const auto cell = [&](std::uint64_t base, std::uint32_t column) {
    return base + (std::uint64_t{column} * h.capacity + row) * sizeof(std::int64_t);
  };
  for (std::uint32_t r = 0; r < h.n_resources; ++r) {
    if (task.request[r] != 0)
      put(cell(h.requested, r), &table_.requested[r][row], sizeof(std::int64_t));
    if (task.scored_request[r] != 0)
      put(cell(h.scored, r), &table_.scored[r][row], sizeof(std::int64_t));
  }
  for (const std::uint16_t column : task.count)
    if (column != 0)
      put(cell(h.free, column - 1u), &table_.free[column - 1u][row], sizeof(std::int64_t));
  for (const std::uint16_t column : task.set_bits)
    if (column != 0)
      put(h.bits + (std::uint64_t{column} * (h.capacity / 64) + row / 64) * 8,
          &table_.bits[column][row / 64], sizeof(std::uint64_t));
  put(offsetof(penstock_node_table, generation), &table_.header.generation, sizeof(std::uint64_t));
  generation_ = table_.header.generation;
  return answer;
}

Answer Selector::run(std::uint32_t queue, const penstock_descriptor& d) {
  Places places;
  places.queue = queue;
  Answer answer = open_table(d, (d.flags & PENSTOCK_FLAG_COMMIT) != 0, &places);
  if (!answer.ok()) return answer;
  answer = open_program(d, &places);
  if (!answer.ok() || d.count == 0) return answer;
  answer = open_tasks(d, &places);
  if (!answer.ok()) return answer;
  answer = check_tasks(d, places);
  if (!answer.ok()) return answer;
  return place_all(d, places);
}

}  // namespace penstock::systemc
