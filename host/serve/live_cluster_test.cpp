#include "penstock/serve/live_cluster.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "penstock/base/platform.h"

namespace penstock {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;

json node(const std::string& name, const std::string& cpu) {
  return {{"metadata", {{"name", name}, {"resourceVersion", "1"}}},
          {"status", {{"allocatable", {{"cpu", cpu}, {"memory", "8Gi"}, {"pods", "10"}}}}}};
}

json pod(const std::string& name, const std::string& uid, const std::string& on = "") {
  json out = {{"metadata", {{"name", name}, {"namespace", "x"}, {"uid", uid}}},
              {"spec", {{"containers", {{{"resources", {{"requests", {{"cpu", "2"}}}}}}}}}},
              {"status", {{"phase", "Pending"}}}};
  if (!on.empty()) out["spec"]["nodeName"] = on;
  return out;
}

class Recorder final : public ClusterListener {
 public:
  std::vector<std::string> calls;
  void pod_pending(const KubernetesPod& one) override { calls.push_back("pending " + one.uid); }
  void pod_settled(const std::string& key) override { calls.push_back("settled " + key); }
  void cluster_changed(bool) override {}
};

struct Rig {
  Recorder recorder;
  std::unique_ptr<LiveCluster> cluster;

  Rig() {
    auto made = LiveCluster::create({}, {"Node", "Pod"}, &recorder);
    EXPECT_TRUE(made.ok()) << made.status().to_string();
    cluster = std::move(made).value();
    cluster->put("Node", "n", node("n", "4"));
  }
  json on_node() const { return cluster->state()["nodes"]["n"]["pods"]; }
  KubernetesPod pending(const std::string& key) const { return *cluster->pending_pod(key); }
};

TEST(LiveCluster, IsReadyOnceAllIsListed) {
  Rig rig;
  EXPECT_FALSE(rig.cluster->ready());
  rig.cluster->synced("Node");
  EXPECT_FALSE(rig.cluster->ready());
  rig.cluster->synced("Pod");
  EXPECT_TRUE(rig.cluster->ready());
}

TEST(LiveCluster, AnAssumedPodKeepsItsPlaceUntilTheServerSaysWhereItIs) {
  Rig rig;
  rig.cluster->put("Pod", "x/a", pod("a", "1"));
  const auto decision = rig.cluster->decide_and_assume(rig.pending("x/a"), 0);
  ASSERT_TRUE(decision.ok()) << decision.status().to_string();
  EXPECT_EQ(decision.value().node, "n");
  EXPECT_EQ(rig.on_node(), json({"x/a"}));
  // An older word, without a node: it is not pending again.
  rig.cluster->put("Pod", "x/a", pod("a", "1"));
  EXPECT_EQ(rig.on_node(), json({"x/a"}));
  EXPECT_THAT(rig.recorder.calls, ElementsAre("pending 1"));
  rig.cluster->put("Pod", "x/a", pod("a", "1", "n"));
  EXPECT_EQ(rig.on_node(), json({"x/a"}));
  EXPECT_EQ(rig.cluster->state()["assumed"], json::array());
  EXPECT_THAT(rig.recorder.calls, ElementsAre("pending 1", "settled x/a"));
  rig.cluster->forget("x/a");  // there is nothing to take back
  EXPECT_EQ(rig.on_node(), json({"x/a"}));
  EXPECT_EQ(rig.cluster->key_of_uid("1"), "x/a");
}

TEST(LiveCluster, ForgettingGivesThePlaceBackAndSaysWhatThePodIsNow) {
  Rig rig;
  rig.cluster->put("Pod", "x/a", pod("a", "1"));
  ASSERT_TRUE(rig.cluster->decide_and_assume(rig.pending("x/a"), 0).ok());
  rig.cluster->forget("x/a");
  EXPECT_EQ(rig.on_node(), json::array());
  EXPECT_THAT(rig.recorder.calls, ElementsAre("pending 1", "pending 1"));
}

TEST(LiveCluster, AnotherPodOfTheNameEndsTheAssumption) {
  Rig rig;
  rig.cluster->put("Pod", "x/a", pod("a", "1"));
  ASSERT_TRUE(rig.cluster->decide_and_assume(rig.pending("x/a"), 0).ok());
  rig.cluster->put("Pod", "x/a", pod("a", "2"));
  EXPECT_EQ(rig.on_node(), json::array());
  EXPECT_EQ(rig.recorder.calls.back(), "pending 2");
}

TEST(LiveCluster, AnAssumptionEndsWithItsTime) {
  Rig rig;
  rig.cluster->put("Pod", "x/a", pod("a", "1"));
  ASSERT_TRUE(rig.cluster->decide_and_assume(rig.pending("x/a"), 1).ok());
  Platform::host().sleep_ns(5000000);
  rig.cluster->with([](Cluster&) { return 0; });
  EXPECT_EQ(rig.on_node(), json::array());
}

TEST(LiveCluster, WhatHasEndedOrGoneTakesNoPlace) {
  Rig rig;
  rig.cluster->put("Pod", "x/a", pod("a", "1", "n"));
  rig.cluster->put("Pod", "x/b", pod("b", "2", "n"));
  json ended = pod("a", "1", "n");
  ended["status"]["phase"] = "Succeeded";
  rig.cluster->put("Pod", "x/a", ended);
  EXPECT_EQ(rig.on_node(), json({"x/b"}));
  EXPECT_EQ(rig.cluster->key_of_uid("1"), "");
  rig.cluster->remove("Pod", "x/b");
  EXPECT_EQ(rig.on_node(), json::array());
}

TEST(LiveCluster, WhatCannotBeReadIsLeftOut) {
  Rig rig;
  rig.cluster->put("Pod", "x/a", pod("a", "1", "n"));
  json bad = pod("a", "1", "n");
  bad["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "many";
  rig.cluster->put("Pod", "x/a", bad);
  EXPECT_EQ(rig.on_node(), json::array());
  EXPECT_EQ(rig.cluster->counts().unreadable, 1U);
  rig.cluster->put("Pod", "x/a", pod("a", "1", "n"));
  EXPECT_EQ(rig.on_node(), json({"x/a"}));
  EXPECT_EQ(rig.cluster->counts().unreadable, 0U);
}

TEST(LiveCluster, NodesOfARequestChangeAllOrNothing) {
  Rig rig;
  const json good = node("m", "4");
  const json bad = node("k", "lots");
  EXPECT_FALSE(rig.cluster->put_nodes({&good, &bad}).ok());
  EXPECT_EQ(rig.cluster->counts().nodes, 1U);
  EXPECT_TRUE(rig.cluster->put_nodes({&good}).ok());
  EXPECT_EQ(rig.cluster->counts().nodes, 2U);
}

}  // namespace
}  // namespace penstock
