// Joins the parts of a timeline that the ranks of a job wrote (penstock/base/trace.h).
#ifndef PENSTOCK_SDK_TOOL_TRACE_MERGE_H_
#define PENSTOCK_SDK_TOOL_TRACE_MERGE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "penstock/base/status.h"

namespace penstock::tool {

struct MergedTrace {
  std::uint32_t parts = 0;
  std::uint64_t slices = 0;
  std::uint64_t dropped = 0;          // by the ranks, for want of room
  std::vector<std::string> findings;  // a rank without a part, a part that was cut: a sentence each
};

// Writes the parts FILE.0, FILE.1, ... (or FILE alone) to `out` as one timeline. Parts are read
// line by line, so that their size does not matter. `out` may be FILE itself if that is no part.
// not_found if there is no part; corrupt names a file that is none; io_error.
Result<MergedTrace> merge_trace(const std::string& file, const std::string& out);

// Removes the parts FILE.0, FILE.1, ... that merge_trace() would read; files that are none stay.
void remove_parts(const std::string& file);

}  // namespace penstock::tool
#endif
