#include "penstock/serve/pod_queue.h"

#include <gtest/gtest.h>

#include <string>

#include "penstock/base/forwarding_platform_test.h"

namespace penstock {
namespace {

constexpr std::uint64_t kMs = 1000000;

class Clock final : public ForwardingPlatform {
 public:
  std::uint64_t now_ns() override { return now; }
  std::uint64_t now = std::uint64_t{1000} * 1000 * kMs;
};

KubernetesPod pod(const std::string& name, std::int32_t priority = 0, std::int64_t created = 0) {
  KubernetesPod out;
  out.name = "default/" + name;
  out.uid = "uid-" + name;
  out.priority = priority;
  out.creation_time_s = created;
  return out;
}

std::string next(PodQueue& queue) {
  const auto taken = queue.take(0);
  return taken ? taken->name.substr(8) : "-";
}

struct Rig {
  Clock clock;
  PodQueue queue{clock, {1000, 10000, 300000}};
  void pass(std::uint64_t ms) { clock.now += ms * kMs; }
};

TEST(PodQueue, ByPriorityThenAgeThenArrival) {
  Rig rig;
  for (const auto& one : {pod("late", 0, 9), pod("old", 0, 5), pod("second", 0, 7),
                          pod("third", 0, 7), pod("urgent", 100, 9)}) {
    rig.queue.put(one);
  }
  std::string order;
  for (int i = 0; i < 6; ++i) order += next(rig.queue) + " ";
  EXPECT_EQ(order, "urgent old second third late - ");
}

TEST(PodQueue, BackOffDoublesUpToItsBound) {
  Rig rig;
  rig.queue.put(pod("a"));
  for (const std::uint64_t ms : {1000, 2000, 4000, 8000, 10000, 10000}) {
    ASSERT_EQ(next(rig.queue), "a");
    rig.queue.retry("default/a", false);
    rig.pass(ms - 1);
    EXPECT_EQ(next(rig.queue), "-") << ms;
    rig.pass(1);
  }
}

TEST(PodQueue, OneThatFitsNowhereWaitsForAChange) {
  Rig rig;
  rig.queue.put(pod("a"));
  ASSERT_EQ(next(rig.queue), "a");
  rig.queue.retry("default/a", true);
  rig.pass(60000);
  EXPECT_EQ(next(rig.queue), "-");
  rig.queue.wake(true);  // it doesn't look at other pods
  EXPECT_EQ(next(rig.queue), "-");
  rig.queue.wake(false);
  EXPECT_EQ(next(rig.queue), "a");
  rig.queue.retry("default/a", true);
  rig.queue.wake(false);  // within its back-off, of 2 seconds by now
  rig.pass(1999);
  EXPECT_EQ(next(rig.queue), "-");
  rig.pass(1);
  EXPECT_EQ(next(rig.queue), "a");
  rig.queue.retry("default/a", true);
  rig.pass(299999);
  EXPECT_EQ(next(rig.queue), "-");
  rig.pass(1);
  EXPECT_EQ(next(rig.queue), "a") << "after five minutes without any change";
}

TEST(PodQueue, AnotherPodMatters) {
  Rig rig;
  KubernetesPod friendly = pod("a");
  friendly.affinity.required.emplace_back();
  rig.queue.put(friendly);
  ASSERT_EQ(next(rig.queue), "a");
  rig.queue.retry("default/a", true);
  rig.pass(5000);
  rig.queue.wake(true);
  EXPECT_EQ(next(rig.queue), "a");
}

TEST(PodQueue, AChangeDuringTheDecisionIsNotMissed) {
  Rig rig;
  rig.queue.put(pod("a"));
  ASSERT_EQ(next(rig.queue), "a");
  rig.queue.wake(false);
  rig.queue.retry("default/a", true);
  rig.pass(1000);
  EXPECT_EQ(next(rig.queue), "a");
  // The pod itself: another try at once.
  KubernetesPod changed = pod("a");
  changed.request["cpu"] = 5;
  rig.queue.put(changed);
  rig.queue.retry("default/a", true);
  const auto taken = rig.queue.take(0);
  ASSERT_TRUE(taken.has_value());
  EXPECT_EQ(taken->request.at("cpu"), 5);
}

TEST(PodQueue, WhatIsSettledIsNotTakenAgain) {
  Rig rig;
  rig.queue.put(pod("a"));
  rig.queue.put(pod("b"));
  ASSERT_EQ(next(rig.queue), "a");
  rig.queue.remove("default/a");
  rig.queue.retry("default/a", false);
  ASSERT_EQ(next(rig.queue), "b");
  rig.queue.done("default/b", "uid-b");
  rig.pass(400000);
  EXPECT_EQ(next(rig.queue), "-");
  const auto sizes = rig.queue.sizes();
  EXPECT_EQ(sizes.ready + sizes.backing_off + sizes.unschedulable + sizes.in_work, 0U);
}

TEST(PodQueue, AnotherOfTheSameNameStartsAnew) {
  Rig rig;
  rig.queue.put(pod("a"));
  ASSERT_EQ(next(rig.queue), "a");
  rig.queue.retry("default/a", true);
  KubernetesPod other = pod("a");
  other.uid = "another";
  rig.queue.put(other);
  const auto taken = rig.queue.take(0);
  ASSERT_TRUE(taken.has_value());
  EXPECT_EQ(taken->uid, "another");
}

TEST(PodQueue, AnotherThatCameDuringTheDecisionIsTakenNext) {
  Rig rig;
  rig.queue.put(pod("a"));
  ASSERT_EQ(next(rig.queue), "a");
  KubernetesPod other = pod("a");
  other.uid = "another";
  rig.queue.put(other);
  EXPECT_EQ(next(rig.queue), "-") << "one of a name at a time";
  rig.queue.done("default/a", "uid-a");
  const auto taken = rig.queue.take(0);
  ASSERT_TRUE(taken.has_value());
  EXPECT_EQ(taken->uid, "another");
}

TEST(PodQueue, RestartForgetsBackOffs) {
  Rig rig;
  rig.queue.put(pod("a"));
  rig.queue.put(pod("b"));
  ASSERT_EQ(next(rig.queue), "a");
  rig.queue.retry("default/a", true);
  ASSERT_EQ(next(rig.queue), "b");
  rig.queue.retry("default/b", false);
  rig.queue.restart();
  EXPECT_EQ(rig.queue.sizes().ready, 2U);
}

}  // namespace
}  // namespace penstock
