// The table that `penstock run --stats` prints, from what the ranks reported.
#ifndef PENSTOCK_SDK_TOOL_STATISTICS_REPORT_H_
#define PENSTOCK_SDK_TOOL_STATISTICS_REPORT_H_

#include <cstdint>
#include <string>

#include "penstock/base/status.h"

namespace penstock::tool {

// Reads the reports of `ranks` ranks (trace::part_name of `file`) and renders them: a line per comm
// and collective over all ranks, and for each comm who waited and who was waited for. A rank
// without a report is named. corrupt names a file that is no report.
Result<std::string> render_statistics(const std::string& file, std::uint32_t ranks);

}  // namespace penstock::tool
#endif
