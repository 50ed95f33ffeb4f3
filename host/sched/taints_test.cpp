#include "penstock/sched/taints.h"

#include <gtest/gtest.h>

namespace penstock {
namespace {

// Inputs and verdicts of kube-scheduler's own tests.
TEST(Taints, TolerationsAgreeWithKubeScheduler) {
  const Taint foo_bar{"foo", "bar", "NoSchedule"};
  const struct {
    Toleration toleration;
    Taint taint;
    bool expected;
  } cases[] = {
      {{"dedicated", "Equal", "user1", "NoSchedule"}, {"dedicated", "user1", "NoSchedule"}, true},
      {{"dedicated", "Equal", "user2", "NoSchedule"}, {"dedicated", "user1", "NoSchedule"}, false},
      {{"foo", "Exists", "", "NoSchedule"}, foo_bar, true},
      {{"foo", "Equal", "bar", "PreferNoSchedule"}, foo_bar, false},
      {{"foo", "Equal", "bar", ""}, foo_bar, true},
      {{"", "Exists", "", ""}, foo_bar, true},
      {{"", "Exists", "", "NoExecute"}, foo_bar, false},
      {{"", "Equal", "bar", ""}, foo_bar, true},
      {{"sla", "Gt", "750", "NoSchedule"}, {"sla", "950", "NoSchedule"}, false},
      {{"sla", "Lt", "950", "NoSchedule"}, {"sla", "800", "NoSchedule"}, false},
      // With the gate that they are behind.
      {{"sla", "Gt", "750", "NoSchedule", true}, {"sla", "950", "NoSchedule"}, true},
      {{"sla", "Gt", "950", "NoSchedule", true}, {"sla", "950", "NoSchedule"}, false},
      {{"sla", "Lt", "950", "NoSchedule", true}, {"sla", "-800", "NoSchedule"}, true},
      {{"sla", "Lt", "950", "NoSchedule", true}, {"sla", "951", "NoSchedule"}, false},
      {{"sla", "Gt", "7.5", "NoSchedule", true}, {"sla", "950", "NoSchedule"}, false},
      {{"sla", "Gt", "750", "NoSchedule", true}, {"sla", "high", "NoSchedule"}, false},
      {{"sla", "Gt", "750", "NoSchedule", true}, {"sla", "", "NoSchedule"}, false},
      {{"other", "Gt", "750", "NoSchedule", true}, {"sla", "950", "NoSchedule"}, false},
  };
  for (const auto& c : cases) {
    EXPECT_EQ(tolerates(c.toleration, c.taint), c.expected)
        << c.toleration.key << " " << c.toleration.operation << " " << taint_text(c.taint);
  }
}

TEST(Taints, OnlyHardOnesFilter) {
  const std::vector<Taint> taints = {
      {"a", "1", "PreferNoSchedule"}, {"b", "2", "NoSchedule"}, {"c", "3", "NoExecute"}};
  ASSERT_NE(find_untolerated(taints, {}), nullptr);
  EXPECT_EQ(find_untolerated(taints, {})->key, "b");
  EXPECT_EQ(find_untolerated(taints, {{"b", "Exists", "", ""}})->key, "c");
  EXPECT_EQ(find_untolerated(taints, {{"b", "Exists", "", ""}, {"c", "Equal", "3", ""}}), nullptr);
}

TEST(Taints, OnlySoftOnesScore) {
  const std::vector<Taint> taints = {{"cpu-type", "arm64", "PreferNoSchedule"},
                                     {"disk-type", "ssd", "PreferNoSchedule"},
                                     {"hard", "", "NoSchedule"}};
  EXPECT_EQ(count_untolerated_preferred(taints, {}), 2u);
  EXPECT_EQ(count_untolerated_preferred(taints, {{"cpu-type", "Equal", "arm64", ""}}), 1u);
  EXPECT_EQ(count_untolerated_preferred(taints, {{"cpu-type", "Equal", "arm64", "NoSchedule"}}),
            2u);
}

TEST(Taints, ACordonIsATaintOfItsOwn) {
  EXPECT_FALSE(tolerates_unschedulable({}));
  EXPECT_TRUE(tolerates_unschedulable({{"node.kubernetes.io/unschedulable", "Exists", "", ""}}));
  EXPECT_TRUE(tolerates_unschedulable({{"", "Exists", "", ""}}));
}

TEST(Taints, Text) {
  EXPECT_EQ(taint_text({"k", "v", "NoSchedule"}), "k=v:NoSchedule");
  EXPECT_EQ(taint_text({"k", "", "NoExecute"}), "k:NoExecute");
}

}  // namespace
}  // namespace penstock
