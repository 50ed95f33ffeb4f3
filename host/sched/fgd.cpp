#include "penstock/sched/fgd.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>
#include <utility>

#include "penstock/sched/node_table.h"
#include "penstock/sched/trace_table.h"

namespace penstock {

std::vector<TypicalPod> typical_pods(std::span<const TracePod> pods, double cover) {
  using Type = std::tuple<std::int64_t, std::uint32_t, std::uint32_t, std::string>;
  std::map<Type, std::int64_t> counts;
  for (const TracePod& pod : pods) {
    ++counts[Type(pod.cpu_milli, pod.num_gpu, pod.gpu_milli, pod.gpu_spec)];
  }
  std::vector<std::pair<std::int64_t, Type>> types;
  for (const auto& [type, count] : counts) types.emplace_back(count, type);
  std::sort(types.rbegin(), types.rend());

  const double wanted = std::clamp(cover, 0.0, 1.0) * static_cast<double>(pods.size());
  std::vector<TypicalPod> typical;
  std::int64_t covered = 0;
  for (const auto& [count, type] : types) {
    if (static_cast<double>(covered) >= wanted || typical.size() == PENSTOCK_MAX_TYPICAL) break;
    const auto& [cpu_milli, num_gpu, gpu_milli, gpu_spec] = type;
    typical.push_back({cpu_milli, num_gpu, gpu_milli, gpu_spec, count});
    covered += count;
  }
  return typical;
}

Result<TypicalTasks> make_typical_tasks(NodeTable& table, std::span<const TracePod> pods) {
  constexpr std::int64_t kMost = PENSTOCK_MAX_TYPICAL_WEIGHT;
  const auto total = static_cast<std::int64_t>(pods.size());
  TypicalTasks typical;
  typical.total = std::min(total, kMost);
  for (const TypicalPod& pod : typical_pods(pods)) {
    penstock_typical task{};
    task.request = pod.cpu_milli;
    task.gpu_count = pod.num_gpu;
    task.gpu_milli = pod.gpu_milli;
    task.weight = total <= kMost ? pod.count : pod.count * kMost / total;
    if (task.weight == 0) continue;
    if (!pod.gpu_spec.empty()) {
      PENSTOCK_ASSIGN(task.model, intern_models(table, pod.gpu_spec));
    }
    typical.tasks.push_back(task);
  }
  return typical;
}

std::array<std::int64_t, PENSTOCK_FGD_THRESHOLDS> fgd_thresholds(std::int64_t total) {
  PENSTOCK_CHECK(total >= 1 && total <= PENSTOCK_MAX_TYPICAL_WEIGHT);
  std::array<std::int64_t, PENSTOCK_FGD_THRESHOLDS> thresholds;
  for (std::size_t i = 0; i < thresholds.size(); ++i) {
    const auto score = static_cast<double>(i + 1);
    thresholds[i] = static_cast<std::int64_t>(
        std::ceil(1000 * static_cast<double>(total) * std::log(score / (100 - score))));
  }
  return thresholds;
}

}  // namespace penstock
