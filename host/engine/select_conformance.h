// Inputs for SELECT and UPDATE made from a seed, and comparisons: with these every engine is held
// against the definition, and two runs with one seed see the same.
#ifndef PENSTOCK_ENGINE_SELECT_CONFORMANCE_H_
#define PENSTOCK_ENGINE_SELECT_CONFORMANCE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "penstock/engine/host_engine.h"

namespace penstock {

// splitmix64. The same numbers everywhere, unlike the standard library's distributions.
class SeededRandom {
 public:
  explicit SeededRandom(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next();
  std::uint64_t below(std::uint64_t bound) { return next() % bound; }  // 0 .. bound - 1, bound > 0
  std::int64_t between(std::int64_t low, std::int64_t high);           // both included
  bool one_in(std::uint64_t n) { return below(n) == 0; }

 private:
  std::uint64_t state_;
};

// A node table in this process's memory: zeroed columns on cache lines. Copies are deep. The counts
// must be ones that penstock_node_table_init accepts (else it aborts), and rows at most capacity.
class HostTable {
 public:
  // logs holds what libm says of them.
  HostTable(std::uint32_t rows, std::uint32_t capacity, std::uint32_t n_resources,
            std::uint32_t n_gpus, std::uint32_t n_bits, std::uint32_t n_free,
            std::uint32_t n_domains = 0, std::uint32_t n_counts = 0);

  penstock_node_table* header() { return reinterpret_cast<penstock_node_table*>(lines_.data()); }
  const penstock_node_table* header() const {
    return reinterpret_cast<const penstock_node_table*>(lines_.data());
  }
  TableView view() { return table_view(header()); }
  std::uint64_t bytes() const { return lines_.size() * sizeof(Line); }

  // For tests that write tables down cell by cell.
  void set_bit(std::uint32_t column, std::uint32_t row, bool value = true);
  bool bit(std::uint32_t column, std::uint32_t row) const;

 private:
  struct alignas(PENSTOCK_CACHE_LINE) Line {
    unsigned char bytes[PENSTOCK_CACHE_LINE];
  };
  std::vector<Line> lines_;
};

// What random cases may contain.
struct SelectRules {
  std::uint32_t max_rows = 700;
  std::uint64_t opcodes = ~std::uint64_t{0};  // bit per penstock_column_opcode
  std::uint32_t normalisations = ~0u;         // bit per penstock_normalise
  bool damaged = true;                        // some tables hold cells outside of their bounds
  std::uint32_t max_tasks = 6;
  // Of what an engine may lack.
  std::uint32_t ties = ~0u;  // bit per penstock_tie
  std::uint32_t max_best = PENSTOCK_MAX_BEST;
  std::uint32_t max_resources = 6;
  std::uint32_t max_bits = 11;
  std::uint32_t max_free = 8;
  bool gpus = true;     // tasks ask for GPUs
  bool domains = true;  // tasks have domain terms and raises
  // An operation that every second filter, or score, is; 0: none in particular.
  std::uint32_t focus = 0;
};

// A checked table, program and tasks: penstock_*_check accepts all of them.
struct SelectCase {
  HostTable table;
  penstock_program program;
  std::vector<penstock_task> tasks;
  bool commit;
};
SelectCase make_select_case(std::uint64_t seed, const SelectRules& rules = {});

// Updates for the table, of which about one list in three holds an entry that must be refused.
std::vector<penstock_update> make_updates(std::uint64_t seed, const penstock_node_table& header);

// Empty when both are the same, else where they differ first and both values.
std::string difference(const penstock_result& expected, const penstock_result& actual);
std::string difference(const HostTable& expected, const HostTable& actual);

}  // namespace penstock
#endif
