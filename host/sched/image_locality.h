// Which nodes have a pod's images already (kube-scheduler's ImageLocality, v1.34).
#ifndef PENSTOCK_SCHED_IMAGE_LOCALITY_H_
#define PENSTOCK_SCHED_IMAGE_LOCALITY_H_

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "penstock/sched/kubernetes.h"

namespace penstock {

// The name with ":latest" after it if it has no tag.
std::string normalised_image_name(const std::string& name);

// How many nodes have an image, by name as nodes list it.
using ImageNodes = std::unordered_map<std::string, std::uint32_t>;
// Adds (sign 1) or takes away (-1) what the node has.
void count_images(const KubernetesNode& node, int sign, ImageNodes* counts);

// 0..100: the sum over the pod's containers of int64(bytes * (nodes with the image / nodes)) in
// float64, between 23 MiB and 1000 MiB per container. `images` are the pod's normalised names, one
// for each container that names one.
std::int64_t image_locality_score(const std::vector<std::string>& images, std::uint32_t containers,
                                  const KubernetesNode& node, const ImageNodes& counts,
                                  std::uint32_t nodes);

}  // namespace penstock
#endif
