#include "penstock/serve/extender_protocol.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace penstock {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(ExtenderProtocol, ArgumentsByName) {
  const auto args = parse_extender_args(R"({
    "Pod": {"metadata": {"name": "web", "namespace": "shop", "uid": "u-1"},
            "spec": {"nodeName": "elsewhere",
                     "containers": [{"resources": {"requests": {"cpu": "250m"}}}]}},
    "NodeNames": ["b", "a"], "Nodes": null})");
  ASSERT_TRUE(args.ok()) << args.status().to_string();
  EXPECT_TRUE(args.value().by_name);
  EXPECT_THAT(args.value().names, ElementsAre("b", "a"));
  EXPECT_EQ(args.value().pod.name, "shop/web");
  EXPECT_EQ(args.value().pod.uid, "u-1");
  EXPECT_EQ(args.value().pod.node_name, "") << "it is asked about because it has none";
  EXPECT_EQ(args.value().pod.request.at("cpu"), 250);
}

TEST(ExtenderProtocol, ArgumentsByNode) {
  const auto args = parse_extender_args(R"({
    "Pod": {"metadata": {"name": "web"}},
    "Nodes": {"items": [{"metadata": {"name": "a"}, "extra": 7}, {"metadata": {"name": "b"}}]}})");
  ASSERT_TRUE(args.ok()) << args.status().to_string();
  EXPECT_FALSE(args.value().by_name);
  EXPECT_THAT(args.value().names, ElementsAre("a", "b"));
  ASSERT_EQ(args.value().nodes.size(), 2U);
  EXPECT_EQ(args.value().nodes[0]["extra"], 7);
  const auto none = parse_extender_args(R"({"Pod": {"metadata": {"name": "a"}}, "Nodes": {}})");
  ASSERT_TRUE(none.ok());
  EXPECT_THAT(none.value().names, IsEmpty());
}

TEST(ExtenderProtocol, ErrorsNameTheField) {
  for (const auto& [body, word] : std::vector<std::pair<std::string, std::string>>{
           {"", "no JSON"},
           {"7", "expected an object"},
           {R"({"NodeNames": []})", "Pod"},
           {R"({"Pod": {"metadata": {"name": "a"}}})", "neither Nodes nor NodeNames"},
           {R"({"Pod": {"metadata": {"name": "a"}}, "NodeNames": ["a", 7]})", "NodeNames[1]"},
           {R"({"Pod": {"metadata": {"name": "a"}}, "Nodes": {"items": [{}, 7]}})", "items[0]"}}) {
    const auto args = parse_extender_args(body);
    ASSERT_FALSE(args.ok()) << body;
    EXPECT_EQ(args.status().code(), Code::invalid_argument) << body;
    EXPECT_THAT(args.status().message(), HasSubstr(word));
  }
}

TEST(ExtenderProtocol, Bindings) {
  const auto args = parse_binding_args(
      R"({"PodName": "web", "PodNamespace": "shop", "PodUID": "u-1", "Node": "n"})");
  ASSERT_TRUE(args.ok());
  EXPECT_EQ(args.value().key, "shop/web");
  EXPECT_EQ(args.value().uid, "u-1");
  EXPECT_EQ(args.value().node, "n");
  EXPECT_FALSE(parse_binding_args(R"({"PodName": "web", "PodNamespace": "shop"})").ok());
  EXPECT_FALSE(
      parse_binding_args(R"({"PodName": "../x", "PodNamespace": "shop", "Node": "n"})").ok());
}

TEST(ExtenderProtocol, VictimsOfEitherForm) {
  const std::string pod = R"("Pod": {"metadata": {"name": "web"}})";
  for (const std::string& victims :
       {std::string(R"("NodeNameToMetaVictims": {"n": {"Pods": [{"UID": "a"}, {"UID": "b"}],
                        "NumPDBViolations": 1}})"),
        std::string(R"("NodeNameToVictims": {"n": {"Pods": [{"metadata": {"uid": "a"}},
                        {"metadata": {"uid": "b"}}], "NumPDBViolations": 1}})")}) {
    const auto args = parse_preemption_args("{" + pod + "," + victims + "}");
    ASSERT_TRUE(args.ok()) << args.status().to_string();
    ASSERT_EQ(args.value().candidates.size(), 1U);
    EXPECT_EQ(args.value().candidates[0].node, "n");
    EXPECT_THAT(args.value().candidates[0].victims, ElementsAre("a", "b"));
    EXPECT_EQ(args.value().candidates[0].violations, 1);
  }
  EXPECT_FALSE(parse_preemption_args("{" + pod + "}").ok());
}

TEST(ExtenderProtocol, ScoresKeepTheOrder) {
  EXPECT_THAT(extender_scores({}), IsEmpty());
  EXPECT_THAT(extender_scores({700, 700}), ElementsAre(10, 10));
  EXPECT_THAT(extender_scores({400, 1200, 800}), ElementsAre(0, 10, 5));
  EXPECT_THAT(extender_scores({0, 1}), ElementsAre(0, 10));
  EXPECT_THAT(extender_scores({-50, 49, 50}), ElementsAre(0, 9, 10));
}

}  // namespace
}  // namespace penstock
