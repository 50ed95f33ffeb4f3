// Times collective calls on a comm and checks what they give.
#ifndef PENSTOCK_SDK_TOOL_PERF_MEASURE_H_
#define PENSTOCK_SDK_TOOL_PERF_MEASURE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "penstock/comm/comm.h"
#include "perf_expectation.h"
#include "perf_report.h"

namespace penstock::tool {

struct MeasureOptions {
  std::uint64_t iterations = 20;
  bool fixed_iterations = false;  // else fewer where they would take more than about a second
  std::uint64_t warmup = 5;
  std::uint64_t checks = 1;
  bool blocking = false;  // each call ends before the next one starts
  bool fresh = false;     // inputs are written anew before every call, with a barrier before it
};

// Every rank calls the same functions with the same arguments, in the same order.
class Measure {
 public:
  Measure(Comm& comm, Platform& platform, const MeasureOptions& options)
      : comm_(comm), platform_(platform), options_(options) {}

  // Time, errors and pool traffic of one scenario, over all ranks. `pool_bytes` (may be null)
  // receives what was written and read per call.
  struct Traffic {
    std::uint64_t written = 0;
    std::uint64_t read = 0;
  };
  Result<PerfTime> run(const Scenario& scenario, Traffic* traffic);
  // One line about every rank's process.
  Result<std::vector<std::string>> processes();

 private:
  Status call(const Scenario& scenario, PerfBuffers& buffers, std::uint64_t times);
  Status start(const Scenario& scenario, PerfBuffers& buffers,
               std::vector<std::shared_ptr<Request>>& requests);
  Status barrier();
  Result<std::uint64_t> warm_up(const Scenario& scenario, PerfBuffers& buffers);
  Result<double> time_calls(const Scenario& scenario, PerfBuffers& buffers,
                            std::uint64_t iterations);
  Result<std::uint64_t> agree(std::uint64_t value, std::uint32_t redop);

  Comm& comm_;
  Platform& platform_;
  const MeasureOptions& options_;
};

// False for send_recv and barrier.
bool has_in_place(Collective collective);

}  // namespace penstock::tool
#endif
