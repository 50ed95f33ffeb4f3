// Replays beside published ones: a CSV file with the columns
//
//   workload, policy, arrived_pct, n_seeds, mean_gpu_alloc_pct, min, max
//
// of which the rows of one workload with arrived_pct 100, or what arrived at the end, are compared.
// Policies may be written as the FGD simulator writes them ("01-Random", "02-DotProd").
#ifndef PENSTOCK_SCHED_REPLAY_PUBLISHED_H_
#define PENSTOCK_SCHED_REPLAY_PUBLISHED_H_

#include <string>
#include <string_view>
#include <vector>

#include "penstock/base/status.h"
#include "penstock/sched/replay.h"

namespace penstock {

struct PublishedRow {
  std::string workload;
  std::string policy;  // as built_in_policies() has it, or as in the file
  double arrived_pct = 0;
  std::uint32_t seeds = 0;
  double mean = 0, min = 0, max = 0;
};

Result<std::vector<PublishedRow>> read_published(const std::string& path);
Result<std::vector<PublishedRow>> parse_published(std::string_view bytes, const std::string& name);

enum class PublishedVerdict {
  within,   // the mean is at most the tolerance from the published one
  in_band,  // further, but between the published runs' lowest and highest
  apart,
};
const char* published_verdict_name(PublishedVerdict verdict);

struct PublishedComparison {
  PublishedRow published;
  double mean = 0;
  double difference = 0;  // mean - published.mean
  PublishedVerdict verdict = PublishedVerdict::apart;
};

// One comparison for each row of the workload whose policy and arrived_pct (100, or 100 * inflate
// to within 0.5) were replayed; tolerance in percentage points. not_found if there is none, with
// the workloads of the file.
Result<std::vector<PublishedComparison>> compare_published(
    const std::vector<PublishedRow>& published, const std::string& workload,
    const std::vector<ReplayResult>& results, double tolerance);

std::string published_text(const std::vector<PublishedComparison>& comparisons);
// A JSON list of {"policy", "arrived_pct", "mean", "published": {...}, "difference", "verdict"}.
std::string published_json(const std::vector<PublishedComparison>& comparisons);

}  // namespace penstock
#endif
