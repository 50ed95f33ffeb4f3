// Many replays at a time, and what they come to together.
#include <algorithm>
#include <atomic>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "penstock/sched/replay.h"

namespace penstock {
namespace {

constexpr std::uint32_t kMaxJobs = 256;

class Runs {
 public:
  Runs(const ReplayConfig& config, const ReplayRuns& runs, const ReplayRunsCallback& progress)
      : config_(config), runs_(runs), progress_(progress) {
    results_.resize(runs.policies.size() * runs.seeds);
  }

  Result<std::vector<ReplayResult>> run() {
    const std::size_t jobs = std::min<std::size_t>(runs_.jobs, results_.size());
    std::vector<std::thread> threads;
    for (std::size_t i = 1; i < jobs; ++i) threads.emplace_back([this] { work(); });
    work();
    for (std::thread& thread : threads) thread.join();
    if (failed_) return *failed_;
    return std::move(results_);
  }

 private:
  void work() {
    for (;;) {
      const std::size_t at = next_.fetch_add(1);
      if (at >= results_.size()) return;
      ReplayConfig config = config_;
      config.policy = runs_.policies[at / runs_.seeds];
      config.seed = config_.seed + at % runs_.seeds;
      auto result = replay(config, [&](const ReplayProgress& progress) {
        const std::lock_guard lock(mutex_);
        return !failed_ && (!progress_ || progress_(config.policy, config.seed, progress));
      });
      const std::lock_guard lock(mutex_);
      if (result.ok()) {
        results_[at] = std::move(result).value();
        continue;
      }
      if (!failed_) failed_ = result.status();
      next_ = results_.size();
      return;
    }
  }

  const ReplayConfig& config_;
  const ReplayRuns& runs_;
  const ReplayRunsCallback& progress_;
  std::vector<ReplayResult> results_;
  std::atomic<std::size_t> next_{0};
  std::mutex mutex_;  // guards failed_ and the callback
  std::optional<Status> failed_;
};

}  // namespace

Result<std::vector<ReplayResult>> replay_runs(const ReplayConfig& config, const ReplayRuns& runs,
                                              const ReplayRunsCallback& progress) {
  if (runs.policies.empty() || runs.seeds == 0 || runs.jobs < 1 || runs.jobs > kMaxJobs) {
    return error(Code::invalid_argument,
                 "replay: {} policies, {} seeds and {} jobs; expected at least one of each, and up "
                 "to {} jobs",
                 runs.policies.size(), runs.seeds, runs.jobs, kMaxJobs);
  }
  if (config.pool != nullptr && runs.policies.size() * runs.seeds > 1) {
    return error(Code::invalid_argument, "replay: a table in a pool is for one run at a time");
  }
  return Runs(config, runs, progress).run();
}

std::vector<ReplayMean> replay_means(const std::vector<ReplayResult>& results) {
  std::vector<ReplayMean> means;
  for (const ReplayResult& result : results) {
    const double end = result.gpu_alloc_pct;
    const double full = result.gpu_alloc_at_full_pct;
    auto mean = std::find_if(means.begin(), means.end(), [&](const ReplayMean& known) {
      return known.policy == result.policy;
    });
    if (mean == means.end()) {
      mean = means.insert(mean, {result.policy, 0, 0, end, end, 0, full, full});
    }
    ++mean->seeds;
    mean->mean += end;
    mean->min = std::min(mean->min, end);
    mean->max = std::max(mean->max, end);
    mean->full_mean += full;
    mean->full_min = std::min(mean->full_min, full);
    mean->full_max = std::max(mean->full_max, full);
  }
  for (ReplayMean& mean : means) {
    mean.mean /= static_cast<double>(mean.seeds);
    // A mean over runs of which one did not get there would be of something else.
    mean.full_mean = mean.full_min < 0 ? -1 : mean.full_mean / static_cast<double>(mean.seeds);
    if (mean.full_min < 0) mean.full_max = -1;
  }
  return means;
}

}  // namespace penstock
