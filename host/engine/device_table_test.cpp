// SELECT and UPDATE of the device engine: what the host does before and after the device.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "penstock/engine/device_rig_test.h"

namespace penstock {
namespace {

using ::testing::ElementsAre;

class DeviceTableTest : public DeviceEngineTest {
 protected:
  static constexpr std::uint64_t kProgram = 131072, kTask = 196608, kResult = 262144,
                                 kUpdates = 327680;
  void SetUp() override {
    DeviceEngineTest::SetUp();
    fill();
  }
  // One node with room for tasks of a resource.
  void fill() {
    table_bytes_ = penstock_node_table_init(header(), 64, 1, 1, 3, 1, 1, 2);
    header()->rows = 8;
    view_ = table_view(header());
    view_.bit_column(PENSTOCK_BIT_NODE)[0] = 1u << 5;
    view_.allocatable[5] = 100;
    auto* program = new (data_ + kProgram) penstock_program{};
    program->magic = PENSTOCK_PROGRAM_MAGIC;
    program->version = PENSTOCK_PROGRAM_VERSION;
    program->best = 1;
    program->n_ops = 1;
    program->ops[0].op = PENSTOCK_FILTER_FIT;
    program->ops[0].n = 1;
    for (std::uint64_t i = 0; i < 2; ++i) {
      auto* task = new (data_ + kTask + i * sizeof(penstock_task)) penstock_task{};
      task->request[0] = 7;
      task->row = -1;
    }
  }
  penstock_node_table* header() { return reinterpret_cast<penstock_node_table*>(data_); }
  const penstock_result* results() const {
    return reinterpret_cast<const penstock_result*>(data_ + kResult);
  }
  void select(bool commit, std::uint64_t n = 2) {
    penstock_descriptor d = make(PENSTOCK_OP_SELECT, 3, 1, n);
    if (commit) d.flags = PENSTOCK_FLAG_COMMIT;
    d.src[0] = at(0);
    d.src[1] = at(kProgram);
    d.src[2] = at(kTask);
    d.dst[0] = at(kResult);
    submit(d);
  }
  void update(std::vector<penstock_update> updates) {
    std::memcpy(data_ + kUpdates, updates.data(), updates.size() * sizeof(penstock_update));
    penstock_descriptor d = make(PENSTOCK_OP_UPDATE, 2, 0, updates.size());
    d.src[0] = at(0);
    d.src[1] = at(kUpdates);
    submit(d);
  }
  std::uint64_t table_bytes_ = 0;
  TableView view_{};
};

TEST_F(DeviceTableTest, ADeviceMayRefuseWhatItsCapabilitiesAllow) {
  device_->select_refusal = PENSTOCK_UNSUPPORTED;
  select(true, 2);
  advance();
  device_->run();
  EXPECT_EQ(advance(), 1u);
  penstock_completion c;
  ASSERT_TRUE(queue_->poll(&c));
  EXPECT_EQ(c.status, std::uint32_t{PENSTOCK_UNSUPPORTED});
  EXPECT_EQ(c.field, std::uint32_t{PENSTOCK_FIELD_PROGRAM});
  EXPECT_EQ(c.detail, 3u);
  EXPECT_EQ(header()->generation, 0u) << "nothing was committed";
}

TEST_F(DeviceTableTest, ACommitIsOverBeforeAnythingFollows) {
  select(true);
  copy(0, 65536, 144);  // the header, with the generation after the commit
  advance();
  EXPECT_EQ(device_->started, 1u);
  device_->run();
  EXPECT_EQ(advance(), 1u);
  EXPECT_EQ(header()->generation, 2u);
  EXPECT_EQ(view_.requested[5], 14);
  EXPECT_EQ(results()[1].row, 5);
  device_->run();
  EXPECT_EQ(advance(), 1u);
  EXPECT_EQ(reinterpret_cast<penstock_node_table*>(data_ + 65536)->generation, 2u);
  // Without a commit the next one may be on the stream already.
  select(false);
  copy(0, 65536, 144);
  advance();
  EXPECT_EQ(device_->started, 4u);
  device_->run(2);
  EXPECT_EQ(advance(), 2u);
  EXPECT_EQ(header()->generation, 2u);
  EXPECT_THAT(completed(), ElementsAre(0, 0, 0, 0));
}

// Many tasks go to the device in pieces, and are one SELECT all the same.
TEST_F(DeviceTableTest, TheTasksOfALongSelectSeeThoseBeforeThem) {
  view_.allocatable[5] = 2000;
  std::vector<penstock_task> tasks(2500, *reinterpret_cast<penstock_task*>(data_ + kTask));
  for (penstock_task& task : tasks) task.request[0] = 1;
  std::vector<penstock_result> results(tasks.size());
  penstock_descriptor d = make(PENSTOCK_OP_SELECT, 3, 1, tasks.size());
  d.flags = PENSTOCK_FLAG_COMMIT;
  d.src[0] = at(0);
  d.src[1] = at(kProgram);
  d.src[2] = penstock_address_host(tasks.data());
  d.dst[0] = penstock_address_host(results.data());
  submit(d);
  copy(0, 65536, 144);
  for (std::uint32_t piece = 1; piece <= 3; ++piece) {
    EXPECT_EQ(advance(), 0u);
    EXPECT_EQ(device_->started, piece);
    device_->run();
  }
  EXPECT_EQ(advance(), 1u);
  EXPECT_EQ(header()->generation, 2000u);
  EXPECT_EQ(view_.requested[5], 2000);
  EXPECT_EQ(results[1999].status, std::uint32_t{PENSTOCK_OK});
  EXPECT_EQ(results[2000].status, std::uint32_t{PENSTOCK_NOT_FOUND});
  EXPECT_EQ(results[2499].status, std::uint32_t{PENSTOCK_NOT_FOUND});
  device_->run();
  EXPECT_EQ(advance(), 1u);
  // A task that changes before its piece begins ends it there.
  submit(d);
  advance();
  tasks[1100].row = -2;
  device_->run();
  EXPECT_EQ(advance(), 1u);
  EXPECT_THAT(completed(), ElementsAre(0, 0, std::uint32_t{PENSTOCK_CORRUPT}));
  EXPECT_EQ(last_.detail, 1100u);
  // Cancelled, it ends after the piece that is under way.
  tasks[1100].row = -1;
  submit(d);
  advance();
  queue_->cancel();
  device_->run();
  EXPECT_EQ(advance(), 1u);
  EXPECT_THAT(completed(), ElementsAre(std::uint32_t{PENSTOCK_CANCELLED}));
}

// Its memory may be another process's: the device has a copy of its own.
TEST_F(DeviceTableTest, WhatTheDeviceSeesOfTasksIsWhatWasChecked) {
  select(true);
  advance();
  reinterpret_cast<penstock_task*>(data_ + kTask)->request[0] = -1;
  device_->run();
  EXPECT_EQ(advance(), 1u);
  EXPECT_EQ(view_.requested[5], 14);
  select(true);
  EXPECT_EQ(advance(), 1u);
  EXPECT_THAT(completed(), ElementsAre(0, std::uint32_t{PENSTOCK_INVALID_ARGUMENT}));
  EXPECT_EQ(last_.field, std::uint32_t{PENSTOCK_FIELD_TASK});
  EXPECT_EQ(last_.detail, 0u);
}

TEST_F(DeviceTableTest, AnUpdateSaysWhichOneLeavesItsBounds) {
  update({{PENSTOCK_UPDATE_ROWS, PENSTOCK_UPDATE_SET, 0, 0, 0, 40},
          {PENSTOCK_UPDATE_ALLOCATABLE, PENSTOCK_UPDATE_ADD, 0, 5, 0, 10}});
  advance();
  device_->run();
  EXPECT_EQ(advance(), 1u);
  EXPECT_EQ(header()->rows, 40u);
  EXPECT_EQ(header()->generation, 1u);
  EXPECT_EQ(view_.allocatable[5], 110);
  update({{PENSTOCK_UPDATE_ROWS, PENSTOCK_UPDATE_SET, 0, 0, 0, 50},
          {PENSTOCK_UPDATE_ALLOCATABLE, PENSTOCK_UPDATE_ADD, 0, 5, 0, 10},
          {PENSTOCK_UPDATE_ALLOCATABLE, PENSTOCK_UPDATE_ADD, 0, 5, 0, -1000}});
  advance();
  device_->run();
  EXPECT_EQ(advance(), 1u);
  EXPECT_THAT(completed(), ElementsAre(0, std::uint32_t{PENSTOCK_OUT_OF_RANGE}));
  EXPECT_EQ(last_.field, std::uint32_t{PENSTOCK_FIELD_UPDATE});
  EXPECT_EQ(last_.detail, 2u);
  EXPECT_EQ(header()->rows, 40u);
  EXPECT_EQ(header()->generation, 1u);
  EXPECT_EQ(view_.allocatable[5], 110);
  // What is wrong by itself never reaches the device.
  update({{PENSTOCK_UPDATE_ALLOCATABLE, PENSTOCK_UPDATE_SET, 1, 5, 0, 10}});
  EXPECT_EQ(advance(), 1u);
  EXPECT_THAT(completed(), ElementsAre(std::uint32_t{PENSTOCK_INVALID_ARGUMENT}));
  EXPECT_EQ(device_->started, 2u);
}

TEST_F(DeviceTableTest, OnASoftwareCoherentPoolTheChangedCellsArePublished) {
  open(Coherence::software);
  fill();
  select(true, 1);
  advance();
  EXPECT_TRUE(WatchingPlatform::covers(watching_.invalidated, data_, table_bytes_));
  EXPECT_TRUE(watching_.written.empty());
  device_->run();
  EXPECT_EQ(advance(), 1u);
  const auto written = [&](const void* data, std::size_t bytes) {
    return WatchingPlatform::covers(watching_.written, static_cast<const std::byte*>(data), bytes);
  };
  EXPECT_TRUE(written(header(), sizeof(penstock_node_table)));
  EXPECT_TRUE(written(view_.requested + 5, 8));
  EXPECT_TRUE(written(results(), sizeof(penstock_result)));
  watching_.written.clear();
  update({{PENSTOCK_UPDATE_FREE, PENSTOCK_UPDATE_SET, 0, 40, 0, 10}});
  advance();
  device_->run();
  EXPECT_EQ(advance(), 1u);
  EXPECT_TRUE(written(header(), sizeof(penstock_node_table)));
  EXPECT_TRUE(written(view_.free + 40, 8));
  EXPECT_FALSE(WatchingPlatform::touches(watching_.written,
                                         reinterpret_cast<std::byte*>(view_.requested), 8));
}

TEST_F(DeviceTableTest, WhatItsCapabilitiesLeaveOutIsNamed) {
  const auto refused = [&](const Capabilities& can) {
    const auto engine = make_device_engine(can, device_);
    select(true, 2);
    EXPECT_EQ(engine->advance(*queue_), 1u);
    EXPECT_THAT(completed(), ElementsAre(std::uint32_t{PENSTOCK_UNSUPPORTED}));
    return std::pair(last_.field, last_.detail);
  };
  const auto found = [](std::uint32_t field, std::uint64_t detail) {
    return std::pair(field, detail);
  };
  Capabilities can = fake_capabilities();
  can.max_rows = 63;
  EXPECT_EQ(refused(can), found(PENSTOCK_FIELD_TABLE, at(0)));
  can = fake_capabilities();
  can.select.operations &= ~(std::uint64_t{1} << PENSTOCK_FILTER_FIT);
  EXPECT_EQ(refused(can), found(PENSTOCK_FIELD_PROGRAM, 0));
  can = fake_capabilities();
  can.select.ties = 2;
  EXPECT_EQ(refused(can), found(PENSTOCK_FIELD_PROGRAM, PENSTOCK_MAX_OPS));
  can = fake_capabilities();
  can.select.gpus = false;
  auto* task = reinterpret_cast<penstock_task*>(data_ + kTask) + 1;
  task->gpu_count = task->gpu_milli = 1;
  EXPECT_EQ(refused(can), found(PENSTOCK_FIELD_TASK, 1));
  can.select.domains = false;
  task->gpu_count = task->gpu_milli = 0;
  task->n_raises = 1;
  EXPECT_EQ(refused(can), found(PENSTOCK_FIELD_TASK, 1));
  EXPECT_EQ(device_->started, 0u);
}

}  // namespace
}  // namespace penstock
