// Cases of functions: what a pod requests, how scores are normalised, who wins.
#include <algorithm>
#include <set>

#include "penstock/sched/node_table.h"
#include "penstock/sched/profile_policy.h"
#include "penstock/sched/scheduler_config_parts.h"
#include "penstock/sched/vectors_parts.h"

namespace penstock {
namespace {

// A table of rows with these scores in a free column, and a program that reads them.
Result<penstock_result> select_by_scores(const std::vector<std::int64_t>& scores,
                                         penstock_normalise normalise, penstock_tie tie,
                                         std::shared_ptr<Engine> engine) {
  NodeTableConfig config;
  config.capacity = static_cast<std::uint32_t>(scores.size());
  config.resources = {{"cpu", "milli"}};
  config.free_columns = {"score"};
  PENSTOCK_ASSIGN(auto table, NodeTable::create(nullptr, std::move(engine), config));
  std::vector<NodeSpec> nodes(scores.size());
  std::vector<penstock_update> updates;
  for (std::size_t i = 0; i < scores.size(); ++i) {
    nodes[i].facts.name = fmt::format("n{}", i);
    nodes[i].allocatable = {1};
    penstock_update update{};
    update.field = PENSTOCK_UPDATE_FREE;
    update.row = static_cast<std::uint32_t>(i);
    update.value = scores[i];
    updates.push_back(update);
  }
  PENSTOCK_TRY(table->add_nodes(nodes));
  PENSTOCK_TRY(table->update(updates));
  penstock_program program{};
  program.magic = PENSTOCK_PROGRAM_MAGIC;
  program.version = PENSTOCK_PROGRAM_VERSION;
  program.best = PENSTOCK_MAX_BEST;
  program.tie = static_cast<std::uint8_t>(tie);
  program.n_ops = 1;
  program.ops[0].op = PENSTOCK_SCORE_FEATURES;
  program.ops[0].normalise = static_cast<std::uint8_t>(normalise);
  program.ops[0].n = 1;
  program.ops[0].weight = 1;
  penstock_task task{};
  task.row = -1;
  task.feature[0] = 1;
  penstock_result result{};
  PENSTOCK_TRY(table->select(program, {&task, 1}, false, &result));
  return result;
}

// A result lists so many rows.
Status check_count(const JsonField& field, std::size_t n) {
  if (n >= 1 && n <= PENSTOCK_MAX_BEST) return {};
  return field.wrong(fmt::format("1 to {} scores", PENSTOCK_MAX_BEST));
}

Result<Verdict> run_normalise(const JsonField& test, std::shared_ptr<Engine> engine) {
  const JsonField input = test.member("input"), scores_field = input.member("scores"),
                  most = input.member("maxPriority"), expect = test.member("expect");
  PENSTOCK_TRY(expect_members(input, {"scores", "reverse", "maxPriority"}));
  PENSTOCK_ASSIGN(const std::vector<std::int64_t> scores, read_integers(scores_field));
  PENSTOCK_ASSIGN(const bool reverse, input.member("reverse").boolean());
  PENSTOCK_ASSIGN(const std::int64_t max_priority, most.integer(1, INT64_MAX));
  PENSTOCK_ASSIGN(const std::vector<std::int64_t> expected, read_integers(expect.member("scores")));
  PENSTOCK_TRY(check_count(scores_field, scores.size()));
  if (max_priority != 100) return skipped("normalised scores reach 100 in every decision");
  const auto result =
      select_by_scores(scores, reverse ? PENSTOCK_NORMALISE_REVERSED : PENSTOCK_NORMALISE_DEFAULT,
                       PENSTOCK_TIE_LOWEST_ROW, std::move(engine));
  if (!result.ok()) return failed(result.status().to_string());
  std::vector<std::int64_t> found(scores.size(), -1);
  for (std::uint32_t i = 0; i < result.value().n_best; ++i) {
    const penstock_best& best = result.value().best[i];
    found[static_cast<std::size_t>(best.row)] = best.score;
  }
  return compare("scores", expected, found);
}

Result<Verdict> run_select_host(const JsonField& test, std::shared_ptr<Engine> engine) {
  const JsonField input = test.member("input"), expect = test.member("expect"),
                  list = input.member("scores"), any_of = expect.member("anyOf");
  std::vector<std::string> names;
  std::vector<std::int64_t> scores;
  PENSTOCK_TRY(list.each([&](const JsonField& item) -> Status {
    if (!item.json().is_array() || item.json().size() != 2 || !item.json()[0].is_string() ||
        !item.json()[1].is_number_integer()) {
      return item.wrong("a name and a score");
    }
    names.push_back(item.json()[0].get<std::string>());
    scores.push_back(item.json()[1].get<std::int64_t>());
    return {};
  }));
  PENSTOCK_TRY(check_count(list, scores.size()));
  PENSTOCK_ASSIGN(const std::vector<std::string> expected_list,
                  read_list<std::string>(any_of, [](const JsonField& i) { return i.text(); }));
  const std::set<std::string> expected(expected_list.begin(), expected_list.end());
  for (const penstock_tie tie :
       {PENSTOCK_TIE_LOWEST_ROW, PENSTOCK_TIE_ROTATING, PENSTOCK_TIE_HASH}) {
    const auto result = select_by_scores(scores, PENSTOCK_NORMALISE_NONE, tie, engine);
    if (!result.ok()) return failed(result.status().to_string());
    std::set<std::string> best;
    for (std::uint32_t i = 0; i < result.value().n_best; ++i) {
      const penstock_best& one = result.value().best[i];
      if (one.score == result.value().score) best.insert(names[static_cast<std::size_t>(one.row)]);
    }
    if (best != expected) {
      return failed(fmt::format("best nodes: expected [{}], found [{}]", fmt::join(expected, ", "),
                                fmt::join(best, ", ")));
    }
    if (expected.count(names[static_cast<std::size_t>(result.value().row)]) == 0) {
      return failed("the winner is none of the best");
    }
  }
  return passed();
}

Result<Verdict> compare_value(const JsonField& test, std::int64_t found) {
  const JsonField expect = test.member("expect"), value = expect.member("value");
  if (!value.present()) return value.wrong("a whole number");
  PENSTOCK_ASSIGN(const std::int64_t expected, value.integer(INT64_MIN, INT64_MAX));
  return compare<std::int64_t>("value", {expected}, {found});
}

Result<Verdict> run_broken_linear(const JsonField& test) {
  const JsonField input = test.member("input"), list = input.member("shape"), p = input.member("p");
  std::vector<ShapePoint> shape;
  PENSTOCK_TRY(list.each([&shape](const JsonField& item) -> Status {
    PENSTOCK_ASSIGN(const std::vector<std::int64_t> point, read_integers(item));
    constexpr std::int64_t kMost = 1000000;
    if (point.size() != 2 || point[0] < -kMost || point[0] > kMost || point[1] < -kMost ||
        point[1] > kMost) {
      return item.wrong(fmt::format("a utilization and a score of at most {}", kMost));
    }
    shape.push_back({static_cast<std::int32_t>(point[0]), static_cast<std::int32_t>(point[1])});
    return {};
  }));
  for (std::size_t i = 1; i < shape.size(); ++i) {
    if (shape[i - 1].utilization >= shape[i].utilization) return list.wrong("rising utilizations");
  }
  if (!p.present()) return p.wrong("a utilization");
  PENSTOCK_ASSIGN(const std::int64_t at, p.integer(INT32_MIN, INT32_MAX));
  return compare_value(test, broken_linear(shape, at));
}

Result<Verdict> run_sampling(const JsonField& test, const VectorsOptions& options) {
  if (!options.compat) {
    return skipped("all nodes are always considered; --compat computes what sampling would");
  }
  const JsonField input = test.member("input");
  PENSTOCK_TRY(expect_members(input, {"nodes", "percentageOfNodesToScore"}));
  PENSTOCK_ASSIGN(const std::int64_t nodes, input.member("nodes").integer(0, INT32_MAX));
  PENSTOCK_ASSIGN(const std::int64_t percentage,
                  input.member("percentageOfNodesToScore").integer(0, 100));
  return compare_value(test, sampled_nodes(nodes, percentage));
}

Result<Verdict> run_pod_requests(const JsonField& test) {
  const JsonField config = test.member("config"), pod_field = test.member("pod"),
                  expect = test.member("expect"), expected_field = expect.member("requests");
  PENSTOCK_TRY(expect_members(config, {"excludeOverhead", "useStatusResources"}));
  PENSTOCK_ASSIGN(const KubernetesPod pod, read_vector_pod(pod_field, config, "pod"));
  std::vector<std::string> expected, found;
  PENSTOCK_TRY(expected_field.each_member(
      [&expected](const std::string& name, const JsonField& item) -> Status {
        PENSTOCK_ASSIGN(const std::int64_t amount, item.integer(0, INT64_MAX));
        expected.push_back(fmt::format("{}={}", name, amount));
        return {};
      }));
  // "pods", which every pod takes one of, is not part of the function's answer.
  for (const auto& [name, amount] : pod.request) {
    if (name != "pods") found.push_back(fmt::format("{}={}", name, amount));
  }
  std::sort(expected.begin(), expected.end());
  return compare("requests", expected, found);
}

}  // namespace

std::int64_t sampled_nodes(std::int64_t nodes, std::int64_t percentage) {
  constexpr std::int64_t kLeastNodes = 100, kLeastPercent = 5;
  if (nodes < kLeastNodes) return nodes;
  if (percentage == 0) percentage = std::max(50 - nodes / 125, kLeastPercent);
  return std::max(nodes * percentage / 100, kLeastNodes);
}

bool is_vector_function(const VectorPlugin& plugin) {
  for (const char* name :
       {"PodRequests helper", "helper.DefaultNormalizeScore", "helper.BuildBrokenLinearFunction",
        "selectHost", "numFeasibleNodesToFind"}) {
    if (plugin.name == name) return true;
  }
  return false;
}

Result<Verdict> run_function_case(const VectorPlugin& plugin, const JsonField& test,
                                  std::shared_ptr<Engine> engine, const VectorsOptions& options) {
  if (plugin.name == "PodRequests helper") return run_pod_requests(test);
  if (plugin.name == "selectHost") return run_select_host(test, std::move(engine));
  if (plugin.name == "numFeasibleNodesToFind") return run_sampling(test, options);
  if (plugin.name == "helper.DefaultNormalizeScore") return run_normalise(test, std::move(engine));
  return run_broken_linear(test);
}

}  // namespace penstock
