// Small renderings that several subcommands share.
#ifndef PENSTOCK_SDK_TOOL_TEXT_H_
#define PENSTOCK_SDK_TOOL_TEXT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "penstock/base/platform.h"

namespace penstock::tool {

// "64 KiB", "1.5 MiB", "17 B": at most one decimal.
std::string readable_bytes(std::uint64_t bytes);
const char* liveness_name(Liveness liveness);
// Pids of the processes that map the file, ascending, without this one; as far as this user may see
// what they map.
std::vector<std::uint32_t> mapping_processes(const std::string& path);

}  // namespace penstock::tool
#endif
