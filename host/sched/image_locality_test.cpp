#include "penstock/sched/image_locality.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "penstock/sched/cluster_rig_test.h"

namespace penstock {
namespace {

using testing::ElementsAre;

constexpr std::int64_t kMiB = 1 << 20;

KubernetesNode node_with(const std::string& name, std::vector<NodeImage> images) {
  KubernetesNode node = rig::node(name);
  node.images = std::move(images);
  return node;
}

KubernetesPod runs(std::vector<std::string> images) {
  KubernetesPod pod = rig::pod("n/p");
  pod.containers = static_cast<std::uint32_t>(images.size());
  pod.images = std::move(images);
  return pod;
}

TEST(ImageLocality, ANameWithoutATagIsTheLatest) {
  EXPECT_EQ(normalised_image_name("i"), "i:latest");
  EXPECT_EQ(normalised_image_name("r/i"), "r/i:latest");
  EXPECT_EQ(normalised_image_name("r:5000/i"), "r:5000/i:latest");
  EXPECT_EQ(normalised_image_name("r:5000/i:1"), "r:5000/i:1");
  EXPECT_EQ(normalised_image_name("i:1"), "i:1");
}

TEST(ImageLocality, WeighsSizesByHowManyNodesHaveThem) {
  const auto cluster = rig::cluster(
      {node_with("a", {{{"i:latest", "i@sha256:1"}, 200 * kMiB}, {{"j:1"}, 500 * kMiB}}),
       node_with("b", {{{"i:latest"}, 200 * kMiB}}), rig::node("c"), rig::node("d")});
  // One container, 23 to 1000 MiB. i on 2 of 4 nodes: 100 MiB -> 100 * 77 / 977 = 7.
  EXPECT_THAT(rig::scores(*cluster, runs({"i"}), "ImageLocality").raw, ElementsAre(7, 7, 0, 0));
  // Two containers, 23 to 2000 MiB: a 100 + 125, b 100: 100 * 202 / 1977 = 10, 100 * 77 / 1977.
  EXPECT_THAT(rig::scores(*cluster, runs({"i", "j:1"}), "ImageLocality").raw,
              ElementsAre(10, 3, 0, 0));
  EXPECT_THAT(rig::scores(*cluster, runs({"k"}), "ImageLocality").raw, ElementsAre(0, 0, 0, 0));
  // c gets j of 8000 MiB: 2 of 4 nodes: 4000 is more than a container counts for. a: 250.
  ASSERT_TRUE(cluster->put_node(node_with("c", {{{"j:1"}, 8000 * kMiB}})).ok());
  EXPECT_THAT(rig::scores(*cluster, runs({"j:1"}), "ImageLocality").raw,
              ElementsAre(23, 0, 100, 0));
  // Of two nodes that are left one has i: 100 MiB again; of three two: 133.
  ASSERT_TRUE(cluster->remove_node("d").ok());
  EXPECT_THAT(rig::scores(*cluster, runs({"i"}), "ImageLocality").raw, ElementsAre(11, 11, 0));
}

}  // namespace
}  // namespace penstock
