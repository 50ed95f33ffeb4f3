#include "penstock/sched/kubernetes_request.h"

#include <algorithm>

#include "penstock/descriptor/node_table.h"

namespace penstock {
namespace {

// Amounts are at most 2^53 each; sums stop growing at a bound that is far from overflow and beyond
// what total_request allows.
void add(Amounts* to, const Amounts& amounts) {
  for (const auto& [name, amount] : amounts) {
    std::int64_t& sum = (*to)[name];
    sum = std::min(sum + amount, 2 * PENSTOCK_MAX_REQUEST);
  }
}

void raise(Amounts* to, const Amounts& amounts) {
  for (const auto& [name, amount] : amounts) {
    std::int64_t& most = (*to)[name];
    most = std::max(most, amount);
  }
}

Amounts with_defaults(Amounts request, const Amounts& defaults) {
  request.insert(defaults.begin(), defaults.end());
  return request;
}

bool is_pod_level(const std::string& name) {
  return name == "cpu" || name == "memory" || name.starts_with("hugepages-");
}

// Everything, where a container that does not name a resource of `defaults` counts that.
Amounts total_of(const PodRequest& pod, const Amounts& defaults) {
  Amounts total, sidecars, at_start;  // the sidecars are within the total
  for (const ContainerRequest& container : pod.containers) {
    add(&total, with_defaults(container.request, defaults));
  }
  for (const ContainerRequest& container : pod.init_containers) {
    Amounts request = with_defaults(container.request, defaults);
    if (container.restartable) {
      add(&total, request);
      add(&sidecars, request);
    } else {
      add(&request, sidecars);
      raise(&at_start, request);
    }
  }
  raise(&total, at_start);
  for (const auto& [name, amount] : pod.pod_level) {
    if (is_pod_level(name)) total[name] = amount;
  }
  add(&total, pod.overhead);
  return total;
}

// What a container counts for when it names no cpu or memory. With requests of the pod as a whole
// only what neither the pod nor any container names is defaulted.
Amounts defaults_for(const PodRequest& pod) {
  Amounts defaults = {{"cpu", kDefaultCpuMilli}, {"memory", kDefaultMemoryBytes}};
  const bool whole = std::any_of(pod.pod_level.begin(), pod.pod_level.end(),
                                 [](const auto& entry) { return is_pod_level(entry.first); });
  if (!whole) return defaults;
  for (const auto& [name, amount] : total_of(pod, {})) defaults.erase(name);
  return defaults;
}

}  // namespace

Result<Amounts> total_request(const PodRequest& pod, bool defaults) {
  const Amounts total = total_of(pod, defaults ? defaults_for(pod) : Amounts());
  for (const auto& [name, amount] : total) {
    if (amount > PENSTOCK_MAX_REQUEST) {
      return error(Code::out_of_range, "the containers ask for more than 2^53 of {} together",
                   name);
    }
  }
  return total;
}

}  // namespace penstock
