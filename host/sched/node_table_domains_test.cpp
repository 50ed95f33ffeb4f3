// Domain and count columns of a node table.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "penstock/sched/node_table.h"

namespace penstock {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

NodeSpec node(const std::string& name, std::map<std::string, std::string> labels) {
  NodeSpec spec;
  spec.facts.name = name;
  spec.facts.labels = std::move(labels);
  spec.allocatable = {1000};
  return spec;
}

std::unique_ptr<NodeTable> table_of(const std::vector<NodeSpec>& nodes) {
  NodeTableConfig config;
  config.capacity = 64;
  config.resources = {{"cpu", "milli"}};
  config.bit_columns = 4;
  config.domain_columns = 2;
  config.count_columns = 2;
  auto table = NodeTable::create(nullptr, make_engine("scalar").value(), config);
  EXPECT_TRUE(table.ok()) << table.status().to_string();
  EXPECT_TRUE(table.value()->add_nodes(nodes).ok());
  return std::move(table).value();
}

std::vector<std::int32_t> domains(const NodeTable& table, std::uint16_t column) {
  const std::int32_t* cells = table.view().domain_column(column);
  return {cells, cells + table.rows()};
}

std::vector<std::int32_t> counts(const NodeTable& table, std::uint16_t column, std::uint32_t n) {
  const std::int32_t* cells = table.view().count_column(column);
  return {cells, cells + n};
}

const std::vector<NodeSpec> kNodes = {node("a", {{"zone", "1"}}), node("b", {{"zone", "2"}}),
                                      node("c", {}), node("d", {{"zone", "1"}})};

TEST(DomainColumns, FollowALabel) {
  const auto table = table_of(kNodes);
  const std::uint16_t zone = table->domain_column("zone", false).value();
  EXPECT_THAT(domains(*table, zone), ElementsAre(0, 1, -1, 0));
  EXPECT_EQ(table->domain_column("zone", false).value(), zone);
  const std::uint16_t by_row = table->domain_column("zone", true).value();
  EXPECT_THAT(domains(*table, by_row), ElementsAre(0, 1, -1, 3));
  EXPECT_EQ(table->catalogue().domains_in_use(zone), 2u);
  EXPECT_EQ(table->catalogue().domains_in_use(by_row), 4u);

  ASSERT_TRUE(table->change_node(1, node("b", {{"zone", "3"}})).ok());
  // Nobody is in zone 2 any more: its number is the next that is free.
  EXPECT_THAT(domains(*table, zone), ElementsAre(0, 1, -1, 0));
  ASSERT_TRUE(table->change_node(2, node("c", {{"zone", "2"}})).ok());
  EXPECT_THAT(domains(*table, zone), ElementsAre(0, 1, 2, 0));
  ASSERT_TRUE(table->remove_node(0).ok());
  ASSERT_TRUE(table->remove_node(3).ok());
  const NodeSpec more[] = {node("e", {{"zone", "4"}}), node("f", {})};
  ASSERT_TRUE(table->add_nodes(more).ok());
  EXPECT_THAT(domains(*table, zone), ElementsAre(0, 1, 2, -1));
  EXPECT_THAT(domains(*table, by_row), ElementsAre(0, 1, 2, -1));
}

TEST(DomainColumns, GiveWayWhenTheyAreNotUsed) {
  const auto table = table_of(kNodes);
  ASSERT_TRUE(table->domain_column("x", false).ok());
  const std::uint16_t zone = table->domain_column("zone", false).value();
  const auto full = table->domain_column("y", false);
  ASSERT_FALSE(full.ok());
  EXPECT_EQ(full.status().code(), Code::no_space);
  EXPECT_EQ(table->catalogue().full(), Catalogue::Kind::domains);
  table->new_batch();
  ASSERT_TRUE(table->add_count("pods", zone, 0, std::vector<std::int32_t>{5, 6}).ok());
  table->new_batch();
  ASSERT_TRUE(table->domain_column("x", false).ok());
  ASSERT_TRUE(table->domain_column("y", false).ok());  // in the place of zone
  EXPECT_EQ(table->find_count("pods"), -1);
}

TEST(CountColumns, RiseAndFallWithTasks) {
  const auto table = table_of(kNodes);
  const std::uint16_t zone = table->domain_column("zone", false).value();
  const std::uint16_t of_a =
      table->intern("a", [](const NodeFacts& facts) { return facts.name == "a"; }).value();
  const std::uint16_t all = table->add_count("all", zone, 0, std::vector<std::int32_t>{7}).value();
  const std::uint16_t some = table->add_count("some", zone, of_a, {}).value();
  EXPECT_THAT(counts(*table, all, 3), ElementsAre(7, 0, 0));
  Task task;
  task.name = "t";
  task.record.n_raises = 2;
  task.record.raises[0] = {all, zone, 0, 0};
  task.record.raises[1] = {some, zone, of_a, 0};
  const penstock_raise twice[] = {{all, PENSTOCK_ROW_DOMAIN, 0, 0}};
  ASSERT_TRUE(table->occupy(0, task, 0).ok());
  ASSERT_TRUE(table->occupy(3, task, 0, twice).ok());  // in a's zone, and not a
  ASSERT_TRUE(table->occupy(2, task, 0).ok());         // in no zone
  EXPECT_THAT(counts(*table, all, 4), ElementsAre(9, 0, 0, 1));
  EXPECT_THAT(counts(*table, some, 3), ElementsAre(1, 0, 0));
  ASSERT_TRUE(table->release(3, task, 0, twice).ok());
  ASSERT_TRUE(table->release(0, task, 0).ok());
  EXPECT_THAT(counts(*table, all, 4), ElementsAre(7, 0, 0, 0));
  EXPECT_THAT(counts(*table, some, 3), ElementsAre(0, 0, 0));
  // What is not there cannot go, and nothing of the rest goes with it.
  EXPECT_EQ(table->release(0, task, 0).code(), Code::out_of_range);
  EXPECT_THAT(counts(*table, all, 1), ElementsAre(7));
}

TEST(CountColumns, GoWithTheBitsThatTheyAsk) {
  const auto table = table_of(kNodes);
  const std::uint16_t zone = table->domain_column("zone", false).value();
  const auto yes = [](const NodeFacts&) { return true; };
  const std::uint16_t first = table->intern("first", yes).value();
  ASSERT_TRUE(table->intern("second", yes).ok());
  ASSERT_TRUE(table->add_count("asks", zone, first, {}).ok());
  ASSERT_TRUE(table->add_count("plain", zone, 0, {}).ok());
  table->new_batch();
  EXPECT_GE(table->find_count("asks"), 0);  // and so is "first" used
  ASSERT_TRUE(table->intern("third", yes).ok());
  EXPECT_GE(table->find_count("asks"), 0);
  table->new_batch();
  ASSERT_TRUE(table->intern("third", yes).ok());
  ASSERT_TRUE(table->intern("fourth", yes).ok());
  EXPECT_EQ(table->find_count("asks"), -1);
  EXPECT_GE(table->find_count("plain"), 0);
  const std::uint64_t before = table->catalogue().last_serial();
  ASSERT_TRUE(table->add_count("asks", zone, 0, {}).ok());
  EXPECT_GT(table->catalogue().last_serial(), before);
  const auto full = table->add_count("one more", zone, 0, {});
  ASSERT_FALSE(full.ok());
  EXPECT_THAT(full.status().message(), HasSubstr("all 2 count columns"));
}

TEST(NodeTable, ChangesANodeWithoutLettingGoOfItsTasks) {
  const auto table = table_of(kNodes);
  Task task;
  task.name = "t";
  task.record.request[0] = 300;
  ASSERT_TRUE(table->occupy(0, task, 0).ok());
  NodeSpec changed = node("a", {});
  changed.allocatable = {500};
  changed.unschedulable = true;
  ASSERT_TRUE(table->change_node(0, changed).ok());
  const TableView cells = table->view();
  EXPECT_EQ(cells.allocatable[0], 500);
  EXPECT_EQ(cells.requested[0], 300);
  EXPECT_TRUE(table->bit(PENSTOCK_BIT_UNSCHEDULABLE, 0));
  EXPECT_TRUE(table->catalogue().node(0).labels.empty());
  EXPECT_EQ(table->change_node(0, node("b", {})).code(), Code::invalid_argument);
  changed.allocatable = {-1};
  EXPECT_EQ(table->change_node(0, changed).code(), Code::out_of_range);
  EXPECT_EQ(table->change_node(9, node("x", {})).code(), Code::not_found);
}

}  // namespace
}  // namespace penstock
