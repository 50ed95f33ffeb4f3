// A placement in the banks and in memory.
#ifndef PENSTOCK_HLS_SELECT_COMMIT_H_
#define PENSTOCK_HLS_SELECT_COMMIT_H_

#include "select_banks.h"

namespace penstock_hls {

// Writes whose response was not taken yet. They are waited for before memory is read where one of
// them may lie, and at the end.
struct Writes {
  u32 unanswered;
};
constexpr u32 kMaxUnanswered = 16;

inline void settle(CellPort cells, Writes& writes) {
#pragma HLS INLINE off
  for (u32 i = 0; i < writes.unanswered; ++i) {
#pragma HLS LOOP_TRIPCOUNT min = 0 max = 16
    cells.write_response();
  }
  writes.unanswered = 0;
}

inline void write_cell(CellPort cells, Writes& writes, u64 address, u64 value) {
#pragma HLS INLINE
  if (writes.unanswered == kMaxUnanswered) {
    cells.write_response();
    --writes.unanswered;
  }
  cells.write_request(address / 8, 1);
  cells.write(value);
  ++writes.unanswered;
}

// How often a free column is counted.
inline u32 mentions_of(const Task& task, u32 counted) {
#pragma HLS INLINE
  u32 n = 0;
  for (u32 i = 0; i < kCounts; ++i) {
#pragma HLS UNROLL
#pragma HLS LOOP_TRIPCOUNT min = 4 max = 4
    n += task.count[i] == counted ? 1 : 0;
  }
  return n;
}

// Whether every cell that the task changes stays in its bounds.
inline bool commit_fits(const Banks& banks, const Task& task, u32 group, u32 lane) {
#pragma HLS INLINE off
  bool fits = true;
  for (u32 r = 0; r < kResources; ++r) {
#pragma HLS UNROLL
#pragma HLS LOOP_TRIPCOUNT min = 8 max = 8
    const u64 requested = banks.requested[group][lane][r];
    const u64 scored = banks.scored[group][lane][r];
    if (r < banks.header.n_resources &&
        (quantity_is_damaged(requested) || requested + task.request[r] > kMaxQuantity ||
         quantity_is_damaged(scored) || scored + task.scored_request[r] > kMaxQuantity))
      fits = false;
  }
  for (u32 i = 0; i < kCounts; ++i) {
#pragma HLS PIPELINE II = 1
#pragma HLS LOOP_TRIPCOUNT min = 4 max = 4
    const u32 counted = task.count[i];
    if (counted == 0) continue;
    const u64 stored = banks.free[group][lane][(counted - 1) % kFree];
    if (free_is_damaged(stored) || stored + mentions_of(task, counted) > 2 * kFreeOffset)
      fits = false;
  }
  return fits;
}

inline u64 cell_address(const Banks& banks, u64 base, u32 column, u32 row) {
#pragma HLS INLINE
  return banks.table + base + (u64{column} * banks.header.capacity + row) * 8;
}
inline u64 bit_address(const Banks& banks, u32 column, u32 row) {
#pragma HLS INLINE
  return banks.table + banks.header.bits +
         (u64{column} * (banks.header.capacity / 64) + row / 64) * 8;
}

// Sets the bits in memory, where the others of their words stand, and in the slots.
inline void set_bits(Banks& banks, CellPort cells, Writes& writes, const Task& task, u32 row) {
#pragma HLS INLINE off
  u32 n = 0;
  u32 columns[kSetBits];
  for (u32 i = 0; i < kSetBits; ++i) {
#pragma HLS LOOP_TRIPCOUNT min = 8 max = 8
    if (task.set_bits[i] != 0) columns[n++] = task.set_bits[i];
  }
  if (n == 0) return;
  settle(cells, writes);
  for (u32 i = 0; i < n; ++i) {
#pragma HLS LOOP_TRIPCOUNT min = 1 max = 8
    cells.read_request(bit_address(banks, columns[i], row) / 8, 1);
  }
  u64 words[kSetBits];
  for (u32 i = 0; i < n; ++i) {
#pragma HLS LOOP_TRIPCOUNT min = 1 max = 8
    words[i] = cells.read();
  }
  for (u32 i = 0; i < n; ++i) {
#pragma HLS LOOP_TRIPCOUNT min = 1 max = 8
    const u64 word = words[i] | u64{1} << (row % 64);
    write_cell(cells, writes, bit_address(banks, columns[i], row), word);
    for (u32 slot = 0; slot < kSlots; ++slot) {
#pragma HLS LOOP_TRIPCOUNT min = 17 max = 17
      if (banks.slot_column[slot] == columns[i])
        set_piece64(banks.bits[slot][row / 512], row % 512 / 64, word);
    }
  }
}

// Adds the task to the row, or refuses: PENSTOCK_OUT_OF_RANGE, nothing changed.
inline u32 commit(Banks& banks, CellPort cells, Writes& writes, const Task& task, u32 row) {
#pragma HLS INLINE off
  const u32 group = row / kLane;
  const u32 lane = row % kLane;
  if (!commit_fits(banks, task, group, lane)) return PENSTOCK_OUT_OF_RANGE;
  for (u32 r = 0; r < banks.header.n_resources; ++r) {
#pragma HLS LOOP_TRIPCOUNT min = 1 max = 8
    if (task.request[r] != 0) {
      const u64 before = banks.requested[group][lane][r];
      const u64 value = before + task.request[r];
      banks.requested[group][lane][r] = value;
      write_cell(cells, writes, cell_address(banks, banks.header.requested, r, row), value);
    }
    if (task.scored_request[r] != 0) {
      const u64 before = banks.scored[group][lane][r];
      const u64 value = before + task.scored_request[r];
      banks.scored[group][lane][r] = value;
      write_cell(cells, writes, cell_address(banks, banks.header.scored, r, row), value);
    }
  }
  for (u32 i = 0; i < kCounts; ++i) {
#pragma HLS LOOP_TRIPCOUNT min = 4 max = 4
    if (task.count[i] == 0) continue;
    const u32 column = (task.count[i] - 1) % kFree;
    const u64 before = banks.free[group][lane][column];
    const u64 value = before + 1;
    banks.free[group][lane][column] = value;
    write_cell(cells, writes, cell_address(banks, banks.header.free, column, row),
               value - kFreeOffset);
  }
  set_bits(banks, cells, writes, task, row);
  // As the host will say in the header.
  ++banks.header.generation;
  return PENSTOCK_OK;
}

}  // namespace penstock_hls
#endif
