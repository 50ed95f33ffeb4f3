#include "penstock/comm/plan_timeline.h"

#include <algorithm>

namespace penstock {
namespace {

double duration_us(const Step& step, const Rates& rates) {
  std::uint64_t bytes = 0;
  for (const Slice& slice : step.src) bytes += slice.bytes;
  for (const Slice& slice : step.dst) bytes += slice.bytes;
  return rates.step_us + static_cast<double>(bytes) / rates.bytes_per_us;
}

}  // namespace

// Ranks run in turn, each until it needs a signal that is not given yet. Nothing else couples them,
// so that the order of turns has no influence on the times.
std::vector<std::vector<Span>> plan_timeline(const Plan& plan, const Rates& rates) {
  const std::size_t n = plan.ranks.size();
  std::vector<std::vector<Span>> spans(n);
  std::vector<std::vector<double>> signals(n);          // by rank: when each was given
  std::vector<double> written(plan.blocks.size(), -1);  // inlined blocks: when, or not yet
  const auto inlined = [&plan](const Slice& slice) {
    return slice.space == Space::block && plan.blocks[slice.index].inlined;
  };
  bool moved = true;
  while (moved) {
    moved = false;
    for (std::size_t r = 0; r < n; ++r) {
      while (spans[r].size() < plan.ranks[r].size()) {
        const Step& step = plan.ranks[r][spans[r].size()];
        Span span;
        span.begin_us = spans[r].empty() ? 0 : spans[r].back().end_us;
        span.end_us = span.begin_us + duration_us(step, rates);
        if (step.kind == StepKind::wait && step.value > 0) {
          if (step.rank >= n || signals[step.rank].size() < step.value) break;
          const double given = signals[step.rank][step.value - 1];
          span.end_us = std::max(span.end_us, given + rates.signal_us);
        }
        bool arrived = true;
        for (const Slice& slice : step.src) {
          if (!inlined(slice)) continue;
          arrived &= written[slice.index] >= 0;
          const double begin = std::max(span.begin_us, written[slice.index] + rates.signal_us);
          span.end_us = std::max(span.end_us, begin + duration_us(step, rates));
        }
        if (!arrived) break;
        for (const Slice& slice : step.dst) {
          if (inlined(slice)) written[slice.index] = span.end_us;
        }
        if (step.kind == StepKind::signal) signals[r].push_back(span.end_us);
        spans[r].push_back(span);
        moved = true;
      }
    }
  }
  return spans;
}

}  // namespace penstock
