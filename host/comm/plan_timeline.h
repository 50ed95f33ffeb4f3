// When every step of a plan runs if a rank moves bytes at a fixed rate: for pictures, not for
// predictions.
#ifndef PENSTOCK_COMM_PLAN_TIMELINE_H_
#define PENSTOCK_COMM_PLAN_TIMELINE_H_

#include <vector>

#include "penstock/comm/plan.h"

namespace penstock {

struct Rates {
  double bytes_per_us = 20000;  // of a rank, reads and writes together
  double step_us = 0.1;         // of every step
  double signal_us = 1.0;       // from a signal to the end of a wait for it
};

struct Span {
  double begin_us = 0;
  double end_us = 0;
};

// By rank, by step. The plan is right (plan_checker.h); steps that would wait for ever have no span
// and end the rank's list. A reuse waits for nothing: the pass before the previous one is over.
std::vector<std::vector<Span>> plan_timeline(const Plan& plan, const Rates& rates = {});

}  // namespace penstock
#endif
