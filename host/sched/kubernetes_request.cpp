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

Amounts with_defaults(Amounts request, bool defaults) {
  if (defaults) {
    request.emplace("cpu", kDefaultCpuMilli);
    request.emplace("memory", kDefaultMemoryBytes);
  }
  return request;
}

}  // namespace

Result<Amounts> total_request(const PodRequest& pod, bool defaults) {
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
    if (name == "cpu" || name == "memory" || name.starts_with("hugepages-")) total[name] = amount;
  }
  add(&total, pod.overhead);
  for (const auto& [name, amount] : total) {
    if (amount > PENSTOCK_MAX_REQUEST) {
      return error(Code::out_of_range, "the containers ask for more than 2^53 of {} together",
                   name);
    }
  }
  return total;
}

}  // namespace penstock
