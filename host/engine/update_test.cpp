#include "penstock/engine/update.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <map>

#include "penstock/descriptor/descriptor.h"
#include "penstock/engine/select_conformance.h"

namespace penstock {
namespace {

constexpr penstock_update update(std::uint16_t field, std::uint16_t mode, std::uint32_t column,
                                 std::uint32_t row, std::int64_t value) {
  return {field, mode, column, row, 0, value};
}

class Update : public testing::Test {
 protected:
  std::uint32_t apply(std::initializer_list<penstock_update> updates) {
    return apply_updates(table_.view(), updates.begin(), updates.size(), &bad_index_);
  }
  HostTable table_{10, 128, 2, 1, 3, 1, 2, 3};
  std::uint64_t bad_index_ = 99;
};

TEST_F(Update, EveryFieldReachesItsCell) {
  ASSERT_EQ(apply({update(PENSTOCK_UPDATE_ROWS, PENSTOCK_UPDATE_SET, 0, 0, 100),
                   update(PENSTOCK_UPDATE_ALLOCATABLE, PENSTOCK_UPDATE_SET, 1, 99, 11),
                   update(PENSTOCK_UPDATE_REQUESTED, PENSTOCK_UPDATE_SET, 0, 2, 12),
                   update(PENSTOCK_UPDATE_REQUESTED, PENSTOCK_UPDATE_ADD, 0, 2, -5),
                   update(PENSTOCK_UPDATE_SCORED, PENSTOCK_UPDATE_ADD, 1, 127, 13),
                   update(PENSTOCK_UPDATE_GPU, PENSTOCK_UPDATE_SET, 0, 4, 1000),
                   update(PENSTOCK_UPDATE_BIT, PENSTOCK_UPDATE_SET, 2, 65, 1),
                   update(PENSTOCK_UPDATE_BIT, PENSTOCK_UPDATE_SET, 2, 66, 1),
                   update(PENSTOCK_UPDATE_BIT, PENSTOCK_UPDATE_SET, 2, 66, 0),
                   update(PENSTOCK_UPDATE_FREE, PENSTOCK_UPDATE_ADD, 0, 6, -14),
                   update(PENSTOCK_UPDATE_DOMAIN, PENSTOCK_UPDATE_SET, 1, 127, 127),
                   update(PENSTOCK_UPDATE_DOMAIN, PENSTOCK_UPDATE_SET, 0, 3, -1),
                   update(PENSTOCK_UPDATE_COUNT, PENSTOCK_UPDATE_SET, 2, 5, 1 << 20),
                   update(PENSTOCK_UPDATE_COUNT, PENSTOCK_UPDATE_ADD, 2, 5, -3)}),
            PENSTOCK_OK);
  const TableView view = table_.view();
  EXPECT_EQ(table_.header()->rows, 100u);
  EXPECT_EQ(view.allocatable[128 + 99], 11);
  EXPECT_EQ(view.requested[2], 7);
  EXPECT_EQ(view.scored[128 + 127], 13);
  EXPECT_EQ(view.gpu[4], 1000);
  EXPECT_EQ(view.bits[2 * 2 + 1], 2u);
  EXPECT_EQ(view.free[6], -14);
  EXPECT_EQ(view.domain[128 + 127], 127);
  EXPECT_EQ(view.domain[3], -1);
  EXPECT_EQ(view.count[2 * 128 + 5], (1 << 20) - 3);
  EXPECT_EQ(table_.header()->generation, 1u);
}

TEST_F(Update, ABadEntryInTheMiddleUndoesWhatStoodBefore) {
  ASSERT_EQ(apply({update(PENSTOCK_UPDATE_GPU, PENSTOCK_UPDATE_SET, 0, 4, 900)}), PENSTOCK_OK);
  const HostTable before = table_;
  EXPECT_EQ(apply({update(PENSTOCK_UPDATE_ROWS, PENSTOCK_UPDATE_SET, 0, 0, 20),
                   update(PENSTOCK_UPDATE_BIT, PENSTOCK_UPDATE_SET, 0, 7, 1),
                   update(PENSTOCK_UPDATE_GPU, PENSTOCK_UPDATE_ADD, 0, 4, 100),
                   update(PENSTOCK_UPDATE_GPU, PENSTOCK_UPDATE_ADD, 0, 4, 1),
                   update(PENSTOCK_UPDATE_GPU, PENSTOCK_UPDATE_ADD, 0, 4, -1)}),
            PENSTOCK_OUT_OF_RANGE);
  EXPECT_EQ(bad_index_, 3u);
  EXPECT_EQ(difference(before, table_), "");
}

TEST_F(Update, RefusesWhatItCannotApply) {
  const HostTable before = table_;
  const struct {
    penstock_update wrong;
    std::uint32_t status;
  } cases[] = {
      {update(9, PENSTOCK_UPDATE_SET, 0, 0, 0), PENSTOCK_INVALID_ARGUMENT},
      {update(PENSTOCK_UPDATE_GPU, 2, 0, 0, 0), PENSTOCK_INVALID_ARGUMENT},
      {{PENSTOCK_UPDATE_GPU, 0, 0, 0, 1, 0}, PENSTOCK_INVALID_ARGUMENT},
      {update(PENSTOCK_UPDATE_GPU, PENSTOCK_UPDATE_SET, 1, 0, 0), PENSTOCK_INVALID_ARGUMENT},
      {update(PENSTOCK_UPDATE_GPU, PENSTOCK_UPDATE_SET, 0, 128, 0), PENSTOCK_INVALID_ARGUMENT},
      {update(PENSTOCK_UPDATE_GPU, PENSTOCK_UPDATE_SET, 0, 0, 1001), PENSTOCK_OUT_OF_RANGE},
      {update(PENSTOCK_UPDATE_GPU, PENSTOCK_UPDATE_SET, 0, 0, -1), PENSTOCK_OUT_OF_RANGE},
      {update(PENSTOCK_UPDATE_BIT, PENSTOCK_UPDATE_ADD, 0, 0, 1), PENSTOCK_INVALID_ARGUMENT},
      {update(PENSTOCK_UPDATE_BIT, PENSTOCK_UPDATE_SET, 3, 0, 1), PENSTOCK_INVALID_ARGUMENT},
      {update(PENSTOCK_UPDATE_BIT, PENSTOCK_UPDATE_SET, 0, 0, 2), PENSTOCK_OUT_OF_RANGE},
      {update(PENSTOCK_UPDATE_ROWS, PENSTOCK_UPDATE_ADD, 0, 0, 1), PENSTOCK_INVALID_ARGUMENT},
      {update(PENSTOCK_UPDATE_ROWS, PENSTOCK_UPDATE_SET, 0, 1, 1), PENSTOCK_INVALID_ARGUMENT},
      {update(PENSTOCK_UPDATE_ROWS, PENSTOCK_UPDATE_SET, 0, 0, 129), PENSTOCK_OUT_OF_RANGE},
      {update(PENSTOCK_UPDATE_REQUESTED, PENSTOCK_UPDATE_SET, 0, 0, PENSTOCK_MAX_QUANTITY + 1),
       PENSTOCK_OUT_OF_RANGE},
      {update(PENSTOCK_UPDATE_REQUESTED, PENSTOCK_UPDATE_ADD, 0, 0, -1), PENSTOCK_OUT_OF_RANGE},
      {update(PENSTOCK_UPDATE_FREE, PENSTOCK_UPDATE_ADD, 0, 0, INT64_MIN), PENSTOCK_OUT_OF_RANGE},
      {update(PENSTOCK_UPDATE_DOMAIN, PENSTOCK_UPDATE_ADD, 0, 0, 1), PENSTOCK_INVALID_ARGUMENT},
      {update(PENSTOCK_UPDATE_DOMAIN, PENSTOCK_UPDATE_SET, 2, 0, 1), PENSTOCK_INVALID_ARGUMENT},
      {update(PENSTOCK_UPDATE_DOMAIN, PENSTOCK_UPDATE_SET, 0, 128, 1), PENSTOCK_INVALID_ARGUMENT},
      {update(PENSTOCK_UPDATE_DOMAIN, PENSTOCK_UPDATE_SET, 0, 0, -2), PENSTOCK_OUT_OF_RANGE},
      {update(PENSTOCK_UPDATE_DOMAIN, PENSTOCK_UPDATE_SET, 0, 0, 128), PENSTOCK_OUT_OF_RANGE},
      {update(PENSTOCK_UPDATE_COUNT, PENSTOCK_UPDATE_SET, 3, 0, 1), PENSTOCK_INVALID_ARGUMENT},
      {update(PENSTOCK_UPDATE_COUNT, PENSTOCK_UPDATE_SET, 0, 128, 1), PENSTOCK_INVALID_ARGUMENT},
      {update(PENSTOCK_UPDATE_COUNT, PENSTOCK_UPDATE_SET, 0, 0, (1 << 20) + 1),
       PENSTOCK_OUT_OF_RANGE},
      {update(PENSTOCK_UPDATE_COUNT, PENSTOCK_UPDATE_ADD, 0, 0, -1), PENSTOCK_OUT_OF_RANGE},
  };
  for (const auto& c : cases) {
    EXPECT_EQ(apply({update(PENSTOCK_UPDATE_FREE, PENSTOCK_UPDATE_SET, 0, 0, 5), c.wrong}),
              c.status)
        << "field " << c.wrong.field << " value " << c.wrong.value;
    EXPECT_EQ(bad_index_, 1u);
    EXPECT_EQ(difference(before, table_), "");
  }
}

TEST_F(Update, ADamagedCellIsReplacedButNotAddedTo) {
  table_.view().free[3] = INT64_MAX;
  EXPECT_EQ(apply({update(PENSTOCK_UPDATE_FREE, PENSTOCK_UPDATE_ADD, 0, 3, 1)}),
            PENSTOCK_OUT_OF_RANGE);
  EXPECT_EQ(apply({update(PENSTOCK_UPDATE_FREE, PENSTOCK_UPDATE_SET, 0, 3, 1)}), PENSTOCK_OK);
  EXPECT_EQ(table_.view().free[3], 1);
}

TEST_F(Update, NoUpdatesAreOneUpdate) {
  EXPECT_EQ(apply_updates(table_.view(), nullptr, 0, &bad_index_), PENSTOCK_OK);
  EXPECT_EQ(table_.header()->generation, 1u);
}

// The same lists on a map from (field, column, row) to a value.
TEST_F(Update, RandomListsMatchAMap) {
  using Cell = std::array<std::uint32_t, 3>;
  HostTable table(64, 64, 3, 2, 5, 2, 2, 3);
  std::map<Cell, std::int64_t> cells;
  cells[{PENSTOCK_UPDATE_ROWS, 0, 0}] = 64;
  std::uint64_t applied = 0;
  std::uint64_t refused = 0;
  for (std::uint64_t seed = 0; seed < 3000; seed++) {
    const std::vector<penstock_update> updates = make_updates(seed, *table.header());
    std::map<Cell, std::int64_t> after = cells;
    bool ok = true;
    for (const penstock_update& u : updates) {
      const std::int64_t columns[] = {1, 3, 3, 3, 2, 5, 2, 2, 3};
      const std::int64_t least[] = {0, 0, 0, 0, 0, 0, -PENSTOCK_MAX_FREE_VALUE, -1, 0};
      const std::int64_t most[] = {64,
                                   PENSTOCK_MAX_QUANTITY,
                                   PENSTOCK_MAX_QUANTITY,
                                   PENSTOCK_MAX_QUANTITY,
                                   1000,
                                   1,
                                   PENSTOCK_MAX_FREE_VALUE,
                                   63,
                                   1 << 20};
      ok = ok && u.field <= PENSTOCK_UPDATE_COUNT && u.mode <= PENSTOCK_UPDATE_ADD && u.row < 64;
      if (!ok || u.column >= columns[u.field]) {
        ok = false;
        break;
      }
      const bool add = u.mode == PENSTOCK_UPDATE_ADD;
      ok = !add || (u.field != PENSTOCK_UPDATE_BIT && u.field != PENSTOCK_UPDATE_ROWS &&
                    u.field != PENSTOCK_UPDATE_DOMAIN);
      std::int64_t sum = 0;
      ok =
          ok && !__builtin_add_overflow(u.value, add ? after[{u.field, u.column, u.row}] : 0, &sum);
      ok = ok && sum >= least[u.field] && sum <= most[u.field];
      if (!ok) break;
      after[{u.field, u.column, u.row}] = sum;
    }
    const std::uint64_t generation = table.header()->generation;
    const std::uint32_t status =
        apply_updates(table.view(), updates.data(), updates.size(), &bad_index_);
    ASSERT_EQ(status == PENSTOCK_OK, ok) << "seed " << seed << " entry " << bad_index_;
    ASSERT_EQ(table.header()->generation, generation + (ok ? 1 : 0));
    if (ok) cells = after;
    (ok ? applied : refused)++;
    for (const auto& [cell, value] : cells) {
      const TableView view = table.view();
      std::int64_t* const bases[] = {nullptr,  view.allocatable, view.requested, view.scored,
                                     view.gpu, nullptr,          view.free};
      std::int64_t actual = 0;
      if (cell[0] == PENSTOCK_UPDATE_ROWS) {
        actual = table.header()->rows;
      } else if (cell[0] == PENSTOCK_UPDATE_BIT) {
        actual = table.bit(cell[1], cell[2]);
      } else if (cell[0] == PENSTOCK_UPDATE_DOMAIN) {
        actual = view.domain[cell[1] * 64 + cell[2]];
      } else if (cell[0] == PENSTOCK_UPDATE_COUNT) {
        actual = view.count[cell[1] * 64 + cell[2]];
      } else {
        actual = bases[cell[0]][cell[1] * 64 + cell[2]];
      }
      ASSERT_EQ(actual, value) << "seed " << seed << " field " << cell[0];
    }
  }
  EXPECT_GT(applied, 500u);
  EXPECT_GT(refused, 500u);
}

}  // namespace
}  // namespace penstock
