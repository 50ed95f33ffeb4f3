#include "penstock/sched/cluster.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "penstock/engine/scalar_select.h"
#include "penstock/sched/cluster_rig_test.h"

namespace penstock {
namespace {

using rig::node;
using rig::pod;
using rig::selector;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

KubernetesPod asks(const std::string& name, std::int64_t cpu_milli,
                   std::map<std::string, std::string> labels = {}) {
  KubernetesPod out = pod(name, std::move(labels));
  out.request["cpu"] = out.scored_request["cpu"] = cpu_milli;
  return out;
}

std::int64_t requested(const Cluster& cluster, const std::string& node) {
  const TableView cells = cluster.table().view();
  const auto row = static_cast<std::uint32_t>(cluster.catalogue().find_node(node));
  return cells.column(cells.requested, 0)[row];  // cpu
}

std::string decided(Cluster* cluster, const KubernetesPod& pod, bool commit = true) {
  const auto decision = cluster->decide(pod, commit);
  EXPECT_TRUE(decision.ok()) << decision.status().to_string();
  return decision.ok() ? decision.value().node : "?";
}

TEST(Cluster, PlacesWhereMostIsLeft) {
  const auto cluster = rig::cluster({node("a"), node("b")});
  EXPECT_EQ(decided(cluster.get(), asks("n/1", 1000)), "a");
  EXPECT_EQ(decided(cluster.get(), asks("n/2", 1000), false), "b");
  EXPECT_EQ(requested(*cluster, "b"), 0);
  EXPECT_EQ(decided(cluster.get(), asks("n/2", 1000)), "b");
  EXPECT_EQ(requested(*cluster, "a"), 1000);
  EXPECT_EQ(requested(*cluster, "b"), 1000);
  EXPECT_EQ(cluster->find_pod("n/2")->node_name, "b");
  EXPECT_EQ(cluster->decide(asks("n/2", 1), true).status().code(), Code::already_exists);
}

TEST(Cluster, SaysWhyNothingFits) {
  KubernetesNode small = node("a"), cordoned = node("b"), tainted = node("c");
  small.allocatable["cpu"] = 500;
  small.allocatable["pods"] = 0;
  cordoned.unschedulable = true;
  tainted.facts.taints = {{"k", "v", "NoExecute"}};
  const auto cluster = rig::cluster({small, cordoned, tainted, node("d")});
  ASSERT_EQ(decided(cluster.get(), asks("n/0", 3000)), "d");
  const auto decision = cluster->decide(asks("n/1", 2000), true);
  ASSERT_TRUE(decision.ok());
  EXPECT_EQ(decision.value().node, "");
  EXPECT_EQ(decision.value().reason,
            "0/4 nodes are available: 1 Too many pods, 1 node(s) had untolerated taint {k: v}, "
            "1 node(s) were unschedulable, 2 Insufficient cpu.");
  // What no pod's leaving could change is unresolvable.
  EXPECT_THAT(rig::verdicts(*cluster, asks("n/1", 2000)),
              ElementsAre("UnschedulableAndUnresolvable: Too many pods: Insufficient cpu",
                          "UnschedulableAndUnresolvable: node(s) were unschedulable",
                          "UnschedulableAndUnresolvable: node(s) had untolerated taint {k: v}",
                          "Unschedulable: Insufficient cpu"));
}

TEST(Cluster, NamesPluginsInTheOrderOfTheProfile) {
  KubernetesPod there = pod("n/1", {}, "a");
  there.ports = {{"0.0.0.0", "TCP", 80}};
  const auto cluster = rig::cluster({node("a"), node("b", {{"disk", "ssd"}})}, {there});
  KubernetesPod wants = pod("n/2");
  wants.ports = {{"10.0.0.1", "TCP", 80}};
  wants.node_selector["disk"] = "ssd";
  auto verdicts = cluster->filter(wants);
  ASSERT_TRUE(verdicts.ok());
  EXPECT_EQ(verdicts.value()[0].plugin, "NodeAffinity");
  EXPECT_TRUE(verdicts.value()[1].feasible);
  EXPECT_EQ(verdicts.value()[1].plugin, "");
  wants.node_selector.clear();
  verdicts = cluster->filter(wants, std::vector<std::string>{"b", "nowhere", "a"});
  ASSERT_TRUE(verdicts.ok());
  EXPECT_EQ(verdicts.value()[0].code, "Success");
  EXPECT_EQ(verdicts.value()[1].code, "UnschedulableAndUnresolvable");
  EXPECT_EQ(verdicts.value()[2].plugin, "NodePorts");
  EXPECT_THAT(verdicts.value()[2].reasons,
              ElementsAre("node(s) didn't have free ports for the requested pod ports"));
  wants.node_name = "b";
  EXPECT_THAT(rig::verdicts(*cluster, wants),
              ElementsAre("UnschedulableAndUnresolvable: node(s) didn't match the requested node "
                          "name",
                          "Success"));
}

TEST(Cluster, OnlyCandidatesAreChosen) {
  const auto cluster = rig::cluster({node("a"), node("b"), node("c")});
  const auto among = [&](std::vector<std::string> names) {
    const auto decision = cluster->decide(asks("n/1", 100), false, 3, names);
    EXPECT_TRUE(decision.ok());
    return decision.value();
  };
  EXPECT_EQ(among({"c", "b"}).node, "b");
  EXPECT_EQ(among({"c"}).node, "c");
  EXPECT_EQ(among({"c"}).best.size(), 1u);
  EXPECT_EQ(among({"nowhere"}).node, "");
  EXPECT_EQ(among({}).best.size(), 3u);
}

TEST(Cluster, ScoresEveryPluginOfTheProfile) {
  KubernetesNode tainted = node("b");
  tainted.facts.taints = {{"k", "", "PreferNoSchedule"}};
  const auto cluster = rig::cluster({node("a", {{"disk", "ssd"}}), tainted});
  KubernetesPod prefers = asks("n/1", 2000);
  prefers.preferred = {{5, {{{"disk", "In", {"ssd"}}}, {}}}};
  const auto scores = cluster->score(prefers, std::vector<std::string>{"b", "a"});
  ASSERT_TRUE(scores.ok()) << scores.status().to_string();
  std::vector<std::string> lines;
  for (const PluginScores& one : scores.value()) {
    lines.push_back(fmt::format("{} x{}{} {} {} {} {}", one.plugin, one.weight,
                                one.skipped ? " skipped" : "", one.raw[0], one.raw[1],
                                one.normalised[0], one.normalised[1]));
  }
  // Fit: cpu (4000 - 2000) / 4000, memory untouched: 75. Balanced: fractions 0.5 and 0: 0.75.
  EXPECT_THAT(
      lines,
      ElementsAre("TaintToleration x3 1 0 0 100", "NodeAffinity x2 0 5 0 100",
                  "NodeResourcesFit x1 75 75 75 75", "PodTopologySpread x2 skipped 0 0 0 0",
                  "InterPodAffinity x2 skipped 0 0 0 0",
                  "NodeResourcesBalancedAllocation x1 75 75 75 75", "ImageLocality x1 0 0 0 0"));
  EXPECT_EQ(cluster->score(prefers, std::vector<std::string>{"nowhere"}).status().code(),
            Code::not_found);
}

TEST(Cluster, StatesWhatIsNowSo) {
  const auto cluster = rig::cluster({node("a"), node("b")});
  KubernetesPod placed = asks("n/1", 1000);
  placed.node_name = "a";
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(cluster->put_pod(placed).ok());
  EXPECT_EQ(requested(*cluster, "a"), 1000);
  placed.node_name = "b";
  ASSERT_TRUE(cluster->put_pod(placed).ok());
  EXPECT_EQ(requested(*cluster, "a"), 0);
  EXPECT_EQ(requested(*cluster, "b"), 1000);
  placed.request["cpu"] = 1500;
  ASSERT_TRUE(cluster->put_pod(placed).ok());
  EXPECT_EQ(requested(*cluster, "b"), 1500);
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(cluster->remove_pod("n/1").ok());
  EXPECT_EQ(requested(*cluster, "b"), 0);
  EXPECT_EQ(cluster->pod_count(), 0u);
  ASSERT_TRUE(cluster->assume(placed, "a").ok());
  EXPECT_EQ(requested(*cluster, "a"), 1500);
  ASSERT_TRUE(cluster->forget("n/1").ok());
  EXPECT_EQ(requested(*cluster, "a"), 0);
  EXPECT_EQ(cluster->assume(placed, "nowhere").code(), Code::not_found);
}

TEST(Cluster, PodsMayComeBeforeTheirNodeAndStayAfterIt) {
  const auto cluster = rig::cluster({node("a")});
  KubernetesPod early = asks("n/1", 1000, {{"app", "1"}});
  early.node_name = "late";
  early.ports = {{"0.0.0.0", "TCP", 80}};
  ASSERT_TRUE(cluster->put_pod(early).ok());
  KubernetesPod next = pod("n/2");
  next.anti_affinity.required = {rig::term("host", selector("app", "1"))};
  EXPECT_EQ(decided(cluster.get(), next, false), "a");
  const KubernetesNode late = node("late", {{"host", "late"}});
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(cluster->put_node(late).ok());
    EXPECT_EQ(requested(*cluster, "late"), 1000);
    EXPECT_THAT(rig::verdicts(*cluster, next)[1], HasSubstr("anti-affinity"));
    next.ports = early.ports;
    EXPECT_THAT(rig::verdicts(*cluster, next)[1], HasSubstr("free ports"));
    next.ports.clear();
    ASSERT_TRUE(cluster->remove_node("late").ok());
    EXPECT_EQ(cluster->find_node("late"), nullptr);
    EXPECT_EQ(cluster->pods_on("late").size(), 1u);
  }
  ASSERT_TRUE(cluster->remove_pod("n/1").ok());
  ASSERT_TRUE(cluster->put_node(late).ok());
  EXPECT_EQ(requested(*cluster, "late"), 0);
  EXPECT_EQ(rig::verdicts(*cluster, next)[1], "Success");
}

TEST(Cluster, NodesChangeWhileDecisionsRun) {
  const auto cluster = rig::cluster({node("a", {{"zone", "1"}}), node("b", {{"zone", "2"}})},
                                    {pod("n/1", {{"app", "1"}}, "a")});
  KubernetesPod near = pod("n/2");
  near.affinity.required = {rig::term("zone", selector("app", "1"))};
  near.node_selector["disk"] = "ssd";
  EXPECT_EQ(decided(cluster.get(), near, false), "");
  ASSERT_TRUE(cluster->put_node(node("b", {{"zone", "1"}, {"disk", "ssd"}})).ok());
  EXPECT_EQ(decided(cluster.get(), near, false), "b");
  ASSERT_TRUE(cluster->put_node(node("a", {{"zone", "3"}})).ok());
  EXPECT_EQ(decided(cluster.get(), near, false), "");
  ASSERT_TRUE(cluster->put_node(node("a", {{"zone", "1"}})).ok());
  KubernetesNode cordoned = node("b", {{"zone", "1"}, {"disk", "ssd"}});
  cordoned.unschedulable = true;
  ASSERT_TRUE(cluster->put_node(cordoned).ok());
  EXPECT_EQ(decided(cluster.get(), near, false), "");
  cordoned.unschedulable = false;
  cordoned.allocatable["pods"] = 0;
  ASSERT_TRUE(cluster->put_node(cordoned).ok());
  EXPECT_EQ(decided(cluster.get(), near, false), "");
}

TEST(Cluster, GrowsWithItsNodesResourcesAndColumns) {
  const auto cluster = rig::cluster({});
  for (int i = 0; i < 200; ++i) {
    KubernetesNode one = node("n" + std::to_string(1000 + i), {{"host", std::to_string(i)}});
    one.allocatable["example.com/x"] = i == 150 ? 3 : 0;
    ASSERT_TRUE(cluster->put_node(one).ok());
    KubernetesPod placed = asks("n/" + std::to_string(i), 10 + i, {{"app", std::to_string(i)}});
    placed.node_name = one.facts.name;
    ASSERT_TRUE(cluster->put_pod(placed).ok());
  }
  EXPECT_GE(cluster->table().header().capacity, 200u);
  EXPECT_EQ(cluster->node_names().front(), "n1000");
  EXPECT_EQ(requested(*cluster, "n1150"), 160);
  KubernetesPod extended = asks("n/e", 10);
  extended.request["example.com/x"] = extended.scored_request["example.com/x"] = 2;
  EXPECT_EQ(decided(cluster.get(), extended), "n1150");
  EXPECT_EQ(requested(*cluster, "n1150"), 170);
  extended.name = "n/f";
  EXPECT_EQ(decided(cluster.get(), extended), "");
  // Each wants a column of its own, and there are 64 to begin with.
  for (int i = 0; i < 200; ++i) {
    KubernetesPod shuns = pod("n/s" + std::to_string(i));
    shuns.anti_affinity.required = {rig::term("host", selector("app", std::to_string(i)))};
    ASSERT_EQ(rig::verdicts(*cluster, shuns)[static_cast<std::size_t>(i)],
              "Unschedulable: node(s) didn't match pod anti-affinity rules");
  }
  EXPECT_GT(cluster->table().header().n_counts, 64u);
}

TEST(Cluster, ManyPortsAndManyReactions) {
  const auto cluster = rig::cluster({node("a", {{"host", "a"}}), node("b", {{"host", "b"}})});
  KubernetesPod many = pod("n/1", {{"app", "1"}});
  for (int i = 0; i < 12; ++i) many.ports.push_back({"0.0.0.0", "TCP", 8000 + i});
  EXPECT_EQ(decided(cluster.get(), many), "a");
  many.name = "n/2";
  EXPECT_EQ(decided(cluster.get(), many), "b");
  many.name = "n/3";
  const auto none = cluster->decide(many, true);
  ASSERT_TRUE(none.ok());
  EXPECT_EQ(none.value().reason,
            "0/2 nodes are available: 2 node(s) didn't have free ports for the requested pod "
            "ports.");
  ASSERT_TRUE(cluster->remove_pod("n/1").ok());
  EXPECT_EQ(decided(cluster.get(), many, false), "a");
  // Twenty columns that count pods with "app": more than a record's raises.
  for (int i = 0; i < 20; ++i) {
    KubernetesPod shuns = pod("n/s" + std::to_string(i));
    LabelSelector picks;
    picks.present = true;
    picks.expressions = {{"app", "NotIn", {"x" + std::to_string(i)}}, {"app", "Exists", {}}};
    shuns.anti_affinity.required = {rig::term("host", picks)};
    EXPECT_EQ(decided(cluster.get(), shuns, false), "a");
  }
  EXPECT_EQ(decided(cluster.get(), pod("n/4", {{"app", "2"}})), "a");
  for (int i = 0; i < 20; ++i) {
    KubernetesPod shuns = pod("n/s" + std::to_string(i));
    LabelSelector picks;
    picks.present = true;
    picks.expressions = {{"app", "NotIn", {"x" + std::to_string(i)}}, {"app", "Exists", {}}};
    shuns.anti_affinity.required = {rig::term("host", picks)};
    EXPECT_EQ(decided(cluster.get(), shuns, false), "") << i;
  }
}

TEST(Cluster, TasksMayBeCommittedFromOutside) {
  const auto cluster = rig::cluster({node("a"), node("b")});
  KubernetesPod wants = asks("n/1", 1000);
  wants.ports = {{"0.0.0.0", "TCP", 80}};
  auto task = cluster->make_task(wants);
  const auto program = cluster->make_program();
  ASSERT_TRUE(task.ok() && program.ok());
  const std::uint64_t version = cluster->version();
  penstock_result result{};
  ASSERT_TRUE(cluster->table()
                  .select(program.value().record, {&task.value().record, 1}, false, &result)
                  .ok());
  ASSERT_EQ(scalar_commit(cluster->table().view(), task.value().record, 1, 0), PENSTOCK_OK);
  ASSERT_TRUE(cluster->assume_committed(wants, 1).ok());
  EXPECT_EQ(cluster->version(), version);
  EXPECT_EQ(cluster->find_pod("n/1")->node_name, "b");
  ASSERT_TRUE(cluster->remove_pod("n/1").ok());
  EXPECT_EQ(requested(*cluster, "b"), 0);
  EXPECT_EQ(decided(cluster.get(), wants, false), "a");
  ASSERT_TRUE(cluster->put_node(node("c")).ok());
  EXPECT_NE(cluster->version(), version);
}

class PooledCluster : public testing::Test {
 protected:
  void SetUp() override {
    PoolConfig config;
    config.spec =
        testing::TempDir() + "penstock_cluster_" + std::to_string(Platform::host().self().pid);
    config.bytes_per_device = std::uint64_t{16} << 20;
    spec_ = config.spec;
    ASSERT_TRUE(Pool::create(Platform::host(), config).ok());
    auto pool = Pool::map(Platform::host(), spec_);
    ASSERT_TRUE(pool.ok()) << pool.status().to_string();
    pool_ = std::move(pool).value();
  }
  void TearDown() override {
    pool_.reset();
    EXPECT_TRUE(Pool::destroy(Platform::host(), spec_, true).ok());
  }
  std::string spec_;
  std::unique_ptr<Pool> pool_;
};

TEST_F(PooledCluster, OthersFindItsTableByName) {
  ClusterConfig config;
  config.pool = pool_.get();
  config.table_name = "cluster";
  config.capacity = 64;
  config.engine = make_engine("scalar").value();
  auto cluster = Cluster::create(config);
  ASSERT_TRUE(cluster.ok()) << cluster.status().to_string();
  for (int i = 0; i < 100; ++i) {  // more than it was made for
    const std::string name = "n" + std::to_string(100 + i);
    ASSERT_TRUE(cluster.value()->put_node(node(name, {{"zone", std::to_string(i % 3)}})).ok());
  }
  KubernetesPod wants = pod("n/1", {{"app", "1"}});
  wants.anti_affinity.required = {rig::term("zone", selector("app", "1"))};
  ASSERT_EQ(decided(cluster.value().get(), wants), "n100");
  ASSERT_TRUE(cluster.value()->table().save().ok());
  const auto opened = NodeTable::open(*pool_, make_engine("scalar").value(), "cluster");
  ASSERT_TRUE(opened.ok()) << opened.status().to_string();
  const Catalogue& names = opened.value()->catalogue();
  EXPECT_EQ(names.node_count(), 100u);
  EXPECT_EQ(names.domain_column(0).key, "=zone");
  EXPECT_EQ(names.domain_cell(0, 4), 1);
  EXPECT_EQ(names.domains_in_use(0), 3u);
  const TableView cells = opened.value()->view();
  const std::int32_t* counts = cells.count_column(0);
  EXPECT_THAT(std::vector<std::int32_t>(counts, counts + 3), ElementsAre(1, 0, 0));
  EXPECT_THAT(names.count_column(0).key, HasSubstr("pods picked by"));
  cluster.value().reset();
  EXPECT_TRUE(NodeTable::destroy(*pool_, "cluster").ok());
  EXPECT_TRUE(pool_->regions().empty());
}

TEST(Cluster, WhatIsWrongIsRefusedBeforeAnythingChanges) {
  const auto cluster = rig::cluster({node("a")});
  KubernetesNode bad = node("b");
  bad.allocatable["cpu"] = -1;
  EXPECT_EQ(cluster->put_node(bad).code(), Code::out_of_range);
  EXPECT_EQ(cluster->put_node(node("")).code(), Code::invalid_argument);
  EXPECT_EQ(cluster->put_pod(pod("nameless")).code(), Code::invalid_argument);
  KubernetesPod absurd = pod("n/1", {}, "a");
  absurd.request["memory"] = PENSTOCK_MAX_REQUEST;
  ASSERT_TRUE(cluster->put_pod(absurd).ok());
  absurd.name = "n/2";
  EXPECT_EQ(cluster->put_pod(absurd).code(), Code::out_of_range);  // the sum is no cell's
  EXPECT_EQ(cluster->pods_on("a").size(), 1u);
  absurd.request["memory"] = PENSTOCK_MAX_REQUEST + 1;
  EXPECT_THAT(cluster->put_pod(absurd).message(), HasSubstr("pod n/2 asks for 9007199254740993"));
  EXPECT_EQ(cluster->decide(pod("n/3"), false, 9).status().code(), Code::invalid_argument);
  KubernetesPod exotic = pod("n/4");
  for (int i = 0; i < 16; ++i) exotic.request["example.com/" + std::to_string(i)] = 1;
  EXPECT_EQ(cluster->decide(exotic, true).status().code(), Code::unsupported);
}

}  // namespace
}  // namespace penstock
