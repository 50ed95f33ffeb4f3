#include "penstock/sched/spread.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "penstock/sched/cluster_rig_test.h"

namespace penstock {
namespace {

using rig::pod;
using rig::selector;
using rig::spread;
using testing::ElementsAre;

constexpr const char* kFine = "Success";
constexpr const char* kSkew = "Unschedulable: node(s) didn't match pod topology spread constraints";
constexpr const char* kNoLabel =
    "UnschedulableAndUnresolvable: node(s) didn't match pod topology spread constraints (missing "
    "required label)";

// a and b are in zone 1, x in zone 2, y in none.
std::vector<KubernetesNode> four_nodes() {
  return {rig::node("a", {{"zone", "1"}, {"host", "a"}}),
          rig::node("b", {{"zone", "1"}, {"host", "b"}}),
          rig::node("x", {{"zone", "2"}, {"host", "x"}}), rig::node("y", {{"host", "y"}})};
}

// Two of "app" in zone 1, one in zone 2, one where there is no zone.
std::vector<KubernetesPod> four_pods() {
  return {pod("n/1", {{"app", "1"}}, "a"), pod("n/2", {{"app", "1"}}, "b"),
          pod("n/3", {{"app", "1"}}, "x"), pod("n/4", {{"app", "1"}}, "y")};
}

TEST(SpreadFilter, CountsByDomain) {
  const auto cluster = rig::cluster(four_nodes(), four_pods());
  KubernetesPod asks = pod("n/p", {{"app", "1"}});
  // Zone 1: 2 + 1 - 1 = 2, zone 2: 1 + 1 - 1 = 1.
  asks.spread = {spread("zone", 1, true, selector("app", "1"))};
  EXPECT_THAT(rig::verdicts(*cluster, asks), ElementsAre(kSkew, kSkew, kFine, kNoLabel));
  asks.spread[0].max_skew = 2;
  EXPECT_THAT(rig::verdicts(*cluster, asks), ElementsAre(kFine, kFine, kFine, kNoLabel));
  // It does not count itself: zone 1: 2 + 0 - 1.
  asks.labels.clear();
  asks.spread[0].max_skew = 1;
  EXPECT_THAT(rig::verdicts(*cluster, asks), ElementsAre(kFine, kFine, kFine, kNoLabel));
}

TEST(SpreadFilter, OtherNamespacesAndTerminatingPodsDoNotCount) {
  std::vector<KubernetesPod> pods = four_pods();
  pods[0].namespace_name = "m";
  pods[0].name = "m/1";
  pods[1].terminating = true;
  const auto cluster = rig::cluster(four_nodes(), pods);
  KubernetesPod asks = pod("n/p", {{"app", "1"}});
  asks.spread = {spread("zone", 1, true, selector("app", "1"))};
  // Zone 1: 0 + 1 - 0, zone 2: 1 + 1 - 0.
  EXPECT_THAT(rig::verdicts(*cluster, asks), ElementsAre(kFine, kFine, kSkew, kNoLabel));
}

TEST(SpreadFilter, OnlyNodesWithAllLabelsCount) {
  const auto cluster = rig::cluster(four_nodes(), four_pods());
  KubernetesPod asks = pod("n/p", {{"app", "1"}});
  asks.spread = {spread("host", 1, true, selector("app", "1")),
                 spread("zone", 1, true, selector("app", "1"))};
  // By host all have one: 1 + 1 - 1; by zone as above.
  EXPECT_THAT(rig::verdicts(*cluster, asks), ElementsAre(kSkew, kSkew, kFine, kNoLabel));
  // Without its own pod, y would be the smallest domain by host if it counted.
  ASSERT_TRUE(cluster->remove_pod("n/4").ok());
  EXPECT_THAT(rig::verdicts(*cluster, asks), ElementsAre(kSkew, kSkew, kFine, kNoLabel));
}

TEST(SpreadFilter, FewerDomainsThanAskedForCountAsEmpty) {
  const auto cluster = rig::cluster(four_nodes(), four_pods());
  KubernetesPod asks = pod("n/p", {{"app", "1"}});
  asks.spread = {spread("zone", 2, true, selector("app", "1"))};
  asks.spread[0].min_domains = 2;
  EXPECT_THAT(rig::verdicts(*cluster, asks), ElementsAre(kFine, kFine, kFine, kNoLabel));
  // Two domains where three are wanted: the least is 0, so zone 1 has 2 + 1 - 0.
  asks.spread[0].min_domains = 3;
  EXPECT_THAT(rig::verdicts(*cluster, asks), ElementsAre(kSkew, kSkew, kFine, kNoLabel));
}

TEST(SpreadFilter, PoliciesSayWhichNodesCount) {
  std::vector<KubernetesNode> nodes = four_nodes();
  nodes[2].facts.labels["disk"] = "hdd";
  nodes[2].facts.taints = {{"k", "v", "NoSchedule"}};
  nodes.pop_back();
  std::vector<KubernetesPod> pods = four_pods();
  pods.pop_back();
  pods.erase(pods.begin() + 2);  // none in zone 2
  const auto cluster = rig::cluster(nodes, pods);
  KubernetesPod asks = pod("n/p", {{"app", "1"}});
  asks.spread = {spread("zone", 1, true, selector("app", "1"))};
  asks.tolerations = {{"k", "Equal", "v", "NoSchedule"}};
  EXPECT_THAT(rig::verdicts(*cluster, asks), ElementsAre(kSkew, kSkew, kFine));
  // x counts unless taints are honoured and not tolerated: then zone 1 is the only one.
  asks.tolerations.clear();
  asks.spread[0].honor_node_taints = true;
  EXPECT_EQ(rig::verdicts(*cluster, asks)[0], kFine);
  asks.spread[0].honor_node_taints = false;
  EXPECT_EQ(rig::verdicts(*cluster, asks)[0], kSkew);
  // The same with the pod's node affinity, which counts unless it is ignored.
  asks.has_required = true;
  asks.required = {{{{"disk", "DoesNotExist", {}}}, {}}};
  EXPECT_EQ(rig::verdicts(*cluster, asks)[0], kFine);
  asks.spread[0].honor_node_affinity = false;
  EXPECT_EQ(rig::verdicts(*cluster, asks)[0], kSkew);
}

TEST(SpreadFilter, LabelKeysNarrowTheSelector) {
  std::vector<KubernetesPod> pods = four_pods();
  for (KubernetesPod& one : pods) one.labels["rev"] = "old";
  const auto cluster = rig::cluster(four_nodes(), pods);
  KubernetesPod asks = pod("n/p", {{"app", "1"}, {"rev", "new"}});
  asks.spread = {spread("zone", 1, true, selector("app", "1"))};
  EXPECT_EQ(rig::verdicts(*cluster, asks)[0], kSkew);
  asks.spread[0].match_label_keys = {"rev", "no-such-label"};
  EXPECT_EQ(rig::verdicts(*cluster, asks)[0], kFine);
}

TEST(SpreadFilter, AnEmptySelectorCountsOnlyThePodItself) {
  const auto cluster = rig::cluster(four_nodes(), four_pods());
  KubernetesPod asks = pod("n/p", {{"app", "1"}});
  LabelSelector every;
  every.present = true;
  asks.spread = {spread("zone", 1, true, every)};
  EXPECT_THAT(rig::verdicts(*cluster, asks), ElementsAre(kFine, kFine, kFine, kNoLabel));
  asks.spread[0].selector.present = false;  // nothing
  EXPECT_THAT(rig::verdicts(*cluster, asks), ElementsAre(kFine, kFine, kFine, kNoLabel));
}

TEST(SpreadFilter, CommitsCount) {
  std::vector<KubernetesNode> nodes = four_nodes();
  nodes.pop_back();
  const auto cluster = rig::cluster(nodes);
  std::vector<std::string> got;
  for (int i = 0; i < 5; ++i) {
    KubernetesPod asks = pod("n/" + std::to_string(i), {{"app", "1"}});
    asks.spread = {spread("zone", 1, true, selector("app", "1")),
                   spread("host", 1, true, selector("app", "1"))};
    const auto decision = cluster->decide(asks, true);
    ASSERT_TRUE(decision.ok()) << decision.status().to_string();
    got.push_back(decision.value().node);
  }
  // One in each zone, then each host; a second round; and by host a third on x would be 2 too many.
  EXPECT_THAT(got, ElementsAre("a", "x", "b", "x", "a"));
}

// log(n + 2) for 1 and 2: 1.0986, 1.3863.
TEST(SpreadScore, LessWhereMoreAre) {
  std::vector<KubernetesNode> nodes = four_nodes();
  nodes.pop_back();
  const auto cluster = rig::cluster(nodes, four_pods());
  KubernetesPod asks = pod("n/p");
  asks.spread = {spread("zone", 1, false, selector("app", "1"))};
  // Two zones: 2 * 1.3863 + 0 = 2.77 -> 3, 1 * 1.3863 -> 1; 100 * (3 + 1 - s) / 3.
  PluginScores scores = rig::scores(*cluster, asks, "PodTopologySpread");
  EXPECT_FALSE(scores.skipped);
  EXPECT_EQ(scores.weight, 2);
  EXPECT_THAT(scores.raw, ElementsAre(3, 3, 1));
  EXPECT_THAT(scores.normalised, ElementsAre(33, 33, 100));
  // Only candidates make a topology: one zone, 2 * 1.0986 + (5 - 1) = 6.2.
  asks.spread[0].max_skew = 5;
  scores = rig::scores(*cluster, asks, "PodTopologySpread", {"b", "a"});
  EXPECT_THAT(scores.raw, ElementsAre(6, 6));
  EXPECT_THAT(scores.normalised, ElementsAre(100, 100));
}

TEST(SpreadScore, NodesWithoutALabelGetNothing) {
  const auto cluster = rig::cluster(four_nodes(), four_pods());
  KubernetesPod asks = pod("n/p");
  asks.spread = {spread("zone", 1, false, selector("app", "1"))};
  const PluginScores scores = rig::scores(*cluster, asks, "PodTopologySpread");
  EXPECT_THAT(scores.normalised, ElementsAre(33, 33, 100, 0));
}

TEST(SpreadScore, WithoutConstraintsItIsSkipped) {
  const auto cluster = rig::cluster(four_nodes(), four_pods());
  const PluginScores scores = rig::scores(*cluster, pod("n/p"), "PodTopologySpread");
  EXPECT_TRUE(scores.skipped);
  EXPECT_THAT(scores.normalised, ElementsAre(0, 0, 0, 0));
}

TEST(SpreadScore, ReplicasSpreadByDefault) {
  const auto labels = [](const char* zone, const char* host) {
    return Labels{{kZoneLabel, zone}, {kHostnameLabel, host}};
  };
  const auto cluster =
      rig::cluster({rig::node("a", labels("1", "a")), rig::node("b", labels("1", "b")),
                    rig::node("x", labels("2", "x")), rig::node("y", {{kHostnameLabel, "y"}})},
                   {pod("n/1", {{"app", "1"}}, "a"), pod("n/2", {{"app", "1"}}, "a")});
  KubernetesPod replica = pod("n/p", {{"app", "1"}});
  EXPECT_TRUE(rig::scores(*cluster, replica, "PodTopologySpread").skipped);
  KubernetesOwner set{"ReplicaSet", "n", "r", selector("app", "1")};
  ASSERT_TRUE(cluster->put_owner(set).ok());
  EXPECT_TRUE(rig::scores(*cluster, replica, "PodTopologySpread").skipped);
  replica.owners = {{"apps/v1", "ReplicaSet", "r", true}};
  // By host (4 nodes): log 6 = 1.7918, skew 3; by zone (1, 2 and none): log 5 = 1.6094, skew 5.
  // a: 2 * 1.7918 + 2 + 2 * 1.6094 + 4 = 12.8; b: 2 + 2 * 1.6094 + 4 = 9.2; x: 2 + 4; y: 2.
  const PluginScores scores = rig::scores(*cluster, replica, "PodTopologySpread");
  EXPECT_THAT(scores.raw, ElementsAre(13, 9, 6, 2));
  // 100 * (13 + 2 - s) / 13
  EXPECT_THAT(scores.normalised, ElementsAre(15, 46, 69, 100));
}

TEST(Spread, OwnersSayWhoBelongsTogether) {
  Owners owners;
  const auto put = [&](const char* kind, const char* name, LabelSelector picks) {
    owners[{kind, std::string("n/") + name}] = {kind, "n", name, std::move(picks)};
  };
  KubernetesPod replica = pod("n/p", {{"app", "1"}, {"tier", "web"}});
  EXPECT_FALSE(owner_selector(replica, owners).present);
  put("Service", "other", selector("app", "2"));
  EXPECT_FALSE(owner_selector(replica, owners).present);
  put("Service", "one", selector("app", "1"));
  put("Service", "two", selector("tier", "web"));
  EXPECT_EQ(owner_selector(replica, owners).labels, (Labels{{"app", "1"}, {"tier", "web"}}));
  owners.clear();
  LabelSelector by_expression;
  by_expression.present = true;
  by_expression.expressions = {{"app", "Exists", {}}};
  put("StatefulSet", "s", by_expression);
  replica.owners = {{"apps/v1", "StatefulSet", "s", false}};
  EXPECT_FALSE(owner_selector(replica, owners).present);
  replica.owners[0].controller = true;
  EXPECT_EQ(owner_selector(replica, owners).expressions, by_expression.expressions);
  replica.owners[0].api_version = "example.com/v1";
  EXPECT_FALSE(owner_selector(replica, owners).present);
}

}  // namespace
}  // namespace penstock
