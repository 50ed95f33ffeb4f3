// Tables, programs, classes of tasks and changes made from a seed, for the tests of Rescorer: with
// domains in every role, and sequences in which the same few classes come back.
#ifndef PENSTOCK_SCHED_RESCORER_CASE_H_
#define PENSTOCK_SCHED_RESCORER_CASE_H_

#include <cstdint>
#include <vector>

#include "penstock/engine/select_conformance.h"
#include "penstock/sched/rescorer.h"

namespace penstock {

struct RescorerCase {
  HostTable table;
  penstock_program program;
  std::vector<penstock_task> tasks;  // one of each class
  RescorerOptions options;
};

// Every part has passed its check.
RescorerCase make_rescorer_case(std::uint64_t seed);

// One change that is no decision: to a row, a count, or the number of rows. Valid for the table.
std::vector<penstock_update> make_rescorer_change(SeededRandom& random,
                                                  const penstock_node_table& header);

}  // namespace penstock
#endif
