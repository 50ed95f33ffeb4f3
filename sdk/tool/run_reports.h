// What `penstock run` shows of a run when its ranks have ended: statistics and a timeline.
#ifndef PENSTOCK_SDK_TOOL_RUN_REPORTS_H_
#define PENSTOCK_SDK_TOOL_RUN_REPORTS_H_

#include <cstdint>
#include <string>

#include "launcher.h"
#include "penstock/base/status.h"

namespace penstock::tool {

class RunReports {
 public:
  RunReports() = default;
  RunReports(const RunReports&) = delete;
  RunReports& operator=(const RunReports&) = delete;
  ~RunReports();  // removes the folder

  bool stats = false;
  std::string trace;  // file; "": none

  // Tells the ranks where to report.
  Status prepare(LaunchConfig* launch);
  // Joins the timeline and prints the statistics. What fails is said, and doesn't change how the
  // run ended.
  void finish(std::uint32_t ranks) const;

 private:
  void finish_trace() const;
  std::string statistics_file() const { return folder_ + "/statistics"; }
  std::string folder_;  // for what the ranks report; "": none made
};

}  // namespace penstock::tool
#endif
