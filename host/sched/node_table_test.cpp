#include "penstock/sched/node_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "penstock/sched/replay.h"

namespace penstock {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::shared_ptr<Engine> scalar() {
  auto engine = make_engine("scalar");
  EXPECT_TRUE(engine.ok()) << engine.status().to_string();
  return std::move(engine).value();
}

NodeTableConfig small_config() {
  NodeTableConfig config;
  config.capacity = 64;
  config.resources = {{"cpu", "milli"}, {"memory", "MiB"}, {"gpu", "milli"}};
  config.n_gpus = 2;
  config.bit_columns = 6;
  config.free_columns = {"gpu-class/shared"};
  return config;
}

NodeSpec node(const std::string& name, std::int64_t cpu, std::int64_t memory,
              std::uint32_t gpus = 0, const std::string& zone = "a") {
  NodeSpec spec;
  spec.facts.name = name;
  spec.facts.labels["zone"] = zone;
  spec.allocatable = {cpu, memory, std::int64_t{gpus} * 1000};
  spec.gpus = gpus;
  return spec;
}

std::unique_ptr<NodeTable> make_table(const std::vector<NodeSpec>& nodes,
                                      const NodeTableConfig& config = small_config(),
                                      Pool* pool = nullptr) {
  auto table = NodeTable::create(pool, scalar(), config);
  EXPECT_TRUE(table.ok()) << table.status().to_string();
  const Status added = table.value()->add_nodes(nodes);
  EXPECT_TRUE(added.ok()) << added.to_string();
  return std::move(table).value();
}

Task task_of(const std::string& name, std::int64_t cpu, std::int64_t memory) {
  Task task;
  task.name = name;
  task.record.request[0] = task.record.scored_request[0] = cpu;
  task.record.request[1] = task.record.scored_request[1] = memory;
  return task;
}

Policy fit_only() {
  Policy policy;
  policy.name = "fit-only";
  policy.filters = {"unschedulable", "model", "fit", "gpu"};
  return policy;
}

std::vector<std::int64_t> cells(const NodeTable& table, std::int64_t* TableView::*kind,
                                std::uint32_t column, std::uint32_t rows) {
  const TableView view = table.view();
  const std::int64_t* first = view.column(view.*kind, column);
  return {first, first + rows};
}

bool bit(const NodeTable& table, std::uint32_t column, std::uint32_t row) {
  return (table.view().bit_column(column)[row / 64] >> (row % 64) & 1) != 0;
}

TEST(NodeTable, HoldsWhatNodesOffer) {
  const auto table = make_table({node("a", 4000, 100), node("b", 8000, 200, 2)});
  EXPECT_EQ(table->rows(), 2u);
  EXPECT_THAT(cells(*table, &TableView::allocatable, 0, 3), ElementsAre(4000, 8000, 0));
  EXPECT_THAT(cells(*table, &TableView::allocatable, 2, 2), ElementsAre(0, 2000));
  EXPECT_THAT(cells(*table, &TableView::gpu, 1, 2), ElementsAre(0, 1000));
  EXPECT_TRUE(bit(*table, PENSTOCK_BIT_NODE, 1));
  EXPECT_FALSE(bit(*table, PENSTOCK_BIT_NODE, 2));
  EXPECT_EQ(table->largest(0), 8000);
  EXPECT_EQ(table->catalogue().find_node("b"), 1);
  EXPECT_EQ(table->catalogue().find_node("c"), -1);
}

TEST(NodeTable, RefusesNodesThatDoNotFit) {
  const auto table = make_table({node("a", 1, 1)});
  const auto refused = [&](std::vector<NodeSpec> nodes, Code code, const char* words) {
    const Status status = table->add_nodes(nodes);
    EXPECT_EQ(status.code(), code);
    EXPECT_THAT(status.message(), HasSubstr(words));
  };
  refused({node("b", 1, 1), node("a", 1, 1)}, Code::already_exists, "'a'");
  refused({node("b", 1, 1), node("b", 1, 1)}, Code::already_exists, "'b'");
  refused({node("b", -1, 1)}, Code::out_of_range, "cpu is -1, expected 0 to");
  refused({node("b", 1, 1, 3)}, Code::out_of_range, "3 GPUs");
  refused({node("", 1, 1)}, Code::invalid_argument, "no name");
  std::vector<NodeSpec> many;
  for (int i = 0; i < 64; ++i) many.push_back(node("n" + std::to_string(i), 1, 1));
  refused(many, Code::no_space, "64 more nodes do not fit into a table of 64 rows that holds 1");
  EXPECT_EQ(table->rows(), 1u);
  EXPECT_EQ(table->catalogue().node_count(), 1u);
  many.pop_back();
  EXPECT_TRUE(table->add_nodes(many).ok());
}

TEST(NodeTable, RefusesAGeometryOutOfRange) {
  NodeTableConfig config = small_config();
  config.resources.clear();
  EXPECT_EQ(NodeTable::create(nullptr, scalar(), config).status().code(), Code::invalid_argument);
  config = small_config();
  config.name = "a/b";
  EXPECT_EQ(NodeTable::create(nullptr, scalar(), config).status().code(), Code::invalid_argument);
}

TEST(NodeTable, EachTaskSeesThoseBeforeIt) {
  const auto table = make_table({node("a", 1000, 100), node("b", 2000, 100)});
  const std::vector<Task> tasks = {task_of("1", 600, 10), task_of("2", 600, 10),
                                   task_of("3", 1500, 10), task_of("4", 1400, 10)};
  const auto decisions = table->place(fit_only(), tasks, true);
  ASSERT_TRUE(decisions.ok()) << decisions.status().to_string();
  EXPECT_EQ(decisions.value()[0].node, "a");  // ties go to the lowest row
  EXPECT_EQ(decisions.value()[1].node, "b");
  EXPECT_EQ(decisions.value()[2].row, -1);
  EXPECT_EQ(decisions.value()[3].node, "b");
  EXPECT_THAT(cells(*table, &TableView::requested, 0, 2), ElementsAre(600, 2000));
}

TEST(NodeTable, WithoutCommitNothingChanges) {
  const auto table = make_table({node("a", 1000, 100)});
  const std::vector<Task> tasks = {task_of("1", 600, 10), task_of("2", 600, 10)};
  const auto decisions = table->place(fit_only(), tasks, false);
  ASSERT_TRUE(decisions.ok());
  EXPECT_EQ(decisions.value()[1].node, "a");
  EXPECT_THAT(cells(*table, &TableView::requested, 0, 1), ElementsAre(0));
}

TEST(NodeTable, CordonsAndRemovesNodes) {
  const auto table = make_table({node("a", 1000, 100, 2), node("b", 1000, 100)});
  Task task = task_of("t", 100, 1);
  ASSERT_TRUE(add_term(&task, TermGroup::unschedulable, PENSTOCK_BIT_UNSCHEDULABLE, true).ok());
  const auto where = [&] { return table->place(fit_only(), {&task, 1}, false).value()[0].node; };
  EXPECT_EQ(where(), "a");
  ASSERT_TRUE(table->set_unschedulable(0, true).ok());
  EXPECT_EQ(where(), "b");
  ASSERT_TRUE(table->set_unschedulable(0, false).ok());
  ASSERT_TRUE(table->occupy(0, task, 0).ok());
  ASSERT_TRUE(table->remove_node(0).ok());
  EXPECT_EQ(where(), "b");
  EXPECT_EQ(table->remove_node(0).code(), Code::not_found);
  // The next node gets the row, without a trace of the one before.
  const std::vector<NodeSpec> next = {node("c", 1000, 100)};
  ASSERT_TRUE(table->add_nodes(next).ok());
  EXPECT_EQ(table->catalogue().find_node("c"), 0);
  EXPECT_THAT(cells(*table, &TableView::requested, 0, 1), ElementsAre(0));
  EXPECT_THAT(cells(*table, &TableView::gpu, 0, 1), ElementsAre(0));
  EXPECT_EQ(table->rows(), 2u);
}

TEST(NodeTable, OccupyAndReleaseAreInverse) {
  const auto table = make_table({node("a", 1000, 100, 2)});
  const auto port = table->state_column("port 80");
  ASSERT_TRUE(port.ok());
  Task task = task_of("t", 300, 7);
  task.record.scored_request[1] = 9;
  task.record.gpu_count = 1;
  task.record.gpu_milli = 250;
  task.record.count[0] = 1;
  task.record.set_bits[0] = port.value();
  ASSERT_TRUE(table->occupy(0, task, 0b10).ok());
  ASSERT_TRUE(table->occupy(0, task, 0b10).ok());
  EXPECT_THAT(cells(*table, &TableView::requested, 1, 1), ElementsAre(14));
  EXPECT_THAT(cells(*table, &TableView::scored, 1, 1), ElementsAre(18));
  EXPECT_THAT(cells(*table, &TableView::gpu, 1, 1), ElementsAre(500));
  EXPECT_THAT(cells(*table, &TableView::free, 0, 1), ElementsAre(2));
  ASSERT_TRUE(table->release(0, task, 0b10).ok());
  EXPECT_TRUE(bit(*table, port.value(), 0)) << "another task still has the port";
  ASSERT_TRUE(table->release(0, task, 0b10).ok());
  EXPECT_FALSE(bit(*table, port.value(), 0));
  EXPECT_THAT(cells(*table, &TableView::requested, 0, 1), ElementsAre(0));
  EXPECT_THAT(cells(*table, &TableView::gpu, 1, 1), ElementsAre(1000));
  EXPECT_THAT(cells(*table, &TableView::free, 0, 1), ElementsAre(0));
  EXPECT_EQ(table->release(0, task, 0b10).code(), Code::out_of_range) << "below zero";
}

TEST(NodeTable, AColumnAgreesWithItsPredicate) {
  const auto table = make_table({node("a", 1, 1, 0, "x"), node("b", 1, 1, 0, "y")});
  int asked = 0;
  const NodePredicate in_y = [&asked](const NodeFacts& facts) {
    ++asked;
    return facts.labels.at("zone") == "y";
  };
  const auto column = table->intern("zone y", in_y);
  ASSERT_TRUE(column.ok());
  EXPECT_FALSE(bit(*table, column.value(), 0));
  EXPECT_TRUE(bit(*table, column.value(), 1));
  EXPECT_EQ(asked, 2);
  EXPECT_EQ(table->intern("zone y", in_y).value(), column.value());
  EXPECT_EQ(asked, 2) << "each node is asked once";
  const std::vector<NodeSpec> more = {node("c", 1, 1, 0, "y")};
  ASSERT_TRUE(table->add_nodes(more).ok());
  EXPECT_TRUE(bit(*table, column.value(), 2));
}

TEST(NodeTable, EvictsTheColumnThatIsOutOfUseLongest) {
  const auto table = make_table({node("a", 1, 1)});  // 4 columns beside the fixed ones
  const auto all = [](const NodeFacts&) { return true; };
  const auto none = [](const NodeFacts&) { return false; };
  const std::uint16_t state = table->state_column("port").value();
  Task holder = task_of("t", 1, 1);
  holder.record.set_bits[0] = state;
  ASSERT_TRUE(table->occupy(0, holder, 0).ok());
  const std::uint16_t first = table->intern("first", all).value();
  table->new_batch();
  const std::uint16_t second = table->intern("second", all).value();
  EXPECT_NE(first, second);
  ASSERT_TRUE(table->intern("third", all).ok());
  table->new_batch();
  ASSERT_TRUE(table->intern("third", all).ok());
  const std::uint16_t fourth = table->intern("fourth", none).value();
  EXPECT_EQ(fourth, first);
  EXPECT_FALSE(bit(*table, fourth, 0)) << "nothing is left of the column before";
  ASSERT_EQ(table->intern("fifth", all).value(), second);
  const auto sixth = table->intern("sixth", all);
  ASSERT_FALSE(sixth.ok()) << "all others belong to this batch, or hold state";
  EXPECT_EQ(sixth.status().code(), Code::no_space);
  EXPECT_THAT(sixth.status().message(), HasSubstr("'sixth'"));
  EXPECT_EQ(table->catalogue().bit_column(state).key, "port");
  EXPECT_EQ(table->catalogue().evictions(), 2u);
  ASSERT_TRUE(table->release(0, holder, 0).ok());
  table->new_batch();
  ASSERT_TRUE(table->intern("third", all).ok());
  ASSERT_TRUE(table->intern("fourth", all).ok());
  ASSERT_TRUE(table->intern("fifth", all).ok());
  EXPECT_EQ(table->intern("sixth", all).value(), state) << "nobody holds it any more";
}

TEST(NodeTable, ReportsWhatTheEngineRefuses) {
  const auto table = make_table({node("a", 1, 1)});
  const penstock_update beyond = {PENSTOCK_UPDATE_REQUESTED, PENSTOCK_UPDATE_SET, 9, 0, 0, 1};
  const Status status = table->update({&beyond, 1});
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(status.message(), HasSubstr("engine scalar refused"));
  Task task = task_of("t", -1, 0);
  EXPECT_FALSE(table->place(fit_only(), {&task, 1}, true).ok());
}

class PooledTable : public testing::Test {
 protected:
  void SetUp() override {
    PoolConfig config;
    config.spec =
        testing::TempDir() + "penstock_sched_table_" + std::to_string(Platform::host().self().pid);
    config.bytes_per_device = std::uint64_t{16} << 20;
    spec_ = config.spec;
    ASSERT_TRUE(Pool::create(Platform::host(), config).ok());
    auto pool = Pool::map(Platform::host(), spec_);
    ASSERT_TRUE(pool.ok()) << pool.status().to_string();
    pool_ = std::move(pool).value();
  }
  void TearDown() override {
    pool_.reset();
    EXPECT_TRUE(Pool::destroy(Platform::host(), spec_, true).ok());
  }
  std::string spec_;
  std::unique_ptr<Pool> pool_;
};

TEST_F(PooledTable, IsFoundByNameWithItsNames) {
  NodeTableConfig config = small_config();
  config.name = "cluster";
  std::uint16_t column = 0;
  Task task = task_of("t", 600, 10);
  {
    NodeSpec tainted = node("a\tb\\\n", 1000, 100, 2, "x");
    tainted.facts.taints = {{"k", "v", "NoSchedule"}};
    tainted.facts.model = "T4";
    const auto table = make_table({tainted, node("b", 2000, 100)}, config, pool_.get());
    column = table
                 ->intern("zone x",
                          [](const NodeFacts& facts) { return facts.labels.at("zone") == "x"; })
                 .value();
    task.record.set_bits[0] = table->state_column("port 80").value();
    ASSERT_TRUE(table->place(fit_only(), {&task, 1}, true).ok());
    ASSERT_TRUE(table->save().ok());
  }
  auto opened = NodeTable::open(*pool_, scalar(), "cluster");
  ASSERT_TRUE(opened.ok()) << opened.status().to_string();
  NodeTable& table = *opened.value();
  EXPECT_EQ(table.catalogue().find_node("a\tb\\\n"), 0);
  EXPECT_EQ(table.catalogue().node(0).model, "T4");
  EXPECT_THAT(table.catalogue().node(0).taints, ElementsAre(Taint{"k", "v", "NoSchedule"}));
  EXPECT_EQ(table.catalogue().resources()[1], (ResourceName{"memory", "MiB"}));
  EXPECT_EQ(table.catalogue().find_free_column("gpu-class/shared"), 0);
  EXPECT_THAT(cells(table, &TableView::requested, 0, 2), ElementsAre(600, 0));
  EXPECT_EQ(table.state_column("port 80").value(), task.record.set_bits[0]);
  // The use of the port is known, so that it ends with the task.
  ASSERT_TRUE(table.release(0, task, 0).ok());
  EXPECT_FALSE(bit(table, task.record.set_bits[0], 0));
  // A column whose predicate this process does not know makes way when nodes come.
  const std::vector<NodeSpec> more = {node("c", 1, 1, 0, "x")};
  ASSERT_TRUE(table.add_nodes(more).ok());
  const auto again =
      table.intern("zone x", [](const NodeFacts& facts) { return facts.labels.at("zone") == "x"; });
  EXPECT_EQ(again.value(), column);
  EXPECT_TRUE(bit(table, column, 0));
  EXPECT_TRUE(bit(table, column, 2));
  opened.value().reset();
  EXPECT_TRUE(NodeTable::destroy(*pool_, "cluster").ok());
  EXPECT_EQ(NodeTable::open(*pool_, scalar(), "cluster").status().code(), Code::not_found);
}

// Like a card: it reaches the pool, and not this process's memory.
class PoolOnlyEngine : public Engine {
 public:
  PoolOnlyEngine() : inner_(scalar()), capabilities_(inner_->capabilities()) {
    capabilities_.name = "pool-only";
    capabilities_.host_memory = false;
  }
  const Capabilities& capabilities() const override { return capabilities_; }
  Status accepts(const penstock_descriptor& descriptor) const override {
    for (std::uint32_t i = 0; i < descriptor.n_src; ++i) {
      if (penstock_address_is_host(descriptor.src[i])) ++host_addresses;
    }
    if (penstock_address_is_host(descriptor.dst[0])) ++host_addresses;
    ++descriptors;
    return inner_->accepts(descriptor);
  }
  std::uint32_t advance(Queue& queue) override { return inner_->advance(queue); }

  mutable int host_addresses = 0;
  mutable int descriptors = 0;

 private:
  std::shared_ptr<Engine> inner_;
  Capabilities capabilities_;
};

TEST_F(PooledTable, AnEngineThatReachesThePoolOnlyFindsEverythingThere) {
  const auto engine = std::make_shared<PoolOnlyEngine>();
  auto table = NodeTable::create(pool_.get(), engine, small_config());
  ASSERT_TRUE(table.ok()) << table.status().to_string();
  EXPECT_EQ(table.value()->engine_name(), "pool-only");
  const std::vector<NodeSpec> nodes = {node("a", 1000, 100), node("b", 2000, 100)};
  ASSERT_TRUE(table.value()->add_nodes(nodes).ok());
  // More tasks than the staging region had room for at first.
  std::vector<Task> tasks(40, task_of("t", 100, 1));
  const auto decisions = table.value()->place(fit_only(), tasks, true);
  ASSERT_TRUE(decisions.ok()) << decisions.status().to_string();
  EXPECT_EQ(decisions.value()[9].node, "a");
  EXPECT_EQ(decisions.value()[10].node, "b");
  EXPECT_EQ(decisions.value()[29].node, "b");
  EXPECT_EQ(decisions.value()[30].row, -1);
  EXPECT_EQ(engine->host_addresses, 0);
  EXPECT_EQ(engine->descriptors, 2);
  table.value().reset();
  EXPECT_TRUE(pool_->regions().empty());
}

TEST_F(PooledTable, WithoutAPoolThatEngineIsReplaced) {
  const auto table = NodeTable::create(nullptr, std::make_shared<PoolOnlyEngine>(), small_config());
  ASSERT_TRUE(table.ok()) << table.status().to_string();
  EXPECT_NE(table.value()->engine_name(), "pool-only");
}

TEST_F(PooledTable, AReplayInAPoolIsTheSame) {
  ReplayConfig config;
  config.nodes = {{"a", 8000, 100, 2, "T4"}, {"b", 8000, 100, 2, "P100"}};
  config.pods = {{"p", 1000, 10, 1, 600, ""}, {"q", 900, 10, 1, 300, "T4"}};
  const double without = replay(config).value().gpu_alloc_pct;
  config.pool = pool_.get();
  const auto with = replay(config);
  ASSERT_TRUE(with.ok()) << with.status().to_string();
  EXPECT_EQ(with.value().gpu_alloc_pct, without);
  EXPECT_TRUE(pool_->regions().empty());
}

TEST_F(PooledTable, AnAnonymousTableLeavesNothing) {
  { make_table({node("a", 1, 1)}, small_config(), pool_.get()); }
  EXPECT_TRUE(pool_->regions().empty());
}

TEST_F(PooledTable, DamagedNamesAreReported) {
  NodeTableConfig config = small_config();
  config.name = "cluster";
  ASSERT_TRUE(make_table({node("a", 1, 1)}, config, pool_.get())->save().ok());
  const Region names = pool_->find(RegionKind::table, "cluster/names").value();
  std::byte* bytes = pool_->resolve(names.address, names.bytes);
  // Another name, and still a text that makes sense.
  const std::string_view text(reinterpret_cast<const char*>(bytes), names.bytes);
  const std::size_t at = text.find("node\t0\ta\t");
  ASSERT_NE(at, std::string_view::npos);
  bytes[at + 7] = std::byte{'b'};
  const auto opened = NodeTable::open(*pool_, scalar(), "cluster");
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.status().code(), Code::corrupt);
  EXPECT_THAT(opened.status().message(),
              HasSubstr("the names of the node table 'cluster' are damaged"));
}

}  // namespace
}  // namespace penstock
