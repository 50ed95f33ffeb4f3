#include "penstock/sched/node_affinity.h"

#include <gtest/gtest.h>

namespace penstock {
namespace {

NodeFacts node_with(std::map<std::string, std::string> labels, std::string name = "node1") {
  NodeFacts facts;
  facts.name = std::move(name);
  facts.labels = std::move(labels);
  return facts;
}

// Inputs and verdicts of kube-scheduler's own tests.
TEST(NodeAffinity, OperatorsAgreeWithKubeScheduler) {
  const struct {
    const char* what;
    std::vector<Requirement> all;
    std::map<std::string, std::string> labels;
    bool expected;
  } cases[] = {
      {"In", {{"foo", "In", {"bar", "value2"}}}, {{"foo", "bar"}}, true},
      {"In, none of the values", {{"foo", "In", {"value1", "value2"}}}, {{"foo", "bar"}}, false},
      {"In, no label", {{"foo", "In", {"bar"}}}, {}, false},
      {"Gt in base 10", {{"kernel-version", "Gt", {"0204"}}}, {{"kernel-version", "0206"}}, true},
      {"Gt is strict", {{"v", "Gt", {"5"}}}, {{"v", "5"}}, false},
      {"Gt of a negative", {{"v", "Gt", {"-5"}}}, {{"v", "-4"}}, false},
      {"Lt", {{"v", "Lt", {"5"}}}, {{"v", "4"}}, true},
      {"Lt is strict", {{"v", "Lt", {"5"}}}, {{"v", "5"}}, false},
      {"Lt of no number", {{"v", "Lt", {"5"}}}, {{"v", "4.5"}}, false},
      {"Gt beyond 64 bits", {{"v", "Gt", {"5"}}}, {{"v", "9223372036854775808"}}, false},
      {"Gt with two values", {{"v", "Gt", {"1", "2"}}}, {{"v", "4"}}, false},
      {"NotIn", {{"mem-type", "NotIn", {"DDR", "DDR2"}}}, {{"mem-type", "DDR3"}}, true},
      {"NotIn without the label", {{"mem-type", "NotIn", {"DDR"}}}, {}, true},
      {"NotIn hit", {{"mem-type", "NotIn", {"DDR"}}}, {{"mem-type", "DDR"}}, false},
      {"Exists", {{"GPU", "Exists", {}}}, {{"GPU", "x"}}, true},
      {"Exists with a value", {{"GPU", "Exists", {"x"}}}, {{"GPU", "x"}}, false},
      {"DoesNotExist", {{"GPU", "DoesNotExist", {}}}, {{"CPU", "x"}}, true},
      {"DoesNotExist, does", {{"GPU", "DoesNotExist", {}}}, {{"GPU", "x"}}, false},
      {"both hold",
       {{"GPU", "Exists", {}}, {"GPU", "NotIn", {"AMD", "INTER"}}},
       {{"GPU", "NVIDIA-GRID-K1"}},
       true},
      {"one does not",
       {{"GPU", "Exists", {}}, {"GPU", "In", {"AMD", "INTER"}}},
       {{"GPU", "NVIDIA-GRID-K1"}},
       false},
      {"a value that no label has", {{"foo", "NotIn", {"invalid value: ___@#$%^"}}}, {}, false},
      {"a key that no label has", {{"-foo", "DoesNotExist", {}}}, {}, false},
      {"In without values", {{"foo", "In", {}}}, {{"foo", "bar"}}, false},
      {"empty term", {}, {{"foo", "bar"}}, false},
  };
  for (const auto& c : cases) {
    EXPECT_EQ(matches(SelectorTerm{c.all, {}}, node_with(c.labels)), c.expected) << c.what;
  }
}

TEST(NodeAffinity, FieldsNameTheNode) {
  const SelectorTerm node1{{}, {{"metadata.name", "In", {"node1"}}}};
  EXPECT_TRUE(matches(node1, node_with({}, "node1")));
  EXPECT_FALSE(matches(node1, node_with({}, "node2")));
  EXPECT_TRUE(matches({{}, {{"metadata.name", "NotIn", {"node1"}}}}, node_with({}, "node2")));
  EXPECT_FALSE(matches({{}, {{"metadata.name", "In", {"node1", "node2"}}}}, node_with({})));
  EXPECT_FALSE(matches({{}, {{"metadata.uid", "In", {"node1"}}}}, node_with({})));
  const SelectorTerm both{{{"foo", "In", {"bar"}}}, {{"metadata.name", "In", {"node1"}}}};
  EXPECT_TRUE(matches(both, node_with({{"foo", "bar"}}, "node1")));
  EXPECT_FALSE(matches(both, node_with({{"foo", "bar"}}, "node2")));
}

TEST(NodeAffinity, SelectorAndOneOfTheTerms) {
  KubernetesPod pod;
  pod.node_selector = {{"foo", "bar"}};
  EXPECT_FALSE(matches_required(pod, node_with({})));
  EXPECT_TRUE(matches_required(pod, node_with({{"foo", "bar"}, {"baz", "blah"}})));
  pod.has_required = true;
  EXPECT_FALSE(matches_required(pod, node_with({{"foo", "bar"}})));  // no term, nothing matches
  pod.required = {{{{"zone", "In", {"a"}}}, {}}, {{{"zone", "In", {"b"}}}, {}}};
  EXPECT_TRUE(matches_required(pod, node_with({{"foo", "bar"}, {"zone", "b"}})));
  EXPECT_FALSE(matches_required(pod, node_with({{"foo", "bar"}, {"zone", "c"}})));
  EXPECT_FALSE(matches_required(pod, node_with({{"foo", "barrrrrr"}, {"zone", "b"}})));
}

TEST(NodeAffinity, PreferredWeightsAddUp) {
  const std::vector<PreferredTerm> terms = {
      {2, {{{"foo", "In", {"bar"}}}, {}}},
      {4, {{{"key", "In", {"value"}}}, {}}},
      {5, {{{"foo", "In", {"bar"}}, {"key", "In", {"value"}}, {"az", "In", {"az1"}}}, {}}}};
  EXPECT_EQ(preferred_weight(terms, node_with({{"foo", "bar"}})), 2);
  EXPECT_EQ(preferred_weight(terms, node_with({{"foo", "bar"}, {"key", "value"}, {"az", "az1"}})),
            11);
  EXPECT_EQ(preferred_weight(terms, node_with({{"key", "value"}})), 4);
}

TEST(NodeAffinity, KnowsLabels) {
  for (const char* good : {"a", "A-b_c.9", "example.com/x", "a.b-c.d/E", "0"}) {
    EXPECT_TRUE(is_label_key(good)) << good;
  }
  for (const char* bad : {"", "-a", "a-", "a b", "/x", "x/", "Ex.com/x", "a..b/x", "-a.b/x",
                          "a.-b/x", "a-.b/x", "a/b/c"}) {
    EXPECT_FALSE(is_label_key(bad)) << bad;
  }
  EXPECT_TRUE(is_label_value(""));
  EXPECT_TRUE(is_label_value(std::string(63, 'a')));
  EXPECT_FALSE(is_label_value(std::string(64, 'a')));
  EXPECT_FALSE(is_label_value("a."));
}

}  // namespace
}  // namespace penstock
