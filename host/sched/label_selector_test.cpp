#include "penstock/sched/label_selector.h"

#include <gtest/gtest.h>

namespace penstock {
namespace {

LabelSelector of(std::vector<Requirement> expressions, Labels labels = {}) {
  LabelSelector selector;
  selector.present = true;
  selector.expressions = std::move(expressions);
  selector.labels = std::move(labels);
  return selector;
}

TEST(LabelSelector, OperatorsAgreeWithKubernetes) {
  const struct {
    LabelSelector selector;
    Labels labels;
    bool expected;
  } cases[] = {
      {{}, {}, false},  // absent
      {{}, {{"a", "1"}}, false},
      {of({}), {}, true},
      {of({}, {{"a", "1"}}), {{"a", "1"}, {"b", "2"}}, true},
      {of({}, {{"a", "1"}}), {{"a", "2"}}, false},
      {of({}, {{"a", ""}}), {}, false},  // an empty value is a value
      {of({{"a", "In", {"1", "2"}}}), {{"a", "2"}}, true},
      {of({{"a", "In", {"1", "2"}}}), {{"a", "3"}}, false},
      {of({{"a", "In", {"1"}}}), {}, false},
      {of({{"a", "NotIn", {"1"}}}), {{"a", "1"}}, false},
      {of({{"a", "NotIn", {"1"}}}), {{"a", "2"}}, true},
      {of({{"a", "NotIn", {"1"}}}), {}, true},
      {of({{"a", "Exists", {}}}), {{"a", ""}}, true},
      {of({{"a", "Exists", {}}}), {{"b", ""}}, false},
      {of({{"a", "DoesNotExist", {}}}), {{"b", ""}}, true},
      {of({{"a", "DoesNotExist", {}}}), {{"a", ""}}, false},
      {of({{"a", "Exists", {}}, {"b", "Exists", {}}}), {{"a", ""}}, false},
      {of({{"a", "Gt", {"1"}}}), {{"a", "2"}}, false},  // not of label selectors
  };
  for (const auto& c : cases) {
    EXPECT_EQ(matches(c.selector, c.labels), c.expected) << key_of(c.selector);
  }
}

TEST(LabelSelector, KeysAreThoseOfTheMeaning) {
  const LabelSelector one = of({{"b", "In", {"2", "1", "2"}}, {"a", "Exists", {}}}, {{"c", "3"}});
  const LabelSelector same = of({{"c", "In", {"3"}}, {"a", "Exists", {}}, {"b", "In", {"1", "2"}}});
  EXPECT_EQ(key_of(one), key_of(same));
  EXPECT_NE(key_of(of({})), key_of(LabelSelector()));
  EXPECT_NE(key_of(of({{"a", "In", {"1 2"}}})), key_of(of({{"a", "In", {"1", "2"}}})));
  EXPECT_NE(key_of(of({{"a", "In", {"1"}}})), key_of(of({{"a", "NotIn", {"1"}}})));
}

TEST(LabelSelector, LabelKeysOfThePodNarrowIt) {
  const Labels labels = {{"rev", "7"}, {"app", "x"}};
  const LabelSelector narrowed = with_label_keys(of({}), {"rev", "none"}, {"app"}, labels);
  EXPECT_TRUE(matches(narrowed, {{"rev", "7"}, {"app", "y"}}));
  EXPECT_TRUE(matches(narrowed, {{"rev", "7"}}));
  EXPECT_FALSE(matches(narrowed, {{"rev", "8"}}));
  EXPECT_FALSE(matches(narrowed, labels));
  EXPECT_FALSE(with_label_keys({}, {"rev"}, {}, labels).present);
}

}  // namespace
}  // namespace penstock
