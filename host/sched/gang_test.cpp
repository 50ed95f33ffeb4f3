#include "penstock/sched/gang.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "penstock/engine/engine.h"
#include "penstock/sched/cluster_rig_test.h"

namespace penstock {
namespace {

using rig::node;
using rig::pod;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

KubernetesPod wants(const std::string& name, std::int64_t milli, std::int32_t priority = 0) {
  KubernetesPod out = pod("ns/" + name, {{"app", name.substr(0, 1)}});
  out.request = out.scored_request = {{"cpu", milli}};
  out.priority = priority;
  return out;
}

std::vector<std::string> nodes_of(const std::vector<BatchOutcome>& outcomes) {
  std::vector<std::string> out;
  for (const BatchOutcome& outcome : outcomes) out.push_back(outcome.node);
  return out;
}

std::vector<BatchOutcome> placed(Cluster& cluster, const std::vector<BatchPod>& pods,
                                 const BatchOptions& options = {}) {
  auto outcomes = place_batch(cluster, pods, options);
  EXPECT_TRUE(outcomes.ok()) << outcomes.status().to_string();
  return outcomes.ok() ? std::move(outcomes).value() : std::vector<BatchOutcome>{};
}

// Everything that a placement may change.
std::vector<std::byte> cells_of(const TableView& view) {
  const auto* begin = reinterpret_cast<const std::byte*>(view.allocatable);
  const auto* end = reinterpret_cast<const std::byte*>(
      view.header->n_domains > 0 ? reinterpret_cast<const std::byte*>(view.logs)
                                 : reinterpret_cast<const std::byte*>(view.free));
  return {begin, end};
}

TEST(Batch, HigherPriorityFirstAndThenAsTheyCame) {
  const auto cluster = rig::cluster({node("n")});
  // 4000 thousandths: the last two have a place, of the first two the earlier one.
  const auto outcomes = placed(*cluster, {{wants("a", 1000, 1), "", 0},
                                          {wants("b", 1000, 1), "", 0},
                                          {wants("c", 2000, 7), "", 0},
                                          {wants("d", 1000, 9), "", 0}});
  EXPECT_THAT(nodes_of(outcomes), ElementsAre("n", "", "n", "n"));
  EXPECT_THAT(outcomes[1].reason, HasSubstr("Insufficient cpu"));
  EXPECT_EQ(cluster->pod_count(), 3u);
}

TEST(Batch, AGangIsPlacedAsAWholeOrNotAtAll) {
  const auto cluster = rig::cluster({node("n"), node("m")});
  const std::vector<std::byte> before = cells_of(cluster->table().view());
  const std::vector<BatchPod> three = {
      {wants("a1", 3000), "g", 0}, {wants("a2", 3000), "g", 0}, {wants("a3", 3000), "g", 0}};
  const auto outcomes = placed(*cluster, three);
  EXPECT_THAT(nodes_of(outcomes), ElementsAre("", "", ""));
  EXPECT_THAT(outcomes[0].reason, HasSubstr("gang g does not come together: ns/a3"));
  EXPECT_EQ(cluster->pod_count(), 0u);
  EXPECT_EQ(cells_of(cluster->table().view()), before);
  // Two of it are enough, and so the third may be missing.
  std::vector<BatchPod> two = three;
  for (BatchPod& member : two) member.needs = 2;
  EXPECT_THAT(nodes_of(placed(*cluster, two)), ElementsAre("n", "m", ""));
}

TEST(Batch, AGangThatFailsLeavesRoomForOthers) {
  const auto cluster = rig::cluster({node("n")});
  const auto outcomes = placed(*cluster, {{wants("x", 4000, 1), "", 0},
                                          {wants("a1", 3000, 5), "g", 0},
                                          {wants("a2", 3000, 5), "g", 0}});
  EXPECT_THAT(nodes_of(outcomes), ElementsAre("n", "", ""));
}

TEST(Batch, RefusesWhatContradictsItself) {
  const auto cluster = rig::cluster({node("n")});
  const auto code = [&](const std::vector<BatchPod>& pods) {
    return place_batch(*cluster, pods).status().code();
  };
  EXPECT_EQ(code({{wants("a1", 1), "g", 1}, {wants("a2", 1), "g", 2}}), Code::invalid_argument);
  EXPECT_EQ(code({{wants("a1", 1), "g", 2}}), Code::invalid_argument);
  EXPECT_EQ(code({{wants("a1", 1), "", 0}, {wants("a1", 1), "", 0}}), Code::already_exists);
  EXPECT_EQ(cluster->pod_count(), 0u);
}

TEST(Batch, PreemptsAndPutsVictimsBackWhenTheGangFails) {
  KubernetesPod low = wants("low", 3000);
  low.node_name = "n";
  const auto cluster = rig::cluster({node("n")}, {low});
  BatchOptions options;
  options.preempt = true;
  // The first member would take low's place, for the second there is none.
  EXPECT_THAT(
      nodes_of(placed(*cluster, {{wants("a1", 3000, 5), "g", 0}, {wants("a2", 3000, 5), "g", 0}},
                      options)),
      ElementsAre("", ""));
  ASSERT_NE(cluster->find_pod("ns/low"), nullptr);
  const auto outcomes = placed(*cluster, {{wants("a1", 3000, 5), "", 0}}, options);
  EXPECT_THAT(nodes_of(outcomes), ElementsAre("n"));
  EXPECT_THAT(outcomes[0].victims, ElementsAre("ns/low"));
  EXPECT_EQ(cluster->find_pod("ns/low"), nullptr);
}

// On a table: resources, GPUs, ports and counts, and what becomes of the generation.
TEST(Gang, IsTakenBackCellByCell) {
  NodeTableConfig config;
  config.resources = {{"cpu", "milli"}, {"gpu", "milli"}};
  config.n_gpus = 2;
  config.free_columns = {"tasks"};
  config.domain_columns = 1;
  config.count_columns = 2;
  auto made = NodeTable::create(nullptr, make_engine("simd,scalar").value(), config);
  ASSERT_TRUE(made.ok()) << made.status().to_string();
  NodeTable& table = *made.value();
  std::vector<NodeSpec> nodes(2);
  for (std::size_t i = 0; i < nodes.size(); i++) {
    nodes[i].facts.name = "n" + std::to_string(i);
    nodes[i].allocatable = {4000, 2000};
    nodes[i].gpus = 2;
  }
  ASSERT_TRUE(table.add_nodes(nodes).ok());
  const std::uint16_t port = table.state_column("port 80").value();
  Task task;
  task.name = "member";
  task.record.request[0] = task.record.scored_request[0] = 1000;
  task.record.request[1] = task.record.scored_request[1] = 500;
  task.record.gpu_count = 1;
  task.record.gpu_milli = 500;
  task.record.set_bits[0] = port;
  task.record.count[0] = 1;
  task.record.n_raises = 1;
  task.record.raises[0] = {1, PENSTOCK_ROW_DOMAIN, 0, 0};
  task.record.terms[task.record.n_terms++] = {port, 4, 1, 0};
  const Program program =
      compile_policy({"test", "", {"ports", "fit", "gpu"}, {}}, table, {}).value();

  const std::vector<std::byte> before = cells_of(table.view());
  const std::uint64_t generation = table.header().generation;
  // The port is free on two nodes.
  const std::vector<Task> three(3, task);
  auto result = place_gang(table, program.record, three);
  ASSERT_TRUE(result.ok()) << result.status().to_string();
  EXPECT_FALSE(result.value().placed);
  EXPECT_EQ(result.value().failed, 2u);
  EXPECT_EQ(cells_of(table.view()), before);
  EXPECT_EQ(table.header().generation, generation + 4);  // two placed, two taken back

  result = place_gang(table, program.record, std::span(three).first(2));
  ASSERT_TRUE(result.ok() && result.value().placed);
  EXPECT_NE(result.value().results[0].row, result.value().results[1].row);
  EXPECT_EQ(table.view().count_column(1)[0], 1);
  EXPECT_EQ(table.view().column(table.view().gpu, 0)[1], 500);
}

}  // namespace
}  // namespace penstock
