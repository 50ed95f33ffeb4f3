// UPDATE's kernels on the host against the host engines' UPDATE.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "penstock/drivers/kernels/table_kernels_test.h"
#include "penstock/engine/select_conformance.h"
#include "penstock/engine/update.h"

namespace penstock::kernels {
namespace {

struct Outcome {
  std::uint32_t status = PENSTOCK_INTERNAL;
  std::uint64_t bad_index = ~std::uint64_t{0};
};

Outcome update(HostTable* table, const std::vector<penstock_update>& updates,
               const TestShape& shape) {
  Outcome outcome;
  penstock_node_table header = *table->header();
  update_on_host({table_view(&header, reinterpret_cast<std::byte*>(table->header())),
                  reinterpret_cast<std::byte*>(table->header()), updates.data(), updates.size(),
                  &outcome.status, &outcome.bad_index},
                 shape);
  return outcome;
}

// The kernels leave the header to the engine.
void take_header(const HostTable& from, HostTable* to) { *to->header() = *from.header(); }

TestShape shape_of(std::uint64_t seed) {
  constexpr u32 kLanes[] = {1, 2, 16, 256};
  return {{kLanes[seed % 4], 1, 0}, seed / 4 % 2 == 0};
}

TEST(UpdateKernels, RandomListsAreTheHostEngines) {
  int refused = 0;
  int applied = 0;
  for (std::uint64_t seed = 1; seed <= 2000 && !HasFailure(); seed++) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    SelectCase made = make_select_case(seed);
    const std::vector<penstock_update> updates = make_updates(seed, *made.table.header());
    HostTable actual = made.table;
    std::uint64_t bad_index = 0;
    const std::uint32_t status = updates.empty() ? std::uint32_t{PENSTOCK_OK}
                                                 : apply_updates(made.table.view(), updates.data(),
                                                                 updates.size(), &bad_index);
    // The engine refuses a list with an update that is wrong by itself before it comes here.
    bool sound = !updates.empty();
    for (const penstock_update& one : updates)
      sound = sound && check_update(*actual.header(), one) == PENSTOCK_OK;
    if (!sound) continue;
    const Outcome outcome = update(&actual, updates, shape_of(seed));
    EXPECT_EQ(outcome.status, status);
    EXPECT_EQ(outcome.bad_index, bad_index);
    take_header(made.table, &actual);
    EXPECT_EQ(difference(made.table, actual), "");
    ++(status == PENSTOCK_OK ? applied : refused);
  }
  EXPECT_GT(applied, 500);
  EXPECT_GT(refused, 100);
}

penstock_update make(std::uint16_t field, std::uint16_t mode, std::uint32_t row,
                     std::int64_t value) {
  penstock_update made = {};
  made.field = field;
  made.mode = mode;
  made.row = row;
  made.value = value;
  return made;
}

TEST(UpdateKernels, ALongListKeepsTheOrderOfEachCell) {
  HostTable table(64, 64, 1, 1, 2, 1);
  std::vector<penstock_update> updates;
  // Each cell in turn: SET i, ADD 1, so that the last round decides.
  for (std::int64_t i = 0; i < 500; i++)
    for (std::uint32_t row = 0; row < 64; row++) {
      updates.push_back(make(PENSTOCK_UPDATE_REQUESTED, PENSTOCK_UPDATE_SET, row, i + row));
      updates.push_back(make(PENSTOCK_UPDATE_REQUESTED, PENSTOCK_UPDATE_ADD, row, 1));
      updates.push_back(make(PENSTOCK_UPDATE_BIT, PENSTOCK_UPDATE_SET, row, (i + row) % 2));
    }
  for (const TestShape& shape : {TestShape{{1, 1, 0}, false}, TestShape{{256, 1, 0}, true}}) {
    HostTable actual = table;
    EXPECT_EQ(update(&actual, updates, shape).status, std::uint32_t{PENSTOCK_OK});
    for (std::uint32_t row = 0; row < 64; row++) {
      EXPECT_EQ(actual.view().column(actual.view().requested, 0)[row], 500 + row);
      EXPECT_EQ(actual.bit(0, row), (499 + row) % 2 != 0);
    }
  }
}

TEST(UpdateKernels, TheFirstAddThatLeavesItsBoundsIsNamedAndNothingChanges) {
  HostTable table(64, 64, 1, 1, 2, 1);
  table.view().column(table.view().gpu, 0)[7] = 900;
  std::vector<penstock_update> updates;
  for (std::uint32_t row = 0; row < 64; row++)
    updates.push_back(make(PENSTOCK_UPDATE_GPU, PENSTOCK_UPDATE_ADD, row, 50));
  updates.push_back(make(PENSTOCK_UPDATE_GPU, PENSTOCK_UPDATE_ADD, 7, 51));   // 64: 1001
  updates.push_back(make(PENSTOCK_UPDATE_GPU, PENSTOCK_UPDATE_ADD, 3, -51));  // 65: -1
  for (const bool backwards : {false, true}) {
    HostTable actual = table;
    const Outcome outcome = update(&actual, updates, {{16, 1, 0}, backwards});
    EXPECT_EQ(outcome.status, std::uint32_t{PENSTOCK_OUT_OF_RANGE});
    EXPECT_EQ(outcome.bad_index, 64u);
    EXPECT_EQ(difference(table, actual), "");
  }
}

// What a damaged pool holds may make the sum wrap around into its bounds.
TEST(UpdateKernels, ASumThatOverflowsIsOutOfRange) {
  HostTable table(64, 64, 1, 1, 2, 1);
  table.view().column(table.view().requested, 0)[2] = INT64_MIN + 5;
  HostTable actual = table;
  const Outcome outcome = update(
      &actual, {make(PENSTOCK_UPDATE_REQUESTED, PENSTOCK_UPDATE_ADD, 2, INT64_MIN)}, {{1, 1, 0}});
  EXPECT_EQ(outcome.status, std::uint32_t{PENSTOCK_OUT_OF_RANGE});
  EXPECT_EQ(outcome.bad_index, 0u);
  EXPECT_EQ(difference(table, actual), "");
}

TEST(UpdatePlan, ListsOfRowsAloneLaunchNothing) {
  HostTable table(64, 64, 1, 1, 2, 1);
  const std::vector<penstock_update> updates(3,
                                             make(PENSTOCK_UPDATE_ROWS, PENSTOCK_UPDATE_SET, 0, 5));
  Outcome outcome;
  const Result<UpdatePlan> plan =
      UpdatePlan::make({table.view(), reinterpret_cast<std::byte*>(table.header()), updates.data(),
                        3, &outcome.status, &outcome.bad_index},
                       {});
  EXPECT_TRUE(plan.value().empty());
  EXPECT_TRUE(plan.value().launches().empty());
}

}  // namespace
}  // namespace penstock::kernels
