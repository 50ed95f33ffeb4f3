#include "penstock/sched/preemption.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <climits>

#include "penstock/engine/select_conformance.h"
#include "penstock/sched/cluster_rig_test.h"

namespace penstock {
namespace {

using rig::node;
using rig::pod;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

// A pod that runs: priority, thousandths of a core, when it started.
KubernetesPod running(const std::string& name, const std::string& on, std::int32_t priority,
                      std::int64_t milli, std::int64_t start = 100) {
  KubernetesPod out = pod("ns/" + name, {{"app", name}}, on);
  out.priority = priority;
  out.request = out.scored_request = {{"cpu", milli}};
  out.start_time_s = start;
  return out;
}

KubernetesPod pending(std::int32_t priority, std::int64_t milli) {
  KubernetesPod out = running("new", "", priority, milli);
  out.start_time_s = 0;
  return out;
}

DisruptionBudget budget(const std::string& app, std::int32_t allowed) {
  DisruptionBudget out;
  out.namespace_name = "ns";
  out.selector = rig::selector("app", app);
  out.allowed = allowed;
  return out;
}

// The result, after a look that the victims' going does what was promised and that nothing changed.
Preemption checked(Cluster& cluster, const KubernetesPod& wanted,
                   std::span<const DisruptionBudget> budgets = {}) {
  const std::vector<std::string> before = rig::verdicts(cluster, wanted);
  const std::size_t pods = cluster.pod_count();
  const auto made = preempt(cluster, wanted, budgets);
  EXPECT_TRUE(made.ok()) << made.status().to_string();
  if (!made.ok()) return {};
  EXPECT_EQ(rig::verdicts(cluster, wanted), before);
  EXPECT_EQ(cluster.pod_count(), pods);
  EXPECT_EQ(made.value().node.empty(), !made.value().reason.empty());
  std::vector<KubernetesPod> gone;
  for (const std::string& victim : made.value().victims) {
    gone.push_back(*cluster.find_pod(victim));
    EXPECT_TRUE(cluster.remove_pod(victim).ok());
  }
  if (!made.value().node.empty()) {
    const auto decision = cluster.decide(wanted, false, 1, {&made.value().node, 1});
    EXPECT_TRUE(decision.ok() && decision.value().node == made.value().node);
  }
  for (const KubernetesPod& victim : gone) EXPECT_TRUE(cluster.put_pod(victim).ok());
  return made.value();
}

// 4000 thousandths on each node.
TEST(Preemption, TakesAsFewAsItNeedsAndSparesTheImportant) {
  const auto cluster = rig::cluster(
      {node("n")},
      {running("low", "n", 1, 2000), running("mid", "n", 2, 1000), running("high", "n", 200, 500)});
  // 500 are free. Without low and mid 3500; with mid again 2500.
  EXPECT_THAT(checked(*cluster, pending(100, 2000)).victims, ElementsAre("ns/low"));
  EXPECT_THAT(checked(*cluster, pending(100, 2600)).victims, ElementsAre("ns/mid", "ns/low"));
  // Even without both there are only 3500.
  const Preemption none = checked(*cluster, pending(100, 3600));
  EXPECT_EQ(none.node, "");
  EXPECT_EQ(none.candidates, 1u);
  EXPECT_THAT(none.victims, IsEmpty());
  // mid has the same priority, low alone is not enough.
  EXPECT_EQ(checked(*cluster, pending(2, 2600)).node, "");
  EXPECT_THAT(checked(*cluster, pending(2, 2500)).victims, ElementsAre("ns/low"));
}

TEST(Preemption, AtEqualPriorityWhoStartedLaterGoes) {
  const auto cluster = rig::cluster(
      {node("n")}, {running("old", "n", 1, 2000, 10), running("young", "n", 1, 2000, 20)});
  EXPECT_THAT(checked(*cluster, pending(5, 1000)).victims, ElementsAre("ns/young"));
  // One that has not started yet is younger than all.
  KubernetesPod waiting = running("old", "n", 1, 2000, 0);
  ASSERT_TRUE(cluster->put_pod(waiting).ok());
  EXPECT_THAT(checked(*cluster, pending(5, 1000)).victims, ElementsAre("ns/old"));
}

TEST(Preemption, WhoseGoingViolatesABudgetComesBackFirst) {
  const auto cluster =
      rig::cluster({node("n")}, {running("low", "n", 1, 1500), running("mid", "n", 2, 1500)});
  EXPECT_THAT(checked(*cluster, pending(5, 2000)).victims, ElementsAre("ns/low"));
  const DisruptionBudget spent[] = {budget("low", 0)};
  const Preemption made = checked(*cluster, pending(5, 2000), spent);
  EXPECT_THAT(made.victims, ElementsAre("ns/mid"));
  EXPECT_EQ(made.violations, 0u);
  // Where both are needed one of them violates.
  EXPECT_EQ(checked(*cluster, pending(5, 3000), spent).violations, 1u);
  // One disruption may happen; who is leaving already does not count; an empty selector picks none.
  const DisruptionBudget one[] = {budget("low", 1)};
  EXPECT_THAT(checked(*cluster, pending(5, 2000), one).victims, ElementsAre("ns/low"));
  DisruptionBudget leaving[] = {budget("low", 0)};
  leaving[0].leaving = {"low"};
  EXPECT_THAT(checked(*cluster, pending(5, 2000), leaving).victims, ElementsAre("ns/low"));
  DisruptionBudget empty[] = {budget("low", 0)};
  empty[0].selector.labels.clear();
  EXPECT_THAT(checked(*cluster, pending(5, 2000), empty).victims, ElementsAre("ns/low"));
  DisruptionBudget elsewhere[] = {budget("low", 0)};
  elsewhere[0].namespace_name = "other";
  EXPECT_THAT(checked(*cluster, pending(5, 2000), elsewhere).victims, ElementsAre("ns/low"));
}

// Two nodes of which each rule in turn prefers the second.
TEST(Preemption, TakesTheNodeWithTheSmallestLoss) {
  const auto choose = [](const std::vector<KubernetesPod>& pods,
                         std::span<const DisruptionBudget> budgets = {}) {
    const auto cluster = rig::cluster({node("a"), node("b")}, pods);
    return checked(*cluster, pending(100, 4000), budgets).node;
  };
  const DisruptionBudget spent[] = {budget("x", 0)};
  // Violations before everything else.
  EXPECT_EQ(choose({running("x", "a", 1, 3000), running("y", "b", 9, 3000)}, spent), "b");
  // The most important victim.
  EXPECT_EQ(
      choose({running("x", "a", 7, 3000), running("y", "b", 5, 3000), running("z", "b", 5, 1000)}),
      "b");
  // The sum of priorities: 5 + 4 and 5 + 3.
  EXPECT_EQ(choose({running("x", "a", 5, 3000), running("w", "a", 4, 1000),
                    running("y", "b", 5, 3000), running("z", "b", 3, 1000)}),
            "b");
  // Each counts 2^31 more than its priority, so that more victims are a larger sum: 5 + (-1) would
  // be less than 5.
  EXPECT_EQ(
      choose({running("x", "a", 5, 3000), running("w", "a", -1, 1000), running("y", "b", 5, 4000)}),
      "b");
  // Except for those at the end of the scale, which count nothing: then their number decides.
  EXPECT_EQ(choose({running("x", "a", 5, 3000), running("w", "a", INT32_MIN, 1000),
                    running("y", "b", 5, 4000)}),
            "b");
  // The latest start of the earliest victim of highest priority: 30 against 40; z does not count.
  EXPECT_EQ(choose({running("x", "a", 5, 2000, 30), running("w", "a", 5, 2000, 90),
                    running("y", "b", 5, 2000, 40), running("z", "b", 5, 2000, 41)}),
            "b");
  // And at last the row.
  EXPECT_EQ(choose({running("x", "a", 5, 4000), running("y", "b", 5, 4000)}), "a");
}

TEST(Preemption, OnlyWherePodsAreInTheWay) {
  KubernetesNode tainted = node("tainted");
  tainted.facts.taints = {{"only", "", "NoSchedule"}};
  const auto cluster = rig::cluster({tainted, node("n")},
                                    {running("x", "tainted", 1, 4000), running("y", "n", 9, 4000)});
  const Preemption made = checked(*cluster, pending(5, 1000));
  EXPECT_EQ(made.node, "");
  EXPECT_EQ(made.candidates, 0u);
  EXPECT_EQ(checked(*cluster, pending(10, 1000)).node, "n");
  KubernetesPod never = pending(10, 1000);
  never.preempts = false;
  EXPECT_THAT(checked(*cluster, never).reason, ::testing::HasSubstr("Never"));
  // It would fit as it is.
  EXPECT_THAT(checked(*cluster, pending(10, 0)).reason, ::testing::HasSubstr("fits n"));
  // Somebody is leaving the node that was promised to it.
  KubernetesPod leaving = running("y", "n", 9, 4000);
  leaving.terminating = true;
  ASSERT_TRUE(cluster->put_pod(leaving).ok());
  KubernetesPod nominated = pending(10, 1000);
  nominated.nominated_node = "n";
  EXPECT_THAT(checked(*cluster, nominated).reason, ::testing::HasSubstr("leaving"));
}

TEST(Preemption, PodsThatAreInTheWayWithoutAmounts) {
  // An anti-affinity of the pod's own, one of a pod that is there, a host port, and a zone that has
  // too many.
  const auto cluster = rig::cluster({node("n", {{"kubernetes.io/hostname", "n"}, {"zone", "z"}}),
                                     node("m", {{"kubernetes.io/hostname", "m"}, {"zone", "y"}})},
                                    {running("other", "n", 1, 100), running("enemy", "n", 2, 100),
                                     running("wall", "m", 50, 4000)});
  KubernetesPod shy = pending(10, 100);
  shy.anti_affinity.required = {rig::term("kubernetes.io/hostname", rig::selector("app", "enemy"))};
  EXPECT_THAT(checked(*cluster, shy).victims, ElementsAre("ns/enemy"));

  KubernetesPod rival = running("rival", "n", 3, 100);
  rival.anti_affinity.required = {rig::term("kubernetes.io/hostname", rig::selector("app", "new"))};
  ASSERT_TRUE(cluster->put_pod(rival).ok());
  EXPECT_THAT(checked(*cluster, pending(10, 100)).victims, ElementsAre("ns/rival"));
  ASSERT_TRUE(cluster->remove_pod("ns/rival").ok());

  KubernetesPod server = running("server", "n", 3, 100);
  server.ports = {{"0.0.0.0", "TCP", 80}};
  ASSERT_TRUE(cluster->put_pod(server).ok());
  KubernetesPod wanted = pending(10, 100);
  wanted.ports = {{"0.0.0.0", "TCP", 80}};
  EXPECT_THAT(checked(*cluster, wanted).victims, ElementsAre("ns/server"));
  ASSERT_TRUE(cluster->remove_pod("ns/server").ok());

  // Zone z has two of them and y none, so that one more would be 3 apart.
  for (const char* name : {"s1", "s2"}) {
    KubernetesPod one = running(name, "n", name[1] - '0', 100);
    one.labels = {{"app", "s"}};
    ASSERT_TRUE(cluster->put_pod(one).ok());
  }
  KubernetesPod third = pending(10, 100);
  third.labels = {{"app", "s"}};
  third.spread = {rig::spread("zone", 2, true, rig::selector("app", "s"))};
  EXPECT_THAT(checked(*cluster, third).victims, ElementsAre("ns/s1"));
}

// kube-scheduler's rules once more, node by node with the cluster's own filter; no sums.
Preemption plainly(Cluster& cluster, const KubernetesPod& wanted) {
  Preemption out;
  std::vector<KubernetesPod> best;
  const auto verdicts = cluster.filter(wanted);
  for (const NodeVerdict& verdict : verdicts.value()) {
    if (verdict.feasible) return {};
    if (verdict.code != "Unschedulable") continue;
    std::vector<KubernetesPod> lower;
    for (const KubernetesPod* other : cluster.pods_on(verdict.node))
      if (other->priority < wanted.priority) lower.push_back(*other);
    std::sort(lower.begin(), lower.end(), [](const auto& a, const auto& b) {
      return std::tuple(-a.priority, a.start_time_s, a.name) <
             std::tuple(-b.priority, b.start_time_s, b.name);
    });
    const auto fits = [&] {
      return cluster.filter(wanted, {&verdict.node, 1}).value().front().feasible;
    };
    for (const KubernetesPod& other : lower) EXPECT_TRUE(cluster.remove_pod(other.name).ok());
    const bool helps = fits();
    std::vector<KubernetesPod> victims;
    for (const KubernetesPod& other : lower) {
      EXPECT_TRUE(cluster.put_pod(other).ok());
      if (!helps || fits()) continue;
      EXPECT_TRUE(cluster.remove_pod(other.name).ok());
      victims.push_back(other);
    }
    for (const KubernetesPod& victim : victims) EXPECT_TRUE(cluster.put_pod(victim).ok());
    if (!helps || victims.empty()) continue;
    const auto rank = [](const std::vector<KubernetesPod>& list) {
      std::int64_t sum = 0;
      std::int64_t earliest = INT64_MAX;
      for (const KubernetesPod& one : list) {
        sum += one.priority + (std::int64_t{1} << 31);
        if (one.priority == list[0].priority) earliest = std::min(earliest, one.start_time_s);
      }
      return std::tuple(list[0].priority, sum, list.size(), -earliest);
    };
    if (!best.empty() && rank(best) <= rank(victims)) continue;
    best = victims;
    out.node = verdict.node;
  }
  for (const KubernetesPod& victim : best) out.victims.push_back(victim.name);
  return out;
}

TEST(Preemption, RandomClustersAgreeWithThePlainRules) {
  std::uint32_t found = 0;
  for (std::uint64_t seed = 1; seed <= 40; seed++) {
    SeededRandom random(seed);
    std::vector<KubernetesNode> nodes;
    for (int i = 0; i < 5; i++) {
      const std::string name = "n" + std::to_string(i);
      nodes.push_back(node(name, {{"kubernetes.io/hostname", name},
                                  {"zone", "z" + std::to_string(random.below(2))}}));
    }
    const auto cluster = rig::cluster(nodes);
    const char* const apps[] = {"a", "b", "c"};
    for (int i = 0; i < 30; i++) {
      KubernetesPod one = running("p" + std::to_string(i), "n" + std::to_string(random.below(5)),
                                  static_cast<std::int32_t>(random.below(6)),
                                  random.between(2, 14) * 100, random.between(1, 9));
      one.labels = {{"app", apps[random.below(3)]}};
      if (random.one_in(8))
        one.anti_affinity.required = {
            rig::term("kubernetes.io/hostname", rig::selector("app", apps[random.below(3)]))};
      ASSERT_TRUE(cluster->put_pod(one).ok());
    }
    for (int i = 0; i < 4; i++) {
      KubernetesPod wanted =
          pending(static_cast<std::int32_t>(random.below(7)), random.between(3, 30) * 100);
      wanted.labels = {{"app", apps[random.below(3)]}};
      if (random.one_in(3))
        wanted.anti_affinity.required = {
            rig::term(random.one_in(2) ? "zone" : "kubernetes.io/hostname",
                      rig::selector("app", apps[random.below(3)]))};
      if (random.one_in(3))
        wanted.spread = {rig::spread("zone", 1, true, rig::selector("app", wanted.labels["app"]))};
      const Preemption expected = plainly(*cluster, wanted);
      const Preemption actual = checked(*cluster, wanted);
      EXPECT_EQ(actual.node, expected.node) << "seed " << seed << " pod " << i;
      EXPECT_EQ(actual.victims, expected.victims) << "seed " << seed << " pod " << i;
      found += !expected.node.empty();
    }
  }
  EXPECT_GT(found, 30u);
}

}  // namespace
}  // namespace penstock
