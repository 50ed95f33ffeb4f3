#include "penstock/sched/pod_affinity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "penstock/sched/cluster_rig_test.h"

namespace penstock {
namespace {

using rig::pod;
using rig::selector;
using rig::term;
using testing::ElementsAre;

constexpr const char* kFine = "Success";
constexpr const char* kAffinity =
    "UnschedulableAndUnresolvable: node(s) didn't match pod affinity rules";
constexpr const char* kAnti = "Unschedulable: node(s) didn't match pod anti-affinity rules";
constexpr const char* kOthers =
    "Unschedulable: node(s) didn't satisfy existing pods anti-affinity rules";

// a and b are in zone 1, x in zone 2, y in none.
std::vector<KubernetesNode> four_nodes() {
  return {rig::node("a", {{"zone", "1"}, {"host", "a"}}),
          rig::node("b", {{"zone", "1"}, {"host", "b"}}),
          rig::node("x", {{"zone", "2"}, {"host", "x"}}), rig::node("y", {{"host", "y"}})};
}

LabelSelector everything() {
  LabelSelector out;
  out.present = true;
  return out;
}

TEST(PodAffinityFilter, GoesWhereTheOthersAre) {
  const auto cluster = rig::cluster(four_nodes(), {pod("n/1", {{"app", "1"}}, "b")});
  KubernetesPod asks = pod("n/p");
  asks.affinity.required = {term("zone", selector("app", "1"))};
  EXPECT_THAT(rig::verdicts(*cluster, asks), ElementsAre(kFine, kFine, kAffinity, kAffinity));
  asks.affinity.required.push_back(term("host", selector("app", "1")));
  EXPECT_THAT(rig::verdicts(*cluster, asks), ElementsAre(kAffinity, kFine, kAffinity, kAffinity));
}

TEST(PodAffinityFilter, OnePodHasToMatchAllTerms) {
  const auto cluster = rig::cluster(
      four_nodes(), {pod("n/1", {{"app", "1"}}, "a"), pod("n/2", {{"tier", "web"}}, "a")});
  KubernetesPod asks = pod("n/p");
  asks.affinity.required = {term("zone", selector("app", "1")),
                            term("zone", selector("tier", "web"))};
  EXPECT_THAT(rig::verdicts(*cluster, asks),
              ElementsAre(kAffinity, kAffinity, kAffinity, kAffinity));
  ASSERT_TRUE(cluster->put_pod(pod("n/3", {{"app", "1"}, {"tier", "web"}}, "x")).ok());
  EXPECT_THAT(rig::verdicts(*cluster, asks), ElementsAre(kAffinity, kAffinity, kFine, kAffinity));
}

TEST(PodAffinityFilter, TheFirstOfItsGroupGoesAnywhereWithTheLabel) {
  const auto cluster = rig::cluster(four_nodes());
  KubernetesPod asks = pod("n/p", {{"app", "1"}});
  asks.affinity.required = {term("zone", selector("app", "1"))};
  EXPECT_THAT(rig::verdicts(*cluster, asks), ElementsAre(kFine, kFine, kFine, kAffinity));
  // It does not match itself.
  asks.labels["app"] = "2";
  EXPECT_EQ(rig::verdicts(*cluster, asks)[0], kAffinity);
  // It does, and is not the first.
  asks.labels["app"] = "1";
  ASSERT_TRUE(cluster->put_pod(pod("n/1", {{"app", "1"}}, "x")).ok());
  EXPECT_THAT(rig::verdicts(*cluster, asks), ElementsAre(kAffinity, kAffinity, kFine, kAffinity));
  // A pod where the topology has no label is none of the group.
  ASSERT_TRUE(cluster->put_pod(pod("n/1", {{"app", "1"}}, "y")).ok());
  EXPECT_THAT(rig::verdicts(*cluster, asks), ElementsAre(kFine, kFine, kFine, kAffinity));
}

TEST(PodAffinityFilter, KeepsAwayFromWhomItShuns) {
  const auto cluster = rig::cluster(four_nodes(), {pod("n/1", {{"app", "1"}}, "b")});
  KubernetesPod asks = pod("n/p");
  asks.anti_affinity.required = {term("zone", selector("app", "1"))};
  EXPECT_THAT(rig::verdicts(*cluster, asks), ElementsAre(kAnti, kAnti, kFine, kFine));
  // Of several terms each refuses by itself.
  asks.anti_affinity.required = {term("host", selector("app", "2")),
                                 term("host", selector("app", "1"))};
  EXPECT_THAT(rig::verdicts(*cluster, asks), ElementsAre(kFine, kAnti, kFine, kFine));
}

TEST(PodAffinityFilter, KeepsAwayFromWhoShunsIt) {
  KubernetesPod shy = pod("n/1", {}, "b");
  shy.anti_affinity.required = {term("zone", selector("app", "1"))};
  const auto cluster = rig::cluster(four_nodes(), {shy});
  EXPECT_THAT(rig::verdicts(*cluster, pod("n/p", {{"app", "1"}})),
              ElementsAre(kOthers, kOthers, kFine, kFine));
  EXPECT_EQ(rig::verdicts(*cluster, pod("n/p", {{"app", "2"}}))[0], kFine);
  EXPECT_EQ(rig::verdicts(*cluster, pod("m/p", {{"app", "1"}}))[0], kFine);
  ASSERT_TRUE(cluster->remove_pod("n/1").ok());
  EXPECT_EQ(rig::verdicts(*cluster, pod("n/p", {{"app", "1"}}))[0], kFine);
}

TEST(PodAffinityFilter, NamespacesByNameAndBySelector) {
  const auto cluster = rig::cluster(four_nodes(), {pod("m/1", {{"app", "1"}}, "b")});
  KubernetesPod asks = pod("n/p");
  asks.anti_affinity.required = {term("zone", selector("app", "1"))};
  PodAffinityTerm& shuns = asks.anti_affinity.required[0];
  const auto first = [&] { return rig::verdicts(*cluster, asks)[0]; };
  EXPECT_EQ(first(), kFine);
  shuns.namespaces = {"m"};
  EXPECT_EQ(first(), kAnti);
  shuns.namespaces.clear();
  shuns.namespace_selector = everything();
  EXPECT_EQ(first(), kAnti);
  shuns.namespace_selector = selector("team", "t");
  EXPECT_EQ(first(), kFine);
  ASSERT_TRUE(cluster->put_namespace("m", {{"team", "t"}}).ok());
  EXPECT_EQ(first(), kAnti);
  ASSERT_TRUE(cluster->put_namespace("m", {{"team", "u"}}).ok());
  EXPECT_EQ(first(), kFine);
  ASSERT_TRUE(cluster->put_namespace("m", {{"team", "t"}}).ok());
  ASSERT_TRUE(cluster->remove_namespace("m").ok());
  EXPECT_EQ(first(), kFine);
}

TEST(PodAffinityFilter, LabelKeysOfThePod) {
  const auto cluster =
      rig::cluster(four_nodes(), {pod("n/1", {{"app", "1"}, {"rev", "old"}}, "b")});
  KubernetesPod asks = pod("n/p", {{"app", "1"}, {"rev", "new"}});
  asks.anti_affinity.required = {term("zone", selector("app", "1"))};
  const auto first = [&] { return rig::verdicts(*cluster, asks)[0]; };
  asks.anti_affinity.required[0].match_label_keys = {"rev"};
  EXPECT_EQ(first(), kFine);
  asks.anti_affinity.required[0].match_label_keys.clear();
  asks.anti_affinity.required[0].mismatch_label_keys = {"rev"};
  EXPECT_EQ(first(), kAnti);
  asks.labels["rev"] = "old";
  EXPECT_EQ(first(), kFine);
}

TEST(PodAffinityFilter, EachReplicaOnAHostOfItsOwn) {
  const auto cluster = rig::cluster(four_nodes());
  std::vector<std::string> got;
  for (int i = 0; i < 5; ++i) {
    KubernetesPod replica = pod("n/" + std::to_string(i), {{"app", "1"}});
    replica.anti_affinity.required = {term("host", selector("app", "1"))};
    const auto decision = cluster->decide(replica, true);
    ASSERT_TRUE(decision.ok()) << decision.status().to_string();
    got.push_back(decision.value().node);
    if (i == 4) {
      EXPECT_EQ(decision.value().reason,
                "0/4 nodes are available: 4 node(s) didn't match pod anti-affinity rules.");
    }
  }
  EXPECT_THAT(got, ElementsAre("a", "b", "x", "y", ""));
}

TEST(PodAffinityScore, WeighsBothWays) {
  KubernetesPod likes = pod("n/1", {{"app", "1"}}, "a");
  likes.affinity.preferred = {{20, term("zone", selector("role", "p"))}};
  likes.affinity.required = {term("zone", selector("role", "p"))};
  KubernetesPod shuns = pod("n/2", {{"app", "2"}}, "x");
  shuns.anti_affinity.preferred = {{30, term("host", selector("role", "p"))}};
  const auto cluster = rig::cluster(four_nodes(), {likes, shuns});
  KubernetesPod asks = pod("n/p", {{"role", "p"}});
  // Zone 1: 20 + 1 for the required term; x: -30.
  PluginScores scores = rig::scores(*cluster, asks, "InterPodAffinity");
  EXPECT_THAT(scores.raw, ElementsAre(21, 21, -30, 0));
  // 100 * (s + 30) / 51
  EXPECT_THAT(scores.normalised, ElementsAre(100, 100, 0, 58));
  // Its own: 7 where app 2 is by zone, 5 less where app 1 is by host.
  asks.affinity.preferred = {{7, term("zone", selector("app", "2"))}};
  asks.anti_affinity.preferred = {{5, term("host", selector("app", "1"))}};
  scores = rig::scores(*cluster, asks, "InterPodAffinity");
  EXPECT_THAT(scores.raw, ElementsAre(16, 21, -23, 0));
}

TEST(PodAffinityScore, TheProfileSaysWhatCounts) {
  KubernetesPod likes = pod("n/1", {{"app", "1"}}, "a");
  likes.affinity.required = {term("zone", selector("role", "p"))};
  likes.anti_affinity.preferred = {{10, term("zone", selector("role", "p"))}};
  SchedulerProfile profile;
  KubernetesPod asks = pod("n/p", {{"role", "p"}});
  profile = SchedulerProfile::defaults();
  profile.hard_pod_affinity_weight = 4;
  auto cluster = rig::cluster(four_nodes(), {likes}, profile);
  EXPECT_THAT(rig::scores(*cluster, asks, "InterPodAffinity").raw, ElementsAre(-6, -6, 0, 0));
  profile.hard_pod_affinity_weight = 0;
  cluster = rig::cluster(four_nodes(), {likes}, profile);
  EXPECT_THAT(rig::scores(*cluster, asks, "InterPodAffinity").raw, ElementsAre(-10, -10, 0, 0));
  // What others prefer is left aside as long as the pod prefers nothing.
  profile.ignore_preferred_terms_of_existing_pods = true;
  cluster = rig::cluster(four_nodes(), {likes}, profile);
  EXPECT_TRUE(rig::scores(*cluster, asks, "InterPodAffinity").skipped);
  asks.affinity.preferred = {{1, term("zone", selector("app", "none"))}};
  EXPECT_THAT(rig::scores(*cluster, asks, "InterPodAffinity").raw, ElementsAre(-10, -10, 0, 0));
}

TEST(PodAffinityScore, IsSkippedWhenNoTermMatchesAnywhere) {
  KubernetesPod likes = pod("n/1", {{"app", "1"}}, "y");
  likes.affinity.preferred = {{20, term("zone", selector("role", "p"))}};  // y has no zone
  const auto cluster = rig::cluster(four_nodes(), {likes});
  const PluginScores scores =
      rig::scores(*cluster, pod("n/p", {{"role", "p"}}), "InterPodAffinity");
  EXPECT_TRUE(scores.skipped);
  EXPECT_THAT(scores.normalised, ElementsAre(0, 0, 0, 0));
}

TEST(PodAffinity, ATermTwiceCountsTwice) {
  KubernetesPod likes = pod("n/1", {}, "a");
  likes.affinity.preferred = {{20, term("host", selector("role", "p"))},
                              {20, term("host", selector("role", "p"))}};
  likes.affinity.required = {term("host", selector("role", "p")),
                             term("host", selector("role", "p"))};
  const auto cluster = rig::cluster(four_nodes(), {likes});
  EXPECT_THAT(rig::scores(*cluster, pod("n/p", {{"role", "p"}}), "InterPodAffinity").raw,
              ElementsAre(42, 0, 0, 0));
}

// More terms than a task's record holds, of every kind: the same answers by way of the host.
TEST(PodAffinity, ManyTermsAreFolded) {
  std::vector<KubernetesNode> nodes = four_nodes();
  for (KubernetesNode& node : nodes) {
    for (int i = 0; i < 8; ++i) node.facts.labels["t" + std::to_string(i)] = node.facts.name;
  }
  KubernetesPod there = pod("n/1", {{"app", "1"}}, "b");
  const auto cluster = rig::cluster(nodes, {there, pod("n/2", {{"app", "2"}}, "x")});
  KubernetesPod asks = pod("n/p", {{"app", "3"}});
  for (int i = 0; i < 8; ++i) {
    const std::string topology = "t" + std::to_string(i);
    asks.affinity.preferred.push_back({1, term(topology, selector("app", "1"))});
    asks.anti_affinity.preferred.push_back({2, term(topology, selector("app", "2"))});
  }
  EXPECT_THAT(rig::scores(*cluster, asks, "InterPodAffinity").raw, ElementsAre(0, 8, -16, 0));
  for (int i = 0; i < 8; ++i) {
    const std::string topology = "t" + std::to_string(i);
    asks.anti_affinity.required.push_back(term(topology, selector("app", "2")));
    asks.spread.push_back(rig::spread(topology, 1, true, selector("app", "1")));
  }
  EXPECT_THAT(rig::verdicts(*cluster, asks), ElementsAre(kFine, kFine, kAnti, kFine));
  asks.labels["app"] = "1";  // now it counts itself: b has 1 + 1 - 0
  EXPECT_EQ(rig::verdicts(*cluster, asks)[1],
            "Unschedulable: node(s) didn't match pod topology spread constraints");
  asks.affinity.required = {term("zone", selector("app", "1"))};
  EXPECT_THAT(rig::verdicts(*cluster, asks)[2], kAffinity);
  const auto decision = cluster->decide(asks, true);
  ASSERT_TRUE(decision.ok()) << decision.status().to_string();
  EXPECT_EQ(decision.value().node, "a");
  EXPECT_EQ(cluster->pods_on("a").size(), 1u);
}

// The first of a group goes anywhere with the labels, and the second to the first, also when there
// are more terms than a record holds.
TEST(PodAffinity, ManyRequiredTermsAreFolded) {
  std::vector<KubernetesNode> nodes = four_nodes();
  KubernetesPod replica = pod("n/1", {{"app", "1"}});
  for (int i = 0; i < 14; ++i) {
    const std::string topology = "t" + std::to_string(i);
    for (std::size_t n = 0; n < nodes.size(); ++n) {
      if (n < 3 || i > 0) nodes[n].facts.labels[topology] = nodes[n].facts.name;
    }
    replica.affinity.required.push_back(term(topology, selector("app", "1")));
  }
  const auto cluster = rig::cluster(nodes);
  EXPECT_THAT(rig::verdicts(*cluster, replica), ElementsAre(kFine, kFine, kFine, kAffinity));
  ASSERT_TRUE(cluster->assume(replica, "x").ok());
  replica.name = "n/2";
  EXPECT_THAT(rig::verdicts(*cluster, replica),
              ElementsAre(kAffinity, kAffinity, kFine, kAffinity));
}

}  // namespace
}  // namespace penstock
