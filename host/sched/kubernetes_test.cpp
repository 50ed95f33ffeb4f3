#include "penstock/sched/kubernetes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "penstock/sched/kubernetes_request.h"

namespace penstock {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

KubernetesCluster read(const std::string& text) {
  auto cluster = parse_kubernetes(text, "c.json");
  EXPECT_TRUE(cluster.ok()) << cluster.status().to_string();
  return cluster.ok() ? std::move(cluster).value() : KubernetesCluster{};
}

KubernetesPod read_pod(const std::string& spec, const std::string& status = "{}") {
  const KubernetesCluster cluster = read(R"({"kind":"Pod","metadata":{"name":"p"},"spec":)" + spec +
                                         R"(,"status":)" + status + "}");
  EXPECT_EQ(cluster.pods.size(), 1u);
  return cluster.pods.empty() ? KubernetesPod{} : cluster.pods[0];
}

TEST(Kubernetes, ReadsANode) {
  const KubernetesCluster cluster = read(R"({"kind":"Node","metadata":{"name":"n",
    "labels":{"disk":"ssd","zone":"a"}},
    "spec":{"unschedulable":true,"taints":[{"key":"k","value":"v","effect":"NoSchedule"},
                                           {"key":"l","effect":"NoExecute"}]},
    "status":{"allocatable":{"cpu":"3920m","memory":"16Gi","pods":"110","x.io/y":2}}})");
  ASSERT_EQ(cluster.nodes.size(), 1u);
  const KubernetesNode& node = cluster.nodes[0];
  EXPECT_EQ(node.facts.name, "n");
  EXPECT_THAT(node.facts.labels, ElementsAre(Pair("disk", "ssd"), Pair("zone", "a")));
  EXPECT_THAT(node.facts.taints,
              ElementsAre(Taint{"k", "v", "NoSchedule"}, Taint{"l", "", "NoExecute"}));
  EXPECT_TRUE(node.unschedulable);
  EXPECT_THAT(node.allocatable, ElementsAre(Pair("cpu", 3920), Pair("memory", 17179869184),
                                            Pair("pods", 110), Pair("x.io/y", 2)));
}

TEST(Kubernetes, ReadsEveryKindOfList) {
  const KubernetesCluster cluster = read(R"({"kind":"List","items":[
    {"kind":"NodeList","items":[{"metadata":{"name":"n"},"status":{"allocatable":{"cpu":1}}}]},
    {"kind":"PodList","items":[{"metadata":{"name":"p","namespace":"s"},"spec":{"nodeName":"n"}}]},
    {"kind":"Job","metadata":{"name":"x"}},{"kind":"Job","metadata":{"name":"y"}}]})");
  ASSERT_EQ(cluster.nodes.size(), 1u);
  ASSERT_EQ(cluster.pods.size(), 1u);
  EXPECT_EQ(cluster.pods[0].name, "s/p");
  EXPECT_EQ(cluster.pods[0].node_name, "n");
  EXPECT_THAT(cluster.warnings, ElementsAre("2 objects of kind Job are ignored"));
}

TEST(Kubernetes, LeavesOutPodsThatHaveEnded) {
  const KubernetesCluster cluster = read(R"({"kind":"List","items":[
    {"kind":"Pod","metadata":{"name":"a"},"status":{"phase":"Succeeded"}},
    {"kind":"Pod","metadata":{"name":"b"},"status":{"phase":"Failed"}},
    {"kind":"Pod","metadata":{"name":"c"},"status":{"phase":"Pending"}}]})");
  ASSERT_EQ(cluster.pods.size(), 1u);
  EXPECT_EQ(cluster.pods[0].name, "default/c");
}

TEST(Kubernetes, ReadsAffinityTolerationsAndPorts) {
  const KubernetesPod pod = read_pod(R"({"nodeSelector":{"disk":"ssd"},
    "affinity":{"nodeAffinity":{
      "requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[
        {"matchExpressions":[{"key":"a","operator":"In","values":["1","2"]}],
         "matchFields":[{"key":"metadata.name","operator":"In","values":["n"]}]}]},
      "preferredDuringSchedulingIgnoredDuringExecution":[
        {"weight":7,"preference":{"matchExpressions":[{"key":"b","operator":"Exists"}]}}]}},
    "tolerations":[{"key":"k","value":"v"},{"operator":"Exists","effect":"NoExecute"}],
    "containers":[{"name":"c","ports":[{"containerPort":1},{"containerPort":80,"hostPort":8080},
       {"hostPort":53,"protocol":"UDP","hostIP":"10.0.0.1"},{"hostPort":8080}]}],
    "initContainers":[{"name":"i","ports":[{"hostPort":1}]},
       {"name":"j","restartPolicy":"Always","ports":[{"hostPort":2}]}]})");
  EXPECT_THAT(pod.node_selector, ElementsAre(Pair("disk", "ssd")));
  EXPECT_TRUE(pod.has_required);
  ASSERT_EQ(pod.required.size(), 1u);
  EXPECT_EQ(pod.required[0].labels[0].key, "a");
  EXPECT_EQ(pod.required[0].labels[0].operation, "In");
  EXPECT_THAT(pod.required[0].labels[0].values, ElementsAre("1", "2"));
  EXPECT_THAT(pod.required[0].fields[0].values, ElementsAre("n"));
  ASSERT_EQ(pod.preferred.size(), 1u);
  EXPECT_EQ(pod.preferred[0].weight, 7);
  ASSERT_EQ(pod.tolerations.size(), 2u);
  EXPECT_EQ(pod.tolerations[0].operation, "Equal");
  EXPECT_EQ(pod.tolerations[1].effect, "NoExecute");
  EXPECT_THAT(pod.ports,
              ElementsAre(HostPort{"0.0.0.0", "TCP", 8080}, HostPort{"10.0.0.1", "UDP", 53},
                          HostPort{"0.0.0.0", "TCP", 2}));
  EXPECT_THAT(pod.unsupported, IsEmpty());
}

TEST(Kubernetes, OnTheHostsNetworkAContainersPortIsTheHosts) {
  const KubernetesPod pod =
      read_pod(R"({"hostNetwork":true,"containers":[{"ports":[{"containerPort":6443}]}]})");
  EXPECT_THAT(pod.ports, ElementsAre(HostPort{"0.0.0.0", "TCP", 6443}));
}

TEST(Kubernetes, SaysWhichTermsItDoesNotEvaluate) {
  const KubernetesPod pod = read_pod(R"({"resourceClaims":[{}],"schedulingGates":[{"name":"g"}],
    "volumes":[{"persistentVolumeClaim":{"claimName":"x"}},{"emptyDir":{}}]})");
  EXPECT_THAT(pod.gates, ElementsAre("g"));
  EXPECT_THAT(pod.unsupported,
              ElementsAre("unsupported: resourceClaims (1) of the pod: not evaluated",
                          "unsupported: persistent volumes (1) of the pod: not evaluated"));
}

TEST(Kubernetes, ReadsWhatAPodSaysOfOtherPods) {
  const KubernetesPod pod = read_pod(R"({"topologySpreadConstraints":[
      {"maxSkew":2,"topologyKey":"zone","whenUnsatisfiable":"DoNotSchedule","minDomains":3,
       "labelSelector":{"matchLabels":{"a":"1"},"matchExpressions":[
         {"key":"b","operator":"NotIn","values":["x"]}]},
       "nodeAffinityPolicy":"Ignore","nodeTaintsPolicy":"Honor","matchLabelKeys":["h"]},
      {"maxSkew":1,"topologyKey":"host","whenUnsatisfiable":"ScheduleAnyway"}],
    "affinity":{"podAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[
        {"topologyKey":"zone","labelSelector":{},"namespaces":["n"],"namespaceSelector":{},
         "matchLabelKeys":["k"],"mismatchLabelKeys":["l"]}]},
      "podAntiAffinity":{"preferredDuringSchedulingIgnoredDuringExecution":[
        {"weight":30,"podAffinityTerm":{"topologyKey":"rack"}}]}},
    "priority":-7,"preemptionPolicy":"Never","schedulerName":"s",
    "containers":[{"image":"i:1"},{}],"initContainers":[{"image":"j"}]})");
  ASSERT_EQ(pod.spread.size(), 2u);
  const SpreadConstraint& first = pod.spread[0];
  EXPECT_EQ(first.max_skew, 2);
  EXPECT_EQ(first.topology_key, "zone");
  EXPECT_TRUE(first.required);
  EXPECT_EQ(first.min_domains, 3);
  EXPECT_FALSE(first.honor_node_affinity);
  EXPECT_TRUE(first.honor_node_taints);
  EXPECT_THAT(first.match_label_keys, ElementsAre("h"));
  EXPECT_TRUE(first.selector.present);
  EXPECT_THAT(first.selector.labels, ElementsAre(Pair("a", "1")));
  ASSERT_EQ(first.selector.expressions.size(), 1u);
  EXPECT_EQ(first.selector.expressions[0].operation, "NotIn");
  EXPECT_FALSE(pod.spread[1].required);
  EXPECT_EQ(pod.spread[1].min_domains, 1);
  EXPECT_TRUE(pod.spread[1].honor_node_affinity);
  EXPECT_FALSE(pod.spread[1].honor_node_taints);
  EXPECT_FALSE(pod.spread[1].selector.present);
  ASSERT_EQ(pod.affinity.required.size(), 1u);
  const PodAffinityTerm& term = pod.affinity.required[0];
  EXPECT_EQ(term.topology_key, "zone");
  EXPECT_TRUE(term.selector.present);
  EXPECT_TRUE(term.namespace_selector.present);
  EXPECT_THAT(term.namespaces, ElementsAre("n"));
  EXPECT_THAT(term.match_label_keys, ElementsAre("k"));
  EXPECT_THAT(term.mismatch_label_keys, ElementsAre("l"));
  ASSERT_EQ(pod.anti_affinity.preferred.size(), 1u);
  EXPECT_EQ(pod.anti_affinity.preferred[0].weight, 30);
  EXPECT_FALSE(pod.anti_affinity.preferred[0].term.namespace_selector.present);
  EXPECT_EQ(pod.priority, -7);
  EXPECT_FALSE(pod.preempts);
  EXPECT_EQ(pod.scheduler_name, "s");
  EXPECT_THAT(pod.images, ElementsAre("j", "i:1"));
  EXPECT_EQ(pod.containers, 3u);
}

TEST(Kubernetes, ReadsMetadataAndStatusOfAPod) {
  const KubernetesCluster cluster = read(R"({"kind":"Pod","metadata":{"name":"p","namespace":"s",
    "uid":"u","labels":{"a":"b"},"creationTimestamp":"2026-01-31T12:00:05Z",
    "deletionTimestamp":"2026-02-01T00:00:00Z","ownerReferences":[
      {"apiVersion":"apps/v1","kind":"ReplicaSet","name":"r","controller":true}]},
    "spec":{},"status":{"nominatedNodeName":"n","startTime":"1970-01-02T01:00:00.5+01:00"}})");
  ASSERT_EQ(cluster.pods.size(), 1u);
  const KubernetesPod& pod = cluster.pods[0];
  EXPECT_EQ(pod.uid, "u");
  EXPECT_EQ(pod.namespace_name, "s");
  EXPECT_THAT(pod.labels, ElementsAre(Pair("a", "b")));
  EXPECT_TRUE(pod.terminating);
  EXPECT_TRUE(pod.preempts);
  EXPECT_EQ(pod.creation_time_s, 1769860805);  // date -d 2026-01-31T12:00:05Z +%s
  EXPECT_EQ(pod.start_time_s, 86400);
  EXPECT_EQ(pod.nominated_node, "n");
  ASSERT_EQ(pod.owners.size(), 1u);
  EXPECT_EQ(pod.owners[0].api_version, "apps/v1");
  EXPECT_TRUE(pod.owners[0].controller);
}

TEST(Kubernetes, ReadsImagesOwnersAndNamespaces) {
  const KubernetesCluster cluster = read(R"({"kind":"List","items":[
    {"kind":"Node","metadata":{"name":"n"},"status":{"images":[
      {"names":["i@sha256:0","i:1"],"sizeBytes":7}]}},
    {"kind":"NamespaceList","items":[{"metadata":{"name":"s","labels":{"team":"t"}}}]},
    {"kind":"Service","metadata":{"name":"x","namespace":"s"},"spec":{"selector":{"a":"1"}}},
    {"kind":"Service","metadata":{"name":"headless"},"spec":{}},
    {"kind":"ReplicaSet","metadata":{"name":"r"},"spec":{"selector":{"matchExpressions":[
      {"key":"a","operator":"Exists"}]}}}]})");
  ASSERT_EQ(cluster.nodes.size(), 1u);
  ASSERT_EQ(cluster.nodes[0].images.size(), 1u);
  EXPECT_THAT(cluster.nodes[0].images[0].names, ElementsAre("i@sha256:0", "i:1"));
  EXPECT_EQ(cluster.nodes[0].images[0].bytes, 7);
  ASSERT_EQ(cluster.namespaces.size(), 1u);
  EXPECT_EQ(cluster.namespaces[0].name, "s");
  EXPECT_THAT(cluster.namespaces[0].labels, ElementsAre(Pair("team", "t")));
  ASSERT_EQ(cluster.owners.size(), 3u);
  EXPECT_EQ(cluster.owners[0].namespace_name, "s");
  EXPECT_THAT(cluster.owners[0].selector.labels, ElementsAre(Pair("a", "1")));
  EXPECT_FALSE(cluster.owners[1].selector.present);
  EXPECT_EQ(cluster.owners[2].kind, "ReplicaSet");
  EXPECT_EQ(cluster.owners[2].selector.expressions.size(), 1u);
}

TEST(Kubernetes, WarnsOfWhatConcernsTheWholeCluster) {
  const KubernetesCluster cluster = read(R"({"kind":"List","items":[
    {"kind":"Node","metadata":{"name":"n"}},{"kind":"ConfigMap"},
    {"kind":"Pod","metadata":{"name":"p"},"spec":{"nodeName":"m"}}]})");
  EXPECT_THAT(cluster.warnings,
              ElementsAre("node n has no status.allocatable, so that nothing fits there",
                          "pod default/p runs on node m, which is not in the document",
                          "1 objects of kind ConfigMap are ignored"));
}

TEST(Kubernetes, WhatIsWrongIsNamed) {
  const std::string deep = std::string(100, '[') + std::string(100, ']');
  const struct {
    std::string text;
    const char* message;
  } cases[] = {
      {"", "c.json: the file is empty"},
      {"{\n\"kind\": \"List\",\n  x}", "c.json:3:3: no JSON: syntax error"},
      {"{\"a\":\"\xff\"}", "c.json:1:"},
      {"{\"a\":1e999}", "c.json: no JSON that can be read"},
      {deep, "c.json:1:65: nests deeper than 64 levels"},
      {"[]", "c.json: found array, expected an object"},
      {"{}", "c.json: kind: found nothing, expected Node, Pod, List, NodeList or PodList"},
      {R"({"kind":"List","items":[]})", "c.json: found no Node and no Pod"},
      {R"({"kind":"List","items":{}})", "c.json: items: found object, expected an array"},
      {R"({"kind":"List","items":[7]})", "c.json: items[0]: found 7, expected an object"},
      {R"({"kind":"Node","metadata":{}})", "c.json: metadata.name: found nothing, expected a name"},
      {R"({"kind":"Node","metadata":{"name":"n"},"status":{"allocatable":{"cpu":"1x"}}})",
       "c.json: status.allocatable.cpu: found '1x', expected a quantity"},
      {R"({"kind":"Node","metadata":{"name":"n"},"status":{"allocatable":{"cpu":true}}})",
       "c.json: status.allocatable.cpu: found true, expected a text"},
      {R"({"kind":"Node","metadata":{"name":"n","labels":{"a":1}}})",
       "c.json: metadata.labels.a: found 1, expected a text"},
      {R"({"kind":"Node","metadata":{"name":"n"},"spec":{"taints":[{"key":"k","effect":"No"}]}})",
       "c.json: spec.taints[0].effect: found \"No\", expected NoSchedule"},
      {R"({"kind":"List","items":[{"kind":"Node","metadata":{"name":"n"}},
          {"kind":"Node","metadata":{"name":"n"}}]})",
       "c.json: items[1].metadata.name: found \"n\", expected a name of its own"},
      {R"({"kind":"List","items":[{"kind":"Pod","metadata":{"name":"n"}},
          {"kind":"Pod","metadata":{"name":"n"}}]})",
       "c.json: items[1].metadata.name: found \"n\", expected a name of its own"},
      {R"({"kind":"Pod","metadata":{"name":"p"},"spec":{"containers":[
          {"ports":[{"hostPort":70000}]}]}})",
       "c.json: spec.containers[0].ports[0].hostPort: found 70000, expected a whole number from 0"},
      {R"({"kind":"Pod","metadata":{"name":"p"},"spec":{"containers":[
          {"resources":{"requests":{"memory":"-1Gi"}}}]}})",
       "c.json: spec.containers[0].resources.requests.memory: found '-1Gi', expected a quantity "
       "that is not negative"},
      {R"({"kind":"Pod","metadata":{"name":"p"},"spec":{"containers":[
          {"resources":{"requests":{"memory":"8Pi"}}},
          {"resources":{"requests":{"memory":"1"}}}]}})",
       "the containers ask for more than 2^53 of memory together"},
      {R"({"kind":"Pod","metadata":{"name":"p"},"spec":{"tolerations":[{"operator":"Is"}]}})",
       "c.json: spec.tolerations[0].operator: found \"Is\", expected Equal or Exists"},
      {R"({"kind":"Pod","metadata":{"name":"p"},"spec":{"affinity":{"nodeAffinity":{
          "preferredDuringSchedulingIgnoredDuringExecution":[{"preference":{}}]}}}})",
       "c.json: spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0]."
       "weight: found nothing, expected a whole number from 1 to 100"},
      {R"({"kind":"Pod","metadata":{"name":"p"},"spec":{"topologySpreadConstraints":[{}]}})",
       "c.json: spec.topologySpreadConstraints[0].maxSkew: found nothing, expected a whole number"},
      {R"({"kind":"Pod","metadata":{"name":"p"},"spec":{"topologySpreadConstraints":[
          {"maxSkew":1,"topologyKey":"z","whenUnsatisfiable":"No"}]}})",
       "whenUnsatisfiable: found \"No\", expected DoNotSchedule or ScheduleAnyway"},
      {R"({"kind":"Pod","metadata":{"name":"p"},"spec":{"affinity":{"podAffinity":{
          "requiredDuringSchedulingIgnoredDuringExecution":[{}]}}}})",
       "DuringExecution[0].topologyKey: found nothing, expected the key of a label of nodes"},
      {R"({"kind":"Pod","metadata":{"name":"p"},"spec":{"affinity":{"podAntiAffinity":{
          "requiredDuringSchedulingIgnoredDuringExecution":[{"topologyKey":"z","labelSelector":{
          "matchExpressions":[{"key":"a","operator":"Gt","values":["1"]}]}}]}}}})",
       "matchExpressions[0].operator: found \"Gt\", expected In, NotIn, Exists or DoesNotExist"},
      {R"({"kind":"Pod","metadata":{"name":"p","creationTimestamp":"today"}})",
       "c.json: metadata.creationTimestamp: found \"today\", expected a time such as"},
      {R"({"kind":"Pod","metadata":{"name":"p"},"spec":{"priority":3000000000}})",
       "c.json: spec.priority: found 3000000000, expected a whole number from"},
      {R"({"kind":"Pod","metadata":{"name":"p"},"spec":{"nodeName":["x"]}})",
       "c.json: spec.nodeName: found array, expected a text"},
  };
  for (const auto& c : cases) {
    const auto cluster = parse_kubernetes(c.text, "c.json");
    ASSERT_FALSE(cluster.ok()) << c.message;
    EXPECT_THAT(cluster.status().message(), HasSubstr(c.message));
    EXPECT_THAT(cluster.status().message(), Not(HasSubstr("\n")));
  }
  EXPECT_EQ(read_kubernetes("/nonexistent/c.json").status().code(), Code::not_found);
}

// The cases of upstream's resource helpers, cpu in thousandths.
TEST(KubernetesRequest, InitContainersAndSidecars) {
  const auto cpu = [](std::int64_t milli, bool restartable = false) {
    return ContainerRequest{{{"cpu", milli}}, restartable};
  };
  const struct {
    PodRequest pod;
    std::int64_t expected;
  } cases[] = {
      {{{cpu(1000)}, {cpu(4000)}, {}, {}}, 4000},
      {{{cpu(2000), cpu(3000)}, {cpu(2000)}, {}, {}}, 5000},
      {{{cpu(2000), cpu(3000)}, {cpu(2000)}, {}, {{"cpu", 1000}}}, 6000},
      {{{cpu(1000)}, {cpu(1000, true)}, {}, {}}, 2000},
      {{{cpu(1000)}, {cpu(5000), cpu(1000, true), cpu(2000, true), cpu(3000, true)}, {}, {}}, 7000},
      {{{cpu(1000)},
        {cpu(5000), cpu(1000, true), cpu(2000, true), cpu(5000), cpu(3000, true)},
        {},
        {}},
       8000},
      {{{cpu(1000)}, {cpu(4000)}, {{"cpu", 2500}}, {{"cpu", 100}}}, 2600},
  };
  for (const auto& c : cases) {
    const auto total = total_request(c.pod, false);
    ASSERT_TRUE(total.ok());
    EXPECT_EQ(total.value().at("cpu"), c.expected);
  }
}

TEST(KubernetesRequest, ScoresCountDefaultsWhereNothingIsNamed) {
  PodRequest pod;
  pod.containers = {{{}, false}, {{{"cpu", 0}}, false}, {{{"memory", 10}}, false}};
  EXPECT_THAT(total_request(pod, true).value(),
              ElementsAre(Pair("cpu", 200), Pair("memory", 2 * 209715200 + 10)));
  EXPECT_THAT(total_request(pod, false).value(), ElementsAre(Pair("cpu", 0), Pair("memory", 10)));
  EXPECT_THAT(total_request({}, true).value(), IsEmpty());
}

TEST(KubernetesRequest, OfThePodItselfOnlyCpuMemoryAndHugePagesCount) {
  PodRequest pod;
  pod.containers = {{{{"cpu", 500}, {"x.io/y", 1}}, false}};
  pod.pod_level = {{"cpu", 900}, {"hugepages-2Mi", 4}, {"x.io/y", 7}};
  EXPECT_THAT(total_request(pod, false).value(),
              ElementsAre(Pair("cpu", 900), Pair("hugepages-2Mi", 4), Pair("x.io/y", 1)));
}

TEST(KubernetesRequest, ALimitWithoutRequestIsTheRequest) {
  const KubernetesPod pod = read_pod(R"({"containers":[
    {"resources":{"requests":{"cpu":"100m"},"limits":{"cpu":"2","memory":"1Mi"}}}]})");
  EXPECT_THAT(pod.request, ElementsAre(Pair("cpu", 100), Pair("memory", 1048576)));
}

TEST(KubernetesRequest, AResizeCountsWhatRunsUntilItIsDone) {
  const std::string spec = R"({"containers":[{"name":"c","resources":{"requests":{"cpu":"4"}}}]})";
  const std::string running = R"("containerStatuses":[{"name":"c",
    "allocatedResources":{"cpu":"2"},"resources":{"requests":{"cpu":"2"}}}])";
  EXPECT_EQ(read_pod(spec, "{" + running + "}").request.at("cpu"), 4000);
  EXPECT_EQ(read_pod(spec, R"({"conditions":[{"type":"PodResizePending","reason":"Infeasible"}],)" +
                               running + "}")
                .request.at("cpu"),
            2000);
}

}  // namespace
}  // namespace penstock
