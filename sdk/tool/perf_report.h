// What `penstock perf` measured, as a table in the form of nccl-tests and as JSON.
#ifndef PENSTOCK_SDK_TOOL_PERF_REPORT_H_
#define PENSTOCK_SDK_TOOL_PERF_REPORT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "penstock/comm/plan.h"

namespace penstock::tool {

struct PerfTime {
  bool measured = false;    // not where there is no in-place variant
  double time_us = 0;       // mean of a call at the slowest rank
  double algbw = 0;         // GB/s, 10^9 bytes
  double busbw = 0;         // GB/s
  std::uint64_t wrong = 0;  // elements, over all ranks
  std::uint64_t iterations = 0;
};

struct PerfRow {
  std::uint64_t size = 0;  // bytes
  std::uint64_t count = 0;
  std::string type;
  std::string redop;  // "none" where nothing is reduced
  std::int64_t root = -1;
  PerfTime out_of_place;
  PerfTime in_place;
  std::uint64_t pool_written = 0;  // bytes per call, by all ranks
  std::uint64_t pool_read = 0;
};

struct PerfHeader {
  std::string collective;
  std::string pool;
  std::uint32_t devices = 0;
  std::string engine;
  std::vector<std::string> ranks;  // "pid 4711 on host"
  std::uint64_t warmup = 0;
  std::uint64_t iterations = 0;
  bool fixed_iterations = false;
  std::uint64_t checks = 0;
  bool blocking = false;
  bool fresh = false;
};

struct PerfSummary {
  std::uint64_t wrong = 0;
  double mean_busbw = 0;  // over all that was measured
};
PerfSummary summarise(const std::vector<PerfRow>& rows);

std::string header_text(const PerfHeader& header);
std::string row_text(const PerfRow& row, bool checked);
std::string footer_text(const std::vector<PerfRow>& rows, bool checked);
std::string perf_json(const PerfHeader& header, const std::vector<PerfRow>& rows);

}  // namespace penstock::tool
#endif
