// How sizes on command lines become counts, and how speeds are computed from them, by the rules of
// nccl-tests (its document PERFORMANCE.md).
#ifndef PENSTOCK_SDK_TOOL_SIZES_H_
#define PENSTOCK_SDK_TOOL_SIZES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "penstock/comm/plan.h"

namespace penstock::tool {

// Names of element types and of reduction operations, as they stand on command lines.
std::vector<std::string> type_names();
std::vector<std::string> redop_names();
// not_found lists the names. Those of nccl-tests are read as well: "half", "float", "double",
// "bfloat16", ...; "premulsum" beside "premul_sum".
Result<std::uint32_t> parse_type(const std::string& name);
Result<std::uint32_t> parse_redop(const std::string& name);

// True where buffers are made of one part per rank, so that a size counts all of them: all_gather,
// reduce_scatter, all_to_all, gather, scatter.
bool has_parts(Collective collective);

// Elements of Call::count for `size` bytes, rounded down to whole elements; 0 for barrier.
std::uint64_t count_of_size(Collective collective, std::uint64_t size, std::uint32_t ranks,
                            std::uint32_t type);
// The bytes that `count` stands for: what algbw divides by the time.
std::uint64_t size_of_count(Collective collective, std::uint64_t count, std::uint32_t ranks,
                            std::uint32_t type);

// busbw / algbw: 2(n-1)/n for all_reduce, (n-1)/n where there are parts, else 1.
double bus_factor(Collective collective, std::uint32_t ranks);

}  // namespace penstock::tool
#endif
