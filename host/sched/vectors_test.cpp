#include "penstock/sched/vectors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "penstock/sched/csv.h"
#include "penstock/sched/vectors_parts.h"

namespace penstock {
namespace {

using testing::HasSubstr;

VectorsOptions on_host_engines(bool compat) {
  VectorsOptions options;
  options.engines = {"scalar", "simd"};
  options.compat = compat;
  return options;
}

std::vector<std::filesystem::path> files_of(const std::string& folder) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".json") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

// Values worked out by hand from kube-scheduler's formulas.
TEST(Vectors, HandMadeOnesPassOnEveryHostEngine) {
  const auto files = files_of(PENSTOCK_VECTORS);
  ASSERT_GE(files.size(), 17u);
  VectorCounts sum;
  for (const auto& file : files) {
    const VectorsOptions options = on_host_engines(true);
    const auto results = run_vectors(file.string(), options);
    ASSERT_TRUE(results.ok()) << results.status().to_string();
    const VectorCounts counts = count_vectors(results.value());
    EXPECT_EQ(counts.passed, counts.cases) << vectors_text(results.value(), options);
    EXPECT_EQ(results.value().size(), 2 * counts.cases);
    sum.cases += counts.cases;
  }
  EXPECT_GE(sum.cases, 45u);
}

// Each expectation is turned into a wrong one, so that a comparison that compares nothing shows.
TEST(Vectors, AWrongExpectationFails) {
  std::uint64_t tried = 0;
  for (const auto& file : files_of(PENSTOCK_VECTORS)) {
    nlohmann::json document = nlohmann::json::parse(*read_file(file.string(), 1 << 20));
    for (auto& test : document["cases"]) {
      nlohmann::json& expect = test["expect"];
      if (expect.contains("status")) expect = {{"scores", nlohmann::json::array()}};
      for (auto& [key, value] : expect.items()) {
        if (key == "scores" && value.is_object()) value["a"] = value["a"].get<int>() + 1;
        if (key == "scores" && value.is_array() && !value.empty())
          value[0] = value[0].get<int>() + 1;
        if (key == "filter") value[0] = value[0] == "Success" ? "Unschedulable" : "Success";
        if (key == "insufficient") value[0]["used"] = value[0]["used"].get<int>() + 1;
        if (key == "reasons" || key == "anyOf" || key == "configError") value[0] = "other";
        if (key == "value") value = value.get<int>() + 1;
        if (key == "name") value = "other";
        if (key == "requests") value["cpu"] = value["cpu"].get<int>() + 1;
      }
      ++tried;
    }
    const auto results = run_vectors(document.dump(), "changed", on_host_engines(true));
    ASSERT_TRUE(results.ok()) << file << results.status().to_string();
    for (const VectorResult& result : results.value()) {
      EXPECT_EQ(result.outcome, VectorOutcome::failed) << result.id << " on " << result.engine;
      EXPECT_THAT(result.detail, HasSubstr("expected"));
    }
  }
  EXPECT_GE(tried, 45u);
}

TEST(Vectors, WithoutCompatWhatItNeedsIsSkipped) {
  const VectorsOptions options = on_host_engines(false);
  for (const auto& [file, skipped] :
       {std::pair("taint_toleration.json", 1u), std::pair("sampling.json", 3u)}) {
    const auto results = run_vectors(std::string(PENSTOCK_VECTORS) + "/" + file, options);
    ASSERT_TRUE(results.ok()) << results.status().to_string();
    const VectorCounts counts = count_vectors(results.value());
    EXPECT_EQ(counts.skipped, skipped) << file;
    EXPECT_EQ(counts.passed, counts.cases - skipped) << file;
    EXPECT_THAT(vectors_text(results.value(), options),
                HasSubstr(fmt::format("{} cases, {} passed, 0 failed, {} skipped (scalar, simd)",
                                      counts.cases, counts.cases - skipped, skipped)));
    EXPECT_THAT(vectors_text(results.value(), options), HasSubstr("--compat"));
  }
}

TEST(Vectors, FailuresAreToldWithBothValues) {
  const char* text = R"({"plugin": "helper.DefaultNormalizeScore", "cases": [
      {"id": "right", "input": {"scores": [1, 2], "maxPriority": 100},
       "expect": {"scores": [50, 100]}},
      {"id": "wrong", "input": {"scores": [1, 2], "maxPriority": 100},
       "expect": {"scores": [51, 100]}}]})";
  const VectorsOptions options = on_host_engines(false);
  const auto results = run_vectors(text, "f.json", options);
  ASSERT_TRUE(results.ok()) << results.status().to_string();
  EXPECT_EQ(vectors_text(results.value(), options),
            "FAILED f.json wrong on scalar: scores: expected [51, 100], found [50, 100]\n"
            "FAILED f.json wrong on simd: scores: expected [51, 100], found [50, 100]\n"
            "2 cases, 1 passed, 1 failed, 0 skipped (scalar, simd)\n");
  const auto json = nlohmann::json::parse(vectors_json(results.value(), options));
  EXPECT_EQ(json["failed"], 1);
  EXPECT_EQ(json["results"].size(), 4u);
  EXPECT_EQ(json["results"][2]["outcome"], "failed");
}

TEST(Vectors, MalformedFilesAreRefusedWithThePath) {
  const struct {
    const char* text;
    const char* message;
  } cases[] = {
      {"", "f.json:1:1: no JSON"},
      {"[]", "f.json: found array, expected an object"},
      {R"({"plugin": "NodePorts"})", "f.json: cases: found nothing"},
      {R"({"plugin": "NodeNames", "cases": []})", "plugin: found \"NodeNames\""},
      {R"({"plugin": "DefaultBinder", "cases": []})", "plugin: found \"DefaultBinder\""},
      {R"({"plugin": "NodePorts", "case": []})",
       "case: there is no such field; did you mean cases"},
      {R"({"plugin": "NodePorts", "count": 2, "cases": []})", "count: found 2, expected 0"},
      {R"({"plugin": "NodePorts", "cases": [{"expect": {}}]})", "cases[0].id: found nothing"},
      {R"({"plugin": "NodePorts", "cases": [{"id": "a"}]})", "cases[0].expect: found nothing"},
      {R"({"plugin": "NodePorts", "cases": [{"id": "a", "expect": {"filter": []}}]})",
       "cases[0].nodes: found nothing, expected at least one node"},
      {R"({"plugin": "NodePorts", "cases": [{"id": "a", "nodes": [{"name": "n", "cpu": 1}],
          "expect": {"filter": []}}]})",
       "cases[0].nodes[0].cpu: there is no such field"},
      {R"({"plugin": "NodePorts", "cases": [{"id": "a", "nodes": [{"name": "n"}],
          "pod": {"containers": [{"requests": {"cpu": 1.5}}]},
          "expect": {"filter": ["Success"]}}]})",
       "cases[0].pod.containers[0].requests.cpu: found 1.5"},
      {R"({"plugin": "NodePorts", "cases": [{"id": "a", "nodes": [{"name": "n"}], "pod": {},
          "expect": {"filter": []}}]})",
       "cases[0].expect.filter: found array, expected a code for every node"},
      {R"({"plugin": "NodePorts", "cases": [{"id": "a", "feature": "skore", "expect": {}}]})",
       "cases[0].feature: found \"skore\""},
      {R"({"plugin": "selectHost", "cases": [{"id": "a", "input": {"scores": [["n"]]},
          "expect": {}}]})",
       "cases[0].input.scores[0]: found array, expected a name and a score"},
      {R"({"plugin": "helper.BuildBrokenLinearFunction", "cases": [{"id": "a",
          "input": {"shape": [[1, 1], [1, 2]], "p": 1}, "expect": {"value": 1}}]})",
       "shape: found array, expected rising"},
  };
  VectorsOptions options;
  options.engines = {"scalar"};
  for (const auto& c : cases) {
    const auto results = run_vectors(c.text, "f.json", options);
    ASSERT_FALSE(results.ok()) << c.text;
    EXPECT_THAT(results.status().message(), HasSubstr(c.message)) << c.text;
  }
  EXPECT_EQ(run_vectors(std::string("/nonexistent/f.json"), options).status().code(),
            Code::not_found);
}

TEST(Vectors, SamplingIsUpstreams) {
  EXPECT_EQ(sampled_nodes(0, 0), 0);
  EXPECT_EQ(sampled_nodes(99, 50), 99);
  EXPECT_EQ(sampled_nodes(100, 0), 100);
  EXPECT_EQ(sampled_nodes(1000, 0), 420);   // 50 - 8 percent
  EXPECT_EQ(sampled_nodes(10000, 0), 500);  // 5 percent at least
  EXPECT_EQ(sampled_nodes(10000, 40), 4000);
}

// A folder of files in the same schema, from elsewhere.
TEST(Vectors, OfAFolderPass) {
  const std::string folder = PENSTOCK_KUBE_VECTORS;
  if (folder.empty()) GTEST_SKIP() << "PENSTOCK_KUBE_VECTORS names no folder";
  const auto files = files_of(folder);
  ASSERT_FALSE(files.empty()) << folder;
  for (const auto& file : files) {
    const VectorsOptions options = on_host_engines(true);
    const auto results = run_vectors(file.string(), options);
    ASSERT_TRUE(results.ok()) << results.status().to_string();
    const VectorCounts counts = count_vectors(results.value());
    EXPECT_EQ(counts.passed, counts.cases) << vectors_text(results.value(), options);
  }
}

}  // namespace
}  // namespace penstock
