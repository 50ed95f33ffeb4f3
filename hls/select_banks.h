// The table as it stands in the kernel's memory, and how it comes there.
#ifndef PENSTOCK_HLS_SELECT_BANKS_H_
#define PENSTOCK_HLS_SELECT_BANKS_H_

#include "select_table.h"

namespace penstock_hls {

// Cells keep 54 bits (quantities) or 42 (free values): every value in bounds, and two marks for a
// cell that was found below or above them.
using Quantity = ap_uint<54>;
using FreeValue = ap_uint<42>;
constexpr u64 kMaxQuantity = u64{1} << 53;
constexpr u64 kQuantityBelow = (u64{1} << 54) - 1;
constexpr u64 kQuantityAbove = (u64{1} << 54) - 2;
constexpr u64 kFreeOffset = u64{1} << 40;
constexpr u64 kFreeBelow = (u64{1} << 42) - 1;
constexpr u64 kFreeAbove = (u64{1} << 42) - 2;

inline u64 stored_quantity(u64 cell) {
#pragma HLS INLINE
  const i64 value = static_cast<i64>(cell);
  return value < 0 ? kQuantityBelow : cell > kMaxQuantity ? kQuantityAbove : cell;
}
inline bool quantity_is_damaged(u64 stored) {
#pragma HLS INLINE
  return stored > kMaxQuantity;
}
// As it counts: a damaged cell is the nearest bound.
inline u64 quantity_of(u64 stored) {
#pragma HLS INLINE
  return stored == kQuantityBelow ? 0 : stored > kMaxQuantity ? kMaxQuantity : stored;
}
inline u64 stored_free(u64 cell) {
#pragma HLS INLINE
  const i64 value = static_cast<i64>(cell);
  const i64 most = static_cast<i64>(kFreeOffset);
  return value < -most ? kFreeBelow : value > most ? kFreeAbove : cell + kFreeOffset;
}
inline bool free_is_damaged(u64 stored) {
#pragma HLS INLINE
  return stored > 2 * kFreeOffset;
}
inline i64 free_of(u64 stored) {
#pragma HLS INLINE
  const i64 most = static_cast<i64>(kFreeOffset);
  return stored == kFreeBelow       ? -most
         : stored > 2 * kFreeOffset ? most
                                    : static_cast<i64>(stored) - most;
}

constexpr u32 kSlots = 1 + kTerms;  // of bit columns: PENSTOCK_BIT_NODE, and one for each term
constexpr u32 kBitWords = kRows / 512;
constexpr u32 kNoColumn = 0xffffffff;
constexpr u32 kLoadWords = 64;  // of a burst

struct Banks {
  Quantity allocatable[kGroups][kLane][kResources];
  Quantity requested[kGroups][kLane][kResources];
  Quantity scored[kGroups][kLane][kResources];
  FreeValue free[kGroups][kLane][kFree];
  Word bits[kSlots][kBitWords];
  // Of the task in work: rows that pass, and the sums of their scores.
  u8 feasible[kGroups];
  i64 totals[kGroups][kLane];
  // Which table this is, and which bit columns the slots hold.
  bool loaded;
  u64 table;
  Header header;
  u32 slot_column[kSlots];
};

enum BankKind { kAllocatable = 0, kRequested = 1, kScored = 2, kFreeCells = 3 };

inline void store_cell(Banks& banks, u32 kind, u32 group, u32 lane, u32 column, u64 cell) {
#pragma HLS INLINE
  switch (kind) {
    case kAllocatable:
      banks.allocatable[group][lane][column] = stored_quantity(cell);
      break;
    case kRequested:
      banks.requested[group][lane][column] = stored_quantity(cell);
      break;
    case kScored:
      banks.scored[group][lane][column] = stored_quantity(cell);
      break;
    default:
      banks.free[group][lane][column] = stored_free(cell);
  }
}

// Asks for words that follow one another, in bursts.
inline void request_run(WordPort port, u64 word, u32 words) {
#pragma HLS INLINE off
  for (u32 at = 0; at < words; at += kLoadWords) {
#pragma HLS LOOP_TRIPCOUNT min = 1 max = 16
    const u32 length = words - at < kLoadWords ? words - at : kLoadWords;
    port.read_request(word + at, length);
  }
}

// The first `groups` words of a column of cells, a word for each group of rows.
inline void load_column(Banks& banks, WordPort port, u32 kind, u32 column, u64 word, u32 groups) {
#pragma HLS INLINE off
  constexpr u32 kRun = 16 * kLoadWords;  // bursts that are under way at once
  for (u32 first = 0; first < groups; first += kRun) {
#pragma HLS LOOP_TRIPCOUNT min = 1 max = 16
    const u32 n = groups - first < kRun ? groups - first : kRun;
    request_run(port, word + first, n);
    for (u32 i = 0; i < n; ++i) {
#pragma HLS PIPELINE II = 1
#pragma HLS LOOP_TRIPCOUNT min = 1 max = 1024
#pragma HLS DEPENDENCE variable = banks.allocatable type = inter dependent = false
#pragma HLS DEPENDENCE variable = banks.requested type = inter dependent = false
#pragma HLS DEPENDENCE variable = banks.scored type = inter dependent = false
#pragma HLS DEPENDENCE variable = banks.free type = inter dependent = false
      const Word cells = port.read();
      for (u32 lane = 0; lane < kLane; ++lane) {
#pragma HLS UNROLL
#pragma HLS LOOP_TRIPCOUNT min = 8 max = 8
        store_cell(banks, kind, first + i, lane, column, piece64(cells, lane));
      }
    }
  }
}

inline u32 groups_of(const Header& header) {
#pragma HLS INLINE
  return (header.rows + kLane - 1) / kLane;
}

inline bool same_table(const Banks& banks, u64 table, const Header& header) {
#pragma HLS INLINE
  const Header& kept = banks.header;
  return banks.loaded && banks.table == table && kept.generation == header.generation &&
         kept.rows == header.rows && kept.capacity == header.capacity &&
         kept.n_resources == header.n_resources && kept.n_bits == header.n_bits &&
         kept.n_free == header.n_free;
}

// Brings the table into the banks, unless it is there.
inline void load_table(Banks& banks, WordPort port, u64 table, const Header& header, bool forget) {
#pragma HLS INLINE off
  if (!forget && same_table(banks, table, header)) return;
  for (u32 slot = 0; slot < kSlots; ++slot) {
#pragma HLS UNROLL
#pragma HLS LOOP_TRIPCOUNT min = 17 max = 17
    banks.slot_column[slot] = kNoColumn;
  }
  const u64 stride = header.capacity / kLane;  // words from a column to the next
  const u64 base = table / kWordBytes;
  const u32 groups = groups_of(header);
  for (u32 c = 0; c < header.n_resources; ++c) {
#pragma HLS LOOP_TRIPCOUNT min = 1 max = 8
    const u64 at = c * stride;
    load_column(banks, port, kAllocatable, c, base + header.allocatable / kWordBytes + at, groups);
    load_column(banks, port, kRequested, c, base + header.requested / kWordBytes + at, groups);
    load_column(banks, port, kScored, c, base + header.scored / kWordBytes + at, groups);
  }
  for (u32 c = 0; c < header.n_free; ++c) {
#pragma HLS LOOP_TRIPCOUNT min = 0 max = 8
    load_column(banks, port, kFreeCells, c, base + header.free / kWordBytes + c * stride, groups);
  }
  banks.loaded = true;
  banks.table = table;
  banks.header = header;
}

// Where a bit column lies. It begins on a multiple of 8 bytes.
struct BitRun {
  u64 word;
  u32 words;  // of memory
  u32 shift;  // bytes before it in its first word
  u32 beats;  // words that it makes
};
inline BitRun bit_run(const Banks& banks, u32 column) {
#pragma HLS INLINE
  const u64 address = banks.table + banks.header.bits + u64{column} * (banks.header.capacity / 8);
  const u32 bytes = (banks.header.rows + 63) / 64 * 8;
  BitRun run;
  run.word = address / kWordBytes;
  run.shift = static_cast<u32>(address % kWordBytes);
  run.words = (run.shift + bytes + kWordBytes - 1) / kWordBytes;
  run.beats = (bytes + kWordBytes - 1) / kWordBytes;
  return run;
}

inline void take_bit_column(Banks& banks, WordPort port, u32 slot, const BitRun& run) {
#pragma HLS INLINE off
  Word before = 0;
  const u32 turns = run.beats + (run.shift != 0 ? 1 : 0);
  const u32 bits = run.shift * 8;
  for (u32 turn = 0; turn < turns; ++turn) {
#pragma HLS PIPELINE II = 1
#pragma HLS LOOP_TRIPCOUNT min = 1 max = 257
    Word word = 0;
    if (turn < run.words) word = port.read();
    if (run.shift == 0)
      banks.bits[slot][turn] = word;
    else if (turn > 0)
      banks.bits[slot][turn - 1] = before >> bits | word << (512 - bits);
    before = word;
  }
}

// The bit columns that a task's terms name, and that of nodes, each into its slot unless it is
// there. While one comes, the next is asked for: two of up to five bursts are under way at once.
inline void load_bits(Banks& banks, WordPort port, const Task& task) {
#pragma HLS INLINE off
  u32 slots[kSlots];
  BitRun runs[kSlots];
  u32 n = 0;
  for (u32 slot = 0; slot < kSlots; ++slot) {
#pragma HLS LOOP_TRIPCOUNT min = 17 max = 17
    const u32 column = slot == 0 ? PENSTOCK_BIT_NODE : task.terms[slot - 1].column;
    const bool wanted = slot == 0 || slot - 1 < task.n_terms;
    if (!wanted || banks.slot_column[slot] == column) continue;
    banks.slot_column[slot] = column;
    slots[n] = slot;
    runs[n] = bit_run(banks, column);
    ++n;
  }
  for (u32 i = 0; i < n; ++i) {
#pragma HLS LOOP_TRIPCOUNT min = 0 max = 17
    if (i == 0) request_run(port, runs[0].word, runs[0].words);
    if (i + 1 < n) request_run(port, runs[i + 1].word, runs[i + 1].words);
    take_bit_column(banks, port, slots[i], runs[i]);
  }
}

// The bits of a group's rows in a slot.
inline u32 bits_of(const Banks& banks, u32 slot, u32 group) {
#pragma HLS INLINE
  const Word word = banks.bits[slot][group / kWordBytes];
  return static_cast<u32>(piece64(word, group % kWordBytes / 8) >> (group % 8 * 8)) & 0xff;
}

}  // namespace penstock_hls
#endif
