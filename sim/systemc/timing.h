// What things take, in cycles of the card's clock. The numbers were measured from the RTL under
// Verilator (`./run card-report` measures both side by side).
#ifndef PENSTOCK_SIM_SYSTEMC_TIMING_H_
#define PENSTOCK_SIM_SYSTEMC_TIMING_H_

#include <cstdint>

namespace penstock::systemc {

struct Timing {
  // ---- command ----
  std::uint32_t doorbell = 4;          // from the register write until a fetch is asked for
  std::uint32_t fetch = 3;             // one fetch after another
  std::uint32_t decode = 6;            // a record's check
  std::uint32_t window = 4;            // one address through the windows
  std::uint32_t dispatch = 3;          // handing a job on
  std::uint32_t completion = 4;        // until a completion's write is asked for
  std::uint32_t completion_every = 4;  // one completion after another
  // ---- sync ----
  std::uint32_t poll_every = 8;  // one entry's polls, besides the latency
  std::uint32_t sync_step = 4;   // from a read's data to what follows from it
  // ---- reduce ----
  std::uint32_t read_ahead_beats = 512;  // room for data that was asked for
  std::uint32_t job_start = 0;           // of a job that finds the engine idle
  std::uint32_t fold_depth = 8;          // beats of one source until those of the next may follow
  std::uint32_t drain_depth = 16;        // from the last beat of a chunk to its first result
  std::uint32_t write_start = 4;         // of a burst, when the writer was idle
  std::uint32_t done = 3;                // from the last acknowledgement
  // ---- select ----
  std::uint32_t lanes = 8;
  std::uint32_t header = 24;     // looking at the table's header
  std::uint32_t program_op = 6;  // one operation of a program
  // What a decision takes besides the passes over the rows: the next task is fetched meanwhile.
  std::uint32_t decision = 81;   // from one task to the next, commit and all
  std::uint32_t normalised = 6;  // more, with a second pass
  std::uint32_t balanced = 47;   // more, with divisions
  std::uint32_t best = 6;        // more, for each row of the result beyond the first
};

}  // namespace penstock::systemc
#endif
