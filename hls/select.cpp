// SELECT: a batch of tasks, each filtered, scored, ranked and committed before the next is looked
// at. While one is decided the next is read, and the result of the one before is written.
#include "penstock/descriptor/descriptor.h"
#include "penstock_hls.h"
#include "select_commit.h"
#include "select_scan.h"

namespace penstock_hls {
namespace {

struct ResultRecord {
  u64 word[kResultWords64];
};
using Tasks = hls::stream<Task, 2>;
using Results = hls::stream<ResultRecord, 2>;

void fetch_tasks(const u64* records, u64 word, u32 n, const Header header, Tasks& tasks) {
  for (u32 i = 0; i < n; ++i) {
#pragma HLS LOOP_TRIPCOUNT min = 1 max = 1024
    Task task;
#pragma HLS ARRAY_PARTITION variable = task.request type = complete
#pragma HLS ARRAY_PARTITION variable = task.scored_request type = complete
#pragma HLS ARRAY_PARTITION variable = task.terms type = complete
#pragma HLS ARRAY_PARTITION variable = task.feature type = complete
#pragma HLS ARRAY_PARTITION variable = task.set_bits type = complete
#pragma HLS ARRAY_PARTITION variable = task.count type = complete
    for (u32 w = 0; w < kTaskWords; ++w) {
#pragma HLS PIPELINE II = 1
#pragma HLS LOOP_TRIPCOUNT min = 128 max = 128
      take_task_word(header, w, records[word + u64{i} * kTaskWords + w], task);
    }
    tasks.write(task);
  }
}

ResultRecord record_of(u32 status, u32 feasible, const Ranking& ranking) {
#pragma HLS INLINE
  static_assert(
      offsetof(penstock_result, score) == 8 && offsetof(penstock_result, feasible) == 16 &&
          offsetof(penstock_result, n_best) == 24 && offsetof(penstock_result, best) == 32 &&
          sizeof(penstock_best) == 16 && offsetof(penstock_best, score) == 8,
      "where the words hold them");
  const bool found = ranking.n != 0;
  const u32 row = found ? ranking.best[0].row : 0xffffffff;
  ResultRecord record;
  record.word[0] = u64{row} << 32 | status;
  record.word[1] = found ? static_cast<u64>(ranking.best[0].score) : 0;
  record.word[2] = feasible;
  record.word[3] = ranking.n;
  for (u32 k = 0; k < kBest; ++k) {
#pragma HLS UNROLL
#pragma HLS LOOP_TRIPCOUNT min = 8 max = 8
    record.word[4 + 2 * k] = k < ranking.n ? ranking.best[k].row : 0;
    record.word[5 + 2 * k] = k < ranking.n ? static_cast<u64>(ranking.best[k].score) : 0;
  }
  return record;
}

// Owns the banks, which keep the table from one call to the next.
void place_tasks(WordPort pool_table, CellPort pool_cells, u64 table, const Header header,
                 const Program& program, u32 n, u32 flags, Tasks& tasks, Results& results) {
  static Banks banks;
#pragma HLS DISAGGREGATE variable = banks
#pragma HLS ARRAY_RESHAPE variable = banks.allocatable dim = 3 type = complete
#pragma HLS ARRAY_PARTITION variable = banks.allocatable dim = 2 type = complete
#pragma HLS BIND_STORAGE variable = banks.allocatable type = ram_2p impl = uram
#pragma HLS ARRAY_RESHAPE variable = banks.requested dim = 3 type = complete
#pragma HLS ARRAY_PARTITION variable = banks.requested dim = 2 type = complete
#pragma HLS BIND_STORAGE variable = banks.requested type = ram_2p impl = uram
#pragma HLS ARRAY_RESHAPE variable = banks.scored dim = 3 type = complete
#pragma HLS ARRAY_PARTITION variable = banks.scored dim = 2 type = complete
#pragma HLS BIND_STORAGE variable = banks.scored type = ram_2p impl = uram
#pragma HLS ARRAY_RESHAPE variable = banks.free dim = 3 type = complete
#pragma HLS ARRAY_PARTITION variable = banks.free dim = 2 type = complete
#pragma HLS BIND_STORAGE variable = banks.free type = ram_2p impl = uram
#pragma HLS ARRAY_PARTITION variable = banks.bits dim = 1 type = complete
#pragma HLS BIND_STORAGE variable = banks.bits type = ram_2p impl = bram
#pragma HLS ARRAY_PARTITION variable = banks.totals dim = 2 type = complete
#pragma HLS BIND_STORAGE variable = banks.totals type = ram_2p impl = uram
#pragma HLS BIND_STORAGE variable = banks.feasible type = ram_2p impl = bram
#pragma HLS ARRAY_PARTITION variable = banks.slot_column type = complete
  load_table(banks, pool_table, table, header, (flags & PENSTOCK_HLS_FORGET) != 0);
  Writes writes = {0};
  for (u32 i = 0; i < n; ++i) {
#pragma HLS LOOP_TRIPCOUNT min = 1 max = 1024
    const Task task = tasks.read();
    load_bits(banks, pool_table, task);
    u32 feasible = 0;
    Ranking ranking;
    decide(banks, program, task, feasible, ranking);
    u32 status = ranking.n != 0 ? PENSTOCK_OK : PENSTOCK_NOT_FOUND;
    if (status == PENSTOCK_OK && (flags & PENSTOCK_HLS_COMMIT) != 0)
      status = commit(banks, pool_cells, writes, task, ranking.best[0].row);
    results.write(record_of(status, feasible, ranking));
    // A bit column may be loaded next; its words have to be in memory by then.
    settle(pool_cells, writes);
  }
}

void store_results(u64* pool_results, u64 word, u32 n, Results& results) {
  for (u32 i = 0; i < n; ++i) {
#pragma HLS LOOP_TRIPCOUNT min = 1 max = 1024
    const ResultRecord record = results.read();
    for (u32 w = 0; w < kResultWords64; ++w) {
#pragma HLS PIPELINE II = 1
#pragma HLS LOOP_TRIPCOUNT min = 20 max = 20
      pool_results[word + u64{i} * kResultWords64 + w] = record.word[w];
    }
  }
}

void select_region(WordPort pool_table, const u64* pool_records, CellPort pool_cells,
                   u64* pool_results, u64 table, u64 tasks_word, u64 results_word,
                   const Header header, const Program& program, u32 n, u32 flags) {
#pragma HLS DATAFLOW
  Tasks tasks("tasks");
  Results results("results_of_tasks");
  PENSTOCK_HLS_REGION(region);
  PENSTOCK_HLS_STAGE(region, fetch_tasks(pool_records, tasks_word, n, header, tasks));
  PENSTOCK_HLS_STAGE(region, place_tasks(pool_table, pool_cells, table, header, program, n, flags,
                                         tasks, results));
  PENSTOCK_HLS_STAGE(region, store_results(pool_results, results_word, n, results));
}

void answer(u64* pool_results, u64 word, u32 status, u32 field, u64 detail) {
#pragma HLS INLINE
  pool_results[word] = u64{field} << 32 | status;
  pool_results[word + 1] = detail;
}

}  // namespace
}  // namespace penstock_hls

void penstock_hls_select(penstock_hls::WordPort pool_table, const std::uint64_t* pool_records,
                         penstock_hls::CellPort pool_cells, std::uint64_t* pool_results,
                         std::uint64_t header, std::uint64_t table, std::uint64_t program,
                         std::uint64_t tasks, std::uint64_t results, std::uint64_t status,
                         std::uint32_t n_tasks, std::uint32_t flags) {
#pragma HLS INTERFACE mode = m_axi port = pool_table bundle = gmem_table offset = \
    slave num_read_outstanding = 32 max_read_burst_length = 64
#pragma HLS INTERFACE mode = m_axi port = pool_records bundle = gmem_records offset = \
    slave num_read_outstanding = 8 max_read_burst_length = 64
#pragma HLS INTERFACE mode = m_axi port = pool_cells bundle = gmem_cells offset =     \
    slave num_read_outstanding = 8 num_write_outstanding = 16 max_read_burst_length = \
        2 max_write_burst_length = 2
#pragma HLS INTERFACE mode = m_axi port = pool_results bundle = gmem_results offset = \
    slave num_write_outstanding = 8 max_write_burst_length = 32
#pragma HLS INTERFACE mode = s_axilite port = pool_table bundle = control
#pragma HLS INTERFACE mode = s_axilite port = pool_records bundle = control
#pragma HLS INTERFACE mode = s_axilite port = pool_cells bundle = control
#pragma HLS INTERFACE mode = s_axilite port = pool_results bundle = control
#pragma HLS INTERFACE mode = s_axilite port = header bundle = control
#pragma HLS INTERFACE mode = s_axilite port = table bundle = control
#pragma HLS INTERFACE mode = s_axilite port = program bundle = control
#pragma HLS INTERFACE mode = s_axilite port = tasks bundle = control
#pragma HLS INTERFACE mode = s_axilite port = results bundle = control
#pragma HLS INTERFACE mode = s_axilite port = status bundle = control
#pragma HLS INTERFACE mode = s_axilite port = n_tasks bundle = control
#pragma HLS INTERFACE mode = s_axilite port = flags bundle = control
#pragma HLS INTERFACE mode = s_axilite port = return bundle = control
#pragma HLS INTERFACE mode = ap_ctrl_chain port = return
  const penstock_hls::Header read = penstock_hls::read_header(pool_records, header / 8);
  if (!penstock_hls::table_fits(read)) {
    penstock_hls::answer(pool_results, status / 8, PENSTOCK_UNSUPPORTED, PENSTOCK_FIELD_TABLE,
                         table);
    return;
  }
  penstock_hls::Program compiled;
  penstock_hls::read_program(pool_records, program / 8, compiled);
  if (compiled.refused) {
    penstock_hls::answer(pool_results, status / 8, PENSTOCK_UNSUPPORTED, PENSTOCK_FIELD_PROGRAM,
                         compiled.refused_at);
    return;
  }
  for (std::uint32_t i = 0; i < n_tasks; ++i) {
#pragma HLS LOOP_TRIPCOUNT min = 1 max = 1024
    if (penstock_hls::task_is_done(pool_records,
                                   tasks / 8 + std::uint64_t{i} * penstock_hls::kTaskWords,
                                   compiled, (flags & PENSTOCK_HLS_COMMIT) != 0))
      continue;
    penstock_hls::answer(pool_results, status / 8, PENSTOCK_UNSUPPORTED, PENSTOCK_FIELD_TASK, i);
    return;
  }
  if (n_tasks != 0)
    penstock_hls::select_region(pool_table, pool_records, pool_cells, pool_results, table,
                                tasks / 8, results / 8, read, compiled, n_tasks, flags);
  penstock_hls::answer(pool_results, status / 8, PENSTOCK_OK, 0, 0);
}
