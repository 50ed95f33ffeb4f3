// The one measuring loop for every library.
//
// A call is timed alone: every rank rewrites its input, so that data really has to move between the
// caches; all ranks start at the same tick; every rank adds up what its calls took from there; then
// it reads its output. A **sample** is as many calls as fill sample_ms, and its time is the slowest
// rank's mean. What an empty call takes in this loop is measured first and taken off.
//
// A sample is **clean** when no rank waited for a CPU longer than max_waited of its time (with more
// ranks than CPUs: when the ranks together got nearly all CPUs), so that nobody else disturbed it;
// where at least three are clean, only those count. The placement of the CPUs is probed around
// every sample (control.h); a sample during which it changed is dropped, and each placement gives a
// row of its own.
#ifndef PENSTOCK_TESTS_BENCH_COMM_MEASURE_H_
#define PENSTOCK_TESTS_BENCH_COMM_MEASURE_H_

#include <string>
#include <vector>

#include "control.h"
#include "peer.h"
#include "problem.h"

namespace penstock::bench {

struct MeasureOptions {
  int samples = 11;       // clean ones that are enough
  double sample_ms = 1;   // of calls and what is around them
  double point_ms = 150;  // after which no further sample begins, once there are three
  double max_waited = 0.03;
  bool pinned = true;
};

enum class Placement { near, far };

struct Row {
  std::string variant;
  Placement placement = Placement::near;
  double us = 0;  // median over the samples; the others likewise
  double us_min = 0;
  double us_p25 = 0;
  double us_p75 = 0;
  double one_way_ns = 0;  // of the probes, mean
  std::size_t samples = 0;
  std::size_t clean = 0;
  bool right = false;  // the results of the first call and the last, on every rank
};

struct Sample {
  double us = 0;
  double one_way_ns = 0;  // 0: one CPU
  Placement placement = Placement::near;
  bool clean = false;
};

// Rows of the samples, none for a placement with fewer than three while the other has more.
std::vector<Row> rows_of(const std::vector<Sample>& samples);

struct Buffers {
  void* send = nullptr;
  void* recv = nullptr;
  void* original = nullptr;  // private; what the input is rewritten from
};

// What a call that does nothing takes in the loop, in ticks. All ranks.
double empty_call_ticks(Control& control);

// One row for each variant and placement; on rank 0 only. All ranks.
std::vector<Row> measure(Peer& peer, Control& control, const Problem& problem,
                         const Buffers& buffers, double empty_ticks, const MeasureOptions& options);

}  // namespace penstock::bench
#endif
