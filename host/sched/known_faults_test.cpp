// What users of schedulers report as wrong elsewhere: each case with the answer that
// kube-scheduler's documented formulas give, worked out by hand.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "penstock/sched/cluster.h"
#include "penstock/sched/kubernetes.h"
#include "penstock/sched/scheduler_config.h"

namespace penstock {
namespace {

std::string node_json(const std::string& name, const std::string& allocatable,
                      const std::string& labels = "") {
  return fmt::format(
      R"({{"kind":"Node","metadata":{{"name":"{}","labels":{{{}}}}},
          "status":{{"allocatable":{{{}}}}}}})",
      name, labels, allocatable);
}

std::string pod_json(const std::string& name, const std::string& requests,
                     const std::string& spec = "", const std::string& metadata = "") {
  return fmt::format(
      R"({{"kind":"Pod","metadata":{{"name":"{}","namespace":"ns"{}}},
          "spec":{{"containers":[{{"name":"c","resources":{{"requests":{{{}}}}}}}]{}}}}})",
      name, metadata, requests, spec);
}

KubernetesCluster parsed(const std::vector<std::string>& objects) {
  if (objects.empty()) return {};
  auto cluster = parse_kubernetes(
      fmt::format(R"({{"kind":"List","items":[{}]}})", fmt::join(objects, ",")), "test");
  EXPECT_TRUE(cluster.ok()) << cluster.status().to_string();
  return cluster.ok() ? std::move(cluster).value() : KubernetesCluster{};
}

std::unique_ptr<Cluster> cluster_of(const std::vector<std::string>& objects) {
  auto cluster = Cluster::create({});
  EXPECT_TRUE(cluster.ok()) << cluster.status().to_string();
  EXPECT_TRUE(cluster.value()->put_all(parsed(objects)).ok());
  return std::move(cluster).value();
}

PodDecision decide(Cluster& cluster, const std::string& pod, bool commit = false) {
  auto decision = cluster.decide(parsed({pod}).pods.at(0), commit);
  EXPECT_TRUE(decision.ok()) << decision.status().to_string();
  return decision.ok() ? std::move(decision).value() : PodDecision{};
}

// What one plugin gives the nodes, normalised.
std::vector<std::int64_t> scores(Cluster& cluster, const std::string& pod,
                                 const std::string& plugin) {
  const std::vector<std::string> nodes = cluster.node_names();
  auto all = cluster.score(parsed({pod}).pods.at(0), nodes);
  EXPECT_TRUE(all.ok()) << all.status().to_string();
  for (const auto& one : all.value()) {
    if (one.plugin == plugin) return one.normalised;
  }
  ADD_FAILURE() << "no plugin " << plugin;
  return {};
}

const std::string kUsual = R"("cpu":"4","memory":"8Gi","pods":"110")";

TEST(KnownFaults, HugeRequestsDoNotOverflow) {
  // (8Pi - 4Pi) * 100 / 8Pi = 50 of memory, (4000 - 1000) * 100 / 4000 = 75 of cpu.
  auto cluster = cluster_of({node_json("n", R"("cpu":"4","memory":"8Pi","pods":"10")")});
  EXPECT_EQ(scores(*cluster, pod_json("p", R"("cpu":"1","memory":"4Pi")"), "NodeResourcesFit"),
            std::vector<std::int64_t>{62});
  EXPECT_EQ(decide(*cluster, pod_json("p", R"("cpu":"1","memory":"4Pi")")).node, "n");
}

TEST(KnownFaults, MoreThanAnAmountCanHoldIsRefusedAndNamed) {
  for (const char* amount : {"10Ei", "1e30", "9223372036854775807", "99999999999999999999"}) {
    const auto refused =
        parse_kubernetes(pod_json("p", fmt::format(R"("memory":"{}")", amount)), "test");
    ASSERT_FALSE(refused.ok()) << amount;
    EXPECT_NE(refused.status().message().find("requests.memory"), std::string::npos)
        << refused.status().to_string();
  }
}

TEST(KnownFaults, EveryScoreIsBetween0And100) {
  auto cluster = cluster_of({node_json("a", kUsual, R"("disk":"ssd")"),
                             node_json("b", R"("cpu":"1","memory":"1Gi","pods":"1")"),
                             node_json("c", R"("cpu":"0","memory":"0","pods":"0")")});
  const std::string pod =
      pod_json("p", R"("cpu":"64","memory":"1Ti")",
               R"(,"affinity":{"nodeAffinity":{"preferredDuringSchedulingIgnoredDuringExecution":[
          {"weight":100,"preference":{"matchExpressions":[{"key":"disk","operator":"Exists"}]}},
          {"weight":100,"preference":{"matchExpressions":[{"key":"disk","operator":"In",
           "values":["ssd"]}]}}]}})");
  auto all = cluster->score(parsed({pod}).pods.at(0), cluster->node_names());
  ASSERT_TRUE(all.ok()) << all.status().to_string();
  ASSERT_FALSE(all.value().empty());
  for (const auto& plugin : all.value()) {
    ASSERT_EQ(plugin.normalised.size(), 3u);
    for (const std::int64_t score : plugin.normalised) {
      EXPECT_GE(score, 0) << plugin.plugin;
      EXPECT_LE(score, 100) << plugin.plugin;
    }
  }
  EXPECT_EQ(scores(*cluster, pod, "NodeAffinity"), (std::vector<std::int64_t>{100, 0, 0}));
}

TEST(KnownFaults, ANodeThatOffersNothingScoresNothing) {
  // Both resources leave the sums, and with them all weights.
  auto cluster = cluster_of({node_json("n", R"("pods":"10")")});
  EXPECT_EQ(scores(*cluster, pod_json("p", ""), "NodeResourcesFit"), std::vector<std::int64_t>{0});
  EXPECT_EQ(decide(*cluster, pod_json("p", "")).node, "n");
}

TEST(KnownFaults, NoNodesIsAnAnswerAndNoError) {
  auto cluster = cluster_of({});
  const PodDecision decision = decide(*cluster, pod_json("p", R"("cpu":"1")"), true);
  EXPECT_EQ(decision.node, "");
  EXPECT_EQ(decision.feasible, 0u);
  EXPECT_NE(decision.reason.find("0/0 nodes are available"), std::string::npos) << decision.reason;
  auto some = cluster_of({node_json("n", kUsual)});
  const std::vector<std::string> unknown = {"elsewhere"};
  auto none = some->decide(parsed({pod_json("p", "")}).pods.at(0), true, 1, unknown);
  ASSERT_TRUE(none.ok()) << none.status().to_string();
  EXPECT_EQ(none.value().node, "");
}

TEST(KnownFaults, PodsThatAskForNothingSpread) {
  std::vector<std::string> nodes;
  for (int i = 0; i < 5; ++i) nodes.push_back(node_json(fmt::format("n{}", i), kUsual));
  auto cluster = cluster_of(nodes);
  std::map<std::string, int> pods;
  for (int i = 0; i < 20; ++i) {
    ++pods[decide(*cluster, pod_json(fmt::format("p{}", i), ""), true).node];
  }
  EXPECT_EQ(pods,
            (std::map<std::string, int>{{"n0", 4}, {"n1", 4}, {"n2", 4}, {"n3", 4}, {"n4", 4}}));
}

TEST(KnownFaults, WhatScoresAssumeIsNotWhatFits) {
  // Scores count 100m and 200Mi for a pod that names nothing; it fits where neither is left.
  auto cluster = cluster_of({node_json("n", R"("cpu":"50m","memory":"100Mi","pods":"10")")});
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(decide(*cluster, pod_json(fmt::format("p{}", i), ""), true).node, "n");
  }
  // And they have taken nothing from one that asks for all that there is.
  EXPECT_EQ(decide(*cluster, pod_json("all", R"("cpu":"50m","memory":"100Mi")"), true).node, "n");
  EXPECT_EQ(decide(*cluster, pod_json("more", R"("cpu":"1m")"), true).node, "");
}

TEST(KnownFaults, TerminatingPodsDoNotCountInSpread) {
  const std::string labels = R"(,"labels":{"app":"web"})";
  const std::string spread =
      R"(,"topologySpreadConstraints":[{"maxSkew":1,"topologyKey":"zone",
          "whenUnsatisfiable":"DoNotSchedule","labelSelector":{"matchLabels":{"app":"web"}}}])";
  const auto on_a = [&](const std::string& name, const std::string& metadata) {
    return pod_json(name, "", R"(,"nodeName":"a")", labels + metadata);
  };
  const std::string leaving =
      R"(,"deletionTimestamp":"2026-01-01T00:00:00Z","deletionGracePeriodSeconds":30)";
  const std::vector<std::string> nodes = {node_json("a", kUsual, R"("zone":"z1")"),
                                          node_json("b", kUsual, R"("zone":"z2")")};
  auto leaves = cluster_of({nodes[0], nodes[1], on_a("old", leaving)});
  EXPECT_EQ(decide(*leaves, pod_json("p", "", spread, labels)).feasible, 2u);
  auto stays = cluster_of({nodes[0], nodes[1], on_a("old", "")});
  EXPECT_EQ(decide(*stays, pod_json("p", "", spread, labels)).node, "b");
  EXPECT_EQ(decide(*stays, pod_json("p", "", spread, labels)).feasible, 1u);
}

TEST(KnownFaults, GtComparesWholeNumbersOnly) {
  const auto wants = [](const char* operation, const char* value) {
    return pod_json(
        "p", "",
        fmt::format(
            R"(,"affinity":{{"nodeAffinity":{{"requiredDuringSchedulingIgnoredDuringExecution":
            {{"nodeSelectorTerms":[{{"matchExpressions":[{{"key":"gen","operator":"{}",
            "values":["{}"]}}]}}]}}}}}})",
            operation, value));
  };
  auto cluster = cluster_of(
      {node_json("half", kUsual, R"("gen":"3.5")"), node_json("four", kUsual, R"("gen":"4")"),
       node_json("word", kUsual, R"("gen":"new")"), node_json("hex", kUsual, R"("gen":"0x10")")});
  EXPECT_EQ(decide(*cluster, wants("Gt", "3")).node, "four");
  EXPECT_EQ(decide(*cluster, wants("Gt", "3")).feasible, 1u);
  EXPECT_EQ(decide(*cluster, wants("Lt", "5")).feasible, 1u);
  EXPECT_EQ(decide(*cluster, wants("Gt", "4")).feasible, 0u);
}

TEST(KnownFaults, TheLastOfManyNodesIsConsidered) {
  std::vector<std::string> nodes;
  for (int i = 0; i < 3000; ++i) {
    nodes.push_back(
        node_json(fmt::format("n{}", i), i == 2999 ? R"("cpu":"8","memory":"64Gi",
        "pods":"110")"
                                                   : R"("cpu":"8","memory":"16Gi","pods":"110")"));
  }
  auto cluster = cluster_of(nodes);
  // 8 Gi of 64 leave more than 8 Gi of 16, wherever the search begins.
  const PodDecision decision = decide(*cluster, pod_json("p", R"("cpu":"1","memory":"8Gi")"));
  EXPECT_EQ(decision.node, "n2999");
  EXPECT_EQ(decision.feasible, 3000u);
}

TEST(KnownFaults, APluginConfiguredTwiceIsRefused) {
  const auto refused = parse_scheduler_config(
      R"(apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- pluginConfig:
  - name: NodeResourcesFit
    args: {scoringStrategy: {type: MostAllocated}}
  - name: NodeResourcesFit
    args: {scoringStrategy: {type: LeastAllocated}}
)",
      "conf.yaml");
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.status().message().find("profiles[0].pluginConfig[1]"), std::string::npos)
      << refused.status().to_string();
}

}  // namespace
}  // namespace penstock
