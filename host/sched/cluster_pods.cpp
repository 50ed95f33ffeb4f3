// Pods of a cluster: what they hold of their nodes, and what others count of them.
#include <algorithm>

#include "penstock/sched/cluster_state.h"
#include "penstock/sched/ports.h"

namespace penstock {

Status Cluster::State::check_pod(const KubernetesPod& pod) const {
  if (pod.name.empty() || pod.name.find('/') == std::string::npos) {
    return error(Code::invalid_argument, "'{}' names no pod, expected namespace/name", pod.name);
  }
  for (const Amounts* amounts : {&pod.request, &pod.scored_request}) {
    for (const auto& [name, amount] : *amounts) {
      if (amount >= 0 && amount <= PENSTOCK_MAX_REQUEST) continue;
      return error(Code::out_of_range, "pod {} asks for {} of {}, expected 0 to {}", pod.name,
                   amount, name, PENSTOCK_MAX_REQUEST);
    }
  }
  return {};
}

PlacedPod* Cluster::State::remember(const KubernetesPod& pod) {
  PodClass* of = classes.find(pod);
  const auto [entry, is_new] = pods.try_emplace(pod.name);
  PENSTOCK_CHECK(is_new, "the pod is remembered already");
  entry->second = {pod, of};
  ++of->pods;
  pods_of[pod.node_name].push_back(&entry->second);
  return &entry->second;
}

void Cluster::State::forget(PlacedPod* placed) {
  const auto of = pods_of.find(placed->pod.node_name);
  PENSTOCK_CHECK(of != pods_of.end());
  const auto at = std::find(of->second.begin(), of->second.end(), placed);
  PENSTOCK_CHECK(at != of->second.end());
  *at = of->second.back();
  of->second.pop_back();
  // A node that is there refers to its list.
  if (of->second.empty() && !nodes.contains(of->first)) pods_of.erase(of);
  --placed->pods->pods;
  pods.erase(pods.find(placed->pod.name));
}

Status Cluster::State::occupy(PlacedPod* placed, int sign) {
  return hold(placed, sign, columns.raises(placed->pods));
}

Status Cluster::State::hold(PlacedPod* placed, int sign, std::span<const penstock_raise> raises) {
  const std::int32_t row = row_of(placed->pod.node_name);
  if (row < 0) return {};
  const KubernetesPod& pod = placed->pod;
  Task task;
  task.name = pod.name;
  fill_requests(pod, &task.record);
  PENSTOCK_ASSIGN(const std::vector<std::uint16_t> ports, port_columns(table.get(), pod.ports));
  const auto change = [&](const Task& part, std::span<const penstock_raise> more) {
    const auto at = static_cast<std::uint32_t>(row);
    return sign > 0 ? table->occupy(at, part, 0, more) : table->release(at, part, 0, more);
  };
  // What a record does not hold follows in others; a pod rarely has so many ports.
  constexpr std::size_t kAtATime = std::size(decltype(task.record.set_bits){});
  std::size_t done = std::min(kAtATime, ports.size());
  std::copy_n(ports.begin(), done, task.record.set_bits);
  PENSTOCK_TRY(change(task, raises));
  while (done < ports.size()) {
    Task rest;
    rest.name = pod.name;
    const std::size_t n = std::min(kAtATime, ports.size() - done);
    std::copy_n(ports.begin() + static_cast<std::ptrdiff_t>(done), n, rest.record.set_bits);
    PENSTOCK_TRY(change(rest, {}));
    done += n;
  }
  return {};
}

Status Cluster::State::note_committed(PlacedPod* placed, std::uint32_t row) {
  PENSTOCK_ASSIGN(const std::vector<std::uint16_t> ports,
                  port_columns(table.get(), placed->pod.ports));
  table->note_uses(row, ports);
  const std::vector<penstock_raise> raises = columns.raises(placed->pods);
  if (raises.size() <= PENSTOCK_MAX_RAISES) return {};
  Task rest;
  rest.name = placed->pod.name;
  return table->occupy(row, rest, 0, std::span(raises).subspan(PENSTOCK_MAX_RAISES));
}

Status Cluster::State::put_pod(const KubernetesPod& pod) {
  PENSTOCK_TRY(check_pod(pod));
  const auto known = pods.find(pod.name);
  if (known != pods.end()) {
    if (known->second.pod == pod) return {};
    if (pod.node_name.empty()) return remove_pod(pod.name);
  }
  if (pod.node_name.empty()) return {};
  if (known == pods.end() && pods.size() >= PENSTOCK_MAX_DOMAIN_COUNT) {
    return error(Code::no_space, "pod {}: at most {} pods that have a node are counted", pod.name,
                 PENSTOCK_MAX_DOMAIN_COUNT);
  }
  PENSTOCK_TRY(reserve_resources(pod.request, "pod " + pod.name));
  KubernetesPod before;
  if (known != pods.end()) {
    before = known->second.pod;
    PENSTOCK_TRY(remove_pod(pod.name));
  }
  table->new_batch();
  PlacedPod* placed = remember(pod);
  Status status = occupy(placed, 1);
  // Ports may need more bit columns than there are; then everything is put on a larger table.
  if (status.code() == Code::no_space) status = more_columns(status);
  if (status.ok()) return status;
  forget(placed);
  if (!before.name.empty()) {
    PlacedPod* again = remember(before);
    PENSTOCK_TRY(occupy(again, 1));
  }
  return status;
}

Status Cluster::State::remove_pod(const std::string& key) {
  const auto known = pods.find(key);
  if (known == pods.end()) return {};
  table->new_batch();
  PENSTOCK_TRY(occupy(&known->second, -1));
  forget(&known->second);
  classes.sweep();
  return {};
}

}  // namespace penstock
