// A node table in the card's banks, a program as the card keeps it, and one decision on them.
#ifndef PENSTOCK_SIM_SYSTEMC_TABLE_H_
#define PENSTOCK_SIM_SYSTEMC_TABLE_H_

#include <cstdint>
#include <vector>

#include "penstock/descriptor/node_table.h"
#include "penstock/descriptor/types.h"

namespace penstock::systemc {

// The bit of CAP_SCORES that stands for a score.
constexpr std::uint32_t score_bit(std::uint32_t op) { return 1u << (op - 32); }

// What the card's banks and lanes hold; the capability registers say the same.
struct SelectLimits {
  static constexpr std::uint32_t kRows = 131072;
  static constexpr std::uint32_t kResources = 8;
  static constexpr std::uint32_t kFree = 8;
  // Columns of bits that a table may have; the RTL loads them as tasks name them.
  static constexpr std::uint32_t kBits = PENSTOCK_MAX_BIT_COLUMNS;
  static constexpr std::uint32_t kFilters = 1u << PENSTOCK_FILTER_BITS | 1u << PENSTOCK_FILTER_FIT |
                                            1u << PENSTOCK_FILTER_GPU | 1u << PENSTOCK_FILTER_ROW |
                                            1u << PENSTOCK_FILTER_DOMAINS;
  static constexpr std::uint32_t kScores =
      score_bit(PENSTOCK_SCORE_LEAST_ALLOCATED) | score_bit(PENSTOCK_SCORE_MOST_ALLOCATED) |
      score_bit(PENSTOCK_SCORE_BALANCED) | score_bit(PENSTOCK_SCORE_BITS) |
      score_bit(PENSTOCK_SCORE_FEATURES) | score_bit(PENSTOCK_SCORE_DOMAINS) |
      score_bit(PENSTOCK_SCORE_SPREAD);
  static constexpr std::uint32_t kNormalise = (2u << PENSTOCK_NORMALISE_SPREAD) - 1;  // all
  static constexpr std::uint32_t kTies =
      1u << PENSTOCK_TIE_LOWEST_ROW | 1u << PENSTOCK_TIE_ROTATING;
};

// Of a table that was checked.
struct Table {
  penstock_node_table header{};
  std::vector<std::vector<std::int64_t>> allocatable, requested, scored, free;
  std::vector<std::vector<std::uint64_t>> bits;

  bool bit(std::uint32_t column, std::uint32_t row) const {
    return (bits[column][row / 64] >> (row % 64) & 1) != 0;
  }
};

struct Program {
  penstock_program record{};
  std::vector<penstock_column_op> filters, scores;
  bool has_balanced = false;
};

// PENSTOCK_OK, or what is wrong with a header, a program, or a task, as node_table.h says.
// *detail is the index of the operation.
std::uint32_t check_header(const penstock_node_table& header);
std::uint32_t check_program(const penstock_program& program, const penstock_node_table& header,
                            std::uint64_t* detail);
std::uint32_t check_task(const penstock_task& task, const penstock_program& program,
                         const penstock_node_table& header);

// What is sound but more than this card does.
bool table_fits_card(const penstock_node_table& header);
// How many cycles the card takes for a group of rows, one row for each lane: in the pass that finds
// the ranges of normalised scores (0: there are none), and in the pass that adds up.
struct Intervals {
  std::uint32_t ranges = 0;
  std::uint32_t sums = 1;
};
// False: *detail is the first operation that the card lacks or has no room for, MAX_OPS for the tie
// rule. True: *intervals says how fast it runs.
bool program_suits_card(const penstock_program& program, std::uint64_t* detail,
                        Intervals* intervals);
bool task_suits_card(const penstock_task& task, const penstock_program& program, bool commit);

Program decode_program(const penstock_program& record);

// One task on the table: the best rows and the result, nothing committed.
penstock_result decide(const Table& table, const Program& program, const penstock_task& task);
// Adds the task to a row, or refuses: PENSTOCK_OUT_OF_RANGE, nothing changed.
std::uint32_t commit(Table* table, const penstock_task& task, std::uint32_t row);

}  // namespace penstock::systemc
#endif
