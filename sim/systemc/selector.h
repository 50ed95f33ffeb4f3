// SELECT of the SystemC card: a node table that stays in the card's banks, filters, scores, the
// best rows and commits. Its own reading of node_table.h.
#ifndef PENSTOCK_SIM_SYSTEMC_SELECTOR_H_
#define PENSTOCK_SIM_SYSTEMC_SELECTOR_H_

#include <cstdint>
#include <optional>
#include <systemc>
#include <vector>

#include "penstock/descriptor/node_table.h"
#include "penstock/sim/systemc/descriptor_check.h"
#include "penstock/sim/systemc/table.h"

namespace penstock::systemc {

class Card;

// Executes one SELECT at a time, in the card's process for it; time passes inside.
class Selector {
 public:
  explicit Selector(Card& card) : card_(card) {}

  Answer run(std::uint32_t queue, const penstock_descriptor& record);
  // The next SELECT loads its table, whatever its header says: memory may have a new one.
  void forget() { resident_.reset(); }

 private:
  struct Places;

  Answer open_table(const penstock_descriptor& record, bool commit, Places* places);
  Answer load_columns(const Places& places);
  Answer open_program(const penstock_descriptor& record, Places* places);
  Answer open_tasks(const penstock_descriptor& record, Places* places);
  Answer check_tasks(const penstock_descriptor& record, const Places& places);
  Answer place_all(const penstock_descriptor& record, const Places& places);
  Answer write_commit(const Places& places, const penstock_task& task, std::uint32_t row);
  Answer resolve(std::uint32_t queue, penstock_address address, std::uint64_t bytes, bool write,
                 std::uint32_t field, std::uint64_t* bus);
  // A transfer whose failure is an answer.
  Answer move(bool write, std::uint64_t bus, void* data, std::uint64_t bytes, std::uint32_t field);
  // The same, while something else goes on: no time passes, and `settled_` is when it is over.
  Answer move_aside(bool write, std::uint64_t bus, void* data, std::uint64_t bytes,
                    std::uint32_t field);
  std::uint64_t decision_cycles() const;

  Card& card_;
  Table table_;
  std::optional<std::uint64_t> resident_;  // the table's bus address, if its columns are here
  std::uint64_t generation_ = 0;
  Program program_;
  Intervals intervals_;
  sc_core::sc_time settled_;  // everything that was written is acknowledged
};

}  // namespace penstock::systemc
#endif
