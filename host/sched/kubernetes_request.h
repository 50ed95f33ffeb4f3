// What a pod requests of a node (kube-scheduler v1.34, k8s.io/component-helpers/resource).
#ifndef PENSTOCK_SCHED_KUBERNETES_REQUEST_H_
#define PENSTOCK_SCHED_KUBERNETES_REQUEST_H_

#include <string>
#include <vector>

#include "penstock/sched/kubernetes.h"

namespace penstock {

// What a container counts for in scores when it names no cpu or no memory.
inline constexpr std::int64_t kDefaultCpuMilli = 100;
inline constexpr std::int64_t kDefaultMemoryBytes = std::int64_t{200} << 20;

struct ContainerRequest {
  Amounts request;
  bool restartable = false;  // an init container that goes on running (a sidecar)
};

struct PodRequest {
  std::vector<ContainerRequest> containers;
  std::vector<ContainerRequest> init_containers;  // in the order in which they run
  Amounts pod_level;  // cpu, memory and huge pages here replace the containers' total
  Amounts overhead;
};

// Per resource: the larger of the containers with all sidecars, and of what each init container
// needs with the sidecars before it; then the overhead. out_of_range beyond PENSTOCK_MAX_REQUEST.
// With defaults every container that names no cpu or memory counts the constants above; where the
// pod as a whole requests something, only for what neither it nor any container names.
Result<Amounts> total_request(const PodRequest& pod, bool defaults);

}  // namespace penstock
#endif
