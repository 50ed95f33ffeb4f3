// Random clusters with terms of every kind, changed step by step: a Cluster on each host engine
// against the plain evaluation of plain_scheduler_test.h, and its counts against those of a Cluster
// that is told the end alone. A failure names the seed: PENSTOCK_CLUSTER_SEED runs that one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <random>

#include "penstock/sched/cluster_rig_test.h"
#include "penstock/sched/plain_scheduler_test.h"

namespace penstock {
namespace {

using Labels = std::map<std::string, std::string>;

constexpr const char* kHost = "kubernetes.io/hostname";
constexpr const char* kZone = "topology.kubernetes.io/zone";

class Dice {
 public:
  explicit Dice(std::uint64_t seed) : engine_(seed) {}
  int below(int n) { return static_cast<int>(engine_() % static_cast<std::uint64_t>(n)); }
  bool one_in(int n) { return below(n) == 0; }
  template <typename T>
  T of(std::initializer_list<T> list) {
    return *(list.begin() + below(static_cast<int>(list.size())));
  }

 private:
  std::mt19937_64 engine_;
};

// ---- what a cluster is made of ----

KubernetesNode random_node(Dice& dice, int number) {
  KubernetesNode node = rig::node("node-" + std::to_string(number));
  Labels& labels = node.facts.labels;
  if (!dice.one_in(8)) labels[kHost] = node.facts.name;
  if (!dice.one_in(6)) labels[kZone] = dice.of<const char*>({"z1", "z2", "z3"});
  if (dice.one_in(2)) labels["rack"] = dice.of<const char*>({"1", "2", "3", "7"});
  if (dice.one_in(2)) labels["disk"] = dice.of<const char*>({"ssd", "hdd"});
  if (dice.one_in(5)) node.facts.taints.push_back({"k", "v", "NoSchedule"});
  if (dice.one_in(4)) node.facts.taints.push_back({"soft", "", "PreferNoSchedule"});
  if (dice.one_in(5)) node.facts.taints.push_back({"softer", "x", "PreferNoSchedule"});
  node.unschedulable = dice.one_in(12);
  node.allocatable["cpu"] = 1000 * (1 + dice.below(8));
  node.allocatable["memory"] = (std::int64_t{1} << 30) * (1 + dice.below(16));
  node.allocatable["pods"] = dice.one_in(10) ? 1 : 20;
  for (const char* name : {"a:1", "b:1", "c:1"}) {
    if (dice.one_in(3)) node.images.push_back({{name}, (std::int64_t{50} << 20) * dice.below(40)});
  }
  return node;
}

LabelSelector random_selector(Dice& dice) {
  LabelSelector s;
  if (dice.one_in(12)) return s;  // absent
  s.present = true;
  if (dice.one_in(12)) return s;  // everything
  if (dice.one_in(2)) s.labels["app"] = dice.of<const char*>({"x", "y", "z"});
  if (dice.one_in(3)) {
    s.expressions.push_back({"tier", dice.of<const char*>({"In", "NotIn"}), {"web", "db"}});
  }
  if (dice.one_in(4)) {
    s.expressions.push_back({"tier", dice.of<const char*>({"Exists", "DoesNotExist"}), {}});
  }
  if (s.labels.empty() && s.expressions.empty()) s.labels["app"] = "x";
  return s;
}

PodAffinityTerm random_term(Dice& dice) {
  PodAffinityTerm term =
      rig::term(dice.of<const char*>({kHost, kZone, "rack"}), random_selector(dice));
  if (dice.one_in(4)) term.namespaces = {dice.of<const char*>({"a", "b", "nowhere"})};
  if (dice.one_in(5)) {
    term.namespace_selector.present = true;
    if (dice.one_in(2)) term.namespace_selector.labels["team"] = dice.of<const char*>({"1", "2"});
    if (dice.one_in(4)) term.namespace_selector.expressions = {{"team", "DoesNotExist", {}}};
  }
  if (dice.one_in(6)) term.match_label_keys = {"tier"};
  if (dice.one_in(8)) term.mismatch_label_keys = {"app"};
  return term;
}

SpreadConstraint random_spread(Dice& dice) {
  SpreadConstraint c = rig::spread(dice.of<const char*>({kHost, kZone, "rack"}), 1 + dice.below(3),
                                   dice.one_in(2), random_selector(dice));
  if (c.required && dice.one_in(3)) c.min_domains = 1 + dice.below(4);
  c.honor_node_affinity = !dice.one_in(4);
  c.honor_node_taints = dice.one_in(3);
  if (dice.one_in(5)) c.match_label_keys = {"tier", "none"};
  return c;
}

void add_node_terms(Dice& dice, KubernetesPod* pod) {
  if (dice.one_in(5)) pod->node_selector["disk"] = dice.of<const char*>({"ssd", "hdd"});
  if (dice.one_in(6)) {
    pod->has_required = true;
    pod->required = {{{{"rack", "Lt", {"3"}}}, {}}, {{{"disk", "NotIn", {"hdd"}}}, {}}};
  }
  for (int i = dice.one_in(8) ? 5 + dice.below(4) : dice.below(3); i > 0; --i) {
    pod->preferred.push_back(
        {1 + dice.below(100),
         {{{dice.of<const char*>({"disk", "rack", kZone}), "In", {"ssd", "1", "z2"}}}, {}}});
  }
  if (dice.one_in(3)) pod->tolerations.push_back({"k", "Equal", "v", ""});
  if (dice.one_in(5)) pod->tolerations.push_back({"", "Exists", "", "PreferNoSchedule"});
}

KubernetesPod random_pod(Dice& dice, int number) {
  const std::string space = dice.of<const char*>({"a", "b", "c"});
  KubernetesPod pod = rig::pod(space + "/p" + std::to_string(number));
  pod.labels["app"] = dice.of<const char*>({"x", "y", "z"});
  if (dice.one_in(2)) pod.labels["tier"] = dice.of<const char*>({"web", "db"});
  if (!dice.one_in(4)) pod.request["cpu"] = 100 * dice.below(12);
  if (!dice.one_in(4)) pod.request["memory"] = (std::int64_t{100} << 20) * dice.below(8);
  pod.scored_request = pod.request;
  pod.scored_request.insert({{"cpu", 100}, {"memory", std::int64_t{200} << 20}});
  add_node_terms(dice, &pod);
  if (dice.one_in(6)) {
    pod.ports.push_back({dice.of<const char*>({"0.0.0.0", "10.0.0.1"}), "TCP", 80 + dice.below(2)});
  }
  for (int i = dice.one_in(3) ? 1 + dice.below(3) : 0; i > 0; --i) {
    pod.spread.push_back(random_spread(dice));
  }
  for (int i = dice.one_in(4) ? 1 + dice.below(2) : 0; i > 0; --i) {
    pod.affinity.required.push_back(random_term(dice));
  }
  const int shuns = dice.one_in(25) ? 13 : dice.one_in(4) ? 1 + dice.below(2) : 0;
  for (int i = shuns; i > 0; --i) pod.anti_affinity.required.push_back(random_term(dice));
  const int many = dice.one_in(20) ? 8 : 2;
  for (int i = dice.one_in(3) ? dice.below(many) : 0; i > 0; --i) {
    pod.affinity.preferred.push_back({1 + dice.below(100), random_term(dice)});
  }
  for (int i = dice.one_in(3) ? dice.below(many) : 0; i > 0; --i) {
    pod.anti_affinity.preferred.push_back({1 + dice.below(100), random_term(dice)});
  }
  pod.containers = 1 + static_cast<std::uint32_t>(dice.below(2));
  for (std::uint32_t i = 0; i < pod.containers; ++i) {
    pod.images.push_back(dice.of<const char*>({"a:1", "b:1", "c:1", "d:1"}));
  }
  return pod;
}

// ---- the comparison ----

class Trial {
 public:
  explicit Trial(std::uint64_t seed) : dice_(seed) {
    clusters_.push_back(rig::cluster({}, {}, SchedulerProfile::defaults(), "scalar"));
    // The other begins with few columns, and is made anew again and again.
    ClusterConfig few;
    few.bit_columns = 4;
    few.domain_columns = few.count_columns = 1;
    clusters_.push_back(rig::cluster({}, {}, SchedulerProfile::defaults(), "simd", few));
    for (int i = 1 + dice_.below(10); i > 0; --i) put_node(random_node(dice_, next_++));
    for (int i = dice_.below(12); i > 0; --i) {
      KubernetesPod pod = random_pod(dice_, next_++);
      pod.node_name = any_node();
      pod.terminating = dice_.one_in(8);
      put_pod(pod);
    }
  }

  void run() {
    for (int step = 0; step < 12 && !testing::Test::HasFatalFailure(); ++step) {
      dice_.one_in(3) ? change() : decide();
    }
    if (!testing::Test::HasFatalFailure()) compare_counts();
  }
  // How many count columns were.
  std::uint64_t compared() const { return compared_; }

 private:
  template <typename Act>
  void all(const Act& act) {
    for (auto& cluster : clusters_) {
      const Status status = act(*cluster);
      EXPECT_TRUE(status.ok()) << status.to_string();
    }
  }
  std::string any_node() {
    return dice_.one_in(12) ? "not-there" : "node-" + std::to_string(dice_.below(12));
  }
  void put_node(const KubernetesNode& node) {
    all([&](Cluster& cluster) { return cluster.put_node(node); });
    std::erase_if(world_.nodes,
                  [&](const KubernetesNode& one) { return one.facts.name == node.facts.name; });
    world_.nodes.push_back(node);
  }
  void put_pod(const KubernetesPod& pod) {
    all([&](Cluster& cluster) { return cluster.put_pod(pod); });
    world_.pods[pod.name] = pod;
  }
  void change();
  void decide();
  void compare(Cluster& cluster, const KubernetesPod& pod);
  void compare_counts();

  Dice dice_;
  int next_ = 0;
  std::uint64_t compared_ = 0;
  plain::World world_;
  std::vector<std::unique_ptr<Cluster>> clusters_;
  std::vector<KubernetesPod> asked_;
};

void Trial::change() {
  const std::string space = dice_.of<const char*>({"a", "b", "c"});
  switch (dice_.below(6)) {
    case 0:
      return put_node(random_node(dice_, dice_.below(12)));
    case 1: {
      const std::string name = any_node();
      all([&](Cluster& cluster) { return cluster.remove_node(name); });
      std::erase_if(world_.nodes,
                    [&](const KubernetesNode& one) { return one.facts.name == name; });
      return;
    }
    case 2: {
      if (world_.pods.empty()) return;
      const std::string key =
          std::next(world_.pods.begin(), dice_.below(static_cast<int>(world_.pods.size())))->first;
      all([&](Cluster& cluster) { return cluster.remove_pod(key); });
      world_.pods.erase(key);
      return;
    }
    case 3: {
      const Labels labels = {{"team", dice_.of<const char*>({"1", "2", "3"})}};
      all([&](Cluster& cluster) { return cluster.put_namespace(space, labels); });
      world_.namespaces[space] = labels;
      return;
    }
    case 4: {
      LabelSelector picks;
      picks.present = true;
      picks.labels["app"] = dice_.of<const char*>({"x", "y"});
      const KubernetesOwner service = {"Service", space, "s", picks};
      all([&](Cluster& cluster) { return cluster.put_owner(service); });
      std::erase_if(world_.owners,
                    [&](const KubernetesOwner& one) { return one.namespace_name == space; });
      world_.owners.push_back(service);
      return;
    }
    default: {
      KubernetesPod pod = random_pod(dice_, next_++);
      pod.node_name = any_node();
      return put_pod(pod);
    }
  }
}

void Trial::compare(Cluster& cluster, const KubernetesPod& pod) {
  const auto verdicts = cluster.filter(pod);
  ASSERT_TRUE(verdicts.ok()) << verdicts.status().to_string();
  ASSERT_EQ(verdicts.value().size(), world_.nodes.size());
  std::vector<const KubernetesNode*> feasible;
  std::vector<std::string> names;
  for (const NodeVerdict& verdict : verdicts.value()) {
    const KubernetesNode* node = world_.find(verdict.node);
    ASSERT_NE(node, nullptr) << verdict.node;
    ASSERT_EQ(verdict.plugin, plain::refused_by(world_, pod, *node)) << verdict.node;
    if (!verdict.feasible) continue;
    feasible.push_back(node);
    names.push_back(verdict.node);
  }
  const auto decision = cluster.decide(pod, false, PENSTOCK_MAX_BEST);
  ASSERT_TRUE(decision.ok()) << decision.status().to_string();
  ASSERT_EQ(decision.value().feasible, feasible.size());
  if (feasible.empty()) return;
  const auto scores = cluster.score(pod, names);
  ASSERT_TRUE(scores.ok()) << scores.status().to_string();
  auto expected = plain::scores(world_, pod, feasible);
  std::map<std::string, std::int64_t> totals;
  for (const PluginScores& one : scores.value()) {
    ASSERT_EQ(one.normalised, expected.at(one.plugin)) << one.plugin;
    for (std::size_t i = 0; i < names.size(); ++i) {
      totals[names[i]] += one.weight * expected.at(one.plugin)[i];
    }
  }
  // The set of the best.
  std::int64_t best = INT64_MIN;
  for (const auto& [name, total] : totals) best = std::max(best, total);
  ASSERT_EQ(decision.value().score, best);
  for (const auto& [name, score] : decision.value().best) ASSERT_EQ(score, totals.at(name));
  ASSERT_EQ(decision.value().best.size(), std::min<std::size_t>(8, names.size()));
}

void Trial::decide() {
  const KubernetesPod pod = random_pod(dice_, next_++);
  asked_.push_back(pod);
  for (auto& cluster : clusters_) {
    compare(*cluster, pod);
    if (testing::Test::HasFatalFailure()) return;
  }
  KubernetesPod placed = pod;
  for (auto& cluster : clusters_) {
    const auto decision = cluster->decide(pod, true);
    ASSERT_TRUE(decision.ok()) << decision.status().to_string();
    placed.node_name = decision.value().node;
  }
  if (!placed.node_name.empty()) world_.pods[placed.name] = placed;
}

// A cluster that is told only how things are now counts the same in every domain.
void Trial::compare_counts() {
  std::vector<KubernetesPod> pods;
  for (const auto& [key, pod] : world_.pods) pods.push_back(pod);
  const auto fresh = rig::cluster(world_.nodes, pods);
  for (const auto& [name, labels] : world_.namespaces) {
    ASSERT_TRUE(fresh->put_namespace(name, labels).ok());
  }
  for (const KubernetesOwner& owner : world_.owners) ASSERT_TRUE(fresh->put_owner(owner).ok());
  for (const KubernetesPod& pod : asked_) ASSERT_TRUE(fresh->make_task(pod).ok());
  const auto counts = [](const Cluster& of, std::uint32_t column) {
    std::map<std::string, std::int32_t> out;
    const auto& named = of.catalogue().count_column(column);
    const TableView cells = of.table().view();
    for (const std::string& node : of.node_names()) {
      const auto row = static_cast<std::uint32_t>(of.catalogue().find_node(node));
      const std::int32_t domain = cells.domain_of(named.domain, row);
      out[node] = domain < 0 ? -1 : cells.count_column(column)[domain];
    }
    return out;
  };
  for (auto& cluster : clusters_) {
    for (std::uint32_t i = 0; i < cluster->catalogue().count_columns(); ++i) {
      const std::string& key = cluster->catalogue().count_column(i).key;
      if (!key.starts_with("pods ") && !key.starts_with("nodes ")) continue;
      for (std::uint32_t j = 0; j < fresh->catalogue().count_columns(); ++j) {
        if (fresh->catalogue().count_column(j).key != key) continue;
        ASSERT_EQ(counts(*cluster, i), counts(*fresh, j)) << key;
        ++compared_;
      }
    }
  }
}

TEST(RandomClusters, AgreeWithThePlainFormulas) {
  const char* only = std::getenv("PENSTOCK_CLUSTER_SEED");
  const std::uint64_t first = only != nullptr ? std::strtoull(only, nullptr, 10) : 1;
  const std::uint64_t last = only != nullptr ? first : PENSTOCK_CLUSTERS;
  std::uint64_t compared = 0;
  for (std::uint64_t seed = first; seed <= last; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Trial trial(seed);
    trial.run();
    compared += trial.compared();
    if (HasFatalFailure() || HasNonfatalFailure()) return;
  }
  // Several in each cluster, of which there are two.
  EXPECT_TRUE(only != nullptr || compared > 5 * last) << compared;
}

}  // namespace
}  // namespace penstock
