// Small clusters for tests.
#ifndef PENSTOCK_SCHED_CLUSTER_RIG_TEST_H_
#define PENSTOCK_SCHED_CLUSTER_RIG_TEST_H_

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "penstock/sched/cluster.h"

namespace penstock::rig {

inline KubernetesNode node(const std::string& name,
                           std::map<std::string, std::string> labels = {}) {
  KubernetesNode out;
  out.facts.name = name;
  out.facts.labels = std::move(labels);
  out.allocatable = {{"cpu", 4000}, {"memory", std::int64_t{16} << 30}, {"pods", 110}};
  return out;
}

// `name` is namespace/name.
inline KubernetesPod pod(const std::string& name, std::map<std::string, std::string> labels = {},
                         const std::string& on = "") {
  KubernetesPod out;
  out.name = name;
  out.namespace_name = name.substr(0, name.find('/'));
  out.labels = std::move(labels);
  out.node_name = on;
  return out;
}

// Picks pods whose label has the value.
inline LabelSelector selector(const std::string& key, const std::string& value) {
  LabelSelector out;
  out.present = true;
  out.labels[key] = value;
  return out;
}

inline SpreadConstraint spread(const std::string& topology, std::int32_t max_skew, bool required,
                               LabelSelector picks) {
  SpreadConstraint out;
  out.topology_key = topology;
  out.max_skew = max_skew;
  out.required = required;
  out.selector = std::move(picks);
  return out;
}

inline PodAffinityTerm term(const std::string& topology, LabelSelector picks) {
  PodAffinityTerm out;
  out.topology_key = topology;
  out.selector = std::move(picks);
  return out;
}

inline std::unique_ptr<Cluster> cluster(
    const std::vector<KubernetesNode>& nodes, const std::vector<KubernetesPod>& pods = {},
    const SchedulerProfile& profile = SchedulerProfile::defaults(),
    const std::string& engine = "scalar", ClusterConfig config = {}) {
  config.profile = profile;
  config.capacity = 1;
  auto chosen = make_engine(engine);
  EXPECT_TRUE(chosen.ok()) << chosen.status().to_string();
  config.engine = std::move(chosen).value();
  auto made = Cluster::create(config);
  EXPECT_TRUE(made.ok()) << made.status().to_string();
  for (const KubernetesNode& one : nodes) {
    const Status status = made.value()->put_node(one);
    EXPECT_TRUE(status.ok()) << status.to_string();
  }
  for (const KubernetesPod& one : pods) {
    const Status status = made.value()->put_pod(one);
    EXPECT_TRUE(status.ok()) << status.to_string();
  }
  return std::move(made).value();
}

// "Success", or "CODE: REASON" of each node in the order of the rows.
inline std::vector<std::string> verdicts(Cluster& of, const KubernetesPod& pod) {
  std::vector<std::string> out;
  const auto nodes = of.filter(pod);
  EXPECT_TRUE(nodes.ok()) << nodes.status().to_string();
  if (!nodes.ok()) return out;
  for (const NodeVerdict& verdict : nodes.value()) {
    std::string text = verdict.code;
    for (const std::string& reason : verdict.reasons) text += ": " + reason;
    out.push_back(text);
  }
  return out;
}

inline PluginScores scores(Cluster& of, const KubernetesPod& pod, const std::string& plugin,
                           const std::vector<std::string>& nodes = {}) {
  const auto all = of.score(pod, nodes.empty() ? of.node_names() : nodes);
  EXPECT_TRUE(all.ok()) << all.status().to_string();
  if (!all.ok()) return {};
  for (const PluginScores& one : all.value()) {
    if (one.plugin == plugin) return one;
  }
  ADD_FAILURE() << "no scores of " << plugin;
  return {};
}

}  // namespace penstock::rig
#endif
