#include "penstock/sched/explain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "penstock/sched/kubernetes_cluster.h"
#include "penstock/sched/ports.h"
#include "penstock/sched/trace_table.h"

namespace penstock {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const KubernetesCluster& example() {
  static const KubernetesCluster kCluster = [] {
    auto cluster = read_kubernetes(PENSTOCK_EXAMPLE_CLUSTER);
    EXPECT_TRUE(cluster.ok()) << cluster.status().to_string();
    return std::move(cluster).value();
  }();
  return kCluster;
}

Explanation explained(const std::string& pod) {
  auto explanation = explain_pod(example(), pod, "default", "scalar");
  EXPECT_TRUE(explanation.ok()) << explanation.status().to_string();
  return explanation.ok() ? std::move(explanation).value() : Explanation{};
}

const NodeExplanation& node_of(const Explanation& explanation, const std::string& name) {
  static const NodeExplanation kNone;
  for (const NodeExplanation& node : explanation.nodes) {
    if (node.name == name) return node;
  }
  ADD_FAILURE() << name;
  return kNone;
}

std::vector<std::string> reasons_of(const NodeExplanation& node) {
  std::vector<std::string> reasons;
  for (const FilterVerdict& verdict : node.filters) {
    if (!verdict.passed) reasons.push_back(verdict.filter + ": " + verdict.reason);
  }
  return reasons;
}

// web-2 asks for 1500m and 4Gi. On work-2 (16000m, 64Gi), report-0 takes 8250m (its init container
// asks for 8, which is more than 6 and the sidecar's 0.1; and 0.25 of overhead) and 24Gi + 184Mi.
//   least allocated:  cpu (16000 - 9750) * 100 / 16000 = 39, memory (65536 - 28856) * 100 / 65536 =
//                     55 (in MiB), together 94 / 2 = 47
//   balanced:         |0.609375 - 0.440307...| / 2 = 0.0845..., so 91
//   preferred:        80 for the disk and 20 for the zone, the most of any feasible node: 100
//   taints:           one that is not tolerated, the most of any feasible node: 0
// 0 * 3 + 100 * 2 + 47 + 91 = 338.
TEST(Explain, ShowsTheNumbersOfTheDecision) {
  const Explanation explanation = explained("shop/web-2");
  EXPECT_EQ(explanation.winner_name, "work-2");
  EXPECT_EQ(explanation.winner_score, 338);
  EXPECT_EQ(explanation.feasible, 1u);
  EXPECT_EQ(explanation.engine, "scalar");
  ASSERT_EQ(explanation.nodes.size(), 6u);
  const NodeExplanation& winner = node_of(explanation, "work-2");
  EXPECT_TRUE(winner.best);
  EXPECT_EQ(winner.total, 338);
  ASSERT_EQ(winner.scores.size(), 7u);
  const std::tuple<const char*, int, int, int, int> expected[] = {
      {"taint-toleration", 1, 0, 3, 0},   {"node-affinity", 100, 100, 2, 200},
      {"least-allocated", 47, 47, 1, 47}, {"spread", 0, 0, 2, 0},
      {"pod-affinity", 0, 0, 2, 0},       {"balanced-allocation", 91, 91, 1, 91},
      {"image-locality", 0, 0, 1, 0},
  };
  for (std::size_t i = 0; i < 7; ++i) {
    const ScoreLine& line = winner.scores[i];
    EXPECT_EQ(std::make_tuple(line.score, line.raw, line.normalised, line.weight, line.weighted),
              expected[i]);
  }
  EXPECT_THAT(explanation.warnings, IsEmpty());
  EXPECT_EQ(explanation.summary, "shop/web-2 goes to work-2 with score 338; 1 of 6 nodes fit");
}

TEST(Explain, SaysWhyANodeDoesNotDo) {
  const Explanation explanation = explained("web-2");
  EXPECT_THAT(reasons_of(node_of(explanation, "work-0")),
              ElementsAre("ports: port taken: TCP 8080 by shop/web-0"));
  EXPECT_THAT(
      reasons_of(node_of(explanation, "gone-0")),
      ElementsAre("unschedulable: unschedulable: the node is cordoned",
                  "taints: untolerated taint: node.kubernetes.io/unschedulable:NoSchedule"));
  EXPECT_THAT(node_of(explanation, "work-0").scores, IsEmpty());
}

TEST(Explain, SaysWhyAPodFitsNowhere) {
  const Explanation explanation = explained("ml/train-1");
  EXPECT_EQ(explanation.winner, -1);
  EXPECT_EQ(explanation.feasible, 0u);
  EXPECT_EQ(
      explanation.summary,
      "ml/train-1 fits nowhere: 0/6 nodes are available: 3 node affinity or selector does not "
      "match, 1 insufficient nvidia.com/gpu, 1 unschedulable, 1 untolerated taint");
  EXPECT_THAT(reasons_of(node_of(explanation, "gpu-0")),
              ElementsAre("fit: insufficient nvidia.com/gpu: asks 2, 1 of 4 left"));
  EXPECT_THAT(reasons_of(node_of(explanation, "work-2")),
              ElementsAre("node-affinity: node affinity or selector does not match",
                          "fit: insufficient cpu: asks 8000m, 7750m of 16000m left; insufficient "
                          "nvidia.com/gpu: asks 2, 0 of 0 left"));
}

// a and b in zone 1, c in zone 2, d in none; "front" runs on a and keeps "loud" out of its zone.
KubernetesCluster zones() {
  const auto node = [](const char* name, const char* labels) {
    return fmt::format(R"({{"kind":"Node","metadata":{{"name":"{}","labels":{}}},
        "status":{{"allocatable":{{"cpu":4,"memory":"8Gi","pods":9}}}}}},)",
                       name, labels);
  };
  const auto cluster = parse_kubernetes(
      R"({"kind":"List","items":[)" + node("a", R"({"zone":"1"})") + node("b", R"({"zone":"1"})") +
          node("c", R"({"zone":"2"})") + node("d", "{}") +
          R"({"kind":"Pod","metadata":{"name":"front","labels":{"app":"front"}},"spec":{
      "nodeName":"a","affinity":{"podAntiAffinity":{
        "requiredDuringSchedulingIgnoredDuringExecution":[
        {"topologyKey":"zone","labelSelector":{"matchLabels":{"app":"loud"}}}]}}}},
    {"kind":"Pod","metadata":{"name":"more","labels":{"app":"front"}},"spec":{
      "topologySpreadConstraints":[{"maxSkew":1,"topologyKey":"zone",
        "whenUnsatisfiable":"DoNotSchedule","labelSelector":{"matchLabels":{"app":"front"}}}]}},
    {"kind":"Pod","metadata":{"name":"loud","labels":{"app":"loud"}},"spec":{"affinity":{
      "podAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[
        {"topologyKey":"zone","labelSelector":{"matchLabels":{"app":"front"}}}]}}}},
    {"kind":"Pod","metadata":{"name":"claims"},"spec":{"resourceClaims":[{"name":"x"}]}}]})",
      "c.json");
  EXPECT_TRUE(cluster.ok()) << cluster.status().to_string();
  return cluster.value();
}

TEST(Explain, ShowsWhatSpreadAndPodAffinityCompared) {
  const Explanation spread = explain_pod(zones(), "more", "default", "scalar").value();
  EXPECT_EQ(spread.winner_name, "c");
  EXPECT_THAT(reasons_of(spread.nodes[0]),
              ElementsAre("spread: topology spread: by zone there are 1, with this pod 2, and the "
                          "least is 0: at most 1 more"));
  EXPECT_THAT(reasons_of(spread.nodes[3]), ElementsAre("spread: topology spread, no label: zone"));
  EXPECT_EQ(spread.nodes[2].filters[6].filter, "spread");
  EXPECT_EQ(spread.nodes[2].filters[6].numbers, "zone: 0 + 1 - 0 <= 1");
  EXPECT_EQ(spread.nodes[0].filters[6].numbers, "zone: 1 + 1 - 0 > 1");

  const Explanation affinity = explain_pod(zones(), "loud", "default", "scalar").value();
  EXPECT_EQ(affinity.winner, -1);
  EXPECT_EQ(affinity.nodes[1].filters[7].numbers, "zone: 1 wanted; zone: 1 shun it");
  EXPECT_THAT(reasons_of(affinity.nodes[1]),
              ElementsAre("pod-affinity: anti-affinity of other pods: by zone there are 1"));
  EXPECT_THAT(reasons_of(affinity.nodes[2]),
              ElementsAre("pod-affinity: pod affinity: by zone there is none"));
  EXPECT_EQ(affinity.summary,
            "default/loud fits nowhere: 0/4 nodes are available: 2 anti-affinity of other pods, 1 "
            "pod affinity, 1 pod affinity, no label");
  const auto json = nlohmann::json::parse(explanation_json(spread));
  EXPECT_EQ(json["nodes"][0]["filters"][6]["numbers"], "zone: 1 + 1 - 0 > 1");
}

TEST(Explain, NamesTermsThatAreUnsupported) {
  EXPECT_THAT(explain_pod(zones(), "claims", "default", "scalar").value().warnings,
              ElementsAre("unsupported: resourceClaims (1) of the pod: not evaluated"));
  EXPECT_THAT(explained("api-0").warnings, IsEmpty());
}

TEST(Explain, APodThatRunsIsSeenAsIfItDidNot) {
  const Explanation explanation = explained("db-0");
  EXPECT_THAT(explanation.warnings,
              ElementsAre("shop/db-0 runs on work-0; it is explained as if it did not run yet"));
  EXPECT_TRUE(node_of(explanation, "work-0").feasible);
  // 8 cores, of which web-0 has 1.5: (8000 - 5500) * 100 / 8000 = 31; 32Gi, of which web-0 has 4:
  // (32 - 20) * 100 / 32 = 37.
  EXPECT_EQ(node_of(explanation, "work-0").scores[2].raw, 34);
}

// It names nothing, and counts 100m and 200Mi: beside web-1 and cache-0, which names nothing
// either, (8000 - 1500 - 200) * 100 / 8000 = 78 and (32768 - 4096 - 400) * 100 / 32768 = 86 on
// work-1.
TEST(Explain, ScoresCountDefaultsWhereNothingIsNamed) {
  const Explanation explanation = explained("best-effort-0");
  EXPECT_EQ(node_of(explanation, "work-1").scores[2].raw, 82);
}

TEST(Explain, EveryEngineAgrees) {
  for (const KubernetesPod& pod : example().pods) {
    const auto a = explain_pod(example(), pod.name, "default", "scalar");
    const auto b = explain_pod(example(), pod.name, "default", "auto");
    ASSERT_TRUE(a.ok() && b.ok());
    EXPECT_EQ(a.value().summary, b.value().summary);
  }
}

TEST(Explain, APodIsNamedUniquely) {
  EXPECT_EQ(explain_pod(example(), "nobody").status().code(), Code::not_found);
  KubernetesCluster twice = example();
  twice.pods.push_back(twice.pods.back());
  twice.pods.back().name = "other/best-effort-0";
  const auto explanation = explain_pod(twice, "best-effort-0");
  ASSERT_FALSE(explanation.ok());
  EXPECT_THAT(explanation.status().message(),
              HasSubstr("batch/best-effort-0 and other/best-effort-0"));
  EXPECT_TRUE(explain_pod(twice, "other/best-effort-0").ok());
}

TEST(Explain, PlacesPendingPodsOneAfterAnother) {
  const auto decisions = place_pending(example(), "default", "scalar");
  ASSERT_TRUE(decisions.ok()) << decisions.status().to_string();
  std::vector<std::string> got;
  for (const PendingDecision& decision : decisions.value()) {
    got.push_back(decision.pod + " " + decision.decision.node);
  }
  EXPECT_THAT(got, ElementsAre("shop/web-2 work-2", "ml/train-1 ", "shop/api-0 work-1",
                               "batch/best-effort-0 work-1"));
  EXPECT_THAT(decisions.value()[1].decision.reason, HasSubstr("1 Insufficient nvidia.com/gpu"));
}

TEST(Ports, ConflictOnOneAddressOrEvery) {
  const HostPort every{"0.0.0.0", "TCP", 80}, one{"10.0.0.1", "TCP", 80};
  EXPECT_TRUE(conflict(every, one));
  EXPECT_TRUE(conflict(one, every));
  EXPECT_TRUE(conflict(one, one));
  EXPECT_FALSE(conflict(one, {"10.0.0.2", "TCP", 80}));
  EXPECT_FALSE(conflict(every, {"10.0.0.1", "UDP", 80}));
  EXPECT_FALSE(conflict(every, {"10.0.0.1", "TCP", 81}));
  EXPECT_EQ(port_text(every), "TCP 80");
  EXPECT_EQ(port_text(one), "TCP 80 on 10.0.0.1");
}

// The second of two pods with one port finds the first, although both were pending.
TEST(Explain, PortsOfPodsPlacedBeforeCount) {
  const auto cluster = parse_kubernetes(R"({"kind":"List","items":[
    {"kind":"Node","metadata":{"name":"n"},
     "status":{"allocatable":{"cpu":4,"memory":"8Gi","pods":9}}},
    {"kind":"Pod","metadata":{"name":"a"},"spec":{"containers":[{"ports":[{"hostPort":80}]}]}},
    {"kind":"Pod","metadata":{"name":"b"},"spec":{"containers":[{"ports":
       [{"hostPort":80,"hostIP":"10.0.0.1"}]}]}},
    {"kind":"Pod","metadata":{"name":"c"},"spec":{"containers":[{"ports":
       [{"hostPort":80,"protocol":"UDP","hostIP":"10.0.0.1"}]}]}},
    {"kind":"Pod","metadata":{"name":"d"},"spec":{"containers":[{"ports":
       [{"hostPort":80,"protocol":"UDP","hostIP":"10.0.0.2"}]}]}},
    {"kind":"Pod","metadata":{"name":"e"},"spec":{"containers":[{"ports":
       [{"hostPort":80,"protocol":"UDP"}]}]}},
    {"kind":"Pod","metadata":{"name":"f"},"spec":{"containers":[{"ports":
       [{"hostPort":1},{"hostPort":2},{"hostPort":3},{"hostPort":4},{"hostPort":5}]}]}}]})",
                                        "c.json");
  ASSERT_TRUE(cluster.ok()) << cluster.status().to_string();
  const auto decisions = place_pending(cluster.value(), "default", "scalar");
  ASSERT_TRUE(decisions.ok()) << decisions.status().to_string();
  std::vector<std::string> nodes;
  for (const PendingDecision& decision : decisions.value()) nodes.push_back(decision.decision.node);
  EXPECT_THAT(nodes, ElementsAre("n", "", "n", "n", "", "n"));
  EXPECT_EQ(decisions.value()[1].decision.reason,
            "0/1 nodes are available: 1 node(s) didn't have free ports for the requested pod "
            "ports.");
}

// Sums of weights of more preferred terms than have a column each are added up in binary.
TEST(Explain, ManyPreferredTermsAndTaintsScoreExactly) {
  std::string terms;
  for (int i = 0; i < 7; ++i) {
    terms += (i == 0 ? "" : ",") + std::string(R"({"weight":)") + std::to_string(10 + i) +
             R"(,"preference":{"matchExpressions":[{"key":"l)" + std::to_string(i) +
             R"(","operator":"Exists"}]}})";
  }
  const std::string taint = R"({"effect":"PreferNoSchedule","key":)";
  const auto cluster = parse_kubernetes(
      R"({"kind":"List","items":[
      {"kind":"Node","metadata":{"name":"a","labels":{"l0":"","l3":"","l6":""}},
      "spec":{"taints":[)" +
          taint + R"("x"},)" + taint + R"("y"},)" + taint + R"("z"}]},
      "status":{"allocatable":{"cpu":4,"pods":9}}},
      {"kind":"Node","metadata":{"name":"b","labels":{"l1":"","l2":""}},
      "spec":{"taints":[)" +
          taint + R"("x"}]},"status":{"allocatable":{"cpu":4,"pods":9}}},
      {"kind":"Pod","metadata":{"name":"p"},"spec":{"affinity":{"nodeAffinity":{
      "preferredDuringSchedulingIgnoredDuringExecution":[)" +
          terms + R"(]}}}}]})",
      "c.json");
  ASSERT_TRUE(cluster.ok()) << cluster.status().to_string();
  const auto explanation = explain_pod(cluster.value(), "p", "default", "scalar");
  ASSERT_TRUE(explanation.ok()) << explanation.status().to_string();
  const auto& nodes = explanation.value().nodes;
  EXPECT_EQ(nodes[0].scores[1].raw, 10 + 13 + 16);
  EXPECT_EQ(nodes[1].scores[1].raw, 11 + 12);
  EXPECT_EQ(nodes[0].scores[1].normalised, 100);
  EXPECT_EQ(nodes[1].scores[1].normalised, 58);  // 100 * 23 / 39
  EXPECT_EQ(nodes[0].scores[0].raw, 3);
  EXPECT_EQ(nodes[1].scores[0].raw, 1);
  EXPECT_EQ(nodes[1].scores[0].normalised, 67);  // 100 - 100 * 1 / 3
}

TEST(Explain, KnowsTheGpusOfATrace) {
  const std::vector<TraceNode> nodes = {{"n", 8000, 1024, 2, "T4"}, {"m", 8000, 1024, 2, "A10"}};
  const std::vector<TracePod> pods = {{"p", 1000, 10, 1, 600, "T4"}, {"q", 1000, 10, 2, 1000, ""}};
  auto table = make_trace_table(nodes, pods, make_engine("scalar").value());
  ASSERT_TRUE(table.ok()) << table.status().to_string();
  const Task task = make_trace_task(*table.value(), pods[0]).value();
  ASSERT_TRUE(table.value()->occupy(0, task, 1).ok());
  ASSERT_TRUE(table.value()->occupy(0, task, 2).ok());
  const Explanation shared = explain(*table.value(), find_policy("best-fit").value(), task).value();
  EXPECT_EQ(shared.winner, -1);
  EXPECT_THAT(reasons_of(shared.nodes[0]),
              ElementsAre("gpu: insufficient GPUs: asks 1 with 600 thousandths free, there are 400 "
                          "400"));
  EXPECT_THAT(reasons_of(shared.nodes[1]), ElementsAre("model: model does not hold"));
  const Task whole = make_trace_task(*table.value(), pods[1]).value();
  const Explanation both =
      explain(*table.value(), find_policy("gpu-packing").value(), whole).value();
  EXPECT_EQ(both.winner_name, "m");
  EXPECT_EQ(both.gpu_mask, 3u);
  // Entirely free with 2 GPUs: max(33 - 2, 2).
  EXPECT_EQ(both.winner_score, 31);
  EXPECT_THAT(reasons_of(both.nodes[0]),
              ElementsAre("fit: insufficient gpu: asks 2000m, 800m of 2000m left",
                          "gpu: insufficient GPUs: asks 2 with 1000 thousandths free, there are "
                          "400 400"));
}

TEST(Explain, RendersTextAndJson) {
  const std::string text = explanation_text(explained("web-2"));
  EXPECT_THAT(text, HasSubstr("shop/web-2 goes to work-2 with score 338"));
  EXPECT_THAT(text, HasSubstr("100, 100 x 2"));
  EXPECT_THAT(text, HasSubstr("<- goes here"));
  EXPECT_THAT(text, HasSubstr("port taken: TCP 8080 by shop/web-1"));
  const auto json = nlohmann::json::parse(explanation_json(explained("web-2")));
  EXPECT_EQ(json["winner"]["node"], "work-2");
  EXPECT_EQ(json["winner"]["score"], 338);
  EXPECT_EQ(json["nodes"].size(), 6u);
  EXPECT_EQ(json["nodes"][3]["scores"][1]["weighted"], 200);
  EXPECT_EQ(json["nodes"][1]["filters"][4]["reason"], "port taken: TCP 8080 by shop/web-0");
  const auto nowhere = nlohmann::json::parse(explanation_json(explained("train-1")));
  EXPECT_TRUE(nowhere["winner"].is_null());
}

}  // namespace
}  // namespace penstock
