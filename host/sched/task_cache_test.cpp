#include "penstock/sched/task_cache.h"

#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "penstock/sched/cluster_rig_test.h"

namespace penstock {
namespace {

TEST(TaskCache, KnowsPodsThatAskTheSame) {
  KubernetesPod pod = rig::pod("n/1", {{"app", "1"}});
  pod.request["cpu"] = 100;
  TaskCache cache;
  Task task;
  task.name = "n/1";
  EXPECT_EQ(cache.find(pod, 1), nullptr);
  cache.put(pod, 1, task);
  ASSERT_NE(cache.find(pod, 1), nullptr);
  EXPECT_EQ(cache.find(pod, 1)->name, "n/1");
  EXPECT_EQ(cache.find(pod, 2), nullptr);
  KubernetesPod replica = pod;
  replica.name = "n/2";
  replica.uid = "u";
  replica.priority = 3;
  replica.creation_time_s = 4;
  EXPECT_NE(cache.find(replica, 1), nullptr);
  cache.put(pod, 2, task);
  EXPECT_EQ(cache.find(pod, 1), nullptr);
}

TEST(TaskCache, WhateverATaskIsMadeFromTellsPodsApart) {
  const std::vector<std::function<void(KubernetesPod*)>> changes = {
      [](KubernetesPod* pod) { pod->namespace_name = "m"; },
      [](KubernetesPod* pod) { pod->labels["more"] = ""; },
      [](KubernetesPod* pod) {
        pod->owners.push_back({"apps/v1", "ReplicaSet", "r", true});
      },
      [](KubernetesPod* pod) { pod->node_name = "a"; },
      [](KubernetesPod* pod) { pod->terminating = true; },
      [](KubernetesPod* pod) { pod->request["memory"] = 1; },
      [](KubernetesPod* pod) { pod->scored_request["memory"] = 1; },
      [](KubernetesPod* pod) { pod->node_selector["k"] = "v"; },
      [](KubernetesPod* pod) { pod->has_required = true; },
      [](KubernetesPod* pod) { pod->required.push_back({}); },
      [](KubernetesPod* pod) { pod->preferred.push_back({}); },
      [](KubernetesPod* pod) { pod->tolerations.push_back({}); },
      [](KubernetesPod* pod) {
        pod->ports.push_back({"0.0.0.0", "TCP", 1});
      },
      [](KubernetesPod* pod) { pod->spread.push_back({}); },
      [](KubernetesPod* pod) { pod->affinity.required.push_back({}); },
      [](KubernetesPod* pod) { pod->anti_affinity.preferred.push_back({}); },
      [](KubernetesPod* pod) { pod->images.push_back("i"); },
      [](KubernetesPod* pod) { pod->containers = 7; },
      [](KubernetesPod* pod) { pod->unsupported.push_back("?"); },
  };
  const KubernetesPod pod = rig::pod("n/1", {{"app", "1"}});
  TaskCache cache;
  cache.put(pod, 1, Task());
  for (std::size_t i = 0; i < changes.size(); ++i) {
    KubernetesPod other = pod;
    changes[i](&other);
    EXPECT_EQ(cache.find(other, 1), nullptr) << i;
  }
}

}  // namespace
}  // namespace penstock
