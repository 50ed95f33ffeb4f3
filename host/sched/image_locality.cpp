#include "penstock/sched/image_locality.h"

#include <algorithm>
#include <set>
#include <string_view>

namespace penstock {
namespace {

constexpr std::int64_t kMiB = std::int64_t{1} << 20;
constexpr std::int64_t kLeast = 23 * kMiB;
constexpr std::int64_t kMostOfContainer = 1000 * kMiB;

}  // namespace

std::string normalised_image_name(const std::string& name) {
  // A ':' before the last '/' is a registry's port.
  const auto position = [&name](char c) {
    const std::size_t at = name.rfind(c);
    return at == std::string::npos ? -1 : static_cast<std::int64_t>(at);
  };
  return position(':') <= position('/') ? name + ":latest" : name;
}

void count_images(const KubernetesNode& node, int sign, ImageNodes* counts) {
  std::set<std::string_view> seen;
  for (const NodeImage& image : node.images) {
    for (const std::string& name : image.names) {
      if (!seen.insert(name).second) continue;
      if (sign > 0) {
        ++(*counts)[name];
      } else if (const auto found = counts->find(name); found != counts->end()) {
        if (--found->second == 0) counts->erase(found);
      }
    }
  }
}

std::int64_t image_locality_score(const std::vector<std::string>& images, std::uint32_t containers,
                                  const KubernetesNode& node, const ImageNodes& counts,
                                  std::uint32_t nodes) {
  std::int64_t sum = 0;
  for (const std::string& wanted : images) {
    const auto found = counts.find(wanted);
    if (found == counts.end()) continue;
    // The last of those that list the name, as in a map.
    for (auto image = node.images.rbegin(); image != node.images.rend(); ++image) {
      if (std::find(image->names.begin(), image->names.end(), wanted) == image->names.end()) {
        continue;
      }
      const double share = static_cast<double>(found->second) / static_cast<double>(nodes);
      sum += static_cast<std::int64_t>(static_cast<double>(image->bytes) * share);
      break;
    }
  }
  const std::int64_t most = kMostOfContainer * std::max<std::int64_t>(containers, 1);
  sum = std::clamp(sum, kLeast, most);
  return 100 * (sum - kLeast) / (most - kLeast);
}

}  // namespace penstock
