#include "penstock/sched/scheduler_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

namespace penstock {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr const char* kHead =
    "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n";

SchedulerConfig read(const std::string& rest) {
  const auto config = parse_scheduler_config(kHead + rest, "c.yaml");
  EXPECT_TRUE(config.ok()) << rest << "\n" << config.status().to_string();
  return config.ok() ? config.value() : SchedulerConfig::defaults();
}

std::vector<std::string> score_list(const SchedulerProfile& profile) {
  std::vector<std::string> list;
  for (const PolicyScore& score : profile.scores) {
    list.push_back(fmt::format("{}={}", score.name, score.weight));
  }
  return list;
}

const std::vector<std::string> kDefaultFilters = {
    "NodeUnschedulable", "NodeName",         "TaintToleration",   "NodeAffinity",
    "NodePorts",         "NodeResourcesFit", "PodTopologySpread", "InterPodAffinity"};
const std::vector<std::string> kDefaultScores = {
    "TaintToleration=3",   "NodeAffinity=2",     "NodeResourcesFit=1",
    "PodTopologySpread=2", "InterPodAffinity=2", "NodeResourcesBalancedAllocation=1",
    "ImageLocality=1"};

TEST(SchedulerConfig, WithoutProfilesItIsKubeSchedulersDefault) {
  for (const char* rest :
       {"", "profiles: []\n", "profiles: [{}]\n", "profiles:\n- plugins: {}\n"}) {
    const SchedulerConfig config = read(rest);
    ASSERT_EQ(config.profiles.size(), 1u);
    const SchedulerProfile& profile = config.profiles[0];
    EXPECT_EQ(profile.scheduler_name, "default-scheduler");
    EXPECT_EQ(profile.filters, kDefaultFilters);
    EXPECT_EQ(score_list(profile), kDefaultScores);
    EXPECT_EQ(profile.fit_strategy, FitStrategy::least_allocated);
    EXPECT_THAT(profile.fit_resources,
                ElementsAre(ScoringResource{"cpu", 1}, ScoringResource{"memory", 1}));
    EXPECT_TRUE(profile.system_default_spread);
    EXPECT_EQ(profile.hard_pod_affinity_weight, 1);
    EXPECT_THAT(config.notes, IsEmpty());
  }
  EXPECT_EQ(SchedulerProfile::defaults().filters, kDefaultFilters);
  EXPECT_EQ(score_list(SchedulerProfile::defaults()), kDefaultScores);
}

TEST(SchedulerConfig, JsonIsReadToo) {
  const auto config = parse_scheduler_config(
      R"({"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration",
          "profiles": [{"schedulerName": "a"}, {"schedulerName": "b"}]})",
      "c.json");
  ASSERT_TRUE(config.ok()) << config.status().to_string();
  EXPECT_NE(config.value().find_profile("b"), nullptr);
  EXPECT_EQ(config.value().find_profile("c"), nullptr);
}

struct PluginsCase {
  const char* plugins;  // of the one profile
  std::vector<std::string> filters;
  std::vector<std::string> scores;
};

TEST(SchedulerConfig, PluginsAreMergedAsUpstreamDoes) {
  const PluginsCase cases[] = {
      // Another weight leaves the place when multiPoint gives it.
      {"{multiPoint: {enabled: [{name: NodeResourcesFit, weight: 7}]}}",
       kDefaultFilters,
       {"TaintToleration=3", "NodeAffinity=2", "NodeResourcesFit=7", "PodTopologySpread=2",
        "InterPodAffinity=2", "NodeResourcesBalancedAllocation=1", "ImageLocality=1"}},
      // At the point itself it comes first, and a weight that is not given is 1.
      {"{score: {enabled: [{name: ImageLocality, weight: 5}, {name: TaintToleration}]}}",
       kDefaultFilters,
       {"ImageLocality=5", "TaintToleration=1", "NodeAffinity=2", "NodeResourcesFit=1",
        "PodTopologySpread=2", "InterPodAffinity=2", "NodeResourcesBalancedAllocation=1"}},
      {"{score: {disabled: [{name: '*'}], enabled: [{name: NodeResourcesFit, weight: 2}]}}",
       kDefaultFilters,
       {"NodeResourcesFit=2"}},
      {"{filter: {disabled: [{name: NodePorts}]}, score: {disabled: [{name: ImageLocality}]}}",
       {"NodeUnschedulable", "NodeName", "TaintToleration", "NodeAffinity", "NodeResourcesFit",
        "PodTopologySpread", "InterPodAffinity"},
       {"TaintToleration=3", "NodeAffinity=2", "NodeResourcesFit=1", "PodTopologySpread=2",
        "InterPodAffinity=2", "NodeResourcesBalancedAllocation=1"}},
      // Enabled wins over disabled, and stands last then.
      {"{filter: {disabled: [{name: NodeName}], enabled: [{name: NodeName}]}}",
       {"NodeUnschedulable", "TaintToleration", "NodeAffinity", "NodePorts", "NodeResourcesFit",
        "PodTopologySpread", "InterPodAffinity", "NodeName"},
       kDefaultScores},
      {"{multiPoint: {disabled: [{name: '*'}], enabled: [{name: PrioritySort}, "
       "{name: DefaultBinder}, {name: TaintToleration}, {name: NodeAffinity, weight: 4}]}}",
       {"TaintToleration", "NodeAffinity"},
       {"TaintToleration=1", "NodeAffinity=4"}},
      {"{multiPoint: {disabled: [{name: PodTopologySpread}]}}",
       {"NodeUnschedulable", "NodeName", "TaintToleration", "NodeAffinity", "NodePorts",
        "NodeResourcesFit", "InterPodAffinity"},
       {"TaintToleration=3", "NodeAffinity=2", "NodeResourcesFit=1", "InterPodAffinity=2",
        "NodeResourcesBalancedAllocation=1", "ImageLocality=1"}},
      {"{filter: {disabled: [{name: '*'}]}, score: {disabled: [{name: '*'}]}}", {}, {}},
  };
  for (const PluginsCase& c : cases) {
    const SchedulerConfig config = read(fmt::format("profiles: [{{plugins: {}}}]\n", c.plugins));
    EXPECT_EQ(config.profiles[0].filters, c.filters) << c.plugins;
    EXPECT_EQ(score_list(config.profiles[0]), c.scores) << c.plugins;
  }
}

TEST(SchedulerConfig, ArgumentsArriveInTheProfile) {
  const SchedulerConfig config = read(R"(
leaderElection: {leaderElect: false, leaseDuration: 1m30s, retryPeriod: 500ms}
podInitialBackoffSeconds: 2
podMaxBackoffSeconds: 30
profiles:
- schedulerName: packing
  pluginConfig:
  - name: NodeResourcesFit
    args:
      apiVersion: kubescheduler.config.k8s.io/v1
      kind: NodeResourcesFitArgs
      ignoredResources: [example.com/foo]
      ignoredResourceGroups: [example.org]
      scoringStrategy:
        type: RequestedToCapacityRatio
        resources:
        - {name: cpu, weight: 3}
        - {name: nvidia.com/gpu, weight: 5}
        - {name: memory}
        requestedToCapacityRatio:
          shape: [{utilization: 0, score: 0}, {utilization: 100, score: 10}]
  - name: NodeResourcesBalancedAllocation
    args: {resources: [{name: nvidia.com/gpu, weight: 1}]}
  - name: InterPodAffinity
    args: {hardPodAffinityWeight: 0, ignorePreferredTermsOfExistingPods: true}
  - name: NodeAffinity
    args:
      addedAffinity:
        requiredDuringSchedulingIgnoredDuringExecution:
          nodeSelectorTerms:
          - matchExpressions: [{key: zone, operator: In, values: [a, b]}]
            matchFields: [{key: metadata.name, operator: NotIn, values: [n1]}]
        preferredDuringSchedulingIgnoredDuringExecution:
        - weight: 7
          preference: {matchExpressions: [{key: cores, operator: Gt, values: ["16"]}]}
  - name: PodTopologySpread
    args:
      defaultingType: List
      defaultConstraints:
      - {maxSkew: 2, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: DoNotSchedule,
         minDomains: 3, nodeTaintsPolicy: Honor, nodeAffinityPolicy: Ignore}
      - {maxSkew: 1, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: ScheduleAnyway}
  - name: DefaultPreemption
    args: {minCandidateNodesPercentage: 5, minCandidateNodesAbsolute: 7}
- schedulerName: plain
  pluginConfig:
  - name: NodeResourcesFit
    args: {scoringStrategy: {type: MostAllocated, resources: []}}
)");
  EXPECT_FALSE(config.leader_election.elect);
  EXPECT_EQ(config.leader_election.lease_duration_ms, 90000);
  EXPECT_EQ(config.leader_election.retry_period_ms, 500);
  EXPECT_EQ(config.initial_backoff_seconds, 2);
  EXPECT_EQ(config.max_backoff_seconds, 30);
  ASSERT_EQ(config.profiles.size(), 2u);
  const SchedulerProfile& p = config.profiles[0];
  EXPECT_EQ(p.fit_strategy, FitStrategy::requested_to_capacity_ratio);
  EXPECT_THAT(p.fit_resources,
              ElementsAre(ScoringResource{"cpu", 3}, ScoringResource{"nvidia.com/gpu", 5},
                          ScoringResource{"memory", 1}));
  EXPECT_THAT(p.fit_shape, ElementsAre(ShapePoint{0, 0}, ShapePoint{100, 10}));
  EXPECT_THAT(p.ignored_resources, ElementsAre("example.com/foo"));
  EXPECT_THAT(p.ignored_resource_groups, ElementsAre("example.org"));
  EXPECT_THAT(p.balanced_resources, ElementsAre(ScoringResource{"nvidia.com/gpu", 1}));
  EXPECT_EQ(p.hard_pod_affinity_weight, 0);
  EXPECT_TRUE(p.ignore_preferred_terms_of_existing_pods);
  ASSERT_TRUE(p.has_added_required);
  ASSERT_EQ(p.added_required.size(), 1u);
  EXPECT_EQ(p.added_required[0].labels[0], (Requirement{"zone", "In", {"a", "b"}}));
  EXPECT_EQ(p.added_required[0].fields[0], (Requirement{"metadata.name", "NotIn", {"n1"}}));
  ASSERT_EQ(p.added_preferred.size(), 1u);
  EXPECT_EQ(p.added_preferred[0].weight, 7);
  EXPECT_EQ(p.added_preferred[0].term.labels[0], (Requirement{"cores", "Gt", {"16"}}));
  EXPECT_FALSE(p.system_default_spread);
  ASSERT_EQ(p.default_spread.size(), 2u);
  EXPECT_EQ(p.default_spread[0].max_skew, 2);
  EXPECT_EQ(p.default_spread[0].min_domains, 3);
  EXPECT_TRUE(p.default_spread[0].required);
  EXPECT_TRUE(p.default_spread[0].honor_node_taints);
  EXPECT_FALSE(p.default_spread[0].honor_node_affinity);
  EXPECT_FALSE(p.default_spread[1].required);
  EXPECT_EQ(p.preemption_nodes_percent, 5);
  EXPECT_EQ(p.preemption_nodes_least, 7);
  EXPECT_EQ(config.profiles[1].fit_strategy, FitStrategy::most_allocated);
  EXPECT_EQ(config.profiles[1].fit_resources.size(), 2u);
}

TEST(SchedulerConfig, WhatHasNoEffectIsToldInNotes) {
  const SchedulerConfig config = read(
      "percentageOfNodesToScore: 30\nparallelism: 8\nenableProfiling: false\n"
      "clientConnection: {kubeconfig: /etc/k.conf, qps: 50.5, burst: 100}\n"
      "delayCacheUntilActive: true\n"
      "profiles: [{percentageOfNodesToScore: 20, plugins: {filter: {enabled: [{name: "
      "VolumeBinding}]}, preFilter: {disabled: [{name: NodePorts}]}}}]\n");
  EXPECT_THAT(config.notes, Contains("c.yaml: percentageOfNodesToScore has no effect: all nodes "
                                     "are always considered"));
  EXPECT_THAT(config.notes, Contains(HasSubstr("profiles[0].percentageOfNodesToScore has no")));
  EXPECT_THAT(config.notes, Contains(HasSubstr("parallelism has no effect")));
  EXPECT_THAT(config.notes, Contains(HasSubstr("VolumeBinding is not evaluated")));
  EXPECT_THAT(config.notes, Contains(HasSubstr("preFilter: without NodePorts has no effect")));
}

struct WrongCase {
  const char* rest;
  const char* message;
};

void expect_wrong(const WrongCase& c, Code code) {
  const auto config = parse_scheduler_config(std::string(kHead) + c.rest, "c.yaml");
  ASSERT_FALSE(config.ok()) << c.rest;
  EXPECT_EQ(config.status().code(), code) << config.status().to_string();
  EXPECT_THAT(config.status().message(), HasSubstr(c.message)) << c.rest;
}

TEST(SchedulerConfig, NamesTheFieldThatIsWrong) {
  const WrongCase cases[] = {
      {"profils: []\n", "c.yaml: profils: there is no such field; did you mean profiles"},
      {"xyzzy: 1\n", "xyzzy: there is no such field; there are apiVersion, kind"},
      {"parallelism: 0\n", "parallelism: found 0, expected a whole number from 1 to"},
      {"parallelism: 1.5\n", "parallelism: found 1.5, expected a whole number"},
      {"percentageOfNodesToScore: 101\n", "percentageOfNodesToScore: found 101, expected"},
      {"percentageOfNodesToScore: .nan\n", "c.yaml:3:27: found .nan, expected a finite number"},
      {"podInitialBackoffSeconds: 0\n", "podInitialBackoffSeconds: found 0"},
      {"podInitialBackoffSeconds: 20\n", "podMaxBackoffSeconds: found nothing, expected at least"},
      {"leaderElection: {leaseDuration: 5 s}\n", "leaderElection.leaseDuration: found \"5 s\""},
      {"leaderElection: {leaseDuration: 5s}\n", "leaseDuration: found \"5s\", expected more than"},
      {"leaderElection: {resourceLock: endpoints}\n", "resourceLock: found \"endpoints\""},
      {"clientConnection: {qps: fast}\n", "clientConnection.qps: found \"fast\", expected a num"},
      {"profiles: 3\n", "profiles: found 3, expected an array"},
      {"profiles: [3]\n", "profiles[0]: found 3, expected an object"},
      {"profiles: [{}, {}]\n", "profiles[0].schedulerName: found nothing, expected a name"},
      {"profiles: [{schedulerName: a}, {schedulerName: a}]\n",
       "profiles[1].schedulerName: found \"a\", expected a name of its own"},
      {"profiles: [{plugins: {filter: {enabled: [{name: NodeResourceFit}]}}}]\n",
       "profiles[0].plugins.filter.enabled[0].name: found \"NodeResourceFit\", expected a plugin "
       "of kube-scheduler v1.34; names like it: NodeResourcesFit"},
      {"profiles: [{plugins: {filter: {enabled: [{name: ImageLocality}]}}}]\n",
       "enabled[0].name: found \"ImageLocality\", expected a plugin that extends this point"},
      {"profiles: [{plugins: {score: {enabled: [{name: ImageLocality}, {name: "
       "ImageLocality}]}}}]\n",
       "score.enabled[1].name: found \"ImageLocality\", expected each plugin once"},
      {"profiles: [{plugins: {score: {disabled: [{name: Unknown}]}}}]\n",
       "score.disabled[0].name: found \"Unknown\", expected a plugin"},
      {"profiles: [{plugins: {score: {enabled: [{name: ImageLocality, weight: -1}]}}}]\n",
       "enabled[0].weight: found -1, expected a whole number from 1 to 1000000"},
      {"profiles: [{plugins: {scores: {}}}]\n", "did you mean score"},
      {"profiles: [{plugins: {bind: {disabled: [{name: '*'}]}}}]\n", "bind: found object"},
      {"profiles: [{plugins: {queueSort: {disabled: [{name: '*'}]}}}]\n",
       "queueSort: found object"},
      {"profiles: [{pluginConfig: [{name: NodePorts, args: {a: 1}}]}]\n",
       "args: found object, expected none: NodePorts takes no arguments"},
      {"profiles: [{pluginConfig: [{name: InterPodAffinity}, {name: InterPodAffinity}]}]\n",
       "pluginConfig[1].name: found \"InterPodAffinity\", expected one configuration"},
  };
  for (const WrongCase& c : cases) expect_wrong(c, Code::invalid_argument);
  expect_wrong({"extenders: [{urlPrefix: http://x}]\n", "extenders: found 1, expected none"},
               Code::unsupported);
}

TEST(SchedulerConfig, NamesTheArgumentThatIsWrong) {
  const struct {
    const char* plugin;
    WrongCase args;
  } cases[] = {
      {"NodeResourcesFit", {"{scoringStrategy: {resources: []}}", "scoringStrategy.type: found"}},
      {"NodeResourcesFit", {"{scoringStrategy: {type: Best}}", "type: found \"Best\", expected L"}},
      {"NodeResourcesFit",
       {"{scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 0}]}}",
        "args.scoringStrategy.resources[0].weight: found 0, expected a whole number from 1 to "
        "100"}},
      {"NodeResourcesFit",
       {"{scoringStrategy: {type: MostAllocated, resources: [{name: cpu}, {name: b, weight: "
        "101}]}}",
        "resources[1].weight: found 101"}},
      {"NodeResourcesFit",
       {"{scoringStrategy: {type: MostAllocated, resources: [{name: cpu}, {name: cpu}]}}",
        "resources[1].name: found cpu, expected each resource once"}},
      {"NodeResourcesFit",
       {"{scoringStrategy: {type: RequestedToCapacityRatio}}",
        "requestedToCapacityRatio: found nothing, expected a shape"}},
      {"NodeResourcesFit",
       {"{scoringStrategy: {type: RequestedToCapacityRatio, requestedToCapacityRatio: {shape: "
        "[]}}}",
        "shape: found array, expected at least one point"}},
      {"NodeResourcesFit",
       {"{scoringStrategy: {type: RequestedToCapacityRatio, requestedToCapacityRatio: {shape: "
        "[{utilization: 10, score: 1}, {utilization: 10, score: 2}]}}}",
        "shape[1].utilization: found 10, expected more than 10"}},
      {"NodeResourcesFit",
       {"{scoringStrategy: {type: RequestedToCapacityRatio, requestedToCapacityRatio: {shape: "
        "[{utilization: 101, score: 1}]}}}",
        "shape[0].utilization: found 101"}},
      {"NodeResourcesFit",
       {"{scoringStrategy: {type: RequestedToCapacityRatio, requestedToCapacityRatio: {shape: "
        "[{utilization: 1, score: 11}]}}}",
        "shape[0].score: found 11"}},
      {"NodeResourcesFit", {"{ignoredResources: ['a b']}", "ignoredResources[0]: found \"a b\""}},
      {"NodeResourcesFit",
       {"{ignoredResourceGroups: [a.b/c]}",
        "ignoredResourceGroups[0]: found \"a.b/c\", expected a g"}},
      {"NodeResourcesFit", {"{kind: NodeAffinityArgs}", "expected NodeResourcesFitArgs"}},
      {"NodeResourcesFit", {"{scoringStrateg: 1}", "did you mean scoringStrategy"}},
      {"NodeResourcesBalancedAllocation",
       {"{resources: [{name: cpu, weight: 2}]}",
        "weight: found 2, expected a whole number from 1"}},
      {"InterPodAffinity", {"{hardPodAffinityWeight: 101}", "hardPodAffinityWeight: found 101"}},
      {"PodTopologySpread",
       {"{defaultingType: Listt}", "found \"Listt\", expected System or List"}},
      {"PodTopologySpread",
       {"{defaultConstraints: [{maxSkew: 1, topologyKey: z, whenUnsatisfiable: ScheduleAnyway}]}",
        "defaultingType: found nothing, expected List"}},
      {"PodTopologySpread",
       {"{defaultingType: List, defaultConstraints: [{maxSkew: 0, topologyKey: z}]}",
        "defaultConstraints[0].maxSkew: found 0"}},
      {"PodTopologySpread",
       {"{defaultingType: List, defaultConstraints: [{maxSkew: 1, topologyKey: z, "
        "whenUnsatisfiable: Never}]}",
        "whenUnsatisfiable: found \"Never\""}},
      {"PodTopologySpread",
       {"{defaultingType: List, defaultConstraints: [{maxSkew: 1, topologyKey: z, "
        "whenUnsatisfiable: ScheduleAnyway, labelSelector: {}}]}",
        "labelSelector: found object, expected none"}},
      {"PodTopologySpread",
       {"{defaultingType: List, defaultConstraints: [&c {maxSkew: 1, topologyKey: z, "
        "whenUnsatisfiable: ScheduleAnyway}, *c]}",
        "defaultConstraints[1]: found {z, ScheduleAnyway} again"}},
      {"NodeAffinity",
       {"{addedAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: "
        "[{matchExpressions: [{key: a, operator: In}]}]}}}",
        "matchExpressions[0].values: found nothing, expected at least one value"}},
      {"NodeAffinity",
       {"{addedAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: "
        "[{matchExpressions: [{key: a, operator: Gt, values: ['1.5']}]}]}}}",
        "values: found array, expected a whole number with Gt"}},
      {"NodeAffinity",
       {"{addedAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: "
        "[{matchFields: [{key: a, operator: In, values: [b]}]}]}}}",
        "matchFields[0].key: found \"a\", expected metadata.name"}},
      {"NodeAffinity",
       {"{addedAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 0}]}}",
        "Execution[0].weight: found 0"}},
      {"DefaultPreemption",
       {"{minCandidateNodesPercentage: 0, minCandidateNodesAbsolute: 0}",
        "minCandidateNodesPercentage: found 0, expected more than 0"}},
      {"VolumeBinding", {"{bindTimeoutSeconds: -1}", "bindTimeoutSeconds: found -1"}},
  };
  for (const auto& c : cases) {
    const std::string rest = fmt::format("profiles: [{{pluginConfig: [{{name: {}, args: {}}}]}}]\n",
                                         c.plugin, c.args.rest);
    expect_wrong({rest.c_str(), c.args.message}, Code::invalid_argument);
  }
}

TEST(SchedulerConfig, RefusesOtherDocuments) {
  const struct {
    const char* text;
    const char* message;
  } cases[] = {
      {"kind: KubeSchedulerConfiguration\n", "apiVersion: found nothing"},
      {"apiVersion: kubescheduler.config.k8s.io/v1beta3\nkind: KubeSchedulerConfiguration\n",
       "(what came before it is no longer read)"},
      {"apiVersion: kubescheduler.config.k8s.io/v1\nkind: Policy\n", "kind: found \"Policy\""},
      {"apiVersion: v1\nkind: Pod\n", "apiVersion: found \"v1\", expected kubescheduler"},
      {"[]", "c.yaml: found array, expected a KubeSchedulerConfiguration"},
      {"text", "expected a KubeSchedulerConfiguration"},
      {"a: [\n", "no YAML"},
  };
  for (const auto& c : cases) {
    const auto config = parse_scheduler_config(c.text, "c.yaml");
    ASSERT_FALSE(config.ok()) << c.text;
    EXPECT_THAT(config.status().message(), HasSubstr(c.message)) << c.text;
  }
  std::string many = std::string(kHead) + "profiles:\n";
  for (int i = 0; i < 65; ++i) many += fmt::format("- schedulerName: s{}\n", i);
  EXPECT_EQ(parse_scheduler_config(many, "c.yaml").status().code(), Code::out_of_range);
}

TEST(SchedulerConfig, AFileBeyondTheLimitIsNotRead) {
  const std::string path = testing::TempDir() + "/huge.yaml";
  std::ofstream(path) << std::string(kMaxSchedulerConfigBytes + 1, '#');
  EXPECT_EQ(read_scheduler_config(path).status().code(), Code::out_of_range);
  std::ofstream(path, std::ios::trunc) << kHead;
  EXPECT_TRUE(read_scheduler_config(path).ok());
  EXPECT_EQ(read_scheduler_config(path + ".none").status().code(), Code::not_found);
}

}  // namespace
}  // namespace penstock
